"""Which environment variables a script gets to see, and which of their values must not reach the model."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

__all__ = ('INHERITED_VARIABLES', 'EnvValues', 'ScriptEnvironment', 'SkillEnv', 'inherited_variables', 'secret_forms')

INHERITED_VARIABLES = frozenset(
    {
        'HOME',
        'LANG',
        'LANGUAGE',
        'LOGNAME',
        'PATH',
        'SHELL',
        'SSL_CERT_DIR',
        'SSL_CERT_FILE',
        'TEMP',
        'TERM',
        'TMP',
        'TMPDIR',
        'TZ',
        'USER',
    }
)
"""Variables every script gets, besides those that begin with `LC_`. None of them holds a secret."""

MIN_SECRET_CHARS = 6
"""Shorter values are not masked: they would turn up in harmless text."""

EnvValues: TypeAlias = 'Mapping[str, str | SecretStr] | Callable[[Any], Mapping[str, str | SecretStr]]'
"""Variables with their values, or a function that makes them from the `RunContext`, such as from `ctx.deps`."""

SkillEnv: TypeAlias = 'Sequence[str] | EnvValues'
"""For one skill: names of variables to pass on from this process, or variables with their values."""

_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_SECRET_NAME = re.compile(
    r'KEY|TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|SESSION|DSN|DATABASE_URL|CONNECTION_STRING',
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class ScriptEnvironment:
    """What the environment of a script is made of. Nothing is passed on that is not named somewhere."""

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
                    _check_name(name, ValueError)
                    if isinstance(values, Mapping):
                        _check_type(name, values[name], ValueError)

    def build(
        self, skill_name: str | None, ctx: Any, *, base: Mapping[str, str] | None = None
    ) -> tuple[dict[str, str], frozenset[str]]:
        """The variables for a script of this skill, and the secret values among them.

        Args:
            skill_name: The skill the script belongs to.
            ctx: What functions that make variables are called with.
            base: What to begin with, in place of the harmless variables of this process.

        Raises:
            SkillScriptExecutionError: A function made variables that no process can be given.
        """
        variables = {
            **(inherited_variables() if base is None else base),
            # Importing a module beside the script must not change the skill's folder.
            'PYTHONDONTWRITEBYTECODE': '1',
        }
        secrets: set[str] = set()
        for source in (self.pass_env, self.env, self.skill_env.get(skill_name or '')):
            for name, value in _values(source, ctx):
                _check_name(name, SkillScriptExecutionError)
                _check_type(name, value, SkillScriptExecutionError)
                text = value.get_secret_value() if isinstance(value, SecretStr) else value
                _check_value(name, text)
                variables[name] = text
                if isinstance(value, SecretStr) or _SECRET_NAME.search(name):
                    secrets.update(secret_forms(text))
        return variables, frozenset(secrets)


def inherited_variables() -> dict[str, str]:
    """The variables of this process that any script may see."""
    return {k: v for k, v in os.environ.items() if k in INHERITED_VARIABLES or k.startswith('LC_')}


def secret_forms(secret: str) -> Iterator[str]:
    """A secret as it may turn up in output: as it is, line by line, inside JSON, quoted for an address, in base 64."""
    forms: set[str] = set()
    # A secret from a file often ends with a line break, which scripts take away before they use it.
    for data in {whole := os.fsencode(secret), whole.strip()}:
        text = data.decode('utf-8', 'replace')  # as output is decoded
        forms |= {text, *text.splitlines(), quote(data, safe=''), quote(data), quote_plus(data)}
        forms |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # Three bytes are four characters, so whole triples look the same whatever follows, such as a line break.
            forms |= {encode(data).decode(), encode(data[: len(data) // 3 * 3]).decode()}
    yield from (form for form in forms if len(form) >= MIN_SECRET_CHARS)


def _values(source: SkillEnv | None, ctx: Any) -> Iterator[tuple[str, str | SecretStr]]:
    if source is None:
        return
    if callable(source):
        source = _made(source(ctx))
    if isinstance(source, Mapping):
        yield from source.items()
    else:
        yield from ((name, os.environ[name]) for name in source if name in os.environ)


def _made(values: object) -> Mapping[str, str | SecretStr]:
    if not isinstance(values, Mapping):
        raise SkillScriptExecutionError(
            f'The function that makes environment variables returned {type(values).__name__}, not variables with their '
            'values.'
        )
    return cast(Mapping[str, str | SecretStr], values)


def _check_name(name: str, error: type[Exception]) -> None:
    # The shell that sets the limits of a process passes on no others.
    if not _NAME.fullmatch(name):
        raise error(
            f'{name!r} cannot be the name of an environment variable. A name is letters, digits and "_", and does not '
            'begin with a digit.'
        )


def _check_type(name: str, value: object, error: type[Exception]) -> None:
    if not isinstance(value, str | SecretStr | bytes | os.PathLike):  # the last two are as good to a process
        raise error(f'The environment variable {name!r} is {type(value).__name__}, not text.')


def _check_value(name: str, value: str) -> None:
    try:
        valid = b'\0' not in os.fsencode(value)
    except UnicodeEncodeError:
        valid = False
    if not valid:
        raise SkillScriptExecutionError(
            f'The environment variable {name!r} contains a NUL character or half of a surrogate pair.'
        )
