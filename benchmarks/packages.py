"""What finding the skills of installed packages costs, against a bare walk over the distributions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

from pydantic_ai_skills import PackageSkillsRegistry
from tests.registries.packages.sites import STATS, Site, skill

from .figure import Figure, best_of

DISTRIBUTIONS = 300
WITH_FOLDERS = 10
WITH_MODULES = 10
FILES = 60
README = 'One line of a description that is as long as such lines are.\n' * 150


def write_site(path: Path) -> None:
    """Install distributions of which a few have skills."""
    site = Site(path)
    for number in range(DISTRIBUTIONS):
        name = f'package-{number:03}'
        package = name.replace('-', '_')
        files = {f'{package}/module_{file}.py': '' for file in range(FILES)}
        points = {'console_scripts': {name: f'{package}.main:run'}} if number % 3 == 0 else {}
        if number < WITH_FOLDERS:
            files |= skill(name)
        elif number < WITH_FOLDERS + WITH_MODULES:
            files |= {f'{package}/stats.py': STATS}
            points |= {'pyskills': {name: f'{package}.stats'}}
        metadata = f'Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n' + 'Classifier: Typing :: Typed\n' * 15
        site.install(name, files, entry_points=points, info={'METADATA': f'{metadata}\n{README}'})


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / 'site-packages'
        write_site(site)
        registry = PackageSkillsRegistry(packages='all', path=[site])

        def find() -> None:
            found = PackageSkillsRegistry(packages='all', path=[site]).find()
            assert len(found.skills) == WITH_FOLDERS + WITH_MODULES

        def find_again() -> None:
            assert len(registry.refresh().skills) == WITH_FOLDERS + WITH_MODULES

        def walk() -> None:
            assert len({found.name: found.version for found in distributions(path=[str(site)])}) == DISTRIBUTIONS

        def read_entry_points() -> None:
            assert len([found.entry_points for found in distributions(path=[str(site)])]) == DISTRIBUTIONS

        ours, again, bare, entry_points = best_of(find, find_again, walk, read_entry_points)
        what = f'skills of {DISTRIBUTIONS} distributions'
        yield Figure(what=what, measured=ours, unit='ms', limit=150)
        for name, measured, baseline, of in (
            (what, ours, bare, 'the name and version of each distribution'),
            (f'{what}, again', again, entry_points, 'the entry points of each distribution'),
        ):
            yield Figure(
                what=name,
                measured=measured,
                unit='ms',
                limit=2,
                judged_by='ratio',
                baseline=baseline,
                baseline_is=of,
            )
