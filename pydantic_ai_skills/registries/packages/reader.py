"""Reads the skills of one installed distribution: those in its folders, and those its entry points name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.parsing.skill_names import shorten_skill_name
from pydantic_ai_skills.problems import problem
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.skill import Skill

from .code import Code, ModuleFile
from .distributions import Distribution, module_of, stamp_of
from .modules.functions import FunctionRules
from .modules.module_skill import module_skill
from .modules.named_skills import NamedSkills
from .modules.source import UnusableModule, read_module
from .trees import Tree, ZipTree
from .zipped import read_zipped_skill

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

MODULE_GROUP = 'pyskills'
"""The group whose entry points always name a module."""


class Offer(NamedTuple):
    """What a distribution has for agents."""

    distribution: Distribution
    code: Code
    files: list[tuple[Tree, str]]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its skills, as far as they are known without reading them."""
        folders = (os.path.basename(os.path.dirname(name)) for _, name in self.files)
        return tuple(dict.fromkeys((*folders, *(_skill_name(point) for point in self.distribution.entry_points))))


@dataclass(kw_only=True)
class PackageReader:
    """Reads the skills of distributions and keeps them until their files change."""

    trusted: bool | frozenset[str]
    """Whether all distributions are trusted, or the names of those that are."""

    import_to_list: bool = False
    """Whether to import modules whose source does not say which skills they have."""

    rules: FunctionRules
    """What functions may do if their distribution is trusted."""

    script_executor: SkillScriptExecutor | None
    validate: bool
    _directories: dict[str, SkillsDirectory] = field(default_factory=dict[str, SkillsDirectory])
    _given: dict[object, tuple[object, FoundSkills]] = field(default_factory=dict[object, tuple[object, FoundSkills]])

    def read(self, offer: Offer) -> Iterator[FoundSkills]:
        """Read each folder and each entry point of a distribution."""
        distribution = offer.distribution
        if distribution.is_broken:
            path = os.path.join(distribution.tree.path, distribution.info, 'entry_points.txt')
            yield FoundSkills(problems=(problem('package-unreadable', path, 'The entry points cannot be read.'),))
        for tree, name in offer.files:
            yield self._folder_skill(tree, name, self._about(distribution, os.path.dirname(name)))
        targets: dict[tuple[str, str], EntryPoint] = {}
        for point in distribution.entry_points:
            targets.setdefault(_target(point), point)
        for point in targets.values():
            yield self._entry_point_skills(offer, point)

    def _unless_changed(self, what: object, key: object, read: Callable[[], FoundSkills]) -> FoundSkills:
        """What was read last time, or `read()` if `key` has changed since."""
        known = self._given.get(what)
        if known is None or known[0] != key:
            self._given[what] = known = key, read()
        return known[1]

    def _folder_skill(self, tree: Tree, name: str, about: SkillProvenance) -> FoundSkills:
        home = os.path.dirname(os.path.join(tree.path, name))
        if isinstance(tree, ZipTree):
            key = tree.sizes.get(name), stamp_of(tree.path), about
            read = partial(read_zipped_skill, tree, name, about=about, validate=self.validate)
            return self._unless_changed(home, key, read)
        directory = self._directories.get(home)
        if directory is None:
            directory = self._directories[home] = SkillsDirectory(
                home, validate=self.validate, max_depth=0, script_executor=self.script_executor
            )
        found = directory.find()
        for skill in found.skills:
            skill.source = about
        return found

    def _entry_point_skills(self, offer: Offer, point: EntryPoint) -> FoundSkills:
        about = self._about(offer.distribution, '')
        module = module_of(point)
        file = offer.code.find(module) if module else None
        place = '' if file is None else file.tree.path if isinstance(file.tree, ZipTree) else file.path

        def read() -> FoundSkills:
            try:
                return self._read_entry_point(offer, point, module, file)
            except UnusableModule as unusable:
                return FoundSkills(problems=(unusable.problem,))

        return self._unless_changed((offer.distribution.key, point), (stamp_of(place), about, place), read)

    def _read_entry_point(self, offer: Offer, point: EntryPoint, module: str, file: ModuleFile | None) -> FoundSkills:
        label = f'{offer.distribution.name}: {point.name}'
        if not module:
            message = f'The entry point {point.name!r} names neither a module nor something in one: {point.value!r}.'
            return FoundSkills(problems=(problem('entry-point-invalid', label, message),))
        source = read_module(module, file)
        about = self._about(offer.distribution, source.file.name)
        if point.attr and point.group != MODULE_GROUP:
            return self._named_skills(NamedSkills(source, point.attr), about, label)
        rules = replace(self.rules, trusted=about.trusted)
        skill = module_skill(_skill_name(point), source, offer.code, about=about, rules=rules)
        if find_spec('griffe') is not None:
            return FoundSkills((skill,))
        message = f"Loading {skill.name!r} needs griffe: pip install 'pydantic-ai-skills[packages]'."
        return FoundSkills((skill,), (problem('extra-missing', label, message),))

    def _named_skills(self, named: NamedSkills, about: SkillProvenance, label: str) -> FoundSkills:
        if not about.trusted:
            message = (
                f'The skills of {named.label} have to be imported. To offer them, trust the package with '
                f'trusted=[{about.distribution!r}].'
            )
            return FoundSkills(problems=(problem('package-untrusted', label, message),))
        declared = named.declared()
        if declared is not None:
            return FoundSkills(tuple(named.deferred(skill, about) for skill in declared))
        if not self.import_to_list:
            message = (
                f'The source of {named.label} does not say which skills it has, so they are not offered. Write them as '
                '`Skill(name, description, ...)` with literal texts, or import the module with import_to_list=True.'
            )
            return FoundSkills(problems=(problem('entry-point-unclear', label, message),))
        try:
            skills = named.load()
        except SkillRegistryError as error:
            return FoundSkills(problems=(problem('entry-point-invalid', label, str(error)),))
        return FoundSkills(tuple(_from_package(skill, about) for skill in skills.values()))

    def _about(self, distribution: Distribution, path: str) -> SkillProvenance:
        trusted = self.trusted if isinstance(self.trusted, bool) else distribution.key in self.trusted
        return SkillProvenance(
            kind='package',
            url=f'pkg:pypi/{distribution.key}@{distribution.version}',
            path=path,
            trusted=trusted,
            distribution=distribution.name,
            version=distribution.version,
        )


def _target(point: EntryPoint) -> tuple[str, str]:
    module = module_of(point)
    return module, '' if point.group == MODULE_GROUP else (point.attr or '') if module else point.value


def _skill_name(point: EntryPoint) -> str:
    for wording in (point.name, module_of(point)):
        with suppress(SkillValidationError):
            return shorten_skill_name(wording)
    return 'skill'


def _from_package(skill: Skill[Any], about: SkillProvenance) -> Skill[Any]:
    """A copy of a package's skill, with its provenance."""
    ours = skill.renamed(skill.name)
    ours.source = about
    return ours
