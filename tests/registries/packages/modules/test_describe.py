"""One symbol of a module, described without an import; and the skills of packages with their descriptions."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import Any

import pytest

from pydantic_ai_skills import (
    PackageSkillsRegistry,
    SkillResourceNotFoundError,
    SkillsToolset,
    describe,
    list_package_skills,
)
from tests.folders import call_tool
from tests.registries.packages.sites import STATS, Site, skill

pytestmark = pytest.mark.anyio

MEAN = """\
def mean(
    values: list[float],  # the numbers
    digits: int = 2,  # how many digits to keep
) -> float:  # the mean
    \"\"\"The mean of some numbers.\"\"\""""


def install(place: Site, more: str = '') -> None:
    files = {'acme/__init__.py': '', 'acme/stats.py': f'{STATS}{more}', **skill('acme-notes')}
    place.install('acme', files, entry_points={'pyskills': {'stats': 'acme.stats'}})


def test_the_skills_of_packages_are_listed_with_their_descriptions(place: Site):
    install(place)

    listed = list_package_skills(path=[place.path])

    assert listed == {
        'acme-notes': 'Does it.',
        'acme.stats': 'Statistics for small tables. Use for means and reports.',
    }
    assert list_package_skills(['other'], path=[place.path]) == {}
    assert 'acme' not in sys.modules


def test_a_function_is_described_with_the_comments_on_its_parameters(place: Site):
    install(place)
    assert describe('acme.stats.mean', path=[place.path]) == MEAN


def test_a_class_is_described_with_its_methods_and_its_whole_docstring(place: Site):
    install(place)
    text = describe('acme.stats.Table', path=[str(place.path)])
    assert text.startswith('class Table:')
    assert 'def add(self, row: list[str]) -> None:' in text
    assert text.endswith('Not shown.')
    assert describe('acme.stats.Table.add', path=[place.path]).startswith('def add(self, row: list[str])')


@pytest.mark.parametrize(
    ('more', 'allowed'), [('', ''), ('allow(mean, {Table: ...})\n', 'Agents may call: Table, mean.')]
)
def test_a_module_is_described_with_what_agents_may_use(place: Site, more: str, allowed: str):
    install(place, more)
    text = describe('acme.stats', path=[place.path])
    assert text.startswith('# module acme.stats\n\nStatistics for small tables.')
    assert MEAN in text
    assert text.endswith(allowed)


@pytest.mark.parametrize(
    ('symbol', 'start'),
    [
        (textwrap.shorten, 'def shorten(text, width, **kwargs):'),
        (textwrap.TextWrapper, 'class TextWrapper:'),
        (textwrap.TextWrapper.fill, 'def fill(self, text):'),
        (textwrap.TextWrapper(), 'class TextWrapper:'),
        (textwrap, '# module textwrap'),
        (json, '# module json'),
    ],
)
def test_an_object_is_described_by_its_source(symbol: object, start: str):
    assert describe(symbol).startswith(start)


@pytest.mark.parametrize(
    'symbol', ['nothing', 'acme.stats.nothing', 'acme.stats.Table.nothing', 'acme.stats.mean.x', '', len]
)
def test_what_has_no_source_is_an_error(place: Site, symbol: Any):
    install(place)
    with pytest.raises(SkillResourceNotFoundError, match='no symbol'):
        describe(symbol, path=['', place.path])


async def test_a_model_can_read_about_one_symbol(place: Site):
    install(place)
    registry = PackageSkillsRegistry(packages=['acme'], path=[place.path])
    toolset = SkillsToolset[Any](registries=[registry])
    await toolset.load()

    async def read(**args: str) -> tuple[bool, Any]:
        return await call_tool(
            toolset, 'read_skill_resource', skill_name='stats', resource_name='api', args=args or None
        )

    assert await read(symbol='mean') == (True, MEAN)
    whole = await read()
    assert MEAN in whole[1]
    succeeded, message = await read(symbol='meen')
    assert (succeeded, "The symbols are: 'mean'" in message) == (False, True)
    assert 'acme' not in sys.modules
