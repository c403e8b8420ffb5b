"""A script of a skill: something the model can run."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from anyio import to_thread
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder, local_path

from .functions import FRAMEWORK_ERRORS, FunctionSchema, call_function, items_of, log_failure, schema_of

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor
    from pydantic_ai_skills.execution.streaming import OnOutput
    from pydantic_ai_skills.execution.work_dir import WorkDir


class SkillItem:
    """What resources and scripts have in common."""

    kind: ClassVar[Literal['resource', 'script']]
    """Which of the two it is."""

    name: str
    description: str | None
    function: Callable[..., Any] | None
    takes_ctx: bool | None
    function_schema: FunctionSchema | None
    uri: str | None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SkillValidationError(f'A {self.kind} needs a name.')
        if self.schema is None:
            self.takes_ctx = False

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r})'

    @property
    def schema(self) -> FunctionSchema | None:
        """What the function takes, if there is one. It is read again when another function was assigned."""
        if self.function is None:
            return None
        self.function_schema = schema_of(self.function, self.function_schema, self.takes_ctx)
        self.takes_ctx = self.function_schema.takes_ctx
        return self.function_schema


@dataclass(repr=False)
class SkillScript(SkillItem):
    """Something a skill lets the model run: a Python function or a program in a file.

    One of `function` and `uri` is required, unless a subclass overrides `run`. What is assigned to a field is what the
    model sees at its next request.
    """

    kind = 'script'

    in_process: ClassVar[bool] = False
    """Whether it is code of a skill's source that runs in this process, not in an executor."""

    name: str
    """What the model calls it, such as `scripts/convert.py`."""

    description: str | None = None
    """What it does, for the model."""

    function: Callable[..., Any] | None = None
    """Called for each run, with the arguments the model gives."""

    takes_ctx: bool | None = None
    """Whether `function` takes a `RunContext` first; read from its signature when not given."""

    function_schema: FunctionSchema | None = field(default=None, compare=False)
    """The schema of `function`; made from its signature when not given."""

    uri: str | None = None
    """A local file, as a path or a `file:` URI."""

    skill_name: str | None = None
    """The skill it belongs to."""

    skill_dir: Path | None = None
    """That skill's folder, where there is one."""

    executor: SkillScriptExecutor | None = None
    """What runs a file; a `LocalSkillScriptExecutor` when not given."""

    root: str | None = None
    """A trusted folder above `skill_dir`. No folder on the way from there to the file may be a link."""

    work_dir: WorkDir | None = None
    """The conversation's work folder, in which its file is run; without one, an executor makes a private folder."""

    on_output: OnOutput | None = field(default=None, compare=False)
    """Called with what its file prints, as it is printed, by executors that can: those on this machine."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.has_own_run:
            self._check_source()
        if self.uri is not None and not self.in_process:
            self.executor = self.executor or local_executor()

    def _check_source(self) -> None:
        if self.schema is None and self.uri is None:
            raise SkillValidationError(f'Script {self.name!r} needs one of `function` or `uri`.')

    @property
    def has_own_run(self) -> bool:
        """Whether a subclass overrides `run`."""
        return type(self).run is not SkillScript.run

    @property
    def path(self) -> Path | None:
        """The file to run, or `None` for a function."""
        return None if self.uri is None else local_path(self.uri)

    def of_skill(self, skill_name: str) -> Self:
        """A copy of this script that belongs to another skill."""
        return replace(self, skill_name=skill_name)

    def in_work_dir(self, work_dir: WorkDir | str | Path | None) -> Self:
        """A copy of this script that runs in a work folder."""
        script = copy(self)
        if isinstance(work_dir, str | Path):
            from pydantic_ai_skills.execution.work_dir import WorkDir  # not needed where no file is run

            work_dir = WorkDir(path=Path(work_dir).absolute())
        script.work_dir = work_dir
        return script

    def told_to(self, on_output: OnOutput) -> Self:
        """A copy of this script that passes on its output as it is printed."""
        script = copy(self)
        script.on_output = on_output
        return script

    @property
    def usage(self) -> str | None:
        """How to use a file, if its text says so, in a docstring, the first comment or declared arguments."""
        from pydantic_ai_skills.execution.declared import declaration_of  # not needed where no skill has scripts

        from .script_usage import render_usage

        if self.path is None:
            return None
        try:
            return render_usage(declaration_of(self))
        except SkillScriptExecutionError:
            return None

    @property
    def required_packages(self) -> tuple[str, ...]:
        """The Python packages that a file needs, such as `pypdf>=5`, as far as it and its skill say so. Reads both.

        Packages that the skill imports without declaring them are included if they are well known or installed.
        """
        from .needs import required_packages  # not needed where nothing is installed

        path, skill_dir = self.path, self.skill_dir
        if path is None or skill_dir is None or skill_dir not in path.parents:
            return ()
        folder = SkillFolder(self.root or str(skill_dir), str(skill_dir))
        return required_packages(folder, path.relative_to(skill_dir).as_posix())

    @property
    def source_text(self) -> str | None:
        """The source of a subclass that overrides `run`; `None` for a Python function or a file."""
        if not self.has_own_run:
            return None
        with suppress(OSError, TypeError):
            return inspect.getsource(type(self))
        return repr(type(self))

    def describe(self, args: Any) -> str:
        """A run with these arguments as it is shown to the person who approves it, if the script is not a file."""
        return f'{self.name}({"" if args is None else json.dumps(args, sort_keys=True, default=str)})'

    async def fetch(self) -> None:
        """Bring its file to this machine, if it is kept elsewhere, before anybody is asked about it or it is run."""

    async def prepare(self, ctx: RunContext[Any] | None, args: object) -> bool:
        """Import what it needs, once it may run; return whether that changed the arguments it takes."""
        return False

    async def run(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Run it: a function's return value, or the executor's result for a file.

        Args:
            ctx: The run's context, passed to functions and executors that take one.
            args: Arguments; those for a function are validated before it is called.

        Raises:
            SkillScriptExecutionError: It could not be run, or the arguments do not fit.
            SkillValidationError: It has no `function` or `uri` any more. This is a `ValueError`.
        """
        what = f'script {self.name!r}'
        if (schema := self.schema) is not None:
            return await call_function(schema, ctx, args, what=what, error=SkillScriptExecutionError)
        from pydantic_ai_skills.execution.interpreters import refuse_links
        from pydantic_ai_skills.execution.result import ScriptResult  # not needed where no file is run

        self._check_source()
        if self.executor is None:
            raise SkillValidationError(f'Script {self.name!r} is a file without an `executor` to run it.')
        await self.fetch()
        await to_thread.run_sync(refuse_links, self)
        try:
            value = await self.executor.run(self, args, ctx)
            if isinstance(value, ScriptResult) and value.exit_code:
                from .failures import explain_failure  # not needed where every script succeeds

                return await to_thread.run_sync(explain_failure, value, self)
            return await items_of(cast(object, value)) if isinstance(value, (Iterator, AsyncIterator)) else value
        except FRAMEWORK_ERRORS:
            raise
        except (Exception, SystemExit) as failure:  # the border between an executor and the run
            raise SkillScriptExecutionError(await log_failure(failure, what)) from failure


@dataclass(repr=False)
class ImportedCode(SkillScript):
    """Code that is imported into this process when a skill is loaded: its `tools.py`, or the module that holds it.

    Policies, and the people who approve it, see the import as a run of a script of that name.
    """

    in_process = True

    source: str = ''
    """Its source, if it is not a file of its own."""

    @property
    def path(self) -> Path | None:
        """The file, or `None` if it is known by its source."""
        return None if self.source else super().path

    @property
    def source_text(self) -> str | None:
        """The source, which an approval covers."""
        return self.source or None


@cache
def local_executor() -> SkillScriptExecutor:
    """The executor of scripts for which the developer chose none."""
    from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor  # not needed where no file is run

    return LocalSkillScriptExecutor()
