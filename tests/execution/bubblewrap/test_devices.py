"""The namespace in which root's sandboxes start, for real. Nothing here changes a device, or tries to."""

from __future__ import annotations

import gc
import os
import subprocess
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from anyio import to_thread

from pydantic_ai_skills.exceptions import SandboxUnavailableError, SkillScriptExecutionError
from pydantic_ai_skills.execution.bubblewrap.devices import ReadOnlyDevices
from pydantic_ai_skills.execution.bubblewrap.executor import BubblewrapSkillScriptExecutor
from tests.execution.conftest import MakeScript


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """A list of what is mounted, which a test can change."""
    file = tmp_path / 'mountinfo'
    file.write_text('one line')
    return file


def inside(devices: ReadOnlyDevices, *command: str) -> str:
    with ExitStack() as cleanup:
        prefix, _ = devices.enter(cleanup)
        return subprocess.run([*prefix, *command], check=True, capture_output=True, text=True).stdout


def namespaces(devices: ReadOnlyDevices) -> list[str]:
    return inside(devices, 'readlink', '/proc/self/ns/user', '/proc/self/ns/mnt').split()


def open_files() -> int:
    gc.collect()  # what other tests have left behind
    return len(os.listdir('/proc/self/fd'))


def fake_unshare(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / 'unshare'
    program.write_text(f'#!/bin/sh\n{source}\n')
    program.chmod(0o755)
    monkeypatch.setenv('PATH', f'{folder}:{os.environ["PATH"]}')


def test_the_devices_are_read_only_inside_and_as_they_were_outside(mounts: Path) -> None:
    before = Path('/proc/self/mountinfo').read_text()
    devices = ReadOnlyDevices(10, mounts=mounts)
    lines = [line.split() for line in inside(devices, 'cat', '/proc/self/mountinfo').splitlines()]
    assert [words[5].split(',')[0] for words in lines if words[4] == '/dev'][-1] == 'ro'
    assert Path('/proc/self/mountinfo').read_text() == before


def test_an_empty_standard_input_is_opened_inside(mounts: Path) -> None:
    devices = ReadOnlyDevices(10, mounts=mounts)
    with ExitStack() as cleanup, open(devices.enter(cleanup).null, 'rb') as null:
        assert os.fstatvfs(null.fileno()).f_flag & os.ST_RDONLY
        assert null.read() == b''


def test_commands_inside_inherit_no_descriptor(mounts: Path) -> None:
    assert inside(ReadOnlyDevices(10, mounts=mounts), 'ls', '/proc/self/fd').split() == ['0', '1', '2', '3']


def test_all_runs_share_the_namespaces_until_something_is_mounted(mounts: Path) -> None:
    devices = ReadOnlyDevices(10, mounts=mounts)
    first = namespaces(devices)
    assert namespaces(devices) == first
    assert all(os.readlink(f'/proc/self/ns/{name.partition(":")[0]}') != name for name in first)
    mounts.write_text('two lines')
    second = namespaces(devices)
    assert not set(first) & set(second)
    assert namespaces(devices) == second


def test_a_way_in_stays_open_when_the_namespaces_are_made_again(mounts: Path) -> None:
    devices = ReadOnlyDevices(10, mounts=mounts)
    with ExitStack() as cleanup:
        prefix, _ = devices.enter(cleanup)
        mounts.write_text('two lines')
        namespaces(devices)
        subprocess.run([*prefix, 'true'], check=True)


def test_no_descriptor_is_left(mounts: Path) -> None:
    before = open_files()
    devices = ReadOnlyDevices(10, mounts=mounts)
    namespaces(devices)
    mounts.write_text('two lines')
    namespaces(devices)
    assert open_files() == before + 3
    del devices
    assert open_files() == before


@pytest.mark.parametrize(
    ('source', 'reason'),
    [
        ('echo no namespaces; echo for you >&2; exit 1', 'no namespaces\nfor you'),
        ('exit 1', 'the devices could not be made read-only'),
        ('exec sleep 9', 'the devices could not be made read-only within 0.5 s'),
    ],
)
def test_what_goes_wrong_is_told(
    mounts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    before = open_files()
    fake_unshare(tmp_path, source, monkeypatch)
    with pytest.raises(OSError, match=f'{reason}$'):
        ReadOnlyDevices(0.5, mounts=mounts)
    assert open_files() == before


def test_namespaces_that_cannot_be_opened_leave_the_old_ones(mounts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = ReadOnlyDevices(10, mounts=mounts)
    before, first = open_files(), namespaces(devices)
    mounts.write_text('two lines')
    really_open = os.open

    def open_but_devices(path: str, flags: int) -> int:
        return really_open(path.replace('root/dev', 'root/no'), flags)

    with monkeypatch.context() as patched:
        patched.setattr(os, 'open', open_but_devices)
        with pytest.raises(FileNotFoundError):
            namespaces(devices)
    assert open_files() == before
    mounts.write_text('one line')
    assert namespaces(devices) == first


def test_a_sandbox_for_root_needs_the_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, 'geteuid', Mock(return_value=0))
    fake_unshare(tmp_path, 'echo Operation not permitted; exit 1', monkeypatch)
    with pytest.raises(SandboxUnavailableError, match='cannot make a sandbox here: Operation not permitted. It needs'):
        BubblewrapSkillScriptExecutor()


async def test_a_script_is_not_started_without_them(
    mounts: Path, tmp_path: Path, make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, 'geteuid', Mock(return_value=0))
    fake_unshare(tmp_path, f'[ -e {tmp_path}/broken ] || exec /usr/bin/unshare "$@"; echo broken; exit 1', monkeypatch)
    make = 'pydantic_ai_skills.execution.bubblewrap.executor.ReadOnlyDevices'
    monkeypatch.setattr(make, partial(ReadOnlyDevices, mounts=mounts))
    executor = await to_thread.run_sync(BubblewrapSkillScriptExecutor)
    script = make_script('a.sh', 'echo done')
    assert (await executor.run(script)).stdout == 'done\n'
    mounts.write_text('two lines')
    (tmp_path / 'broken').touch()
    with pytest.raises(SkillScriptExecutionError, match="'a.sh' could not be started in its sandbox: broken"):
        await executor.run(script)
    (tmp_path / 'broken').unlink()
    assert (await executor.run(script)).stdout == 'done\n'


async def test_who_does_not_own_the_devices_needs_no_namespaces(
    make_script: MakeScript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, 'geteuid', Mock(return_value=1000))
    fake_unshare(tmp_path, 'exit 1', monkeypatch)
    executor = await to_thread.run_sync(BubblewrapSkillScriptExecutor)
    assert (await executor.run(make_script('a.sh', 'cat; echo done'))).stdout == 'done\n'
