"""Single entry point for loading skills, reading their resources and running their scripts."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any, Generic, cast

import anyio.to_thread
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn, ToolReturnPart
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillError, SkillResourceLoadError
from pydantic_ai_skills.execution import ScriptResult
from pydantic_ai_skills.execution.base import SkillScriptStoppedError
from pydantic_ai_skills.execution.gate import needs_approval
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.lookup import pick
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import DepsT, Skill

from . import results
from .approvals import check_approval, note_request
from .events import ResourceRead, ScriptFinished, SkillLoaded
from .history import SkillHistory
from .library import SkillLibrary
from .recording import Done, Recorder
from .script_files import ScriptFiles
from .typed_tools import TypedTools

ScriptArguments = dict[str, Any] | list[Any] | str | None
"""Arguments as a model may write them."""


class SkillActions(Generic[DepsT]):
    """Loads skills, reads their resources and runs their scripts, and records each action."""

    def __init__(self, library: SkillLibrary[DepsT], history: SkillHistory[DepsT], recorder: Recorder[DepsT]) -> None:
        self.library = library
        self.history = history
        self.recorder = recorder
        self.typed = TypedTools(self.run)
        """The typed tools of the skills."""
        self.files = ScriptFiles()
        """The files that scripts wrote."""

    # --- Load -----------------------------------------------------------------------------------------------------

    async def render(self, skill: Skill[Any], *, arguments: str | None = None, framed: bool = True) -> str:
        """Read and render a skill, and make its typed tools. Raises a `SkillError` if either is impossible."""
        reading = anyio.to_thread.run_sync(partial(read_and_render, skill, arguments=arguments, framed=framed))
        if skill.path is None:  # a developer's function may return them
            what = f'instructions of skill {skill.name!r}'
            reading = guarded(reading, what=what, error=SkillResourceLoadError)
        text = await reading
        if skill.tools or skill.tool_specs or skill.files.tools_module:
            await anyio.to_thread.run_sync(self.typed.make, skill)
        return text

    async def load(self, ctx: RunContext[DepsT], skill: Skill[Any], *, framed: bool = True) -> str:
        """Load a skill for a model: its text, or a short answer if the model can read that already."""
        load = partial(self._load, ctx, skill, framed=framed)
        return (await self.recorder.step(ctx, skill, 'load_skill', load)).value

    async def _load(self, ctx: RunContext[DepsT], skill: Skill[Any], *, framed: bool) -> Done[str, SkillLoaded]:
        async with self.recorder.load(ctx, skill) as record:
            text = await self.render(skill, framed=framed)
            repeated = self.history.was_sent(text, ctx)
            if repeated:
                text = results.already_loaded(skill)
            return record.done(text, bytes=len(text.encode()), repeated=repeated)

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
                files = await anyio.to_thread.run_sync(lambda: skill.files)
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
            stopped = done.event.outcome == 'stopped'
            output = f'\n{results.render_result(done.event.result)}' if stopped else ''
            raise ToolFailed(f'{done.event.error}{output}')
        if not isinstance(done.value, ScriptResult):
            return done.value
        return self._answer(ctx, done.value)

    async def _run(
        self, ctx: RunContext[DepsT], skill: Skill[Any], script: SkillScript | str, args: Any, *, ask: bool
    ) -> Done[Any, ScriptFinished]:
        if isinstance(script, str):
            files = await anyio.to_thread.run_sync(lambda: skill.files)
            script = pick(script, files.scripts, files.resources, kind='script', skill=skill.name)
        policy = self.library.owner_of(skill).script_policy
        ask = await needs_approval(policy, ctx, skill, script, args) or ask
        if ask:
            await check_approval(ctx, script, args)
        # Preparing a script may reveal which arguments it takes, so the policy looks at them again.
        if await script.prepare(ctx, args) and await needs_approval(policy, ctx, skill, script, args) and not ask:
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


def read_and_render(skill: Skill[Any], *, arguments: str | None = None, framed: bool = True) -> str:
    """Read all that loading a skill needs, then render it. It blocks.

    `arguments` are what a person typed after the skill's name. With `framed`, the instructions are in an element.
    """
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
