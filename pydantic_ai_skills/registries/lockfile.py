"""`skills.lock` pins the commit and content of each fetched skill, and holds what is known about each content.

The file is sorted TOML with one line per skill, so that a changed skill is a changed line; `facts_toml.py` shows the
part about contents:

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

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.ownership import strangers_in
from pydantic_ai_skills.filesystem.safe_open import read_regular
from pydantic_ai_skills.parsing.toml_reader import load_toml
from pydantic_ai_skills.problems import problem
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.ledger import SkillFacts
from pydantic_ai_skills.types.skill import Skill

from .facts_toml import format_facts, parse_facts, quote
from .manifest import is_revision

VERSIONS = (1, 2)
"""A file without facts has version 1, which the first release of this package reads too."""

MAX_LOCK_BYTES = 2 * 1024 * 1024
"""A larger lock file is not read: it may come with any project that somebody checks out."""

REVIEW = 'Review the change, then write the lock file again with `lock()`.'
HEADER = '# What each fetched skill was when it was last reviewed. Written by `registry.lock()`; keep it in git.\n'


@dataclass(frozen=True, kw_only=True)
class LockedSource:
    """One source in the lock file."""

    kind: str
    """The kind of source, such as `'git'`."""

    url: str
    ref: str | None
    """The branch, tag or commit that was requested; `None` for the default branch."""

    commit: str
    """The commit that was found."""

    skills: Mapping[str, str]
    """The content hash of each skill, by the skill's folder in the source."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identifies the source, and decides its place in the file."""
        return (self.url, self.ref or '', self.kind)

    def beneath(self, path: str) -> LockedSource:
        """The same source with only the skills at or below a folder; all of them for `''`."""
        inside = {skill: content for skill, content in self.skills.items() if f'{skill}/'.startswith(f'{path}/')}
        return replace(self, skills=inside) if path else self

    def without(self, folders: Collection[str]) -> LockedSource:
        """The same source without the skills in these folders."""
        return replace(self, skills={skill: pin for skill, pin in self.skills.items() if skill not in folders})


@dataclass(frozen=True, kw_only=True)
class LockDocument:
    """What a lock file says."""

    sources: tuple[LockedSource, ...] = ()
    facts: Mapping[str, SkillFacts] = field(default_factory=dict[str, SkillFacts])
    """What is known about each content, by content hash."""

    @property
    def pinned(self) -> frozenset[str]:
        """The content hashes of all locked skills."""
        return frozenset(content for source in self.sources for content in source.skills.values())

    def with_sources(self, sources: Iterable[LockedSource]) -> LockDocument:
        """The document with other sources, and without facts about content that they no longer pin."""
        new = replace(self, sources=tuple(sources))
        gone = self.pinned - new.pinned
        return replace(new, facts={content: facts for content, facts in self.facts.items() if content not in gone})


def read_document(path: Path) -> LockDocument:
    """Read a lock file. A missing one counts as empty; one that others can write to is refused."""
    strangers = strangers_in(path, above=False)
    if strangers is not None:
        way_out = 'Make it yours, and writable for you alone (chmod go-w)'
        raise SkillRegistryError(f'The lock file {str(path)!r} is not used: {strangers}. {way_out}')
    try:
        return _parse(load_toml(read_regular(path, MAX_LOCK_BYTES).decode()))
    except FileNotFoundError:
        return LockDocument()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f'it has no {error}' if isinstance(error, KeyError) else f'{type(error).__name__}: {error}'
        way_out = 'Restore it, or delete it, review the skills and lock them again.'
        raise SkillRegistryError(f'{str(path)!r} cannot be read as a lock file: {reason}. {way_out}') from None


def write_document(path: Path, document: LockDocument) -> None:
    """Write a lock file."""
    sections = ''.join(_section(source) for source in sorted(document.sources, key=lambda source: source.key))
    version = VERSIONS[bool(document.facts)]
    replace_file(path, f'{HEADER}version = {version}\n{sections}{format_facts(document.facts)}'.encode())


def read_lock(path: Path) -> list[LockedSource]:
    """Read the sources of a lock file. A missing one has none; one that others can write to is refused."""
    return list(read_document(path).sources)


def locked_source(path: Path, *, kind: str, url: str, ref: str | None) -> LockedSource:
    """Find one source in a lock file, which must have it."""
    for source in read_lock(path):
        if (source.kind, source.url, source.ref) == (kind, url, ref):
            return source
    wanted = url if ref is None else f'{url} at {ref!r}'
    raise SkillRegistryError(f'{str(path)!r} does not have {wanted}. Review its skills, then add it with `lock()`')


def write_lock(path: Path, skills: Iterable[Skill[Any]]) -> Path:
    """Record the sources of skills and who signed them; other sources in the file stay."""
    new: dict[tuple[str, str, str], LockedSource] = {}
    signed: dict[str, SkillFacts] = {}
    document = read_document(path)
    for skill in skills:
        source = skill.source
        if source is None or source.commit is None or source.content_hash is None:
            continue
        entry = LockedSource(kind=source.kind, url=source.url, ref=source.ref, commit=source.commit, skills={})
        entry = new.setdefault(entry.key, entry)
        cast(dict[str, str], entry.skills)[source.path] = source.content_hash
        known = document.facts.get(source.content_hash)
        if source.signed_by is not None or (known and known.signed_by):
            known = known or SkillFacts(name=skill.name)
            signed[source.content_hash] = replace(known, signed_by=source.signed_by)
    for old in document.sources:
        source = new.setdefault(old.key, old)
        if source.commit == old.commit:
            # Another registry may have locked other skills of the same commit.
            new[old.key] = replace(source, skills={**old.skills, **source.skills})
    document = document.with_sources(new.values())
    write_document(path, replace(document, facts={**document.facts, **signed}))
    return path


def prune_lock(path: Path, keep: Callable[[LockedSource, str], bool]) -> None:
    """Keep only the skills in a lock file for which `keep(source, folder)` is true. An empty file is deleted."""
    left: list[LockedSource] = []
    document = read_document(path)
    for source in document.sources:
        skills = {skill: content for skill, content in source.skills.items() if keep(source, skill)}
        if skills:
            left.append(replace(source, skills=skills))
    document = document.with_sources(left)
    if left or document.facts:
        write_document(path, document)
    else:
        path.unlink(missing_ok=True)


def hold_to_lock(
    found: FoundSkills, lock: LockedSource, changes: Mapping[str, str], *, place: str, moved: str | None
) -> FoundSkills:
    """Keep only the skills that a lock pins, and report every difference at `place`.

    `changes` says, by the skill's folder, why a skill is not what the lock pins. `moved` is the revision the ref has
    now, if that is not the locked one.
    """
    good: list[Skill[Any]] = []
    messages: list[str] = []
    if moved is not None:
        ref = lock.ref or ('The default branch' if lock.kind == 'git' else lock.url)
        change = f'{ref} is {moved[:12]} now; it was {lock.commit[:12]} when it was locked, which is used'
        messages.append(f'{change}. {REVIEW}')
    gone = set(lock.skills)
    for skill in found.skills:
        assert skill.source is not None
        folder = skill.source.path
        gone.discard(folder)
        if folder in changes:
            messages.append(f'The skill {skill.name!r} in {folder!r} {changes[folder]}')
        else:
            good.append(skill)
    messages += [f'The skill in {path!r} is in the lock file but no longer exists. {REVIEW}' for path in sorted(gone)]
    problems = (problem('lock-mismatch', place, message) for message in messages)
    return FoundSkills(tuple(good), (*found.problems, *problems))


def _parse(document: dict[str, Any]) -> LockDocument:
    if document['version'] not in VERSIONS:
        raise ValueError(f'its version is {document["version"]!r}, and this package knows 1 and 2')
    sources = tuple(_parse_source(source) for source in document.get('source', []))
    return LockDocument(sources=sources, facts=parse_facts(document.get('content', ())))


def _parse_source(source: dict[str, Any]) -> LockedSource:
    kind, url, commit, ref = str(source['kind']), str(source['url']), str(source['commit']), source.get('ref')
    if not isinstance(ref, str | None):
        raise TypeError(f'a ref is {ref!r}, which is not a string')
    if kind == 'git' and not is_revision(commit):
        raise ValueError(f'{commit!r} is not a full commit')
    skills = {str(path): str(content) for path, content in source['skills'].items()}
    return LockedSource(kind=kind, url=url, ref=ref, commit=commit, skills=skills)


def _section(source: LockedSource) -> str:
    fields = {'kind': source.kind, 'url': source.url, 'ref': source.ref, 'commit': source.commit}
    lines = [f'{name} = {quote(value)}' for name, value in fields.items() if value is not None]
    skills = [f'{quote(skill)} = {quote(source.skills[skill])}' for skill in sorted(source.skills)]
    return '\n'.join(('', '[[source]]', *lines, '', '[source.skills]', *skills, ''))
