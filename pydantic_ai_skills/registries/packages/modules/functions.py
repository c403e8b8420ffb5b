"""Public functions of modules as scripts: described from their source, imported at the first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import anyio.to_thread
from pydantic import ValidationError
from pydantic_ai.tools import RunContext
from pydantic_core import to_json

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillScriptExecutionError
from pydantic_ai_skills.execution.arguments import as_mapping
from pydantic_ai_skills.execution.gate import refusal_in_process
from pydantic_ai_skills.execution.path_policy import PathPolicy, may_name
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.functions import FunctionOptions, FunctionSchema, guarded
from pydantic_ai_skills.types.script import SkillScript

from .allowed import AllowedFunction, Paths
from .methods import find_function
from .source import ModuleSource, import_source

_WAYS = {'read': ('reads', 'read_from'), 'write': ('writes to', 'write_to')}
"""What a function does to a path, and the parameter that allows it."""


_WRITING = frozenset('wax+')
"""The characters in a mode of `open` that mean that the file is written to."""


@dataclass(frozen=True, kw_only=True)
class FunctionRules:
    """What the developer allows the functions of a package."""

    trusted: bool = False
    """Whether its modules may be imported."""

    read_from: Sequence[str | Path] | None = None
    """Folders for parameters that are declared as paths to read."""

    write_to: Sequence[str | Path] | None = None
    """Folders for parameters that are declared as paths to write."""


@dataclass(eq=False)
class ModuleFunction:
    """The schema of a function: read from its source at first, and from the function once it is imported."""

    name: str
    source: ModuleSource
    static: FunctionSchema
    is_exact: bool
    """Whether the imported function takes what its source says."""

    report: Callable[[SkillProblem], None]
    """Called if it cannot be imported."""

    _imported: FunctionSchema | None = None

    def __post_init__(self) -> None:
        self.description = self.static.description
        self.json_schema = self.static.json_schema
        self.takes_ctx = self.static.takes_ctx

    @property
    def is_imported(self) -> bool:
        return self._imported is not None

    @property
    def is_known(self) -> bool:
        """Whether its parameters are known; those of a decorated function are known only once it is imported."""
        return self.is_exact or self.is_imported

    @property
    def validator(self) -> Any:
        """Checks arguments; before the import, as far as the source allows."""
        return (self._imported or self.static).validator

    def load(self) -> None:
        try:
            function = find_function(import_source(self.source), self.name)
            if function is None:
                raise SkillRegistryError(f'The module {self.source.name!r} has no function {self.name!r}.')
            schema = _read_schema(self.name, function)
        except SkillRegistryError as error:
            self.report(problem('import-failed', self.source.file.path, str(error)))
            raise
        if not self.is_exact:
            # A decorator may have changed the parameters. Otherwise the model keeps the schema it knows.
            self.json_schema = schema.json_schema
        self._imported = schema

    async def call(self, args_dict: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Call the imported function with checked arguments."""
        assert self._imported is not None
        return await self._imported.call(args_dict, ctx)

    def misfits(self, args: object) -> bool:
        """Whether its source already shows that arguments do not fit."""
        if self.is_imported or not self.is_exact:
            return False
        try:
            self.static.validator.validate_python(as_mapping(args))
        except (ValidationError, ValueError):
            return True
        return False


@dataclass(repr=False, kw_only=True)
class ModuleScript(SkillScript):
    """A public function of a module, which is imported at the first run.

    Its `function` is `None`, which tells policies that it is not the developer's own.
    """

    in_process = True

    module_function: ModuleFunction
    """The function."""

    allowed: AllowedFunction
    """Which of its arguments are paths."""

    positions: Sequence[str]
    """Its positional parameters."""

    rules: FunctionRules
    """What the developer allows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed, positions, rules = self.allowed, self.positions, self.rules
        self._paths = {**_by_name(allowed.read, positions), **_by_name(allowed.write, positions)}
        self._read_policies = _policies('read', allowed.read, positions, rules.read_from)
        self._policies = [*self._read_policies, *_policies('write', allowed.write, positions, rules.write_to)]

    @property
    def schema(self) -> FunctionSchema:
        """What the function takes, as far as it is known."""
        return self.module_function

    @property
    def source_text(self) -> str:
        """The current source of the module, which an approval covers."""
        file = self.module_function.source.file
        return (file.tree.read(file.name, 1 << 30) or b'').decode('utf-8', 'replace')

    async def prepare(self, ctx: Any, args: object) -> bool:
        """Import the function if it is not imported yet and the arguments may fit."""
        function = self.module_function
        if not self.rules.trusted:  # also where it is run by hand, past the gate
            raise SkillScriptExecutionError(refusal_in_process(self))
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
        encodable = anyio.to_thread.run_sync(_encodable, value)
        return await guarded(encodable, what=f'script {self.name!r}', error=SkillScriptExecutionError)

    def _may_write(self, args: object) -> bool:
        """Whether it may write to its paths. It may not if its mode, as for `open`, says that it only reads."""
        mode = self.allowed.mode
        schema = self.module_function.json_schema.get('properties', {}).get(mode)
        if mode is None or schema is None:
            return True
        try:
            arguments: Any = as_mapping(args)
            given = arguments.get(mode, schema.get('default'))
        except (ValueError, AttributeError):  # no JSON, or no object: the call itself reports what is wrong
            return True
        return not isinstance(given, str) or not given or not _WRITING.isdisjoint(given)

    async def _check_paths(self, ctx: Any, args: object) -> None:
        for policy in self._policies if self._may_write(args) else self._read_policies:
            if isinstance(policy, str):
                raise SkillScriptExecutionError(f'The script {self.name!r} {policy}')
            await policy(ctx, cast(Any, None), self, args)
        schema = self.module_function.json_schema
        if self.module_function.is_known and (wrong := [name for name in self._paths if not may_name(schema, name)]):
            raise SkillScriptExecutionError(
                f'The script {self.name!r} cannot be run: its module says that {wrong[0]!r} is a path, and it has no '
                'such parameter.'
            )


def _policies(
    kind: Literal['read', 'write'], paths: Paths, positions: Sequence[str], folders: Sequence[str | Path] | None
) -> list[PathPolicy | str]:
    """The policies that confine the paths in arguments, or why the function cannot be called at all."""
    named = _by_name(paths, positions)
    own_folders: dict[str, Sequence[str | Path]] = {name: own for name, own in named.items() if own is not None}
    rules: list[Mapping[str, Sequence[str | Path]]] = [own_folders]
    if folders is not None:
        rules.append(dict.fromkeys(named, folders))
    elif unbound := [name for name in named if name not in own_folders]:
        does, parameter = _WAYS[kind]
        why = f'{does} the path in {unbound[0]!r}, and no folder is set for that'
        return [f'{why}. For the developer: set one with PackageSkillsRegistry({parameter}=[...]).']
    return [PathPolicy(read=rule) if kind == 'read' else PathPolicy(write=rule) for rule in rules if rule]


def _by_name(paths: Paths, positions: Sequence[str]) -> dict[str, tuple[str, ...] | None]:
    names = dict(enumerate(positions))
    return {way if isinstance(way, str) else names.get(way, str(way)): own for way, own in paths.items()}


def _read_schema(name: str, function: Callable[..., Any]) -> FunctionSchema:
    try:
        return FunctionOptions().read_schema(function)
    except Exception as error:  # annotations of other people's code may do anything
        message = f'The parameters of {name!r} cannot be read: {type(error).__name__}: {error}'
        raise SkillRegistryError(f'{message.rstrip(".")}.') from error


def _encodable(value: object) -> Any:
    """The result of a function, or its `repr` if it cannot be encoded for a model."""
    try:
        to_json(value, bytes_mode='base64')
    except (ValueError, RecursionError):
        return repr(value)
    return value
