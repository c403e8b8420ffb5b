"""Checks the URL, ref and path of a repository before git sees them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.registries.fetch_options import require_protocol

GitProtocol = Literal['file', 'http', 'https', 'ssh']
"""How git may reach a repository. `'file'` covers plain local paths."""

_UNPRINTABLE = re.compile(r'[\x00-\x20\x7f]')
_HELPER = re.compile(r'[A-Za-z0-9+.-]*::')
_SCP = re.compile(r'(?:(?P<user>[\w.+-]+)@)?(?P<host>[A-Za-z0-9][\w.-]*):(?P<path>(?!//).+)')
_HOST = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]')
_USER = re.compile(r'[A-Za-z0-9_][\w.+-]*')
_BAD_REF = re.compile(r'[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.(?:lock)?(?:/|$)|^[-/.@]|/$')


@dataclass(frozen=True, kw_only=True)
class GitAddress:
    """Where a repository is."""

    url: str
    """The URL as git is given it, without password or token."""

    protocol: GitProtocol
    origin: str
    """Scheme, host and port that credentials are bound to; empty for a local one."""

    host: str
    """The host; empty for a local one."""

    name: str
    """What to call the repository's folder."""


def parse_address(url: str | os.PathLike[str], allowed: Collection[str]) -> GitAddress:
    """Parse the address of a repository. Error messages do not repeat possible secrets.

    `owner/repository` is one on GitHub, unless there is such a folder or local repositories are allowed.
    """
    text = os.fspath(url)
    if text.startswith('-'):
        raise SkillValidationError(f'The URL of a repository cannot begin with a hyphen: {text!r}.')
    if not isinstance(url, str):
        address = _from_path(text)
    else:
        short = None if 'file' in allowed else github_url(text)
        address = _from_text(text if short is None or _is_folder(text) else short)
    require_protocol(address.protocol, allowed)
    return address


def _from_text(text: str) -> GitAddress:
    if _UNPRINTABLE.search(text.replace(' ', '')) or not text.strip():
        raise SkillValidationError('The URL of a repository is empty or has control characters in it.')
    if _HELPER.match(text):
        raise SkillValidationError(f'{text!r} would make git run a program (a transport helper), which is never done.')
    if '://' in text:
        return _from_url(text)
    if os.sep not in text.partition(':')[0] and (scp := _SCP.fullmatch(text)) and not _has_drive(text):
        user = f'{scp["user"]}@' if scp['user'] else ''
        return _address(f'{user}{scp["host"]}:{scp["path"]}', 'ssh', scp['host'], None, scp['path'])
    return _from_path(text)


def _from_path(text: str) -> GitAddress:
    path = expand_home(text).absolute()
    return _address(path.as_uri() if os.name == 'nt' else f'file://{path}', 'file', '', None, str(path))


def _from_url(text: str) -> GitAddress:
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ''
    except ValueError:
        raise SkillValidationError('The URL of the repository cannot be parsed.') from None
    scheme = cast(GitProtocol, parts.scheme)
    if scheme not in get_args(GitProtocol):
        known = ', '.join(f'{known}://' for known in get_args(GitProtocol))
        raise SkillValidationError(f'{scheme!r} is not a way to reach a repository; {known} are.')
    # For a scheme in capital letters git would look for a program of that name.
    text = scheme + text[len(scheme) :]
    _check_no_secrets(host, parts)
    _check_host(text, host, parts)
    return _address(text, scheme, host, port, parts.path)


def _check_no_secrets(host: str, parts: SplitResult) -> None:
    user_is_allowed = parts.scheme == 'ssh' and parts.password is None
    if ('@' in parts.netloc and not user_is_allowed) or parts.query or parts.fragment:
        raise SkillValidationError(
            f'The URL of the repository on {host!r} has a user, a password or a query in it. Give a token as token=; '
            'at the terminal: --token-env.'
        )


def _check_host(text: str, host: str, parts: SplitResult) -> None:
    if parts.scheme == 'file':
        if host:
            raise SkillValidationError(f'A file:// URL has no host, this one has {host!r}.')
        return
    if _UNPRINTABLE.search(text):
        raise SkillValidationError('The URL of a repository has spaces in it; write them as %20.')
    if not _HOST.fullmatch(f'[{host}]' if ':' in host else host) or not parts.path.strip('/'):
        raise SkillValidationError(f'The URL of the repository names no host, or no repository on it: {text!r}.')
    if parts.username and not _USER.fullmatch(parts.username):
        raise SkillValidationError(f'The user in the URL of the repository on {host!r} is invalid.')


def _address(url: str, protocol: GitProtocol, host: str, port: int | None, path: str) -> GitAddress:
    name = re.sub(r'[^\w.-]+', '-', path.rstrip('/').rpartition('/')[2]).removesuffix('.git').strip('.-')
    shown = f'[{host}]' if ':' in host else host
    origin = f'{protocol}://{shown}{f":{port}" if port else ""}' if host else ''
    return GitAddress(url=url, protocol=protocol, origin=origin, host=host, name=name[:64] or 'repository')


def _has_drive(text: str) -> bool:
    return os.name == 'nt' and len(text) > 1 and text[0].isalpha() and text[1] == ':'


def check_ref(ref: str | None) -> str | None:
    """Check the name of a branch or tag, or a full commit, against git's rules."""
    if ref is not None and (not ref or len(ref) > 255 or _BAD_REF.search(ref)):
        raise SkillValidationError(f'{ref[:80]!r} is not the name of a branch or tag, nor a full commit.')
    return ref


def check_path(path: str) -> str:
    """Check and normalise a folder in a source; empty for all of it."""
    steps = [step for step in path.split('/') if step not in ('', '.')]
    if path.startswith(('/', '-', '~', ':')) or '..' in steps or re.search(r'[\x00-\x1f\x7f\\]', path):
        raise SkillValidationError(f'{path!r} is not a folder in the source; write it like `skills/pdf`.')
    return '/'.join(steps)


_GITHUB = re.compile(r'(?:github\.com/)?(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<name>[\w.-]*[\w-][\w.-]*)', re.ASCII)
_URL_AND_REF = re.compile(r'(?P<url>(?:[A-Za-z][\w+.-]*://(?:[^/@]*@)?|[^/@:]+@(?=[^/@:]+:))?[^@]+)(?:@(?P<ref>.+))?')
_BROWSED = re.compile(r'(?P<url>https://[^/]+/.+?)/(?:-/)?(?:tree|blob)/(?P<ref>[^/]+)(?:/(?P<path>.+?))?/?')
"""The address of a folder or file as a browser shows it."""

_FOLDER_IN_IT = re.compile(r'(?P<repository>.*?[^:/])//(?P<path>[^@#]*)(?P<ref>[@#].*)?')
"""A folder of the repository after two slashes, as in `https://example.com/skills.git//office/pdf@v1`."""


def github_url(text: str) -> str | None:
    """The URL of the repository that `owner/name` means; `None` if the text has another form."""
    short = _GITHUB.fullmatch(text)
    return f'https://github.com/{short["owner"]}/{short["name"].removesuffix(".git")}' if short else None


def split_address(text: str) -> tuple[str, str | None, str]:
    """The URL, the ref and the path in an address.

    An address is `URL`, `URL@ref` or `URL#ref`, with or without `//folder` after the URL, or what a browser shows for a
    folder on a code host. In place of the URL, `owner/repository` names a repository on GitHub.
    """
    if browsed := _BROWSED.fullmatch(text):
        path = browsed['path'] or ''
        is_file = f'/{path}'.lower().endswith('/skill.md')
        return browsed['url'], browsed['ref'], path[:-8].rstrip('/') if is_file else path
    if text and _is_folder(text):
        return text, None, ''
    path = ''
    if inner := _FOLDER_IN_IT.fullmatch(text):
        text, path = f'{inner["repository"]}{inner["ref"] or ""}', inner['path'].strip('/')
    url, hash_, ref = text.partition('#')
    if match := _URL_AND_REF.fullmatch(url):
        url, ref = (url, ref) if hash_ else (match['url'], match['ref'])
        return url if _is_folder(url) else github_url(url) or url, ref, path
    raise SkillValidationError(f'{text!r} is not the URL of a repository.')


def _is_folder(text: str) -> bool:
    """Whether a text is the path of a folder on this machine."""
    return os.path.isdir(expand_home(text))


def is_local_path(url: str) -> bool:
    """Whether an address is a path on this machine, not a URL nor `user@host:path`."""
    return '://' not in url and not re.match(r'[^/\\]+:', url)
