"""The index of skills that a website publishes: versions 0.2.0 and 0.1.0 of the discovery draft."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast
from urllib.parse import quote, urljoin

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.parsing.findings import shown
from pydantic_ai_skills.parsing.skill_names import check_skill_name
from pydantic_ai_skills.registries.archive.entry import ArchiveEntry, ArchiveError, checked_path
from pydantic_ai_skills.registries.manifest import PartProblem
from pydantic_ai_skills.registries.web.address import WebAddress, parse_web_address

SCHEMA = 'https://schemas.agentskills.io/discovery/0.2.0/schema.json'
INDEXES = ('/.well-known/agent-skills/index.json', '/.well-known/skills/index.json')
"""Where an index is, below a site: of version 0.2.0, and of 0.1.0."""

MAX_INDEX_BYTES = 4 * 1024 * 1024
MAX_SKILLS = 5_000
"""How many skills an index may list."""

MAX_SKILL_FILES = 512
"""How many files a skill may have in an index of version 0.1.0."""

_DIGEST = re.compile(r'sha256:([0-9a-f]{64})')
_TYPES = ('skill-md', 'archive')


class ListedFile(NamedTuple):
    """A file that is downloaded for a skill."""

    path: str
    """Its path in the skill; empty for an archive."""

    address: WebAddress
    digest: str
    """Its SHA-256 in hexadecimal digits; empty if the index has none."""


@dataclass(frozen=True, kw_only=True)
class ListedSkill:
    """A skill in an index."""

    name: str
    type: str
    """`'skill-md'` for a `SKILL.md` alone, `'archive'`, or `'files'` for a list of files."""

    files: tuple[ListedFile, ...]
    digest: str = ''
    """Identifies its content; empty if the index does not."""

    @property
    def identity(self) -> tuple[str, ...]:
        """All that the index says about its content."""
        return (self.name, self.type, *(f'{file.path} {file.address.url}' for file in self.files), self.digest)


@dataclass(frozen=True, kw_only=True)
class SkillIndex:
    """What a website publishes."""

    skills: tuple[ListedSkill, ...]
    notes: tuple[PartProblem, ...]
    """What is wrong with the entries that are left out."""

    def only(self, names: Collection[str]) -> SkillIndex:
        """The same index with these skills only, and with a note of each that is missing."""
        there = [skill.name for skill in self.skills]
        known = ', '.join(there) or 'none'
        about = {note.part for note in self.notes}
        missing = [
            PartProblem('skill-missing', name, f'The index has no skill {name!r}. It has: {known}.')
            for name in names
            if name not in there and name not in about
        ]
        skills = tuple(skill for skill in self.skills if skill.name in names)
        return SkillIndex(skills=skills, notes=(*(note for note in self.notes if note.part in names), *missing))


def parse_index(data: bytes, base: WebAddress, allowed: Collection[str]) -> SkillIndex:
    """Parse the index that was found at an address. An entry that cannot be used becomes a note.

    Raises:
        SkillRegistryError: It is not an index of a version that is known.
    """
    entries, read = _entries(data, base)
    skills: dict[str, ListedSkill] = {}
    notes: list[PartProblem] = []
    for number, entry in enumerate(entries):
        place = f'skills[{number}]'
        try:
            fields = _mapping(entry)
            place = check_skill_name(_text(fields, 'name'))
            if place in skills:
                raise SkillValidationError('The index lists it twice; the first entry is used.')
            skills[place] = read(place, fields, base, allowed)
        except (SkillValidationError, ArchiveError) as error:
            notes.append(PartProblem('skill-unavailable', place, str(error)))
    return SkillIndex(skills=tuple(skills.values()), notes=tuple(notes))


_Reader = Callable[[str, dict[str, object], WebAddress, Collection[str]], ListedSkill]
"""Reads an entry of an index: its name, its fields, the address of the index, and the protocols that are allowed."""


def _entries(data: bytes, base: WebAddress) -> tuple[Sequence[object], _Reader]:
    try:
        index: object = json.loads(data)
    except (ValueError, RecursionError):
        raise SkillRegistryError(f'{base.shown} is not an index of skills: it is not valid JSON') from None
    fields = cast('dict[str, object]', index) if isinstance(index, dict) else {}
    schema, entries = fields.get('$schema'), fields.get('skills')
    if schema not in (None, SCHEMA):
        known = f'this package knows {SCHEMA!r}'
        raise SkillRegistryError(
            f'{base.shown} is an index of a version that is not known: {shown(str(schema))}; {known}'
        )
    if not isinstance(entries, list):
        raise SkillRegistryError(f"{base.shown} is not an index of skills: it has no list 'skills'")
    listed = cast('list[object]', entries)
    if len(listed) > MAX_SKILLS:
        raise SkillRegistryError(f'{base.shown} lists {len(listed):,} skills, at most {MAX_SKILLS:,} are read')
    return listed, _read_old if schema is None else _read


def _read(name: str, fields: dict[str, object], base: WebAddress, allowed: Collection[str]) -> ListedSkill:
    kind, digest = _text(fields, 'type'), _digest(fields)
    if kind not in _TYPES:
        raise SkillValidationError(f'Its type {shown(kind)} is not known; skill-md and archive are.')
    path = 'SKILL.md' if kind == 'skill-md' else ''
    file = ListedFile(path, _resolve(_text(fields, 'url'), base, allowed), digest)
    return ListedSkill(name=name, type=kind, files=(file,), digest=digest)


def _read_old(name: str, fields: dict[str, object], base: WebAddress, allowed: Collection[str]) -> ListedSkill:
    given = fields.get('files')
    # An earlier draft of 0.2.0 has objects with a digest in place of the paths.
    listed = cast('list[object]', given) if isinstance(given, list) else []
    entries: list[dict[str, object]] = [{'path': each} if isinstance(each, str) else _mapping(each) for each in listed]
    digests = {_path(entry): _digest(entry) if 'digest' in entry else '' for entry in entries}
    if not 0 < len(entries) <= MAX_SKILL_FILES or len(digests) < len(entries) or 'SKILL.md' not in digests:
        message = f"Its 'files' are not a list of at most {MAX_SKILL_FILES} paths, each once, with SKILL.md."
        raise SkillValidationError(message)
    files = tuple(
        ListedFile(path, _resolve(f'{quote(name)}/{quote(path)}', base, allowed), digests[path])
        for path in sorted(digests)
    )
    return ListedSkill(
        name=name, type='files', files=files, digest=digest_of_files(digests) if all(digests.values()) else ''
    )


def digest_of_files(digests: Mapping[str, str]) -> str:
    """Identifies the content of a skill by the SHA-256 of each of its files."""
    lines = (f'{path}\0{digests[path]}\n' for path in sorted(digests))
    return hashlib.sha256(''.join(lines).encode()).hexdigest()


def _digest(fields: dict[str, object]) -> str:
    match = _DIGEST.fullmatch(_text(fields, 'digest').lower())
    if match is None:
        raise SkillValidationError("Its digest is not 'sha256:' and 64 hexadecimal digits.")
    return match[1]


def _path(fields: dict[str, object]) -> str:
    path = checked_path(_text(fields, 'path'))
    if not path or not ArchiveEntry(path=path, kind='file').is_usable:
        raise SkillValidationError("One of its 'files' is not a path that can be used.")
    return path


def _resolve(url: str, base: WebAddress, allowed: Collection[str]) -> WebAddress:
    """The address that a URL in an index stands for. On another host, it has to be an https one."""
    try:
        whole = urljoin(base.url, url)
    except ValueError:
        raise SkillValidationError('Its url cannot be parsed.') from None
    address = parse_web_address(whole.partition('#')[0], {*allowed, 'https'})
    if address.origin != base.origin and address.scheme != 'https':
        raise SkillValidationError('Its url is on another host, and does not begin with https://.')
    return address


def _mapping(entry: object) -> dict[str, object]:
    if not isinstance(entry, dict):
        raise SkillValidationError('The entry is not an object.')
    return cast('dict[str, object]', entry)


def _text(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise SkillValidationError(f'Its {name!r} is missing, or not a text.')
    return value
