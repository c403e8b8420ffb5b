"""Names that a model may have mistyped: finding what was meant, and saying what there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Literal, Protocol, TypeVar

from pydantic_ai_skills.exceptions import SkillResourceNotFoundError, SkillScriptNotFoundError

__all__ = ('MAX_NAMES_COMPARED', 'closest_first', 'pick')

MAX_NAMES_TOLD = 20
"""How many names a message lists."""

MAX_NAME_COMPARED = 200
"""Longer names are not compared with what exists: that takes time in the square of their length."""

MAX_NAMES_COMPARED = 200
"""More names than this are not compared one by one: that takes too long. An index gives the closest of them."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


ItemKind = Literal['resource', 'script']
NamedT = TypeVar('NamedT', bound=_Named)


def pick(name: str, items: Sequence[NamedT], others: Sequence[_Named], *, kind: ItemKind, skill: str) -> NamedT:
    """The resource or script a name means: the exact one, else the only one with this file name or stem.

    Args:
        name: The name as the model wrote it.
        items: What can be meant.
        others: What a model may take for them, to tell it so.
        kind: What is looked for.
        skill: The name of the skill it is looked for in.

    Raises:
        SkillResourceNotFoundError: There is no such resource, or more than one.
        SkillScriptNotFoundError: There is no such script, or more than one.
    """
    error = SkillResourceNotFoundError if kind == 'resource' else SkillScriptNotFoundError
    meant = _find(name, items)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise error(f'{name!r} can mean {" or ".join(repr(item.name) for item in meant)} in skill {skill!r}.')
    if _find(name, others):
        other = 'script: use run_skill_script' if kind == 'resource' else 'resource: use read_skill_resource'
        raise error(f'{name!r} in skill {skill!r} is a {other}.')
    there_is = closest_first(kind, name, (item.name for item in items))
    raise error(f'There is no {kind} {name!r} in skill {skill!r}. {there_is}')


def _find(name: str, items: Sequence[NamedT]) -> list[NamedT]:
    """What a name may mean. A path that does not exist is never answered with another file of the same name."""
    exact = [item for item in items if item.name == name]
    if exact or '/' in name:
        return exact
    paths = [(PurePosixPath(item.name), item) for item in items]
    return [item for path, item in paths if path.name == name] or [item for path, item in paths if path.stem == name]


def closest_first(kind: str, name: str, names: Iterable[str], close: Sequence[str] | None = None) -> str:
    """A sentence that tells what exists, the closest names first.

    Args:
        kind: What the names are of.
        name: The name that does not exist.
        names: Those that do.
        close: The closest of them, where that is known already.
    """
    known = sorted(names)
    if not known:
        return f'There are no {kind}s.'
    if close is None:
        close = get_close_matches(name, known, n=5, cutoff=0.5) if len(name) <= MAX_NAME_COMPARED else []
    told = [*close, *(other for other in known[: MAX_NAMES_TOLD + len(close)] if other not in close)][:MAX_NAMES_TOLD]
    rest = f' and {len(known) - len(told):,} more' if len(known) > len(told) else ''
    return f'The {kind}s are: {", ".join(map(repr, told))}{rest}.'
