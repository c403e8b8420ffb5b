"""Loads the sources of a toolset lazily and swaps the catalog atomically."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import isawaitable
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar

import anyio.to_thread
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.catalog.merge import Catalog, Contents, load_catalog, merge
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.execution.base import SkillScriptExecutor, is_sandbox, result_at_once
from pydantic_ai_skills.execution.gate import Gate
from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.problems import SkillProblem, about_problem, problem
from pydantic_ai_skills.types.found_skills import same_objects
from pydantic_ai_skills.types.skill import DepsT, Skill

from .compat import LOADS_FROM_CODE
from .prompt import View, ViewSettings, attachments

if TYPE_CHECKING:
    from pydantic_ai_skills.directory.watch import WatchedDirectory
    from pydantic_ai_skills.registries.base import SkillRegistry

logger = logging.getLogger('pydantic_ai_skills')

T = TypeVar('T')

SkillFilter = Callable[[RunContext[DepsT], Skill[DepsT]], bool | Awaitable[bool]]
"""Whether a skill exists for a run. It may be async."""

MAX_SKILLS_FILTERED_AT_ONCE = 1_000
"""With more than this, `skill_filter` is called in a worker thread, so that the event loop need not wait."""

FOR_CALLS = ('.recording', '.skill_text', 'pydantic_ai_skills.execution.arguments')
"""The modules that only tool calls need. They are imported where sources are read, so not on the event loop."""

HIDDEN: ContextVar[frozenset[str]] = ContextVar('hidden_skills', default=frozenset())
"""The names of skills that do not exist for the runs in this context: evaluations try an agent without a skill."""


class SkillLibrary(Generic[DepsT]):
    """Skills from Python, directories and registries, as one view that is replaced when they change."""

    def __init__(
        self,
        *,
        directories: Sequence[SkillsDirectory] | Callable[[], list[SkillsDirectory]],
        registries: Sequence[SkillRegistry],
        settings: ViewSettings,
        skill_filter: SkillFilter[DepsT] | None,
        gate: Gate,
        max_on_demand: int = 50,
        watch: bool = False,
    ) -> None:
        self._watch = watch
        self._watched: list[WatchedDirectory] | None = None
        self.in_python: dict[str, Skill[DepsT]] = {}
        """The skills written in Python, by name."""
        self._find_directories = directories if callable(directories) else None
        self.directories = [] if callable(directories) else list(directories)
        self.registries = list(registries)
        self.settings = settings
        self.skill_filter = skill_filter
        self.gate = gate
        """Decides whether code of its skills runs."""
        self.on_demand: str | None = None
        """The id of the capability that offers skills as deferred capabilities, if one does."""
        self.max_on_demand = max_on_demand
        """With more skills than this, none is offered as a deferred capability."""
        self.is_on_demand = False
        """Whether the skills that were read are offered as deferred capabilities."""
        self.generation = (0, 0)
        """How many reloads there were, and how many of them included the registries."""
        self._parts: tuple[SkillLibrary[DepsT], ...] = ()
        self._generations = (0, 0)
        self._view: View | None = None
        self._shown_of: tuple[View, tuple[str, ...] | None] | None = None
        self._lock = ThreadLock()
        self._tickets = count(1)
        self._asked = self._answered = 0
        self._logged: frozenset[SkillProblem] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        # A copy reads its sources itself.
        return {**vars(self), '_view': None, '_shown_of': None, '_watched': None, '_tickets': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._tickets = count(self._asked + 1)

    def write(self, skill: Skill[DepsT]) -> None:
        """Add a skill written in Python."""
        with self._lock:
            self.in_python[skill.name] = skill
            if self._view is not None:
                self._show(self._merged(self._view.catalog))

    def remove(self, skill: Skill[DepsT]) -> None:
        """Remove a skill written in Python."""
        with self._lock:
            self.in_python.pop(skill.name, None)
            if self._view is not None:
                self._show(self._merged(self._view.catalog))

    def combine(self, parts: Iterable[SkillLibrary[DepsT]]) -> None:
        """Show the skills of other libraries. Each skill keeps the filter and the policy of the library it is from."""
        self._parts = tuple(parts)

    def written(self) -> list[Skill[DepsT]]:
        """The skills written in Python, also those of the libraries that were combined."""
        return [skill for part in self._parts or (self,) for skill in part.in_python.values()]

    def owner_of(self, skill: Skill[Any]) -> SkillLibrary[DepsT]:
        """The library a skill is from: one of those that were combined, or this one."""
        return self._parts[self.look().catalog.part_of.get(skill.name, 0)] if self._parts else self

    @property
    def sandbox(self) -> SkillScriptExecutor | None:
        """The first of the sources' executors that is a sandbox, if one is."""
        sources = (source for part in self._parts or (self,) for source in (*part.directories, *part.registries))
        executors = (getattr(source, 'script_executor', None) for source in sources)
        return next((executor for executor in executors if executor is not None and is_sandbox(executor)), None)

    # --- The current view -----------------------------------------------------------------------------------------

    def look(self) -> View:
        """The current view. The first call reads the sources."""
        view = self._view
        if view is None:
            with self._lock:
                view = self._view or self._look()
        if self._is_outdated:
            view = self.refresh(include_registries=self._generations[1] != self._generation_of_parts[1])
        if not self._is_current(view):
            with self._lock:
                view = self._show(self._merged(view.catalog))
        return view

    @property
    def _generation_of_parts(self) -> tuple[int, int]:
        return sum(part.generation[0] for part in self._parts), sum(part.generation[1] for part in self._parts)

    @property
    def _is_outdated(self) -> bool:
        """Whether one of its parts was reloaded, so that all of them have to be read again."""
        return self._generations != self._generation_of_parts and may_read()

    def _is_current(self, view: View) -> bool:
        """Whether no skill was changed or added to since the view was made, and the parts have the same catalogs."""
        if view.assignments != Skill.assignments:
            return False
        if self._parts:
            return same_objects(view.catalog.parts, self._contents_of_parts())
        return not self.in_python or view.attached == attachments(self.in_python.values())

    async def catch_up(self) -> None:
        """Read the sources if there is no view yet, or an outdated one."""
        if self._view is None or self._is_outdated:
            await self.load()

    async def load(self) -> None:
        """Make the view now, off the event loop."""
        check_may_read()
        await anyio.to_thread.run_sync(self.look)

    def reload(self, *, include_registries: bool = False, include_directories: bool = True) -> None:
        """Read the directories again, and the registries if asked to. Libraries that contain this one follow."""
        with self._lock:
            self.refresh(include_registries=include_registries, include_directories=include_directories)
            reloads, fetches = self.generation
            self.generation = reloads + 1, fetches + include_registries

    @property
    def is_stale(self) -> bool:
        """Whether a registry is to be asked again before the next run, because its source has changed or may have."""
        return self._view is not None and any(
            registry.is_stale for part in self._parts or (self,) for registry in part.registries
        )

    async def reload_for_run(self, *, include_directories: bool = True) -> None:
        """Read the sources again, unless another run's reload has begun since this call."""
        ticket = self._asked = next(self._tickets)
        await anyio.to_thread.run_sync(self._reload_since, ticket, include_directories)

    def _reload_since(self, ticket: int, include_directories: bool) -> None:
        with self._lock:
            if self._answered < ticket:
                asked = self._asked
                self.reload(include_directories=include_directories)
                self._answered = max(asked, ticket)

    def refresh(self, *, include_registries: bool, include_directories: bool = True) -> View:
        """Read the sources of its parts again, or its own."""
        with self._lock:
            for part in self._parts:
                part.refresh(include_registries=include_registries, include_directories=include_directories)
            return self._look(include_registries=include_registries, include_directories=include_directories)

    def _look(self, *, include_registries: bool = False, include_directories: bool = True) -> View:
        """Read the parts or the sources, and make a new view if they have changed. The caller holds the lock."""
        for module in FOR_CALLS:
            import_module(module, __package__)
        last = self._view
        if self._parts:
            self._generations = self._generation_of_parts
            return last if last is not None and self._is_current(last) else self._show(self._merged())
        self._open_directories()
        catalog = load_catalog(
            self.in_python.values(),
            self._watched or self.directories,
            self.registries,
            last=last.catalog if last else None,
            include_registries=include_registries,
            include_directories=include_directories,
            list_files=not self.settings.always_all_tools,
        )
        return last if last is not None and catalog is last.catalog else self._show(catalog)

    def _open_directories(self) -> None:
        if self._find_directories is not None:
            self.directories, self._find_directories = self._find_directories(), None
        if self._watch and self._watched is None:
            from pydantic_ai_skills.directory.watch import WatchedDirectory  # only needed to watch

            self._watched = [WatchedDirectory(directory) for directory in self.directories]

    def _merged(self, catalog: Catalog | None = None) -> Catalog:
        """The catalog with the current skills in Python, or with the current parts."""
        if catalog is None or self._parts:
            return merge(*self._contents_of_parts())
        return merge(catalog.parts[0]._replace(in_python=tuple(self.in_python.values())))

    def _contents_of_parts(self) -> tuple[Contents, ...]:
        return tuple(part.look().catalog.parts[0] for part in self._parts)

    def _show(self, catalog: Catalog) -> View:
        """Make the view of a catalog, replace the last one with it, and log new problems."""
        view = self.settings.view(catalog, self.in_python.values())
        self.is_on_demand, found = self._check_on_demand(catalog)
        self._view = view = replace(view, problems=(*view.problems, *found))
        problems = (*catalog.problems, *view.problems)
        for found in problems:
            if found not in self._logged:
                logger.warning('%s', found, extra=about_problem(found))
        self._logged = frozenset(problems)
        return view

    def _check_on_demand(self, catalog: Catalog) -> tuple[bool, list[SkillProblem]]:
        """Whether skills are offered as deferred capabilities, and the problem if they are too many for that."""
        count = sum(map(_may_be_deferred, catalog.skills.values())) if self.on_demand else 0
        if count <= self.max_on_demand:
            return self.on_demand is not None, []
        message = f'{count:,} skills are too many to be offered on demand (max_on_demand is {self.max_on_demand:,}).'
        return False, [problem('too-many-on-demand', self.on_demand or '', message)]

    # --- What a run sees ------------------------------------------------------------------------------------------

    async def visible(self, ctx: RunContext[DepsT]) -> View:
        """The skills that the model of a run may load by itself. What has to be read is read off the event loop."""
        await self.catch_up()
        view = self.look()
        names = self._shown(view)
        if self.has_filter:
            skills = view.catalog.skills
            existing = await self.existing([skills[name] for name in (skills if names is None else names)], ctx)
            names = tuple(skill.name for skill in existing)
        return view if names is None else self.settings.narrow(view, names)

    @property
    def has_filter(self) -> bool:
        """Whether runs may see different skills."""
        return bool(HIDDEN.get()) or any(part.skill_filter is not None for part in self._parts or (self,))

    def listed(self, view: View, ctx: RunContext[DepsT] | None) -> View:
        """The view without the skills that pydantic-ai lists and loads as deferred capabilities."""
        if not self.is_on_demand:
            return view
        deferred = {skill.name for skill in self.deferred(view.catalog.skills.values(), ctx)}
        return self.settings.narrow(view, tuple(name for name in view.catalog.skills if name not in deferred))

    def deferred(self, skills: Iterable[Skill[Any]], ctx: RunContext[Any] | None) -> list[Skill[Any]]:
        """The skills that a run offers as deferred capabilities, whose instructions become system instructions.

        The model must be allowed to load them, their source must be trusted, and no other capability may have the name.
        """
        if not self.is_on_demand:
            return []
        taken = {self.on_demand} if ctx is None else {self.on_demand, *_ids_of_capabilities(ctx)}
        return [skill for skill in skills if _may_be_deferred(skill) and skill.name not in taken]

    def is_deferred(self, skill: Skill[Any], ctx: RunContext[Any]) -> bool:
        """Whether a run offers this skill as a deferred capability."""
        return bool(self.deferred([skill], ctx))

    def comes_as_capability(self, skill: Skill[Any], ctx: RunContext[Any]) -> bool:
        """Whether a loaded skill has its tools and settings from a deferred capability, which pydantic-ai activates."""
        return self.is_deferred(skill, ctx) and (LOADS_FROM_CODE or skill.name in ctx.loaded_capability_ids)

    async def existing(self, skills: Sequence[Skill[DepsT]], ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """Those of the skills that exist for a run, even if only a person may load them."""
        if not self.has_filter:
            return list(skills)
        ask = partial(self._answers, skills, ctx)
        many = len(skills) > MAX_SKILLS_FILTERED_AT_ONCE
        answers = await anyio.to_thread.run_sync(ask) if many else ask()
        return [skill for skill, yes in zip(skills, answers, strict=True) if (await yes if isawaitable(yes) else yes)]

    def existing_now(self, skills: Sequence[Skill[DepsT]], ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """Like `existing`, for code that cannot wait: without the skills whose filter has to wait for something."""
        return [
            skill
            for skill, yes in zip(skills, self._answers(skills, ctx), strict=True)
            if (_yes_at_once(yes) if isawaitable(yes) else yes)
        ]

    def _answers(self, skills: Sequence[Skill[DepsT]], ctx: RunContext[DepsT]) -> list[bool | Awaitable[bool]]:
        hidden = HIDDEN.get()
        filters = ((skill, self.owner_of(skill).skill_filter) for skill in skills)
        return [skill.name not in hidden and (ask is None or ask(ctx, skill)) for skill, ask in filters]

    def named(self, names: Iterable[str]) -> list[Skill[Any]]:
        """The skills of these names, whether or not they exist for a run; none if nothing was read yet."""
        catalog = self._view.catalog if self._view else None
        # Several names may mean one skill: `My_Skill` finds `my-skill`.
        found = [skill for name in names if (skill := catalog.get(name))] if catalog else []
        return list({skill.name: skill for skill in found}.values())

    def _shown(self, view: View) -> tuple[str, ...] | None:
        """The names of the skills that a model may load by itself; `None` for all."""
        if self._shown_of is None or self._shown_of[0] is not view:
            skills = view.catalog.skills
            names = tuple(name for name, skill in skills.items() if not skill.disable_model_invocation)
            self._shown_of = view, None if len(names) == len(skills) else names
        return self._shown_of[1]


def _may_be_deferred(skill: Skill[Any]) -> bool:
    return skill.is_trusted and not skill.disable_model_invocation


def is_context(ctx: Any) -> TypeGuard[RunContext[Any]]:
    """Whether this is the context of a run, not `None` or a stand-in for one."""
    has_parts = isinstance(getattr(ctx, 'messages', None), list) and isinstance(getattr(ctx, 'tools', None), dict)
    return has_parts and isinstance(ctx, RunContext)


def carried(ctx: RunContext[Any], field: str, default: T) -> T:
    """A field of the context; the default in a durable unit that runs elsewhere and does not get the field."""
    try:
        return getattr(ctx, field)
    except UserError:
        return default


def _yes_at_once(answer: Awaitable[bool]) -> bool:
    """The answer of an async filter that answers at once; `False` if it has to wait for something."""
    with suppress(RuntimeError):
        return bool(result_at_once(answer))
    return False


def _ids_of_capabilities(ctx: RunContext[Any]) -> set[str]:
    ids: set[str] = set()
    if ctx.agent is not None:
        ctx.agent.root_capability.apply(lambda capability: ids.add(capability.id) if capability.id else None)
    return ids


def check_may_read() -> None:
    """Raise a `UserError` in the code of a Temporal workflow, which has no threads and must do no I/O."""
    if not may_read():
        raise UserError(
            'The skills have to be read before a Temporal workflow uses them. Call `await toolset.load()` before the '
            'worker is started, and import the module of the agent in `workflow.unsafe.imports_passed_through()`, or '
            'the workflow gets a copy of the agent for which nothing was read.'
        )


def may_read() -> bool:
    """Whether files may be read here: not in the code of a Temporal workflow."""
    workflow: Any = sys.modules.get('temporalio.workflow')
    return workflow is None or not workflow.in_workflow()
