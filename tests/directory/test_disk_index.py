"""The index on disk: a later process reads only what has changed since."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import SkillProblem, SkillsCapability, SkillsDirectory, SkillsToolset
from pydantic_ai_skills.directory.settings import ScanLimits
from pydantic_ai_skills.types import FoundSkills
from tests.directory.test_directory import BROKEN, CHANGES
from tests.folders import settle, skill_md, write, write_skill


def shown(found: FoundSkills) -> Any:
    """Everything about what was found."""
    skills = [
        (skill.name, skill.description, skill.license, skill.compatibility, skill.metadata, skill.headings, skill.path)
        for skill in found.skills
    ]
    return skills, found.problems


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SkillsDirectory, 'limits', ScanLimits(index_chunk=7))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / 'cache/index.sqlite'


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the folders and files that were opened."""
    opened: list[str] = []
    really_open = os.open

    def recording_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened.append(os.path.basename(path))
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, 'open', recording_open)
    return opened


@pytest.fixture
def library(tmp_path: Path) -> Path:
    root = tmp_path / 'parent/root'
    write(
        root,
        {
            'group/a/SKILL.md': '---\nname: a\ndescription: Does things.\nlicense: MIT\nversion: 1.10\ntags: [x, y]\n---\n# Heading',
            'b/SKILL.md': skill_md('b'),
            'plugin/SKILL.md': skill_md('plugin'),
            'plugin/skills/inner/SKILL.md': skill_md('inner'),
            'lower/skill.md': skill_md('lower'),
            'duplicate/SKILL.md': skill_md('b', 'Another.'),
            **{f'broken/{name}/SKILL.md': content for name, (content, _) in BROKEN.items()},
        },
    )
    (root / 'link').symlink_to('b')
    settle()
    return root


def test_a_second_start_reads_no_skill_and_finds_the_same(library: Path, file: Path, reads: list[str]) -> None:
    first = SkillsDirectory(library, disk_index=file)
    expected = shown(SkillsDirectory(library).find())
    assert shown(first.find()) == expected
    del reads[:]
    second = SkillsDirectory(library, disk_index=file)
    assert shown(second.find()) == expected
    assert reads == []
    assert second.find() is second.find()
    assert second.get_skills()['a'].content == '# Heading'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_only_what_has_changed_is_read(library: Path, file: Path, reads: list[str]) -> None:
    SkillsDirectory(library, disk_index=file).find()
    write_skill(library / 'b', 'Edited.')
    settle()
    del reads[:]
    directory = SkillsDirectory(library, disk_index=file)
    assert directory.get_skills()['b'].description == 'Edited.'
    assert reads.count('SKILL.md') == 1
    del reads[:]
    assert SkillsDirectory(library, disk_index=file).get_skills()['b'].description == 'Edited.'
    assert 'SKILL.md' not in reads


@pytest.mark.parametrize('settled', [False, True], ids=['at once', 'later'])
@pytest.mark.parametrize('change', CHANGES)
def test_a_change_between_two_starts_is_seen(tmp_path: Path, file: Path, change: str, settled: bool) -> None:
    root = tmp_path / 'parent/root'
    write_skill(root / 'a')
    write_skill(root / 'b')
    if settled:
        settle()
    SkillsDirectory(root, disk_index=file).find()
    make, expected = CHANGES[change]
    make(root)
    for _ in range(2):
        found = SkillsDirectory(root, disk_index=file).find()
        assert {skill.name: skill.description for skill in found.skills} == expected


def test_edits_within_one_tick_of_the_clock_are_seen(tmp_path: Path, file: Path) -> None:
    path = write_skill(tmp_path / 'root/s', 'Number 00.') / 'SKILL.md'
    for number in range(30):
        with path.open('r+') as text:
            text.write(skill_md('s', f'Number {number:02}.'))
        skill = SkillsDirectory(tmp_path / 'root', disk_index=file).get_skills()['s']
        assert skill.description == f'Number {number:02}.'


def test_links_that_lead_elsewhere_now_are_followed_there(tmp_path: Path, file: Path) -> None:
    write(tmp_path, {'old/SKILL.md': skill_md('s', 'Old.'), 'new/SKILL.md': skill_md('s', 'New.')})
    (tmp_path / 'current').symlink_to('old')
    (tmp_path / 'root').mkdir()
    (tmp_path / 'root/s').symlink_to('../current')
    settle()

    def description() -> str:
        directory = SkillsDirectory(tmp_path / 'root', follow_links=True, validate=False, disk_index=file)
        skill = directory.get_skills()['s']
        assert skill.content == 'Do it.'
        return skill.description

    assert [description(), description()] == ['Old.', 'Old.']
    (tmp_path / 'next').symlink_to('new')
    (tmp_path / 'next').rename(tmp_path / 'current')
    assert [description(), description()] == ['New.', 'New.']


def test_skills_put_into_a_skill_are_seen_at_the_second_look(tmp_path: Path, file: Path) -> None:
    root = tmp_path / 'root'
    write_skill(root / 'a')
    settle()
    SkillsDirectory(root, disk_index=file).find()
    write_skill(root / 'a/skills/inner')
    directory = SkillsDirectory(root, disk_index=file)
    directory.find()
    assert sorted(directory.get_skills()) == ['a', 'inner']


def test_directories_and_their_settings_have_each_their_own_part(tmp_path: Path, file: Path) -> None:
    write(tmp_path, {'one/a/SKILL.md': skill_md('other'), 'two/b/SKILL.md': skill_md('b')})
    settle()
    for _ in range(2):
        assert list(SkillsDirectory(tmp_path / 'one', disk_index=file).get_skills()) == ['other']
        assert list(SkillsDirectory(tmp_path / 'two', disk_index=file).get_skills()) == ['b']
        assert SkillsDirectory(tmp_path / 'one', validate=False, disk_index=file).problems == []
        assert len(SkillsDirectory(tmp_path / 'one', disk_index=file).problems) == 1
        assert SkillsDirectory(tmp_path / 'one', max_depth=0, disk_index=file).get_skills() == {}


def test_what_is_not_looked_at_for_long_is_forgotten(tmp_path: Path, file: Path) -> None:
    write_skill(tmp_path / 'one/a')
    write_skill(tmp_path / 'two/b')
    settle()
    SkillsDirectory(tmp_path / 'one', disk_index=file).find()
    with sqlite3.connect(file) as database:
        database.execute('UPDATE directories SET used = 0')
    database.close()
    SkillsDirectory(tmp_path / 'two', disk_index=file).find()
    database = sqlite3.connect(file)
    assert database.execute('SELECT count(*) FROM directories').fetchone() == (1,)
    assert database.execute('SELECT count(DISTINCT directory) FROM places').fetchone() == (1,)
    database.close()


def test_what_a_header_says_of_invocation_and_tools_is_found_again(tmp_path: Path, file: Path) -> None:
    head = 'allowed-tools: Read Bash(git:*)\ndisable-model-invocation: true\nuser-invocable: false\n'
    tools = 'tools:\n  go: {script: go.py, timeout: 2, args: {n: {type: integer, enum: [1, 2], default: 1}}}\n'
    write(
        tmp_path / 'root',
        {
            'a/SKILL.md': f'---\nname: a\ndescription: x\n{head}---\n',
            'b/SKILL.md': f'---\nname: b\ndescription: x\n{tools}---\n',
        },
    )
    settle()
    _, read = SkillsDirectory(tmp_path / 'root').get_skills().values()
    assert [tool.name for tool in read.tool_specs] == ['go']
    for _ in range(2):
        a, b = SkillsDirectory(tmp_path / 'root', disk_index=file).get_skills().values()
        assert (a.allowed_tools, a.disable_model_invocation, a.user_invocable) == (('Read', 'Bash(git:*)'), True, False)
        assert b.tool_specs == read.tool_specs


def test_a_directory_that_was_away_is_found_again(library: Path, file: Path) -> None:
    expected = shown(SkillsDirectory(library, disk_index=file).find())
    library.rename(library.parent / 'away')
    assert SkillsDirectory(library, disk_index=file).get_skills() == {}
    (library.parent / 'away').rename(library)
    for _ in range(2):
        assert shown(SkillsDirectory(library, disk_index=file).find()) == expected


def test_two_processes_that_saw_different_things_do_not_mix_them(tmp_path: Path, file: Path) -> None:
    root = tmp_path / 'root'
    for number in range(20):
        write_skill(root / f'skill-{number}')
    settle()
    SkillsDirectory(root, disk_index=file).find()
    early, late = SkillsDirectory(root, disk_index=file), SkillsDirectory(root, disk_index=file)
    early.find()
    late.find()
    for number in range(20):
        write_skill(root / f'skill-{number}', 'Edited.')
    settle()
    early.find()
    write_skill(root / 'new')
    settle()
    late.find()
    write_skill(root / 'skill-3', 'Edited again.')
    settle()
    early.find()
    assert shown(SkillsDirectory(root, disk_index=file).find()) == shown(SkillsDirectory(root).find())


def test_a_process_that_began_before_the_file_was_deleted_does_not_mix_its_parts_with_the_new_ones(
    tmp_path: Path, file: Path
) -> None:
    root = tmp_path / 'root'
    for number in range(20):
        write_skill(root / f'skill-{number:02}')
    settle()
    early = SkillsDirectory(root, disk_index=file)
    early.find()
    file.unlink()
    shutil.rmtree(root / 'skill-00')
    settle()
    SkillsDirectory(root, disk_index=file).find()
    early.find()
    assert shown(SkillsDirectory(root, disk_index=file).find()) == shown(SkillsDirectory(root).find())


DAMAGE = {
    'not a database': 'This is no database, but a text of some length.' * 50,
    'empty': '',
    'another schema': 'CREATE TABLE places (x)',
    'no JSON': "UPDATE places SET kept = 'x'",
    'JSON of something else': "UPDATE places SET kept = '[[1, 2], 3]'",
    'a row gone': 'DELETE FROM places WHERE chunk = 0',
    'NULL': 'UPDATE places SET kept = NULL',
    'stamps gone': "UPDATE places SET stamps = x''",
    'half a stamp': "UPDATE places SET stamps = x'00'",
    'other words': "UPDATE places SET kept = CAST(replace(kept, 'Does things.', 'Undoes it.') AS BLOB)",
    'another checksum': 'UPDATE places SET checksum = checksum + 1',
}


@pytest.mark.parametrize('damage', DAMAGE)
def test_a_damaged_file_costs_time_but_no_skill(library: Path, file: Path, damage: str) -> None:
    SkillsDirectory(library, disk_index=file).find()
    expected = shown(SkillsDirectory(library).find())
    if damage in ('not a database', 'empty'):
        file.write_text(DAMAGE[damage])
    else:
        if damage == 'another schema':
            file.unlink()
        with sqlite3.connect(file) as database:
            database.execute(DAMAGE[damage])
        database.close()
    told: list[SkillProblem] = []
    for _ in range(2):
        skills, problems = shown(SkillsDirectory(library, disk_index=file).find())
        told = [found for found in problems if found.code == 'index-failed']
        assert (skills, tuple(found for found in problems if found not in told)) == expected
    assert len(told) == (damage in ('not a database', 'another schema'))


def test_a_place_that_cannot_be_written_is_a_problem_and_no_more(library: Path, tmp_path: Path) -> None:
    blocked = tmp_path / 'file'
    blocked.touch()
    toolset = SkillsToolset(directories=[library], disk_index=blocked / 'index.sqlite')
    assert 'a' in toolset.skills
    assert [found.path for found in toolset.problems if found.code == 'index-failed'] == [str(blocked / 'index.sqlite')]


def test_names_that_are_no_text_are_read_each_time(library: Path, file: Path) -> None:
    os.mkdir(os.fsencode(library) + b'/\xff')
    settle()
    for _ in range(2):
        directory = SkillsDirectory(library, disk_index=file)
        assert 'a' in directory.get_skills()
        assert 'index-failed' in [found.code for found in directory.problems]


def test_a_directory_whose_name_is_no_text_is_read_each_time(tmp_path: Path, file: Path) -> None:
    root = tmp_path / os.fsdecode(b'\xff')
    write_skill(root / 'a')
    toolset = SkillsToolset[Any](directories=[root], disk_index=file)
    assert list(toolset.skills) == ['a']
    assert [found.code for found in toolset.problems] == ['index-failed']


@pytest.mark.parametrize('disk_index', [True, '~/index.sqlite'])
def test_without_a_home_folder_the_files_are_read(
    library: Path, monkeypatch: pytest.MonkeyPatch, disk_index: bool | str
) -> None:
    for name in ('PYDANTIC_AI_SKILLS_CACHE_DIR', 'HOME'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, 'getuid', lambda: 2**31 - 5)  # of whom the system knows nothing
    toolset = SkillsToolset[Any](directories=[library], disk_index=disk_index)
    assert 'a' in toolset.skills
    (found,) = (found for found in toolset.problems if found.code == 'index-failed')
    assert (found.path, 'as disk_index=' in found.message) == (str(library), True)


def test_a_tree_that_is_cut_is_read_each_time(tmp_path: Path, file: Path) -> None:
    for name in 'abc':
        write_skill(tmp_path / 'root' / name)
    settle()
    for _ in range(2):
        directory = SkillsDirectory(tmp_path / 'root', disk_index=file)
        directory.limits = ScanLimits(scanned_folders=2)
        assert [found.code for found in directory.problems] == ['too-many-folders']


@pytest.mark.parametrize('make', [SkillsToolset[Any], SkillsCapability[Any]])
def test_by_default_it_is_in_the_users_cache_folder(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'mine'))
    given = make(directories=[library], disk_index=True)
    toolset: SkillsToolset[Any] = getattr(given, 'toolset', given)
    assert toolset.get_skill('a').name == 'a'
    assert [path.name for path in (tmp_path / 'mine').iterdir()] == ['index-v5.sqlite']


def test_an_index_that_others_can_write_is_not_used(tmp_path: Path):
    write_skill(tmp_path / 'skills' / 'own')
    index = tmp_path / 'index.sqlite'
    assert not SkillsDirectory(tmp_path / 'skills', disk_index=index).problems
    index.chmod(0o666)
    directory = SkillsDirectory(tmp_path / 'skills', disk_index=index)
    assert list(directory.get_skills()) == ['own']
    (problem,) = directory.problems
    assert problem.code == 'index-failed'
    assert f'{str(index)!r} can be written by other users' in problem.message
