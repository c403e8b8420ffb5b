from __future__ import annotations

import errno
import os
import shutil
import socket
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from pydantic_ai_skills import SkillsDirectory, ValidationReport, fix_problems, skill_rules, validate_skills
from pydantic_ai_skills.directory.scan import HEAD_BYTES
from tests.directory.test_directory import refuse_to_open
from tests.folders import settle, skill_md, write, write_skill


def places(report: ValidationReport, root: Path) -> list[str]:
    """Each problem without its message, below the root."""
    return [
        f'{os.path.relpath(problem.path, os.path.realpath(root))}:{problem.line} {problem.severity} {problem.code}'
        for problem in report.problems
    ]


def test_good_skills_have_no_problems(tmp_path: Path):
    write_skill(tmp_path / 'a', files={'scripts/run.py': 'print(1)', 'references/x.md': 'x', '.hidden/y': 'z'})
    write_skill(tmp_path / 'b')
    report = validate_skills(tmp_path)
    assert report == ValidationReport(skills=2, problems=())
    assert report.ok


def test_nothing_is_not_ok(tmp_path: Path):
    assert not validate_skills(tmp_path).ok


def test_without_a_path_it_is_the_usual_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_skill(tmp_path / 'skills' / 'a')
    monkeypatch.chdir(tmp_path)
    assert validate_skills().skills == 1


def test_each_rule_has_its_code_place_message_and_fix(tmp_path: Path):
    write(
        tmp_path,
        {
            'bytes/SKILL.md': skill_md('bytes').encode() + b'one\n\xff\n',
            'empty/SKILL.md': '',
            'long/SKILL.md': skill_md('long', 'x' * 1025),
            'Mixed/SKILL.md': skill_md('Mixed'),
            'none/SKILL.md': '---\nname: none\n---\n',
            'other/SKILL.md': skill_md('another'),
            'plain/SKILL.md': 'Do it.\n',
            'small/skill.md': skill_md('small'),
        },
    )
    settle()
    report = validate_skills(tmp_path)
    assert places(report, tmp_path) == snapshot(
        [
            'Mixed/SKILL.md:2 warning name-invalid',
            'bytes/SKILL.md:7 error not-utf8',
            'empty/SKILL.md:1 error empty-file',
            'long/SKILL.md:3 warning description-too-long',
            'none/SKILL.md:1 error description-missing',
            'other/SKILL.md:2 warning name-mismatch',
            'plain/SKILL.md:1 error no-frontmatter',
            'small/skill.md:1 warning file-name',
        ]
    )
    assert all(problem.message and problem.fix for problem in report.problems)
    assert report.problems[0].url.endswith(f'/problems/#{report.problems[0].code}')


def test_every_rule_says_what_to_do():
    assert [rule.code for rule in skill_rules().values() if not rule.fix] == []


class TestFiles:
    def test_links_are_found(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'a')
        (folder / 'link.md').symlink_to('/etc/passwd')
        assert places(validate_skills(tmp_path), tmp_path) == ['a/link.md:None warning file-link']

    def test_special_files_are_found(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'a')
        os.mkfifo(folder / 'pipe')
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / 's'))
            codes = [problem.code for problem in validate_skills(tmp_path).problems]
        assert codes == ['file-special', 'file-unreadable']  # a socket cannot even be opened

    def test_names_a_model_cannot_be_shown_are_found(self, tmp_path: Path):
        write_skill(tmp_path / 'a', files={'two  blanks.md': 'x', 'fine name.md': 'x', 'größe.md': 'x'})
        assert places(validate_skills(tmp_path), tmp_path) == ['a/two  blanks.md:None warning file-unreadable']

    def test_too_large_a_file_is_found(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'a')
        with open(folder / 'big.txt', 'wb') as file:
            file.truncate(2**30)
        assert places(validate_skills(tmp_path), tmp_path) == ['a/big.txt:None warning file-too-large']

    def test_many_files_and_deep_folders_are_found(self, tmp_path: Path):
        write_skill(tmp_path / 'deep', files={f'{"x/" * 14}y.md': 'x'})
        write_skill(tmp_path / 'many', files={f'f{number}.md': 'x' for number in range(1001)})
        codes = [problem.code for problem in validate_skills(tmp_path).problems]
        assert codes == ['folder-too-deep', 'too-many-files']


class TestWhatIsLookedAt:
    @pytest.mark.parametrize('name', ['SKILL.md', 'scripts/run.py', 'references/deep/x.md'])
    def test_a_file_stands_for_its_skill(self, tmp_path: Path, name: str):
        folder = write_skill(tmp_path / 'a', files={'scripts/run.py': '', 'references/deep/x.md': ''})
        write_skill(tmp_path / 'b')
        assert validate_skills(folder / name).skills == 1

    def test_a_file_of_no_skill_stands_for_its_folder(self, tmp_path: Path):
        write(tmp_path / 'x', {'notes.md': ''})
        assert validate_skills(tmp_path / 'x' / 'notes.md').skills == 0

    def test_a_skill_that_is_named_twice_is_checked_once(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'a')
        write(folder, {'SKILL.md': skill_md('other')})
        report = validate_skills(folder, tmp_path, folder / 'SKILL.md')
        assert (report.skills, len(report.problems)) == (1, 1)

    def test_a_directory_that_is_not_there_is_a_problem(self, tmp_path: Path):
        assert places(validate_skills(tmp_path / 'no'), tmp_path) == ['no:None error directory-missing']

    def test_depth_is_limited(self, tmp_path: Path):
        write_skill(tmp_path / '1/2/3/4/deep')
        assert validate_skills(tmp_path).skills == 0
        assert validate_skills(tmp_path, max_depth=None).skills == 1

    def test_progress_is_told(self, tmp_path: Path):
        for name in 'abc':
            write_skill(tmp_path / name)
        told: list[tuple[int, int]] = []
        validate_skills(tmp_path, progress=lambda done, total: told.append((done, total)))
        assert told == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize(('name', 'codes'), [('ordinary.md', []), ('odd name', ['file-unreadable'])])
def test_a_skill_that_has_gone_since_it_was_found_is_no_accident(tmp_path: Path, name: str, codes: list[str]):
    folder = write_skill(tmp_path / 'a', files={name: ''})

    def vanish(done: int, total: int) -> None:
        (folder / 'SKILL.md').unlink()

    def vanish_whole(done: int, total: int) -> None:
        shutil.rmtree(folder)

    assert validate_skills(tmp_path, progress=vanish) == ValidationReport(skills=1, problems=())
    write_skill(folder)
    report = validate_skills(tmp_path, progress=vanish_whole)
    assert (report.skills, [problem.code for problem in report.problems]) == (1, codes)


def thorough(root: Path) -> tuple[int, set[tuple[str, str]]]:
    """What finding each skill, and listing its files, gives."""
    directory = SkillsDirectory(root)
    skills = directory.get_skills().values()
    problems = [*directory.problems, *(problem for skill in skills for problem in skill.files.problems)]
    return len(skills), {(problem.path, problem.code) for problem in problems}


TREES: dict[str, dict[str, str]] = {
    'skills in folders of skills': {'x/y/a/SKILL.md': 'a', 'x/b/SKILL.md': 'b', 'c/SKILL.md': 'c', 'x/y/z/w/d/SKILL.md': 'd'},
    'skills in a skill': {'a/SKILL.md': 'a', 'a/skills/b/SKILL.md': 'b', 'a/other/c/SKILL.md': 'c'},
    'a skill itself': {'SKILL.md': 'a', 'skills/b/SKILL.md': 'b', 'c/SKILL.md': 'c'},
    'two of one name': {'a/SKILL.md': 'a', 'b/SKILL.md': 'a'},
    'two of one name, one of them odd': {'a/SKILL.md': 'a', 'b/SKILL.md': 'a', 'b/odd name': ''},
    'two of one name, both odd': {'a/SKILL.md': 'a', 'a/odd name': '', 'b/SKILL.md': 'a', 'b/odd name': ''},
    'folders of others': {'.git/a/SKILL.md': 'a', 'node_modules/b/SKILL.md': 'b', '.hidden/c/SKILL.md': 'c'},
    'plugin folders': {'.agents/skills/a/SKILL.md': 'a', '.claude/skills/b/SKILL.md': 'b'},
    'a virtual environment': {'x/pyvenv.cfg': '', 'x/a/SKILL.md': 'a', 'b/SKILL.md': 'b'},
    'other letters': {'a/skill.md': 'a', 'b/Skill.MD': 'b', 'c/SKILL.md': 'c'},
    'broken beside good': {'a/SKILL.md': '', 'b/SKILL.md': 'b', 'a/c/SKILL.md': 'c', 'd/notes.md': ''},
    'a folder of that name': {'a/SKILL.md/b/SKILL.md': 'b', 'c/SKILL.md': 'c'},
    'odd names': {'odd name/SKILL.md': 'a', 'x  y/b/SKILL.md': 'b', 'größe/SKILL.md': 'größe'},
}  # fmt: skip


@pytest.mark.parametrize('tree', TREES)
@pytest.mark.parametrize('link', ['', 'link', 'x/link', 'a/link'])
def test_validation_finds_what_finding_and_listing_each_skill_finds(tmp_path: Path, tree: str, link: str):
    write(
        tmp_path,
        {path: skill_md(name) if name and 'SKILL' in path.upper() else name for path, name in TREES[tree].items()},
    )
    if link and (tmp_path / link).parent.is_dir():
        (tmp_path / link).symlink_to(tmp_path)
    settle()
    report = validate_skills(tmp_path)
    assert (report.skills, {(problem.path, problem.code) for problem in report.problems}) == thorough(tmp_path)


def test_what_cannot_be_read_quickly_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_skill(tmp_path / 'a')
    refuse_to_open(monkeypatch, 'a/SKILL.md', errno.EACCES)
    assert validate_skills(tmp_path).ok


def test_instructions_are_read_beside_files_that_have_problems(tmp_path: Path):
    folder = write(tmp_path / 'a', {'skill.md': skill_md('a', body='x' * HEAD_BYTES).encode() + b'\xff'})
    (folder / 'link').symlink_to('x')
    codes = [problem.code for problem in validate_skills(tmp_path).problems]
    assert codes == ['file-link', 'file-name', 'not-utf8']


class TestFixing:
    def fix(self, root: Path) -> list[str]:
        return [problem.code for problem in fix_problems(validate_skills(root).problems)]

    @pytest.mark.parametrize(
        ('before', 'after', 'codes'),
        [
            ('\n \n---\nname: a\ndescription: x\n---\nDo.\n', '---\nname: a\ndescription: x\n---\nDo.\n', ['frontmatter-not-first']),
            ('---\nname: A\ndescription: x\n---\nDo.\n', '---\nname: a\ndescription: x\n---\nDo.\n', ['name-invalid']),
            (
                '---\r\nname: A\r\ndescription: x\r\n---\r\nDo.\r\n',
                '---\r\nname: a\r\ndescription: x\r\n---\r\nDo.\r\n',
                ['name-invalid'],
            ),
            ('---\ndescription: x\n---\nDo.\n', '---\nname: a\ndescription: x\n---\nDo.\n', ['name-missing']),
            ('---\nname:\ndescription: x\n---\n', '---\nname: a\ndescription: x\n---\n', ['name-missing']),
            (
                '---\nname: a\ndescription: Use for: this\n---\nDo.\n',
                '---\nname: "a"\ndescription: "Use for: this"\n---\nDo.\n',
                ['yaml-repaired'],
            ),
            (
                '\n---\r\ndescription: Use for: "this"\r\n---\r\nDo.\r\n',
                '---\r\nname: a\r\ndescription: "Use for: \\"this\\""\r\n---\r\nDo.\r\n',
                ['frontmatter-not-first', 'name-missing', 'yaml-repaired'],
            ),
            (
                '---\nname:A\ndescription: Use for: this\n---\nDo.\n',
                '---\nname: "a"\ndescription: "Use for: this"\n---\nDo.\n',
                ['name-invalid', 'yaml-repaired'],
            ),
            (
                '---\ndescription: x\n---\nname: of something else\n',
                '---\nname: a\ndescription: x\n---\nname: of something else\n',
                ['name-missing'],
            ),
        ],
    )  # fmt: skip
    def test_what_is_safe_is_fixed(self, tmp_path: Path, before: str, after: str, codes: list[str]):
        file = write(tmp_path / 'a', {'SKILL.md': before.encode()}) / 'SKILL.md'
        file.chmod(0o600)
        assert sorted(self.fix(tmp_path)) == codes
        assert file.read_bytes() == after.encode()
        assert file.stat().st_mode & 0o777 == 0o600
        assert os.listdir(tmp_path / 'a') == ['SKILL.md']
        assert validate_skills(tmp_path).ok

    @pytest.mark.parametrize(
        'text',
        [
            skill_md('other'),  # one of two names is right, and only the author knows which
            skill_md('Other'),  # it would be another name than the folder's
            '---\nname: a # the name\nname: b\ndescription: x\n---\n',
            '---\nname: A # with a remark\ndescription: x\n---\n',
            '---\nname: [a]\ndescription: x\n---\n',
            '---\nname: a\ndescription: x: y\n  and: more\n---\n',
            skill_md('a', 'x' * 1025),
            'No frontmatter.\n',
        ],
    )
    def test_what_is_the_authors_to_decide_is_left(self, tmp_path: Path, text: str):
        file = write(tmp_path / 'a', {'SKILL.md': text}) / 'SKILL.md'
        assert validate_skills(tmp_path).problems
        assert self.fix(tmp_path) == []
        assert file.read_text() == text

    def test_a_file_is_renamed(self, tmp_path: Path):
        write(tmp_path / 'a', {'skill.md': skill_md('a')})
        assert self.fix(tmp_path) == ['file-name']
        assert os.listdir(tmp_path / 'a') == ['SKILL.md']

    def test_a_dry_run_changes_nothing(self, tmp_path: Path):
        write(tmp_path / 'a', {'skill.md': f'\n{skill_md("a")}'})
        problems = validate_skills(tmp_path).problems
        assert sorted(p.code for p in fix_problems(problems, dry_run=True)) == ['file-name', 'frontmatter-not-first']
        assert (tmp_path / 'a' / 'skill.md').read_text() == f'\n{skill_md("a")}'

    def test_what_has_changed_since_is_looked_at_again(self, tmp_path: Path):
        file = write(tmp_path / 'a', {'SKILL.md': f'\n{skill_md("a")}'}) / 'SKILL.md'
        problems = validate_skills(tmp_path).problems
        file.write_bytes(b'\xff')
        assert fix_problems(problems) == []
        file.unlink()
        assert fix_problems(problems) == []
        file.symlink_to('/etc/passwd')
        assert fix_problems(problems) == []

    def test_problems_of_other_files_are_left(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'a')
        (folder / 'link').symlink_to('x')
        assert self.fix(tmp_path) == []

    def test_a_file_that_cannot_be_replaced_is_left_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        def refuse(source: str, target: Path) -> None:
            raise PermissionError(13, 'Permission denied')

        file = write(tmp_path / 'a', {'SKILL.md': f'\n{skill_md("a")}'}) / 'SKILL.md'
        problems = validate_skills(tmp_path).problems
        monkeypatch.setattr(os, 'replace', refuse)
        assert fix_problems(problems) == []
        assert os.listdir(tmp_path / 'a') == ['SKILL.md']
        assert file.read_text() == f'\n{skill_md("a")}'
