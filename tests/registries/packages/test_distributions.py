"""Where packages can be installed, and what of them is found."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.metadata import DistributionFinder, PackageMetadata, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import PackageSkillsRegistry, SkillResourceLoadError, SkillsToolset
from pydantic_ai_skills.directory.settings import MAX_FILES
from tests.folders import call_tool, skill_md, write
from tests.registries.packages.sites import STATS, Site, skill

MODULE = {'pydantic_ai_skills': {'stats': 'acme.stats'}}


def find(*path: Path, **options: Any) -> dict[str, str]:
    """The skills on a path, each with the distribution that has it."""
    registry = PackageSkillsRegistry(packages='all', path=path, **options)
    found = {skill.name: skill.source.distribution or '' for skill in registry.get_skills() if skill.source}
    assert registry.problems == []
    return found


# --- Folders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('file', 'is_found'),
    [
        ('pdf/.agents/skills/pdf/SKILL.md', True),
        ('pdf/skills/pdf/SKILL.md', True),
        ('pdf/skills/office/pdf/SKILL.md', True),
        ('acme/tools/.agents/skills/pdf/SKILL.md', True),
        ('skills/pdf/SKILL.md', True),
        ('pdf/.agents/skills/SKILL.md', False),
        ('pdf/skills/a/b/c/pdf/SKILL.md', False),
        ('pdf/tests/skills/pdf/SKILL.md', False),
        ('pdf/other/pdf/SKILL.md', False),
        ('pdf/.claude/skills/pdf/SKILL.md', False),
    ],
)
def test_skills_are_found_in_the_folders_of_a_package(place: Site, file: str, is_found: bool):
    place.install('acme-pdf', {file: skill_md('pdf')})
    assert find(place.path) == ({'pdf': 'acme-pdf'} if is_found else {})


def test_other_folders_can_be_named(place: Site):
    place.install('acme-pdf', {'pdf/.claude/skills/pdf/SKILL.md': skill_md('pdf'), **skill('other')})
    assert find(place.path, folders=['.claude/skills/']) == {'pdf': 'acme-pdf'}
    assert find(place.path, folders='.claude/skills') == {'pdf': 'acme-pdf'}


def test_a_part_of_a_skill_is_no_skill_but_one_in_its_skills_folder_is(place: Site):
    files = {
        'acme/skills/pdf/SKILL.md': skill_md('pdf'),
        'acme/skills/pdf/example/SKILL.md': skill_md('example'),
        'acme/skills/pdf/skills/inner/SKILL.md': skill_md('inner'),
    }
    place.install('acme', files)
    assert find(place.path) == {'pdf': 'acme', 'inner': 'acme'}


def test_only_files_of_the_distribution_are_its_skills(place: Site):
    place.install('one', {'shared/skills/first/SKILL.md': skill_md('first')})
    place.install('two', {'shared/skills/second/SKILL.md': skill_md('second')})
    write(place.path, {'shared/skills/stray/SKILL.md': skill_md('stray')})
    assert find(place.path) == {'first': 'one', 'second': 'two'}


def test_files_outside_and_files_that_are_gone_are_not_its_skills(place: Site):
    info = place.install('acme', skill('acme'))
    write(place.path.parent, {'share/skills/outside/SKILL.md': skill_md('outside')})
    record = (info / 'RECORD').read_text()
    more = [
        '../share/skills/outside/SKILL.md',
        'acme/../../share/skills/outside/SKILL.md',
        f'{place.path.parent}/share/skills/outside/SKILL.md',
        'acme/skills/x/SKILL.md',
    ]
    (info / 'RECORD').write_text(record + ''.join(f'{file},,\n' for file in more) + '"acme/skills/a, b/SKILL.md",,\n')
    assert find(place.path) == {'acme': 'acme'}


def test_a_skill_file_that_is_broken_is_one_problem(place: Site):
    place.install('acme', {'acme/skills/bad/SKILL.md': 'no frontmatter', **skill('good')})
    registry = PackageSkillsRegistry(packages='all', path=[place.path])
    assert [skill.name for skill in registry.get_skills()] == ['good']
    assert [found.code for found in registry.problems] == ['no-frontmatter']


@pytest.mark.parametrize('places', [('first', 'first'), ('first', 'second')])
def test_of_two_distributions_with_one_name_none_is_offered(tmp_path: Path, places: tuple[str, str]):
    first, second = (Site(tmp_path / place) for place in places)
    first.install('acme', skill('new'), version='2')
    second.install('Acme', version='1')
    first.install('other', skill('other'))
    registry = PackageSkillsRegistry(packages='all', path=list(dict.fromkeys((first.path, second.path))))
    assert [found.name for found in registry.get_skills()] == ['other']
    assert [(found.code, 'Acme-1' in found.message) for found in registry.problems] == [('package-ambiguous', True)]
    named = PackageSkillsRegistry(packages=['acme'], path=registry.path)
    assert named.get_skills() == []
    assert [found.code for found in named.problems] == ['package-ambiguous']


def test_two_distributions_without_skills_are_no_problem(tmp_path: Path):
    first, second = Site(tmp_path / 'first'), Site(tmp_path / 'second')
    first.install('plain', version='2')
    second.install('plain', version='1')
    registry = PackageSkillsRegistry(packages='all', path=[first.path, second.path])
    assert (registry.get_skills(), registry.problems) == ([], [])


def test_one_distribution_that_is_reached_in_two_ways_is_offered(tmp_path: Path, place: Site):
    place.install('acme', skill('acme'))
    (tmp_path / 'lib64').symlink_to(place.path)
    assert find(tmp_path / 'lib64', place.path) == {'acme': 'acme'}


def test_a_project_on_the_path_and_its_editable_install_are_one(tmp_path: Path, place: Site):
    project = write(tmp_path / 'project', {'acme.egg-info/PKG-INFO': 'Name: acme\nVersion: 1.0\n', **skill('acme')})
    place.install('acme', {'_acme.pth': str(project)})
    assert find(project, place.path) == find(place.path, project) == {'acme': 'acme'}
    write(project, {'acme.egg-info/installed-files.txt': '../acme/__init__.py\n'})
    registry = PackageSkillsRegistry(packages='all', path=[project, place.path])
    assert [found.code for found in registry.problems] == ['package-ambiguous']


@pytest.mark.parametrize(
    'text', ['Name: good\n', 'Name: acme\nName: good\n', 'Name: good\nName: acme\n', 'name:good\r\nVersion: 1\r\n']
)
def test_metadata_that_name_another_distribution_are_refused(place: Site, text: str):
    place.install('acme', skill('acme'), info={'METADATA': text})
    registry = PackageSkillsRegistry(packages=['acme', 'good'], trusted=['good'], path=[place.path])
    assert registry.get_skills() == []
    assert [(found.code, "it is 'good', not 'acme'" in found.message) for found in registry.problems] == [
        ('package-ambiguous', True),
        ('package-missing', False),
    ]


def test_a_folder_may_keep_the_dashes_of_a_name(place: Site):
    write(place.path, {'acme-tools-1.0.dist-info/METADATA': 'Name: acme-tools\nVersion: 1.0\n', **skill('acme-tools')})
    assert find(place.path) == {'acme-tools': 'acme-tools'}


def test_a_place_that_is_missing_or_no_archive_has_nothing(tmp_path: Path, place: Site):
    place.install('acme', skill('acme'))
    (tmp_path / 'file.zip').write_text('no archive')
    assert find(tmp_path / 'missing', tmp_path / 'file.zip', tmp_path / 'file.zip/in', place.path) == {'acme': 'acme'}


def test_the_current_folder_is_a_place_where_the_path_says_so(place: Site, monkeypatch: pytest.MonkeyPatch):
    place.install('acme', {'acme/__init__.py': '', 'acme/stats.py': STATS}, entry_points=MODULE)
    monkeypatch.chdir(place.path)
    registry = PackageSkillsRegistry(packages='all', path=[''])
    assert [skill.name for skill in registry.get_skills()] == ['stats']


def test_without_a_path_sys_path_is_looked_at_and_left_as_it_is(place: Site, monkeypatch: pytest.MonkeyPatch):
    place.install('acme', skill('acme'))
    monkeypatch.setattr(sys, 'path', [*sys.path, str(place.path)])
    before = list(sys.path)
    registry = PackageSkillsRegistry(packages=['acme'])
    assert [skill.name for skill in registry.get_skills()] == ['acme']
    assert sys.path == before


# --- Without a list of files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'package', 'info'),
    [
        ('acme-tools', 'acme_tools', {}),
        ('acme-tools', 'acme/tools', {}),
        ('acme-tools', 'quite_different', {'top_level.txt': 'quite_different\n'}),
    ],
)
def test_without_a_list_of_files_the_package_is_found_by_its_name(
    place: Site, name: str, package: str, info: dict[str, str]
):
    place.install(name, {f'{package}/.agents/skills/pdf/SKILL.md': skill_md('pdf')}, info=info, record=False)
    place.install('other', {'other/.agents/skills/other/SKILL.md': skill_md('other')}, record=False)
    assert find(place.path) == {'pdf': 'acme-tools', 'other': 'other'}


@pytest.mark.parametrize('folder', ['acme-1.0-py3.11.egg-info', 'acme.egg-info'])
def test_older_metadata_is_read_too(place: Site, folder: str):
    write(
        place.path,
        {
            f'{folder}/PKG-INFO': 'Metadata-Version: 1.1\nName: acme\nVersion: 1.5\n',
            f'{folder}/entry_points.txt': '[pyskills]\nstats = acme.stats\n',
            'acme/stats.py': STATS,
            **skill('acme'),
        },
    )
    assert find(place.path) == {'acme': 'acme', 'stats': 'acme'}


def test_an_egg_is_read_too(tmp_path: Path):
    egg = tmp_path / 'acme-1.0-py3.11.egg'
    write(egg, {'EGG-INFO/PKG-INFO': 'Name: acme\nVersion: 1.0\n', 'EGG-INFO/top_level.txt': 'acme', **skill('acme')})
    assert find(egg) == {'acme': 'acme'}


def test_metadata_without_a_name_goes_by_its_folder(place: Site):
    place.install('acme', skill('acme'), info={'METADATA': 'Summary: nothing\n'})
    place.install('bare', {'bare/skills/bare/SKILL.md': skill_md('bare')})
    os.remove(place.path / 'bare-1.0.dist-info/METADATA')
    assert find(place.path) == {'acme': 'acme', 'bare': 'bare'}


def test_a_list_of_files_that_is_no_table_does_not_hide_the_others(place: Site):
    place.install('bad', info={'RECORD': f'"bad/skills/bad/SKILL.md{"x" * 200_000}\n'}, record=False)
    place.install('acme', skill('acme'))
    assert find(place.path) == {'acme': 'acme'}


def test_metadata_that_is_no_regular_file_or_too_long_is_not_read(place: Site, monkeypatch: pytest.MonkeyPatch):
    info = place.install('acme', skill('acme'))
    os.remove(info / 'RECORD')
    os.mkfifo(info / 'RECORD')
    long = place.install('long', skill('long'))
    with open(long / 'RECORD', 'r+b') as file:
        file.truncate(100 * 1024 * 1024)
    assert find(place.path) == {'acme': 'acme', 'long': 'long'}


# --- Edited in place ----------------------------------------------------------------------------------------------

FINDER = """\
from __future__ import annotations
MAPPING: dict[str, str] = {{'acme': {package!r}}}
NAMESPACES: dict[str, list[str]] = {{}}
VERSIONS = {{'acme': 1, 'other': 'relative'}}
HOOKS = {{'acme': print}}
PATH_PLACEHOLDER = '__editable__.acme'
"""
HOOK = """\
from editables.redirector import RedirectingFinder as F
F.install()
F.map_module('acme', {init!r})
F.map_module()
"""


@pytest.mark.parametrize('layout', ['src', '.'])
@pytest.mark.parametrize('way', ['pth', 'finder', 'hook', 'note'])
def test_a_project_that_is_edited_in_place_is_looked_at_where_it_is(place: Site, tmp_path: Path, layout: str, way: str):
    project = tmp_path / 'project'
    root = (project / layout).resolve()
    write(root, {'acme/__init__.py': '', 'acme/stats.py': STATS, 'acme/.agents/skills/pdf/SKILL.md': skill_md('pdf')})
    write(root, {'acme/.agents/skills/README.md': 'no skill', 'acme/.agents/skills/pdf/notes.md': 'a note'})
    write(project, {'tests/__init__.py': '', 'tests/skills/wrong/SKILL.md': skill_md('wrong')})
    write(project, {'examples/skills/sample/SKILL.md': skill_md('sample'), 'other/skills/x/SKILL.md': skill_md('x')})
    files, info = {
        'pth': ({'_acme.pth': f'# where it is\nimport sys\n\n{root}\n/no/such/folder\n'}, {}),
        'finder': ({'__editable___acme_finder.py': FINDER.format(package=str(root / 'acme'))}, {}),
        'hook': ({'_editable_impl_acme.py': HOOK.format(init=str(root / 'acme/__init__.py'))}, {}),
        'note': (
            {'_acme_editable_loader.py': 'x = )'},
            {'direct_url.json': f'{{"url": "file://{project}", "dir_info": {{"editable": true}}}}'},
        ),
    }[way]
    place.install('acme', files, entry_points=MODULE, info=info)
    assert find(place.path) == {'pdf': 'acme', 'stats': 'acme'}
    write(root, {'acme/.agents/skills/new/SKILL.md': skill_md('new')})
    assert find(place.path) == {'new': 'acme', 'pdf': 'acme', 'stats': 'acme'}


@pytest.mark.parametrize(
    'note', ['{"url": "file:///x", "dir_info": {}}', '{"url": "file:///x", "dir_info": {"editable": false}}', 'no json']
)
def test_a_note_that_says_nothing_of_editing_changes_nothing(place: Site, note: str):
    place.install('acme', {'x.pth': 'import x\n', **skill('acme')}, info={'direct_url.json': note})
    assert find(place.path) == {'acme': 'acme'}


def test_a_package_in_a_namespace_that_is_edited_in_place_is_found(place: Site, tmp_path: Path):
    files = {
        'acme/tools/__init__.py': '',
        'acme/tools/skills/pdf/SKILL.md': skill_md('pdf'),
        'acme/other/__init__.py': '',
        'acme/other/skills/wrong/SKILL.md': skill_md('wrong'),
        'a/b/c/d/deep.py': '',
    }
    project = write(tmp_path / 'project', files)
    place.install('acme-tools', {'_acme_tools.pth': str(project)})
    assert find(place.path) == {'pdf': 'acme-tools'}


def test_where_no_package_has_the_name_of_the_project_all_are_looked_at(place: Site, tmp_path: Path):
    project = write(tmp_path / 'project', {'pdf/__init__.py': '', 'pdf/skills/pdf/SKILL.md': skill_md('pdf')})
    place.install('acme-tools', {'_acme_tools.pth': str(project)})
    assert find(place.path) == {'pdf': 'acme-tools'}


# --- Namespaces, archives, other finders --------------------------------------------------------------------------


def test_two_distributions_share_a_namespace(place: Site):
    for part in ('one', 'two'):
        files = {f'acme/{part}/__init__.py': 'x = 1 / 0', f'acme/{part}/stats.py': STATS}
        place.install(f'acme-{part}', files, entry_points={'pyskills': {part: f'acme.{part}.stats'}})
    assert find(place.path) == {'one': 'acme-one', 'two': 'acme-two'}


async def test_skills_in_an_archive_can_be_read_and_its_functions_run(
    tmp_path: Path, place: Site, monkeypatch: pytest.MonkeyPatch
):
    files = {
        'zipped/__init__.py': '',
        'zipped/stats.py': STATS,
        'zipped/skills/pdf/SKILL.md': skill_md('pdf', body='Read it.'),
        'zipped/skills/pdf/references/forms.md': 'Forms',
        'zipped/skills/pdf/scripts/run.py': 'print(1)',
        'zipped/skills/pdf/.env': 'SECRET=1',
        'zipped/skills/pdf/__pycache__/x.pyc': '',
        'zipped/skills/bad/SKILL.md': 'no frontmatter',
    }
    place.install('zipped', files, entry_points={'pyskills': {'stats': 'zipped.stats'}})
    archive = place.zipped(tmp_path / 'packages.zip')
    monkeypatch.setattr(sys, 'path', [str(archive), *sys.path])
    registry = PackageSkillsRegistry(packages='all', path=[archive], trusted=True)
    toolset = SkillsToolset(registries=[registry])
    await toolset.load()
    assert sorted(toolset.skills) == ['pdf', 'stats']
    assert [found.code for found in toolset.problems] == ['no-frontmatter']
    _, text = await call_tool(toolset, 'load_skill', skill_name='pdf')
    assert 'Read it.' in text
    assert [resource.name for resource in toolset.get_skill('pdf').resources] == [
        'references/forms.md',
        'scripts/run.py',
    ]
    read = {'skill_name': 'pdf', 'resource_name': 'references/forms.md'}
    assert await call_tool(toolset, 'read_skill_resource', **read) == (True, 'Forms')
    run = {'skill_name': 'stats', 'script_name': 'mean', 'args': {'values': [2]}}
    assert await call_tool(toolset, 'run_skill_script', **run) == (True, 2.0)
    for name in ('zipped.stats', 'zipped'):
        del sys.modules[name]


def zipped(place: Site, tmp_path: Path, files: dict[str, str]) -> PackageSkillsRegistry:
    place.install('zipped', {'zipped/skills/pdf/SKILL.md': skill_md('pdf'), **files})
    return PackageSkillsRegistry(packages='all', path=[place.zipped(tmp_path / 'packages.zip')])


def test_a_zipped_skill_keeps_everything_its_header_says(place: Site, tmp_path: Path):
    header = (
        'name: pdf\ndescription: Reads forms.\nlicense: MIT\ncompatibility: Needs a printer.\nversion: 2\n'
        'disable-model-invocation: true\nuser-invocable: false\nallowed-tools: Read\n'
        'tools:\n  go:\n    description: Goes.\n    script: scripts/go.py\n'
    )
    registry = zipped(place, tmp_path, {'zipped/skills/pdf/SKILL.md': f'---\n{header}---\nRead them.\n'})
    (skill,) = registry.get_skills()
    assert (skill.license, skill.compatibility, skill.metadata) == ('MIT', 'Needs a printer.', {'version': '2'})
    assert (skill.disable_model_invocation, skill.user_invocable) == (True, False)
    assert (skill.allowed_tools, [tool.name for tool in skill.tool_specs]) == (('Read',), ['go'])
    assert skill.content == 'Read them.'


def test_an_archive_without_a_list_of_files_is_looked_through(place: Site, tmp_path: Path):
    place.install('zipped', {'zipped/skills/office/pdf/SKILL.md': skill_md('pdf')}, record=False)
    assert find(place.zipped(tmp_path / 'packages.zip')) == {'pdf': 'zipped'}


def test_an_archive_is_read_again_only_if_it_has_changed(place: Site, tmp_path: Path):
    registry = zipped(place, tmp_path, {})
    first = registry.find()
    assert registry.refresh() is first
    place.install('zipped', {'zipped/skills/pdf/SKILL.md': skill_md('pdf', 'Other words.')})
    place.zipped(tmp_path / 'packages.zip')
    assert [skill.description for skill in registry.refresh().skills] == ['Other words.']


def test_what_is_too_large_or_damaged_in_an_archive_is_told(place: Site, tmp_path: Path):
    files = {'zipped/skills/pdf/a.md': 'Forms', 'zipped/skills/big/SKILL.md': 'x' * 2**21}
    files |= {f'zipped/skills/pdf/b{number:04}.md': '' for number in range(MAX_FILES)}
    registry = zipped(place, tmp_path, files)
    (skill,) = registry.get_skills()
    assert [found.code for found in registry.problems] == ['unreadable']
    assert [resource.name for resource in skill.resources[:2]] == ['a.md', 'b0000.md']
    assert len(skill.resources) == MAX_FILES
    assert [found.code for found in skill.files.problems] == ['too-many-files']
    archive = tmp_path / 'packages.zip'
    archive.write_bytes(archive.read_bytes().replace(b'Forms', b'Fumes'))
    with pytest.raises(SkillResourceLoadError, match="'a.md' cannot be read"):
        asyncio.run(skill.resources[0].read(None))


class OtherFinder(DistributionFinder):
    """Knows distributions in a place of its own."""

    def __init__(self, path: Path, kind: type[PathDistribution] = PathDistribution) -> None:
        self.path = path
        self.kind = kind

    def find_spec(self, *_: Any, **__: Any) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context = DistributionFinder.Context()) -> Iterable[Any]:  # noqa: B008
        return [self.kind(info) for info in self.path.glob('*.dist-info')]


def test_distributions_that_another_finder_knows_are_found(place: Site, monkeypatch: pytest.MonkeyPatch):
    place.install('acme', skill('acme'), version='3')
    place.install('plain')
    monkeypatch.setattr(sys, 'meta_path', [*sys.meta_path, OtherFinder(place.path)])
    assert metadata.version('acme') == '3'
    registry = PackageSkillsRegistry(packages=['acme'])
    assert [(skill.name, skill.source.version) for skill in registry.get_skills() if skill.source] == [('acme', '3')]


class StrictDistribution(PathDistribution):
    """Metadata of the `importlib_metadata` on PyPI, which raises where that of the standard library has none."""

    @property
    def metadata(self) -> PackageMetadata:
        if self.read_text('METADATA') is None:
            raise FileNotFoundError('METADATA')
        return super().metadata


@pytest.mark.parametrize('kind', [PathDistribution, StrictDistribution])
def test_what_is_left_of_a_distribution_that_another_finder_knows_is_passed_over(
    place: Site, monkeypatch: pytest.MonkeyPatch, kind: type[PathDistribution]
):
    place.install('acme', skill('acme'))
    write(place.path, {'~cme-1.dist-info/INSTALLER': 'pip\n'})  # what a removal that was cut short leaves
    monkeypatch.setattr(sys, 'meta_path', [*sys.meta_path, OtherFinder(place.path, kind)])
    assert [skill.name for skill in PackageSkillsRegistry(packages=['acme']).get_skills()] == ['acme']
