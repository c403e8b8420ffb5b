"""Makes the typed tools of skills, each with a unique name that starts with its skill's."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from pydantic_ai_skills.directory.settings import TOOLS_MODULE
from pydantic_ai_skills.exceptions import SkillToolsError
from pydantic_ai_skills.execution.gate import describe_script
from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.filesystem.safe_open import FileStamp
from pydantic_ai_skills.parsing.skill_names import MAX_TOOL_NAME_LENGTH, tool_name
from pydantic_ai_skills.problems import SkillProblem, about_problem, problem
from pydantic_ai_skills.toolset.library import may_read
from pydantic_ai_skills.types.found_skills import same_objects
from pydantic_ai_skills.types.lookup import program
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import Skill

if TYPE_CHECKING:
    from pydantic_ai_skills.parsing.tool_specs import ToolSpec

    from .declared import RunScript

logger = logging.getLogger('pydantic_ai_skills')

MayImport = Callable[[RunContext[Any], Skill[Any], SkillScript, str | None], Awaitable[bool]]
"""Whether a run may use the code of a skill; the digest is that of code imported before. `SkillActions.may_import`."""


WAITING = 'pydantic_ai_skills.waiting'
"""Marks a tool whose skill is not loaded, in the metadata of its definition."""

PATIENCE = 1_000
"""How often a run may call a tool whose skill is not loaded."""


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

    functions: dict[str, str] = field(default_factory=dict[str, str])
    """The skill's own names of the tools that are Python functions, by the names the model sees."""

    in_python: tuple[Tool[Any], ...] = ()
    """The tools written in Python that the skill had when these were made."""

    has_module: bool = False
    """Whether `tools.py` was imported, or does not exist."""

    stamp: FileStamp | None = None
    """The version of `tools.py` that was imported."""

    digest: str | None = None
    """The digest of the skill's folder when `tools.py` was imported, as a person approves it."""

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

    def add(self, tool: Tool[Any], *, is_function: bool = True) -> None:
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
        if is_function:
            self.functions[name] = tool.name


class TypedTools:
    """Makes the typed tools of skills when they are needed, and keeps them until their skills change."""

    def __init__(self, run: RunScript, may_import: MayImport) -> None:
        self._run = run
        self._may_import = may_import
        self._made: dict[str, SkillTools] = {}
        self._kept_of: Mapping[str, Skill[Any]] | None = None
        self._lock = ThreadLock()

    def __getstate__(self) -> dict[str, Any]:
        # A copy makes the tools of its skills itself.
        return {**vars(self), '_made': {}, '_kept_of': None}

    def keep_only(self, skills: Mapping[str, Skill[Any]]) -> None:
        """Forget the tools of skills that are gone or replaced, and with them the modules of `tools.py` files."""
        if self._kept_of is not skills:
            with self._lock:
                self._kept_of = skills
                self._made = {name: made for name, made in self._made.items() if skills.get(name) is made.skill}

    def problems(self, skills: Mapping[str, Skill[Any]]) -> Iterator[SkillProblem]:
        """The problems with the tools made so far for these skills."""
        for made in list(self._made.values()):
            if skills.get(made.skill.name) is made.skill:
                yield from made.problems

    def names(self, skill: Skill[Any]) -> list[str]:
        """The names of the tools made for a skill so far."""
        made = self.known(skill, whole=False)
        return list(made.tools) if made else []

    def known(self, skill: Skill[Any], *, whole: bool = True) -> SkillTools | None:
        """The tools of a skill if they were made before; with `whole`, only if those of `tools.py` are among them."""
        made = self._made.get(skill.name)
        if made is None or made.skill is not skill or not same_objects(made.in_python, skill.tools):
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
            made = SkillTools(skill=skill, in_python=tuple(skill.tools), has_module=files.tools_module is None)
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
                made.add(declared_tool(spec, skill, script, self._run), is_function=False)

    def make(self, skill: Skill[Any]) -> SkillTools:
        """Make all tools of a skill whose code may be imported. It reads files and imports `tools.py`, so it blocks.

        Raises:
            SkillToolsError: `tools.py` cannot be imported.
        """
        with self._lock:
            made = self.declare(skill)
            if skill.path is None or skill.files.tools_module is None:
                return made
            from .module import import_tools, module_stamp  # few skills have a `tools.py`

            stamp = module_stamp(skill.path)
            if stamp is None or (made.has_module and made.stamp == stamp):
                return made
            # Another version of `tools.py` may have fewer tools.
            del self._made[skill.name]
            made = self.declare(skill)
            made.digest = describe_script(skill.files.tools_module, None).digest
            try:
                for tool in import_tools(skill, made):
                    made.add(tool)
            except SkillToolsError as error:
                del self._made[skill.name]
                failed = problem('import-failed', f'{skill.path}/{TOOLS_MODULE}', str(error))
                self.declare(skill).problems.append(failed)  # already logged
                raise
            made.has_module, made.stamp = True, stamp
            return made

    def leave_out(self, skill: Skill[Any], why: str) -> None:
        """Report that `tools.py` is not imported."""
        self.declare(skill).report(problem('tools-refused', f'{skill.path}/{TOOLS_MODULE}', why))

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
            is_loaded = skill.name in loaded
            found = await self.offered([skill], ctx) if is_loaded else await self.waiting([skill], ctx)
            for name, tool in found.items():
                tool_def = replace(tool.tool_def, defer_loading=True, capability_id=skill.name)
                tools[name] = replace(tool, tool_def=tool_def)
        return tools

    async def waiting(self, skills: Iterable[Skill[Any]], ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools of skills that are not loaded, marked as such: those that need no import.

        A model that calls one is told to load the skill, as often as it takes.
        """
        tools: dict[str, ToolsetTool[Any]] = {}
        for skill in skills:
            if skill.tools or skill.tool_specs:
                made = self.known(skill, whole=False) or await self._made_by(self.declare, skill)
                for name, tool in (await made.toolset.get_tools(ctx)).items():
                    if name in made.declared:
                        metadata = {**(tool.tool_def.metadata or {}), WAITING: skill.name}
                        tool_def = replace(tool.tool_def, metadata=metadata)
                        tools[name] = replace(tool, tool_def=tool_def, max_retries=PATIENCE)
        return tools

    async def offered(self, skills: Iterable[Skill[Any]], ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools of these skills for a request, in the order of the skills."""
        tools: dict[str, ToolsetTool[Any]] = {}
        for skill in skills:
            tools |= await self._of_loaded(skill, ctx)
        return tools

    async def _of_loaded(self, skill: Skill[Any], ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools of a loaded skill; those that need an import only if this run may use its code."""
        may_import = await self._may_use_code(skill, ctx)
        if skill.needs_import and not may_import:
            return {}
        try:
            made = self.known(skill, whole=may_import) or await self._made_by(
                self.make if may_import else self.declare, skill
            )
        except SkillToolsError:
            # It was logged, and the model was told when it loaded the skill. The other tools still work.
            made = await self._made_by(self.declare, skill)
        tools = await made.toolset.get_tools(ctx)
        return tools if may_import else {name: tool for name, tool in tools.items() if name in made.declared}

    async def _may_use_code(self, skill: Skill[Any], ctx: RunContext[Any]) -> bool:
        known = self.known(skill)
        if known is None and not may_read():
            return False  # in the code of a Temporal workflow, only what is known already can be offered
        if skill.is_listed or skill.needs_import:
            code = skill.imports
        else:
            code = await anyio.to_thread.run_sync(lambda: skill.imports)
        return code is None or await self._may_import(ctx, skill, code, known and known.digest)


def _script_of(spec: ToolSpec, skill: Skill[Any]) -> SkillScript | None:
    """The script that a declared tool names: any file in the skill's folder."""
    scripts = {script.name: script for script in skill.scripts}
    script = scripts.get(spec.script) or _file_as_script(spec.script, skill)
    if script is None or spec.timeout is None or script.executor is None:
        return script
    from pydantic_ai_skills.execution.base import with_timeout  # few tools have a timeout of their own

    limited = copy(script)
    limited.executor = with_timeout(script.executor, spec.timeout)
    return limited


def _file_as_script(name: str, skill: Skill[Any]) -> SkillScript | None:
    files = skill.files
    is_there = any(file.name == name for file in (*files.resources, *files.unlisted))
    return program(name, skill, files, any_file=True) if is_there else None
