"""Checks the options of a toolset: a single value becomes a list, a value of the wrong kind is a `TypeError`."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, cast

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.execution.base import as_executor
from pydantic_ai_skills.types.skill import DepsT, Skill

from .prompt import SKILLS_LIST, TOOLS, ViewSettings

DEFAULT_DIRECTORY = './skills'

SAY_WHERE = 'Say where the skills are: skills=, directories= or registries=.'


class SkillsByName(Mapping[str, Skill[DepsT]], Generic[DepsT]):
    """The skills of a toolset by name, read-only. Writing raises an error that says how to add and remove skills."""

    def __init__(self, skills: Mapping[str, Skill[DepsT]]) -> None:
        self._skills = skills

    def __getitem__(self, name: str) -> Skill[DepsT]:
        return self._skills[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._skills)

    def __len__(self) -> int:
        return len(self._skills)

    def __repr__(self) -> str:
        return repr(dict(self._skills))

    def __setitem__(self, name: str, skill: Skill[DepsT]) -> NoReturn:
        raise TypeError('`skills` is to be read. Add a skill with `toolset.add_skill(skill)`.')

    def __delitem__(self, name: str) -> NoReturn:
        raise TypeError('`skills` is to be read. Remove a skill with `toolset.remove_skill(name)`.')


def checked(name: str, value: Any) -> Any:
    """The value of an option as the toolset uses it.

    Raises:
        TypeError: It is of the wrong kind. The message names the option and what it takes.
    """
    check = _CHECKS.get(name)
    return value if value is None or check is None else check(name, value)


def check_event_type(given: object) -> None:
    """Raise a `TypeError` if this is not the class of an event."""
    from .events import ScriptOutput, SkillEvent  # few developers ask for events

    if not (isinstance(given, type) and issubclass(given, SkillEvent | ScriptOutput)):
        raise TypeError(
            'on() takes the class of an event: SkillLoaded, ResourceRead, ScriptFinished, SkillEvent for all of them, '
            f'or ScriptOutput; not {given!r}.'
        )


def needs_capability(skill: Skill[Any]) -> str | None:
    """A message about the settings of a skill that only the capability applies; `None` if it has no such settings."""
    settings = {'model_settings': skill.model_settings, 'allowed-tools': skill.is_trusted and skill.allowed_tools}
    ignored = ' and '.join(name for name, value in settings.items() if value)
    if not ignored:
        return None
    return (
        f'The skill {skill.name!r} has {ignored}, which a toolset alone cannot apply. Give the agent '
        '`capabilities=[SkillsCapability(...)]` with the same options, in place of `toolsets=[SkillsToolset(...)]`.'
    )


def warn_of_skill(skill: Skill[Any], known: Container[str], *, has_capability: bool, stacklevel: int) -> None:
    """Warn a developer who adds a skill that replaces another, or whose settings have no effect."""
    if skill.name in known:
        message = f'The skill {skill.name!r} is defined twice; the later one is used.'
        warnings.warn(message, UserWarning, stacklevel)
    if not has_capability and (missing := needs_capability(skill)):
        warnings.warn(missing, UserWarning, stacklevel)


def view_settings(options: dict[str, Any]) -> ViewSettings:
    """What the options say about the list of skills and the tools."""
    template, budget = options['instruction_template'], options['catalog_budget']
    if template is not None and SKILLS_LIST not in template:
        raise ValueError(f'instruction_template must contain {SKILLS_LIST!r}, where the list of skills goes.')
    if budget is not None and budget < 0:
        raise ValueError(f'catalog_budget must be 0 or more, or None for no limit, not {budget}.')
    excluded: set[str] = set(options['exclude_tools'] or ())
    unknown = excluded - set(TOOLS)
    if unknown:
        raise ValueError(f'exclude_tools names {sorted(unknown)}; the tools are {list(TOOLS)}.')
    if 'load_skill' in excluded:
        warnings.warn('Without load_skill the model sees skills that it cannot use.', UserWarning, stacklevel=3)
    return ViewSettings(
        template=template,
        budget=budget,
        pinned=tuple(options['pinned']),
        search_tool=options['search_tool'],
        tools=frozenset(TOOLS) - excluded,
        always_all_tools=bool(options['auto_reload']),
    )


def open_directories(options: dict[str, Any]) -> list[SkillsDirectory] | Callable[[], list[SkillsDirectory]]:
    """The directories, or a function that finds them if that means looking at the file system."""
    given = options['directories']
    settings = {name: options[name] for name in ('validate', 'max_depth', 'script_executor', 'disk_index')}
    if given == 'standard':
        return partial(SkillsDirectory.standard, trust=options['trust'], **settings)
    if options['trust'] is not None:
        raise ValueError("trust= is for directories='standard'; SkillsDirectory.standard() has its own.")
    if (given, options['skills'], options['registries']) == (None, None, None):
        given = [DEFAULT_DIRECTORY]
    directories: list[SkillsDirectory] = []
    for each in given or ():
        directory = each if isinstance(each, SkillsDirectory) else SkillsDirectory(each, **settings)
        if each is not directory and not options['auto_reload'] and not _is_in_event_loop():
            _warn_if_missing(directory, stacklevel=4)
        directories.append(directory)
    return directories


def _is_in_event_loop() -> bool:
    """Whether looking at the file system here would block an event loop."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    return False


def _warn_if_missing(directory: SkillsDirectory, *, stacklevel: int) -> None:
    """Warn about a directory that does not exist, at the line where the developer made the toolset."""
    path, absolute = directory.path, Path(directory.absolute_path)
    if absolute.is_dir():
        return
    beside = [entry.name for entry in absolute.parent.glob('*/')]
    close = get_close_matches(path.name, beside, n=1)
    way_out = f'Did you mean {str(path.parent / close[0])!r}?' if close else SAY_WHERE
    warnings.warn(f'There is no directory {str(path)!r} in {absolute.parent}. {way_out}', UserWarning, stacklevel)


def _skills(name: str, value: Any) -> list[Skill[Any]]:
    if isinstance(value, str | Path):
        raise TypeError(f'skills takes Skill objects, not {value!r}. For a folder of skills: directories={value!r}.')
    skills = _items(name, value, Skill)
    for skill in skills:
        if not isinstance(skill, Skill):
            way_out = f' Make one: {skill.__name__}().' if isinstance(skill, type) else ''
            raise TypeError(f'skills takes Skill objects, not {skill!r}.{way_out}')
    return skills


def _directories(name: str, value: Any) -> Any:
    return value if value == 'standard' else _items(name, value, (str, Path, SkillsDirectory))


def _registries(name: str, value: Any) -> list[Any]:
    from pydantic_ai_skills.registries.base import as_registry  # most toolsets have directories only

    return [as_registry(each) for each in ([value] if hasattr(value, 'get_skills') else _items(name, value, str))]


def _names(name: str, value: Any) -> list[str]:
    return _items(name, value, str)


def _function(name: str, value: Any) -> Any:
    if not callable(value):
        raise TypeError(f'{name} takes a function, not {value!r}.')
    return value


def _items(name: str, value: Any, single: type | tuple[type, ...]) -> list[Any]:
    """A list of what was given; one value of the `single` kind is a list of one."""
    if isinstance(value, single):
        return [value]
    if not isinstance(value, Iterable):
        raise TypeError(f'{name} takes one value or a list of them, not {value!r}.')
    return list(cast(Iterable[Any], value))


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    'directories': _directories,
    'exclude_tools': _names,
    'pinned': _names,
    'registries': _registries,
    'script_executor': lambda _, value: as_executor(value),
    'skill_filter': _function,
    'skills': _skills,
}
