"""Reads `skills-lock.json`, the file in which the npm installer `skills` records what it installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import read_regular

from .pyproject_toml import ProjectSource

MAX_BYTES = 2 * 1024 * 1024
VERSION = 1
KINDS = {'github': '', 'git': 'git+', 'gitlab': 'git+', 'local': '', 'well-known': 'well-known+'}
"""What to write before the `source` of an entry to make it an address, by its `sourceType`."""


class InstalledSkills(NamedTuple):
    """What a `skills-lock.json` means for a project."""

    sources: tuple[ProjectSource, ...]
    """The sources, each with the names of the skills that were installed from it."""

    left: tuple[str, ...]
    """For each entry that gives no source, why."""


class _Entry(BaseModel):
    """One skill. The file has more keys, none of which pins a commit."""

    source: str
    sourceType: str
    ref: str | None = None


class _LockFile(BaseModel):
    version: int
    skills: dict[str, Any]


def read_skills_lock_json(file: str | Path) -> InstalledSkills:
    """Read the sources of a `skills-lock.json`.

    Raises:
        SkillValidationError: It cannot be read, or is not such a file.
    """
    try:
        found = _LockFile.model_validate_json(read_regular(Path(file), MAX_BYTES, follow_links=True))
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else 'it is not a skills-lock.json'
        raise SkillValidationError(f'{str(file)!r} cannot be read: {why}.') from None
    if found.version != VERSION:
        raise SkillValidationError(f'{str(file)!r} has the version {found.version}; this package knows {VERSION}.')
    sources: dict[ProjectSource, list[str]] = {}
    left: list[str] = []
    for name, entry in found.skills.items():
        meant = _source_of(name, entry)
        if isinstance(meant, str):
            left.append(meant)
        else:
            sources.setdefault(meant, []).append(name)
    chosen = (source.model_copy(update={'skills': tuple(names)}) for source, names in sources.items())
    return InstalledSkills(tuple(chosen), tuple(left))


def _source_of(name: str, given: object) -> ProjectSource | str:
    """The source of an entry, or why it has none that is known here."""
    try:
        entry = _Entry.model_validate(given)
        if entry.sourceType not in KINDS:
            known = ', '.join(KINDS)
            return f'The skill {name!r} is from a source of the type {entry.sourceType!r}; known are {known}.'
        source = ProjectSource.parse(f'{KINDS[entry.sourceType]}{entry.source}')
    except ValidationError:
        return f'The entry of the skill {name!r} does not say where the skill is from.'
    except SkillValidationError as error:
        return f'The skill {name!r} is not taken over. {error}'
    allow = cast('Any', ('file',) if source.is_local else ())
    return source.model_copy(update={'ref': entry.ref or source.ref, 'allow': allow})
