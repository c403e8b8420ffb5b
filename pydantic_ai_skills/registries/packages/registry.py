"""Skills from installed Python packages: found without an import, offered only from packages that were named."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.registries.base import FindingRegistry, guarded
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.skill import FoundSkills, Skill

from .distributions import Distribution, normalize, walk_for
from .modules.code import find_code
from .reader import Offer, PackageReader
from .skill_files import find_skill_files

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

__all__ = ('PackageSkillsRegistry', 'SkillPackage')

GROUPS = ('pydantic_ai_skills', 'pyskills')
FOLDERS = ('.agents/skills', 'skills')
_NAME = re.compile(r'[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?')


@dataclass(frozen=True, kw_only=True)
class SkillPackage:
    """An installed distribution that has skills."""

    distribution: str
    """Its name."""

    version: str
    """Its version."""

    skills: tuple[str, ...]
    """What its skills are called, as far as that is known without reading them."""

    offered: bool
    """Whether the registry offers them."""


class PackageSkillsRegistry(FindingRegistry):
    """Skills that installed Python packages bring: folders with a `SKILL.md`, modules, and skills written in Python.

    Nothing is imported to find and to load them. Only packages that are named are offered; others that have skills are
    in `available` and in the problems.

    ```python
    from pydantic_ai_skills import PackageSkillsRegistry, SkillsToolset

    registry = PackageSkillsRegistry(packages=['pydantic-ai-slim'])
    toolset = SkillsToolset(registries=[registry])
    print('building-pydantic-ai-agents' in toolset.skills)
    #> True
    ```
    """

    def __init__(
        self,
        *,
        packages: Collection[str] | Literal['all'] | None = None,
        groups: Sequence[str] = GROUPS,
        folders: Sequence[str] = FOLDERS,
        trusted: bool | Collection[str] = False,
        read_from: Sequence[str | Path] | None = None,
        write_to: Sequence[str | Path] | None = None,
        script_executor: SkillScriptExecutor | None = None,
        validate: bool = True,
        path: Sequence[str | Path] | None = None,
    ) -> None:
        """Remember which packages to offer; they are looked for on first use.

        Args:
            packages: Names of distributions, as `pip install` takes them, or `'all'`. None by default. Of two skills
                with one name, the one of the package that is named first is used.
            groups: Groups of entry points that name modules or skills.
            folders: Folders of skills in a package.
            trusted: Whether you vouch for the packages, or the names of those you do. Only their modules are imported
                to run functions of them; scripts in files of others run in a sandbox only.
            read_from: Folders that functions may read from, where a module declares which arguments are such paths.
            write_to: Folders that functions may write to, where a module declares which arguments are such paths.
            script_executor: What runs scripts in files; a `LocalSkillScriptExecutor` when not given.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            path: Where to look for distributions, in place of `sys.path`.

        Raises:
            SkillValidationError: A name is none of a distribution, or folders are not given as a list.
        """
        self.packages = 'all' if packages == 'all' else tuple(_check_names(packages or (), 'packages'))
        self.trusted = (
            trusted if isinstance(trusted, bool) else frozenset(map(normalize, _check_names(trusted, 'trusted')))
        )
        for parameter, given in (('read_from', read_from), ('write_to', write_to)):
            if isinstance(given, str | Path):
                raise SkillValidationError(f'Give {parameter} as a list of folders: [{str(given)!r}].')
        self.groups = tuple([groups] if isinstance(groups, str) else groups)
        self.folders = tuple(folder.strip('/') for folder in ([folders] if isinstance(folders, str) else folders))
        self.path = None if path is None else [str(place) for place in path]
        self._walk = walk_for(self.groups, self.folders)
        self._reader = PackageReader(
            trusted=self.trusted,
            read_from=read_from,
            write_to=write_to,
            script_executor=script_executor,
            validate=validate,
        )
        self._available: tuple[SkillPackage, ...] = ()
        self._working = threading.Lock()

    def __repr__(self) -> str:
        packages = repr('all') if self.packages == 'all' else list(self.packages)
        return f'PackageSkillsRegistry(packages={packages})'

    @property
    def available(self) -> list[SkillPackage]:
        """Every installed distribution that has skills, whether they are offered or not."""
        self.find()
        return list(self._available)

    def find(self) -> FoundSkills:
        """The skills and the problems together: looked for the first time, and as they were after that."""
        if self._found is None:
            with self._working:
                self._found = self._found or guarded(self._look, self, None)
        return self._found

    def refresh(self) -> FoundSkills:
        """Look at what is installed now. Where nothing has changed, the result of the last look is returned again."""
        with self._working:
            found = guarded(self._look, self, self._found)
            if found != self._found:
                self._found = found
            return self._found or found

    # --- What is installed ----------------------------------------------------------------------------------------

    def _look(self) -> FoundSkills:
        installed = self._walk.walk(self.path)
        offers = {key: offer for key in sorted(installed) if (offer := self._offer(installed[key])) is not None}
        chosen = list(offers) if self.packages == 'all' else list(dict.fromkeys(map(normalize, self.packages)))
        self._available = tuple(
            SkillPackage(
                distribution=offer.distribution.name,
                version=offer.distribution.version,
                skills=offer.names,
                offered=key in chosen,
            )
            for key, offer in offers.items()
        )
        given = [given for key in chosen if key in offers for given in self._reader.read(offers[key])]
        problems = [found for gift in given for found in gift.problems]
        problems += self._about_packages(installed, offers, chosen)
        skills: dict[str, Skill[Any]] = {}
        for skill in (skill for gift in given for skill in gift.skills):
            first = skills.setdefault(skill.name, skill)
            if first is not skill:
                message = f'The skill {skill.name!r} is not used: the one of {_label(first)} comes first.'
                problems.append(problem('shadowed', _label(skill), message))
        return FoundSkills(tuple(skills.values()), tuple(problems))

    def _offer(self, distribution: Distribution) -> Offer | None:
        is_listed = distribution.has_record and not distribution.loose_files
        if is_listed and not (distribution.entry_points or distribution.skill_files or distribution.is_broken):
            return None
        code = find_code(distribution, self.path)
        files = find_skill_files(distribution, code, self.folders)
        return (
            Offer(distribution, code, files) if files or distribution.entry_points or distribution.is_broken else None
        )

    def _about_packages(
        self, installed: dict[str, Distribution], offers: dict[str, Offer], chosen: Sequence[str]
    ) -> Iterator[SkillProblem]:
        for key in chosen:
            if key in installed and key not in offers:
                yield problem('package-empty', key, f'The package {key!r} is installed and has no skills.')
            elif key not in installed:
                known = closest_first('skill package', key, (offer.distribution.name for offer in offers.values()))
                yield problem('package-missing', key, f'No package {key!r} is installed. {known}')
        for package in self._available:
            if not package.offered:
                names = ', '.join(map(repr, package.skills))
                message = f'It has skills that are not offered ({names}). To offer them, add it to packages=[...].'
                label = f'{package.distribution} {package.version}'.strip()
                yield problem('package-available', label, message)


def _check_names(names: Collection[str], parameter: str) -> Collection[str]:
    if isinstance(names, str):
        raise SkillValidationError(f'Give {parameter} as a list of names: [{names!r}].')
    for name in names:
        if not _NAME.fullmatch(name):
            raise SkillValidationError(f'{name!r} in {parameter} is not the name of a distribution.')
    return names


def _label(skill: Skill[Any]) -> str:
    source = skill.source
    assert source is not None
    return f'{source.distribution} {source.version}: {skill.name}'
