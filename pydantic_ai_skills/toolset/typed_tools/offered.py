"""Makes the typed tools of skills, each with a unique name that starts with its skill's."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from pydantic_ai_skills.directory.folder_skill import TOOLS_MODULE
from pydantic_ai_skills.exceptions import SkillToolsError
from pydantic_ai_skills.filesystem.safe_open import FileStamp
from pydantic_ai_skills.parsing.skill_names import MAX_TOOL_NAME_LENGTH, tool_name
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.toolset.library import may_read
from pydantic_ai_skills.toolset.recording import about_problem
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import Skill

if TYPE_CHECKING:
    from pydantic_ai_skills.parsing.tool_specs import ToolSpec

    from .declared import RunScript

logger = logging.getLogger('pydantic_ai_skills')


@dataclass(kw_only=True, eq=False, repr=False)
class SkillTools:
    """The typed tools of one skill."""

    skill: Skill[Any]
    """The skill."""

    tools: dict[str, Tool[Any]] = field(default_factory=dict[str, Tool[Any]])
    """The tools by the names the model sees."""

    problems: list[SkillProblem] = field(default_factory=list[SkillProblem])
    """Problems with the tools."""

    declared: frozenset[str] = frozenset()
    """The names of the tools that need no import of `tools.py`."""

    in_python: int = 0
    """How many tools written in Python the skill had when these were made."""

    has_module: bool = False
    """Whether `tools.py` was imported, or does not exist."""

    stamp: FileStamp | None = None
    """The version of `tools.py` that was imported."""

    _toolset: FunctionToolset[Any] | None = None

    @property
    def toolset(self) -> FunctionToolset[Any]:
        """The tools as pydantic-ai offers and calls them."""
        if self._toolset is None or len(self._toolset.tools) < len(self.tools):
            self._toolset = FunctionToolset[Any](tools=list(self.tools.values()))
        return self._toolset

    def report(self, found: SkillProblem) -> None:
        """Note a problem, and log it."""
        self.problems.append(found)
        logger.warning('%s', found, extra=about_problem(found))

    def add(self, tool: Tool[Any]) -> None:
        """Add a tool under the skill's name, or report why it cannot be offered."""
        place = self.skill.path or self.skill.uri
        own_name = tool.name.replace('-', '_')
        name = tool_name(self.skill.name, own_name)
        code, wrong = '', ''
        if not (own_name.isascii() and own_name.isidentifier()):
            code, wrong = 'tool-invalid', 'a name is made of Latin letters, digits and underscores'
        elif len(name) > MAX_TOOL_NAME_LENGTH:
            code, wrong = 'tool-name-too-long', f'{name!r} has more than {MAX_TOOL_NAME_LENGTH} characters'
        elif name in self.tools:
            code, wrong = 'tool-name-clash', f'another tool is called {name!r} already'
        if code:
            self.report(problem(code, place, f'The tool {tool.name!r} is left out: {wrong}.'))
            return
        offered = copy(tool)
        offered.name = name
        # The model sees it whenever the skill is loaded.
        offered.defer_loading = False
        self.tools[name] = offered


class TypedTools:
    """Makes the typed tools of skills when they are needed, and keeps them until their skills change."""

    def __init__(self, run: RunScript) -> None:
        self._run = run
        self._made: dict[str, SkillTools] = {}
        self._lock = threading.RLock()

    def problems(self, skills: Mapping[str, Skill[Any]]) -> Iterator[SkillProblem]:
        """The problems with the tools made so far for these skills."""
        for made in list(self._made.values()):
            if skills.get(made.skill.name) is made.skill:
                yield from made.problems

    def known(self, skill: Skill[Any], *, whole: bool = True) -> SkillTools | None:
        """The tools of a skill if they were made before; with `whole`, only if those of `tools.py` are among them."""
        made = self._made.get(skill.name)
        if made is None or made.skill is not skill or made.in_python != len(skill.tools):
            return None
        return made if made.has_module or not whole else None

    def owner(self, name: str) -> SkillTools | None:
        """The tools of the skill that a tool of this name belongs to, if they were made before."""
        return next((made for made in list(self._made.values()) if name in made.tools), None)

    def declare(self, skill: Skill[Any]) -> SkillTools:
        """Make the tools that need no import: those in Python and those declared in the frontmatter."""
        with self._lock:
            known = self.known(skill, whole=False)
            if known is not None:
                return known
            files = skill.files  # listed first: some skills know their tools only then
            made = SkillTools(skill=skill, in_python=len(skill.tools), has_module=not files.tools_module)
            for tool in skill.tools:
                made.add(tool)
            if skill.tool_specs:
                self._add_declared(made)
            made.declared = frozenset(made.tools)
            self._made[skill.name] = made
            return made

    def _add_declared(self, made: SkillTools) -> None:
        from .declared import declared_tool  # few skills declare tools

        skill = made.skill
        for spec in skill.tool_specs:
            script = _script_of(spec, skill)
            if script is None:
                message = f'The tool {spec.name!r} is left out: the skill has no file {spec.script!r}.'
                made.report(problem('tool-script-missing', skill.path or skill.uri, message))
            else:
                made.add(declared_tool(spec, skill, script, self._run))

    def make(self, skill: Skill[Any]) -> SkillTools:
        """Make all tools of a skill. It reads files and imports `tools.py`, so call it off the event loop.

        Raises:
            SkillToolsError: `tools.py` cannot be imported.
        """
        with self._lock:
            made = self.declare(skill)
            if skill.path is None or not skill.files.tools_module:
                return made
            from .module import import_tools, module_stamp  # few skills have a `tools.py`

            stamp = module_stamp(skill.path)
            if stamp is None or (made.has_module and made.stamp == stamp):
                return made
            # Another version of `tools.py` may have fewer tools.
            del self._made[skill.name]
            made = self.declare(skill)
            if skill.is_trusted:
                try:
                    for tool in import_tools(skill):
                        made.add(tool)
                except SkillToolsError:
                    del self._made[skill.name]
                    raise
            else:
                message = 'It is not imported: its source is not trusted. Mark the registry as trusted to allow it.'
                made.report(problem('tools-untrusted', f'{skill.path}/{TOOLS_MODULE}', message))
            made.has_module, made.stamp = True, stamp
            return made

    async def of(self, skill: Skill[Any]) -> SkillTools:
        """All tools of a skill, as `make` makes them, off the event loop."""
        return self.known(skill) or await self._made_by(self.make, skill)

    async def _made_by(self, make: Callable[[Skill[Any]], SkillTools], skill: Skill[Any]) -> SkillTools:
        if may_read():
            return await anyio.to_thread.run_sync(make, skill)
        # In the code of a Temporal workflow, only what is known already can be offered.
        return self.declare(skill) if skill.is_listed else SkillTools(skill=skill)

    async def deferred(
        self, skills: Iterable[Skill[Any]], ctx: RunContext[Any], *, loaded: Collection[str]
    ) -> dict[str, ToolsetTool[Any]]:
        """The tools of deferred skills, which pydantic-ai holds back until the skill's capability is loaded.

        Tools that need no import are offered from the start, so that the definitions a provider caches stay the same.
        """
        tools: dict[str, ToolsetTool[Any]] = {}
        for skill in skills:
            if skill.name in loaded:
                found = await self.offered([skill], ctx)
            elif skill.tools or skill.tool_specs:
                made = self.known(skill, whole=False) or await self._made_by(self.declare, skill)
                every = await made.toolset.get_tools(ctx)
                found = {name: tool for name, tool in every.items() if name in made.declared}
            else:
                continue
            for name, tool in found.items():
                tool_def = replace(tool.tool_def, defer_loading=True, capability_id=skill.name)
                tools[name] = replace(tool, tool_def=tool_def)
        return tools

    async def offered(self, skills: Iterable[Skill[Any]], ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools of these skills for a request, in the order of the skills."""
        tools: dict[str, ToolsetTool[Any]] = {}
        for skill in skills:
            try:
                made = await self.of(skill)
            except SkillToolsError:
                # It was logged, and the model was told when it loaded the skill. The other tools still work.
                made = await self._made_by(self.declare, skill)
            tools |= await made.toolset.get_tools(ctx)
        return tools


def _script_of(spec: ToolSpec, skill: Skill[Any]) -> SkillScript | None:
    """The script that a declared tool names: any file in the skill's folder."""
    scripts = {script.name: script for script in skill.scripts}
    script = scripts.get(spec.script) or _file_as_script(spec.script, skill)
    if script is None or spec.timeout is None or script.executor is None:
        return script
    from pydantic_ai_skills.execution.base import with_timeout  # few tools have a timeout of their own

    limited = copy(script)
    limited.executor = with_timeout(script.executor, spec.timeout, may_extend=skill.is_trusted)
    return limited


def _file_as_script(name: str, skill: Skill[Any]) -> SkillScript | None:
    if skill.path is None or all(resource.name != name for resource in skill.resources):
        return None
    folder = Path(skill.path)
    executor = skill.scripts[0].executor if skill.scripts else None
    return SkillScript(name, uri=str(folder / name), skill_name=skill.name, skill_dir=folder, executor=executor)
