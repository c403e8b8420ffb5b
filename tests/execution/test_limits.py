"""Limits, and what watches them."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from pydantic_ai_skills.execution import disk_use
from pydantic_ai_skills.execution import watchdog as watchdog_module
from pydantic_ai_skills.execution.disk_use import WorkRoom, has_room, measure, room_in, unlinked
from pydantic_ai_skills.execution.limits import MIB, ScriptLimits
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.result import SkillScriptStoppedError
from pydantic_ai_skills.execution.watchdog import (
    WATCH_INTERVAL,
    ProcessInfo,
    Watchdog,
    apply_limits,
    group_limits,
    run_processes,
    unenforced_limits,
    warn_of_unwatched,
)
from pydantic_ai_skills.filesystem.remove import remove_tree

from .conftest import MakeScript


@pytest.mark.parametrize('field', ['wall_time', 'cpu_time', 'memory', 'processes', 'file_size', 'open_files', 'output'])
@pytest.mark.parametrize('value', [0, -1, float('nan'), float('inf'), 'x'])
def test_a_limit_is_a_positive_number(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f'{field} must be a positive number, not'):
        ScriptLimits(**{field: value})


def test_only_what_can_be_lifted_can_be_lifted() -> None:
    assert ScriptLimits(cpu_time=None, memory=None, processes=None, file_size=None, open_files=None, work_folder=None)
    with pytest.raises(ValueError, match='wall_time must be a positive number, not None'):
        ScriptLimits(wall_time=None)  # pyright: ignore[reportArgumentType] - the mistake under test


def test_what_a_platform_cannot_enforce_is_said_and_warned_about_if_it_was_chosen() -> None:
    assert unenforced_limits(ScriptLimits(), platform='linux') == ()
    assert unenforced_limits(ScriptLimits(), held=(), platform='linux') == ('memory',)
    assert unenforced_limits(ScriptLimits(), platform='darwin') == ('memory', 'processes', 'work_folder')
    assert unenforced_limits(ScriptLimits(memory=None, processes=None, work_folder=None), platform='darwin') == ()
    with pytest.warns(UserWarning, match='processes cannot be limited on darwin. Set them to None to say'):
        warn_of_unwatched(ScriptLimits(memory=None, processes=5), platform='darwin')
    warn_of_unwatched(ScriptLimits(memory=None, processes=5), platform='linux')


def test_a_group_leaves_room_above_the_limit_on_memory() -> None:
    assert group_limits(ScriptLimits(memory=64 * MIB, processes=1)) == {'processes': 16, 'memory': 80 * MIB}
    assert group_limits(ScriptLimits(memory=1024 * MIB, processes=None)) == {'memory': 1280 * MIB}
    assert group_limits(ScriptLimits(memory=None, processes=None)) == {}


SHOW = """
import resource
for name in ('CPU', 'DATA', 'FSIZE', 'NOFILE', 'CORE'):
    print(name, *resource.getrlimit(getattr(resource, f'RLIMIT_{name}')))
"""


async def test_the_kernel_limits_each_process(make_script: MakeScript) -> None:
    script = make_script('a.py', SHOW)
    limits = ScriptLimits(cpu_time=7, memory=300 * MIB, file_size=5 * MIB, open_files=99)
    result = await LocalSkillScriptExecutor(limits=limits).run(script)
    assert result.stdout.splitlines() == [
        'CPU 7 8',
        f'DATA {300 * MIB} {300 * MIB}',
        f'FSIZE {5 * MIB} {5 * MIB}',
        'NOFILE 99 99',
        'CORE 0 0',
    ]


async def test_limits_can_be_lifted_and_are_never_raised(make_script: MakeScript) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lifted = ScriptLimits(cpu_time=None, memory=None, processes=None, file_size=None, open_files=None, work_folder=None)
    script = make_script('a.py', SHOW)
    result = await LocalSkillScriptExecutor(limits=lifted).run(script)
    assert f'NOFILE {before[0]} {before[1]}' in result.stdout
    assert 'CPU -1 -1' in result.stdout
    process = subprocess.Popen(['sleep', '30'])
    try:
        apply_limits(ScriptLimits(processes=10), process.pid, own_namespace=True)
        assert resource.prlimit(process.pid, resource.RLIMIT_NPROC) == (88, 88)
        assert resource.prlimit(process.pid, resource.RLIMIT_CPU) == (60, 61)
    finally:
        process.kill()
        process.wait()
    apply_limits(ScriptLimits(), process.pid)  # one that has ended is no mistake


async def test_limits_are_not_raised_above_those_of_this_process(
    make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, 'getrlimit', Mock(return_value=(50, 50)))
    result = await LocalSkillScriptExecutor(limits=ScriptLimits(open_files=99, memory=None)).run(
        make_script('a.py', SHOW)
    )
    assert 'NOFILE 50 50' in result.stdout
    assert 'CPU 50 50' in result.stdout


async def test_processor_time_that_is_up_has_a_signal_of_its_own(make_script: MakeScript) -> None:
    executor = LocalSkillScriptExecutor(limits=ScriptLimits(cpu_time=1))
    result = await executor.run(make_script('a.py', 'while True: pass'))
    assert str(result) == 'exit code: 152 (SIGXCPU)'


async def test_a_platform_without_a_table_of_processes_runs_scripts_unwatched(
    make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, 'platform', 'darwin')
    with pytest.warns(UserWarning, match='processes cannot be limited on darwin'):
        executor = LocalSkillScriptExecutor(limits=ScriptLimits(processes=1))
    result = await executor.run(make_script('a.sh', 'sleep 0.4 & sleep 0.3; wait; echo done'))
    assert result.stdout == 'done\n'


@pytest.mark.parametrize(
    ('name', 'source', 'limits', 'reason'),
    [
        ('a.sh', 'for i in 1 2 3 4 5 6; do sleep 9 & done; wait', {'processes': 5}, 'it started more than 5 processes'),
        (
            'sessions.sh',
            'for i in 1 2 3 4 5 6; do setsid sleep 9 & done; wait',
            {'processes': 5},
            'it started more than 5 processes',
        ),
        (
            'a.py',
            'import mmap, time\nm = mmap.mmap(-1, 200 << 20)\nfor _ in range(200): m.write(b"x" * (1 << 20))\ntime.sleep(30)',
            {'memory': 100 * MIB},
            'it used more than 100 MiB of memory',
        ),
        (
            'a.sh',
            'cd "$SKILL_WORK_DIR"; mkdir d; for i in 1 2 3; do head -c 1000000 /dev/zero > d/$i; done; sleep 30',
            {'work_folder': 2 * MIB},
            'the work folder holds more than 2 MiB',
        ),
    ],
)
async def test_what_all_processes_use_together_is_watched(
    make_script: MakeScript, name: str, source: str, limits: dict[str, int], reason: str
) -> None:
    started = time.monotonic()
    with pytest.raises(SkillScriptStoppedError) as caught:
        await LocalSkillScriptExecutor(limits=ScriptLimits(**limits)).run(make_script(name, source))
    assert time.monotonic() - started < 15
    assert str(caught.value) == f'The script {name!r} was stopped: {reason}.'
    assert (caught.value.result.exit_code, caught.value.result.timed_out) == (137, False)


async def test_memory_that_processes_share_counts_once(make_script: MakeScript) -> None:
    source = """
    import os, time
    data = bytearray(b'x' * (60 << 20))
    for _ in range(4):
        if not os.fork():
            time.sleep(0.6)
            os._exit(0)
    time.sleep(0.8)
    print('done')
    """
    result = await LocalSkillScriptExecutor(limits=ScriptLimits(memory=150 * MIB)).run(make_script('a.py', source))
    assert result.stdout == 'done\n'


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    source = 'sleep 60 & (setsid sleep 60 &) ; wait'
    process = subprocess.Popen(['bash', '-c', source], start_new_session=True)
    deadline = time.monotonic() + 60
    while len(run_processes(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    yield process
    for info in run_processes(process.pid):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(info.pid, 9)
    process.wait()


def test_descendants_and_members_of_the_session_are_found(family: subprocess.Popen[bytes]) -> None:
    found = run_processes(family.pid)
    assert family.pid in {info.pid for info in found}
    assert len(found) >= 2
    assert all(isinstance(info, ProcessInfo) and info.resident >= 0 for info in found)


def test_a_process_that_ends_while_it_is_looked_at_is_left_out(
    family: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = os.listdir

    def with_ghosts(path: str) -> list[str]:
        return [*real(path), '4194999'] if path == '/proc' else real(path)

    monkeypatch.setattr(os, 'listdir', with_ghosts)
    assert 4194999 not in {info.pid for info in run_processes(family.pid)}
    ghost = ProcessInfo(pid=4194999, parent=1, session=1, resident=1 << 40)
    monkeypatch.setattr(watchdog_module, 'run_processes', Mock(return_value=[ghost]))
    dog = Watchdog(ScriptLimits(), work_dir=tmp_path)
    time.sleep(WATCH_INTERVAL)
    assert dog(family.pid) is None


def test_a_work_folder_full_of_names_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / 'gone').mkdir()
    for number in range(30):
        (tmp_path / 'gone' / str(number)).touch()
    dog = Watchdog(ScriptLimits(), work_dir=tmp_path, room=WorkRoom(MIB, 20))
    assert dog(os.getpid()) is None  # it is not time yet
    time.sleep(WATCH_INTERVAL)
    assert dog(os.getpid()) == 'the work folder holds more than 20 files'
    dog = Watchdog(ScriptLimits(work_folder=None, memory=None, processes=None), work_dir=tmp_path)
    time.sleep(WATCH_INTERVAL)
    assert dog(os.getpid()) is None
    dog = Watchdog(ScriptLimits(), work_dir=tmp_path / 'not there')
    time.sleep(WATCH_INTERVAL)
    assert dog(os.getpid()) is None


def test_what_is_in_a_work_folder_counts_where_scripts_put_it(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).write_bytes(bytes(4096))
    there = measure(tmp_path, MIB, 10)
    assert room_in(tmp_path, MIB, is_private=True, most=5) == WorkRoom(MIB, 5)
    assert room_in(tmp_path, 1, is_private=True, most=2) == WorkRoom(there.size, 3)
    assert room_in(tmp_path, MIB, is_private=False, most=5) == WorkRoom(MIB + there.size, 8)
    assert room_in(tmp_path, MIB, is_private=False, most=1) == WorkRoom(MIB, None)
    rooms = WorkRoom(MIB, 3), WorkRoom(MIB, None), WorkRoom(), WorkRoom(1, 3), WorkRoom(MIB, 2)
    assert [has_room(tmp_path, room) for room in rooms] == [True, True, True, False, False]


def test_a_folder_with_too_many_files_to_count_is_watched_by_the_space_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dog = Watchdog(ScriptLimits(work_folder=MIB), work_dir=tmp_path, room=WorkRoom(MIB, None))
    monkeypatch.setattr(dog, '_before', Mock(disk=0))
    time.sleep(WATCH_INTERVAL)
    assert dog(os.getpid()) == 'the work folder holds more than 1 MiB'


def test_the_limits_of_this_process_are_untouched() -> None:
    assert resource.getrlimit(resource.RLIMIT_CPU)[0] == resource.RLIM_INFINITY


def own_processes() -> list[int]:
    return [info.pid for info in run_processes(os.getpid())]


def test_files_without_a_name_are_counted_while_they_are_open(tmp_path: Path) -> None:
    def count(*, thorough: bool = False) -> int:
        return unlinked(tmp_path, own_processes(), thorough=thorough).size // MIB

    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(bytes(3 * MIB))
        file.flush()
        assert count() == 3
        # Not Python's `mmap`, which keeps a descriptor of its own.
        address = libc.mmap(None, 2 * MIB, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        assert count(thorough=True) == 3
    assert (count(), count(thorough=True)) == (0, 2)
    libc.munmap(address, 2 * MIB)
    assert count(thorough=True) == 0
    assert unlinked(tmp_path / 'gone', own_processes(), thorough=True) == (0, 0, True)


def test_a_socket_that_may_hide_files_is_seen(tmp_path: Path) -> None:
    def complete() -> bool:
        return unlinked(tmp_path, own_processes(), thorough=True).complete

    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert complete()
        with tempfile.TemporaryFile(dir=tmp_path) as file:
            socket.send_fds(ours, [b'x'], [file.fileno()])
        assert not complete()


def test_the_space_that_is_gone_counts_where_not_all_files_can_be_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir('x' * 200, dir_fd=folder)
        inner = os.open('x' * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    assert not measure(tmp_path, MIB * 100, 1000).complete
    for used_before, reason in ((1 << 60, None), (0, 'the work folder holds more than 1 MiB')):
        dog = Watchdog(ScriptLimits(work_folder=MIB), work_dir=tmp_path)
        before = Mock(disk=used_before)
        monkeypatch.setattr(dog, '_before', before)
        time.sleep(WATCH_INTERVAL)
        assert dog(os.getpid()) == reason
    remove_tree(tmp_path / ('x' * 200))


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / 'a').write_bytes(bytes(MIB))
    once = measure(tmp_path, MIB * 100, 1000).size
    os.link(tmp_path / 'a', tmp_path / 'b')
    assert measure(tmp_path, MIB * 100, 1000)[:2] == (once, 2)


def test_a_look_follows_at_once_when_the_machine_uses_much_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dog = Watchdog(ScriptLimits(work_folder=MIB), work_dir=tmp_path)
    looks = Mock(return_value=None)
    monkeypatch.setattr(dog, '_look', looks)
    (tmp_path / 'a').write_bytes(bytes(64 * MIB))
    time.sleep(watchdog_module.GLANCE_INTERVAL)
    monkeypatch.setattr(dog, '_next_look', time.monotonic() + 60)
    dog(os.getpid())
    assert looks.call_count == 1


def test_files_in_memory_are_counted_by_their_number(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for memory, reason in ((MIB, 'it used more than 1 MiB of memory'), (None, None)):
        limits = ScriptLimits(memory=memory, processes=None, work_folder=None)
        dog = Watchdog(limits, work_dir=tmp_path, in_memory=lambda: [folder])
        time.sleep(watchdog_module.GLANCE_INTERVAL)
        assert dog(os.getpid()) == reason  # a whole disk has more than 128 files
    os.close(folder)


def test_a_process_that_forbids_to_look_into_it_counts_with_all_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('builtins.open', Mock(side_effect=PermissionError))
    info = ProcessInfo(1, 0, 0, 5000)
    used_memory = getattr(watchdog_module, '_used_memory')  # noqa: B009 - private, but it has no other face
    assert used_memory([info], 1) == 5000


def test_memory_is_counted_exactly_once_it_seems_too_much(tmp_path: Path) -> None:
    dog = Watchdog(ScriptLimits(memory=MIB, processes=None, work_folder=None), work_dir=tmp_path)
    time.sleep(watchdog_module.WATCH_INTERVAL)
    assert dog(os.getpid()) == 'it used more than 1 MiB of memory'


def test_files_without_a_name_on_another_device_are_not_counted() -> None:
    mapped = getattr(disk_use, '_mapped')  # noqa: B009 - private, but it has no other face
    with tempfile.TemporaryFile() as file:
        file.write(b'x' * 4096)
        file.flush()
        with mmap.mmap(file.fileno(), 4096):
            status = os.fstat(file.fileno())
            assert (status.st_ino, 4096) in list(mapped(os.getpid(), status.st_dev))
            assert list(mapped(os.getpid(), 2**31)) == []
