"""A script of a skill: something the model can run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from copy import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from anyio import to_thread
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder, local_path

from .functions import FRAMEWORK_ERRORS, FunctionSchema, call_function, items_of, log_failure
from .resource import SkillItem

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor


class SkillScript(SkillItem):
    """Something a skill lets the model run: a Python function or a program in a file."""

    kind = 'script'

    in_process: ClassVar[bool] = False
    """Whether it is code of a skill's source that runs in this process, not in an executor."""

    root: str | None = None
    """A trusted folder above `skill_dir`, from where no folder on the way to the file may be a link."""

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        function: Callable[..., Any] | None = None,
        takes_ctx: bool | None = None,
        function_schema: FunctionSchema | None = None,
        uri: str | None = None,
        skill_name: str | None = None,
        skill_dir: Path | None = None,
        executor: SkillScriptExecutor | None = None,
    ) -> None:
        """Describe a script; one of `function` and `uri` is required.

        Args:
            name: What the model calls it, such as `scripts/convert.py`.
            description: What it does, for the model.
            function: Called for each run, with the arguments the model gives.
            takes_ctx: Whether `function` takes a `RunContext` first; read from its signature when not given.
            function_schema: The schema of `function`; made from its signature when not given.
            uri: A local file, as a path or a `file:` URI.
            skill_name: The skill it belongs to.
            skill_dir: That skill's folder, where there is one.
            executor: What runs a file; a `LocalSkillScriptExecutor` when not given.

        Raises:
            SkillValidationError: The name is empty, or there is nothing to run.
        """
        if function is None and uri is None:
            raise SkillValidationError(f'Script {name!r} needs one of `function` or `uri`.')
        super().__init__(name, description, function, takes_ctx, function_schema, uri)
        self.skill_name = skill_name
        self.skill_dir = skill_dir
        self.executor = local_executor() if executor is None and uri is not None else executor

    @property
    def path(self) -> Path | None:
        """The file to run, or `None` for a function."""
        return None if self.uri is None else local_path(self.uri)

    def of_skill(self, skill_name: str) -> Self:
        """The same script as one of another skill."""
        script = copy(self)
        script.skill_name = skill_name
        return script

    @property
    def usage(self) -> str | None:
        """How to use a file, if its text says so, in a docstring, the first comment or declared arguments."""
        from .script_usage import describe_usage  # not needed where no skill has scripts

        path = self.path
        if path is None:
            return None
        folder = self.skill_dir or path.parent
        if folder not in path.parents:  # a script that skills share
            folder = path.parent
        try:
            source = SkillFolder(str(folder)).read_bytes(path.relative_to(folder).as_posix())
        except SkillResourceLoadError:
            return None
        return describe_usage(self.name, source)

    @property
    def source_text(self) -> str | None:
        """The source of a function that is not imported yet; `None` for others and for a file."""
        return None

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
        """
        what = f'script {self.name!r}'
        if self.function_schema is not None:
            return await call_function(self.function_schema, ctx, args, what=what, error=SkillScriptExecutionError)
        from pydantic_ai_skills.execution.script_file import refuse_links  # not needed where no file is run

        await to_thread.run_sync(refuse_links, self)
        try:
            value = await cast('SkillScriptExecutor', self.executor).run(self, args, ctx)
            return await items_of(cast(object, value)) if isinstance(value, (Iterator, AsyncIterator)) else value
        except FRAMEWORK_ERRORS:
            raise
        except (Exception, SystemExit) as failure:  # the border between an executor and the run
            raise SkillScriptExecutionError(await log_failure(failure, what)) from failure


class ImportedCode(SkillScript):
    """Code that is imported into this process when a skill is loaded: its `tools.py`, or the module that holds it.

    To policies and to the people who approve it, the import is a run of a script of that name.
    """

    in_process = True

    def __init__(
        self, name: str, *, uri: str, skill_name: str, skill_dir: Path | None = None, source: str = ''
    ) -> None:
        """Describe code by its file, or by its `source` if it is not a file of its own."""
        super().__init__(name, uri=uri, skill_name=skill_name, skill_dir=skill_dir)
        self.executor = None
        self._source = source

    @property
    def path(self) -> Path | None:
        """The file, or `None` if it is known by its source."""
        return None if self._source else super().path

    @property
    def source_text(self) -> str | None:
        """The source, which an approval covers."""
        return self._source or None


@cache
def local_executor() -> SkillScriptExecutor:
    """The executor of scripts for which the developer chose none."""
    from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor  # not needed where no file is run

    return LocalSkillScriptExecutor()
