"""The sources of a toolset and what they have now: looked at on first use and on request, and swapped as a whole."""

from __future__ import annotations

import logging
import threading
from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Generic
from weakref import WeakSet

import anyio.to_thread
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.catalog.merge import Catalog, Owners, load_catalog, merge
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.directory.watch import WatchedDirectory
from pydantic_ai_skills.execution import SkillScriptExecutor
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.types.skill import DepsT, Skill

from .approvals import ScriptApprovals
from .durable import check_may_read
from .telemetry import about_problem
from .view import View, ViewSettings, attachments

__all__ = ('SkillFilter', 'SkillLibrary', 'as_directories')

logger = logging.getLogger('pydantic_ai_skills')

SkillFilter = Callable[[RunContext[DepsT], Skill[DepsT]], bool]
"""Whether a skill exists for a run."""

MAX_SKILLS_FILTERED_AT_ONCE = 1_000
"""With more than this, the event loop does not wait for `skill_filter` to be asked about each of them."""


class SkillLibrary(Generic[DepsT]):
    """Skills from Python, directories and registries, as one view that is replaced when they change."""

    def __init__(
        self,
        *,
        directories: Sequence[SkillsDirectory] | Callable[[], list[SkillsDirectory]],
        registries: Sequence[SkillRegistry],
        settings: ViewSettings,
        skill_filter: SkillFilter[DepsT] | None,
        approvals: ScriptApprovals,
        watch: bool = False,
    ) -> None:
        """Remember the sources, which skills of them exist for a run, which of their scripts run, and how to look."""
        self._watch = watch
        self._watched: list[WatchedDirectory] | None = None
        self.written: MutableMapping[str, Skill[DepsT]] = {}
        self._find_directories = directories if callable(directories) else None
        self.directories = [] if callable(directories) else list(directories)
        self.registries = list(registries)
        self.settings = settings
        self.skill_filter = skill_filter
        self.approvals = approvals
        self.on_demand: str | None = None
        """The id of the capability that offers skills as deferred capabilities, if one does."""
        self.taken_ids: set[str] = set()
        """The ids of other capabilities beside it. No skill can have one of them as a deferred capability."""
        self._parts: tuple[SkillLibrary[DepsT], ...] = ()
        self.adopters: WeakSet[SkillLibrary[DepsT]] = WeakSet()
        """Those that have adopted this one, as long as somebody uses them."""
        self._owners = Owners()
        self._view: View | None = None
        self._shown_of: tuple[View, tuple[str, ...] | None] | None = None
        self._lock = threading.RLock()
        self._tickets = count(1)
        self._asked = self._answered = 0
        self._logged: frozenset[SkillProblem] = frozenset()

    def write(self, skill: Skill[DepsT]) -> None:
        """Add a skill written in Python."""
        with self._lock:
            self.written[skill.name] = skill
            if self._view is not None:
                self._show(self._merged(self._view.catalog))

    def adopt(self, libraries: Sequence[SkillLibrary[DepsT]]) -> None:
        """Have the sources of others, with what is written into them later. Each skill keeps its filter and policy."""
        with self._lock:
            self._parts = tuple(libraries)
            for part in libraries:
                part.adopters.add(self)
            self.written = ChainMap(*(part.written for part in reversed(libraries)))
            self._find_directories = self._directories_of_parts
            self.registries = [registry for part in libraries for registry in part.registries]
            self._view = None

    def _directories_of_parts(self) -> list[SkillsDirectory]:
        for part in self._parts:
            part.find_directories()
        return [directory for part in self._parts for directory in part.directories]

    def find_directories(self) -> None:
        """Find out which directories there are, where that takes a look at the file system. The first time only."""
        if self._find_directories is not None:
            self.directories, self._find_directories = self._find_directories(), None

    def owner_of(self, skill: Skill[Any]) -> SkillLibrary[DepsT]:
        """The library a skill is from: one that was adopted, or this one."""
        if not self._parts:
            return self
        groups = [(part.written.values(), len(part.directories), len(part.registries)) for part in self._parts]
        return self._parts[self._owners.index(skill, self.look().catalog, groups)]

    # --- What there is --------------------------------------------------------------------------------------------

    def look(self) -> View:
        """The view as it is; made now, with whatever reading that takes, if there is none yet."""
        view = self._view
        if view is None:
            with self._lock:
                view = self._view or self._look()
        if view.attached != attachments(self.written.values()):
            with self._lock:
                view = self._show(self._merged(view.catalog))
        return view

    async def load(self) -> None:
        """Make the view now, off the event loop."""
        check_may_read()
        await anyio.to_thread.run_sync(self.look)

    def reload(self, *, include_registries: bool = False) -> None:
        """Look at the directories again, and at the registries if asked to; so do those that have adopted this one."""
        with self._lock:
            self._look(include_registries=include_registries)
        for adopter in tuple(self.adopters):
            adopter.reload(include_registries=include_registries)

    async def reload_for_run(self) -> None:
        """Look at the directories again, unless a look that began after this was asked for has happened meanwhile."""
        ticket = self._asked = next(self._tickets)
        await anyio.to_thread.run_sync(self._reload_since, ticket)

    def _reload_since(self, ticket: int) -> None:
        with self._lock:
            if self._answered < ticket:
                asked = self._asked
                self.reload()
                self._answered = max(asked, ticket)

    def _look(self, *, include_registries: bool = False) -> View:
        """Look at the sources, and make another view if that gives another catalog. The lock is held."""
        last = self._view
        self.find_directories()
        if self._watch and self._watched is None:
            self._watched = [WatchedDirectory(directory) for directory in self.directories]
        catalog = load_catalog(
            self.written.values(),
            self._watched or self.directories,
            self.registries,
            last=last.catalog if last else None,
            include_registries=include_registries,
        )
        return last if last is not None and catalog is last.catalog else self._show(catalog)

    def _merged(self, catalog: Catalog) -> Catalog:
        """The catalog with the skills written in Python as they are now."""
        return merge(self.written.values(), catalog.directories, catalog.registries)

    def _show(self, catalog: Catalog) -> View:
        """Make the view of a catalog and put it in place of the last one."""
        self._view = view = self.settings.view(catalog, self.written.values())
        problems = (*catalog.problems, *view.problems)
        for problem in problems:
            if problem not in self._logged:
                logger.warning('%s', problem, extra=about_problem(problem))
        self._logged = frozenset(problems)
        return view

    # --- What a run sees ------------------------------------------------------------------------------------------

    async def visible(self, ctx: RunContext[DepsT]) -> View:
        """What the model of a run may load by itself; made off the event loop if nothing was read yet."""
        if self._view is None:
            await self.load()
        view = self.look()
        if self._has_filter and len(view.catalog.skills) > MAX_SKILLS_FILTERED_AT_ONCE:
            return await anyio.to_thread.run_sync(self._visible, view, ctx)
        return self._visible(view, ctx)

    @property
    def _has_filter(self) -> bool:
        return any(part.skill_filter is not None for part in self._parts or (self,))

    def _visible(self, view: View, ctx: RunContext[DepsT]) -> View:
        names = self._shown(view)
        if not self._has_filter:
            return view if names is None else self.settings.narrow(view, names)
        skills = view.catalog.skills
        shown = skills if names is None else names
        return self.settings.narrow(view, tuple(name for name in shown if self.exists(skills[name], ctx)))

    def listed(self, view: View) -> View:
        """The view of the skills that are listed and loaded by this package's tools: all, unless they are on demand."""
        if self.on_demand is None:
            return view
        skills = view.catalog.skills.values()
        return self.settings.narrow(view, tuple(skill.name for skill in skills if not self.is_deferred(skill)))

    def is_deferred(self, skill: Skill[Any]) -> bool:
        """Whether a skill is offered as a deferred capability: it may speak in the words of the system.

        A model must be allowed to load it, and its name must not be taken by another capability, or the one it is from.
        """
        is_free = skill.name != self.on_demand and skill.name not in self.taken_ids
        return self.on_demand is not None and is_free and skill.is_trusted and not skill.disable_model_invocation

    def exists(self, skill: Skill[DepsT], ctx: RunContext[DepsT]) -> bool:
        """Whether a skill exists for a run, whoever may load it."""
        skill_filter = self.owner_of(skill).skill_filter
        return skill_filter is None or skill_filter(ctx, skill)

    def named(self, names: Iterable[str], ctx: RunContext[DepsT]) -> list[Skill[Any]]:
        """The skills of these names that exist for a run, whoever may load them; none if nothing was read yet."""
        catalog = self._view.catalog if self._view else None
        # Several names may mean one skill: `My_Skill` finds `my-skill`.
        found = dict.fromkeys(catalog.get(name) for name in names) if catalog else ()
        return [skill for skill in found if skill is not None and self.exists(skill, ctx)]

    def _shown(self, view: View) -> tuple[str, ...] | None:
        """The names of the skills that a model may load by itself; `None` for all."""
        if self._shown_of is None or self._shown_of[0] is not view:
            skills = view.catalog.skills
            names = tuple(name for name, skill in skills.items() if not skill.disable_model_invocation)
            self._shown_of = view, None if len(names) == len(skills) else names
        return self._shown_of[1]


def as_directories(
    directories: str | Path | SkillsDirectory | Sequence[str | Path | SkillsDirectory],
    *,
    validate: bool,
    max_depth: int | None,
    script_executor: SkillScriptExecutor | None,
    disk_index: bool | str | Path,
) -> list[SkillsDirectory]:
    """Directories as they may be given: paths or objects, several or one."""
    if isinstance(directories, (str, Path, SkillsDirectory)):
        directories = [directories]
    return [
        directory
        if isinstance(directory, SkillsDirectory)
        else SkillsDirectory(
            directory,
            validate=validate,
            max_depth=max_depth,
            script_executor=script_executor,
            disk_index=disk_index,
        )
        for directory in directories
    ]
