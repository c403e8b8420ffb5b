"""The files a script leaves behind, which may be traps."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.result import ScriptResult
from pydantic_ai_skills.execution.work_dir import (
    keep_private_folder,
    make_private_folder,
    remove_kept_folders,
    remove_private_folder,
)
from pydantic_ai_skills.execution.work_files import ScriptFile, list_work_files, read_work_file
from pydantic_ai_skills.filesystem.remove import remove_tree

from .conftest import MakeScript

WRITE = 'mkdir -p "$SKILL_WORK_DIR/out"; printf hello > "$SKILL_WORK_DIR/out/a.txt"; echo done'


async def test_files_in_the_work_folder_can_be_listed_and_read(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', WRITE))
    assert result.files == (ScriptFile(name='out/a.txt', size=5),)
    assert await to_thread.run_sync(result.read_file, 'out/a.txt') == b'hello'
    assert str(result) == 'done\nfiles:\nout/a.txt (5 bytes)'


@pytest.mark.parametrize(
    ('cwd', 'folder'), [('work', '$SKILL_WORK_DIR'), ('script', '$SKILL_DIR/scripts'), ('skill', '$SKILL_DIR')]
)
async def test_a_script_starts_where_the_developer_says(make_script: MakeScript, cwd: Any, folder: str) -> None:
    script = make_script('scripts/a.sh', f'[ "$PWD" = "{folder}" ] && echo there')
    assert (await LocalSkillScriptExecutor(cwd=cwd).run(script)).stdout == 'there\n'


async def test_a_script_starts_in_its_work_folder(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', 'echo hi > relative.txt'))
    assert await to_thread.run_sync(result.read_file, 'relative.txt') == b'hi\n'


async def test_a_run_that_writes_nothing_leaves_no_folder(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', 'echo $SKILL_WORK_DIR'))
    assert (result.files, result.work_dir) == ((), None)
    with pytest.raises(SkillResourceLoadError, match="There is no file 'x' in the work folder"):
        result.read_file('x')


async def test_a_folder_that_cannot_be_made_is_told(
    make_script: MakeScript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await to_thread.run_sync(remove_kept_folders)
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'missing'))
    message = "The script 'a.sh' could not be started: its work folder cannot be made: No such file or directory."
    with pytest.raises(SkillScriptExecutionError, match=re.escape(message)):
        await LocalSkillScriptExecutor().run(make_script('a.sh', 'echo ran'))


def test_older_folders_make_room_for_newer_ones() -> None:
    remove_kept_folders()
    folders = [make_private_folder() for _ in range(4)]
    for folder in folders:
        (folder / 'file').touch()
        keep_private_folder(folder, most=2)
    assert [folder.exists() for folder in folders] == [False, False, True, True]
    remove_kept_folders()
    assert not any(folder.exists() for folder in folders)


def test_a_fork_has_folders_of_its_own() -> None:
    remove_kept_folders()
    full, empty = make_private_folder(), make_private_folder()
    (full / 'file').touch()
    keep_private_folder(full)
    keep_private_folder(empty)
    child = os.fork()
    if not child:
        wrong = True
        try:
            mine = make_private_folder()
            (mine / 'file').touch()
            keep_private_folder(mine)
            remove_kept_folders()  # as when the process ends
            wrong = mine in (full, empty) or mine.exists()
        finally:
            os._exit(wrong)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert full.exists()
    remove_kept_folders()
    assert not full.exists()
    assert not full.parent.exists()
    assert not empty.exists()


def test_no_folder_is_used_again_and_only_this_user_can_reach_any() -> None:
    remove_kept_folders()
    first = make_private_folder()
    first.chmod(0o777)  # as a script may
    (first / 'file').touch()
    assert first.parent.stat().st_mode & 0o777 == 0o700
    keep_private_folder(first)
    assert first.stat().st_mode & 0o777 == 0o700
    assert make_private_folder() != first
    remove_tree(first.parent)  # as tools do that tidy up
    third = make_private_folder()
    assert third.is_dir()
    remove_kept_folders()
    assert not third.parent.exists()


def test_a_folder_that_cannot_be_removed_is_removed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = make_private_folder(), make_private_folder()
    (folder / 'file').touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, 'open', Mock(side_effect=OSError(errno.EMFILE, 'Too many open files')))
        remove_private_folder(folder)
        assert folder.exists()
        remove_private_folder(other)  # an empty one can be removed all the same
        assert not other.exists()
    remove_private_folder(make_private_folder())
    assert not folder.exists()


def test_only_regular_files_with_proper_names_are_listed(tmp_path: Path) -> None:
    (tmp_path / 'real').write_text('x')
    outside = tmp_path.parent / 'outside'
    outside.mkdir()
    (outside / 'file').touch()
    (tmp_path / 'link').symlink_to(outside / 'file')
    (tmp_path / 'folder-link').symlink_to(outside)
    os.mkfifo(tmp_path / 'pipe')
    (Path(os.fsdecode(os.fsencode(tmp_path) + b'/bad\xff'))).touch()
    assert list_work_files(tmp_path) == (ScriptFile(name='real', size=1),)
    assert list_work_files(tmp_path / 'gone') == ()


async def test_a_folder_of_traps_is_removed_without_a_trace(make_script: MakeScript, tmp_path: Path) -> None:
    (tmp_path / 'outside').touch()
    traps = f'ln -s {tmp_path}/outside link; ln -s {tmp_path} folder-link; mkfifo pipe; pwd'
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', traps))
    assert (result.files, result.work_dir) == ((), None)
    assert not os.path.lexists(result.stdout.strip())
    assert (tmp_path / 'outside').exists()


@pytest.mark.parametrize('kept', ['file', None])
async def test_a_link_in_place_of_the_folder_is_not_followed(
    make_script: MakeScript, tmp_path: Path, kept: str | None
) -> None:
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    if kept:
        (elsewhere / kept).write_text('not of this run')
    swap = f'rm -r "$SKILL_WORK_DIR"; ln -s {elsewhere} "$SKILL_WORK_DIR"; echo "$SKILL_WORK_DIR"'
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', swap))
    await to_thread.run_sync(remove_kept_folders)
    assert (result.files, result.work_dir) == ((), None)
    assert [path.name for path in elsewhere.iterdir()] == ([kept] if kept else [])
    assert not os.path.lexists(result.stdout.strip())


async def test_a_folder_that_a_script_removed_is_no_mistake(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', 'rmdir "$SKILL_WORK_DIR"; echo done'))
    assert (result.stdout, result.files, result.work_dir) == ('done\n', (), None)


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f'{number:03}').touch()
    assert len(list_work_files(tmp_path)) == 200


@pytest.mark.parametrize('name', ['../outside', '/etc/passwd', '', '.', 'a/../b', 'link', 'folder/x', 'gone', 'a\0b'])
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / 'outside').write_text('secret')
    folder = tmp_path / 'work'
    folder.mkdir()
    (folder / 'link').symlink_to('../outside')
    (folder / 'folder').symlink_to('..')
    with pytest.raises(SkillResourceLoadError, match='There is no file|is not a path below this folder'):
        read_work_file(folder, name)


def test_what_is_not_a_file_or_too_long_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'folder').mkdir()
    for name in ('pipe', 'folder'):
        with pytest.raises(SkillResourceLoadError, match=f"'{name}' is not a regular file"):
            read_work_file(tmp_path, name)
    with open(tmp_path / 'huge', 'wb') as file:
        file.truncate(1 << 30)
    with pytest.raises(SkillResourceLoadError, match="'huge' is larger than 10,485,760 bytes"):
        read_work_file(tmp_path, 'huge')
    result = ScriptResult(exit_code=0, stdout='', stderr='', duration=0, work_dir=tmp_path)
    with pytest.raises(SkillResourceLoadError, match='is larger than 10 bytes'):
        result.read_file('huge', max_bytes=10)


def test_a_folder_that_is_very_deep_or_locked_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / 'work'
    folder.mkdir()
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(2000):
        os.mkdir('d')
        os.chdir('d')
    os.chdir(here)
    locked = folder / 'locked'
    (locked / 'inner').mkdir(parents=True)
    (locked / 'inner' / 'file').touch()
    (locked / 'inner').chmod(0)
    locked.chmod(0)
    remove_tree(folder)
    assert not folder.exists()


def test_rights_that_were_taken_away_are_taken_back() -> None:
    child = os.fork()
    if not child:
        left = True
        try:
            if os.getuid() == 0:  # who may do everything
                os.setgid(65534)
                os.setuid(65534)
            folder = Path(tempfile.mkdtemp())
            (folder / 'locked/inner').mkdir(parents=True)
            (folder / 'locked/inner/file').touch()
            for path in (folder / 'locked/inner', folder / 'locked', folder):
                path.chmod(0)
            remove_tree(folder)
            left = os.path.lexists(folder)
        finally:
            os._exit(left)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_elsewhere_stays_when_a_folder_becomes_a_link_at_the_worst_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / 'elsewhere'
    (elsewhere / 'deep').mkdir(parents=True)
    (elsewhere / 'file').touch()
    folder = tmp_path / 'work'
    (folder / 'inner').mkdir(parents=True)
    (folder / 'inner/file').touch()
    scan = os.scandir

    def scan_and_swap(opened: int) -> Any:
        """List a folder, and swap what is in it before anybody can act on the list."""
        entries = scan(opened)
        monkeypatch.setattr(os, 'scandir', scan)
        (folder / 'inner').rename(tmp_path / 'moved')
        (folder / 'inner').symlink_to(elsewhere)
        return entries

    monkeypatch.setattr(os, 'scandir', scan_and_swap)
    remove_tree(folder)
    assert sorted(path.name for path in elsewhere.iterdir()) == ['deep', 'file']


def test_a_file_in_place_of_the_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / 'work').touch()
    remove_tree(tmp_path / 'work')
    assert list(tmp_path.iterdir()) == []


def test_very_deep_folders_are_not_listed(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath(*'d' * 33)
    deepest.mkdir(parents=True)
    (deepest / 'hidden').touch()
    (deepest.parent / 'seen').touch()
    assert [Path(file.name).name for file in list_work_files(tmp_path)] == ['seen']
