"""Public functions of modules as scripts: shown from their source, imported when they are first run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
from pydantic import ValidationError
from pydantic_ai.tools import RunContext
from pydantic_core import to_json

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillScriptExecutionError
from pydantic_ai_skills.execution.arguments import as_mapping
from pydantic_ai_skills.execution.path_policy import PathPolicy
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.functions import FunctionOptions, FunctionSchema, guarded
from pydantic_ai_skills.types.items import SkillScript

from .allowed import AllowedFunction, Paths
from .imports import import_source
from .signatures import is_exact
from .source import ModuleSource

__all__ = ('FunctionRules', 'ModuleFunction', 'ModuleScript')


@dataclass(frozen=True, kw_only=True)
class FunctionRules:
    """What a developer decides about the functions of a package."""

    trusted: bool = False
    """Whether its modules may be imported."""

    read_from: Sequence[str | Path] | None = None
    """Folders that parameters which are declared as paths to read may lead to."""

    write_to: Sequence[str | Path] | None = None
    """Folders that parameters which are declared as paths to write may lead to."""


class ModuleFunction:
    """What a function takes: as its source says, and once it was imported, as it is."""

    def __init__(
        self,
        name: str,
        source: ModuleSource,
        static: FunctionSchema,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        report: Callable[[SkillProblem], None],
    ) -> None:
        """Remember where the function is.

        Args:
            name: Its name in the module.
            source: The module that offers it, which may import it from another one.
            static: What its source says that it takes.
            node: Its source.
            report: Called with a problem if the module cannot be imported.
        """
        self.name = name
        self.source = source
        self.description = static.description
        self.json_schema = static.json_schema
        self.takes_ctx = static.takes_ctx
        self.is_exact = is_exact(node)
        self._static = static
        self._report = report
        self._imported: FunctionSchema | None = None

    @property
    def is_imported(self) -> bool:
        """Whether it was imported."""
        return self._imported is not None

    @property
    def validator(self) -> Any:
        """Checks arguments; before the import as far as the source tells."""
        return (self._imported or self._static).validator

    def load(self) -> None:
        """Import it.

        Raises:
            SkillRegistryError: It cannot be imported or called.
        """
        try:
            function = getattr(import_source(self.source), self.name, None)
            if not callable(function):
                raise SkillRegistryError(f'The module {self.source.name!r} has no function {self.name!r}.')
            schema = _read_schema(self.name, function)
        except SkillRegistryError as error:
            self._report(problem('import-failed', self.source.file.path, f'{error}'))
            raise
        if not self.is_exact:
            # A decorator may have changed what it takes; else the model is told the same as before.
            self.json_schema = schema.json_schema
        self._imported = schema

    async def call(self, args_dict: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Call it with checked arguments, once it was imported."""
        assert self._imported is not None
        return await self._imported.call(args_dict, ctx)

    def misfits(self, args: object) -> bool:
        """Whether its source tells that arguments do not fit."""
        if self.is_imported or not self.is_exact:
            return False
        try:
            self._static.validator.validate_python(as_mapping(args))
        except (ValidationError, ValueError):
            return True
        return False


class ModuleScript(SkillScript):
    """A public function of a module. The module is imported when the function is first run, if it is trusted."""

    def __init__(
        self, function: ModuleFunction, *, allowed: AllowedFunction, positions: Sequence[str], rules: FunctionRules
    ) -> None:
        """Describe the script.

        Args:
            function: The function.
            allowed: What its module declares about it.
            positions: The names of its parameters by position.
            rules: What the developer decides.
        """
        super().__init__(
            function.name,
            description=function.description,
            function=_not_imported,
            function_schema=function,
        )
        # A policy sees that this is no function of the developer's own.
        self.function = None
        self.trusted = rules.trusted
        self._module_function = function
        self._policies = [
            *_policies('read', allowed.read, positions, rules.read_from),
            *_policies('write', allowed.write, positions, rules.write_to),
        ]

    @property
    def source_text(self) -> str:
        """The source of the module as it is now, which an approval is for."""
        file = self._module_function.source.file
        return (file.tree.read(file.name, 1 << 30) or b'').decode('utf-8', 'replace')

    async def prepare(self, ctx: Any, args: object) -> bool:
        """Import the function, unless it was, is not trusted, or the arguments are wrong whatever it is.

        Raises:
            SkillScriptExecutionError: It is not trusted, a path leads outside, or it cannot be imported.
        """
        function = self._module_function
        if not self.trusted:
            raise SkillScriptExecutionError(
                f'The script {self.name!r} of skill {self.skill_name!r} may not be run here, so carry on without it. '
                'For the developer: modules of installed packages are imported only if the package is trusted, with '
                'PackageSkillsRegistry(trusted=[...]).'
            )
        if function.is_imported or function.misfits(args):
            return False
        await self._check_paths(ctx, args)
        try:
            await anyio.to_thread.run_sync(function.load)
        except SkillRegistryError as error:
            raise SkillScriptExecutionError(f'The script {self.name!r} could not be run. {error}') from error
        return True

    async def run(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Check the arguments and the paths in them, then call the function."""
        await self.prepare(ctx, args)
        await self._check_paths(ctx, args)
        value = await super().run(ctx, args)
        telling = anyio.to_thread.run_sync(_tellable, value)
        return await guarded(telling, what=f'script {self.name!r}', error=SkillScriptExecutionError)

    async def _check_paths(self, ctx: Any, args: object) -> None:
        for policy in self._policies:
            if isinstance(policy, str):
                raise SkillScriptExecutionError(f'The script {self.name!r} {policy}')
            await policy(ctx, cast(Any, None), self, args)


def _policies(
    kind: str, paths: Paths, positions: Sequence[str], folders: Sequence[str | Path] | None
) -> list[PathPolicy | str]:
    """What keeps the paths in arguments inside their folders, or why the function cannot be called at all."""
    named = {_name_of(way, positions): own for way, own in paths.items()}
    does, where = ('writes to', 'write_to') if kind == 'write' else ('reads', 'read_from')
    for name, own in named.items():
        if own is None and folders is None:
            refusal = (
                f'{does} the path in {name!r}, and there is no folder for that. For the developer: say which with '
            )
            return [f'{refusal}PackageSkillsRegistry({where}=[...]).']
    policies: list[PathPolicy | str] = []
    for rule in ({name: own for name, own in named.items() if own is not None}, dict.fromkeys(named, folders)):
        given = {name: own for name, own in rule.items() if own is not None}
        if given:
            policies.append(PathPolicy(read=given) if kind == 'read' else PathPolicy(write=given))
    return policies


def _name_of(way: str | int, positions: Sequence[str]) -> str:
    return way if isinstance(way, str) else positions[way] if 0 <= way < len(positions) else str(way)


def _read_schema(name: str, function: Callable[..., Any]) -> FunctionSchema:
    try:
        return FunctionOptions().read_schema(function)
    except Exception as error:  # the border to code of others, whose annotations may mean anything
        message = f'It cannot be told what {name!r} takes: {type(error).__name__}: {error}'
        raise SkillRegistryError(f'{message.rstrip(".")}.') from error


def _tellable(value: object) -> Any:
    """What a function returned, in a form that a model can be told: functions of a package are not made for that."""
    try:
        to_json(value, bytes_mode='base64')
    except (ValueError, RecursionError):
        return repr(value)
    return value


def _not_imported() -> None:
    """Stands for a function that was not imported."""
