"""Which files of a directory's skills are offered, and what the directory is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import Skill, SkillsDirectory, SkillsToolset
from pydantic_ai_skills.directory.patterns import file_patterns
from tests.folders import write, write_skill

FILES = {
    'notes.md': 'Notes.',
    'references/api.md': 'API.',
    'references/old/api.md': 'Old API.',
    'data/table.csv': 'a,b',
    'scripts/run.py': 'print()',
    'scripts/draft.py': 'print()',
    'tools.py': 'import pydantic_ai_skills',
}


def offered(folder: Path, **options: Any) -> list[str]:
    (skill,) = SkillsDirectory(folder, **options).get_skills().values()
    module = [skill.files.tools_module] if skill.files.tools_module else []
    return sorted(item.name for item in (*skill.resources, *skill.scripts, *module))


@pytest.mark.parametrize(
    ('include', 'exclude', 'names'),
    [
        (None, None, sorted(FILES)),
        ([], [], sorted(FILES)),
        ('*.md', None, ['notes.md', 'references/api.md', 'references/old/api.md']),
        ('references/*.md', None, ['references/api.md']),
        ('references/**', None, ['references/api.md', 'references/old/api.md']),
        ('references/', None, ['references/api.md', 'references/old/api.md']),
        ('**/api.md', None, ['references/api.md', 'references/old/api.md']),
        ('**/**/api.md', 'references/*.md', ['references/old/api.md']),
        (['./notes.md', '/data/*'], None, ['data/table.csv', 'notes.md']),
        ('scripts/**', ['draft.*'], ['scripts/run.py']),
        (None, ['references/**', '*.py'], ['data/table.csv', 'notes.md']),
        ('n?tes.m[a-d]', None, ['notes.md']),
        ('old', None, []),
        ('notes.md/**/x', None, []),
    ],
)
def test_patterns_say_which_files_are_offered(include: Any, exclude: Any, names: list[str], tmp_path: Path):
    write_skill(tmp_path / 'alpha', files=FILES)

    assert offered(tmp_path, include=include, exclude=exclude) == names


def test_one_skill_can_be_read_without_some_of_its_files(tmp_path: Path):
    write_skill(tmp_path / 'alpha', files=FILES)

    assert Skill.from_path(tmp_path / 'alpha', include='*.csv').resources[0].name == 'data/table.csv'


@pytest.mark.parametrize(('pattern', 'error'), [(3, TypeError), ('', ValueError), ('/', ValueError)])
def test_what_is_not_a_pattern_is_refused(pattern: Any, error: type[Exception], tmp_path: Path):
    with pytest.raises(error, match='exclude'):
        SkillsDirectory(tmp_path, exclude=[pattern])


def test_a_pattern_of_many_stars_takes_no_time():
    patterns = file_patterns('/'.join(['**', '*a' * 40] * 12), None)
    assert patterns is not None

    assert not patterns.fit('/'.join(['a' * 200 + 'b'] * 40))


def test_a_label_names_the_directory_in_problems_and_skills(tmp_path: Path):
    write(tmp_path / 'one/alpha', {'SKILL.md': '---\nname: alpha\ndescription: Does: it.\n---\n'})
    (tmp_path / 'one/alpha/link').symlink_to(tmp_path)
    write_skill(tmp_path / 'two/alpha')
    team = SkillsDirectory(tmp_path / 'one', label='Team')
    toolset = SkillsToolset[Any](directories=[team, SkillsDirectory(tmp_path / 'two', label='Mine')])

    (skill,) = team.get_skills().values()
    _ = skill.files

    assert skill.is_trusted
    assert skill.source is not None
    assert skill.source.name == 'Team'
    assert [str(problem).partition(']')[0] for problem in (*team.problems, *skill.problems)] == [
        f'Team: {tmp_path}/one/alpha/SKILL.md:3: warning [yaml-repaired',
        f'Team: {tmp_path}/one/alpha/link: warning [file-link',
    ]
    assert [problem.message for problem in toolset.problems if problem.code == 'shadowed'] == [
        f"The skill 'alpha' is not used: the one of Mine ({tmp_path}/two/alpha) comes first."
    ]


def test_a_directory_that_is_read_from_the_index_keeps_its_label(tmp_path: Path):
    write(tmp_path / 'one/alpha', {'SKILL.md': '---\nname: alpha\ndescription: Does: it.\n---\n'})
    for _ in range(2):
        directory = SkillsDirectory(tmp_path / 'one', label='Team', disk_index=tmp_path / 'index')
        assert {problem.source for problem in directory.problems} == {'Team'}
