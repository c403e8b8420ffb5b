"""Resolves names that a model may have mistyped, and lists the names that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import accumulate, chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic_ai_skills.exceptions import SkillError, SkillResourceNotFoundError, SkillScriptNotFoundError
from pydantic_ai_skills.parsing.characters import hidden_characters

if TYPE_CHECKING:
    from .resource import SkillResource
    from .script import SkillScript
    from .skill import Skill, SkillFiles

MAX_NAMES_TOLD = 20
"""How many names a message lists."""

MAX_TOLD = 4_000
"""How many characters these names may have in total."""

MAX_NAME_COMPARED = 200
"""Longer names are not compared with what exists: that takes time quadratic in their length."""

MAX_NAMES_COMPARED = 200
"""Comparing more names one by one takes too long; an index finds the closest."""


if TYPE_CHECKING:

    class _Named(Protocol):
        @property
        def name(self) -> str: ...


ItemKind = Literal['resource', 'script']
NamedT = TypeVar('NamedT', bound='_Named')

_FOLDER = r'(?:\$?\{(?:CLAUDE_SKILL_DIR|SKILL_DIR|baseDir)\}|\$(?:CLAUDE_SKILL_DIR|SKILL_DIR))/'
"""Placeholders for the skill's folder at the beginning of a name."""

_HOSTED = '/mnt/skills/'
"""The folder of skills in a hosted sandbox, which the instructions of some skills name."""


def find_resource(name: str, skill: Skill[Any], files: SkillFiles) -> SkillResource:
    """Find the resource a name means, also among files that are not listed, such as the text of scripts.

    Raises:
        SkillResourceNotFoundError: There is none, or more than one.
    """
    found = _pick(name, files.resources, skill, SkillResourceNotFoundError, also=files.unlisted)
    if found is not None:
        return found
    if _meant(name, files.scripts, skill):
        raise SkillResourceNotFoundError(f'{_told(name)} in skill {skill.name!r} is a script: use run_skill_script.')
    raise _missing('resource', name, skill, files.resources)


def find_script(name: str, skill: Skill[Any], files: SkillFiles) -> SkillScript:
    """Find the script a name means. A program that is not offered can be run by its path in the skill.

    Raises:
        SkillScriptNotFoundError: There is none, or more than one.
    """
    found = _pick(name, files.scripts, skill, SkillScriptNotFoundError)
    if found is not None:
        return found
    others = [*files.resources, *files.unlisted]
    place = place_in(name, skill)
    file = next((other.name for other in others if other.name == place.path), None)
    script = None if file is None else program(file, skill, files)
    if script is not None:
        return script
    if _meant(name, others, skill):
        raise SkillScriptNotFoundError(f'{_told(name)} in skill {skill.name!r} is a resource: use read_skill_resource.')
    raise _missing('script', name, skill, files.scripts)


def program(name: str, skill: Skill[Any], files: SkillFiles, *, any_file: bool = False) -> SkillScript | None:
    """A script for a file that the skill does not offer as one; `None` if the file cannot be run.

    `any_file` also accepts a file whose suffix is not that of a script.
    """
    from pydantic_ai_skills.execution.interpreters import SCRIPT_NAME  # not needed for what is offered

    from .script import SkillScript

    if skill.path is None or files.executor is None or not (any_file or SCRIPT_NAME.match(name)):
        return None
    folder = Path(skill.path)
    script = SkillScript(name, uri=str(folder / name), skill_name=skill.name, skill_dir=folder, executor=files.executor)
    script.root = getattr(skill, 'root', None)
    return script


class Place(NamedTuple):
    """Where in a skill a name leads."""

    path: str
    """A path, relative to the skill's folder or to one in it."""

    is_fixed: bool
    """Whether it is relative to the skill's folder or absolute, so that it can mean only one file."""


def place_in(name: str, skill: Skill[Any]) -> Place:
    """Where in a skill a name leads, once the skill's folder, URI or placeholder is cut from its beginning."""
    path = name.replace('\\', '/') if '/' not in name else name
    beginnings = [f'skill://{skill.name}/', f'{skill.uri}/']
    if skill.path is not None:
        beginnings += [f'{skill.path}/', f'file://{skill.path}/']
    for beginning in beginnings:
        if path.startswith(beginning):
            return Place(path[len(beginning) :], is_fixed=True)
    if placeholder := re.match(_FOLDER, path):
        return Place(path[placeholder.end() :], is_fixed=True)
    path = re.sub(r'^(?:\./+)+', '', path)
    before, own_folder, rest = f'/{path.removeprefix(_HOSTED)}'.rpartition(f'/{skill.name}/')
    is_relative = not path.startswith('/') or path.startswith(_HOSTED)
    if own_folder and is_relative and (not before or before.endswith(('/skills', '/public', '/user'))):
        return Place(rest, is_fixed=True)
    return Place(path, is_fixed=path.startswith('/'))


def _pick(
    name: str, items: Sequence[NamedT], skill: Skill[Any], error: type[SkillError], also: Sequence[NamedT] = ()
) -> NamedT | None:
    """The item that a name means, if there is one. Raises `error` if it can mean several."""
    meant = _meant(name, items, skill, also)
    if len(meant) > 1:
        names = _few([item.name for item in meant], ' or ')
        raise error(f'{_told(name)} can mean {names} in skill {skill.name!r}.')
    return meant[0] if meant else None


def _meant(name: str, items: Sequence[NamedT], skill: Skill[Any], also: Sequence[NamedT] = ()) -> Sequence[NamedT]:
    """What a name may mean: the exact item, else those of `items` most like it, else those of `also`."""
    place = place_in(name, skill)
    exact = _exact(name, place, (*items, *also))
    similar = chain(_similar(place, items), _similar(place, also))
    return exact or next((found for found in similar if found), ())


def _exact(name: str, place: Place, items: Sequence[NamedT]) -> list[NamedT]:
    for wanted in (name, place.path):
        # The model is shown names without hidden characters.
        for same in (str, _without_hidden):
            if found := [item for item in items if same(item.name) == wanted]:
                return found[:1] if len({item.name for item in found}) == 1 else found
    return []


def _without_hidden(name: str) -> str:
    return hidden_characters().sub('', name)


def _similar(place: Place, items: Sequence[NamedT]) -> Iterator[list[NamedT]]:
    """The items a name may mean, from the most to the least like it.

    A path that does not exist never means a file of the same name elsewhere: each step compares whole paths, or what
    they end with.
    """
    if not place.path or '..' in place.path.split('/'):
        return
    for shown in (str, _without_suffix, _as_module):
        for same in (str, str.casefold):
            wanted = same(place.path)
            names = [(same(shown(item.name)), item) for item in items]
            yield [item for name, item in names if name == wanted]
            yield [item for name, item in names if not place.is_fixed and name.endswith(f'/{wanted}')]


def _without_suffix(name: str) -> str:
    return name.removesuffix(PurePosixPath(name).suffix)


def _as_module(name: str) -> str:
    """The name that `python -m` takes."""
    return name.removesuffix('.py').replace('/', '.') if name.endswith('.py') else ''


def _told(name: str) -> str:
    return repr(name[:MAX_NAME_COMPARED])


def _missing(kind: ItemKind, name: str, skill: Skill[Any], items: Iterable[_Named]) -> SkillError:
    error = SkillResourceNotFoundError if kind == 'resource' else SkillScriptNotFoundError
    there_is = closest_first(kind, name, (item.name for item in items))
    return error(f'There is no {kind} {_told(name)} in skill {skill.name!r}. {there_is}')


def closest_first(kind: str, name: str, names: Iterable[str], close: Sequence[str] | None = None) -> str:
    """A sentence that lists the existing names, those closest to a missing `name` first; `close` has these if known."""
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
