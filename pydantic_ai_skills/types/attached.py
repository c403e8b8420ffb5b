"""What is attached to a skill: the list of its files, and the decorators that attach functions to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic_ai.tools import Tool

from pydantic_ai_skills.problems import SkillProblem

from .functions import DepsT, FunctionDecorator, FunctionOptions, name_of
from .resource import SkillResource
from .script import ImportedCode, SkillScript

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

    from .decorators import PlainToolDecorator, ToolDecorator
    from .skill import Skill

ItemT = TypeVar('ItemT', SkillResource, SkillScript)


@dataclass(kw_only=True, slots=True)
class SkillFiles:
    """The resources and scripts of a skill, and what was found while listing them."""

    resources: list[SkillResource] = field(default_factory=list[SkillResource])
    """What can be read."""

    scripts: list[SkillScript] = field(default_factory=list[SkillScript])
    """What can be run."""

    unlisted: list[SkillResource] = field(default_factory=list[SkillResource])
    """What can be read by its name but is not listed: the text of scripts, tests and `__init__.py`."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about the files."""

    executor: SkillScriptExecutor | None = None
    """What runs programs in the skill's folder, if anything does."""

    tools_module: ImportedCode | None = None
    """The `tools.py` with typed tools in the skill's folder, if it has one."""

    tools: tuple[Tool[Any], ...] = ()
    """Typed tools that are known only once the files are listed."""


class Attached(Generic[DepsT]):
    """The part of `Skill` that knows its files before they are used, and attaches functions to it."""

    __slots__ = ()

    if TYPE_CHECKING:
        name: str
        files: SkillFiles
        known_files: SkillFiles | None
        resources: list[SkillResource]
        scripts: list[SkillScript]
        tools: list[Tool[Any]]

    def look(self) -> None:
        """List its files now, so that `may_read` and `may_run` know the answer."""
        _ = self.files

    @property
    def may_read(self) -> bool:
        """Whether it has something to read: resources, or scripts that may write files; true if that is not known."""
        known = self.known_files
        return known is None or bool(known.resources) or any(script.function is None for script in known.scripts)

    @property
    def may_run(self) -> bool:
        """Whether it has something to run; true if that is not known."""
        return self.known_files is None or bool(self.known_files.scripts)

    @property
    def file_problems(self) -> tuple[SkillProblem, ...]:
        """What is known to be wrong with its files."""
        return () if self.known_files is None else self.known_files.problems

    @property
    def resource(self) -> FunctionDecorator[DepsT]:
        """Decorator that makes a function a resource of this skill: the model reads what it returns."""
        return FunctionDecorator(self._add_resource)

    @property
    def script(self) -> FunctionDecorator[DepsT]:
        """Decorator that makes a function a script of this skill."""
        return FunctionDecorator(self._add_script)

    @property
    def tool(self) -> ToolDecorator[DepsT]:
        """Decorator for a tool the model has once the skill is loaded; the function takes a `RunContext`."""
        from .decorators import ToolDecorator  # few skills have tools

        return ToolDecorator(self.tools.append)

    @property
    def tool_plain(self) -> PlainToolDecorator:
        """Decorator for a tool the model has once the skill is loaded; the function takes no `RunContext`."""
        from .decorators import PlainToolDecorator  # few skills have tools

        return PlainToolDecorator(self.tools.append)

    def _add_resource(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        add_item(self.resources, SkillResource(**_described(function, options)), self.name)

    def _add_script(self, function: Callable[..., Any], options: FunctionOptions) -> None:
        add_item(self.scripts, SkillScript(**_described(function, options), skill_name=self.name), self.name)


def _described(function: Callable[..., Any], options: FunctionOptions) -> dict[str, Any]:
    """The fields of a resource or script that calls a function."""
    schema = options.read_schema(function)
    name, description = options.name or name_of(function), options.description or schema.description
    return {'name': name, 'description': description, 'function': function, 'function_schema': schema}


def add_item(items: list[ItemT], item: ItemT, skill_name: str) -> None:
    """Add a resource or script to a skill; it replaces one of the same name."""
    for other in [other for other in items if other.name == item.name]:
        message = f'{item.name!r} of skill {skill_name!r} is defined twice; the later one is used.'
        warnings.warn(message, UserWarning, stacklevel=4)
        items.remove(other)
    items.append(item)


def files_of(skill: Skill[Any], name: str) -> SkillFiles:
    """A copy of a skill's files in which the scripts belong to a skill of another name."""
    own = skill.files
    scripts = [script.of_skill(name) for script in own.scripts]
    module = own.tools_module and own.tools_module.of_skill(name)
    return replace(own, resources=list(own.resources), scripts=scripts, tools_module=module)
