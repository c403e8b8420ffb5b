"""A script policy that keeps the paths in a function's arguments inside given folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread
from pydantic import ValidationError

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError

from .arguments import as_mapping
from .gate import ScriptDecision

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript
    from pydantic_ai_skills.types.skill import Skill

MAX_DEPTH = 32
"""How deep arguments may be nested."""

_NOTES = frozenset({'title', 'description', 'default'})
"""Keys of a JSON schema that do not limit the value: a schema with no other keys accepts anything."""

_PLAIN = (str, bytes, int, float, type(None), os.PathLike, type, FunctionType)
"""Types of values that have no named parts."""


class PathPolicy:
    """A script policy that keeps named parameters of Python functions inside given folders.

    Parameters are checked by name after validation, so it makes no difference how the model wrote the arguments. Fields
    of models, dataclasses and mappings in the arguments count as parameters too, at any depth, and so do `**kwargs` and
    defaults. Links are resolved before the comparison. Scripts in files have no named parameters: for those, and for
    functions without any of the named ones, the decision is `otherwise`.

    ```python
    from pydantic_ai_skills import PathPolicy, SkillsToolset

    policy = PathPolicy(read={'source': ['./data']}, write={'target': ['./out']})
    toolset = SkillsToolset(skills=[], script_policy=policy)
    ```

    Args:
        read: For each parameter that is read from, the folders it may lead to.
        write: For each parameter that is written to, the folders it may lead to.
        otherwise: The decision about scripts that have none of these parameters.
        inside: The decision about scripts whose paths stay inside the folders.
        functions: Functions or scripts that the policy is for: each rule has to name a parameter of one of them.

    Raises:
        SkillValidationError: Folders are not given as a list, or a rule names no parameter of the `functions`.
    """

    def __init__(
        self,
        *,
        read: Mapping[str, Sequence[str | Path]] | None = None,
        write: Mapping[str, Sequence[str | Path]] | None = None,
        otherwise: ScriptDecision = 'deny',
        inside: ScriptDecision = 'allow',
        functions: Sequence[Callable[..., Any] | SkillScript] = (),
    ) -> None:
        self._folders = {'read': _folders(read or {}), 'written': _folders(write or {})}
        self._rules = {*self._folders['read'], *self._folders['written']}
        self._otherwise: ScriptDecision = otherwise
        self._inside: ScriptDecision = inside
        schemas = [_schema_of(function) for function in functions]
        for name in sorted(self._rules) if schemas else ():
            if not any(may_name(schema, name) for schema in schemas):
                raise SkillValidationError(f'The rule for {name!r} names no parameter of the functions.')

    async def __call__(self, ctx: Any, skill: Skill[Any], script: SkillScript, args: Any) -> ScriptDecision:
        """The decision about one run.

        Raises:
            SkillScriptExecutionError: A path leads outside the folders of its parameter.
        """
        schema = script.schema
        if schema is None:
            return self._otherwise
        try:
            # Validated as the call validates them, or the function could get what was never checked.
            arguments = cast('dict[str, Any]', schema.validator.validate_python(as_mapping(args)))
        except (ValidationError, ValueError):
            return self._inside  # the function is not called with these; the call itself reports what is wrong
        return await to_thread.run_sync(self._check, arguments, schema.json_schema)

    def _check(self, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> ScriptDecision:
        named = not self._rules.isdisjoint(_names_in(schema)[0])
        for name, value in _named_values(arguments, self._rules):
            named = True
            for done, folders in self._folders.items():
                for path in _paths(value) if name in folders else ():
                    if not _leads_inside(path, folders[name]):
                        raise SkillScriptExecutionError(
                            f'The path in {name!r}, {str(path)[:200]!r}, is not one that may be {done}: it has to '
                            f'be in {" or ".join(map(str, folders[name]))}.'
                        )
        return self._inside if named else self._otherwise


# --- Names in a signature -----------------------------------------------------------------------------------------


def _schema_of(function: Callable[..., Any] | SkillScript) -> Mapping[str, Any]:
    from pydantic_ai.tools import Tool  # only needed where functions are given

    schema: Any = getattr(function, 'schema', None)
    return (schema or Tool[Any](cast('Callable[..., Any]', function)).function_schema).json_schema


def may_name(schema: Mapping[str, Any], name: str) -> bool:
    """Whether arguments of this JSON schema can have a parameter or a field of this name."""
    names, is_open = _names_in(schema)
    return is_open or name in names


def _names_in(schema: Mapping[str, Any]) -> tuple[set[str], bool]:
    """The names of all parameters and fields in a JSON schema, and whether there may be others."""
    names: set[str] = set()
    is_open = False
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            node = cast('dict[str, Any]', part)
            names |= cast('dict[str, Any]', node.get('properties', {})).keys()
            # Keys that are not known, or a value that may be anything.
            is_open = is_open or node.get('additionalProperties', False) is not False or not node.keys() - _NOTES
            pending += node.values()
        elif isinstance(part, list):
            pending += cast('list[Any]', part)
    return names, is_open


# --- Names in arguments -------------------------------------------------------------------------------------------


def _named_values(value: Any, names: Container[str], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The values that have one of these names, wherever they are in the arguments."""
    if depth > MAX_DEPTH:
        raise SkillScriptExecutionError('The arguments are nested too deeply to look for paths in them.')
    for name, item in _fields(value):
        if name in names:
            yield name, item
        yield from _named_values(item, names, depth + 1)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with its key or the name of its field, or with an empty name."""
    if isinstance(value, Mapping):
        yield from ((str(name), item) for name, item in cast('Mapping[Any, Any]', value).items())
    elif isinstance(value, list | tuple | set | frozenset):
        items = list(cast('Sequence[Any]', value))
        names: Sequence[str] = getattr(cast(Any, value), '_fields', [''] * len(items))  # of a named tuple
        yield from zip(names, items, strict=True)
    elif not isinstance(value, _PLAIN):
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of a model, a dataclass or another object, also under the aliases of a model's fields."""
    kinds = cast('type[Any]', type(value)).__mro__
    declared: dict[str, Any] = getattr(kinds[0], '__pydantic_fields__', {})
    slots = (getattr(kind, '__slots__', ()) for kind in kinds)
    slotted = (name for names in slots for name in ([names] if isinstance(names, str) else names))
    held: dict[str, Any] = {name: getattr(value, name, None) for name in (*getattr(value, '__dict__', ()), *slotted)}
    extra: dict[str, Any] = getattr(value, '__pydantic_extra__', None) or {}
    for name, item in (held | extra).items():
        field = declared.get(name)
        aliases = (getattr(field, kind, None) for kind in ('alias', 'validation_alias'))
        yield from ((known, item) for known in {name, *(alias for alias in aliases if isinstance(alias, str))})


# --- Paths --------------------------------------------------------------------------------------------------------


def _folders(rules: Mapping[str, Sequence[str | Path]]) -> dict[str, list[Path]]:
    for name, folders in rules.items():
        if isinstance(folders, str):
            raise SkillValidationError(f'Give the folders of {name!r} as a list.')
    return {name: [Path(folder) for folder in folders] for name, folders in rules.items()}


def _paths(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        for item in cast('Sequence[Any]', value):
            yield from _paths(item)
    elif value is not None:
        yield value


def _leads_inside(value: Any, folders: Sequence[Path]) -> bool:
    # A number would be an open descriptor, and a URL is not a path.
    if not isinstance(value, str | os.PathLike):
        return False
    path = os.fspath(cast('str | os.PathLike[Any]', value))
    if not isinstance(path, str) or not path or '\0' in path or '://' in path:
        return False
    allowed = {Path(os.path.realpath(os.path.expanduser(folder))) for folder in folders}
    try:
        # A function may take `~` for the home folder or for a name, so the path has to stay inside either way.
        ways = [Path(os.path.realpath(way)) for way in (path, os.path.expanduser(path))]
    except UnicodeEncodeError:  # half of a surrogate pair, which no file name has
        return False
    return not any(allowed.isdisjoint((real, *real.parents)) for real in ways)
