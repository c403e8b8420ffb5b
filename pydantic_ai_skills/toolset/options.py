"""The options of `SkillsToolset`. `SkillsCapability`, agent specs and projects take the same ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from pydantic.json_schema import GenerateJsonSchema
from pydantic_ai.tools import DocstringFormat
from typing_extensions import TypedDict

from pydantic_ai_skills.catalog.search import SkillRanker
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.execution import ScriptPolicy, SkillScriptExecutor
from pydantic_ai_skills.execution.work_dir import MAX_CONVERSATIONS, ChosenDir
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.skill import DepsT, Skill

from .given import checked
from .library import SkillFilter
from .prompt import SearchTool

if TYPE_CHECKING:
    from pydantic_ai_skills.directory.standard import Trust

AutoReload = bool | Literal['watch']

F = TypeVar('F', bound=Callable[..., Any])


class SkillsSource(Protocol):
    """Where skills come from: a registry, or any object with this method."""

    def get_skills(self) -> Any:
        """The skills, as a list or by name."""
        ...


class FunctionToolsetOptions(TypedDict, total=False):
    """Options of pydantic-ai's `FunctionToolset`, which mean here what they mean there."""

    max_retries: int | None
    """How often a tool may be tried again in a run."""

    timeout: float | None
    """Seconds a call of a tool may take."""

    docstring_format: DocstringFormat
    """The format of the docstrings of functions that you add."""

    require_parameter_descriptions: bool
    """Whether the parameters of functions that you add need a description."""

    strict: bool | None
    """Whether the provider is asked to keep the model to the schemas of the tools."""

    sequential: bool
    """Whether calls of the tools run one after the other."""

    requires_approval: bool
    """Whether a person has to approve each call of a tool."""

    metadata: dict[str, Any] | None
    """Metadata of the tools, which the model does not see."""

    defer_loading: bool
    """Whether the tools are hidden until a search of tools finds them."""

    include_return_schema: bool | None
    """Whether the model sees the return types of the tools."""


class CatalogOptions(TypedDict, total=False):
    """How skills are found, listed and offered."""

    id: str | None
    """Identifies the toolset within its agent; `'skills'` by default. Two toolsets on one agent need different ids."""

    validate: bool
    """Whether to apply the Agent Skills rules to directories given as paths; `True` by default."""

    max_depth: int | None
    """How many levels below such a directory to search: 3 by default, `None` for no limit."""

    disk_index: bool | str | Path
    """Whether such directories keep an index on disk, so that a later process reads only what has changed.

    `True` for a file in the user's cache folder, or the path of a file.
    """

    auto_reload: AutoReload
    """Whether to look for changed files in the directories before each run.

    `True` looks at the files; `'watch'` relies on file system events and needs `pydantic-ai-skills[watch]`.
    """

    instruction_template: str | None
    """The text around the list of skills; it must contain `{skills_list}`."""

    catalog_budget: int | None
    """How many characters the instructions may take: 10,000 by default, `None` for no limit.

    If the list of skills is longer, descriptions are first shortened, if need be to the sentence that says when to use
    the skill, and then left out. Finally the list is cut, with a note that says so.
    """

    pinned: str | Sequence[str]
    """Names of skills that are always listed in full, whatever the budget."""

    search_tool: SearchTool
    """When to offer `search_skills`: `'auto'` (the default), if the list exceeds its budget, or `'always'`."""

    exclude_tools: str | Sequence[str] | Set[str] | None
    """Names of tools that are not offered."""

    max_on_demand: int
    """How many skills a `SkillsCapability` offers on demand: 50 by default.

    If the sources have more, all are offered through the tools: the time that pydantic-ai takes for each request grows
    with the square of the number of deferred capabilities.
    """

    max_work_dirs: int
    """How many conversations keep their private work folder: 64 by default.

    With more, the folder that was used longest ago is removed.
    """


class PlainOptions(CatalogOptions, FunctionToolsetOptions, total=False):
    """The options that a file can hold without conversion."""


class SkillsToolsetOptions(PlainOptions, Generic[DepsT], total=False):
    """The options of a toolset. All of them can be left out. Where a list is taken, so is a single value."""

    skills: Skill[DepsT] | Sequence[Skill[DepsT]] | None
    """Skills written in Python. They win over all others."""

    directories: str | Path | SkillsDirectory | Sequence[str | Path | SkillsDirectory] | None
    """Directories of skills; a later one wins over an earlier one. Without any source, `./skills`.

    `'standard'` means the conventional folders for skills: see `SkillsDirectory.standard`.
    """

    registries: SkillsSource | Sequence[SkillsSource] | None
    """Other sources: registries, or any objects with `get_skills()`.

    An earlier one wins over a later one, and directories win over all of them.
    """

    trust: Trust | None
    """With `directories='standard'`, the projects whose skills are used; none by default.

    Either folders, which include all projects in them, or a function of the project's folder.
    """

    ranker: SkillRanker | None
    """What finds skills for `search_skills`; a `FullTextRanker` by default."""

    skill_filter: SkillFilter[DepsT] | None
    """Called with the run's context and a skill.

    If it returns false, the skill does not exist for that run, neither in the instructions nor for any tool. It may be
    async.
    """

    script_executor: SkillScriptExecutor | Callable[..., Any] | None
    """What runs the scripts of directories given as paths; a `LocalSkillScriptExecutor` by default.

    A function is called as by a `CallableSkillScriptExecutor`.
    """

    script_policy: ScriptPolicy | None
    """Whether a script may run: `'allow'`, `'ask'` (a person approves each call), `'deny'`, or a function.

    The function takes `(ctx, skill, script, args)` and returns one of them. It decides about every way to run code of a
    skill: scripts, declared tools, functions of packages, and the import of a `tools.py`, which counts as a script of
    that name. By default all of it runs. Whatever the policy says, code from a source that is not trusted runs in a
    sandbox only, and never in this process.
    """

    work_dir: ChosenDir
    """The folder in which scripts start, read and write.

    `None` for a private one for each conversation, which is temporary; a path; or a function of the run's context that
    returns one of them, sync or async. If the run has a workspace, its folder is the work folder in any case.
    """

    schema_generator: type[GenerateJsonSchema]
    """What makes the JSON schemas of tools."""

    instructions: Any
    """Instructions to give besides the list of skills."""


DEFAULTS: PlainOptions = {
    'validate': True,
    'max_depth': 3,
    'disk_index': False,
    'auto_reload': False,
    'catalog_budget': 10_000,
    'pinned': (),
    'search_tool': 'auto',
    'max_on_demand': 50,
    'max_work_dirs': MAX_CONVERSATIONS,
}
"""The defaults that are not `None`."""


def with_defaults(options: SkillsToolsetOptions[Any]) -> dict[str, Any]:
    """All options: those given, and the defaults of the others.

    Raises:
        TypeError: An option does not exist, or its value is of the wrong kind.
    """
    known = SkillsToolsetOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f'SkillsToolset has no option {name!r}. {closest_first("option", name, known)}')
    return {**dict.fromkeys(known), **DEFAULTS, **{name: checked(name, value) for name, value in options.items()}}


def with_places(places: Any, options: SkillsToolsetOptions[DepsT]) -> SkillsToolsetOptions[DepsT]:
    """The options, with what was given by position as their `directories`."""
    if places is None:
        return options
    if 'directories' in options:
        raise TypeError('The directories were given twice: by position and as directories=.')
    return {**options, 'directories': places}


def for_function_toolset(options: SkillsToolsetOptions[Any]) -> dict[str, Any]:
    """Those of the given options that are for the base class."""
    known = {*FunctionToolsetOptions.__annotations__, 'schema_generator', 'instructions'}
    return {name: value for name, value in options.items() if name in known}


def published(options: type) -> Callable[[F], F]:
    """Decorator: list the options that a function takes as `**options` in its signature.

    `help()` and editors show that signature, and pydantic-ai builds the JSON schema of agent specs from it.
    """

    def publish(function: F) -> F:
        (owner, *_) = inspect.signature(function).parameters.values()
        hints = options.__annotations__
        shown = (
            owner.replace(
                name=name,
                kind=inspect.Parameter.KEYWORD_ONLY,
                default=DEFAULTS.get(name),
                annotation=getattr(hint, '__forward_arg__', hint),
            )
            for name, hint in hints.items()
        )
        vars(function).update(__signature__=inspect.Signature([owner, *shown]))
        function.__annotations__ = dict(hints)
        return function

    return publish
