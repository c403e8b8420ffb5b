"""Resolves names that a model may have mistyped, and lists the names that exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Literal, Protocol, TypeVar

from pydantic_ai_skills.exceptions import SkillResourceNotFoundError, SkillScriptNotFoundError
from pydantic_ai_skills.parsing.characters import HIDDEN

MAX_NAMES_TOLD = 20
"""How many names a message lists."""

MAX_TOLD = 4_000
"""How many characters these names may have."""

MAX_NAME_COMPARED = 200
"""Longer names are not compared with what exists: that takes time in the square of their length."""

MAX_NAMES_COMPARED = 200
"""Comparing more names one by one takes too long; an index finds the closest."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


ItemKind = Literal['resource', 'script']
NamedT = TypeVar('NamedT', bound=_Named)


def pick(name: str, items: Sequence[NamedT], others: Sequence[_Named], *, kind: ItemKind, skill: str) -> NamedT:
    """Find the resource or script a name means: the exact one, else the only one with this file name or stem.

    `others` are the items of the other kind, which a model may confuse with `items`. If there is no such item, or more
    than one, the error of its kind says so.
    """
    told = repr(name[:MAX_NAME_COMPARED])
    error = SkillResourceNotFoundError if kind == 'resource' else SkillScriptNotFoundError
    meant = _find(name, items)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise error(f'{told} can mean {_few([item.name for item in meant], " or ")} in skill {skill!r}.')
    if _find(name, others):
        other = 'script: use run_skill_script' if kind == 'resource' else 'resource: use read_skill_resource'
        raise error(f'{told} in skill {skill!r} is a {other}.')
    there_is = closest_first(kind, name, (item.name for item in items))
    raise error(f'There is no {kind} {told} in skill {skill!r}. {there_is}')


def _find(name: str, items: Sequence[NamedT]) -> list[NamedT]:
    """The items a name may mean. A path that does not exist never finds a file of the same name elsewhere."""
    exact = [item for item in items if item.name == name]
    # The model is shown names without hidden characters.
    exact = exact or [item for item in items if HIDDEN.sub('', item.name) == name]
    if exact or '/' in name:
        return exact
    return _ending(name, items, stem=False) or _ending(name, items, stem=True)


def _ending(name: str, items: Sequence[NamedT], *, stem: bool) -> list[NamedT]:
    paths = [(PurePosixPath(item.name), item) for item in items]
    return [item for path, item in paths if (path.stem if stem else path.name) == name]


def closest_first(kind: str, name: str, names: Iterable[str], close: Sequence[str] | None = None) -> str:
    """A sentence that lists the existing names, those closest to a missing `name` first; `close` may name them."""
    known = sorted(names)
    if not known:
        return f'There are no {kind}s.'
    if close is None:
        close = get_close_matches(name, known, n=5, cutoff=0.5) if len(name) <= MAX_NAME_COMPARED else []
    told = [*close, *(other for other in known[: MAX_NAMES_TOLD + len(close)] if other not in close)]
    return f'The {kind}s are: {_few(told, ", ", len(known))}.'


def _few(names: Sequence[str], between: str, total: int | None = None) -> str:
    """The first of these names, at least one and as many as fit, and how many more there are."""
    shown = list(map(repr, names[:MAX_NAMES_TOLD]))
    sizes = accumulate(map(len, shown))
    shown = shown[: max(1, sum(size <= MAX_TOLD for size in sizes))]
    rest = (len(names) if total is None else total) - len(shown)
    return between.join(shown) + (f' and {rest:,} more' if rest else '')
