"""Limits that hold: HOSTILE cases 41, 45 and 48 to 52, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from pydantic_ai_skills import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.base import CallableSkillScriptExecutor
from pydantic_ai_skills.execution.bubblewrap.executor import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.snapshot import script_digest
from pydantic_ai_skills.execution.workspace import WorkspaceSkillScriptExecutor
from pydantic_ai_skills.types import SkillScript
from tests.execution.conftest import write_script

from .conftest import Scoreboard

NOBODY = 65534
USERS = ['root', 'user']
EXECUTORS = ['BubblewrapSkillScriptExecutor', 'LocalSkillScriptExecutor']

PREAMBLE = """
import asyncio, json, os, resource, sys, tempfile, time
from functools import cache
from pathlib import Path
from pydantic_ai_skills.execution import *
from pydantic_ai_skills.execution import base
from pydantic_ai_skills.execution.result import SkillScriptStoppedError
from pydantic_ai_skills.execution.limits import ScriptLimits
from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.types import SkillScript

MIB = 1024 * 1024

def script(name, source):
    path = Path('skill', name).absolute()
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(source)
    return SkillScript(name, uri=str(path), skill_dir=Path('skill').absolute(), skill_name='skill')

def run(executor, script, args=None):
    "The output, and why it was stopped or refused."
    try:
        return asyncio.run(executor.run(script, args)).stdout, ''
    except SkillScriptStoppedError as error:
        return error.result.stdout, str(error)
    except SkillScriptExecutionError as error:
        return '', str(error)

def answer(**values):
    print(json.dumps(values))
"""


@cache
def python_for_everybody() -> str | None:
    """A Python that an ordinary user can start with our packages: this one may be in root's home folder."""
    version = f'python{sys.version_info.major}.{sys.version_info.minor}'
    for program in (sys.executable, f'/usr/bin/{version}'):
        with suppress(OSError):  # it is not there, or in a folder that is closed to others
            if not as_user(program, 'import pydantic_ai_skills.execution', Path('/')).returncode:
                return program
    return None


def as_user(program: str, source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    packages = [path for path in sys.path if path.endswith('site-packages')]
    env = {
        'PATH': '/usr/local/bin:/usr/bin:/bin',
        'HOME': str(folder),
        'TMPDIR': str(folder),
        'PYTHONPATH': os.pathsep.join([str(Path(__file__).parents[2]), *packages]),
        'PYTHONDONTWRITEBYTECODE': '1',
    }
    who: dict[str, Any] = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
    return subprocess.run([program, '-c', source], cwd=folder, env=env, capture_output=True, text=True, **who)


@pytest.fixture(params=USERS)
def trial(request: pytest.FixtureRequest) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Runs a program as root or as an ordinary user, in a folder of its own that is also its home."""
    if os.geteuid() != 0:
        pytest.skip('only root can be both users')
    # Not `tmp_path`, whose parents only root can enter.
    folder = Path(subprocess.check_output(['mktemp', '-d'], text=True).strip())
    program = sys.executable

    def run(source: str) -> dict[str, Any]:
        code = PREAMBLE + textwrap.dedent(source)
        if request.param == 'user':
            os.chown(folder, NOBODY, NOBODY)
            done = as_user(program, code, folder)
        else:
            env = {**os.environ, 'HOME': str(folder), 'TMPDIR': str(folder)}
            done = subprocess.run(
                [program, '-c', code], cwd=folder, env=env, capture_output=True, text=True, check=False
            )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        left = [path for path in folder.iterdir() if path.name.startswith('skill-run')]
        assert left == [], 'a work folder stayed behind'
        return {**found, 'user': request.param}

    if request.param == 'user':
        if (found := python_for_everybody()) is None:
            pytest.skip('no Python here can be started by an ordinary user')
        program = found
    yield run
    shutil.rmtree(folder, ignore_errors=True)


# Each prints how much it has got hold of, in MiB, and ends at 160 MiB.
MEMORY = {
    'memfd': """
        fd = os.memfd_create('x')
        for n in range(160):
            os.write(fd, bytes(1 << 20)); say(n + 1)
    """,
    'memfds': """
        fds = []
        for n in range(160):
            fds.append(os.memfd_create('x')); os.write(fds[-1], bytes(1 << 20)); say(n + 1)
    """,
    'SysV shared memory': """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        libc.shmdt.argtypes = [ctypes.c_void_p]
        for n in range(40):
            segment = libc.shmget(0, 4 << 20, 0o1600)
            if segment < 0:
                raise OSError(ctypes.get_errno(), 'shmget')
            address = libc.shmat(segment, None, 0)
            libc.shmctl(segment, 0, None)  # gone with the last process that has it
            ctypes.memset(address, 1, 4 << 20)
            say(4 * (n + 1))
    """,
    'POSIX shared memory': """
        for n in range(160):
            fd = os.open('/dev/shm/hostile-%d-%d' % (os.getpid(), n), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.unlink('/dev/shm/hostile-%d-%d' % (os.getpid(), n))
            os.write(fd, bytes(1 << 20)); say(n + 1)
    """,
    'files in memory': """
        for n in range(160):
            fd = os.open('/tmp/x%d' % n, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(fd, bytes(1 << 20)); os.close(fd); say(n + 1)
    """,
    'empty files in memory': """
        for n in range(160 * 1024):
            os.close(os.open('/tmp/%d' % n, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            if n % 1024 == 0:
                say(n // 1024)
    """,
    'shared mapping': """
        import mmap
        for n in range(20):
            keep.append(mmap.mmap(-1, 8 << 20)); keep[-1].write(bytes(8 << 20)); say(8 * (n + 1))
    """,
    'shared mapping with a pause': """
        import mmap
        for n in range(20):
            keep.append(mmap.mmap(-1, 8 << 20)); keep[-1].write(bytes(8 << 20)); say(8 * (n + 1))
            time.sleep(30 if n == 10 else 0)
    """,
}
WATCHED = ('shared mapping',)  # without a control group, a watcher has to be quicker than the script
ONLY_IN_THE_SANDBOX = ('files in memory', 'empty files in memory')  # elsewhere `/tmp` is a folder on a disk of the host
HEAD = 'import os, sys, time\nkeep = []\ndef say(n): print(n, flush=True)\n'


@pytest.mark.parametrize(
    ('executor', 'kind'),
    [
        (executor, kind)
        for executor in EXECUTORS
        for kind in MEMORY
        if executor.startswith('Bubblewrap') or kind not in ONLY_IN_THE_SANDBOX
    ],
)
def test_48_memory_of_every_kind_is_limited(
    trial: Callable[[str], dict[str, Any]], scoreboard: Scoreboard, executor: str, kind: str
) -> None:
    source = HEAD + textwrap.dedent(MEMORY[kind])
    found = trial(f"""
        executor = {executor}(limits=ScriptLimits(memory=64 * MIB, open_files=4096), timeout=60)
        out, reason = run(executor, script('a.py', {source!r}))
        answer(peak=int(([0] + out.split())[-1]), reason=reason, said=executor.unenforced, watched=executor.watched)
    """)
    held = found['peak'] < 128
    named = 'memory' in found['said']
    measured = f'{found["peak"]} MiB' if held else 'named in `unenforced`'
    scoreboard.record(48, f'{found["user"]}, {executor[:5]}: {kind}', measured, '128 MiB or named')
    assert held or (named and (executor.startswith('Local') or kind in WATCHED))
    assert held or kind != 'shared mapping with a pause'


def test_48_an_ordinary_script_is_not_stopped(trial: Callable[[str], dict[str, Any]]) -> None:
    found = trial("""
        source = 'import mmap; m = mmap.mmap(-1, 20 << 20); m.write(bytes(20 << 20)); x = bytes(20 << 20); print(len(x))'
        found = [run(kind(limits=ScriptLimits(memory=96 * MIB)), script('a.py', source))
                 for kind in (BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor)]
        answer(found=found)
    """)
    assert found['found'] == [['20971520\n', '']] * 2


DISK = {
    'unlinked open files': """
        for n in range(120):
            fd = os.open('f', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.unlink('f')
            os.write(fd, bytes(1 << 20)); say(n + 1); time.sleep(0.003)
    """,
    'unlinked mapped files': """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        for n in range(120):
            fd = os.open('f', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.unlink('f')
            os.write(fd, bytes(1 << 20)); libc.mmap(None, 1 << 20, 1, 1, fd, 0); os.close(fd)
            say(n + 1); time.sleep(0.003)
    """,
    'unlinked files in a socket': """
        import socket
        a, b = socket.socketpair()
        for n in range(120):
            fd = os.open('f', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.unlink('f')
            os.write(fd, bytes(1 << 20)); socket.send_fds(a, [b'x'], [fd]); os.close(fd)
            say(n + 1); time.sleep(0.003)
    """,
    'a folder deeper than any path': """
        for _ in range(40):
            os.mkdir('d' * 200); os.chdir('d' * 200)
        for n in range(120):
            open(str(n), 'wb').write(bytes(1 << 20)); say(n + 1); time.sleep(0.003)
    """,
    'an unreadable folder': """
        os.mkdir('d'); os.chdir('d'); os.chmod('.', 0o300)
        for n in range(120):
            open(str(n), 'wb').write(bytes(1 << 20)); say(n + 1); time.sleep(0.003)
    """,
    'as fast as it can': """
        for n in range(200):
            open(str(n), 'wb').write(bytes(1 << 20)); say(n + 1)
    """,
}


@pytest.mark.parametrize('kind', DISK)
@pytest.mark.parametrize('executor', EXECUTORS)
def test_49_what_a_work_folder_holds_is_limited(
    trial: Callable[[str], dict[str, Any]], scoreboard: Scoreboard, executor: str, kind: str
) -> None:
    source = HEAD + "os.chdir(os.environ['SKILL_WORK_DIR'])\n" + textwrap.dedent(DISK[kind])
    # The best of several: where other programs have the processors, the watcher waits for its turn.
    found = trial(f"""
        executor = {executor}(limits=ScriptLimits(work_folder=8 * MIB), timeout=60)
        best = None
        for _ in range(20):
            out, reason = run(executor, script('a.py', {source!r}))
            best = min(best or (10**9, ''), (int(([0] + out.split())[-1]), reason))
            if best[0] < 32:
                break
        answer(peak=best[0], reason=best[1], watched=executor.watched)
    """)
    scoreboard.record(49, f'{found["user"]}, {executor[:5]}: {kind}', f'{found["peak"]} MiB', '32 MiB')
    assert found['peak'] < 32
    assert 'the work folder holds more than 8 MiB' in found['reason']
    assert 'work_folder' in found['watched']


TRAPS = """
import os, stat
os.chdir(os.environ['SKILL_WORK_DIR'])
def attempt(what, *args):
    try: what(*args)
    except OSError: pass
for name, mode in (('setuid', 0o4755), ('setgid', 0o2755), ('all', 0o7777), ('none', 0)):
    open(name, 'w').write('#!/bin/sh')
    attempt(os.chmod, name, mode)
    attempt(os.setxattr, name, 'user.note', b'from the last conversation')
    attempt(os.link, name, name + '-link')
attempt(lambda: os.close(os.open('born', os.O_CREAT | os.O_WRONLY, 0o6755)))
os.makedirs('locked/in'); open('locked/in/x', 'w'); os.chmod('locked', 0)
attempt(os.setxattr, '.', 'user.note', b'from the last conversation')
attempt(os.utime, '.', (1, 1))
attempt(os.chmod, '.', 0o7777)
"""


@pytest.mark.parametrize('executor', EXECUTORS)
def test_50_what_a_script_leaves_is_of_no_use_to_others(
    trial: Callable[[str], dict[str, Any]], scoreboard: Scoreboard, executor: str
) -> None:
    found = trial(f"""
        from pydantic_ai_skills.execution.work_dir import remove_kept_folders
        executor = {executor}()
        result = asyncio.run(executor.run(script('a.py', {TRAPS!r})))
        work = result.work_dir
        reachable = all(folder.stat().st_mode & 0o011 for folder in (work, work.parent))
        setuid = [path.name for path in work.iterdir() if path.lstat().st_mode & 0o6000]
        look = 'import os; w = os.environ["SKILL_WORK_DIR"]; ' \\
            'print(os.listdir(w), os.listxattr(w), os.stat(w).st_mtime > 9, oct(os.stat(w).st_mode & 0o7777))'
        empty = 'import os; w = os.environ["SKILL_WORK_DIR"]; os.setxattr(w, "user.note", b"x"); os.utime(w, (1, 1))'
        run(executor, script('c.py', empty))
        next_one, _ = run(executor, script('b.py', look))
        remove_kept_folders()
        answer(reachable=reachable, setuid=setuid, next_one=next_one, left=work.parent.exists())
    """)
    scoreboard.record(
        50, f'{found["user"]}, {executor[:5]}: traps left behind', f'{len(found["setuid"])} setuid, folder 0700', '0700'
    )
    assert not found['reachable']
    assert found['next_one'] == '[] [] True 0o700\n'
    assert not found['left']
    if executor.startswith('Bubblewrap'):
        assert found['setuid'] == []


TALK = """
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_skills import SkillsDirectory, SkillsToolset
from pydantic_ai_skills.exceptions import SkillError

def toolset(**executors):
    for name in executors:
        folder = Path(name, name)
        folder.mkdir(parents=True)
        (folder / 'SKILL.md').write_text(f'---\\nname: {name}\\ndescription: x\\n---\\nx')
    return SkillsToolset(directories=[SkillsDirectory(name, script_executor=e) for name, e in executors.items()])

def say(skills, conversation, skill, source):
    "What a script of a skill prints in a conversation, or why it failed."
    ctx = RunContext(deps=None, model=TestModel(), usage=RunUsage(), conversation_id=conversation)
    path = Path(skill, skill, 'a.py')
    path.write_text(source)
    async def main():
        skills.reload()
        try:
            return (await skills.actions.run(ctx, skills.get_skill(skill), 'a.py', None)).return_value
        except Exception as error:
            return str(error)
    return asyncio.run(main())
"""


@pytest.mark.parametrize('executor', EXECUTORS)
def test_49_what_scripts_leave_in_the_folder_of_a_conversation_counts(
    trial: Callable[[str], dict[str, Any]], scoreboard: Scoreboard, executor: str
) -> None:
    # Mostly too quick to be seen while it runs, and slow enough for that.
    quick = "import os, time; open(str(time.time_ns()), 'wb').write(bytes(3 << 20))"
    write = f'{quick}; time.sleep(0.5)'
    hide = f'import os; os.mkdir("d"); os.chdir("d"); {quick}; os.chmod(".", 0)'
    found = trial(
        TALK
        + textwrap.dedent(f"""
        skills = toolset(writer={executor}(limits=ScriptLimits(work_folder=8 * MIB), timeout=60))
        told = [say(skills, 'one', 'writer', {write!r}) for _ in range(4)]
        held = sum(path.stat().st_size for path in skills.work_dir_of('one').iterdir()) / MIB
        quick = [say(skills, 'one', 'writer', {quick!r}) for _ in range(2)]
        still = sum(path.stat().st_size for path in skills.work_dir_of('one').iterdir()) / MIB
        hidden = say(skills, 'three', 'writer', {hide!r})
        other = say(skills, 'two', 'writer', {write!r})
        tidy = say(skills, 'one', 'writer', 'import os; [os.remove(name) for name in os.listdir()]; print("tidy")')
        skills.close()
        left = [str(path) for path in Path('.').glob('skill-runs-*/*')]
        answer(told=told, quick=quick, held=held, still=still, hidden=hidden, other=other, tidy=tidy, left=left)
    """)
    )
    scoreboard.record(
        49, f'{found["user"]}, {executor[:5]}: one script after another', f'{found["held"]:.0f} MiB', '32 MiB'
    )
    assert ['holds more than 8 MiB' in told for told in found['told']] == [False, False, True, True]
    # Noticed at the end, or while it runs on a busy machine; what it wrote is removed either way.
    assert all('holds more than 8 MiB' in told for told in found['quick'])
    assert (found['held'], found['still']) == (6, 6)
    assert found['user'] == 'root' or 'was removed' in found['hidden']
    assert 'It wrote files' in found['other']
    assert found['tidy'] == 'tidy\n'
    assert found['left'] == []


@pytest.mark.parametrize('user', ['whoever'])
def test_50_links_that_a_sandboxed_script_leaves_lead_nowhere(
    trial: Callable[[str], dict[str, Any]], scoreboard: Scoreboard, user: str
) -> None:
    plant = """
import os
target = os.environ['SKILL_WORK_DIR']
up = '../' * 12
os.symlink(up + 'secret', 'dangling')
os.makedirs('a/b'); os.symlink('../..', 'a/b/c'); os.symlink('a/b/c/../../../../secret', 'through')
os.symlink(TARGET, 'report.md'); os.symlink(os.path.dirname(TARGET), 'folder'); os.symlink('a', 'inside')
"""
    use = (
        "open('report.md', 'a').write('gone'); import os; print(sorted(os.listdir()), os.path.exists('folder/secret'))"
    )
    found = trial(
        TALK
        + textwrap.dedent(f"""
        Path('mine').mkdir(); Path('mine/secret').write_text('mine')
        skills = toolset(stranger=BubblewrapSkillScriptExecutor(), own=LocalSkillScriptExecutor())
        secret = str(Path('mine/secret').absolute())
        planted = say(skills, 'one', 'stranger', 'TARGET = ' + repr(secret) + {plant!r})
        told = say(skills, 'one', 'own', {use!r})
        elsewhere = say(skills, 'two', 'own', 'import os; print(os.listdir())')
        skills.close()
        answer(planted=planted, told=told, secret=Path(secret).read_text(), elsewhere=elsewhere)
    """)
    )
    scoreboard.record(50, f'{found["user"]}: links for the next script', found['secret'], 'mine')
    assert found['secret'] == 'mine'
    assert "['a', 'inside', 'report.md'] False" in found['told'], found
    assert found['elsewhere'] == '[]\n'


def test_51_devices_cannot_be_changed(trial: Callable[[str], dict[str, Any]], scoreboard: Scoreboard) -> None:
    # Each is given the mode it has already, which changes nothing should it succeed.
    source = """
import os
changed = []
for name in ('null', 'zero', 'full', 'random', 'urandom', 'tty'):
    for path in ('/dev/' + name, '/proc/self/fd/0', '/proc/self/fd/1', '/proc/1/fd/0'):
        try:
            mode = os.stat(path).st_mode
            os.chmod(path, mode & 0o777)
            if mode & 0o170000 == 0o020000: changed.append(path)
        except OSError: pass
print(changed, os.read(0, 1), open('/dev/null', 'w').write('x'), len(open('/dev/urandom', 'rb').read(4)))
"""
    found = trial(f"""
        out, reason = run(BubblewrapSkillScriptExecutor(), script('a.py', {source!r}))
        given = script('b.py', 'import sys; print(sys.stdin.read())')
        answer(out=out, reason=reason, given=run(BubblewrapSkillScriptExecutor(), given, {{'stdin': 'hello'}})[0])
    """)
    scoreboard.record(51, f'{found["user"]}: chmod of devices', 'blocked', 'blocked')
    assert found['out'] == "[] b'' 1 4\n"


async def test_51_a_socket_in_the_skill_leads_nowhere(tmp_path: Path, scoreboard: Scoreboard) -> None:
    source = """
        import os, socket
        for name in ('socket', 'deep/socket', 'pipe'):
            path = os.path.join(os.environ['SKILL_DIR'], name)
            try:
                if name == 'pipe': os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                else: socket.socket(socket.AF_UNIX).connect(path)
                print('SUCCEEDED')
            except OSError as error: print('blocked')
    """
    script = write_script(tmp_path / 'skill', 'a.py', source)
    (tmp_path / 'skill' / 'deep').mkdir()
    os.mkfifo(tmp_path / 'skill' / 'pipe')
    with ExitStack() as servers:
        for name in ('socket', 'deep/socket'):
            server = servers.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(tmp_path / 'skill' / name))
            server.listen()
        reader = os.open(tmp_path / 'skill' / 'pipe', os.O_RDONLY | os.O_NONBLOCK)
        servers.callback(os.close, reader)
        result = await (await to_thread.run_sync(BubblewrapSkillScriptExecutor)).run(script)
    scoreboard.record(51, 'unix sockets and pipes in the skill', result.stdout.split()[0], 'blocked')
    assert result.stdout == 'blocked\n' * 3


SHEBANGS = {
    'a tool of another environment': '#!/usr/bin/env -S tool',
    'a tool by its path': '#!{env}/bin/tool',
    'its Python by its path': '#!{env}/bin/python3',
    'another PATH': '#!/usr/bin/env -S PATH={env}/bin python3',
    'options of env': '#!/usr/bin/env -S -i python3',
    'a known interpreter': '#!/usr/bin/env -S bun',
}


@pytest.mark.parametrize('kind', SHEBANGS)
async def test_51_a_shebang_does_not_choose_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scoreboard: Scoreboard, kind: str
) -> None:
    env = tmp_path / 'project' / '.venv'
    (env / 'bin').mkdir(parents=True)
    (env / 'lib' / 'python3.11').mkdir(parents=True)
    (env / 'pyvenv.cfg').touch()
    (env / 'canary').write_text('canary')
    for name in ('tool', 'python3', 'bun'):
        (env / 'bin' / name).write_text(f'#!/bin/sh\ncat {env}/canary')
        (env / 'bin' / name).chmod(0o755)
    monkeypatch.setenv('PATH', f'{env}/bin:{os.environ["PATH"]}')
    executor = await to_thread.run_sync(BubblewrapSkillScriptExecutor)
    script = write_script(tmp_path / 'skill', 'a', f'{SHEBANGS[kind].format(env=env)}\nprint(1)', mode=0o755)
    try:
        result = await executor.run(script)
        shown = 'canary' in result.stdout
    except SkillScriptExecutionError:
        shown = False
    scoreboard.record(51, f'shebang: {kind}', 'SHOWN' if shown else 'blocked', 'blocked')
    assert not shown


EMFILE = """
def left():
    for parent in {parent for parent in __import__('pydantic_ai_skills.execution.cgroup', fromlist=['x'])
                   .control_groups().values()}:
        for path in parent.glob(f'pydantic-ai-skills-{os.getpid()}-*'):
            yield 'group'
    yield from ('folder' for parent in Path('.').glob('skill-runs-*') for path in parent.iterdir())
    with open('/proc/self/task/%d/children' % os.getpid()) as file:
        yield from ('process' for _ in file.read().split())

def descriptors():
    return sorted(os.listdir('/proc/self/fd'))

WORK = 'mkdir -p "$SKILL_WORK_DIR/a/b"; ln -s x "$SKILL_WORK_DIR/a/l"; echo done'
async def main(executor):
    work = script('a.sh', WORK)
    await executor.run(work)
    before, faults, refused, ran = descriptors(), [], 0, 0
    highest = max(map(int, before))
    for more in range(1, 48):
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + more, 4096))
        try:
            ran += (await executor.run(work)).stdout == 'done\\n'
        except (SkillScriptExecutionError, OSError):
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
        deadline = time.monotonic() + 10
        while (descriptors() != before or list(left())) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        if descriptors() != before or list(left()):
            faults.append([more, descriptors() != before and len(descriptors()) - len(before), list(left())])
    answer(faults=faults, refused=refused, ran=ran)
"""


@pytest.mark.parametrize('executor', EXECUTORS)
def test_52_nothing_is_left_where_there_are_no_more_descriptors(
    trial: Callable[[str], dict[str, Any]], scoreboard: Scoreboard, executor: str
) -> None:
    found = trial(EMFILE + f'\nasyncio.run(main({executor}()))')
    what = f'{found["user"]}, {executor[:5]}: {found["refused"]} runs without descriptors'
    scoreboard.record(52, what, f'{len(found["faults"])} left something', '0')
    assert found['faults'] == []
    assert found['refused'] > 3
    assert found['ran'] > 3


def swap_script(skill: Path, outside: Path) -> None:
    (skill / 'scripts' / 'x.sh').unlink()
    (skill / 'scripts' / 'x.sh').symlink_to(outside / 'x.sh')


def swap_folder(skill: Path, outside: Path) -> None:
    shutil.rmtree(skill / 'scripts')
    (skill / 'scripts').symlink_to(outside)


def swap_skill(skill: Path, outside: Path) -> None:
    shutil.rmtree(skill)
    (outside / 'scripts').mkdir()
    shutil.copy(outside / 'x.sh', outside / 'scripts' / 'x.sh')
    skill.symlink_to(outside)


def swap_parent(skill: Path, outside: Path) -> None:
    shutil.rmtree(skill.parent)
    (outside / skill.name / 'scripts').mkdir(parents=True)
    shutil.copy(outside / 'x.sh', outside / skill.name / 'scripts' / 'x.sh')
    skill.parent.symlink_to(outside)


SWAPS = {'script': swap_script, 'its folder': swap_folder, 'the skill': swap_skill, 'a folder above': swap_parent}


@pytest.mark.parametrize('directly', [False, True])
@pytest.mark.parametrize('swapped', SWAPS)
@pytest.mark.parametrize('kind', ['local', 'sandbox', 'workspace', 'callable'])
async def test_41_a_script_swapped_for_a_link_is_refused(
    tmp_path: Path, scoreboard: Scoreboard, kind: str, swapped: str, directly: bool
) -> None:
    from types import SimpleNamespace

    from pydantic_ai.workspaces import LocalWorkspaceBackend, Workspace

    ran = tmp_path / 'ran'
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'x.sh').write_text(f'touch {ran}; echo RAN')
    skill = tmp_path / 'skills' / 'group' / 'demo'
    write_script(skill, 'scripts/x.sh', 'echo harmless')
    (skill / 'SKILL.md').write_text('---\nname: demo\ndescription: d\n---\n')

    def touch(script: Any, args: Any) -> str:
        ran.touch()
        return 'RAN'

    makers: dict[str, Callable[[], Any]] = {
        'local': LocalSkillScriptExecutor,
        'sandbox': BubblewrapSkillScriptExecutor,
        'workspace': WorkspaceSkillScriptExecutor,
        'callable': lambda: CallableSkillScriptExecutor(touch),
    }

    def prepare() -> tuple[Any, SkillScript, LocalWorkspaceBackend]:
        executor = makers[kind]()
        (found,) = SkillsDirectory(tmp_path / 'skills', script_executor=executor).get_skills().values()
        (script,) = found.scripts
        SWAPS[swapped](skill, outside)
        return executor, script, LocalWorkspaceBackend(tmp_path / 'work')

    executor, script, backend = await to_thread.run_sync(prepare)
    ctx: Any = SimpleNamespace(workspace=Workspace(backend))
    with pytest.raises(SkillScriptExecutionError, match='cannot be read: (it is a link|not a directory)'):
        await (executor.run(script, None, ctx) if directly else script.run(ctx))
    scoreboard.record(41, f'{kind}: {swapped} swapped for a link', 'refused', 'refused')
    assert not ran.exists()


def test_45_the_digest_covers_the_folder_as_it_is(tmp_path: Path, scoreboard: Scoreboard) -> None:
    skill, shared = tmp_path / 'skill', tmp_path / 'shared.sh'
    write_script(skill, 'scripts/a.sh', 'echo harmless')
    shared.write_text('echo harmless')
    (skill / 'link').symlink_to('scripts')
    changes: dict[str, Callable[[], object]] = {
        'a link added': lambda: (skill / 'scripts' / 'b.sh').symlink_to('/bin/ls'),
        'a dangling link added': lambda: (skill / 'dangling').symlink_to('nowhere'),
        'a link that leads elsewhere': lambda: ((skill / 'link').unlink(), (skill / 'link').symlink_to('/tmp')),
        'a hidden file': lambda: (skill / '.hidden').touch(),
        'a folder': lambda: (skill / 'folder').mkdir(),
        'a mode': lambda: (skill / 'scripts' / 'a.sh').chmod(0o666),
        'the mode of a folder': lambda: (skill / 'scripts').chmod(0o777),
        'a pipe': lambda: os.mkfifo(skill / 'pipe'),
        'a compiled module': lambda: ((skill / '__pycache__').mkdir(), (skill / '__pycache__' / 'x.pyc').touch()),
        'the script outside the folder': lambda: shared.write_text('rm -rf ~'),
    }
    seen = {script_digest(shared, skill)}
    for what, change in changes.items():
        change()
        digest = script_digest(shared, skill)
        scoreboard.record(45, f'after approval: {what}', 'refused' if digest not in seen else 'RUN', 'refused')
        assert digest not in seen, what
        assert digest == script_digest(shared, skill)
        seen.add(digest)


# --- 16, 22, 24 and 25 ------------------------------------------------------------------------------------------------

SANDBOX_CASES = """
import pytest, sys
sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--basetemp=trials', {file!r}, '-k', {chosen!r}]))
"""


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason='only root can become another user')
def test_24_the_sandbox_cases_hold_for_an_ordinary_user_too(scoreboard: Scoreboard) -> None:
    program = python_for_everybody()
    if program is None:
        pytest.skip('no Python here can be started by an ordinary user')
    folder = Path(subprocess.check_output(['mktemp', '-d'], text=True).strip())
    os.chown(folder, NOBODY, NOBODY)
    file, chosen = str(Path(__file__).with_name('test_sandbox.py')), 'test_16 or test_22 or test_24 or test_25'
    done = as_user(program, SANDBOX_CASES.format(file=file, chosen=chosen), folder)
    shutil.rmtree(folder, ignore_errors=True)
    passed = re.search(r'^(\d+) passed', done.stdout, re.MULTILINE)
    scoreboard.record(24, 'sandbox cases as an ordinary user', passed[0] if passed else 'failed', 'all')
    assert done.returncode == 0, done.stdout
    assert passed is not None
    assert int(passed[1]) > 50
