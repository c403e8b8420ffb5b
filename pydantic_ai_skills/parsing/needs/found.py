"""One thing that a file of a skill needs, and the rules that tell a key from other variables."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

NeedKind = Literal['python', 'module', 'npm', 'program', 'key', 'tool']
"""`'python'` is a declared requirement, `'module'` an import whose package is looked up later."""


class Found(NamedTuple):
    """One thing that a file needs."""

    kind: NeedKind
    name: str
    """The name of the package, module, program, variable or tool."""

    optional: bool = False
    """Whether the file does without it, or gives it a default."""

    detail: str = ''
    """A requirement as it is declared, or what a tool is for."""


MAX_NAME = 100
"""Longer names are not names."""

_CREDENTIAL = re.compile(
    r'(?:^|_)(?:API_?)?(?:KEYS?|TOKENS?|SECRETS?|PASSW(?:OR)?D|PASSPHRASE|CREDENTIALS?|PAT|DSN|WEBHOOK(?:_URL)?)(?:$|_)'
    r'|APIKEY|_ACCOUNT_SID$|DATABASE_URL$'
)
_ORDINARY = re.compile(
    r'(?:HOME|PATH|PWD|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|EDITOR|DISPLAY|COLUMNS|LINES|CI|DEBUG|PORT'
    r'|HOST|HOSTNAME|NODE_ENV|NODE_PATH|NO_COLOR|VIRTUAL_ENV|APPDATA|LOCALAPPDATA|PROGRAMFILES|USERPROFILE|SYSTEMROOT|WINDIR)'
    r'|(?:LC|XDG|PYTHON|CLAUDE|CODEX|SKILL|GITHUB|UV|PIP|NPM|BASH)_?[A-Z0-9_]*'
)


def key(name: str, *, optional: bool, certain: bool = False) -> Found | None:
    """A variable of the environment that somebody has to set; `None` for one that every process has.

    A file that reads a variable without a fallback is `certain` to need it. Others count only if they are credentials.
    """
    if len(name) > MAX_NAME or not name.isidentifier() or not name.isupper():
        return None
    is_credential = _CREDENTIAL.search(name) is not None
    if not is_credential and (not certain or optional or _ORDINARY.fullmatch(name)):
        return None
    return Found('key', name, optional)
