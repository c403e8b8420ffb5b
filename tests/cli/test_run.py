from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.folders import write, write_skill
from tests.registries.repositories import Repository

ECHO = 'import json, os, sys\nprint(json.dumps(sys.argv[1:]))\n'


@pytest.fixture
def tool(here: Path) -> Path:
    return write_skill(
        here / 'skills/tool',
        files={
            'scripts/echo.py': ECHO,
            'scripts/fail.sh': 'echo out; echo err >&2; exit 7',
            'scripts/stdin.sh': 'cat',
            'scripts/slow.sh': 'echo begun; sleep 30',
            'scripts/write.sh': 'echo hi > "$SKILL_WORK_DIR/made.txt"',
            'scripts/colour.sh': "printf '\\033[31mred'",
            'references/x.md': '',
        },
    )


def test_what_it_prints_is_the_output_and_the_rest_is_beside_it(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'scripts/echo.py', '--', 'a', '--flag')
    assert (done.status, done.out) == (0, '["a", "--flag"]\n')
    command, sandbox, environment, limits = done.err.splitlines()
    assert command.endswith('skills/tool/scripts/echo.py a --flag')
    assert sandbox.split() == ['sandbox', 'no']
    assert 'SKILL_DIR' in environment.split()
    assert 'wall_time 30.0' in limits


@pytest.mark.parametrize(
    ('args', 'argv'),
    [
        ([], []),
        (['--arg', 'query=x y', '-a', 'version=1.10'], ['--query', 'x y', '--version', '1.10']),
        (['--arg', 'verbose=true', '--arg', 'quiet=false'], ['--verbose']),
        (['--arg', 'tag=a', '--arg', 'tag=b'], ['--tag', 'a', '--tag', 'b']),
        (['--arg', 'tag=["a","b"]'], ['--tag', 'a', '--tag', 'b']),
        (['--arg', 'odd=[1'], ['--odd', '[1']),
        (['--arg', '_=in.pdf', '--arg', 'x=1'], ['in.pdf', '-x', '1']),
        (['--arg', 'n=2', '--', 'in.pdf'], ['-n', '2', 'in.pdf']),
        (['--args-json', '["--anything", "goes"]'], ['--anything', 'goes']),
        (['--args-json', '{"deep": 3}'], ['--deep', '3']),
    ],
)
def test_arguments_are_what_a_model_sends(cli: Cli, tool: Path, args: list[str], argv: list[str]):
    done = cli('run', 'tool', 'echo', *args)
    assert (done.status, json.loads(done.out)) == (0, argv)


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (['run', 'nobody', 'x'], "There is no skill 'nobody'"),
        (['run', 'tool', 'nothing'], "There is no script 'nothing' in skill 'tool'"),
        (['run', 'tool', 'x.md'], 'is a resource'),
        (['run', 'tool', 'echo', '--arg', 'novalue'], "--arg takes KEY=VALUE, not 'novalue'."),
        (['run', 'tool', 'echo', '--args-json', '{'], '--args-json is not JSON'),
        (['run', 'tool', 'echo', '--args-json', '[]', '--', 'x'], '--args-json already gives all arguments'),
        (['run', 'tool', 'echo', '--arg', '--bad=x'], "Write the argument '--bad' without its dashes"),
        (['run', 'tool', 'echo', '--timeout', '0'], '0.1'),
        (['run', 'tool'], "'SCRIPT'"),
    ],
)
def test_mistakes_are_told_and_nothing_runs(cli: Cli, tool: Path, args: list[str], message: str):
    done = cli(*args)
    assert (done.status, done.out) == (2, '')
    assert message in done.err


def test_a_skill_without_scripts_says_so(cli: Cli, here: Path):
    write_skill(here / 'skills/plain')
    done = cli('run', 'plain', 'x')
    assert (done.status, done.err) == (2, "error: The skill 'plain' has no scripts.\n")


def test_a_script_that_fails_is_bad_news(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'fail')
    assert (done.status, done.out) == (1, 'out\n')
    assert done.err.endswith('err\nfailed: exit code 7\n')


def test_a_script_that_takes_too_long_is_stopped(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'slow', '--timeout', '2')
    assert (done.status, done.out) == (1, 'begun\n')
    assert re.search(r'failed: stopped after \d+\.\d s', done.err)


def test_standard_input_is_sent_on(cli: Cli, tool: Path):
    assert cli('run', 'tool', 'stdin', '--stdin', stdin='hello').out == 'hello'
    assert cli('run', 'tool', 'stdin', stdin='hello').out == ''


def test_json_has_all_of_it(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'fail', '--json')
    data = done.data
    assert (done.status, done.err) == (1, '')
    assert {key: data[key] for key in ('outcome', 'exit_code', 'stdout', 'stderr', 'timed_out', 'sandbox')} == {
        'outcome': 'failed',
        'exit_code': 7,
        'stdout': 'out\n',
        'stderr': 'err\n',
        'timed_out': False,
        'sandbox': False,
    }
    assert cli('run', 'tool', 'nothing', '--json').data['outcome'] == 'failed'


def test_a_dry_run_runs_nothing(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'fail', '--dry-run')
    assert (done.status, done.out) == (0, '(not run)\n')
    assert 'scripts/fail.sh' in done.err


def test_files_it_writes_can_be_kept(cli: Cli, tool: Path, here: Path):
    assert 'made.txt (3 bytes, removed now; keep it with --output DIR)' in cli('run', 'tool', 'write').err
    done = cli('run', 'tool', 'write', '--output', 'out')
    assert 'made.txt' in done.err
    (made,) = (here / 'out').rglob('made.txt')
    assert made.read_text() == 'hi\n'
    assert cli('run', 'tool', 'write', '-o', 'out', '--json').data['files'] == [{'name': 'made.txt', 'size': 3}]


class TestTheSandbox:
    def test_it_can_be_asked_for(self, cli: Cli, tool: Path):
        done = cli('run', 'tool', 'echo', '--sandbox', '--', 'x')
        assert (done.status, done.out) == (0, '["x"]\n')
        assert 'sandbox     yes' in done.err

    def test_what_was_fetched_runs_in_it(self, cli: Cli, repository: Repository):
        cli('add', repository.path)
        done = cli('run', 'pdf', 'fill', '--', 'form')
        assert (done.status, done.out) == (0, 'filled form\n')
        assert 'sandbox     yes' in done.err

    def test_what_was_fetched_does_not_run_without_it(self, cli: Cli, repository: Repository):
        cli('add', repository.path)
        done = cli('run', 'pdf', 'fill', '--no-sandbox')
        assert (done.status, done.out) == (2, '')
        assert 'runs in a sandbox only' in done.err

    def test_what_is_trusted_runs_as_our_own(self, cli: Cli, repository: Repository):
        cli('add', repository.path, '--trust')
        assert 'sandbox     no' in cli('run', 'pdf', 'fill').err

    def test_without_one_it_fails(self, cli: Cli, tool: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv('PATH', os.devnull)
        done = cli('run', 'tool', 'echo', '--sandbox')
        assert (done.status, done.out) == (3, '')
        assert 'bubblewrap' in done.err


class TestThePolicy:
    @pytest.fixture(autouse=True)
    def asks(self, here: Path, tool: Path) -> None:
        write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\npolicy = "ask"\n'})

    def test_nobody_to_ask_is_no(self, cli: Cli):
        done = cli('run', 'tool', 'echo')
        assert (done.status, done.out) == (2, '')
        assert 'asks to run: ' in done.err
        assert 'It was not approved.' in done.err

    @pytest.mark.parametrize(('answer', 'status', 'out'), [('y\n', 0, '[]\n'), ('n\n', 2, ''), ('', 2, '')])
    def test_somebody_is_asked(self, cli: Cli, answer: str, status: int, out: str):
        done = cli('run', 'tool', 'echo', stdin=answer, typed=True)
        assert (done.status, done.out) == (status, out)
        assert 'Run it? [y/N] ' in done.err

    def test_yes_can_be_said_beforehand(self, cli: Cli):
        done = cli('run', 'tool', 'echo', '--yes', '--', 'x')
        assert (done.status, done.out) == (0, '["x"]\n')
