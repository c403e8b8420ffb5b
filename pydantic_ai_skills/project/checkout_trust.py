"""Remembers which checkouts the user trusts, and which hosts may get a token, in the user's configuration folder.

What the files of a checkout say is data until the user trusts it. So neither answer is ever read from a checkout.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic_ai_skills.directory.standard import standard_folders
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.identity import folder_identity
from pydantic_ai_skills.filesystem.locks import only_one
from pydantic_ai_skills.filesystem.safe_open import read_head
from pydantic_ai_skills.filesystem.user_dirs import expand_home, user_config_dir
from pydantic_ai_skills.registries.git.address import parse_address

FILE = 'trust.json'
VERSION = 1
MAX_BYTES = 1024 * 1024
PATIENCE_S = 10.0
"""How many seconds to wait for another process that writes the file."""

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_VARIABLE = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_DEFAULT_PORTS = {'https': ':443', 'http': ':80'}


class Remembered(NamedTuple):
    """What the file says."""

    checkouts: dict[str, str]
    """The identity that each trusted folder had when it was trusted, by its real path."""

    tokens: dict[str, list[str]]
    """The origins that each environment variable may be sent to, such as `https://github.com`."""

    problem: str | None = None
    """Why the file is not believed, if it is not."""


class UserTrust:
    """What this user trusts: checkouts, and the hosts that a token may be sent to.

    `pydantic-ai-skills trust` writes it. A program that people start in folders of others passes it to the project,
    so that the files of such a folder are only looked at until the user trusts it:

    ```python {test="skip"}
    from pydantic_ai_skills import SkillsProject, UserTrust

    project = SkillsProject.find(trust=UserTrust())
    ```

    It can also be the `trust` of `SkillsDirectory.standard` and of `SkillsToolset(directories='standard')`.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        """Remember where the answers are kept; they are read each time they are needed.

        Args:
            file: The file; `trust.json` in the user's configuration folder when not given.
        """
        self._file = None if file is None else expand_home(file).absolute()

    @property
    def file(self) -> Path:
        """Where the answers are kept; `SkillValidationError` if this user has no home folder."""
        return self._file or user_config_dir() / FILE

    def __call__(self, folder: Path) -> bool:
        """Whether the user trusts the checkout in this folder."""
        return self.is_trusted(folder)

    # --- Checkouts ------------------------------------------------------------------------------------------------

    def is_trusted(self, folder: str | Path) -> bool:
        """Whether the user trusts the checkout in this folder: this very one, not another put in its place."""
        checkout = os.path.realpath(folder)
        identity = self.read().checkouts.get(checkout)
        try:
            return identity == folder_identity(Path(checkout)) and not self._is_kept_in(checkout)
        except OSError:
            return False

    def trust(self, folder: str | Path) -> Path:
        """Trust the checkout in this folder, with all that is or will be in it, and return its real path.

        Raises:
            OSError: There is no such folder, or the file cannot be written.
            SkillValidationError: The file is not believed, or is part of the checkout.
        """
        checkout = os.path.realpath(folder)
        identity = folder_identity(Path(checkout))
        if self._is_kept_in(checkout):
            raise SkillValidationError(
                f'{str(self.file)!r}, which remembers what you trust, is part of {checkout!r}. A checkout cannot hold '
                'the answer: keep it elsewhere with PYDANTIC_AI_SKILLS_CONFIG_DIR.'
            )
        with self._changing() as remembered:
            remembered.checkouts[checkout] = identity
        return Path(checkout)

    def revoke(self, folder: str | Path) -> bool:
        """Stop trusting a checkout, whether its folder still exists or not. Returns whether it was remembered."""
        with self._changing() as remembered:
            return remembered.checkouts.pop(os.path.realpath(folder), None) is not None

    # --- Tokens ---------------------------------------------------------------------------------------------------

    def may_send(self, variable: str, origin: str) -> bool:
        """Whether the token in this environment variable may be sent to this origin: scheme, host and port."""
        return _without_default_port(origin) in self.read().tokens.get(variable, ())

    def bind_token(self, variable: str, host: str) -> str:
        """Let the token in an environment variable be sent to one more host, and return the host's origin.

        Args:
            variable: The name of the variable.
            host: The host, with the port if it is not the usual one; `http://…` for a host without encryption.

        Raises:
            SkillValidationError: It is not the name of a variable or of a host, or the file is not believed.
        """
        origin = _origin(host)
        if not _VARIABLE.fullmatch(variable):
            raise SkillValidationError('A token is bound by the name of the environment variable that holds it.')
        with self._changing() as remembered:
            remembered.tokens[variable] = sorted({*remembered.tokens.get(variable, ()), origin})
        return origin

    def unbind_token(self, variable: str, host: str) -> bool:
        """Stop a token from being sent to this host. Returns whether it was bound to it."""
        origin = _origin(host)
        with self._changing() as remembered:
            hosts = remembered.tokens.pop(variable, [])
            if left := [other for other in hosts if other != origin]:
                remembered.tokens[variable] = left
            return origin in hosts

    # --- The file -------------------------------------------------------------------------------------------------

    def read(self) -> Remembered:
        """What the file says; nothing if there is none, or if another user owns it or can write it."""
        problem: str | None = None
        try:
            file = self.file
            status, data = read_head(str(file), MAX_BYTES + 1)
            if not (_is_own(status) and _is_own(os.stat(file.parent))):
                problem = f'{str(file)!r} is not used: another user owns or can write it, or its folder'
            elif not stat.S_ISREG(status.st_mode) or len(data) > MAX_BYTES:
                problem = f'{str(file)!r} is not used: it is not a regular file, or too large'
            else:
                return _parse(data)
        except FileNotFoundError:
            pass
        except SkillValidationError as error:
            problem = str(error).rstrip('.')
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f'{str(self.file)!r} cannot be read: {type(error).__name__}: {error}'
        return Remembered({}, {}, problem)

    @contextmanager
    def _changing(self) -> Generator[Remembered]:
        """What the file says, to be changed; it is written afterwards."""
        folder = self.file.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with only_one(folder, patience=PATIENCE_S):
            remembered = self.read()
            if remembered.problem is not None:
                raise SkillValidationError(f'{remembered.problem}. Correct it, or remove it and trust again.')
            yield remembered
            document = {'version': VERSION, 'checkouts': remembered.checkouts, 'tokens': remembered.tokens}
            replace_file(self.file, f'{json.dumps(document, indent=2, sort_keys=True)}\n'.encode(), mode=0o600)

    def _is_kept_in(self, checkout: str) -> bool:
        return Path(os.path.realpath(self.file)).is_relative_to(checkout)


def checkout_of(folder: Path) -> Path:
    """The checkout a folder belongs to: the nearest git repository around it, or else the folder itself.

    A home folder that is a repository is not the checkout of what lies below it.
    """
    real = Path(os.path.realpath(folder))
    home = Path(os.path.realpath(os.path.expanduser('~')))
    for step in (real, *real.parents):
        if step == home != real:
            break
        if (step / '.git').exists():
            return step
    return real


def is_users_own(folder: Path) -> bool:
    """Whether a folder is, or lies in, one where this user keeps skills, such as `~/.agents/skills`."""
    real = Path(os.path.realpath(folder))
    try:
        own = standard_folders(project=None, user=True, trust=None)
    except (RuntimeError, SkillValidationError):  # no home folder
        return False
    return any(real.is_relative_to(os.path.realpath(each.path)) for each in own)


def refusal(checkout: Path, trust: UserTrust) -> str:
    """Why nothing of a checkout is run or fetched, and the command that trusts it."""
    problem = f'{problem}. ' if (problem := trust.read().problem) else ''
    return (
        f'{str(checkout)!r} is not trusted, so nothing of it is run, imported or fetched. {problem}'
        f'Look at what it contains, then trust it with: pydantic-ai-skills trust {shlex.quote(str(checkout))}'
    )


def token_refusal(variable: str, origin: str) -> str:
    """Why a token is not sent, and the command that allows it."""
    plain = _without_default_port(origin).removeprefix('https://')
    return (
        f'pyproject.toml asks for {variable!r} to be sent to {origin}, which you have not allowed. If that is right, '
        f'run: pydantic-ai-skills trust --token {shlex.quote(f"{variable}={plain}")}'
    )


def _origin(host: str) -> str:
    url = host if '://' in host else f'https://{host}'
    with suppress(SkillValidationError):
        address = parse_address(f'{url.rstrip("/")}/x', ('https', 'http'))
        if urlsplit(address.url).path == '/x':
            return _without_default_port(address.origin)
    raise SkillValidationError(f'{host!r} is not a host. Write it like github.com, or git.example.com:8443.')


def _without_default_port(origin: str) -> str:
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition('://')[0], ''))


def _is_own(status: os.stat_result) -> bool:
    """Whether this user owns a file or folder, and nobody else can write it. Windows has other means."""
    return os.name != 'posix' or (status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_MAY_WRITE)


def _parse(data: bytes) -> Remembered:
    document = json.loads(data)
    if document['version'] != VERSION:
        raise ValueError(f'its version is {document["version"]!r}, and this package knows {VERSION}')
    checkouts = {str(path): str(identity) for path, identity in document['checkouts'].items()}
    return Remembered(checkouts, {str(name): [*map(str, hosts)] for name, hosts in document['tokens'].items()})
