from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pydantic_ai_skills.filesystem import ownership
from pydantic_ai_skills.filesystem.locks import LockFile, only_one
from pydantic_ai_skills.filesystem.ownership import is_ours, make_folder, strangers_in

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason='only root can give a file away')


@pytest.fixture
def file(tmp_path: Path) -> Path:
    make_folder(tmp_path / 'above' / 'folder')
    path = tmp_path / 'above' / 'folder' / 'file'
    path.write_text('x')
    path.chmod(0o644)
    return path


def test_what_is_ours_or_missing_is_fine(file: Path):
    assert strangers_in(file) is None
    assert strangers_in(file.with_name('missing')) is None
    assert is_ours(file.stat())


@pytest.mark.parametrize('mode', [0o775, 0o777, 0o757, 0o1777, 0o2775])
@pytest.mark.parametrize('which', ['file', 'folder', 'above'])
def test_what_others_can_write_is_told_unless_it_is_a_sticky_folder_above(file: Path, which: str, mode: int):
    path = {'file': file, 'folder': file.parent, 'above': file.parent.parent}[which]
    path.chmod(mode)
    is_fine = mode == 0o1777 and which != 'file'
    assert strangers_in(file) == (None if is_fine else f'{str(path)!r} can be written by other users')
    assert is_ours(file.stat()) == (which != 'file')
    assert (strangers_in(file, above=False) is None) == (is_fine or which == 'above')


@needs_root
@pytest.mark.parametrize('which', ['file', 'folder', 'above'])
def test_what_belongs_to_another_user_is_told_even_to_root(file: Path, which: str):
    path = {'file': file, 'folder': file.parent, 'above': file.parent.parent}[which]
    os.chown(path, NOBODY, NOBODY)
    assert strangers_in(file) == f'{str(path)!r} belongs to another user'


@needs_root
def test_a_link_counts_with_what_it_leads_to(file: Path, tmp_path: Path):
    link = tmp_path / 'link'
    link.symlink_to(file.parent)
    assert strangers_in(link / 'file') is None
    file.parent.parent.chmod(0o777)
    assert strangers_in(link / 'file') == f'{str(file.parent.parent)!r} can be written by other users'
    file.parent.parent.chmod(0o755)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert strangers_in(link / 'file') == f'{str(link)!r} belongs to another user'


def test_a_group_of_one_user_is_that_user(file: Path, monkeypatch: pytest.MonkeyPatch):
    users = {1: SimpleNamespace(pw_name='ada', pw_gid=1), 0: SimpleNamespace(pw_name='root', pw_gid=0)}
    groups = {
        0: SimpleNamespace(gr_name='root', gr_mem=[]),
        1: SimpleNamespace(gr_name='ada', gr_mem=['ada']),
        2: SimpleNamespace(gr_name='staff', gr_mem=[]),
    }
    databases = SimpleNamespace(getpwuid=users.__getitem__), SimpleNamespace(getgrgid=groups.__getitem__)
    monkeypatch.setattr(ownership, '_databases', lambda: databases)
    is_private: Callable[[int, int], bool] = ownership._is_private_group.__wrapped__  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert is_private(1, 1)
    assert not any((is_private(2, 1), is_private(0, 0), is_private(3, 1)))
    groups[1].gr_mem.append('bob')
    assert not is_private(1, 1)


def test_where_files_have_no_owners_nothing_is_checked(file: Path, monkeypatch: pytest.MonkeyPatch):
    file.chmod(0o777)
    monkeypatch.setattr(ownership, '_CHECKS_OWNERS', False)
    assert (strangers_in(file), is_ours(file.stat())) == (None, True)


def test_folders_are_made_for_their_user_whatever_the_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        make_folder(tmp_path / 'a' / 'b')
        make_folder(tmp_path / 'c' / 'd', 0o777)
    finally:
        os.umask(before)
    assert [(tmp_path / path).stat().st_mode & 0o777 for path in ('a', 'a/b', 'c', 'c/d')] == [0o700] * 2 + [0o755] * 2


def test_a_lock_that_others_can_hold_is_done_without(tmp_path: Path):
    path = tmp_path / 'lock'
    path.touch()
    path.chmod(0o666)
    assert LockFile(path).acquire()
    held: Any = LockFile(path)
    with only_one(path, patience=0):
        assert held.acquire()


def test_a_lock_is_not_made_through_a_link(tmp_path: Path):
    (tmp_path / 'link').symlink_to(tmp_path / 'elsewhere')
    assert LockFile(tmp_path / 'link').acquire()
    assert not (tmp_path / 'elsewhere').exists()
