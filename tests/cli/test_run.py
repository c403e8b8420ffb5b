from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pydantic_ai_skills.cli.run_files import MAX_COPIED_BYTES, MAX_COPIED_FILES
from tests.cli.conftest import Cli, Done
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
            'scripts/killed.sh': 'kill -9 $$',
            'scripts/stdin.sh': 'cat',
            'scripts/slow.sh': 'echo begun; sleep 30',
            'scripts/write.sh': 'echo hi > made.txt',
            'scripts/fill.sh': 'sed "s/$/ Ada/" "$1" > "${2:-filled.txt}"',
            'scripts/edit.sh': 'echo more >> "$1"',
            'scripts/list.sh': 'find . -type f | sort',
            'scripts/hide.sh': 'mkdir -p .git/hooks new; echo x > .git/hooks/post-checkout; echo y > new/run; chmod +x new/run',
            'scripts/trap.sh': 'rm -f form.txt; ln -s "$1" form.txt; mkfifo pipe; mkdir -p d; echo z > d/x',
            'scripts/colour.sh': "printf '\\033[31mred'",
            'references/x.md': '',
        },
    )


def test_what_it_prints_is_the_output_and_the_rest_is_beside_it(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'scripts/echo.py', '--', 'a', '--flag')
    assert (done.status, done.out) == (0, '["a", "--flag"]\n')
    assert done.err == ''


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
        (['run', 'tool', 'x.md'], 'is a resource, not a script.'),
        (['run', 'tool', 'echo', '--arg', 'novalue'], "--arg takes KEY=VALUE, not 'novalue'."),
        (['run', 'tool', 'echo', '--args-json', '{'], '--args-json is not JSON'),
        (['run', 'tool', 'echo', '--args-json', '[]', '--', 'x'], '--args-json gives all arguments'),
        (['run', 'tool', 'echo', '--arg', 'b d=x'], "'b d' cannot be the name of an argument"),
        (['run', 'tool', 'echo', '--timeout', '0'], '0.1'),
        (['run', 'tool'], "Name a script of 'tool': scripts/colour.sh, scripts/echo.py, "),
        (['run', 'tool', 'ehco'], "no script 'ehco' in skill 'tool'. Did you mean 'scripts/echo.py'?"),
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


def test_a_signal_that_ended_a_script_is_named(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'killed')
    assert (done.status, done.err) == (1, 'failed: ended by SIGKILL (exit code 137)\n')


def test_a_script_that_takes_too_long_is_stopped(cli: Cli, tool: Path):
    done = cli('run', 'tool', 'slow', '--timeout', '2')
    assert (done.status, done.out) == (1, 'begun\n')
    assert re.search(r'failed: stopped after \d+\.\d s\nTo give it more time, add --timeout SECONDS\.', done.err)


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
    command, sandbox, environment, limits = done.err.splitlines()
    assert command.endswith('skills/tool/scripts/fail.sh')
    assert sandbox.split() == ['sandbox', 'no']
    assert 'SKILL_DIR' in environment.split()
    assert 'wall_time 30.0' in limits


@pytest.mark.parametrize('where', ['--sandbox', '--no-sandbox'])
class TestFiles:
    @pytest.fixture(autouse=True)
    def files(self, here: Path, tool: Path) -> None:
        write(here, {'form.txt': 'Name:\n', 'other.txt': 'other', '.env': 'KEY=1', 'data/a.csv': 'a', 'data/.b': 'b'})
        write(here.parent, {'beside.txt': 'beside\n'})

    def run(self, cli: Cli, where: str, *args: str) -> Done:
        return cli('run', 'tool', args[0], where, *args[1:])

    def test_it_reads_what_is_named_and_its_own_arrive_here(self, cli: Cli, here: Path, where: str):
        done = self.run(cli, where, 'fill', '--', 'form.txt')
        assert done.err.splitlines() == ['wrote filled.txt (10 bytes)']
        assert (done.status, (here / 'filled.txt').read_text()) == (0, 'Name: Ada\n')
        assert (here / 'filled.txt').stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize(
        ('args', 'seen'),
        [
            ([], []),
            (['--', 'form.txt'], ['./form.txt']),
            (['--', '--in=form.txt'], ['./form.txt']),
            (['--arg', 'in=form.txt'], ['./form.txt']),
            (['--args-json', '{"_": ["form.txt"], "_stdin": "other.txt"}'], ['./form.txt']),
            (['--', 'data'], ['./data/a.csv']),
            (['--read', 'data', '--read', '.env'], ['./.env', './data/a.csv']),
            (['--', '.'], ['./data/a.csv', './form.txt', './other.txt']),
            (['--', 'x' * 5000, 'a=b'], []),
        ],
    )
    def test_it_sees_nothing_else(self, cli: Cli, args: list[str], seen: list[str], where: str):
        done = self.run(cli, where, 'list', *args)
        assert [line for line in done.out.split() if 'skills' not in line] == seen

    def test_places_elsewhere_are_read_where_they_are(self, cli: Cli, here: Path, where: str):
        for name in ('../beside.txt', str(here.parent / 'beside.txt')):
            assert self.run(cli, where, 'fill', '--', name, f'{len(name)}.txt').status == 0
            assert (here / f'{len(name)}.txt').read_text() == 'beside Ada\n'

    def test_folders_elsewhere_are_read_on_request(self, cli: Cli, here: Path, where: str):
        write(here.parent / 'elsewhere', {'x.txt': 'beside\n'})
        name = '../elsewhere'
        assert self.run(cli, where, 'fill', '--read', name, '--', f'{here.parent}/elsewhere/x.txt').status == 0
        assert (here / 'filled.txt').read_text() == 'beside Ada\n'

    def test_what_cannot_be_written_is_told(self, cli: Cli, here: Path, where: str):
        (here / 'out').write_text('a file')
        done = self.run(cli, where, 'fill', '--output', 'out', '--', 'form.txt')
        assert 'not written: out/filled.txt: ' in done.err
        assert done.status == 1

    def test_what_is_there_is_only_changed_on_request(self, cli: Cli, here: Path, where: str):
        done = self.run(cli, where, 'edit', '--', 'form.txt')
        assert done.status == 1
        assert done.err.splitlines() == [
            'not written: form.txt: it already exists',
            'To write all of them here, add --write. To write them elsewhere, add --output DIR.',
        ]
        assert (here / 'form.txt').read_text() == 'Name:\n'
        done = self.run(cli, where, 'edit', '--write', '--', 'form.txt')
        assert (done.status, (here / 'form.txt').read_text()) == (0, 'Name:\nmore\n')
        assert done.err.splitlines() == ['replaced form.txt (11 bytes)']

    def test_hidden_files_are_only_made_on_request(self, cli: Cli, here: Path, where: str):
        done = self.run(cli, where, 'hide')
        assert 'not written: .git/hooks/post-checkout: it is hidden' in done.err
        assert (done.status, (here / '.git/hooks').exists()) == (1, False)
        assert os.access(here / 'new/run', os.X_OK)
        assert self.run(cli, where, 'hide', '--write').status == 0
        assert (here / '.git/hooks/post-checkout').exists()

    def test_they_can_go_elsewhere(self, cli: Cli, here: Path, where: str):
        done = self.run(cli, where, 'edit', '--output', 'out', '--json', '--', 'form.txt')
        assert (done.data['files'], done.data['not_written']) == ([{'name': 'form.txt', 'size': 11}], [])
        assert done.data['folder'] == str(here / 'out')
        assert (here / 'out/form.txt').read_text() == 'Name:\nmore\n'
        again = self.run(cli, where, 'edit', '--output', 'out', '--json', '--', 'form.txt')
        assert again.data['not_written'] == [{'name': 'form.txt', 'reason': 'it already exists'}]

    def test_links_come_and_go_nowhere(self, cli: Cli, here: Path, where: str):
        (here / 'd').symlink_to(here.parent)
        done = self.run(cli, where, 'trap', '--write', '--', str(here.parent / 'beside.txt'), 'form.txt')
        assert 'not written: d/x: d is a link' in done.err
        assert (here / 'form.txt').read_text() == 'Name:\n'
        assert not (here / 'form.txt').is_symlink()
        assert not (here.parent / 'x').exists()
        assert not (here / 'pipe').exists()

    def test_what_is_missing_is_told_with_what_to_type(self, cli: Cli, where: str):
        done = self.run(cli, where, 'stdin', '--read', 'gone.txt')
        assert (done.status, done.err) == (2, "error: There is no file 'gone.txt' to read.\n")
        done = self.run(cli, where, 'edit', '--', 'gone/form.txt')
        assert 'To let it read others, add --read PATH.' in done.err

    @pytest.mark.parametrize(('count', 'size'), [(MAX_COPIED_FILES + 1, 0), (1, MAX_COPIED_BYTES + 1)])
    def test_what_is_too_large_is_not_copied(
        self, cli: Cli, here: Path, where: str, count: int, size: int, private_dirs: Callable[[], list[Path]]
    ):
        for number in range(count):
            with open(write(here / 'data', {}) / f'{number}.bin', 'wb') as file:
                file.truncate(size)  # takes no room
        done = self.run(cli, where, 'list', '--read', 'data')
        assert (done.status, done.err) == (
            2,
            'error: data is too large to be copied for the script. Name the files in it that it needs.\n',
        )
        done = self.run(cli, where, 'list', '--', 'data')
        assert (done.status, done.out) == (0, '')
        assert 'not copied: data is too large.' in done.err
        assert private_dirs() == []


class TestTheSandbox:
    def test_it_can_be_asked_for(self, cli: Cli, tool: Path):
        done = cli('run', 'tool', 'echo', '--sandbox', '--verbose', '--', 'x')
        assert (done.status, done.out) == (0, '["x"]\n')
        command, sandbox, environment, limits = done.err.splitlines()
        assert command.endswith('skills/tool/scripts/echo.py x')
        assert sandbox.split() == ['sandbox', 'yes']
        assert 'SKILL_DIR' in environment.split()
        assert 'wall_time 30.0' in limits

    def test_what_was_fetched_runs_in_it(self, cli: Cli, repository: Repository):
        cli('add', repository.path)
        done = cli('run', 'pdf', 'fill', '--json', '--', 'form')
        assert (done.status, done.data['stdout'], done.data['sandbox']) == (0, 'filled form\n', True)

    def test_what_was_fetched_is_not_changed(self, cli: Cli, repository: Repository, tmp_path: Path):
        cli('add', repository.path)
        before = {path: path.read_bytes() for path in (tmp_path / 'cache').rglob('*') if path.is_file()}
        assert cli('run', 'pdf', 'fill', '--', 'form').status == 0
        assert {path: path.read_bytes() for path in (tmp_path / 'cache').rglob('*') if path.is_file()} == before

    def test_what_was_fetched_does_not_run_without_it(self, cli: Cli, repository: Repository):
        cli('add', repository.path)
        done = cli('run', 'pdf', 'fill', '--no-sandbox')
        assert (done.status, done.out) == (2, '')
        assert 'runs in a sandbox only' in done.err

    def test_what_is_trusted_runs_as_our_own(self, cli: Cli, repository: Repository):
        cli('add', repository.path, '--trust')
        assert cli('run', 'pdf', 'fill', '--json').data['sandbox'] is False

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


def test_what_it_prints_is_shown_while_it_runs(cli: Cli, here: Path, tool: Path, monkeypatch: pytest.MonkeyPatch):
    go = here / 'go'
    waits = f'echo first; while [ ! -f "{go}" ]; do sleep 0.01; done; echo second'
    write(tool, {'scripts/waits.sh': waits})
    written = sys.stdout.write

    def note(text: str) -> int:
        go.touch()
        return written(text)

    monkeypatch.setattr(sys.stdout, 'write', note)
    assert cli('run', 'tool', 'waits').out == 'first\nsecond\n'


def test_output_that_cannot_be_written_does_not_stop_the_script(
    cli: Cli, here: Path, tool: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tool, {'scripts/both.sh': 'echo first; sleep 0.1; echo second; echo done > made.txt'})

    def full(text: str) -> int:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(sys.stdout, 'write', full)
    done = cli('run', 'tool', 'both')
    assert (done.status, done.err.splitlines()[-1]) == (3, 'error: No space left on device')
    assert (here / 'made.txt').read_text() == 'done\n'
