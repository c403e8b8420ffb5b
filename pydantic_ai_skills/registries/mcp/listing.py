"""What a server lists, checked: each skill with its frontmatter and the address, digest and size of its files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from pydantic_ai_skills.filesystem.pinned import PinnedFile, content_hash
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.registries.manifest import is_usable_path

from .frontmatter import check_frontmatter

MAX_FILES = 512
"""How many files a skill may have."""

MAX_BYTES = 16 * 1024 * 1024
"""How many bytes they may have together."""

MAX_URI_CHARS = 2_048
MAX_NAME_CHARS = 100
"""How much of a server's name is kept."""

MAX_PROBLEMS = 20
"""How many entries that are left out are reported one by one."""

SKILL_FILE = 'SKILL.md'
_DIGEST = re.compile(r'sha256:([0-9a-f]{64})')
_PLAIN_PATH = re.compile(r'(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*').fullmatch
_FORMAT = 1


class ListedFile(NamedTuple):
    """A file of a skill."""

    uri: str
    digest: str
    """SHA-256 of its bytes, in hexadecimal digits."""

    size: int


@dataclass(frozen=True, kw_only=True)
class ListedSkill:
    """A skill that a server lists. Its identity is the server and this URI, never its name."""

    uri: str
    """The URI of its `SKILL.md`."""

    frontmatter: Mapping[str, Any]
    files: Mapping[str, ListedFile] | None
    """Its files by their path in the skill; `None` if the server does not list them."""

    @property
    def folder(self) -> str:
        """The URI of its folder."""
        return self.uri.removesuffix(f'/{SKILL_FILE}')

    @property
    def folder_name(self) -> str:
        """The last part of that URI, which has to be the name of the skill."""
        return unquote(self.folder.rpartition('/')[2])

    @cached_property
    def content_hash(self) -> str | None:
        """The hash that its files have in the store and in the lock file; `None` without digests."""
        if self.files is None:
            return None
        files = sorted(self.files.items())
        return content_hash({path: PinnedFile(file.size, file.digest, False) for path, file in files})

    def as_json(self) -> dict[str, Any]:
        """The entry as a server lists it."""
        files = self.files and [[file.uri, f'sha256:{file.digest}', file.size] for file in self.files.values()]
        named = files and [dict(zip(('uri', 'digest', 'size'), file, strict=True)) for file in files]
        return {'uri': self.uri, 'frontmatter': self.frontmatter, 'resources': named or 'dynamic'}


@dataclass(frozen=True, kw_only=True)
class Listing:
    """All that a server lists."""

    server: str
    """What the server calls itself."""

    skills: tuple[ListedSkill, ...]
    problems: tuple[SkillProblem, ...] = ()
    """The entries that are left out."""

    ttl: float | None = None
    """How many seconds the server says the listing is valid; `None` if it does not say."""

    @cached_property
    def commit(self) -> str:
        """SHA-256 of the address, digest and size of every file."""
        files = sorted(file for skill in self.skills for file in (skill.files or {}).values())
        lines = (f'{file.uri}\0{file.digest}\0{file.size}\n' for file in files)
        return hashlib.sha256(''.join(lines).encode('utf-8', 'surrogateescape')).hexdigest()

    def write(self) -> bytes:
        """The listing as it is kept in the store."""
        skills = [skill.as_json() for skill in self.skills]
        return json.dumps({'version': _FORMAT, 'server': self.server, 'skills': skills}).encode()

    @classmethod
    def read(cls, data: bytes, place: str) -> Listing | None:
        """A listing that was kept; `None` if it is damaged or of another version."""
        try:
            kept = json.loads(data)
            if kept['version'] != _FORMAT:
                return None
            return read_listing(kept['skills'], server=str(kept['server']), place=place)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


def read_listing(entries: list[Any], *, server: str, place: str, ttl: float | None = None) -> Listing:
    """Check the entries of a listing one by one; one that is not valid does not hide the others."""
    skills: dict[str, ListedSkill] = {}
    problems: list[SkillProblem] = []
    for entry in entries:
        try:
            skill = _read_skill(entry)
            if skill.uri in skills:
                raise ValueError('another entry has the same uri')
            skills[skill.uri] = skill
        except ValueError as error:
            uri = cast('dict[str, Any]', entry).get('uri') if isinstance(entry, dict) else None
            problems.append(
                problem('entry-invalid', f'{place} {str(uri)[:MAX_URI_CHARS]}', f'It is left out: {error}.')
            )
    if len(problems) > MAX_PROBLEMS:
        message = f'{len(problems) - MAX_PROBLEMS} more entries are left out because they are not valid.'
        problems = [*problems[:MAX_PROBLEMS], problem('entry-invalid', place, message)]
    name = ' '.join(server.split())[:MAX_NAME_CHARS]
    return Listing(server=name, skills=tuple(skills.values()), problems=tuple(problems), ttl=ttl)


def with_problem(listing: Listing, found: SkillProblem) -> Listing:
    """The same listing with one more problem."""
    return replace(listing, problems=(*listing.problems, found))


def _read_skill(entry: Any) -> ListedSkill:
    if not isinstance(entry, dict):
        raise ValueError('it is not a mapping')
    given = cast('dict[str, Any]', entry)
    uri = given.get('uri')
    steps = _steps(uri)
    if len(steps) < 2 or steps[-1] != SKILL_FILE or not cast(str, uri).endswith(f'/{SKILL_FILE}'):
        raise ValueError(f'its uri does not name the {SKILL_FILE} in a folder')
    frontmatter = check_frontmatter(given.get('frontmatter'))
    if frontmatter.get('name') != steps[-2]:
        raise ValueError(f'its uri is not that of a skill called {str(frontmatter.get("name"))[:64]!r}')
    resources = given.get('resources')
    if resources != 'dynamic' and not isinstance(resources, list):
        raise ValueError("its resources are neither a list nor 'dynamic'")
    skill = ListedSkill(uri=cast(str, uri), frontmatter=frontmatter, files=None)
    return skill if resources == 'dynamic' else replace(skill, files=_read_files(cast('list[Any]', resources), skill))


def _read_files(resources: list[Any], skill: ListedSkill) -> dict[str, ListedFile]:
    if len(resources) > MAX_FILES:
        raise ValueError(f'it has {len(resources):,} files; at most {MAX_FILES} are allowed')
    files: dict[str, ListedFile] = {}
    for resource in resources:
        path, file = _read_file(resource, skill)
        if path in files:
            raise ValueError(f'it lists {path!r} twice')
        files[path] = file
    if SKILL_FILE not in files:
        raise ValueError(f'it does not list its {SKILL_FILE}')
    size = sum(file.size for file in files.values())
    if size > MAX_BYTES:
        raise ValueError(f'its files have {size:,} bytes; at most {MAX_BYTES:,} are allowed')
    folders = {path[: end.start()] for path in files for end in re.finditer('/', path)}
    if not folders.isdisjoint(files):
        raise ValueError('one of its files is also a folder')
    return files


def _read_file(resource: Any, skill: ListedSkill) -> tuple[str, ListedFile]:
    if not isinstance(resource, dict):
        raise ValueError('one of its files is not a mapping')
    given = cast('dict[str, Any]', resource)
    uri, size = given.get('uri'), given.get('size')
    path = path_in(skill, uri)
    digest = _DIGEST.fullmatch(str(given.get('digest')))
    if digest is None:
        raise ValueError(f'the digest of {path!r} is not a SHA-256')
    if isinstance(size, float) and size.is_integer():
        size = int(size)
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ValueError(f'the size of {path!r} is not a number of bytes')
    return path, ListedFile(cast(str, uri), digest[1], size)


def path_in(skill: ListedSkill, uri: Any) -> str:
    """The path of a file in a skill.

    Raises:
        ValueError: It is not in the skill's folder, or its name cannot be used.
    """
    if not isinstance(uri, str) or not uri.startswith(f'{skill.folder}/'):
        raise ValueError('one of its files is outside its folder')
    path = uri[len(skill.folder) + 1 :]
    if len(uri) <= MAX_URI_CHARS and _PLAIN_PATH(path):
        return path
    _steps(uri)
    path = unquote(path)
    if not is_usable_path(path):
        raise ValueError(f'it has a file with the name {path[:200]!r}, which cannot be used')
    return path


def _steps(uri: Any) -> list[str]:
    """The decoded parts of a URI: its host, and the steps of its path."""
    if not isinstance(uri, str) or len(uri) > MAX_URI_CHARS or not (uri.isascii() and uri.isprintable()):
        raise ValueError(f'a uri is not a text of at most {MAX_URI_CHARS} printable characters')
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise ValueError('a uri cannot be read') from None
    if not parts.scheme or '?' in uri or '#' in uri or '@' in parts.netloc or ' ' in uri:
        raise ValueError('a uri has no scheme, or more than a host and a path')
    steps = [unquote(step) for step in (parts.netloc, *parts.path.removeprefix('/').split('/'))]
    for step in steps[1:] if not parts.netloc else steps:
        if step in ('', '.', '..') or not step.isprintable() or any(each in step for each in '/\\'):
            raise ValueError('a uri has a step that cannot be used')
    return steps
