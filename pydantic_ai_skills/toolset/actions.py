"""Single entry point for loading skills, reading their resources and running their scripts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Generic, TypeVar, cast

import anyio.to_thread
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn, ToolReturnPart
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillError, SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.execution import ScriptResult
from pydantic_ai_skills.execution.base import SkillScriptStoppedError
from pydantic_ai_skills.execution.gate import Gate
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.lookup import pick
from pydantic_ai_skills.types.script import ImportedCode, SkillScript
from pydantic_ai_skills.types.skill import DepsT, Skill, SkillFiles

from . import results
from .approvals import check_approval, note_import, note_request, was_import_approved
from .events import ResourceRead, ScriptFinished, SkillLoaded
from .history import SkillHistory
from .library import SkillLibrary
from .recording import Done, Recorder
from .script_files import ScriptFiles
from .typed_tools import TypedTools

T = TypeVar('T')

ScriptArguments = dict[str, Any] | list[Any] | str | None
"""Arguments as a model may write them."""


class SkillActions(Generic[DepsT]):
    """Loads skills, reads their resources and runs their scripts, and records each action."""

    def __init__(self, library: SkillLibrary[DepsT], history: SkillHistory[DepsT], recorder: Recorder[DepsT]) -> None:
        self.library = library
        self.history = history
        self.recorder = recorder
        self.typed = TypedTools(self.run, self.may_import)
        """The typed tools of the skills."""
        self.files = ScriptFiles()
        """The files that scripts wrote."""

    # --- Load -----------------------------------------------------------------------------------------------------

    async def render(self, skill: Skill[Any], *, arguments: str | None = None, framed: bool = True) -> str:
        """Read and render a skill whose code may be imported. Raises a `SkillError` if that is impossible."""
        return await _off_the_loop(skill, partial(read_and_render, skill, arguments=arguments, framed=framed))

    async def prepare(self, skill: Skill[Any], *, arguments: str | None = None, framed: bool = True) -> str:
        """Load a skill before a run, or once more in it: its text, with its typed tools made if nobody has to be asked.

        Raises:
            SkillError: It cannot be read, or it consists of code that only a run may decide about.
        """
        is_ready = await self.make_tools(skill)
        if skill.needs_import and not is_ready:
            raise SkillScriptExecutionError(
                f'The skill {skill.name!r} was not loaded: whether its code may be imported is decided in a run.'
            )
        return await self.render(skill, arguments=arguments, framed=framed)

    async def make_tools(self, skill: Skill[Any]) -> bool:
        """Make the typed tools of a skill before a run; return `False` if a run has to decide about its code.

        Raises:
            SkillError: Its `tools.py` cannot be imported.
        """
        code = await _imports(skill)
        if code is not None and not self._gate(skill).is_open_for(skill, code):
            return False
        await self._make_tools(skill, code)
        return True

    async def _make_tools(self, skill: Skill[Any], code: ImportedCode | None) -> None:
        """Make the typed tools of a skill; those that come with an import only with the code that may be imported."""
        if code or skill.tools or skill.tool_specs:
            await anyio.to_thread.run_sync(self.typed.make if code else self.typed.declare, skill)

    async def load(self, ctx: RunContext[DepsT], skill: Skill[Any], *, framed: bool = True) -> str:
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
        text = (await self.recorder.step(ctx, skill, 'load_skill', load)).value
        if approved is not None:
            note_import(ctx, skill.name, approved)
        return text

    async def _load(
        self, ctx: RunContext[DepsT], skill: Skill[Any], code: ImportedCode | None, *, framed: bool
    ) -> Done[str, SkillLoaded]:
        async with self.recorder.load(ctx, skill) as record:
            text = await self.render(skill, framed=framed)
            await self._make_tools(skill, code)
            repeated = self.history.was_sent(text, ctx)
            if repeated:
                text = results.already_loaded(skill)
            return record.done(text, bytes=len(text.encode()), repeated=repeated)

    # --- Import ---------------------------------------------------------------------------------------------------

    def _gate(self, skill: Skill[Any]) -> Gate:
        return self.library.owner_of(skill).gate

    async def _ask_to_import(self, ctx: RunContext[DepsT], code: SkillScript) -> str | None:
        """Ask a person to let the conversation import code; return the digest of what was approved just now."""
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
        return await anyio.to_thread.run_sync(lambda: skill.files)

    # --- Read -----------------------------------------------------------------------------------------------------

    async def read(self, ctx: RunContext[DepsT], skill: Skill[Any], resource_name: str, args: ScriptArguments) -> Any:
        """Read a resource of a skill, or a file that a script of this run wrote."""
        read = partial(self._read, ctx, skill, resource_name, args)
        return (await self.recorder.step(ctx, skill, 'read_skill_resource', read)).value

    async def _read(
        self, ctx: RunContext[DepsT], skill: Skill[Any], name: str, args: ScriptArguments
    ) -> Done[Any, ResourceRead]:
        async with self.recorder.read(ctx, skill) as record:
            value: Any = await anyio.to_thread.run_sync(self.files.read, ctx, name)
            if value is not None:
                record.name_resource(name)
            else:
                await anyio.to_thread.run_sync(skill.check_unchanged)
                files = await self._files(ctx, skill)
                if name == results.INSTRUCTIONS and all(name != resource.name for resource in files.resources):
                    text = await anyio.to_thread.run_sync(lambda: skill.content)
                    record.name_resource(name)
                    text = results.page_of(text, name, _page_number(args))
                    return record.done(text, resource_name=name, bytes=_size(text))
                resource = pick(name, files.resources, files.scripts, kind='resource', skill=skill.name)
                name = resource.name
                record.name_resource(name)
                if resource.function is not None:
                    value = await resource.read(ctx, args)
                    return record.done(value, resource_name=name, bytes=_size(value))
                value = await resource.read(ctx)
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
                raise ToolFailed(results.render_result(done.event.result, why=done.event.error))
            raise ToolFailed(done.event.error)
        if not isinstance(done.value, ScriptResult):
            return done.value
        return self._answer(ctx, done.value)

    async def _run(
        self, ctx: RunContext[DepsT], skill: Skill[Any], script: SkillScript | str, args: Any, *, ask: bool
    ) -> Done[Any, ScriptFinished]:
        if isinstance(script, str):
            files = await self._files(ctx, skill)
            script = pick(script, files.scripts, files.resources, kind='script', skill=skill.name)
        gate = self._gate(skill)
        ask = await gate.needs_approval(ctx, skill, script, args) or ask
        if ask:
            await check_approval(ctx, script, args)
        await anyio.to_thread.run_sync(skill.check_unchanged)
        # Preparing a script may reveal which arguments it takes, so the policy looks at them again.
        if await script.prepare(ctx, args) and await gate.needs_approval(ctx, skill, script, args) and not ask:
            await check_approval(ctx, script, args)
        async with self.recorder.run(ctx, skill, script) as record:
            value, ending = await _run_script(script, ctx, args)
            return record.done(value, script_name=script.name, **ending)

    def _answer(self, ctx: RunContext[DepsT], result: ScriptResult) -> ToolReturn:
        """What the model is told about a finished program, with the files it wrote."""
        if result.files:
            read_tool = self.history.tool_names(ctx)['read_skill_resource']
            text = results.render_result(result, self.files.keep(ctx, result), read_tool)
        else:
            text = results.render_result(result)
        if result.exit_code:
            raise ToolFailed(text)
        return ToolReturn(text, metadata=result)


async def _imports(skill: Skill[Any]) -> ImportedCode | None:
    """The code that loading a skill imports."""
    return skill.imports if skill.is_listed else await _off_the_loop(skill, lambda: skill.imports)


async def _off_the_loop(skill: Skill[Any], work: Callable[[], T]) -> T:
    """Read something of a skill in a thread, where a developer's function may be called for it and fail."""
    working = anyio.to_thread.run_sync(work)
    if skill.path is not None:
        return await working
    return await guarded(working, what=f'instructions of skill {skill.name!r}', error=SkillResourceLoadError)


def read_and_render(skill: Skill[Any], *, arguments: str | None = None, framed: bool = True) -> str:
    """Read all that loading a skill needs, then render it. It blocks.

    `arguments` are what a person typed after the skill's name. With `framed`, the instructions are in an element.
    """
    skill.check_unchanged()
    header, instructions = skill.read()
    if arguments is not None:
        from .invoke import fill_in_arguments  # only people give arguments

        instructions = fill_in_arguments(instructions, arguments)
    shown = skill.scripts[: results.MAX_FILES_SHOWN]
    usages = {script.name: usage for script in shown if script.function_schema is None and (usage := script.usage)}
    content = results.SkillContent(header, instructions, skill.resources, skill.scripts, usages)
    return results.render_skill(skill, content, framed=framed)


async def _run_script(script: SkillScript, ctx: RunContext[Any], args: Any) -> tuple[Any, dict[str, Any]]:
    """Run a script; return its value and the event fields for how it ended. A failure is an event, not an error."""
    started = perf_counter()

    def result_of(exit_code: int, stdout: str = '', stderr: str = '') -> ScriptResult:
        return ScriptResult(exit_code=exit_code, stdout=stdout, stderr=stderr, duration=perf_counter() - started)

    try:
        value = await script.run(ctx, args)
    except SkillScriptStoppedError as stopped:
        return None, {'outcome': 'stopped', 'result': stopped.result, 'error': str(stopped)}
    except (SkillError, ToolFailed) as failure:
        return None, {'outcome': 'failed', 'result': result_of(1, stderr=str(failure)), 'error': str(failure)}
    if isinstance(value, ScriptResult):
        return value, {'outcome': 'failed' if value.exit_code else 'success', 'result': value}
    return value, {'outcome': 'success', 'result': result_of(0, stdout=_text(value))}


def _page_number(args: ScriptArguments) -> int:
    """The page a model asks for; anything else means the first."""
    from pydantic_ai_skills.execution.arguments import as_mapping  # not needed before the first call

    try:
        return int(cast(Any, as_mapping(args))['page'])
    except (ValueError, TypeError, KeyError, OverflowError):
        return 1


def _text(value: Any) -> str:
    """What the model reads when it is sent this as the result of a tool."""
    if value is None or isinstance(value, str):
        return value or ''
    try:
        return ToolReturnPart('', value, '').model_response_str()
    except ValueError:
        return repr(value)


def _size(value: Any) -> int:
    return len(value.data) if isinstance(value, BinaryContent) else len(_text(value).encode())
