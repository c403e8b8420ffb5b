"""An executor for `run`: it shows what it is about to run and what that prints, and keeps the result."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from typing import Any, Literal

import anyio.to_thread

import pydantic_ai_skills as api

from .output import Output, safe

Executor = api.LocalSkillScriptExecutor | api.BubblewrapSkillScriptExecutor


class Watched:
    """An executor that shows what it is about to run, and keeps the result."""

    def __init__(self, inner: Executor, out: Output, *, dry_run: bool, verbose: bool = False) -> None:
        self.inner = inner
        self.sandboxed = inner.sandboxed
        self.described: dict[str, Any] | None = None
        self.result: api.ScriptResult | None = None
        self.unwritten: OSError | None = None
        """Why the output of the script could not be written, if it could not."""
        self._out = out
        self._dry_run = dry_run
        self._describes = (dry_run or verbose) and not out.as_json

    async def run(self, script: api.SkillScript, args: Any = None, ctx: Any = None) -> Any:
        """Run the script, unless this is a dry run."""
        self.described = await anyio.to_thread.run_sync(self._describe, script, args)
        if self._dry_run:
            return '(not run)'
        if not self._out.as_json:
            script = script.told_to(self._print)
        try:
            self.result = await self.inner.run(script, args, ctx)
        except api.SkillScriptExecutionError as error:
            self.result = getattr(error, 'result', None)
            raise
        return self.result

    def _print(self, name: Literal['stdout', 'stderr'], text: str) -> None:
        """Show what the script prints, as it is printed. If that fails, the script still runs to its end."""
        stream = getattr(sys, name)
        try:
            if self.unwritten is None:
                stream.write(safe(text) if stream.isatty() else text)
                stream.flush()
        except OSError as error:
            self.unwritten = error

    def _describe(self, script: api.SkillScript, args: Any) -> dict[str, Any]:
        command = shlex.join(self.inner.command_line(script, args))
        environment = self.inner.environment_names(script)
        limits = {name: value for name, value in asdict(self.inner.limits).items() if value is not None}
        if self._describes:
            shown = {
                'command': command,
                'sandbox': 'yes' if self.sandboxed else 'no',
                'environment': ' '.join(environment),
                'limits': ', '.join(f'{name} {value:,}' for name, value in limits.items()),
            }
            for name, value in shown.items():
                self._out.note((f'{name:<12}', 'dim'), value)
        return {'command': command, 'sandbox': self.sandboxed, 'environment': environment, 'limits': limits}
