"""`skills.lock`: which commit and which content each fetched skill has, written down for review and held to.

The file is TOML, sorted and with one line a skill, so that a change of a skill is a change of one line:

```toml
version = 1

[[source]]
kind = "git"
url = "https://github.com/acme/skills.git"
ref = "v1.2"
commit = "3f0c…"

[source.skills]
"skills/pdf" = "sha256:9a1b…"
```
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.types.skill import Skill

from .git.address import is_commit

__all__ = ('LockedSource', 'locked_source', 'prune_lock', 'quote', 'read_lock', 'write_lock')

VERSION = 1
HEADER = '# What each fetched skill was when it was last reviewed. Written by `registry.lock()`; keep it in git.\n'


@dataclass(frozen=True, kw_only=True)
class LockedSource:
    """One source as the lock file has it."""

    kind: str
    """What kind of source it is."""

    url: str
    """Its address."""

    ref: str | None
    """The branch, tag or commit that was asked for; `None` for the default branch."""

    commit: str
    """The commit that was found."""

    skills: Mapping[str, str]
    """The content hash of each skill, by the skill's folder in the source."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from other sources, and where it stands among them."""
        return (self.url, self.ref or '', self.kind)

    def beneath(self, path: str) -> LockedSource:
        """The same source with those of its skills that are in a folder, or are that folder; all of them for `''`."""
        inside = {skill: content for skill, content in self.skills.items() if f'{skill}/'.startswith(f'{path}/')}
        return replace(self, skills=inside) if path else self


def read_lock(path: Path) -> list[LockedSource]:
    """The sources of a lock file; none if it is not there.

    Raises:
        SkillRegistryError: The file cannot be read or is no lock file.
    """
    try:
        return _parse(tomllib.loads(path.read_text('utf-8')))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f'it has no {error}' if isinstance(error, KeyError) else f'{type(error).__name__}: {error}'
        raise SkillRegistryError(
            f'{str(path)!r} cannot be read as a lock file: {reason}. Bring it back as it was, or remove it, look at '
            'the skills and lock them again.'
        ) from None


def locked_source(path: Path, *, kind: str, url: str, ref: str | None) -> LockedSource:
    """What a lock file says about one source.

    Raises:
        SkillRegistryError: It says nothing about it, or cannot be read.
    """
    for source in read_lock(path):
        if (source.kind, source.url, source.ref) == (kind, url, ref):
            return source
    wanted = url if ref is None else f'{url} at {ref!r}'
    raise SkillRegistryError(f'{str(path)!r} does not have {wanted}. Look at its skills, then write it with `lock()`')


def write_lock(path: Path, skills: Iterable[Skill[Any]]) -> Path:
    """Write down the sources of some skills; what the file says about other sources stays.

    Raises:
        SkillRegistryError: The file is there and is no lock file.
    """
    new: dict[tuple[str, str, str], LockedSource] = {}
    for skill in skills:
        source = skill.source
        if source is None or source.commit is None or source.content_hash is None:
            continue
        entry = LockedSource(kind=source.kind, url=source.url, ref=source.ref, commit=source.commit, skills={})
        entry = new.setdefault(entry.key, entry)
        cast(dict[str, str], entry.skills)[source.path] = source.content_hash
    sources = dict(new)
    for old in read_lock(path):
        source = sources.setdefault(old.key, old)
        if source.commit == old.commit:
            # Another registry may have locked other skills of the same commit.
            sources[old.key] = replace(source, skills={**old.skills, **source.skills})
    _write(path, sources.values())
    return path


def prune_lock(path: Path, keep: Callable[[LockedSource, str], bool]) -> None:
    """Take out of a lock file the skills that are not to be kept.

    Args:
        path: The lock file. Without any skill left, it is removed.
        keep: Called with a source and the folder of a skill in it.

    Raises:
        SkillRegistryError: The file cannot be read or is no lock file.
    """
    left: list[LockedSource] = []
    for source in read_lock(path):
        skills = {skill: content for skill, content in source.skills.items() if keep(source, skill)}
        if skills:
            left.append(replace(source, skills=skills))
    if left:
        _write(path, left)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, sources: Iterable[LockedSource]) -> None:
    sections = ''.join(_section(source) for source in sorted(sources, key=lambda source: source.key))
    replace_file(path, f'{HEADER}version = {VERSION}\n{sections}'.encode())


def _parse(document: dict[str, Any]) -> list[LockedSource]:
    if document['version'] != VERSION:
        raise ValueError(f'its version is {document["version"]!r}, and this package knows {VERSION}')
    return [_parse_source(source) for source in document.get('source', [])]


def _parse_source(source: dict[str, Any]) -> LockedSource:
    kind, url, commit, ref = str(source['kind']), str(source['url']), str(source['commit']), source.get('ref')
    if not isinstance(ref, str | None):
        raise TypeError(f'a ref is {ref!r}, which is no text')
    if kind == 'git' and not is_commit(commit):
        raise ValueError(f'{commit!r} is not a full commit')
    skills = {str(path): str(content) for path, content in source['skills'].items()}
    return LockedSource(kind=kind, url=url, ref=ref, commit=commit, skills=skills)


def _section(source: LockedSource) -> str:
    fields = {'kind': source.kind, 'url': source.url, 'ref': source.ref, 'commit': source.commit}
    lines = [f'{name} = {quote(value)}' for name, value in fields.items() if value is not None]
    skills = [f'{quote(skill)} = {quote(source.skills[skill])}' for skill in sorted(source.skills)]
    return '\n'.join(('', '[[source]]', *lines, '', '[source.skills]', *skills, ''))


def quote(text: str) -> str:
    """A text as TOML has it."""
    # A JSON string is a TOML string, but for DEL, which JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace('\x7f', '\\u007f')
