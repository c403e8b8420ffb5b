"""The command line as a whole: its entry points, its pages of help, and what it is made of."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pydantic_ai_skills
from pydantic_ai_skills.cli import main
from pydantic_ai_skills.cli.app import COMMANDS
from tests.cli.conftest import Cli
from tests.cli.reference import PAGE, reference
from tests.folders import write_skill

SOURCES = sorted(Path(str(pydantic_ai_skills.__file__)).parent.glob('cli/*.py'))
PUBLIC_MODULES = {
    'pydantic_ai_skills',
    'pydantic_ai_skills.directory',
    'pydantic_ai_skills.evals',
    'pydantic_ai_skills.evals.stand_in',
    'pydantic_ai_skills.registries.git',
    'pydantic_ai_skills.types',
}


def test_the_page_is_what_the_commands_say(cli: Cli, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('COLUMNS', '100')
    text = PAGE.read_text('utf-8')
    now = reference(text, lambda name: cli(name, '--help').out)
    if pytestconfig.getoption('--update-examples'):
        PAGE.write_text(now, 'utf-8')
    else:
        assert text == now, 'Bring it up to date with: pytest tests/cli/test_app.py --update-examples'


@pytest.mark.parametrize('source', SOURCES, ids=lambda path: path.name)
def test_it_uses_public_names_only(source: Path):
    for node in ast.walk(ast.parse(source.read_text('utf-8'))):
        if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('pydantic_ai_skills'):
            module = importlib.import_module(str(node.module))
            own = str(node.module).startswith('pydantic_ai_skills.cli')
            assert own or node.module in PUBLIC_MODULES, f'{source.name}: {node.module}'
            assert own or {alias.name for alias in node.names} <= {*module.__all__, 'GitProgress'}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == 'api':
            assert node.attr in pydantic_ai_skills.__all__, f'{source.name}: {node.attr}'


IN_A_NEW_PROCESS = """
import json, os, sys
from pydantic_ai_skills.cli import main

for args, env in json.loads(sys.argv[1]):
    sys.argv = ['pydantic-ai-skills', *args]
    os.environ.update(env)
    try:
        main()
    except SystemExit:
        pass
    assert 'pydantic_ai' not in sys.modules, args
"""


Call = tuple[list[str], dict[str, str]]
"""Arguments, and variables of the environment."""

HELP: list[Call] = [(['--help'], {}), (['--version'], {}), (['lst'], {})]
HELP_OF_COMMANDS: list[Call] = [([name, '--help'], {}) for name in COMMANDS]


def completing(words: str, position: int) -> Call:
    """The arguments and the environment with which a shell asks how to complete a word."""
    env = {'_PYDANTIC_AI_SKILLS_COMPLETE': 'complete_bash', 'COMP_WORDS': f'pydantic-ai-skills {words}'}
    return [], {**env, 'COMP_CWORD': str(position)}


@pytest.mark.parametrize(
    ('calls', 'shown'),
    [
        (HELP, ['validate', 'pydantic-ai-skills 0.']),
        (HELP_OF_COMMANDS, [f'pydantic-ai-skills {name} [OPTIONS]' for name in COMMANDS]),
        ([completing('val', 1), completing('run --verb', 2)], ['validate', '--verbose']),
    ],
    ids=['help', 'help of commands', 'completion'],
)
def test_it_says_what_there_is_without_importing_pydantic_ai(calls: list[Call], shown: list[str]):
    command = [sys.executable, '-c', IN_A_NEW_PROCESS, json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [text for text in shown if text not in done.stdout] == []


def test_a_mistyped_command_is_told_the_closest(cli: Cli):
    assert "No such command 'vaildate'. Did you mean 'validate'?" in cli('vaildate').err


def test_the_first_line_of_help_is_the_one_in_the_list_of_commands(cli: Cli):
    for name, (_, summary) in COMMANDS.items():
        assert summary in ' '.join(cli('--help').out.split())
        assert cli(name, '--help').out.splitlines()[2].strip() == summary


def test_it_has_a_short_name(cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    scripts = tomllib.loads((PAGE.parent.parent / 'pyproject.toml').read_text('utf-8'))['project']['scripts']
    assert scripts['pai-skills'] == scripts['pydantic-ai-skills']
    monkeypatch.setattr(sys, 'argv', ['/usr/bin/pai-skills', 'list', '--help'])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith('Usage: pai-skills list')


def test_the_version(cli: Cli):
    done = cli('--version')
    assert (done.status, done.out) == (0, 'pydantic-ai-skills 0.2.0\n')


@pytest.mark.parametrize('args', [[], ['--help'], ['-h'], *([name, '--help'] for name in COMMANDS)])
def test_help(cli: Cli, args: list[str]):
    done = cli(*args)
    assert 'Usage: pydantic-ai-skills' in done.out + done.err
    assert done.status == (0 if args else 2)


@pytest.mark.parametrize('args', [['frob'], ['list', '--frob'], ['validate', '--format'], ['doctor', 'x', 'y']])
def test_misuse_is_told(cli: Cli, args: list[str]):
    done = cli(*args)
    assert (done.status, done.out) == (2, '')
    assert 'Error: ' in done.err


def test_names_of_skills_are_completed(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    write_skill(here / 'skills/units')
    write_skill(here / 'skills/greeting')
    for name, value in (
        ('_PYDANTIC_AI_SKILLS_COMPLETE', 'complete_bash'),
        ('COMP_WORDS', 'pydantic-ai-skills show un'),
        ('COMP_CWORD', '2'),
    ):
        monkeypatch.setenv(name, value)
    assert cli().out.split() == ['units']
    (here / 'pyproject.toml').write_text('broken')
    assert cli().out.split() == []


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def find_spec(name: str) -> None:
        return None

    monkeypatch.setattr('pydantic_ai_skills.cli.find_spec', find_spec)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert (
        "typer and rich needed for the command line: pip install 'pydantic-ai-skills[cli]'" in capsys.readouterr().err
    )


def test_python_m_is_the_same(monkeypatch: pytest.MonkeyPatch):
    assert importlib.import_module('pydantic_ai_skills.__main__').main is main  # and is not called
    monkeypatch.delitem(sys.modules, 'pydantic_ai_skills.__main__')
    monkeypatch.setattr(sys, 'argv', ['x', '--version'])
    with pytest.raises(SystemExit, match='0'):
        runpy.run_module('pydantic_ai_skills', run_name='__main__')


def test_what_cannot_be_opened_is_one_line(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError('out of luck')

    monkeypatch.setattr('pydantic_ai_skills.cli.skills.ChosenSkills.look', refuse)
    done = cli('list')
    assert (done.status, done.err) == (3, 'error: out of luck\n')


def test_an_interrupt_is_not_a_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr('pydantic_ai_skills.cli.skills.ChosenSkills.look', interrupt)
    done = cli('list')
    assert (done.status, done.out, done.err) == (130, '', '')


def test_streams_that_were_closed_are_done_without(here: Path, monkeypatch: pytest.MonkeyPatch):
    write_skill(here / 'skills/a')
    monkeypatch.setattr(sys, 'argv', ['pydantic-ai-skills', 'list'])
    for name in ('stdin', 'stdout', 'stderr'):
        monkeypatch.setattr(sys, name, None)
    with pytest.raises(SystemExit, match='0'):
        main()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()


@pytest.mark.parametrize(
    'args',
    [['new', 'a', '--description', '\udcff'], ['run', 'a', 'x', '--', '\udcff'], ['run', 'a', 'x', '-a', 'k=\udcff']],
    ids=['a text', 'one of several', 'a pair'],
)
def test_what_is_not_text_is_a_mistake(cli: Cli, here: Path, args: list[str]):
    done = cli(*args)
    assert (done.status, done.out) == (2, '')
    assert done.err.endswith("\\udcff' is not UTF-8 text.\n")
    assert not (here / 'skills').exists()


@pytest.mark.parametrize('skills', [1, 50], ids=['less than a buffer holds', 'more'])
def test_a_full_disk_is_told(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], skills: int
):
    for number in range(skills):
        write_skill(here / f'skills/a{number}', 'x' * 1000)
    monkeypatch.setattr(sys, 'argv', ['pydantic-ai-skills', 'list', '--json'])
    with open('/dev/full', 'w') as full:
        monkeypatch.setattr(sys, 'stdout', full)
        with pytest.raises(SystemExit, match='3'):
            main()
    assert capsys.readouterr().err == 'error: No space left on device\n'


@pytest.mark.parametrize(
    ('args', 'status', 'told'),
    [
        (['show', 'nobody', '--json'], 2, "There is no skill 'nobody'. There are no skills."),
        (['validate', '--json'], 2, 'No skills found in this folder. Name a directory of skills, or a skill.'),
        (['remove', 'x', '--json'], 2, "'x' is not a source of this project, nor a skill of one. Its sources: none."),
    ],
)
def test_what_goes_wrong_is_told_where_the_output_takes_nothing(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    status: int,
    told: str,
):
    monkeypatch.setattr(sys, 'argv', ['pydantic-ai-skills', *args])
    with open('/dev/full', 'w') as full:
        monkeypatch.setattr(sys, 'stdout', full)
        with pytest.raises(SystemExit, match=str(status)):
            main()
    assert capsys.readouterr().err == f'error: {told}\n'


@pytest.mark.parametrize('args', [['list', '--json'], ['show', 'a']], ids=' '.join)
def test_a_reader_that_has_seen_enough_is_fine(here: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]):
    write_skill(here / 'skills/a')
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, 'w') as closed:
        monkeypatch.setattr(sys, 'stdout', closed)
        monkeypatch.setattr(sys, 'argv', ['pydantic-ai-skills', *args])
        monkeypatch.setattr(sys, 'stdin', io.StringIO())
        with pytest.raises(SystemExit) as stopped:
            main()
    assert stopped.value.code == 0
