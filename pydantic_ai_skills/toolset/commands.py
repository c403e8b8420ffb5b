"""Runs the shell commands of a model: decides where, and whether a person is asked, and renders what they print.

A command is code of the model, not of a skill, but a skill may have told the model to run it. So the same gate decides:
`script_policy` is asked about a script named `run_command`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, cast

from anyio import move_on_after, sleep, to_thread
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.background import BackgroundCommand, BackgroundCommands
from pydantic_ai_skills.execution.base import is_sandbox
from pydantic_ai_skills.execution.gate import Gate
from pydantic_ai_skills.execution.launch import COMMAND
from pydantic_ai_skills.execution.limits import ScriptLimits
from pydantic_ai_skills.execution.result import ScriptResult
from pydantic_ai_skills.execution.streaming import OnOutput
from pydantic_ai_skills.execution.work_backend import CommandExecutor
from pydantic_ai_skills.execution.work_dir import WorkDir
from pydantic_ai_skills.types.script import SkillScript, local_executor
from pydantic_ai_skills.types.skill import DepsT, Skill

from .approvals import check_approval, note_request
from .events import ScriptFinished
from .recording import Done, run_script
from .results import render_result

if TYPE_CHECKING:
    from .toolset import SkillsToolset

BACKGROUND = 'command_output'
"""The tool that returns what a background command prints."""

FIRST_MOMENT = 1.0
"""Seconds to wait for new output of a background command."""

OF_MODEL = Skill[Any]('workspace-tools', 'Commands that the model writes.', '')
"""The skill that policies and events are given for a command."""

BASE_DIR = '{baseDir}'
"""What the instructions of published skills write for the skill's own folder."""

_STRANGERS = (
    'The command was not run: a skill from a source that is not trusted is loaded, and here commands are not kept in a '
    'sandbox. For the developer: use a sandbox, such as BubblewrapSkillScriptExecutor, or let a person approve each '
    "command with script_policy='ask'."
)
_NO_COMMANDS = (
    'Commands cannot be run here. For the developer: the `script_executor` of the toolset runs scripts only; use a '
    'LocalSkillScriptExecutor, a BubblewrapSkillScriptExecutor or a workspace.'
)

_NO_BACKGROUND = (
    'Nothing can be left running in the background here. Start it in the command that needs it, and both end together.'
)


@dataclass(repr=False)
class ModelCommand(SkillScript):
    """A shell command of the model, as the gate and the people who approve it see it."""

    command: str = ''
    """The exact text for the shell."""

    shown: Sequence[Path] = ()
    """The folders of skills that it may read."""

    in_background: bool = False
    """Whether it is left running."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that a policy is given."""
        return {'command': self.command, **({'background': True} if self.in_background else {})}

    def describe(self, args: Any) -> str:
        """The exact text, for the person who approves it."""
        return f'{self.command} &' if self.in_background else self.command

    async def run(self, ctx: RunContext[Any] | None, args: object = None) -> ScriptResult:
        """Run it in its work folder."""
        executor, work_dir = cast('CommandExecutor', self.executor), cast('WorkDir', self.work_dir)
        return await executor.run_command(
            self.command, work_dir=work_dir, shown=self.shown, env=self._variables(), on_output=self.on_output, ctx=ctx
        )

    def start(self, ctx: RunContext[Any], commands: BackgroundCommands) -> tuple[str, BackgroundCommand]:
        """Start it in the background; return its id and the running command."""
        executor: Any = self.executor
        limits: ScriptLimits = executor.limits
        executor = copy(executor)
        executor.limits = replace(limits, wall_time=limits.background_time)
        # Resolved now: a thread that holds the context would keep the toolset alive.
        env = executor.environment.env
        executor.environment = replace(executor.environment, env=env(ctx) if callable(env) else env)

        def run(cancelled: Callable[[], bool], on_output: OnOutput) -> ScriptResult:
            return executor.run_command_here(
                self.command,
                work_dir=self.work_dir,
                shown=self.shown,
                env=self._variables(),
                cancelled=cancelled,
                on_output=on_output,
            )

        return commands.start(_conversation(ctx), run)

    def _variables(self) -> dict[str, str]:
        return {name: str(self.shown[-1]) for name in ('SKILL_DIR', 'CLAUDE_SKILL_DIR') if self.shown}


class Commands(Generic[DepsT]):
    """Runs shell commands in the runs of a toolset. With `allow`, nobody is asked unless a policy says so."""

    def __init__(self, skills: SkillsToolset[DepsT], *, allow: bool) -> None:
        self._skills = skills
        self._allow = allow

    @property
    def is_offered(self) -> bool:
        """Whether any command may run."""
        gate = self._skills.library.gate
        return not gate.closed and gate.policy != 'deny'

    def executor(self, work_dir: WorkDir) -> Any:
        """What runs commands in a work folder: the sandbox of the toolset, or else the run's workspace."""
        own = self._skills.script_executor or self._skills.library.sandbox or local_executor()
        if work_dir.workspace is None or is_sandbox(own):
            return own
        from pydantic_ai_skills.execution.workspace import WorkspaceSkillScriptExecutor  # only where there is one

        if isinstance(own, WorkspaceSkillScriptExecutor):
            return own
        limits = getattr(own, 'limits', None) or ScriptLimits()
        return WorkspaceSkillScriptExecutor(timeout=limits.wall_time, max_output=limits.output)

    async def run(self, ctx: RunContext[DepsT], command: str) -> Any:
        """Run a command, if the gate allows it.

        Raises:
            SkillScriptExecutionError: It may not run, or could not be started.
            ApprovalRequired: A person has to approve it first.
            ToolFailed: It failed, or was stopped.
        """
        try:
            done = await self._skills.actions.recorder.step(ctx, OF_MODEL, COMMAND, partial(self._run, ctx, command))
        except ApprovalRequired as request:
            note_request(ctx, request)  # outside of the step: a replayed step would not change the messages
            raise
        event = done.event
        if event.outcome == 'failed' and event.error is not None:
            raise ToolFailed(event.error)
        files = [file.name for file in event.result.files]
        text = render_result(event.result, files, 'read_file', event.error or '')
        if event.outcome != 'success':
            raise ToolFailed(text)
        return ToolReturn(text, metadata=event.result)

    async def start(self, ctx: RunContext[DepsT], command: str) -> str:
        """Start a command in the background, if the gate allows it, and return what it prints at first.

        Raises:
            SkillScriptExecutionError: It may not run, or not in the background.
            ApprovalRequired: A person has to approve it first.
        """
        try:
            async with self._approved(ctx, command, in_background=True) as script:
                if not hasattr(script.executor, 'run_command_here'):
                    raise SkillScriptExecutionError(_NO_BACKGROUND)
                key, started = script.start(ctx, self._skills.work_dirs.background)
        except ApprovalRequired as request:
            note_request(ctx, request)
            raise
        return await self._told(key, started)

    async def look(self, ctx: RunContext[DepsT], key: str, *, stop: bool) -> str:
        """Return what a background command has printed since the last look; with `stop`, stop it first."""
        found = self._skills.work_dirs.background.find(_conversation(ctx), key)
        if stop:
            await to_thread.run_sync(found.stop)
        return await self._told(key, found)

    async def _told(self, key: str, command: BackgroundCommand) -> str:
        with move_on_after(FIRST_MOMENT):
            while not command.has_news:  # noqa: ASYNC110 - a thread updates it, whichever loop waits
                await sleep(0.02)
        printed, state = command.read()
        result = ScriptResult(exit_code=0, stdout=printed, stderr='', duration=0)
        more = f' Its id for {BACKGROUND} is {key!r}.' if command.is_running else ''
        return render_result(result, why=f'{state}{more}')

    async def _run(self, ctx: RunContext[DepsT], command: str) -> Done[Any, ScriptFinished]:
        recorder = self._skills.actions.recorder
        async with self._approved(ctx, command) as script, recorder.run(ctx, OF_MODEL) as record:
            record.name_resource(script.name)
            async with recorder.streamed(ctx, script) as told:
                value, ending = await run_script(told, ctx, script.arguments)
            return record.done(value, script_name=COMMAND, **ending)

    @asynccontextmanager
    async def _approved(
        self, ctx: RunContext[DepsT], command: str, *, in_background: bool = False
    ) -> AsyncGenerator[ModelCommand]:
        """The command, once it may run, while its work folder is in use."""
        async with self._skills.work_dirs.use(ctx) as work_dir:
            executor = None if work_dir is None else self.executor(work_dir)
            if work_dir is None or not isinstance(executor, CommandExecutor):
                raise SkillScriptExecutionError(_NO_COMMANDS)
            loaded = await self._skills.history.loaded(ctx)
            shown = await to_thread.run_sync(self._shown, loaded, work_dir)
            if shown:
                command = command.replace(BASE_DIR, '${SKILL_DIR}')
            script = ModelCommand(
                COMMAND,
                skill_name=OF_MODEL.name,
                executor=cast(Any, executor),
                work_dir=work_dir,
                command=command,
                shown=shown,
                in_background=in_background,
            )
            if await self._asks(ctx, script, script.arguments, loaded):
                await check_approval(ctx, script, script.arguments)
            yield script

    async def _asks(
        self, ctx: RunContext[DepsT], script: ModelCommand, args: Any, loaded: Sequence[Skill[Any]]
    ) -> bool:
        """Whether a person has to approve a command. Raises a `SkillScriptExecutionError` if it may not run at all."""
        work_dir: Any = script.work_dir
        is_kept_away = is_sandbox(script.executor) or (work_dir.workspace is not None and work_dir.path is None)
        gate: Gate = self._skills.library.gate
        if gate.policy is None:
            allowed = self._allow or is_kept_away or work_dir.workspace is not None
            gate = gate._replace(policy='allow' if allowed else 'ask')
        asks = await gate.needs_approval(ctx, OF_MODEL, script, args)
        if not asks and not is_kept_away and not all(skill.is_trusted for skill in loaded):
            raise SkillScriptExecutionError(_STRANGERS)
        return asks

    def _shown(self, loaded: Sequence[Skill[Any]], work_dir: WorkDir) -> list[Path]:
        """The folders that a command may read and must not change; the skill loaded last comes last."""
        roots = [Path(directory.path).absolute() for directory in self._skills.library.directories]
        inside = [root for root in roots if work_dir.path is not None and work_dir.path in root.parents]
        folders = [Path(skill.path).absolute() for skill in loaded if skill.path is not None]
        return [*(root for root in inside if root.is_dir()), *folders]


def _conversation(ctx: RunContext[Any]) -> str:
    return ctx.conversation_id or ctx.run_id or ''
