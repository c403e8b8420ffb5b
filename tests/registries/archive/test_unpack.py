"""Archives are read from a file on this machine; the table of hostile ones is in `hostile_archives.py`."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from pydantic_ai_skills import ArchiveSkillsRegistry
from tests.folders import skill_md
from tests.registries.hostile_archives import FINE, LEFT_OUT, REFUSED, Hostile
from tests.registries.web_server import make_tar, make_zip, skill_files


def registry(tmp_path: Path, data: bytes, **options: object) -> ArchiveSkillsRegistry:
    file = tmp_path / 'skills.zip'
    file.write_bytes(data)
    return ArchiveSkillsRegistry(file, cache_dir=tmp_path / 'cache', **options)  # pyright: ignore[reportArgumentType]


def unpacked(tmp_path: Path) -> set[str]:
    """The files in the cache, below the folder of the source."""
    entries = (tmp_path / 'cache').glob('archive-v1/entries/*/*/skills')
    return {path.relative_to(root).as_posix() for root in entries for path in root.rglob('*') if path.is_file()}


@pytest.mark.parametrize('archive', REFUSED, ids=lambda archive: archive.name)
def test_nothing_of_an_archive_that_is_not_in_order_is_used(tmp_path: Path, archive: Hostile):
    source = registry(tmp_path, archive.make())
    found = source.find()
    assert found.skills == ()
    (problem,) = found.problems
    assert problem.code == 'source-failed'
    assert re.search(archive.why, problem.message), problem.message
    assert unpacked(tmp_path) == set()
    assert not (tmp_path.parent / 'evil').exists()
    assert list((tmp_path / 'cache/archive-v1/tmp').iterdir()) == []


@pytest.mark.parametrize('archive', LEFT_OUT, ids=lambda archive: archive.name)
def test_links_devices_and_odd_names_are_left_out_and_reported(tmp_path: Path, archive: Hostile):
    found = registry(tmp_path, archive.make()).find()
    assert [skill.name for skill in found.skills] == ['pdf']
    (problem,) = found.problems
    assert problem.code == 'file-link'
    assert archive.why in problem.path
    assert unpacked(tmp_path) <= {'pdf/SKILL.md', 'pdf/link/evil'}
    assert not any(path.is_symlink() for path in (tmp_path / 'cache').rglob('*'))


@pytest.mark.parametrize('archive', FINE, ids=lambda archive: archive.name)
def test_what_is_unusual_and_in_order_is_unpacked(tmp_path: Path, archive: Hostile):
    found = registry(tmp_path, archive.make()).find()
    assert ([skill.name for skill in found.skills], found.problems) == (['pdf'], ())


@pytest.mark.parametrize('make', [make_zip, make_tar])
def test_only_the_executable_bit_is_kept(tmp_path: Path, make: object):
    run = 'pdf/scripts/run.py'
    data = (make_zip if make is make_zip else make_tar)(skill_files('pdf'), executable=(run,))
    (skill,) = registry(tmp_path, data).find().skills
    assert skill.path is not None
    modes = {path.name: oct(path.stat().st_mode & 0o7777) for path in Path(skill.path).rglob('*.*')}
    assert modes == {'run.py': '0o755', 'SKILL.md': '0o644'}


@pytest.mark.parametrize('command', [['zip', '-qr', '-'], ['tar', 'czf', '-'], ['tar', '--format=pax', '-czf', '-']])
def test_what_the_usual_programs_pack_is_read(tmp_path: Path, command: list[str]):
    for path, text in skill_files('pdf', 'docx', folder=f'repo-main/{"deep/" * 20}skills').items():
        file = tmp_path / 'source' / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert shutil.which(command[0])
    data = subprocess.run([*command, 'repo-main'], cwd=tmp_path / 'source', check=True, capture_output=True).stdout
    found = registry(tmp_path, data).find()
    assert ([skill.name for skill in found.skills], found.problems) == (['docx', 'pdf'], ())


def test_an_archive_that_takes_too_long_is_given_up(tmp_path: Path):
    data = make_zip({f'pdf/{number}': 'x' for number in range(20_000)} | skill_files('pdf'))
    (problem,) = registry(tmp_path, data, timeout=0.05).find().problems
    assert 'takes longer than 0.05 s to unpack; see timeout=' in problem.message


def test_an_archive_may_unpack_to_max_bytes(tmp_path: Path):
    data = make_zip({**skill_files('pdf'), 'pdf/large': 'x' * 100_000})
    (problem,) = registry(tmp_path, data, max_bytes=100_000).find().problems
    assert 'unpacks to more than the 100,000 bytes that max_bytes=' in problem.message


# --- Which folder is the root -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('files', 'path', 'folders'),
    [
        (skill_files('a', 'b', folder='repo-main/skills'), '', ['skills/a', 'skills/b']),
        (skill_files('a', 'b', folder='repo-main/skills'), 'skills', ['skills/a', 'skills/b']),
        (skill_files('a', 'b', folder='repo-main/skills'), 'skills/a', ['skills/a']),
        (skill_files('a', folder='repo-main'), 'repo-main', ['repo-main/a']),
        (skill_files('a'), '', ['a']),
        (skill_files('a'), 'a', ['a']),
        (skill_files('a', 'b'), '', ['a', 'b']),
        ({**skill_files('a', folder='x'), 'README.md': ''}, '', ['x/a']),
        ({'SKILL.md': skill_md('skills'), 'run.py': ''}, '', ['']),
        ({**skill_files('a'), **skill_files('b', folder='node_modules/x')}, '', ['a']),
    ],
)
def test_a_folder_that_holds_everything_need_not_be_named(
    tmp_path: Path, files: dict[str, str], path: str, folders: list[str]
):
    found = registry(tmp_path, make_zip(files), path=path).find()
    assert found.problems == ()
    assert sorted(skill.source.path for skill in found.skills if skill.source) == folders


def test_only_files_of_skills_are_unpacked(tmp_path: Path):
    others = {'repo/README.md': 'x', 'repo/src/main.py': 'x', 'repo/skills/README.md': 'x'}
    link = tarfile.TarInfo('repo/src/link')
    link.type, link.linkname = tarfile.SYMTYPE, '/outside'
    found = registry(tmp_path, make_tar({**skill_files('a', folder='repo/skills'), **others}, link)).find()
    assert found.problems == ()
    assert unpacked(tmp_path) == {'skills/a/SKILL.md', 'skills/a/scripts/run.py'}


def test_skills_are_found_down_to_max_depth(tmp_path: Path):
    files = {**skill_files('a'), **skill_files('b', folder='x/y')}
    assert [skill.name for skill in registry(tmp_path, make_zip(files), max_depth=1).find().skills] == ['a']


def test_a_path_without_skills_is_an_error(tmp_path: Path):
    (problem,) = registry(tmp_path, make_zip(skill_files('a')), path='b').find().problems
    assert "has no skills in 'b' (found 0 SKILL.md)" in problem.message
