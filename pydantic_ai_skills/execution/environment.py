"""Builds the environment of a script and knows which of its values must not reach the model.

The skill's folder is on the `PYTHONPATH`, so that `from scripts.x import y` works wherever the script starts.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, cast
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

INHERITED_VARIABLES = frozenset(
    {'HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'}
    | {'LANG', 'LANGUAGE', 'TZ', 'SSL_CERT_DIR', 'SSL_CERT_FILE', 'TEMP', 'TMP', 'TMPDIR'}
)
"""Variables every script gets, besides those that begin with `LC_`. None of them holds a secret."""

MIN_SECRET_CHARS = 6
"""Shorter values are not masked, since they also occur in harmless text."""

EnvValues: TypeAlias = 'Mapping[str, str | SecretStr] | Callable[[Any], Mapping[str, str | SecretStr]]'
"""Variables with their values, or a function that makes them from the `RunContext`, such as from `ctx.deps`."""

SkillEnv: TypeAlias = 'Sequence[str] | EnvValues'
"""For one skill: names of variables to pass on from this process, or variables with their values."""

_PYTHONS_OWN = sys.stdlib_module_names | {'sitecustomize', 'usercustomize'}
_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_SECRET_NAME = re.compile(
    r'KEY|TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|SESSION|DSN|DATABASE_URL|CONNECTION_STRING|WEBHOOK'
    r'|(^|_)(PAT|PASS|SID)($|_)'
)


@dataclass(frozen=True, kw_only=True)
class ScriptEnvironment:
    """The settings that make up the environment of a script. Nothing is passed on unless it is named."""

    env: EnvValues | None = None
    """Variables for every script."""

    pass_env: Sequence[str] = ()
    """Names of variables that every script gets from this process."""

    skill_env: Mapping[str, SkillEnv] = field(default_factory=dict[str, SkillEnv])
    """Variables for the scripts of one skill, by its name."""

    def __post_init__(self) -> None:
        for names in (self.pass_env, *self.skill_env.values()):
            if isinstance(names, str):
                raise ValueError(f'Give names of variables as a list: [{names!r}].')
        for values in (self.env, self.pass_env, *self.skill_env.values()):
            if values is not None and not callable(values):
                for name in values:
                    _check(name, values[name] if isinstance(values, Mapping) else '', ValueError)

    def build(
        self, skill_name: str | None, ctx: Any, *, base: Mapping[str, str] | None = None
    ) -> tuple[dict[str, str], frozenset[str]]:
        """The variables for a script of this skill on top of `base`, and the secret values among them."""
        # Importing a module beside the script must not change the skill's folder.
        variables = {**(inherited_variables() if base is None else base), 'PYTHONDONTWRITEBYTECODE': '1'}
        secrets: set[str] = set()
        for source in (self.pass_env, self.env, self.skill_env.get(skill_name or '')):
            for name, value in _values(source, ctx):
                variables[name] = text = _check(name, value, SkillScriptExecutionError)
                if isinstance(value, SecretStr) or _SECRET_NAME.search(name.upper()):
                    secrets.update(secret_forms(text))
        return variables, frozenset(secrets)


def inherited_variables() -> dict[str, str]:
    """The variables of this process that any script may see."""
    return {name: os.environ[name] for name in os.environ if name in INHERITED_VARIABLES or name.startswith('LC_')}


def secret_forms(secret: str) -> Iterator[str]:
    """The forms in which output may contain a secret: as it is, by line, in JSON, quoted for a URL, in base 64."""
    forms: set[str] = set()
    # A secret from a file often ends with a line break, which scripts remove before they use it.
    for data in {whole := os.fsencode(secret), whole.strip()}:
        text = data.decode('utf-8', 'replace')  # as output is decoded
        forms |= {text, *text.splitlines(), quote(data, safe=''), quote(data), quote_plus(data)}
        forms |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # Three bytes are four characters, so whole triples look the same whatever follows, such as a line break.
            forms |= {encode(data).decode(), encode(data[: len(data) // 3 * 3]).decode()}
    yield from (form for form in forms if len(form) >= MIN_SECRET_CHARS)


def _values(source: SkillEnv | None, ctx: Any) -> Iterator[tuple[str, str | SecretStr]]:
    values = source(ctx) if callable(source) else source
    if isinstance(values, Mapping):
        yield from values.items()
    elif callable(source):
        raise SkillScriptExecutionError(
            f'The function that makes environment variables returned {type(values).__name__}, not variables with their '
            'values.'
        )
    else:
        yield from ((name, os.environ[name]) for name in source or () if name in os.environ)


def _check(name: str, value: object, error: type[Exception]) -> str:
    """The value as text. Raises `error` if no process can be given this variable."""
    # The shell that sets the limits of a process does not pass on variables with other names.
    if not _NAME.fullmatch(name):
        raise error(
            f'{name!r} cannot be the name of an environment variable. A name is letters, digits and "_", and does not '
            'begin with a digit.'
        )
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str | bytes | os.PathLike):  # a process accepts the last two as well
        raise error(f'The environment variable {name!r} is {type(value).__name__}, not text.')
    with suppress(UnicodeEncodeError):
        if b'\0' not in (encoded := os.fsencode(cast('str', text))):
            return os.fsdecode(encoded)
    raise error(f'The environment variable {name!r} contains a NUL character or half of a surrogate pair.')


# --- What the skill adds ------------------------------------------------------------------------------------------


def with_skill(env: Mapping[str, str], skill_dir: Path, *, as_module: bool) -> dict[str, str]:
    """The variables of a script, with those that name its skill's folder and let it import the skill's modules."""
    imports = import_variables(str(skill_dir), top_modules_in(skill_dir), env, as_module=as_module)
    return {**env, **imports, 'SKILL_DIR': str(skill_dir), 'CLAUDE_SKILL_DIR': str(skill_dir)}


def import_variables(
    skill_dir: str, modules: Iterable[str], env: Mapping[str, str], *, as_module: bool, separator: str = os.pathsep
) -> dict[str, str]:
    """The variables that make the modules in a skill's folder importable, in addition to what the developer set.

    There are none if one of the top-level `modules` would shadow a module of the standard library, which it does not do
    under `python scripts/x.py` either. A script that runs as a module needs the folder all the same. A path that
    contains the separator cannot be passed on.
    """
    names = {name.removesuffix('.py') for name in modules}
    if separator in skill_dir or (not as_module and names & _PYTHONS_OWN):
        return {}
    return {'PYTHONPATH': separator.join(filter(None, (env.get('PYTHONPATH'), skill_dir)))}


def top_modules(files: Iterable[str]) -> set[str]:
    """The modules and packages at the top of a skill, from the paths of its files."""
    paths = [PurePosixPath(file).parts for file in files]
    modules = {parts[0] for parts in paths if len(parts) == 1 and parts[0].endswith('.py')}
    return modules | {parts[0] for parts in paths if len(parts) == 2 and parts[1] == '__init__.py'}


def top_modules_in(folder: Path) -> set[str]:
    """The modules and packages at the top of a skill's folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if _is_module(entry)}
    except OSError:
        return set()


def _is_module(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith('.py') or os.path.exists(os.path.join(entry.path, '__init__.py'))


def with_folder_first(search_path: str, program: str | None) -> str:
    """A `PATH` on which the folder of a program comes first, unless it is on it already."""
    folder = os.path.dirname(program or '')
    if not folder or folder in search_path.split(os.pathsep):
        return search_path
    return os.pathsep.join(filter(None, (folder, search_path)))
