"""Scripts that strangers wrote: HOSTILE cases 16 and 22 to 26, the sandbox for real."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from anyio import to_thread

from pydantic_ai_skills.exceptions import SandboxUnavailableError
from pydantic_ai_skills.execution.bubblewrap.executor import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.execution.cgroup import control_groups
from pydantic_ai_skills.execution.gate import describe_call
from pydantic_ai_skills.execution.limits import MIB, ScriptLimits
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.result import ScriptResult, SkillScriptStoppedError
from pydantic_ai_skills.types import SkillScript
from tests.execution.conftest import write_script

from .conftest import CPU_TIME, Scoreboard, Stopwatch, processes_with, wait_until

Executor = LocalSkillScriptExecutor | BubblewrapSkillScriptExecutor
EXECUTORS: dict[str, Callable[..., Executor]] = {
    'sandbox': BubblewrapSkillScriptExecutor,
    'local': LocalSkillScriptExecutor,
}


async def run(make: Callable[..., Executor], script: SkillScript, **options: object) -> tuple[ScriptResult, str, float]:
    """The result of a run, why it was stopped if it was, and the seconds it took."""
    executor = await to_thread.run_sync(partial(make, **options))
    started = time.monotonic()
    try:
        return await executor.run(script), '', time.monotonic() - started
    except SkillScriptStoppedError as error:
        return error.result, str(error), time.monotonic() - started


@pytest.fixture
def mark() -> Iterator[str]:
    """A number of seconds to sleep that no other process sleeps, to find sleepers by."""
    seconds = f'600.{uuid4().int % 10**12:012}'
    yield seconds
    for pid in processes_with(seconds):
        os.kill(pid, signal.SIGKILL)


def sleepers(seconds: str) -> list[int]:
    return [pid for pid in processes_with(seconds) if Path(f'/proc/{pid}/cmdline').read_bytes().count(b'\0') == 2]


def left_over(text: str, expected: int = 0) -> int:
    """How many processes with this text are left. One that was killed may still have to be given the processor to end."""
    wait_until(lambda: len(processes_with(text)) <= expected)
    return len(processes_with(text))


GRANDCHILDREN = {
    'same group': 'sleep {} &',
    'new session': 'setsid sleep {} &',
    'double fork': '(setsid sh -c "sleep {} & exit" &)',
    'cleared environment': 'env -i /usr/bin/setsid /bin/sleep {} &',
    'ignores signals': 'trap "" HUP INT TERM; setsid nohup sleep {} &',
}


def write_grandchild(tmp_path: Path, kind: str, mark: str, then: str) -> SkillScript:
    """A script that says `started` once its grandchild sleeps, and nothing else has the mark in its command line."""
    command = GRANDCHILDREN[kind].format(mark)
    # What looks has no mark in its own command line. A sleeper has one argument and two zeros.
    sleeps = f"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -x -B1 '60[0]{mark[3:]}' | grep -q sleep"
    helpers = f"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -q 'sleep 60[0]{mark[3:]}'"
    source = f'{command}\nuntil {sleeps} && ! {{ {helpers}; }}; do sleep 0.05; done\necho started\n{then}'
    return write_script(tmp_path / 'skill', 'a.sh', f'exec 2>/dev/null\n{source}')


@pytest.mark.parametrize('kind', GRANDCHILDREN)
@pytest.mark.parametrize('ending', ['ends', 'is killed'])
async def test_16_no_grandchild_outlives_the_sandbox(
    tmp_path: Path, scoreboard: Scoreboard, mark: str, kind: str, ending: str
) -> None:
    script = write_grandchild(tmp_path, kind, mark, 'true' if ending == 'ends' else 'sleep 600')
    for timeout in (1, 4, 16):  # where it takes longer than that to start, once more with more time
        result, _, _ = await run(BubblewrapSkillScriptExecutor, script, timeout=timeout)
        if result.stdout:
            break
    left = left_over(mark)
    scoreboard.record(16, f'sandbox, script {ending}: {kind}', f'{left} left', '0 left')
    assert result.stdout == 'started\n'
    assert left == 0


@pytest.mark.parametrize('kind', GRANDCHILDREN)
@pytest.mark.parametrize('grouped', [False, True])
async def test_16_without_a_sandbox_and_a_control_group_those_in_a_session_of_their_own_are_left(
    tmp_path: Path, scoreboard: Scoreboard, mark: str, kind: str, grouped: bool
) -> None:
    options: dict[str, object] = {} if grouped else {'control_group': None}
    script = write_grandchild(tmp_path, kind, mark, 'true')
    result, _, _ = await run(LocalSkillScriptExecutor, script, **options)
    grouped = grouped and bool(control_groups())
    expected = 0 if grouped or kind == 'same group' else 1
    left = left_over(mark, expected)
    label = f'local{", with control group" if grouped else ""}: {kind}'
    scoreboard.record(16, label, f'{left} left', '0' if grouped else 'documented')
    assert result.stdout == 'started\n'
    assert left == expected


@asynccontextmanager
async def peak(measure: Callable[[], float]) -> AsyncGenerator[Callable[[], float]]:
    """The highest of what is measured again and again meanwhile."""
    highest = 0.0

    async def look() -> None:
        nonlocal highest
        while True:
            highest = max(highest, measure())
            await asyncio.sleep(0.01)

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        yield lambda: highest
        group.cancel_scope.cancel()


def tasks() -> int:
    return int(Path('/proc/loadavg').read_text().split()[3].partition('/')[2])


@pytest.mark.alone
@pytest.mark.parametrize('where', EXECUTORS)
@pytest.mark.parametrize(
    ('name', 'source'),
    [
        ('bomb.py', 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass'),
        ('bomb.sh', 'b() { b | b & }; b; sleep 20'),
    ],
)
async def test_22_a_fork_bomb_is_stopped(
    tmp_path: Path, scoreboard: Scoreboard, where: str, name: str, source: str
) -> None:
    script = write_script(tmp_path / 'skill', name, source)
    watch = Stopwatch(limit=5)
    more = 0.0
    for _ in watch:
        before = tasks()
        async with peak(tasks) as highest:
            _, reason, took = await run(EXECUTORS[where], script, limits=ScriptLimits(processes=64))
        watch.best, more = min(watch.best, took), max(more, highest() - before)
        assert reason.endswith('was stopped: it started more than 64 processes.')
        assert left_over(str(script.path)) == 0
    scoreboard.record(22, f'{where}: fork bomb {name}, processes', f'{more:.0f}', '64, or soon stopped')
    scoreboard.record(22, f'{where}: fork bomb {name}, stopped after', f'{watch.best:.2f} s', '5 s')
    assert watch.best < 5
    assert more < 2_000


MEMORY = {
    'one process': 'x = []\nwhile True: x.append(bytearray(10 << 20))',
    'many processes': 'import os, time\nfor _ in range(20):\n    if not os.fork():\n        x = b"x" * (60 << 20)\n'
    '        time.sleep(30)\ntime.sleep(30)',
    'shared memory': 'import mmap\nx = []\nwhile True:\n    x.append(mmap.mmap(-1, 10 << 20))\n    x[-1].write(b"x" * (10 << 20))',
}


@pytest.mark.alone
@pytest.mark.parametrize('where', EXECUTORS)
@pytest.mark.parametrize('kind', MEMORY)
async def test_22_a_memory_bomb_is_stopped(tmp_path: Path, scoreboard: Scoreboard, where: str, kind: str) -> None:
    script = write_script(tmp_path / 'skill', 'bomb.py', MEMORY[kind])
    watch = Stopwatch(limit=10)
    used = 0.0
    for _ in watch:
        before = memory_in_use()
        async with peak(memory_in_use) as highest:
            result, reason, took = await run(EXECUTORS[where], script, limits=ScriptLimits(memory=256 * MIB))
        watch.best, used = min(watch.best, took), max(used, highest() - before)
        assert 'MemoryError' in result.stderr or reason.endswith('it used more than 256 MiB of memory.')
    took = f'{watch.best:.1f} s'
    scoreboard.record(22, f'{where}: memory bomb, {kind}', f'{used:.0f} MB in {took}', '268 MB, or soon stopped')
    assert watch.best < 10
    assert used < 2_000


def memory_in_use() -> float:
    """MB of this machine that are not available."""
    lines = (line.split() for line in Path('/proc/meminfo').read_text().splitlines())
    sizes = {line[0]: int(line[1]) for line in lines}
    return (sizes['MemTotal:'] - sizes['MemAvailable:']) * 1024 / 1e6


@pytest.mark.parametrize('where', EXECUTORS)
async def test_22_a_disk_bomb_is_stopped(tmp_path: Path, scoreboard: Scoreboard, where: str) -> None:
    one = write_script(
        tmp_path / 'skill', 'one.sh', 'cd "$SKILL_WORK_DIR"; head -c 200000000 /dev/zero > big; ls -s big'
    )
    limits = ScriptLimits(file_size=10 * MIB, work_folder=50 * MIB)
    result, _, _ = await run(EXECUTORS[where], one, limits=limits)
    size = sum(file.size for file in result.files)
    scoreboard.record(22, f'{where}: one large file', f'{size / 1e6:.0f} MB', '10 MB')
    assert size <= 10 * MIB
    many = 'cd "$SKILL_WORK_DIR"; i=0; while :; do head -c 1000000 /dev/zero > $i; i=$((i+1)); done'
    watch = Stopwatch(limit=5)
    for _ in watch:
        _, reason, took = await run(EXECUTORS[where], write_script(tmp_path / 'skill', 'many.sh', many), limits=limits)
        watch.best = min(watch.best, took)
        assert reason.endswith('the work folder holds more than 50 MiB.')
    scoreboard.record(22, f'{where}: many files, stopped after', f'{watch.best:.2f} s', '5 s')
    assert watch.best < 5


async def test_22_what_is_not_the_work_folder_is_small_in_the_sandbox(tmp_path: Path, scoreboard: Scoreboard) -> None:
    source = 'for d in /tmp /dev/shm; do head -c 2000000000 /dev/zero > $d/x; stat -c %s $d/x; done'
    script = write_script(tmp_path / 'skill', 'a.sh', source)
    result, _, _ = await run(BubblewrapSkillScriptExecutor, script, limits=ScriptLimits(file_size=None))
    sizes = [int(line) for line in result.stdout.split()]
    scoreboard.record(22, 'sandbox: /tmp and /dev/shm hold', ' + '.join(f'{s / MIB:.0f} MiB' for s in sizes), '320 MiB')
    assert sizes == [256 * MIB, 64 * MIB]


@pytest.mark.parametrize('where', EXECUTORS)
async def test_22_a_cpu_bomb_is_stopped(tmp_path: Path, scoreboard: Scoreboard, where: str) -> None:
    script = write_script(tmp_path / 'skill', 'a.py', 'while True: pass')
    result, _, took = await run(EXECUTORS[where], script, limits=ScriptLimits(cpu_time=1))
    scoreboard.record(22, f'{where}: CPU bomb, stopped after', f'{took:.2f} s', '1 s of CPU')
    assert result.exit_code == 128 + signal.SIGXCPU


STUBS = {
    'not installed': None,
    'exits 1': 'exit 1',
    'exits 0 and does nothing': 'exit 0',
    'namespaces refused': 'echo "bwrap: No permissions to create new namespace" >&2; exit 1',
    'runs the command unsandboxed': 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    'hangs': 'exec sleep 60',
}


@pytest.mark.parametrize('kind', STUBS)
def test_23_a_missing_or_broken_sandbox_fails_closed(tmp_path: Path, scoreboard: Scoreboard, kind: str) -> None:
    stub = tmp_path / 'bwrap'
    if (source := STUBS[kind]) is not None:
        stub.write_text(f'#!/bin/sh\n{source}')
        stub.chmod(0o755)
    started = time.monotonic()
    with pytest.raises(SandboxUnavailableError):
        BubblewrapSkillScriptExecutor(bwrap=str(stub), setup_timeout=1)
    took = time.monotonic() - started
    scoreboard.record(23, f'bwrap {kind}', f'refused in {took * 1000:.0f} ms', 'refused')


ATTACKS = {
    'read the home folder': 'cat "$REAL_HOME"/canary',
    'read the home folder through /proc': 'cat /proc/1/root"$REAL_HOME"/canary',
    'read a file of the host': 'cat /etc/shadow',
    'read another folder': 'cat "$OUTSIDE"/canary',
    'see a process of the host': 'test -d /proc/"$HOST_PID" && grep -l "$HOST_NAME" /proc/[0-9]*/cmdline | grep -v self',
    'signal a process of the host': 'kill -0 "$HOST_PID"',
    'write into the system': 'echo x > /usr/pwned',
    'write into the skill': 'echo x > "$SKILL_DIR"/pwned',
    'write into the host': 'echo x > "$OUTSIDE"/pwned',
    # Opening is enough to know, and changes nothing on this machine should it succeed.
    'change what the kernel runs on a crash': 'exec 3>>/proc/sys/kernel/core_pattern',
    'change any setting of the kernel': 'find /proc -maxdepth 6 -not -path "/proc/[0-9]*" -type f -writable 2>/dev/null | grep .',
    'reboot': 'exec 3>>/proc/sysrq-trigger',
    'mount': 'mount -t tmpfs none /tmp',
    'make a namespace': 'unshare -Ur true',
    'become root': 'su -c id; sudo -n id',
    'connect to the host': 'exec 3<>/dev/tcp/127.0.0.1/"$PORT"',
    'connect to the internet': 'exec 3<>/dev/tcp/1.1.1.1/53',
    'resolve a name': 'getent ahostsv4 example.com',
    'talk to docker': 'test -S /var/run/docker.sock',
    'read a raw disk': 'ls /dev/sda /dev/vda || dd if=/dev/mem bs=1 count=1',
}


@pytest.mark.parametrize('attack', ATTACKS)
async def test_24_the_sandbox_holds(tmp_path: Path, scoreboard: Scoreboard, attack: str) -> None:
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'canary').write_text('canary')
    with socket.create_server(('127.0.0.1', 0)) as server:
        env = {
            'REAL_HOME': str(outside) if 'proc' not in attack else str(Path.home()),
            'OUTSIDE': str(outside),
            'HOST_PID': str(os.getpid()),
            'HOST_NAME': Path(sys.executable).name,
            'PORT': str(server.getsockname()[1]),
        }
        script = write_script(tmp_path / 'skill', 'a.bash', f'{{ {ATTACKS[attack]}; }} && echo SUCCEEDED')
        result, _, _ = await run(BubblewrapSkillScriptExecutor, script, env=env, timeout=10)
    scoreboard.record(24, attack, 'blocked' if 'SUCCEEDED' not in result.stdout else 'SUCCEEDED', 'blocked')
    assert result.exit_code != 0
    assert 'SUCCEEDED' not in result.stdout
    assert 'canary' not in result.stdout
    assert not (outside / 'pwned').exists()
    assert not (tmp_path / 'skill' / 'pwned').exists()


async def test_24_the_home_folder_is_not_there(tmp_path: Path) -> None:
    source = f'import os; print(os.path.exists({str(Path.home() / ".bashrc")!r}), os.listdir(os.path.expanduser("~")))'
    result, _, _ = await run(BubblewrapSkillScriptExecutor, write_script(tmp_path / 'skill', 'a.py', source))
    assert result.stdout == 'False []\n'


HOST = """
import asyncio, sys
from pathlib import Path
from pydantic_ai_skills.execution import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.types import SkillScript

executor = BubblewrapSkillScriptExecutor()
path = Path(sys.argv[1])
asyncio.run(executor.run(SkillScript(path.name, uri=str(path), skill_dir=path.parent)))
"""


def test_25_nothing_in_the_sandbox_outlives_a_host_that_is_killed(
    tmp_path: Path, scoreboard: Scoreboard, mark: str
) -> None:
    source = '\n'.join(command.format(mark) for command in GRANDCHILDREN.values())
    script = write_script(tmp_path / 'skill', 'a.sh', f'{source}\nsleep {mark}')
    watch = Stopwatch(limit=1)
    expected = len(GRANDCHILDREN) + 1
    for _ in watch:
        host = subprocess.Popen([sys.executable, '-c', HOST, str(script.path)])
        wait_until(lambda: len(sleepers(mark)) == len(processes_with(mark)) == expected)
        before = len(sleepers(mark))
        host.kill()
        host.wait()
        with watch:
            left = left_over(mark)
        assert (before, left) == (expected, 0)
    scoreboard.record(25, f'{expected} processes after the host was killed', f'0 left, {watch}', '0, 1 s')
    assert watch.best <= 1


async def test_26_an_approval_does_not_survive_a_change(tmp_path: Path, scoreboard: Scoreboard) -> None:
    script = write_script(tmp_path / 'skill', 'scripts/a.sh', 'echo harmless')
    helper = write_script(tmp_path / 'skill', 'scripts/helper.sh', 'echo harmless')
    approved = json.loads(json.dumps((await describe_call(script, {'x': 1})).metadata()))
    again = await describe_call(script, {'x': 1})
    assert approved['digest'] == again.digest
    assert script.path is not None
    assert helper.path is not None
    changes = {
        'the script': lambda: script.path and script.path.write_text('rm -rf ~'),
        'a file beside it': lambda: helper.path and helper.path.write_text('rm -rf ~'),
        'a new file': lambda: (tmp_path / 'skill' / 'sitecustomize.py').touch(),
    }
    seen = {approved['digest']}
    for what, change in changes.items():
        change()
        digest = (await describe_call(script, {'x': 1})).digest
        scoreboard.record(26, f'changed after approval: {what}', 'refused' if digest not in seen else 'RUN', 'refused')
        assert digest not in seen
        seen.add(digest)
    assert (await describe_call(script, {'x': 2})).digest not in seen


OVERHEAD = """
import asyncio, json, subprocess, sys
from pathlib import Path
from pydantic_ai_skills.execution import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.types import SkillScript

executor = BubblewrapSkillScriptExecutor()
path = Path(sys.argv[1])
script = SkillScript(path.name, uri=str(path), skill_dir=path.parent)

async def main():
    bare, inside = [60], [60]
    # Best of 30 or more: a processor that is shared computes more slowly.
    while len(inside) <= 30 or (min(inside) - min(bare) > 0.02 and len(inside) <= 300):
        start = cpu_time([resource.RUSAGE_CHILDREN])
        subprocess.run([sys.executable, path], capture_output=True)
        between = cpu_time([resource.RUSAGE_CHILDREN])
        await executor.run(script)
        bare.append(between - start)
        inside.append(cpu_time([resource.RUSAGE_CHILDREN]) - between)
    print(json.dumps([min(bare), min(inside)]))

asyncio.run(main())
"""


@pytest.mark.alone
def test_the_sandbox_costs_at_most_20_ms_of_processor_time(tmp_path: Path, scoreboard: Scoreboard) -> None:
    script = write_script(tmp_path / 'skill', 'a.py', 'print(1)')
    command = [sys.executable, '-c', CPU_TIME + OVERHEAD, str(script.path)]
    bare, inside = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    more = inside - bare
    scoreboard.record(24, 'sandbox more than a bare process', f'{more * 1000:.1f} ms of CPU', '20 ms')
    assert 0 < more <= 0.020
