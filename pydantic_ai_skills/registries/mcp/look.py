"""One look at a server: from its list to skills, with what is wrong with them and what a lock file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError, SkillValidationError
from pydantic_ai_skills.parsing.skill_names import shorten_skill_name
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.registries.lockfile import REVIEW, LockedSource, hold_to_lock
from pydantic_ai_skills.types.found_skills import FoundSkills, keep_reachable
from pydantic_ai_skills.types.provenance import SkillProvenance

from .frontmatter import header_of
from .listing import ListedSkill, Listing
from .skill import MCPSkill
from .source import ServerFiles

if TYPE_CHECKING:
    from .registry import MCPSkillsRegistry

MAX_QUALIFIER = 24
"""How much of a server's name is put before the name of a skill."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was found at a server."""

    found: FoundSkills
    server: ServerFiles
    skills: tuple[MCPSkill, ...]
    """The skills under the names that the server gives them."""

    listing: Listing
    others: frozenset[str]
    """The folders of the skills that are not wanted."""

    failure: str | None
    """Why this may not be what the server has now."""

    @property
    def commit(self) -> str:
        """The revision of the list."""
        return self.listing.commit

    @property
    def ttl(self) -> float | None:
        """How many seconds the server says its list is valid; `None` if it does not say."""
        return self.listing.ttl


def look(
    registry: MCPSkillsRegistry,
    server: ServerFiles,
    lock: LockedSource | None,
    *,
    validate: bool,
    name: str | None,
    last: Look | None,
) -> Look:
    """Ask the server what it has, and make skills of it. Skills that have not changed stay the same objects.

    Raises:
        SkillRegistryRefusedError: The server does not accept the credentials.
        SkillRegistryError: It cannot be asked, and nothing is known of it from before.
    """
    now, failure = _ask(server)
    listing = (lock and server.kept.listing(lock.commit)) or now
    about = SkillProvenance(
        kind=registry.kind,
        url=registry.url,
        commit=listing.commit,
        trusted=registry.trusted,
        qualifier=name or _qualifier(listing.server),
    )
    made = _Maker(registry, server, about, validate, last)
    skills = [skill for listed in listing.skills if (skill := made.skill(listed)) is not None]
    only = registry.only
    wanted = [skill for skill in skills if only is None or skill.listed.frontmatter['name'] in only]
    # By their folders: to compare skills by value would read their files.
    others = frozenset(skill.listed.folder for skill in skills) - {skill.listed.folder for skill in wanted}
    problems = [*listing.problems, *made.problems, *_missing(registry, listing), *_about(server, listing, failure)]
    (reachable,), renamed = keep_reachable([FoundSkills(tuple(wanted), tuple(problems))])
    found = reachable._replace(problems=(*problems, *renamed))
    if lock is not None:
        moved = now.commit if now.commit != lock.commit else None
        changes = dict(_changes(wanted, lock))
        found = hold_to_lock(found, lock.without(others), changes, place=_place(server, listing), moved=moved)
    if requirements := registry.requirements():
        found = requirements.hold(found, {}, place=_place(server, listing))
    if last is not None and found.is_same(last.found):
        found = last.found
    return Look(found=found, server=server, skills=tuple(wanted), listing=listing, others=others, failure=failure)


class _Maker:
    """Makes skills of the entries of a list, or takes those of the last look."""

    def __init__(
        self,
        registry: MCPSkillsRegistry,
        server: ServerFiles,
        about: SkillProvenance,
        validate: bool,
        last: Look | None,
    ) -> None:
        self.problems: list[SkillProblem] = []
        self._registry, self._server, self._about, self._validate = registry, server, about, validate
        # What was fetched with other credentials is not used with these.
        same = last is not None and last.server.kept.store.folder == server.kept.store.folder
        self._known: Mapping[str, MCPSkill] = {each.listed.uri: each for each in last.skills} if last and same else {}

    def skill(self, listed: ListedSkill) -> MCPSkill | None:
        """The skill of an entry; `None` if its frontmatter makes it unusable."""
        place = f'{self._server.url} {listed.folder}'
        header, problems = header_of(
            listed.frontmatter, place=place, folder_name=listed.folder_name, validate=self._validate
        )
        self.problems += problems
        if header is None:
            return None
        if listed.files is None:
            message = (
                'The server does not list its files with digests, so its scripts are not run and it is not locked.'
            )
            self.problems.append(problem('skill-dynamic', place, message))
        source = replace(self._about, path=listed.folder, content_hash=listed.content_hash)
        known = self._known.get(listed.uri)
        if known is not None and known.listed == listed and known.source is not None:
            # The commit is that of the whole list, which may change while the skill does not.
            known.source = source
            return known
        return MCPSkill.of(listed, header, self._server, source, self._registry.script_executor)


def _ask(server: ServerFiles) -> tuple[Listing, str | None]:
    """What the server lists now; if it cannot be asked, what it listed last, and why."""
    store = server.kept.store
    store.check_owner()
    was_refused = store.is_refused
    try:
        listing = server.list()
    except SkillRegistryRefusedError:
        store.note_answer(refused=True)
        raise
    except SkillRegistryError as error:
        if was_refused:
            message = f'{server.url} refused the credentials when it was last asked, and now: {error}'
            raise SkillRegistryRefusedError(message) from None
        kept = server.kept.last_listing()
        if kept is None:
            raise
        return kept, None if server.offline else str(error)
    store.note_answer(refused=False)
    server.kept.keep_listing(listing)
    return listing, None


def _qualifier(server: str) -> str:
    """What a server calls itself, as the beginning of a skill's name."""
    try:
        return shorten_skill_name(server)[:MAX_QUALIFIER].rstrip('-')
    except SkillValidationError:
        return 'mcp'


def _missing(registry: MCPSkillsRegistry, listing: Listing) -> Iterator[SkillProblem]:
    names = [str(skill.frontmatter['name']) for skill in listing.skills]
    for name in registry.only or ():
        if name not in names:
            message = f'No skill {name!r} at {registry.url}. It has: {", ".join(names[:20]) or "none"}.'
            yield problem('skill-missing', repr(registry), message)


def _about(server: ServerFiles, listing: Listing, failure: str | None) -> Iterator[SkillProblem]:
    if failure is not None:
        message = f'{failure.rstrip(".")}. Its list of {len(listing.skills)} skills from before is kept.'
        yield problem('source-failed', server.url, message)


def _changes(skills: list[MCPSkill], lock: LockedSource) -> Iterator[tuple[str, str]]:
    """Why skills are not what the lock pins, by their folder."""
    for skill in skills:
        folder, pin = skill.listed.folder, lock.skills.get(skill.listed.folder)
        if skill.listed.content_hash is None:
            yield folder, 'has files without digests, which cannot be locked, so it is skipped.'
        elif pin is None:
            yield folder, f'is not in the lock file, so it is skipped. {REVIEW}'
        elif pin != skill.listed.content_hash:
            yield folder, f'has changed since it was locked, so it is skipped. {REVIEW}'


def _place(server: ServerFiles, listing: Listing) -> str:
    return f'{server.url}@{listing.commit[:12]}'
