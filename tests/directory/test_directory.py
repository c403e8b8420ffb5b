"""A directory of skills: what is found, what is left out and why, and what a second look sees."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pydantic_ai_skills import SkillsDirectory, SkillsToolset
from pydantic_ai_skills.catalog import SkillsSource
from pydantic_ai_skills.directory.settings import ScanLimits
from pydantic_ai_skills.directory.watch import WatchedDirectory
from tests.folders import at_first_wait, settle, skill_md, write, write_skill


def codes(directory: SkillsDirectory) -> dict[str, list[str]]:
    """The problems by path below the directory."""
    found: dict[str, list[str]] = {}
    for problem in directory.problems:
        found.setdefault(os.path.relpath(problem.path, directory.path), []).append(problem.code)
    return found


# --- What is found ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('files', 'skills'),
    [
        pytest.param(['a/SKILL.md', 'b/SKILL.md'], ['a', 'b'], id='flat'),
        pytest.param(['SKILL.md'], ['root'], id='the directory itself'),
        pytest.param(['x/y/a/SKILL.md', 'x/y/z/b/SKILL.md'], ['a'], id='down to max_depth'),
        pytest.param(['plugin/skills/a/SKILL.md', '.claude/skills/b/SKILL.md', '.agents/c/SKILL.md'], ['a', 'b', 'c'],
                     id='plugin layouts'),
        pytest.param(['a/SKILL.md', 'a/examples/b/SKILL.md'], ['a'], id='not inside a skill'),
        pytest.param(['a/SKILL.md', 'a/skills/b/SKILL.md'], ['a', 'b'], id='but in the folder of skills of a plugin'),
        pytest.param(['.git/a/SKILL.md', 'node_modules/b/SKILL.md', 'venv/c/SKILL.md', '__pycache__/d/SKILL.md',
                      '.hidden/e/SKILL.md', 'f/SKILL.md'], ['f'], id='not in caches and packages'),
        pytest.param(['env/pyvenv.cfg', 'env/lib/a/SKILL.md', 'b/SKILL.md'], ['b'], id='not in virtual environments'),
        pytest.param(['credentials/SKILL.md', 'a.key/SKILL.md'], ['a-key', 'credentials'], id='named like a key file'),
        pytest.param(['a/README.md', 'SKILL.txt'], [], id='nothing'),
    ],
)  # fmt: skip
@pytest.mark.parametrize('walks_descriptors', [True, False])
def test_skills_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], skills: list[str], walks_descriptors: bool
) -> None:
    monkeypatch.setattr('pydantic_ai_skills.filesystem.safe_open.WALKS_DESCRIPTORS', walks_descriptors)
    root = write(tmp_path / 'root', dict.fromkeys(files, '---\ndescription: Does things.\n---\n'))
    assert sorted(SkillsDirectory(root).get_skills()) == skills


@pytest.mark.parametrize(('depth', 'skills'), [(0, []), (1, ['a']), (2, ['a', 'b']), (None, ['a', 'b', 'c'])])
def test_max_depth_says_how_deep_to_look(tmp_path: Path, depth: int | None, skills: list[str]) -> None:
    write_skill(tmp_path / 'a')
    write_skill(tmp_path / 'x/b')
    write_skill(tmp_path / 'x/y/c')
    directory = SkillsDirectory(tmp_path, max_depth=depth)
    assert sorted(directory.get_skills()) == skills
    assert codes(directory) == {}


def test_a_depth_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match='max_depth must be 0 or more, or None for no limit, not -1'):
        SkillsDirectory('.', max_depth=-1)


def test_without_max_depth_there_is_still_an_end_and_it_is_told(tmp_path: Path) -> None:
    depth = ScanLimits().scan_depth
    write_skill(tmp_path.joinpath(*['d'] * depth, 'too-deep'))
    write_skill(tmp_path.joinpath(*['d'] * (depth - 1), 'deepest'))
    directory = SkillsDirectory(tmp_path, max_depth=None)
    assert list(directory.get_skills()) == ['deepest']
    assert codes(directory) == {'.': ['too-many-folders']}


def test_only_so_many_folders_are_looked_into_and_it_is_told(tmp_path: Path) -> None:
    for name in 'abcde':
        write_skill(tmp_path / name)
    directory = SkillsDirectory(tmp_path)
    directory.limits = ScanLimits(scanned_folders=4)
    assert len(directory.get_skills()) == 3
    assert codes(directory) == {'.': ['too-many-folders']}


def test_a_skill_is_what_its_file_says(tmp_path: Path) -> None:
    text = '---\nname: s\ndescription: Does things.\nlicense: MIT\ncompatibility: git\nversion: 1.10\n---\nBody.'
    folder = write(tmp_path / 's', {'SKILL.md': text})
    skill = SkillsDirectory(tmp_path).get_skills()['s']
    assert (skill.description, skill.content, skill.license, skill.compatibility, skill.metadata, skill.path) == (
        'Does things.',
        'Body.',
        'MIT',
        'git',
        {'version': '1.10'},
        str(folder),
    )
    assert repr(skill) == "FolderSkill(name='s', description='Does things.')"


def test_frontmatter_longer_than_the_first_read_is_read_on(tmp_path: Path) -> None:
    for size in (16_000, 16_384, 50_000):
        write(tmp_path / f's{size}', {'SKILL.md': f'---\n# {"x" * size}\ndescription: Does things.\n---\nBody.'})
    skills = SkillsDirectory(tmp_path, validate=False).get_skills()
    assert [skill.content for skill in skills.values()] == ['Body.'] * 3


def test_of_two_skills_with_one_name_the_first_is_used(tmp_path: Path) -> None:
    write(tmp_path, {'a/SKILL.md': skill_md('same', 'First.'), 'b/SKILL.md': skill_md('same', 'Second.')})
    directory = SkillsDirectory(tmp_path, validate=False)
    assert {skill.description for skill in directory.get_skills().values()} == {'First.'}
    assert codes(directory) == {'b': ['duplicate-name']}


@pytest.mark.parametrize('is_file', [False, True])
def test_a_directory_that_is_not_there_is_a_problem(tmp_path: Path, is_file: bool) -> None:
    if is_file:
        (tmp_path / 'no').touch()
    directory = SkillsDirectory(tmp_path / 'no')
    assert directory.get_skills() == {}
    assert codes(directory) == {'.': ['directory-missing']}
    assert directory.find() is directory.find()


def test_the_home_folder_can_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    write_skill(tmp_path / 'mine/s')
    directory = SkillsDirectory('~/mine')
    assert list(directory.get_skills()) == ['s']
    assert repr(directory) == f"SkillsDirectory('{tmp_path}/mine')"


# --- Broken ones --------------------------------------------------------------------------------------------------

BROKEN: dict[str, tuple[str | bytes, list[str]]] = {
    'good': (skill_md('good'), []),
    'bom': (b'\xef\xbb\xbf' + skill_md('bom').encode(), []),
    'crlf': (skill_md('crlf').replace('\n', '\r\n'), []),
    'text': ('---\nname: text\ndescription: on\nversion: 1.10\ndate: 2024-01-02\nflag: yes\n---\n', []),
    'mismatch': (skill_md('other-name'), ['name-mismatch']),
    'long-name': (skill_md('x' * 65), ['name-too-long']),
    'bad-name': (skill_md('Bad_Name!'), ['name-invalid']),
    'no-name': ('---\ndescription: Does things.\n---\n', ['name-missing']),
    'long-description': (skill_md('long-description', 'x' * 1025), ['description-too-long']),
    'long-compatibility': (
        f'---\nname: long-compatibility\ndescription: x\ncompatibility: {"x" * 501}\n---\n',
        ['compatibility-too-long'],
    ),
    'colon': ('---\nname: colon\ndescription: Use this: now\n---\n', ['yaml-repaired']),
    'bad-key': ('---\nname: bad-key\ndescription: Does things.\nhint: [a, b\n---\n', ['yaml-repaired']),
    'duplicate': ('---\nname: duplicate\ndescription: x\ndescription: y\n---\n', ['yaml-duplicate-key']),
    'tag': ('---\nname: tag\ndescription: !!float x\n---\n', ['yaml-tag']),
    'late': (f'\n\n{skill_md("late")}', ['frontmatter-not-first']),
    'license-list': ('---\nname: license-list\ndescription: x\nlicense: [MIT]\n---\n', ['field-type']),
    'no-description': ('---\nname: no-description\n---\n', ['description-missing']),
    'list-description': ('---\nname: list-description\ndescription: [a]\n---\n', ['description-not-text']),
    'no-frontmatter': ('# Just text\n', ['no-frontmatter']),
    'unclosed': ('---\nname: unclosed\ndescription: x\n', ['unclosed-frontmatter']),
    'empty': ('', ['empty-file']),
    'latin-1': ('---\nname: latin-1\ndescription: é\n---\n'.encode('latin-1'), ['not-utf8']),
    'latin-1-body': (skill_md('latin-1-body', body='é.').encode('latin-1'), ['not-utf8']),
    'utf-16': (skill_md('utf-16').encode('utf-16'), ['not-utf8']),
    'binary': (b'\x7fELF\0\0', ['binary-file']),
    'alias': ('---\nname: &a alias\ndescription: *a\n---\n', ['yaml-alias']),
    'deep': (f'---\nname: deep\ndescription: {"[" * 100}\n---\n', ['frontmatter-too-deep']),
    'long-frontmatter': (skill_md('long-frontmatter', 'x' * 70_000), ['frontmatter-too-large']),
    'not-a-mapping': ('---\n- a\n- b\n---\n', ['frontmatter-not-a-mapping']),
    'too-large': (skill_md('too-large', body='x' * 1024 * 1024), ['too-large']),
}
WITHOUT = {
    'no-description', 'list-description', 'no-frontmatter', 'unclosed', 'empty', 'latin-1', 'latin-1-body', 'utf-16',
    'binary', 'alias', 'deep', 'long-frontmatter', 'not-a-mapping', 'too-large',
}  # fmt: skip
RENAMED = {'mismatch': 'other-name', 'long-name': 'long-name', 'bad-name': 'bad-name'}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Skills that are broken in every way, and good ones between them."""
    for name, (content, _) in BROKEN.items():
        write(tmp_path / name, {'SKILL.md': content})
    write(tmp_path / 'lower-case', {'skill.md': skill_md('lower-case')})
    (tmp_path / 'folder/SKILL.md').mkdir(parents=True)
    write_skill(tmp_path / 'link-target')
    (tmp_path / 'link').mkdir()
    (tmp_path / 'link/SKILL.md').symlink_to('../link-target/SKILL.md')
    (tmp_path / 'linked').symlink_to('link-target')
    (tmp_path / 'fifo').mkdir()
    os.mkfifo(tmp_path / 'fifo/SKILL.md')
    return tmp_path


def test_what_can_be_loaded_of_broken_skills_is_and_the_rest_is_told(broken: Path) -> None:
    directory = SkillsDirectory(broken)
    loaded = {RENAMED.get(name, name) for name in BROKEN.keys() - WITHOUT} | {'lower-case', 'link-target'}
    assert directory.get_skills().keys() == loaded
    assert codes(directory) == {
        **{f'{name}/SKILL.md': expected for name, (_, expected) in BROKEN.items() if expected},
        'lower-case/skill.md': ['file-name'],
        'folder/SKILL.md': ['special-file'],
        'link/SKILL.md': ['unreadable'],
        'linked': ['folder-link'],
        'fifo/SKILL.md': ['special-file'],
    }


def test_without_validation_only_what_costs_a_skill_and_repairs_are_told(broken: Path) -> None:
    directory = SkillsDirectory(broken, validate=False)
    assert directory.get_skills().keys() == SkillsDirectory(broken).get_skills().keys()
    assert {problem.code for problem in directory.problems if problem.severity == 'warning'} == {
        'file-name',
        'frontmatter-not-first',
        'yaml-duplicate-key',
        'yaml-repaired',
        'yaml-tag',
    }


def test_the_name_of_a_folder_writes_no_line_of_its_own_into_a_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / os.fsdecode(b'a\nCRITICAL all is well\x1b[2J\xff')
    write(folder, {'SKILL.md': 'No frontmatter.'})
    assert list(SkillsToolset[None](directories=[tmp_path]).skills) == []
    (record,) = caplog.records
    assert record.getMessage().startswith(f'{tmp_path}/a\\nCRITICAL all is well\\x1b[2J\\udcff/SKILL.md:1: error [no-')


@pytest.mark.parametrize('broken', ['# An index of the skills below', ''])
def test_a_broken_file_does_not_hide_the_skills_below_it(tmp_path: Path, broken: str) -> None:
    write(tmp_path, {'SKILL.md': broken, 'group/skill.md': broken})
    write_skill(tmp_path / 'a')
    write_skill(tmp_path / 'group/b')
    directory = SkillsDirectory(tmp_path)
    assert sorted(directory.get_skills()) == ['a', 'b']
    assert {'SKILL.md', 'group/skill.md'} == codes(directory).keys()


def test_a_character_that_the_first_read_cuts_in_two_is_whole(tmp_path: Path) -> None:
    write_skill(tmp_path / 's', body='é' * 20_000)
    write_skill(tmp_path / 't', body=f'.{"é" * 20_000}')
    directory = SkillsDirectory(tmp_path)
    assert sorted(directory.get_skills()) == ['s', 't']
    assert directory.problems == []


@pytest.mark.parametrize('what', ['SKILL.md', 'b'])
def test_what_cannot_be_opened_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    write_skill(tmp_path / 'a')
    write_skill(tmp_path / 'b')
    refuse_to_open(monkeypatch, what, errno.EACCES)
    directory = SkillsDirectory(tmp_path)
    assert sorted(directory.get_skills()) == ([] if what == 'SKILL.md' else ['a'])
    assert codes(directory) == (
        {'b': ['unreadable']} if what == 'b' else {'a/SKILL.md': ['unreadable'], 'b/SKILL.md': ['unreadable']}
    )


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    really_open = os.open

    def open_others(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = really_open(path, flags, mode, dir_fd=dir_fd)
        if path == name:
            os.close(descriptor)
            raise OSError(number, os.strerror(number))
        return descriptor

    monkeypatch.setattr(os, 'open', open_others)


@pytest.mark.parametrize('what', ['SKILL.md', 'a'])
def test_when_the_process_may_open_no_more_files_the_skills_from_before_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    write_skill(tmp_path / 'a')
    toolset = SkillsToolset[None](directories=[tmp_path])
    assert list(toolset.skills) == ['a']
    write_skill(tmp_path / 'a', 'Edited.')
    with monkeypatch.context() as patch:
        refuse_to_open(patch, what, errno.EMFILE)
        toolset.reload()
        assert list(toolset.skills) == ['a']
        assert [problem.code for problem in toolset.problems] == ['source-failed']
    toolset.reload()
    assert toolset.get_skill('a').description == 'Edited.'
    assert toolset.problems == []


# --- Links --------------------------------------------------------------------------------------------------------


def test_links_to_folders_are_followed_on_demand(tmp_path: Path) -> None:
    target = write_skill(tmp_path / 'elsewhere/s', files={'a.md': 'a'})
    root = write(tmp_path / 'root', {'file.md': ''})
    (root / 's').symlink_to(target)
    (root / 'again').symlink_to('s')
    (root / 'up').symlink_to('..')
    (root / 'file').symlink_to('file.md')
    (root / 'dangling').symlink_to('nothing')
    (root / 'circle').symlink_to('circle')
    directory = SkillsDirectory(root)
    assert directory.get_skills() == {}
    assert codes(directory) == {'again': ['folder-link'], 's': ['folder-link'], 'up': ['folder-link']}
    directory = SkillsDirectory(root, follow_links=True)
    (skill,) = directory.get_skills().values()
    assert (skill.name, skill.path, [resource.name for resource in skill.resources]) == ('s', str(target), ['a.md'])
    assert codes(directory) == {}


def test_the_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    write_skill(tmp_path / 'real/s')
    (tmp_path / 'link').symlink_to('real')
    skill = SkillsDirectory(tmp_path / 'link').get_skills()['s']
    assert skill.path == str(tmp_path / 'real/s')


def test_a_link_to_a_folder_takes_nothing_from_what_is_found_without_it(tmp_path: Path) -> None:
    write_skill(tmp_path / 'z/group/far')
    write_skill(tmp_path / 'elsewhere/group/farther')
    root = write(tmp_path / 'root', {'a/b/notes.md': '', 'c/notes.md': ''})
    (tmp_path / 'z').rename(root / 'z')
    (root / 'a/b/long-way').symlink_to(root / 'z')
    (root / 'a/b/other-way').symlink_to(tmp_path / 'elsewhere')
    (root / 'c/way').symlink_to(tmp_path / 'elsewhere')
    directory = SkillsDirectory(root, follow_links=True, max_depth=4)
    assert [list(directory.get_skills()) for _ in range(2)] == [['farther', 'far']] * 2


@pytest.mark.parametrize('link', ['current', 'current/skills'])
@pytest.mark.parametrize('disk_index', [False, True])
def test_a_directory_behind_a_link_that_leads_elsewhere_now_is_another_one(
    tmp_path: Path, link: str, disk_index: bool
) -> None:
    for version in ('old', 'new'):
        write_skill(tmp_path / version / 'skills/s', f'The {version} one.')
    (tmp_path / 'current').symlink_to('old')
    settle()
    index = tmp_path / 'index.sqlite' if disk_index else False
    directory = SkillsDirectory(tmp_path / link, disk_index=index)
    assert directory.get_skills()['s'].description == 'The old one.'
    (tmp_path / 'next').symlink_to('new')
    (tmp_path / 'next').rename(tmp_path / 'current')
    skill = directory.get_skills()['s']
    assert (skill.description, skill.path) == ('The new one.', str(tmp_path / 'new/skills/s'))
    assert directory.find() is directory.find()
    assert SkillsDirectory(tmp_path / link, disk_index=index).get_skills()['s'].description == 'The new one.'


@pytest.mark.parametrize('watch', [False, True])
def test_a_program_that_goes_elsewhere_keeps_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: bool
) -> None:
    write_skill(tmp_path / 'skills/a')
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path)
    directory: SkillsSource = WatchedDirectory(SkillsDirectory('skills')) if watch else SkillsDirectory('skills')
    assert [skill.name for skill in directory.find().skills] == ['a']
    monkeypatch.chdir('elsewhere')
    write_skill(tmp_path / 'skills/b')
    assert [skill.name for skill in directory.find().skills] == ['a', 'b']


def test_a_link_that_leads_elsewhere_now_is_followed_there(tmp_path: Path) -> None:
    write(tmp_path, {'old/SKILL.md': skill_md('s', 'Old.'), 'new/SKILL.md': skill_md('s', 'New.')})
    (tmp_path / 'current').symlink_to('old')
    (tmp_path / 'root').mkdir()
    (tmp_path / 'root/s').symlink_to('../current')
    directory = SkillsDirectory(tmp_path / 'root', follow_links=True, validate=False)
    settle()
    assert directory.get_skills()['s'].description == 'Old.'
    assert directory.find() is directory.find()
    (tmp_path / 'next').symlink_to('new')
    (tmp_path / 'next').rename(tmp_path / 'current')
    assert directory.get_skills()['s'].description == 'New.'


# --- A second look ------------------------------------------------------------------------------------------------


def replace_folder(root: Path) -> None:
    write(root / 'new', {'SKILL.md': skill_md('a', 'Edited.')})
    shutil.rmtree(root / 'a')
    (root / 'new').rename(root / 'a')


def edit_with_old_times(root: Path) -> None:
    path = root / 'a/SKILL.md'
    before = path.stat()
    path.write_text(skill_md('a', 'Edited.'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_file(root: Path) -> None:
    write(root, {'a/new.md': skill_md('a', 'Edited.')})
    (root / 'a/new.md').replace(root / 'a/SKILL.md')


CHANGES: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    'added': (lambda root: write_skill(root / 'c'), {'a': 'Does things.', 'b': 'Does things.', 'c': 'Does things.'}),
    'edited': (lambda root: write_skill(root / 'a', 'Edited.'), {'a': 'Edited.', 'b': 'Does things.'}),
    'deleted': (lambda root: shutil.rmtree(root / 'a'), {'b': 'Does things.'}),
    'without its file': (lambda root: (root / 'a/SKILL.md').unlink(), {'b': 'Does things.'}),
    'renamed': (lambda root: (root / 'a').rename(root / 'z'), {'a': 'Does things.', 'b': 'Does things.'}),
    'replaced folder': (replace_folder, {'a': 'Edited.', 'b': 'Does things.'}),
    'replaced file': (replace_file, {'a': 'Edited.', 'b': 'Does things.'}),
    'times set back': (edit_with_old_times, {'a': 'Edited.', 'b': 'Does things.'}),
    'broken': (lambda root: write(root / 'a', {'SKILL.md': 'No frontmatter.'}), {'b': 'Does things.'}),
    'directory gone': (lambda root: root.rename(root.parent / 'gone'), {}),
    'parent gone': (lambda root: root.parent.rename(root.parent.parent / 'gone'), {}),
}


@pytest.mark.parametrize('settled', [False, True], ids=['at once', 'later'])
@pytest.mark.parametrize('change', CHANGES)
def test_a_change_is_seen_at_the_next_look(tmp_path: Path, change: str, settled: bool) -> None:
    root = tmp_path / 'parent/root'
    write_skill(root / 'a')
    write_skill(root / 'b')
    if settled:
        settle()
    directory = SkillsDirectory(root)
    before = directory.get_skills()
    make, expected = CHANGES[change]
    make(root)
    after = directory.get_skills()
    assert {name: skill.description for name, skill in after.items()} == expected
    if settled and 'b' in after:
        assert after['b'] is before['b']
    settle()
    directory.find()
    assert directory.find() is directory.find()


def test_where_nothing_has_changed_a_look_gives_the_same_result(tmp_path: Path) -> None:
    write_skill(tmp_path / 'group/a', files={'references/a.md': 'a'})
    settle()
    directory = SkillsDirectory(tmp_path)
    found = directory.find()
    assert found.skills[0].resources
    _ = found.skills[0].content
    assert directory.find() is found


def test_edits_within_one_tick_of_the_clock_are_seen(tmp_path: Path) -> None:
    path = write_skill(tmp_path / 's', 'Number 000.') / 'SKILL.md'
    directory = SkillsDirectory(tmp_path)
    for number in range(200):
        text = skill_md('s', f'Number {number:03}.')
        with path.open('r+') as file:
            file.write(text)
        assert directory.get_skills()['s'].description == f'Number {number:03}.'


def test_what_changed_long_ago_is_not_looked_into_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(tmp_path / 's')
    settle()
    directory = SkillsDirectory(tmp_path)
    directory.limits = ScanLimits(coarse_tick_ns=50_000_000)
    found = directory.find()
    refuse_to_open(monkeypatch, 'SKILL.md', errno.EACCES)
    assert directory.find() is found


def test_a_time_in_the_future_does_not_make_every_look_a_change(tmp_path: Path) -> None:
    path = write_skill(tmp_path / 's') / 'SKILL.md'
    os.utime(path, (time.time() + 10_000, time.time() + 10_000))
    settle()
    directory = SkillsDirectory(tmp_path)
    assert directory.find() is directory.find()


@pytest.mark.parametrize('name', ['new.md', 'references/new.md', 'references/deep/new.md', 'scripts/new.py'])
def test_a_file_that_is_added_to_a_listed_skill_is_seen(tmp_path: Path, name: str) -> None:
    folder = write_skill(tmp_path / 's', files={'references/deep/a.md': 'a'})
    settle()
    directory = SkillsDirectory(tmp_path)
    skill = directory.get_skills()['s']
    assert [resource.name for resource in skill.resources] == ['references/deep/a.md']
    write(folder, {name: 'new'})
    skill = directory.get_skills()['s']
    assert name in [item.name for item in (*skill.resources, *skill.scripts)]


@pytest.mark.parametrize('name', ['fetch', 'scripts/deep/fetch'])
@pytest.mark.parametrize('how', ['rights', 'content'])
@pytest.mark.parametrize('watch', [False, True])
def test_a_file_of_a_listed_skill_that_becomes_a_script_is_seen(
    tmp_path: Path, name: str, how: str, watch: bool
) -> None:
    folder = write_skill(tmp_path / 's', files={name: 'echo'})
    settle()
    directory: SkillsSource = WatchedDirectory(SkillsDirectory(tmp_path)) if watch else SkillsDirectory(tmp_path)
    (skill,) = directory.find().skills
    assert [resource.name for resource in skill.resources] == [name]
    settle()
    assert directory.find().skills == (skill,)
    (folder / name).chmod(0o755) if how == 'rights' else (folder / name).write_text('#!/bin/sh\necho')
    (skill,) = directory.find().skills
    assert [script.name for script in skill.scripts] == [name]


def test_a_tools_module_that_is_written_after_the_files_were_listed_is_seen(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / 's', files={'tools.py': ''})
    settle()
    directory = SkillsDirectory(tmp_path)
    assert not directory.get_skills()['s'].files.tools_module
    (folder / 'tools.py').write_text('from pydantic_ai import RunContext\n')
    assert directory.get_skills()['s'].files.tools_module


def test_a_folder_that_is_removed_from_a_listed_skill_is_seen(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / 's', files={'references/deep/a.md': 'a'})
    settle()
    directory = SkillsDirectory(tmp_path)
    assert directory.get_skills()['s'].resources
    shutil.rmtree(folder / 'references/deep')
    assert directory.get_skills()['s'].resources == []


# --- While somebody writes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'half', ['', '---\nname: s\n', skill_md('s').encode() + b'\xa9.'], ids=['empty', 'unclosed', 'torn']
)
def test_a_file_that_is_just_being_written_is_waited_for(tmp_path: Path, half: str | bytes) -> None:
    write(tmp_path / 's', {'SKILL.md': half})
    directory = SkillsDirectory(tmp_path)
    with at_first_wait(lambda: write_skill(tmp_path / 's', 'Written.')):
        assert directory.get_skills()['s'].description == 'Written.'
    assert directory.problems == []


@pytest.mark.parametrize('what', ['group/s/SKILL.md', 'group/s', 'group', '.'])
def test_what_is_just_being_replaced_is_waited_for(tmp_path: Path, what: str) -> None:
    root = tmp_path / 'root'
    write_skill(root / 'group/s')
    directory = SkillsDirectory(root)
    assert list(directory.get_skills()) == ['s']
    (root / what).rename(tmp_path / 'away')
    with at_first_wait(lambda: (tmp_path / 'away').rename(root / what)):
        assert list(directory.get_skills()) == ['s']


def test_a_folder_that_goes_while_it_is_looked_for_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(tmp_path / 'a')
    write_skill(tmp_path / 'b')
    settle()
    really_open = os.open

    def open_late(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == 'b':
            shutil.rmtree(tmp_path / 'b', ignore_errors=True)
        return really_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, 'open', open_late)
    directory = SkillsDirectory(tmp_path)
    assert list(directory.get_skills()) == ['a']
    assert directory.problems == []


def test_a_file_that_never_rests_keeps_its_last_good_version(tmp_path: Path) -> None:
    path = write_skill(tmp_path / 's') / 'SKILL.md'
    directory = SkillsDirectory(tmp_path)
    directory.limits = ScanLimits(stall_ns=300_000_000)
    (skill,) = directory.get_skills().values()
    stop = threading.Event()

    begun = threading.Event()

    def scribble() -> None:
        while not stop.is_set():
            path.write_text('---\nname: s\n')
            begun.set()
            stop.wait(0.005)

    writer = threading.Thread(target=scribble)
    writer.start()
    begun.wait()
    kept = directory.get_skills()
    stop.set()
    writer.join()
    assert kept == {'s': skill}
    assert directory.get_skills() == {}
    assert codes(directory) == {'s/SKILL.md': ['unclosed-frontmatter']}


def test_a_file_that_never_rests_and_never_was_good_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / 's', {'SKILL.md': ''}) / 'SKILL.md'
    stop = threading.Event()

    def scribble() -> None:
        while not stop.wait(0.005):
            path.write_text('')

    writer = threading.Thread(target=scribble)
    writer.start()
    start = time.perf_counter()
    directory = SkillsDirectory(tmp_path)
    assert directory.get_skills() == {}
    assert time.perf_counter() - start < 20
    stop.set()
    writer.join()
    assert codes(directory) == {'s/SKILL.md': ['empty-file']}


def test_a_skill_that_is_gone_from_a_folder_that_never_rests_is_gone(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / 's')
    directory = SkillsDirectory(tmp_path)
    assert list(directory.get_skills()) == ['s']
    stop = threading.Event()

    def scribble() -> None:
        for number in itertools.count():
            (folder / f'{number}.txt').touch()
            if stop.wait(0.005):
                break

    writer = threading.Thread(target=scribble)
    writer.start()
    (folder / 'SKILL.md').unlink()
    skills = directory.get_skills()
    stop.set()
    writer.join()
    assert skills == {}
