"""A script policy that keeps the paths in a function's arguments inside given folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread
from pydantic import ValidationError

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError

from .arguments import as_mapping
from .gate import ScriptDecision

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript
    from pydantic_ai_skills.types.skill import Skill


class PathPolicy:
    """A script policy that keeps named parameters of Python functions inside given folders.

    Parameters are checked by name after validation, so it makes no difference how the model wrote the arguments. Links
    are resolved before the comparison. Scripts in files have no named parameters: for those, and for functions without
    any of the named ones, the decision is `otherwise`.

    ```python
    from pydantic_ai_skills import PathPolicy, SkillsToolset

    policy = PathPolicy(read={'source': ['./data']}, write={'target': ['./out']})
    toolset = SkillsToolset(skills=[], script_policy=policy)
    ```

    Args:
        read: For each parameter that is read from, the folders it may lead to.
        write: For each parameter that is written to, the folders it may lead to.
        otherwise: The decision about scripts that have none of these parameters.
        inside: The decision about those whose paths stay inside.
    """

    def __init__(
        self,
        *,
        read: Mapping[str, Sequence[str | Path]] | None = None,
        write: Mapping[str, Sequence[str | Path]] | None = None,
        otherwise: ScriptDecision = 'allow',
        inside: ScriptDecision = 'allow',
    ) -> None:
        self._folders = {'read': _folders(read or {}), 'written': _folders(write or {})}
        self._otherwise: ScriptDecision = otherwise
        self._inside: ScriptDecision = inside

    async def __call__(self, ctx: Any, skill: Skill[Any], script: SkillScript, args: Any) -> ScriptDecision:
        """The decision about one run.

        Raises:
            SkillScriptExecutionError: A path leads outside the folders of its parameter.
        """
        if script.function_schema is None:
            return self._otherwise
        try:
            # Validated as the call validates them, or the function could get what was never checked.
            arguments = cast('dict[str, Any]', script.function_schema.validator.validate_python(as_mapping(args)))
        except (ValidationError, ValueError):
            return self._inside  # the function is not called with these; the call itself reports what is wrong
        return await to_thread.run_sync(self._check, arguments)

    def _check(self, arguments: Mapping[str, Any]) -> ScriptDecision:
        named = False
        for done, rules in self._folders.items():
            for name in rules.keys() & arguments.keys():
                named = True
                for value in _paths(arguments[name]):
                    if not _leads_inside(value, rules[name]):
                        raise SkillScriptExecutionError(
                            f'The path in {name!r}, {str(value)[:200]!r}, is not one that may be {done}: it has to '
                            f'be in {" or ".join(map(str, rules[name]))}.'
                        )
        return self._inside if named else self._otherwise


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
