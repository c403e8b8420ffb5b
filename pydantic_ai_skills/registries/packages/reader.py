"""The skills of one installed distribution: those in its folders, and those its entry points name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import FileStamp, stamp
from pydantic_ai_skills.parsing.rules import problem, shorten_skill_name
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import Skill, SkillProvenance

from .distributions import Distribution, NamedObject
from .modules.code import Code
from .modules.functions import FunctionRules
from .modules.modules import module_skill
from .modules.objects import NamedSkills, read_skills
from .modules.source import ModuleSource, UnusableModule, read_module
from .trees import Tree, ZipTree
from .zipped import read_zipped_skill

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

__all__ = ('Given', 'Offer', 'PackageReader')

MODULE_GROUP = 'pyskills'
"""The group whose entry points always mean a module."""


class Offer(NamedTuple):
    """What a distribution has for agents."""

    distribution: Distribution
    code: Code
    files: list[tuple[Tree, str]]

    @property
    def names(self) -> tuple[str, ...]:
        """What its skills are called, as far as that is known without reading them."""
        folders = (os.path.basename(os.path.dirname(name)) for _, name in self.files)
        return tuple(dict.fromkeys((*folders, *(_skill_name(point) for point in self.distribution.entry_points))))


class Given(NamedTuple):
    """What one file or entry point gave, and what it was read from."""

    key: object
    skills: tuple[Skill[Any], ...] = ()
    problems: tuple[SkillProblem, ...] = ()


@dataclass(kw_only=True)
class PackageReader:
    """Reads the skills of distributions, and keeps what it has read for as long as the files stay as they are."""

    trusted: bool | frozenset[str]
    """Whether the distributions are trusted, or the names of those that are."""

    read_from: Sequence[str | Path] | None
    """Folders that functions may read from."""

    write_to: Sequence[str | Path] | None
    """Folders that functions may write to."""

    script_executor: SkillScriptExecutor | None
    """What runs scripts in files."""

    validate: bool
    """Whether to apply the Agent Skills rules beyond a usable name and description."""

    _directories: dict[str, SkillsDirectory] = field(default_factory=dict[str, SkillsDirectory])
    _given: dict[tuple[str, object], Given] = field(default_factory=dict[tuple[str, object], Given])

    def read(self, offer: Offer) -> Iterator[Given]:
        """What each folder and each entry point of a distribution gives."""
        distribution = offer.distribution
        if distribution.is_broken:
            path = os.path.join(distribution.tree.path, distribution.info, 'entry_points.txt')
            yield Given(None, problems=(problem('package-unreadable', path, 'The entry points cannot be read.'),))
        for tree, name in offer.files:
            yield self._folder_skill(tree, name, self._about(distribution, os.path.dirname(name)))
        seen: set[tuple[str, str]] = set()
        for point in distribution.entry_points:
            target = point.module, '' if point.group == MODULE_GROUP else point.attribute
            if target not in seen:
                seen.add(target)
                yield self._entry_point_skills(offer, point)

    def _folder_skill(self, tree: Tree, name: str, about: SkillProvenance) -> Given:
        home = os.path.dirname(os.path.join(tree.path, name))
        if isinstance(tree, ZipTree):
            key = home, tree.sizes.get(name), _stamp(tree.path), about
            if (home, None) not in self._given or self._given[home, None].key != key:
                skill, problems = read_zipped_skill(tree, name, about=about, validate=self.validate)
                self._given[home, None] = Given(key, () if skill is None else (skill,), problems)
            return self._given[home, None]
        directory = self._directories.get(home)
        if directory is None:
            directory = self._directories[home] = SkillsDirectory(
                home, validate=self.validate, max_depth=0, script_executor=self.script_executor
            )
        found = directory.find()
        for skill in found.skills:
            skill.source = about
        return Given(home, found.skills, found.problems)

    def _entry_point_skills(self, offer: Offer, point: NamedObject) -> Given:
        """The skills of an entry point; read again only if the file of its module has changed."""
        about = self._about(offer.distribution, '')
        file = offer.code.find(point.module) if point.module else None
        place = file.tree.path if file is not None and isinstance(file.tree, ZipTree) else file.path if file else ''
        key = _stamp(place), about, place
        known = self._given.get((offer.distribution.key, point))
        if known is None or known.key != key:
            try:
                known = self._read_entry_point(offer, point, about)
            except UnusableModule as unusable:
                known = Given(key, problems=(unusable.problem,))
            self._given[offer.distribution.key, point] = known = known._replace(key=key)
        return known

    def _read_entry_point(self, offer: Offer, point: NamedObject, about: SkillProvenance) -> Given:
        label = f'{offer.distribution.name}: {point.name}'
        if not point.module:
            message = (
                f'The entry point {point.name!r} names neither a module nor something in one: {point.attribute!r}.'
            )
            return Given(None, problems=(problem('entry-point-invalid', label, message),))
        source = read_module(point.module, offer.code.find(point.module))
        about = self._about(offer.distribution, source.file.name)
        if point.attribute and point.group != MODULE_GROUP:
            return self._named_skills(source, point, about, label)
        rules = FunctionRules(trusted=about.trusted, read_from=self.read_from, write_to=self.write_to)
        skill = module_skill(_skill_name(point), source, offer.code, about=about, rules=rules)
        problems: tuple[SkillProblem, ...] = ()
        if find_spec('griffe') is None:
            message = (
                f"The skill {skill.name!r} cannot be loaded without griffe: pip install 'pydantic-ai-skills[packages]'."
            )
            problems = (problem('extra-missing', label, message),)
        return Given(None, (skill,), problems)

    def _named_skills(self, source: ModuleSource, point: NamedObject, about: SkillProvenance, label: str) -> Given:
        if not about.trusted:
            message = (
                f'The skills of {point.module}:{point.attribute} have to be imported. To offer them, trust the package '
                f'with trusted=[{about.distribution!r}].'
            )
            return Given(None, problems=(problem('package-untrusted', label, message),))
        named = NamedSkills(source, point.attribute)
        written = read_skills(source, point.attribute)
        if written is not None:
            return Given(None, tuple(named.later(skill, about) for skill in written))
        try:
            skills = named.load()
        except SkillRegistryError as error:
            return Given(None, problems=(problem('entry-point-invalid', label, str(error)),))
        return Given(None, tuple(_from_package(skill, about) for skill in skills.values()))

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


def _skill_name(point: NamedObject) -> str:
    for wording in (point.name, point.module):
        with suppress(SkillValidationError):
            return shorten_skill_name(wording)
    return 'skill'


def _from_package(skill: Skill[Any], about: SkillProvenance) -> Skill[Any]:
    """A skill that a package made, with where it comes from; the package's own stays as it is."""
    ours = skill.renamed(skill.name)
    ours.source = about
    return ours


def _stamp(path: str) -> FileStamp | None:
    try:
        return stamp(os.stat(path))
    except OSError:
        return None
