"""A marketplace as an upstream: its list of plugins says what to fetch from which repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError, SkillValidationError
from pydantic_ai_skills.registries.git.fetch import Fetch, new_repository, resolve
from pydantic_ai_skills.registries.git.process import Git
from pydantic_ai_skills.registries.manifest import FileSink, is_revision
from pydantic_ai_skills.registries.progress import FetchProgress, ProgressCallback, until_it_fails
from pydantic_ai_skills.registries.upstream import Deadline, FetchSession, Upstream

from .catalogue import Catalogue, read_catalogue
from .merge import merge
from .parts import RECORDS, Part, failed_part, restore
from .plan import MAX_MESSAGE, Plan, Plugin, commit_of, make_plan
from .sources import Reach
from .visit import Visit

MAX_VISITS = 8
"""How many repositories are asked or fetched from at a time."""

CATALOGUE = f'{RECORDS}.json'
"""The file with what the marketplace lists in this revision."""

ResultT = TypeVar('ResultT')


@dataclass(frozen=True, kw_only=True)
class MarketplaceUpstream(Upstream):
    """A repository that lists plugins or is one, and the plugins wanted from it."""

    git: Git
    ref: str | None
    plugins: tuple[str, ...] | None
    """The names of the wanted plugins; `None` for all."""

    allowed: frozenset[str]
    """How repositories on other hosts may be reached."""

    progress: ProgressCallback | None = None
    _plans: dict[str, Plan] = field(default_factory=dict[str, Plan], compare=False, repr=False)
    """The plans made at this visit, by their revisions."""

    @property
    def url(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it is never assigned
        """The address of the marketplace's repository."""
        return self.git.address.url

    @property
    def pinned(self) -> str | None:
        """Nothing: even at a commit, a marketplace may have plugins that move."""
        return None

    @property
    def owner(self) -> str:
        """Identifies the token."""
        return self.git.owner

    def fixed(self) -> MarketplaceUpstream:
        """The same marketplace with the token it has now, and nothing planned yet."""
        secret = self.git.secret
        return replace(self, git=replace(self.git, secret=secret.fixed() if secret else None), _plans={})

    def ask(self, session: FetchSession) -> str:
        """Ask for the commits of the marketplace and of the plugins that it does not pin."""
        commit = self.ref if is_revision(self.ref) else None
        if commit is None or session.store.is_refused:
            repository = new_repository(session.new_folder())
            asked = resolve(self.git, None if commit else self.ref, repository=repository, deadline=session.deadline)
            commit = commit or asked
        return self._plan(commit, session).revision

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Fetch the skills of the plugins, each into a folder of its name."""
        plan = self._plans.get(revision) or self._plan(commit_of(revision), session)
        if plan.revision != revision:
            raise SkillRegistryError(
                f'{self.url} does not pin all its plugins, and they have moved on from {revision[:12]}'
            )
        catalogue = self._catalogue(plan.commit, session)
        sink.write(CATALOGUE, catalogue.key, catalogue.record(), executable=False)
        parts = list(self._parts(plan, session))
        return merge(parts, plan, sink, max_bytes=self.git.max_bytes)

    # --- Planning -------------------------------------------------------------------------------------------------

    @property
    def _reach(self) -> Reach:
        return Reach(marketplace=self.git, allowed=self.allowed)

    def _plan(self, commit: str, session: FetchSession) -> Plan:
        try:
            marketplace = self._catalogue(commit, session).marketplace()
        except SkillValidationError as error:
            raise SkillRegistryError(f'{self.url} at {commit[:12]}: {error}') from None
        plan = make_plan(marketplace, commit, self.plugins, self._reach)
        moving = [plugin for plugin in plan.plugins if not plugin.is_fixed]
        # A server that does not answer must leave time for the others.
        deadline = Deadline(session.deadline.left / 2)
        jobs = [self._resolving(plugin, session.new_folder(), deadline) for plugin in moving]
        resolved = {plugin.name: plugin for plugin in self._work('Asking for plugins', jobs)}
        plan = plan.resolved(tuple(resolved.get(plugin.name, plugin) for plugin in plan.plugins))
        self._plans[plan.revision] = plan
        return plan

    def _catalogue(self, commit: str, session: FetchSession) -> Catalogue:
        known = session.reuse(own=True)(Catalogue.key_of(commit))
        if known is not None:
            return Catalogue.restore(commit, known)
        repository = new_repository(session.new_folder())
        fetch = Fetch(git=self.git, commit=commit, repository=repository, deadline=session.deadline)
        fetch.trees()
        return read_catalogue(fetch)

    def _resolving(self, plugin: Plugin, folder: Path, deadline: Deadline) -> Callable[[], Plugin]:
        def work() -> Plugin:
            try:
                git = self._reach.git(plugin.source.address)
                commit = resolve(git, plugin.source.ref, repository=new_repository(folder), deadline=deadline)
            except SkillRegistryError as error:
                is_refused = isinstance(error, SkillRegistryRefusedError)
                return replace(plugin, failure=str(error)[:MAX_MESSAGE], is_refused=is_refused)
            return replace(plugin, commit=commit)

        return work

    # --- Fetching -------------------------------------------------------------------------------------------------

    def _parts(self, plan: Plan, session: FetchSession) -> Iterator[Part]:
        """The part of each plugin, in the order of the plan."""
        parts: dict[str, Part] = {}
        visits: dict[tuple[str, str], list[Plugin]] = {}
        reuse = session.reuse(own=True)
        for plugin in plan.plugins:
            if plugin.commit is None:
                error = SkillRegistryError(plugin.failure or '')
                parts[plugin.name] = replace(failed_part(plugin, error, session.new_folder()), plugin=plugin)
            elif part := restore(plugin, reuse(plugin.key), reuse, session.new_folder()):
                parts[plugin.name] = part
            else:
                visits.setdefault((plugin.source.url, plugin.commit), []).append(plugin)
        # Those of the marketplace's own repository first, because its server answers.
        jobs = [self._visiting(visits[where], session) for where in sorted(visits, key=lambda where: bool(where[0]))]
        for found in self._work('Fetching plugins', jobs):
            parts.update((part.plugin.name, part) for part in found)
        for plugin in plan.plugins:
            yield self._kept(parts[plugin.name], session)

    def _visiting(self, plugins: Sequence[Plugin], session: FetchSession) -> Callable[[], list[Part]]:
        folder, roots = session.new_folder(), [session.new_folder() for _ in plugins]
        reuse = session.reuse()
        first = plugins[0]

        def work() -> list[Part]:
            try:
                git = self._reach.git(first.source.address)
            except SkillRegistryError as error:
                return [failed_part(plugin, error, root) for plugin, root in zip(plugins, roots, strict=True)]
            repository = new_repository(folder)
            fetch = Fetch(git=git, commit=first.commit or '', repository=repository, deadline=session.deadline)
            return Visit(fetch=fetch, plugins=plugins, roots=roots, reuse=reuse).parts()

        return work

    def _kept(self, part: Part, session: FetchSession) -> Part:
        """The part itself; if it failed, what the last revision had of it."""
        if part.failure is None or part.is_final or part.plugin.is_refused:
            return part
        record = session.store.last(f'{RECORDS}/{part.plugin.name}.json')
        kept = restore(part.plugin, record, session.reuse(own=True), session.new_folder())
        return part if kept is None else replace(kept, failure=part.failure)

    def _work(self, stage: str, jobs: Sequence[Callable[[], ResultT]]) -> Iterator[ResultT]:
        """Do the jobs, a few at a time, and report the progress."""
        tell = until_it_fails(self.progress)
        with ThreadPoolExecutor(max_workers=MAX_VISITS, thread_name_prefix='pydantic-ai-skills-plugins') as pool:
            for done, job in enumerate([pool.submit(job) for job in jobs], start=1):
                result = job.result()
                tell(FetchProgress(stage=stage, done=done, total=len(jobs)))
                yield result
