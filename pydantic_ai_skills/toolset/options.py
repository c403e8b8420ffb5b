"""The options of `SkillsToolset`. `SkillsCapability`, agent specs and projects take the same ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from typing_extensions import TypedDict

from pydantic_ai_skills.catalog.search import SkillRanker
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.directory.standard import Trust
from pydantic_ai_skills.execution import ScriptPolicy, SkillScriptExecutor
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.skill import DepsT, Skill

from .library import SkillFilter
from .prompt import SearchTool

AutoReload = bool | Literal['watch']

F = TypeVar('F', bound=Callable[..., Any])


class PlainOptions(TypedDict, total=False):
    """The options that a file can hold without conversion."""

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
    """How many characters the instructions may take: 8,000 by default, `None` for no limit.

    If the list of skills is longer, descriptions are shortened, then left out; then the list is cut and says so.
    """

    pinned: Sequence[str]
    """Names of skills that are always listed in full, whatever the budget."""

    search_tool: SearchTool
    """When to offer `search_skills`: `'auto'` (the default), if the list exceeds its budget, or `'always'`."""

    exclude_tools: Sequence[str] | Set[str] | None
    """Names of tools that are not offered."""


class SkillsToolsetOptions(PlainOptions, Generic[DepsT], total=False):
    """The options of a toolset. All of them can be left out."""

    skills: Sequence[Skill[DepsT]] | None
    """Skills written in Python. They win over all others."""

    directories: Sequence[str | Path | SkillsDirectory] | Literal['standard'] | None
    """Directories of skills; a later one wins over an earlier one. Without any source, `./skills`.

    `'standard'` means the conventional folders for skills: see `SkillsDirectory.standard`.
    """

    registries: Sequence[SkillRegistry] | None
    """Other sources; an earlier one wins over a later one, and directories win over all of them."""

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

    script_executor: SkillScriptExecutor | None
    """What runs the scripts of directories given as paths; a `LocalSkillScriptExecutor` by default."""

    script_policy: ScriptPolicy | None
    """Whether a script may run: `'allow'`, `'ask'` (a person approves each call), `'deny'`, or a function.

    The function takes `(ctx, skill, script, args)` and returns one of them. It decides about every way to run code of a
    skill: scripts, declared tools, functions of packages, and the import of a `tools.py`, which counts as a script of
    that name. By default all of it runs. Whatever the policy says, code from a source that is not trusted runs in a
    sandbox only, and never in this process.
    """


DEFAULTS: PlainOptions = {
    'validate': True,
    'max_depth': 3,
    'disk_index': False,
    'auto_reload': False,
    'catalog_budget': 8_000,
    'pinned': (),
    'search_tool': 'auto',
}
"""The defaults that are not `None`."""


def with_defaults(options: SkillsToolsetOptions[Any]) -> dict[str, Any]:
    """All options: those given, and the defaults of the others. Raises a `TypeError` for one that does not exist."""
    known = SkillsToolsetOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f'SkillsToolset has no option {name!r}. {closest_first("option", name, known)}')
    return {**dict.fromkeys(known), **DEFAULTS, **options}


def published(options: type) -> Callable[[F], F]:
    """Decorator: show the options that a function takes as `**options` in its signature.

    `help()` and editors show it, and pydantic-ai builds the JSON schema of agent specs from it.
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
