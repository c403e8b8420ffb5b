"""Each command as people and programs run it: a process of its own, with and without a terminal, home and network.

Each run has a project, a home and a cache of its own. Without network and terminal, commands are started from nothing;
otherwise they are made by a process that has imported what they need, see `zygote.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from pydantic_ai_skills import ProjectSource, SkillsProject, UserTrust
from tests.folders import skill_md, write, write_skill
from tests.registries.repositories import Repository

COMMAND = [sys.executable, '-m', 'pydantic_ai_skills']
ESCAPES = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\')
COLUMNS = 30
ROOT = Path(__file__).parent.parent.parent

Way = Literal['no terminal', 'json', 'narrow', 'no network, read-only home', 'bad input']
WAYS: tuple[Way, ...] = get_args(Way)


@dataclass(frozen=True)
class Command:
    """A command and what is expected of it."""

    args: list[str]
    shows: str
    """What people are shown."""
    keys: list[str]
    """What programs are given."""
    bad: list[str]
    """How not to call it."""
    told: str
    """What is said about that."""
    status: int = 0
    bad_status: int = 2
    offline_status: int | None = None
    """The exit status without a network and a home that can be written."""
    offline_shows: str | None = None
    stdin: str = ''


QUERIES = '[{"query": "Convert miles, please", "should_trigger": true}, {"query": "Hello", "should_trigger": false}]'

COMMANDS = {
    'list': Command(['list'], 'units', ['skills', 'problems'], ['list', 'nowhere'], "no directory 'nowhere'"),
    'show': Command(['show', 'units'], 'Run `convert.sh`', ['name', 'instructions'], ['show', 'x'], "no skill 'x'"),
    'search': Command(['search', 'miles'], 'units', ['query', 'skills'], ['search', ''], 'The query is empty'),
    'validate': Command(
        ['validate', 'broken'], 'description-missing', ['skills', 'problems', 'fixed'], ['validate', 'x'], 'x does not exist', status=1
    ),
    'scan': Command(['scan', 'units'], 'scanned, no problems', ['skills', 'problems'], ['scan', 'x'], "no skill 'x'"),
    'prompt': Command(['prompt', 'units'], '<available_skills>', ['instructions', 'tools'], ['prompt', 'x'], "no skill 'x'"),
    'explain': Command(
        ['explain', 'miles'], 'What fits the prompt', ['prompt', 'skills', 'overlaps'], ['explain'], 'Give either a PROMPT or --overlaps'
    ),
    'run': Command(
        ['run', 'units', 'convert.sh', '--', '26'], '26 mi', ['command', 'exit_code'], ['run', 'units', 'x'], "no script 'x'"
    ),
    'new': Command(['new', 'fresh'], 'Created skills/fresh', ['name', 'files'], ['new', 'Bad Name'], "Use 'bad-name'"),
    'add': Command(
        ['add', 'THEIRS', '--path', 'skills/xlsx'],
        'added xlsx',
        ['source', 'skills'],
        ['add', 'nowhere'],
        'nowhere',
        bad_status=2,
        offline_status=3,
        offline_shows='cannot be written',
    ),
    'import': Command(
        ['import', 'THEIRS/skills-lock.json'],
        'added xlsx',
        ['added', 'failures'],
        ['import', 'nowhere'],
        "'nowhere' cannot be read",
        offline_status=3,
        offline_shows='cannot be written',
    ),
    'sync': Command(['sync'], 'pdf', ['sources'], ['sync', 'x'], 'is not a source of this project'),
    'lock': Command(
        ['lock'],
        'no changes',
        ['sources'],
        ['lock', 'x'],
        'is not a source of this project',
        offline_status=3,
        offline_shows='cannot be written',
    ),
    'outdated': Command(
        ['outdated'],
        'up to date',
        ['sources'],
        ['outdated', 'x'],
        'is not a source',
        offline_status=3,
        offline_shows='cannot be written',
    ),
    'remove': Command(['remove', 'pdf'], 'removed', ['removed', 'skills'], ['remove', 'x'], 'is not a source'),
    'trust': Command(['trust'], 'its skills may run', ['checkout'], ['trust', 'x'], "no folder 'x'", offline_status=3, offline_shows='Read-only'),
    'chat': Command(
        ['chat'],
        'The script printed: 26 mi',
        ['kind'],
        ['chat', '--model', 'nobody:x', 'hi'],
        'Unknown model',
        stdin='convert miles\nrun convert.sh 26\n',
    ),
    'eval': Command(['eval'], '2 of 2 queries passed', ['model', 'trigger'], ['eval', 'x'], "There is no skill 'x'"),
    'doctor': Command(['doctor'], 'Sandbox', ['findings'], ['doctor', 'x'], "There is no skill 'x'"),
}  # fmt: skip


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return ESCAPES.sub('', self.out + self.err)


@dataclass
class Bench:
    """Places to run commands in, and the runs."""

    root: Path
    pool: ThreadPoolExecutor
    zygote: Zygote
    runs: dict[tuple[str, Way], Future[Done]] = field(default_factory=dict[tuple[str, Way], 'Future[Done]'])

    def start(self, name: str, way: Way) -> None:
        self.runs[name, way] = self.pool.submit(self._run, name, way)

    def _run(self, name: str, way: Way) -> Done:
        case = COMMANDS[name]
        place = self.root / f'{name}-{WAYS.index(way)}'
        for part in ('app', 'home'):
            shutil.copytree(self.root / 'template' / part, place / part, symlinks=True)
        UserTrust(place / 'home/.config/pydantic-ai-skills/trust.json').trust(place / 'app')
        args = case.bad if way == 'bad input' else case.args
        args = [arg.replace('THEIRS', str(self.root / 'theirs')) for arg in args]
        if way == 'json':
            args.insert(1, '--json')
        env = {'HOME': str(place / 'home'), 'PATH': os.environ['PATH'], 'TERM': 'xterm'}
        if way == 'narrow':
            return self.zygote.on_terminal(args, place / 'app', env, case.stdin)
        if way != 'no network, read-only home':
            return self.zygote.on_pipes(args, place / 'app', env, case.stdin)
        home = str(place / 'home')
        command = ['bwrap', '--dev-bind', '/', '/', '--ro-bind', home, home, '--unshare-net', '--', *COMMAND, *args]
        done = subprocess.run(
            command,
            cwd=place / 'app',
            env=env,
            input=case.stdin,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)


class Zygote:
    """A process that becomes commands, one after the other."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(600)  # a command that hangs fails its test, and does not hold the others
        self._lock = threading.Lock()
        command = [sys.executable, '-m', 'tests.cli.zygote', str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT)
        theirs.close()

    def close(self) -> None:
        self._socket.close()
        self._process.wait(600)

    def become(self, args: list[str], cwd: Path, env: dict[str, str], descriptors: list[int]) -> int:
        request = json.dumps({'args': args, 'cwd': str(cwd), 'env': env}).encode()
        with self._lock:
            socket.send_fds(self._socket, [request], descriptors)
            return int(self._socket.recv(100))

    def on_pipes(self, args: list[str], cwd: Path, env: dict[str, str], stdin: str) -> Done:
        """Run a command without a terminal."""
        with tempfile.TemporaryFile('w+') as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            status = self.become(args, cwd, env, [given.fileno(), out.fileno(), err.fileno()])
            out.seek(0)
            err.seek(0)
            return Done(status, out.read().decode(), err.read().decode())

    def on_terminal(self, args: list[str], cwd: Path, env: dict[str, str], stdin: str) -> Done:
        """Run a command on a terminal of a few columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, COLUMNS, 0, 0))
        written: list[bytes] = []
        reader = threading.Thread(target=_read_all, args=(ours, written))
        reader.start()
        os.write(ours, f'{stdin}\n'.encode())
        status = self.become(args, cwd, env, [theirs, theirs, theirs])
        os.close(theirs)
        reader.join()
        os.close(ours)
        return Done(status, b''.join(written).decode().replace('\r\n', '\n'), '')


def _read_all(terminal: int, written: list[bytes], *answers: tuple[bytes, bytes]) -> None:
    """Read what is written to a terminal. Each answer is a text to wait for after the one before, and what to type."""
    said, left = 0, list(answers)
    try:
        while chunk := os.read(terminal, 65536):
            written.append(chunk)
            while left and (place := b''.join(written).find(left[0][0], said)) >= 0:
                said = place + len(left[0][0])
                os.write(terminal, left.pop(0)[1])
    except OSError:  # how Linux says that nobody is at the other end any more
        pass


@pytest.fixture(scope='module')
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp('cli')
    app, home = root / 'template/app', root / 'template/home'
    write(
        app,
        {'.git/HEAD': '', 'pyproject.toml': '[project]\nname = "app"\n', 'broken/x/SKILL.md': '---\nname: x\n---\n'},
    )
    write_skill(
        app / 'skills/units',
        'Converts miles. Use for lengths.',
        'Run `convert.sh` with a number.',
        files={'convert.sh': 'echo "$1 mi"', 'wait.sh': 'sleep 600', 'units.md': 'mi', 'evals/triggers.json': QUERIES},
    )
    write(app, {'skills/evil/SKILL.md': skill_md('evil', '"\\e[2J\\e]0;x\\a [bold]text[/]"')})
    home.mkdir()
    theirs = Repository.create(root / 'theirs')
    theirs.skill('pdf', 'Fills in forms.')
    theirs.skill('xlsx', 'Reads sheets.')
    theirs.commit('first')
    installed = {'xlsx': {'source': str(theirs.path), 'sourceType': 'local'}}
    write(theirs.path, {'skills-lock.json': json.dumps({'version': 1, 'skills': installed})})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('HOME', str(home))
        patch.delenv('PYDANTIC_AI_SKILLS_CACHE_DIR', raising=False)
        patch.delenv('XDG_CACHE_HOME', raising=False)
        patch.delenv('XDG_CONFIG_HOME', raising=False)
        UserTrust().trust(app)
        SkillsProject(app).add(ProjectSource(url=str(theirs.path), path='skills/pdf', allow=('file',)))
    zygote = Zygote()
    with ThreadPoolExecutor(2) as pool:
        bench = Bench(root, pool, zygote)
        for name in COMMANDS:
            for way in WAYS:
                bench.start(name, way)
        yield bench
    zygote.close()


def the(bench: Bench, name: str, way: Way) -> Done:
    done = bench.runs[name, way].result()
    assert 'Traceback' not in done.out + done.err, done
    return done


commands = pytest.mark.parametrize('name', COMMANDS)


@commands
def test_without_a_terminal_it_writes_plain_text(bench: Bench, name: str):
    done = the(bench, name, 'no terminal')
    assert done.status == COMMANDS[name].status, done
    assert COMMANDS[name].shows in done.out
    assert '\x1b' not in done.out + done.err


@commands
def test_programs_get_json_and_nothing_else(bench: Bench, name: str):
    done = the(bench, name, 'json')
    assert done.status == COMMANDS[name].status, done
    value: Any = json.loads(done.out.splitlines()[0] if name == 'chat' else done.out)
    assert set(COMMANDS[name].keys) <= set(value)
    assert done.err == ''


@commands
def test_on_a_narrow_terminal_everything_is_there(bench: Bench, name: str):
    done = the(bench, name, 'narrow')
    assert done.status == COMMANDS[name].status, done
    shown = ' '.join(done.text.split())
    assert COMMANDS[name].shows.split()[0] in shown
    assert '\x1b[2J' not in done.out  # what a skill would do to the terminal
    assert '\x1b]0;' not in done.out
    assert 'observability' not in shown  # the advertisement of pydantic-ai


@commands
def test_with_a_home_that_cannot_be_written_and_no_network(bench: Bench, name: str):
    case = COMMANDS[name]
    done = the(bench, name, 'no network, read-only home')
    assert done.status == (case.status if case.offline_status is None else case.offline_status), done
    assert (case.offline_shows or case.shows) in done.out + done.err


@commands
def test_bad_input_is_told_in_a_few_lines(bench: Bench, name: str):
    done = the(bench, name, 'bad input')
    assert done.status == COMMANDS[name].bad_status, done
    assert COMMANDS[name].told in done.err
    assert len(done.err.splitlines()) <= 4
    assert done.out == ''


def chat(bench: Bench, *answers: tuple[bytes, bytes], args: tuple[str, ...] = ()) -> tuple[int, bytes]:
    """The exit status of a conversation on a terminal, and what was written there."""
    for run in bench.runs.values():
        run.result()
    ours, theirs = pty.openpty()
    written: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, written, *answers))
    reader.start()
    env = {'HOME': str(bench.root / 'template/home'), 'PATH': os.environ['PATH'], 'TERM': 'xterm', 'NO_COLOR': '1'}
    status = bench.zygote.become(['chat', *args], bench.root / 'template/app', env, [theirs, theirs, theirs])
    os.close(theirs)
    reader.join()
    os.close(ours)
    assert b'Traceback' not in b''.join(written)
    return status, b''.join(written)


def test_an_interrupt_ends_a_conversation(bench: Bench):
    assert chat(bench, (b'> ', b'\x03'))[0] == 130


def test_an_interrupt_in_a_script_stops_the_script_and_not_the_conversation(bench: Bench):
    status, written = chat(
        bench,
        (b'> ', b'run units wait.sh\n'),
        (b'run_skill_script(', b'\x03'),
        (b'stopped: ', b'run units convert.sh 26\n'),
        (b'The script printed: 26 mi', b'exit\n'),
    )
    assert (status, written.count(b'stopped: ')) == (0, 1)


def test_an_interrupt_ends_a_single_message(bench: Bench):
    assert chat(bench, (b'run_skill_script(', b'\x03'), args=('run', 'units', 'wait.sh'))[0] == 130


@pytest.mark.parametrize('args', [['show', 'units'], ['chat', 'list'], ['chat', 'list', '--json']], ids=' '.join)
def test_a_reader_who_has_gone_ends_it_quietly(bench: Bench, args: list[str]):
    for run in bench.runs.values():
        run.result()
    theirs, ours = os.pipe()
    os.close(theirs)
    try:
        done = subprocess.run(
            [*COMMAND, *args],
            cwd=bench.root / 'template/app',
            env={**os.environ, 'HOME': str(bench.root / 'template/home')},
            stdin=subprocess.DEVNULL,
            stdout=ours,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
        )
    finally:
        os.close(ours)
    assert (done.returncode, done.stderr) == (0, '')


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='needs a device that is always full')
def test_a_full_disk_is_told_to_who_wanted_json(bench: Bench):
    for run in bench.runs.values():
        run.result()
    app = bench.root / 'template/app'
    args = ['show', 'long', '--json', '-d', str(bench.root / 'long')]
    write(bench.root / 'long', {'long/SKILL.md': f'{skill_md("long")}{"More than a buffer holds. " * 10_000}'})
    with open('/dev/full', 'w', encoding='utf-8') as full:
        done = subprocess.run([*COMMAND, *args], cwd=app, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (3, 'error: No space left on device\n')


def test_every_command_is_run(bench: Bench):
    from pydantic_ai_skills.cli.app import COMMANDS as there_are

    # `serve` speaks a protocol, not to people: `test_serve.py` runs it.
    assert {*COMMANDS, 'serve'} == set(there_are)
