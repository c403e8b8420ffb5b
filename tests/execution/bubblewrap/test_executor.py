"""Scripts in a sandbox, for real. Where bubblewrap is missing these tests fail; they are never skipped."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import anyio
import pytest
from anyio import to_thread

from pydantic_ai_skills.exceptions import SandboxUnavailableError, SkillScriptExecutionError
from pydantic_ai_skills.execution.bubblewrap import executor as sandbox
from pydantic_ai_skills.execution.bubblewrap import mounts
from pydantic_ai_skills.execution.bubblewrap.command import Handshake
from pydantic_ai_skills.execution.bubblewrap.executor import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.execution.bubblewrap.mounts import (
    hidden_mounts,
    program_mounts,
    python_mounts,
    shown,
    system_mounts,
)
from pydantic_ai_skills.execution.limits import MIB, ScriptLimits
from pydantic_ai_skills.execution.result import SkillScriptTimeoutError
from pydantic_ai_skills.types import SkillScript
from tests.execution.conftest import MakeScript, if_installed, write_wheel


@pytest.fixture(scope='module')
def executor() -> BubblewrapSkillScriptExecutor:
    return BubblewrapSkillScriptExecutor(timeout=120)


async def build(**options: Any) -> BubblewrapSkillScriptExecutor:
    """In a thread, for the trial at construction takes a moment."""
    return await to_thread.run_sync(partial(BubblewrapSkillScriptExecutor, **options))


async def output(executor: BubblewrapSkillScriptExecutor, script: SkillScript, args: Any = None) -> str:
    result = await executor.run(script, args)
    assert (result.exit_code, result.stderr) == (0, ''), str(result)
    return result.stdout


@pytest.mark.parametrize(
    ('name', 'source'),
    [
        ('a.sh', 'read line; echo "got $1 $line"'),
        ('a.py', 'import sys; print("got", sys.argv[1], sys.stdin.readline().strip())'),
        *if_installed(
            'node',
            'a.js',
            'console.log("got " + process.argv[2] + " " + require("fs").readFileSync(0, "utf8").trim())',
        ),
        ('tool', '#!/bin/sh\nread line; echo "got $1 $line"'),
    ],
)
async def test_scripts_run_as_they_do_outside(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, name: str, source: str
) -> None:
    script = make_script(name, source, mode=0o755)
    assert await output(executor, script, {'_': 'it', '_stdin': 'input\n'}) == 'got it input\n'


async def test_a_script_starts_in_its_work_folder_and_finds_its_skill(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript
) -> None:
    make_script('assets/template.txt', 'template')
    script = make_script(
        'scripts/a.sh',
        'pwd; echo $HOME $SKILL_WORK_DIR $USER; cat "$SKILL_DIR/assets/template.txt"; echo out > result.txt',
    )
    result = await executor.run(script)
    work = str(result.work_dir)
    assert result.stdout == f'{work}\n/tmp/home {work} sandbox\ntemplate'
    assert [file.name for file in result.files] == ['result.txt']
    assert await to_thread.run_sync(result.read_file, 'result.txt') == b'out\n'


async def test_a_script_can_start_in_its_own_folder(make_script: MakeScript) -> None:
    executor = await build(cwd='script')
    make_script('scripts/helper.py', 'VALUE = 42')
    script = make_script('scripts/a.py', 'import os, helper; print(os.getcwd(), helper.VALUE)')
    assert script.path is not None
    assert await output(executor, script) == f'{script.path.parent} 42\n'


async def test_a_script_outside_its_skill_is_shown_too(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, tmp_path: Path
) -> None:
    make_script('x.txt', 'beside')
    (tmp_path / 'elsewhere').mkdir()
    (tmp_path / 'elsewhere' / 'a.sh').write_text('cat "$SKILL_DIR/x.txt"; ls "$(dirname "$0")"')
    script = SkillScript('a.sh', uri=str(tmp_path / 'elsewhere' / 'a.sh'), skill_dir=tmp_path / 'skill')
    assert await output(executor, script) == 'besidea.sh\n'
    script.skill_dir = None
    (tmp_path / 'elsewhere' / 'a.sh').write_text('echo "$SKILL_DIR"')
    assert await output(executor, script) == f'{tmp_path}/elsewhere\n'


LOOK = """
import json, os, pwd, socket, sys
def attempt(action):
    try:
        return repr(action())
    except OSError as error:
        return error.strerror
facts = {
    'uid': os.getuid(),
    'name': pwd.getpwuid(os.getuid()).pw_name,
    'host': socket.gethostname(),
    'top': sorted(os.listdir('/')),
    'etc': sorted(os.listdir('/etc')),
    'processes': sorted(int(n) for n in os.listdir('/proc') if n.isdigit()),
    'descriptors': len(os.listdir('/proc/self/fd')),
    'write': {p: attempt(lambda: open(os.path.join(p, 'x'), 'w')) for p in sys.argv[1:]},
    'interfaces': [name for _, name in socket.if_nameindex()],
    'vsock': attempt(lambda: socket.socket(40, socket.SOCK_STREAM)),
    'environment': sorted(os.environ),
    'parent': os.getppid(),
}
print(json.dumps(facts))
"""


async def test_what_a_script_sees(executor: BubblewrapSkillScriptExecutor, make_script: MakeScript) -> None:
    script = make_script('a.py', LOOK)
    places = ['/', '/usr', '/dev', '/etc', '/proc/sys/kernel', str(script.skill_dir), '.', '/tmp', '/dev/shm']
    facts = json.loads(await output(executor, script, places))
    assert (facts['uid'], facts['name'], facts['host']) == (1000, 'sandbox', 'sandbox')
    assert not {'home', 'var', 'boot', 'mnt', 'opt', 'srv', 'sys', 'run'} & set(facts['top'])
    assert {'passwd', 'group', 'ld.so.cache'} <= set(facts['etc'])
    assert not {'shadow', 'ssl', 'ssh', 'resolv.conf'} & set(facts['etc'])
    assert facts['processes'] == [1, 2]
    assert facts['parent'] == 1
    assert facts['descriptors'] == 4  # three streams and the one that lists them
    written = [place for place, outcome in facts['write'].items() if outcome.startswith('<')]
    assert written == ['.', '/tmp', '/dev/shm']
    assert facts['interfaces'] == ['lo']
    assert facts['vsock'] == 'Address family not supported by protocol'
    assert not {'OPENAI_API_KEY', 'SSH_AUTH_SOCK'} & set(facts['environment'])


SYSCALLS = """
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno(), 'ok') if libc.syscall(*args) < 0 else 'ok'
print(json.dumps({
    'unshare': call(272, 0x10000000),
    'mount': call(165, 0, 0, 0, 0, 0),
    'ptrace': call(101, 0, 0, 0, 0),
    'keyctl': call(250, 0, 0),
    'bpf': call(321, 0, 0, 0),
    'clone with a new user': call(56, 0x10000011, 0, 0, 0, 0),
    'clone3': call(435, 0, 0),
    'x32': call(0x40000000 + 39),
    'type into a terminal': call(16, 0, 0x5412, 0),
    'getpid': call(39),
}))
"""


@pytest.mark.skipif(os.uname().machine != 'x86_64', reason='the numbers of the calls are those of x86-64')
async def test_dangerous_system_calls_are_refused(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript
) -> None:
    assert executor.seccomp
    assert json.loads(await output(executor, make_script('a.py', SYSCALLS))) == {
        'unshare': 'EPERM',
        'mount': 'EPERM',
        'ptrace': 'EPERM',
        'keyctl': 'EPERM',
        'bpf': 'EPERM',
        'clone with a new user': 'EPERM',
        'clone3': 'ENOSYS',
        'x32': 'ENOSYS',
        'type into a terminal': 'EPERM',
        'getpid': 'ok',
    }


async def test_threads_children_and_shared_memory_work(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript
) -> None:
    source = """
    import multiprocessing, subprocess, threading
    def work(queue): queue.put('child')
    if __name__ == '__main__':
        thread = threading.Thread(target=print, args=['thread'], kwargs={'flush': True})
        thread.start(); thread.join()
        queue = multiprocessing.Queue()
        process = multiprocessing.Process(target=work, args=[queue])
        process.start(); print(queue.get(), flush=True); process.join()
        subprocess.run(['sh', '-c', 'echo pipe | cat'])
    """
    assert await output(executor, make_script('a.py', source)) == 'thread\nchild\npipe\n'


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(('127.0.0.1', 0)) as server:

        def greet() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b'hello')

        thread = threading.Thread(target=greet)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


CONNECT = """
import socket, sys
try:
    print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=60).recv(5).decode())
except OSError as error:
    print(error.strerror)
"""


async def test_the_network_is_closed_unless_it_was_asked_for(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, listener: int
) -> None:
    script = make_script('a.py', CONNECT)
    assert await output(executor, script, [listener]) == 'Connection refused\n'
    connected = await build(network=True)
    assert await output(connected, script, [listener]) == 'hello\n'
    # With the names that this machine knows, and whom it asks for others.
    files = [path for path in (Path('/etc/hosts'), Path('/etc/resolv.conf')) if path.exists()]
    names = make_script('b.sh', f'cat {" ".join(map(str, files))}')
    assert await output(connected, names) == ''.join(path.read_text() for path in files)


async def test_more_folders_can_be_shown(make_script: MakeScript, tmp_path: Path) -> None:
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data' / 'x').write_text('shown')
    executor = await build(read_only=[tmp_path / 'data'])
    script = make_script('a.sh', f'cat {tmp_path}/data/x; echo > {tmp_path}/data/x')
    result = await executor.run(script)
    assert result.stdout == 'shown'
    assert 'Read-only file system' in result.stderr


async def test_more_folders_can_be_changed(make_script: MakeScript, tmp_path: Path) -> None:
    for name in ('data', 'data/inner', 'out', 'out/kept'):
        (tmp_path / name).mkdir()
    executor = await build(read=str(tmp_path / 'data'), write=[tmp_path / 'data/inner', tmp_path / 'out'])
    source = f'cd {tmp_path}; touch data/x data/inner/x out/x out/kept/x; ls data data/inner out'
    result = await executor.run(make_script('a.sh', source))
    assert result.stdout.split() == ['data:', 'inner', 'data/inner:', 'x', 'out:', 'kept', 'x']
    assert result.stderr.count('Read-only file system') == 1
    assert (tmp_path / 'out/kept/x').exists()


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'read': ['/no/such/place']}, '/no/such/place cannot be shown to a script: it does not exist'),
        ({'write': ['/usr/share']}, '/usr/share cannot be changed by a script: it belongs to the system'),
        ({'write': ['~']}, 'it holds more than that script needs'),
    ],
)
async def test_what_cannot_be_added_is_told(make_script: MakeScript, options: Any, message: str) -> None:
    executor = await build(**options)
    with pytest.raises(SkillScriptExecutionError, match=message):
        await executor.run(make_script('a.sh', 'echo ran'))


async def test_links_that_lead_out_of_the_work_folder_are_removed(make_script: MakeScript, tmp_path: Path) -> None:
    executor = await build()
    (tmp_path / 'work').mkdir()
    source = f'echo > file; ln -s file in; ln -s {tmp_path}/skill out; ln -s . here; mkdir d; ln -s ../../x d/up'
    await executor.run(make_script('a.sh', source).in_work_dir(tmp_path / 'work'))
    assert sorted(path.name for path in (tmp_path / 'work').rglob('*')) == ['d', 'file', 'here', 'in']


async def test_a_failing_script_and_a_signal_are_told_apart_from_a_broken_sandbox(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, skill_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await executor.run(make_script('a.sh', 'exit 3'))).exit_code == 3
    assert (await executor.run(make_script('b.sh', 'kill -TERM $$'))).exit_code == 143
    assert (await executor.run(make_script('c.sh', 'exit 1'))).exit_code == 1
    make_script('bin/ruby', '#!/no/such/program', mode=0o755)
    monkeypatch.setenv('PATH', str(skill_dir / 'bin'))
    script = make_script('tool', '#!/usr/bin/env ruby')
    with pytest.raises(SkillScriptExecutionError, match="'tool' could not be started in its sandbox: .*No such file"):
        await executor.run(script)


async def test_time_up_and_cancelling_end_everything(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript
) -> None:
    script = make_script('a.sh', 'echo started; setsid sleep 30 & sleep 30')
    with pytest.raises(SkillScriptTimeoutError) as caught:
        await (await build(timeout=6)).run(script)
    assert caught.value.result.stdout == 'started\n'
    started = time.monotonic()
    with anyio.move_on_after(0.4):
        await executor.run(script)
    assert time.monotonic() - started < 15


async def test_a_sandbox_that_breaks_later_runs_nothing(
    make_script: MakeScript,
    tmp_path: Path,
    private_dirs: Callable[[], list[Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor, impatient = await build(), await build(timeout=0.5)
    script = make_script('a.sh', f'touch {tmp_path}/ran')
    monkeypatch.setattr(executor, '_bwrap', '/bin/false')
    with pytest.raises(SkillScriptExecutionError, match="'a.sh' could not be started in its sandbox"):
        await executor.run(script)
    monkeypatch.setattr(executor, '_bwrap', '/no/bwrap')
    with pytest.raises(SkillScriptExecutionError, match="'a.sh' could not be started.*(No such file|not found)"):
        await executor.run(script)
    stub = tmp_path / 'bwrap'
    stub.write_text('#!/bin/sh\nexec sleep 30')
    stub.chmod(0o755)
    monkeypatch.setattr(impatient, '_bwrap', str(stub))
    with pytest.raises(SkillScriptTimeoutError):
        await impatient.run(script)
    assert not (tmp_path / 'ran').exists()
    assert private_dirs() == []


def stub(tmp_path: Path, source: str) -> str:
    path = tmp_path / 'bwrap'
    path.write_text(f'#!/bin/sh\n{source}')
    path.chmod(0o755)
    return str(path)


NAMESPACES = 'cd /proc/self/ns; readlink user pid ipc uts mnt net; '


@pytest.mark.parametrize(
    ('source', 'message'),
    [
        ('exit 1', 'cannot make a sandbox here: it ended with exit code 1'),
        ('exit 0', 'cannot make a sandbox here: it ended with exit code 0'),
        (
            'echo "bwrap: No permissions to create new namespace" >&2; exit 1',
            'here: bwrap: No permissions to create new',
        ),
        (
            'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
            'does not isolate scripts: no ',
        ),
        (
            'for n in user pid ipc uts mnt net; do echo "$n:[1]"; done',
            'does not isolate scripts: no seccomp',
        ),
    ],
)
def test_a_program_that_makes_no_sandbox_is_found_out(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(SandboxUnavailableError) as caught:
        BubblewrapSkillScriptExecutor(bwrap=stub(tmp_path, source))
    assert message in str(caught.value)


def test_what_is_missing_is_named_with_the_way_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        SandboxUnavailableError, match=r'\(no-bwrap\) is not installed. Install it with `apt-get install'
    ):
        BubblewrapSkillScriptExecutor(bwrap='no-bwrap')
    with pytest.raises(SandboxUnavailableError, match='cannot be run: .* timed out'):
        BubblewrapSkillScriptExecutor(bwrap=stub(tmp_path, 'exec sleep 5'), setup_timeout=0.2)
    path = tmp_path / 'broken'
    path.write_text('\x7fELF')
    path.chmod(0o755)
    with pytest.raises(SandboxUnavailableError, match='cannot .*(Exec format error|not found)'):
        BubblewrapSkillScriptExecutor(bwrap=str(path))
    monkeypatch.setattr(sys, 'platform', 'darwin')
    with pytest.raises(SandboxUnavailableError, match='on Linux only; this is .*Use WorkspaceSkillScriptExecutor'):
        BubblewrapSkillScriptExecutor()


async def test_a_processor_that_is_not_known_has_no_filter_and_says_so(
    make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, 'seccomp_filter', Mock(return_value=None))
    executor = await build()
    assert not executor.seccomp
    assert await output(executor, make_script('a.sh', 'echo still isolated')) == 'still isolated\n'


async def test_limits_hold_inside(make_script: MakeScript) -> None:
    limits = ScriptLimits(memory=200 * MIB, open_files=64, file_size=MIB, processes=10)
    source = """
    import resource
    for name in ('DATA', 'NOFILE', 'FSIZE', 'NPROC'):
        print(name, resource.getrlimit(getattr(resource, f'RLIMIT_{name}'))[0])
    """
    executor = await build(limits=limits)
    assert (
        await output(executor, make_script('a.py', source)) == f'DATA {200 * MIB}\nNOFILE 64\nFSIZE {MIB}\nNPROC 88\n'
    )


@pytest.mark.parametrize('first', ['', '#!/usr/bin/env -S uv run --script\n'])
@pytest.mark.parametrize(
    ('package', 'told'), [('rich', 'rich\n'), ('absent_module', "No module named 'absent_module'")]
)
async def test_without_a_network_declared_packages_are_those_that_are_installed(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, first: str, package: str, told: str
) -> None:
    declared = f'{first}# /// script\n# dependencies = ["{package}"]\n# ///\n'
    result = await executor.run(make_script('a.py', f'{declared}import {package}\nprint({package}.__name__)\n'))
    assert told in f'{result.stdout}{result.stderr}'


@pytest.mark.parametrize('python', [None, sys.executable])
async def test_dependencies_are_provided_where_there_is_a_network(
    make_script: MakeScript, skill_dir: Path, python: str | None
) -> None:
    wheel = write_wheel(skill_dir)
    head = f'# /// script\n# dependencies = ["tinyhelper @ {wheel.as_uri()}"]\n# ///\n'
    executor = await build(network=True, env={'UV_OFFLINE': '1'}, python_executable=python)
    script = make_script('a.py', head + 'import tinyhelper; print(tinyhelper.VALUE)')
    assert await output(executor, script) == '42\n'


async def test_programs_beside_an_interpreter_are_found(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript
) -> None:
    script = make_script('a.py', 'import shutil; print(shutil.which("python3"))')
    assert await output(executor, script) == f'{Path(sys.executable).with_name("python3")}\n'
    assert (
        await output(executor, make_script('a.sh', 'command -v python3')) == f'{Path(sys.executable).parent}/python3\n'
    )
    assert await output(executor, make_script('a.pl', '#!/usr/bin/perl\nprint $ENV{PATH}')) == sandbox.SEARCH_PATH


@pytest.mark.parametrize('folder', ['/', '/etc', '/proc', '~', '~/..'])
async def test_a_skill_that_is_the_home_folder_or_the_system_is_not_shown(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, folder: str
) -> None:
    script = make_script('a.sh', 'ls')
    script.skill_dir = Path(folder).expanduser()
    with pytest.raises(
        SkillScriptExecutionError, match='cannot be shown to a script.*Put the skill into a folder of its'
    ):
        await executor.run(script)


@pytest.mark.parametrize(
    'first_line',
    [
        '#!/usr/bin/env -S bash --norc -c "cat {key}" -- --python {key}',
        '#!/bin/bash -c "cat {key}" -- --python {folder}',
        '#!{folder}/bin/bash',
        '#!/usr/bin/../..{folder}/bin/bash',
    ],
)
async def test_the_first_line_of_a_script_cannot_choose_what_is_shown(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, tmp_path: Path, first_line: str
) -> None:
    folder = tmp_path / 'home' / 'tool'
    (folder / 'bin').mkdir(parents=True)
    (folder / 'bin' / 'bash').symlink_to('/bin/bash')
    (folder / 'lib' / 'python3.11').mkdir(parents=True)  # so that it looks like an installation of Python
    key = folder / 'key'
    key.write_text('private')
    script = make_script('a.sh', f'{first_line.format(key=key, folder=folder)}\ncat {key}\n')
    result = await executor.run(script)
    assert result.stdout == ''
    assert 'No such file or directory' in result.stderr


def test_interpreters_outside_the_system_are_shown_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program_mounts('/usr/bin/env') == []
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin' / 'deno').touch()
    (tmp_path / 'bin' / 'link').symlink_to('deno')
    program = str(tmp_path / 'bin' / 'deno')
    assert program_mounts(program) == ['--ro-bind', program, program]
    link = str(tmp_path / 'bin' / 'link')
    assert program_mounts(link) == ['--ro-bind', program, link]
    (tmp_path / 'pyvenv.cfg').touch()
    assert program_mounts(program) == ['--ro-bind', program, program]  # its environment is not shown with it
    assert python_mounts(program) == ['--ro-bind', str(tmp_path), str(tmp_path)]
    (tmp_path / 'pyvenv.cfg').unlink()
    (tmp_path / 'lib' / 'python3.12').mkdir(parents=True)
    monkeypatch.setenv('HOME', str(tmp_path))
    with pytest.raises(SkillScriptExecutionError, match='Set `python_executable` to a Python with a folder of its own'):
        python_mounts(program)
    monkeypatch.undo()
    monkeypatch.setattr(sys, 'base_prefix', str(tmp_path))
    shown = python_mounts(sys.executable)
    assert {sys.prefix, str(tmp_path)} <= set(shown)
    (tmp_path / 'lib' / 'python3.12').rmdir()
    assert str(tmp_path) not in python_mounts(sys.executable)


def test_sockets_and_pipes_of_a_skill_are_hidden(tmp_path: Path) -> None:
    (tmp_path / 'deep').mkdir()
    os.mkfifo(tmp_path / 'deep' / 'pipe')
    (tmp_path / 'link').symlink_to('deep')
    (tmp_path / 'file').touch()
    assert hidden_mounts(tmp_path) == ['--ro-bind', '/dev/null', str(tmp_path / 'deep' / 'pipe')]
    with pytest.raises(SkillScriptExecutionError, match='cannot be shown to a script: it holds more than 2 files'):
        hidden_mounts(tmp_path, most=2)


def test_of_programs_a_user_installed_neither_keys_nor_data_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / '.local'
    (local / 'bin').mkdir(parents=True)
    (local / 'bin' / 'uv').touch()
    (local / 'lib' / 'python3.12').mkdir(parents=True)
    (local / 'share' / 'keyrings').mkdir(parents=True)
    monkeypatch.setenv('HOME', str(tmp_path))
    program, packages = str(local / 'bin' / 'uv'), str(local / 'lib')
    assert program_mounts(program) == ['--ro-bind', program, program]
    assert python_mounts(program) == ['--ro-bind', program, program, '--ro-bind', packages, packages]
    (local / 'bin' / 'python3').symlink_to('/usr/bin/env')
    python, real = str(local / 'bin' / 'python3'), os.path.realpath('/usr/bin/env')
    assert python_mounts(python) == ['--symlink', real, python, '--ro-bind', packages, packages]


def test_systems_whose_top_folders_are_real_are_mounted_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, '_TOP_FOLDERS', ('/usr/bin', '/no/such'))
    assert system_mounts()[3:6] == ['--ro-bind', '/usr/bin', '/usr/bin']
    assert '/no/such' not in system_mounts()
    assert shown(Path('/usr/share'), way_out='') == ['--ro-bind', '/usr/share', '/usr/share']


def test_a_setting_that_leads_into_the_system_is_a_link_to_there(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = '../usr/bin/env'  # as /etc/localtime does on most machines, but not on all
    monkeypatch.setattr(mounts, '_SETTINGS', (setting, 'no-such-setting'))
    shown = system_mounts()
    assert shown[-7:-4] == ['--symlink', os.path.realpath('/usr/bin/env'), f'/etc/{setting}']


def test_as_root_the_tool_that_closes_the_devices_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap = sandbox.shutil.which('bwrap')
    monkeypatch.setattr(os, 'geteuid', Mock(return_value=0))
    monkeypatch.setattr(sandbox.shutil, 'which', {'bwrap': bwrap}.get)
    with pytest.raises(SandboxUnavailableError, match='also needs `unshare`, `nsenter` and `mount`'):
        BubblewrapSkillScriptExecutor()


async def test_a_sandbox_without_descriptors_is_told(
    executor: BubblewrapSkillScriptExecutor, make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = make_script('a.sh', 'echo done')
    monkeypatch.setattr(os, 'memfd_create', Mock(side_effect=OSError(24, 'Too many open files')))
    with pytest.raises(SkillScriptExecutionError, match='could not be started in its sandbox: Too many open files'):
        await executor.run(script)


def test_until_a_sandbox_is_set_up_its_folders_are_those_of_the_host_and_do_not_count():
    handshake = Handshake('a', ScriptLimits(), {}, setup_timeout=1)
    assert list(handshake.in_memory()) == []
    handshake.sandbox = os.getpid()
    assert list(handshake.in_memory()) == []
    handshake.close()


def test_a_folder_of_a_sandbox_that_is_unmounted_meanwhile_is_not_taken_for_that_of_the_host():
    mounts = 'mount -t tmpfs -o nr_inodes=7 none /tmp && echo && read line && umount --lazy /tmp && echo && read line'
    with subprocess.Popen(
        ['unshare', '--map-root-user', '--mount', 'sh', '-c', mounts], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        handshake = Handshake('a', ScriptLimits(), {}, setup_timeout=1)
        handshake.sandbox = process.pid
        found = handshake.in_memory()
        folder = next(found)
        process.stdin.write(b'\n')
        process.stdin.flush()
        process.stdout.readline()
        assert os.statvfs(folder).f_files == 7
        assert list(found) == []
        handshake.close()
