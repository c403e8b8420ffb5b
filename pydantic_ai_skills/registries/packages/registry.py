"""Skills from installed Python packages, found without an import and offered only from named packages."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic_ai_skills.directory.standard import PACKAGE_FOLDERS
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.base import as_executor
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.registries.base import FindingRegistry
from pydantic_ai_skills.types.found_skills import FoundSkills, first_of_each_name
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.skill import Skill

from .code import find_code
from .distributions import Distribution, normalize, walk_for
from .modules.functions import FunctionRules
from .reader import Offer, PackageReader
from .skill_files import find_skill_files

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

GROUPS = ('pydantic_ai_skills', 'pyskills')
_NAME = re.compile(r'[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?')


@dataclass(frozen=True, kw_only=True)
class SkillPackage:
    """An installed distribution that has skills."""

    distribution: str
    """Its name."""

    version: str
    """Its version."""

    skills: tuple[str, ...]
    """The names of its skills, as far as they are known without reading them."""

    offered: bool
    """Whether the registry offers them."""


class PackageSkillsRegistry(FindingRegistry):
    """Skills that installed Python packages bring: folders with a `SKILL.md`, modules, and skills written in Python.

    Finding and loading them imports nothing. Only named packages are offered; all that have skills are listed in
    `available`, and in the problems if none is named.

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
        folders: Sequence[str] = PACKAGE_FOLDERS,
        trusted: bool | Collection[str] = False,
        import_to_list: bool = False,
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
            trusted: Whether you vouch for the packages, or the names of those you vouch for. Only their modules are
                imported to run functions; scripts in files of other packages run only in a sandbox.
            import_to_list: Whether to import modules of trusted packages at the first look, if their source does not
                say which skills they have. That runs their code before any script policy is asked.
            read_from: Folders that functions may read from, where a module declares which arguments are such paths.
            write_to: Folders that functions may write to, where a module declares which arguments are such paths.
            script_executor: What runs scripts in files; a `LocalSkillScriptExecutor` when not given.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            path: Where to look for distributions, in place of `sys.path`.

        Raises:
            SkillValidationError: A name is not that of a distribution, or folders are not given as a list.
        """
        self.packages = 'all' if packages == 'all' else tuple(_check_names(packages or (), 'packages'))
        self.trusted = (
            trusted if isinstance(trusted, bool) else frozenset(map(normalize, _check_names(trusted, 'trusted')))
        )
        _check_folders(read_from=read_from, write_to=write_to)
        self.groups = tuple([groups] if isinstance(groups, str) else groups)
        self.folders = tuple(folder.strip('/') for folder in ([folders] if isinstance(folders, str) else folders))
        self.path = None if path is None else [str(place) for place in path]
        self._walk = walk_for(self.groups, self.folders)
        self._reader = PackageReader(
            trusted=self.trusted,
            import_to_list=import_to_list,
            rules=FunctionRules(read_from=read_from, write_to=write_to),
            script_executor=as_executor(script_executor),
            validate=validate,
        )
        self._available: tuple[SkillPackage, ...] = ()

    def __repr__(self) -> str:
        packages = repr('all') if self.packages == 'all' else list(self.packages)
        return f'PackageSkillsRegistry(packages={packages})'

    @property
    def available(self) -> list[SkillPackage]:
        """Every installed distribution that has skills, whether they are offered or not."""
        self.find()
        return list(self._available)

    # --- What is installed ----------------------------------------------------------------------------------------

    def _look(self) -> FoundSkills:
        installed = self._walk.walk(self.path)
        offers = {key: offer for key in sorted(installed) if (offer := self._offer(installed[key])) is not None}
        refused = {key: offers.pop(key) for key in list(offers) if offers[key].distribution.refusal}
        chosen = list(offers) if self.packages == 'all' else list(dict.fromkeys(map(normalize, self.packages)))
        self._available = tuple(_as_package(offer, offered=key in chosen) for key, offer in offers.items())
        skills: list[Skill[Any]] = []
        problems: list[SkillProblem] = []
        for key in filter(offers.__contains__, chosen):
            for found in self._reader.read(offers[key]):
                skills += found.skills
                problems += found.problems
        problems += [_refused(offer.distribution) for offer in refused.values()]
        problems += self._about_packages(installed, offers, [key for key in chosen if key not in refused])
        winners, lost = first_of_each_name(skills, _shadowed)
        return FoundSkills(tuple(winners.values()), (*problems, *lost))

    def _offer(self, distribution: Distribution) -> Offer | None:
        if not distribution.may_have_skills:
            return None
        code = find_code(distribution, self.path)
        offer = Offer(distribution, code, find_skill_files(distribution, code, self.folders))
        return offer if offer.files or distribution.entry_points or distribution.is_broken else None

    def _about_packages(
        self, installed: dict[str, Distribution], offers: dict[str, Offer], chosen: Sequence[str]
    ) -> Iterator[SkillProblem]:
        for key in chosen:
            if key in installed and key not in offers:
                yield problem('package-empty', key, f'The package {key!r} is installed and has no skills.')
            elif key not in installed:
                known = closest_first('skill package', key, (offer.distribution.name for offer in offers.values()))
                yield problem('package-missing', key, f'No package {key!r} is installed. {known}')
        # Whoever has named packages knows of the others, or does not want them.
        for package in () if self.packages else self._available:
            names = ', '.join(map(repr, package.skills))
            message = f'It has skills that are not offered ({names}). To offer them, add it to packages=[...].'
            label = f'{package.distribution} {package.version}'.strip()
            yield problem('package-available', label, message)


def list_package_skills(packages: Collection[str] | Literal['all'] = 'all', **options: Any) -> dict[str, str]:
    """The skills of installed packages with their descriptions, without importing anything.

    ```python
    from pydantic_ai_skills import list_package_skills

    for name, description in list_package_skills(['typer']).items():
        print(name, '-', description.partition('.')[0])
        #> typer - Typer best practices and conventions
    ```

    Args:
        packages: Names of distributions, or `'all'`.
        **options: Options of `PackageSkillsRegistry`.

    Returns:
        The descriptions, by the name of the module for modules, and by the name of the skill for others.
    """
    skills = PackageSkillsRegistry(packages=packages, **options).get_skills()
    return {skill.metadata.get('module', skill.name): skill.description for skill in skills}


def _refused(distribution: Distribution) -> SkillProblem:
    path = os.path.join(distribution.tree.path, distribution.info)
    return problem('package-ambiguous', path, f'The package {distribution.key!r} is left out. {distribution.refusal}')


def _as_package(offer: Offer, *, offered: bool) -> SkillPackage:
    name, version = offer.distribution.name, offer.distribution.version
    return SkillPackage(distribution=name, version=version, skills=offer.names, offered=offered)


def _check_names(names: Collection[str], parameter: str) -> Collection[str]:
    if isinstance(names, str):
        raise SkillValidationError(f'Give {parameter} as a list of names: [{names!r}].')
    for name in names:
        if not _NAME.fullmatch(name):
            raise SkillValidationError(f'{name!r} in {parameter} is not the name of a distribution.')
    return names


def _check_folders(**parameters: object) -> None:
    for parameter, given in parameters.items():
        if isinstance(given, str | Path):
            raise SkillValidationError(f'Give {parameter} as a list of folders: [{str(given)!r}].')


def _shadowed(loser: Skill[Any], winner: Skill[Any]) -> SkillProblem:
    message = f'The skill {loser.name!r} is not used: the one of {_label(winner)} comes first.'
    return problem('shadowed', _label(loser), message)


def _label(skill: Skill[Any]) -> str:
    source = skill.source
    assert source is not None
    return f'{source.distribution} {source.version}: {skill.name}'
