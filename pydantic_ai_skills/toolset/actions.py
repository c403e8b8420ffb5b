"""Single entry point for loading skills, reading their resources and running their scripts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, cast

import anyio.to_thread
from pydantic import WithJsonSchema
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillError, SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.execution.gate import Gate
from pydantic_ai_skills.execution.work_dir import WorkDirs
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.instructions import write_instructions
from pydantic_ai_skills.types.lookup import find_resource, find_script, place_in
from pydantic_ai_skills.types.resource import SkillResource
from pydantic_ai_skills.types.script import ImportedCode, SkillScript
from pydantic_ai_skills.types.skill import DepsT, Skill, SkillFiles

from . import results
from .approvals import check_approval, note_import, note_request, was_import_approved
from .given import needs_capability
from .history import SkillHistory
from .library import SkillLibrary
from .typed_tools import TypedTools
from .work_folder import WORK_PREFIX, read_from_work_dir

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.result import ScriptResult

    from .events import ResourceRead, ScriptFinished, SkillLoaded
    from .recording import Done, Recorder

logger = logging.getLogger('pydantic_ai_skills')

T = TypeVar('T')

_Words = Annotated[list[Any], WithJsonSchema({'type': 'array', 'items': {'type': 'string'}})]
# Strict mode needs a type for items and forbids undeclared keys in objects, so items are declared as text.

ScriptArguments = dict[str, Any] | _Words | str | None
"""Arguments as a model may write them."""

ResourceArguments = dict[str, Any] | str | None
"""Arguments of a resource."""


class SkillActions(Generic[DepsT]):
    """Loads skills, reads their resources and runs their scripts, and records each action."""

    def __init__(
        self,
        library: SkillLibrary[DepsT],
        history: SkillHistory[DepsT],
        work_dirs: WorkDirs,
    ) -> None:
        self.library = library
        self.history = history
        self.typed = TypedTools(self.run, self.may_import)
        """The typed tools of the skills."""
        self._warned: set[str] = set()
        self.work_dirs = work_dirs
        """The folders in which scripts start, read and write."""

    @cached_property
    def recorder(self) -> Recorder[DepsT]:
        """Records loads, reads and runs as spans, logs and events."""
        from .recording import Recorder  # the library has imported it before a run calls a tool

        return Recorder(self.history.toolset_id)

    # --- Load -----------------------------------------------------------------------------------------------------

    async def prepare(
        self, skill: Skill[Any], ctx: RunContext[DepsT] | None, *, arguments: str | None = None, framed: bool = True
    ) -> str:
        """The text of a skill, before or during a run. Its typed tools are made unless only a run can decide on that.

        Raises:
            SkillError: It cannot be read, or it consists of code whose import only a run can decide on.
        """
        is_ready = await self.make_tools(skill)
        if skill.needs_import and not is_ready:
            raise SkillScriptExecutionError(
                f'The skill {skill.name!r} was not loaded: whether its code may be imported is decided in a run.'
            )
        return await render(skill, ctx, arguments=arguments, framed=framed)

    async def make_tools(self, skill: Skill[Any]) -> bool:
        """Make the typed tools of a skill before a run; return `False` if only a run can decide to import its code.

        Raises:
            SkillError: Its `tools.py` cannot be imported.
        """
        code = await _imports(skill)
        if code is not None and not self._gate(skill).is_open_for(skill, code):
            return False
        await self._make_tools(skill, code)
        return True

    async def _make_tools(self, skill: Skill[Any], code: ImportedCode | None) -> None:
        """Make the typed tools of a skill, and with `code`, which may be imported, those that need an import too."""
        if code or skill.tools or skill.tool_specs:
            await anyio.to_thread.run_sync(self.typed.make if code else self.typed.declare, skill)

    async def load(self, ctx: RunContext[DepsT], skill: Skill[Any], *, framed: bool = True) -> Done[str, SkillLoaded]:
        """Load a skill for a model: its text, or a short answer if the model can read that already.

        Raises:
            ApprovalRequired: A person has to approve the import of its code first.
            SkillError: It cannot be read, or it consists of code that may not be imported.
        """
        code, asks = await _imports(skill), False
        try:
            asks = code is not None and await self._gate(skill).needs_approval(ctx, skill, code, None)
        except SkillScriptExecutionError as refusal:
            if skill.needs_import:
                raise
            self.typed.leave_out(skill, str(refusal))
            code = None
        approved = await self._ask_to_import(ctx, code) if code is not None and asks else None
        load = partial(self._load, ctx, skill, code, framed=framed)
        done = await self.recorder.step(ctx, skill, 'load_skill', load)
        self._warn_once(skill)
        if approved is not None:
            note_import(ctx, skill.name, approved)
        return done

    async def _load(
        self, ctx: RunContext[DepsT], skill: Skill[Any], code: ImportedCode | None, *, framed: bool
    ) -> Done[str, SkillLoaded]:
        async with self.recorder.load(ctx, skill) as record:
            text = await render(skill, ctx, framed=framed)
            await self._make_tools(skill, code)
            repeated = self.history.was_sent(text, ctx) or (framed and self.history.is_being_sent(skill, ctx))
            if repeated:
                text = results.already_loaded(skill)
            return record.done(text, bytes=len(text.encode()), repeated=repeated)

    def _warn_once(self, skill: Skill[Any]) -> None:
        """Warn, at its first load, that a skill from a folder has settings that only the capability applies."""
        if self.history.has_capability or skill.path is None or skill.name in self._warned:
            return
        self._warned.add(skill.name)
        if skill.allowed_tools and (missing := needs_capability(skill)):
            logger.warning('%s', missing)

    # --- Import ---------------------------------------------------------------------------------------------------

    def _gate(self, skill: Skill[Any]) -> Gate:
        return self.library.owner_of(skill).gate

    async def _ask_to_import(self, ctx: RunContext[DepsT], code: SkillScript) -> str | None:
        """Ask a person to let the conversation import code; return its digest, or `None` if it was approved before."""
        if await was_import_approved(ctx, code):
            return None
        try:
            return await check_approval(ctx, code, None)
        except ApprovalRequired as request:
            note_request(ctx, request)
            raise

    async def may_import(
        self, ctx: RunContext[DepsT], skill: Skill[Any], code: SkillScript, digest: str | None = None
    ) -> bool:
        """Whether a run may use the code of a skill without asking again; `digest` is that of code imported before."""
        try:
            asks = await self._gate(skill).needs_approval(ctx, skill, code, None)
            return not asks or await was_import_approved(ctx, code, digest)
        except SkillScriptExecutionError:
            return False

    async def _files(self, ctx: RunContext[DepsT], skill: Skill[Any]) -> SkillFiles:
        """The files of a skill, if they can be listed without importing code that a run may not use."""
        code = skill.imports if skill.needs_import else None
        if code is not None and not await self.may_import(ctx, skill, code):
            raise SkillScriptExecutionError(f'The skill {skill.name!r} has to be loaded first.')
        return skill.known_files or await anyio.to_thread.run_sync(lambda: skill.files)

    # --- Read -----------------------------------------------------------------------------------------------------

    async def read(self, ctx: RunContext[DepsT], skill: Skill[Any], resource_name: str, args: ScriptArguments) -> Any:
        """Read a resource of a skill, or a file in the work folder."""
        read = partial(self._read, ctx, skill, resource_name, args)
        return (await self.recorder.step(ctx, skill, 'read_skill_resource', read)).value

    async def _read(
        self, ctx: RunContext[DepsT], skill: Skill[Any], name: str, args: ScriptArguments
    ) -> Done[Any, ResourceRead]:
        from .skill_text import names_in

        async with self.recorder.read(ctx, skill) as record:
            await anyio.to_thread.run_sync(skill.check_unchanged)
            files = await self._files(ctx, skill)
            value: Any = None
            if _means_instructions(name, skill, files):
                name = results.INSTRUCTIONS
                value = await write_instructions(skill, ctx) or await anyio.to_thread.run_sync(lambda: skill.content)
            elif all(name != resource.name for resource in files.resources):
                value = await read_from_work_dir(self.work_dirs, ctx, name)
                value = names_in(name, files) if value is None else value
            if value is None:
                resource = find_resource(name, skill, files)
                name = resource.name
                record.name_resource(name)
                if resource.function is not None or resource.has_own_load:
                    value = await _load_resource(resource, ctx, args)
                    return record.done(value, resource_name=name, bytes=_size(value))
                value = await resource.read(ctx)
            record.name_resource(name)
            if isinstance(value, str):
                value = results.page_of(value, name, _page_number(args))
            return record.done(value, resource_name=name, bytes=_size(value))

    # --- Run ------------------------------------------------------------------------------------------------------

    async def run(
        self, ctx: RunContext[DepsT], skill: Skill[Any], script: SkillScript | str, args: Any, *, ask: bool = False
    ) -> Any:
        """Run a script of a skill, if the gate allows it. With `ask`, a person has to approve it in any case.

        Raises:
            SkillError: The script does not exist, or may not run.
            ApprovalRequired: A person has to approve it first.
            ToolFailed: It failed, or was stopped.
        """
        run = partial(self._run, ctx, skill, script, args, ask=ask)
        try:
            done = await self.recorder.step(ctx, skill, 'run_skill_script', run)
        except ApprovalRequired as request:
            # Outside of the step: a replayed step would not change the messages.
            note_request(ctx, request)
            raise
        if done.event.error is not None:
            if done.event.outcome == 'stopped':
                raise ToolFailed(await self._told(ctx, skill, done.event.result, why=done.event.error))
            raise ToolFailed(done.event.error)
        result = done.value
        if result is not done.event.result:  # a value of a function, or of an executor of the developer's
            return result
        text = await self._told(ctx, skill, result)
        if result.exit_code:
            raise ToolFailed(text)
        return ToolReturn(text, metadata=result)

    async def _run(
        self, ctx: RunContext[DepsT], skill: Skill[Any], script: SkillScript | str, args: Any, *, ask: bool
    ) -> Done[Any, ScriptFinished]:
        if isinstance(script, str):
            files = await self._files(ctx, skill)
            # A program that is not offered is looked for in the folder.
            script = await anyio.to_thread.run_sync(find_script, script, skill, files)
        gate = self._gate(skill)
        if gate.refusal(skill, script) is None:
            await script.fetch()
        ask = await gate.needs_approval(ctx, skill, script, args) or ask
        if ask:
            await check_approval(ctx, script, args)
        await anyio.to_thread.run_sync(skill.check_unchanged)
        # Preparing a script may reveal which arguments it takes, so the policy looks at them again.
        if await script.prepare(ctx, args) and await gate.needs_approval(ctx, skill, script, args) and not ask:
            await check_approval(ctx, script, args)
        async with self.recorder.run(ctx, skill) as record:
            record.name_resource(script.name)
            async with self.recorder.streamed(ctx, script) as told:
                value, ending = await self._run_in_work_dir(told, ctx, args)
            return record.done(value, script_name=script.name, **ending)

    async def call(
        self, ctx: RunContext[DepsT], skill: Skill[Any], name: str, work: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Call a tool of a skill that is a Python function, and record it like a script. Its errors propagate."""
        from .recording import ending_of

        failure: Exception | None = None

        async def attempt() -> Any:
            nonlocal failure
            try:
                return await work()
            except (SkillError, ToolFailed, ModelRetry) as error:
                failure = error
                raise ToolFailed(str(error)) from error

        async def recorded() -> Done[Any, ScriptFinished]:
            async with self.recorder.run(ctx, skill) as record:
                value, ending = await ending_of(attempt)
                return record.done(value, script_name=name, **ending)

        done = await self.recorder.step(ctx, skill, None, recorded)
        if failure is not None:
            raise failure
        return done.value

    async def _run_in_work_dir(
        self, script: SkillScript, ctx: RunContext[DepsT], args: Any
    ) -> tuple[Any, dict[str, Any]]:
        from .recording import failed, run_script

        if script.path is None:
            return await run_script(script, ctx, args)
        try:
            async with self.work_dirs.use(ctx) as work_dir:
                return await run_script(script.in_work_dir(work_dir), ctx, args)
        except SkillScriptExecutionError as failure:
            return None, failed(failure, 0.0)

    async def _told(self, ctx: RunContext[DepsT], skill: Skill[Any], result: ScriptResult, why: str = '') -> str:
        """What the model is told about a program, with the names under which its files can be read."""
        if not result.files:
            return results.render_result(result, why=why)
        own = {resource.name for resource in (await self._files(ctx, skill)).resources}
        names = [f'{WORK_PREFIX}{file.name}' if file.name in own else file.name for file in result.files]
        return results.render_result(result, names, self.history.tool_names(ctx)['read_skill_resource'], why)


async def _imports(skill: Skill[Any]) -> ImportedCode | None:
    """The code that loading a skill imports."""
    return skill.imports if skill.is_listed else await _off_the_loop(skill, lambda: skill.imports)


async def _off_the_loop(skill: Skill[Any], work: Callable[[], T]) -> T:
    """Read something of a skill in a worker thread. A failure of a developer's function is logged and wrapped."""
    working = anyio.to_thread.run_sync(work)
    if skill.path is not None:
        return await working
    return await guarded(working, what=f'instructions of skill {skill.name!r}', error=SkillResourceLoadError)


async def render(
    skill: Skill[Any], ctx: RunContext[Any] | None, *, arguments: str | None = None, framed: bool = True
) -> str:
    """Read and render a skill whose code may be imported.

    `arguments` are what a person typed after the skill's name. With `framed`, the instructions are in an element.

    Raises:
        SkillError: It cannot be read.
    """
    written = await write_instructions(skill, ctx) if skill.path is None else None
    return await _off_the_loop(
        skill, partial(read_and_render, skill, written=written, arguments=arguments, framed=framed)
    )


def read_and_render(
    skill: Skill[Any], *, written: str | None = None, arguments: str | None = None, framed: bool = True
) -> str:
    """Like `render`, but blocking, and with the instructions that a function has `written` for this run, if any."""
    from .skill_text import MAX_SCRIPTS_EXPLAINED, SkillContent, needs_usage, render_skill

    skill.check_unchanged()
    header, instructions = skill.read() if written is None else (skill.header, written)
    if arguments is not None:
        from .invoke import fill_in_arguments  # only people give arguments

        instructions = fill_in_arguments(instructions, arguments)
    to_explain = [script for script in skill.scripts if needs_usage(script, instructions)][:MAX_SCRIPTS_EXPLAINED]
    usages = {script.name: usage for script in to_explain if (usage := script.usage)}
    content = SkillContent(header, instructions, skill.resources, skill.scripts, usages)
    return render_skill(skill, content, framed=framed)


async def _load_resource(resource: SkillResource, ctx: RunContext[Any], args: ScriptArguments) -> Any:
    """The value that the function of a resource, or the `load` of its subclass, returns."""
    if not resource.has_own_load:
        return await resource.read(ctx, args)
    what = f'resource {resource.name!r}'
    return await guarded(resource.load(ctx, args), what=what, error=SkillResourceLoadError)


def _means_instructions(name: str, skill: Skill[Any], files: SkillFiles) -> bool:
    """Whether a name means the `SKILL.md` of a skill, and not a resource of that name."""
    path = place_in(name, skill).path
    is_named_so = path.casefold() == results.INSTRUCTIONS.casefold()
    return is_named_so and all(resource.name not in (name, path) for resource in files.resources)


def _page_number(args: ScriptArguments) -> int:
    """The page a model asks for; anything else means the first."""
    from pydantic_ai_skills.execution.arguments import as_mapping  # not needed before the first call

    try:
        return int(cast(Any, as_mapping(args))['page'])
    except (ValueError, TypeError, KeyError, OverflowError):
        return 1


def _size(value: Any) -> int:
    return len(value.data) if isinstance(value, BinaryContent) else len(results.text_of_value(value).encode())
