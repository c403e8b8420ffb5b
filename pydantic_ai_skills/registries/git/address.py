"""What a developer says about a repository, checked before git sees any of it: its URL, a ref, a path in it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.user_dirs import expand_home

__all__ = ('GitAddress', 'Protocol', 'check_path', 'check_protocols', 'check_ref', 'is_commit', 'parse_address')

Protocol = Literal['file', 'http', 'https', 'ssh']
"""How git may reach a repository. `'file'` covers plain local paths."""

_UNPRINTABLE = re.compile(r'[\x00-\x20\x7f]')
_HELPER = re.compile(r'[A-Za-z0-9+.-]*::')
_SCP = re.compile(r'(?:(?P<user>[\w.+-]+)@)?(?P<host>[A-Za-z0-9][\w.-]*):(?P<path>(?!//).+)')
_HOST = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]')
_USER = re.compile(r'[A-Za-z0-9_][\w.+-]*')
_COMMIT = re.compile(r'[0-9a-f]{40}|[0-9a-f]{64}')
_BAD_REF = re.compile(r'[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.(?:lock)?(?:/|$)|^[-/.@]|/$')


@dataclass(frozen=True, kw_only=True)
class GitAddress:
    """Where a repository is."""

    url: str
    """The URL as git is given it; it holds no password or token."""

    protocol: Protocol
    """How it is reached."""

    origin: str
    """Scheme, host and port, as credentials are bound to them; empty for a local one."""

    host: str
    """The host; empty for a local one."""

    name: str
    """What the repository is called, for a folder of its own."""


def check_protocols(protocols: Collection[str]) -> frozenset[str]:
    """The protocols, if all of them are known."""
    unknown = set(protocols) - set(get_args(Protocol))
    if unknown or isinstance(protocols, str):
        known = ', '.join(map(repr, get_args(Protocol)))
        raise SkillValidationError(f'allowed_protocols takes a collection of {known}, not {protocols!r}.')
    return frozenset(protocols)


def parse_address(url: str | os.PathLike[str], allowed: Collection[str]) -> GitAddress:
    """Where a repository is, if it may be reached like that.

    Raises:
        SkillValidationError: It may not, or the URL is none. The message does not repeat what may be a secret.
    """
    text = os.fspath(url)
    local = not isinstance(url, str)
    if not local and (_UNPRINTABLE.search(text.replace(' ', '')) or not text.strip()):
        raise SkillValidationError('The URL of a repository is empty or has control characters in it.')
    if text.startswith('-'):
        raise SkillValidationError(f'The URL of a repository cannot begin with a hyphen: {text!r}.')
    if not local and _HELPER.match(text):
        raise SkillValidationError(f'{text!r} would make git run a program (a transport helper), which is never done.')
    if not local and '://' in text:
        address = _from_url(text)
    elif not local and os.sep not in text.partition(':')[0] and (scp := _SCP.fullmatch(text)) and not _has_drive(text):
        user = f'{scp["user"]}@' if scp['user'] else ''
        address = _address(f'{user}{scp["host"]}:{scp["path"]}', 'ssh', scp['host'], None, scp['path'])
    else:
        path = expand_home(text).absolute()
        address = _address(path.as_uri() if os.name == 'nt' else f'file://{path}', 'file', '', None, str(path))
    if address.protocol not in allowed:
        raise SkillValidationError(
            f'{address.protocol!r} is not among the allowed protocols {sorted(allowed)}. If you trust this way, '
            f"say so: allowed_protocols=('{address.protocol}',); at the terminal: --allow {address.protocol}."
        )
    return address


def _from_url(text: str) -> GitAddress:
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ''
    except ValueError:
        raise SkillValidationError('The URL of the repository cannot be understood.') from None
    scheme = cast(Protocol, parts.scheme)
    # Git looks for a program of the scheme's name if it is in other letters.
    text = scheme + text[len(scheme) :]
    if scheme not in get_args(Protocol):
        known = ', '.join(f'{known}://' for known in get_args(Protocol))
        raise SkillValidationError(f'{scheme!r} is not a way to reach a repository; {known} are.')
    if _UNPRINTABLE.search(text) and scheme != 'file':
        raise SkillValidationError('The URL of a repository has spaces in it; write them as %20.')
    if parts.password is not None or (parts.username and scheme != 'ssh') or parts.query or parts.fragment:
        raise SkillValidationError(
            f'The URL of the repository on {host!r} has a user, a password or a query in it. Give a token as token=; '
            'at the terminal: --token-env.'
        )
    if scheme == 'file':
        if host:
            raise SkillValidationError(f'A file:// URL has no host, this one has {host!r}.')
        return _address(text, scheme, '', None, parts.path)
    if not _HOST.fullmatch(f'[{host}]' if ':' in host else host) or not parts.path.strip('/'):
        raise SkillValidationError(f'The URL of the repository names no host, or no repository on it: {text!r}.')
    if parts.username and not _USER.fullmatch(parts.username):
        raise SkillValidationError(f'The user in the URL of the repository on {host!r} is not one.')
    return _address(text, scheme, host, port, parts.path)


def _address(url: str, protocol: Protocol, host: str, port: int | None, path: str) -> GitAddress:
    name = re.sub(r'[^\w.-]+', '-', path.rstrip('/').rpartition('/')[2]).removesuffix('.git').strip('.-')
    shown = f'[{host}]' if ':' in host else host
    origin = f'{protocol}://{shown}{f":{port}" if port else ""}' if host else ''
    return GitAddress(url=url, protocol=protocol, origin=origin, host=host, name=name[:64] or 'repository')


def _has_drive(text: str) -> bool:
    return os.name == 'nt' and len(text) > 1 and text[0].isalpha() and text[1] == ':'


def check_ref(ref: str | None) -> str | None:
    """The name of a branch or tag, or a full commit, if git would take it for one."""
    if ref is not None and (not ref or len(ref) > 255 or _BAD_REF.search(ref)):
        raise SkillValidationError(f'{ref[:80]!r} is not the name of a branch or tag, nor a full commit.')
    return ref


def is_commit(ref: str | None) -> bool:
    """Whether a ref is a full commit, which always means the same content."""
    return ref is not None and _COMMIT.fullmatch(ref) is not None


def check_path(path: str) -> str:
    """A folder in the repository, without `.` and empty steps; empty for the whole repository."""
    steps = [step for step in path.split('/') if step not in ('', '.')]
    if path.startswith(('/', '-', '~', ':')) or '..' in steps or re.search(r'[\x00-\x1f\x7f\\]', path):
        raise SkillValidationError(f'{path!r} is not a folder in the repository; write it like `skills/pdf`.')
    return '/'.join(steps)
