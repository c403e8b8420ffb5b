from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic_ai import models
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from pydantic_ai_skills.cli.conversation import LEAVING
from tests.cli.conftest import Cli
from tests.folders import write, write_skill
from tests.registries.repositories import Repository


@pytest.fixture
def skills(here: Path) -> Path:
    write_skill(
        here / 'skills/units',
        'Converts lengths and masses. Use for miles.',
        'Run `convert.sh` with a number.',
        files={'convert.sh': 'echo "$1 mi" "$2"', 'units.md': 'mi, km'},
    )
    write_skill(here / 'skills/greeting', 'Greets people.')
    return here / 'skills'


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_whole_conversation_offline(cli: Cli, here: Path, skills: Path):
    done = cli('chat', stdin='How many km are 26 miles?\nread units.md\nrun convert.sh 26 "to km"\n')
    assert done.status == 0
    assert done.out.replace(str(here), 'HERE') == snapshot("""\
→ load_skill(skill_name='units')
  <skill name="units" location="HERE/skills/units">
  <resources>
  units.md
  </resources>
  <scripts>
  convert.sh
  </scripts>
  <skill_instructions>
  Run `convert.sh` with a number.
  </skill_instructions>
  </skill>
Its instructions begin: Run `convert.sh` with a number.
Say: read units.md · run convert.sh
→ read_skill_resource(skill_name='units', resource_name='units.md')
  mi, km
That is the file.
→ run_skill_script(skill_name='units', script_name='convert.sh', args=['26', 'to km'])
  26 mi to km
The script printed: 26 mi to km

""")
    assert done.err.startswith('No model is set, so a simple offline stand-in answers.')


@pytest.mark.parametrize(
    ('said', 'calls', 'answer'),
    [
        ('list', ['list_skills'], 'To use one, say: load SKILL'),
        ('load greeting', ['load_skill'], 'Its instructions begin: Do it.'),
        ('load nobody', ['load_skill'], "That did not work: There is no skill 'nobody'."),
        ('read units.md', [], 'Load a skill first: load SKILL. Or name it: read SKILL units.md'),
        ('run convert.sh', [], 'Load a skill first: load SKILL. Or name it: run SKILL convert.sh'),
        ('run units convert.sh 26 km', ['run_skill_script'], 'The script printed: 26 mi km'),
        ('read units units.md', ['read_skill_resource'], 'That is the file.'),
        ('help', [], 'No model is set, so a simple offline stand-in answers.'),
        ('xyzzy', [], 'No skill matches that.'),
        ('Please greet somebody', ['load_skill'], 'Its instructions begin: Do it.'),
    ],
)
def test_what_the_stand_in_understands(cli: Cli, skills: Path, said: str, calls: list[str], answer: str):
    told = events(cli('chat', *said.split(), '--json').out)
    assert [event['tool'] for event in told if event['kind'] == 'call'] == calls
    assert told[-1]['text'].startswith(answer)


def test_an_odd_quote_is_no_problem(cli: Cli, skills: Path):
    told = events(cli('chat', '--json', stdin='load units\nrun convert.sh 1 "\n').out)
    assert told[-1]['text'] == 'The script printed: 1 mi "\n'


def test_without_skills_there_are_no_tools(cli: Cli, here: Path):
    assert "There is no tool 'list_skills' here" in cli('chat', 'list').out


def test_who_types_is_asked_for_more(cli: Cli, skills: Path):
    done = cli('chat', '-d', 'skills', stdin='help\n', typed=True)
    assert done.err.count('> ') == 2


def test_an_interrupt_drops_a_message_and_not_the_conversation(cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []

    def interrupt_once(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompts = [str(part.content) for part in messages[-1].parts if isinstance(part, UserPromptPart)]
        seen.append(f'{len(messages)} {prompts[-1]}')
        if len(seen) == 1:
            raise KeyboardInterrupt
        return ModelResponse(parts=[TextPart('Here I am.')])

    monkeypatch.setattr('pydantic_ai_skills.cli.conversation.offline_model', lambda: FunctionModel(interrupt_once))
    done = cli('chat', stdin='first\nsecond\n')
    assert (done.status, done.out, seen) == (0, 'Here I am.\n', ['1 first', '1 second'])
    assert done.err.endswith('stopped: the conversation continues without this message.\n')


@pytest.mark.parametrize('leaving', ['exit', 'quit', ''])
def test_it_says_how_to_leave_and_is_left(cli: Cli, skills: Path, leaving: str):
    done = cli('chat', stdin=f'help\n{leaving}\nlist\n')
    assert (done.status, 'list_skills' in done.out) == (0, False)
    assert done.err.endswith(f'{LEAVING}\n')


class TestFiles:
    @pytest.fixture(autouse=True)
    def files(self, here: Path, skills: Path) -> None:
        write_skill(
            here / 'skills/forms',
            files={'fill.sh': 'sed "s/$/ Ada/" "$1" > "$2"; ls', 'edit.sh': 'echo more >> "$1"; cat "$1"'},
        )
        write(here, {'form.txt': 'Name:\n', 'secret.txt': 'x'})

    def test_scripts_get_those_that_are_named_and_theirs_arrive_here(self, cli: Cli, here: Path):
        done = cli('chat', 'run forms fill.sh form.txt filled.txt')
        assert (here / 'filled.txt').read_text() == 'Name: Ada\n'
        assert (done.status, done.err) == (0, 'wrote filled.txt (10 bytes)\n')
        assert 'secret.txt' not in done.out

    def test_a_sentence_names_them_too(self, cli: Cli, here: Path):
        said = (
            f'What is in "form.txt", skills and {"x" * 300}?\nrun forms edit.sh form.txt\nrun forms edit.sh form.txt\n'
        )
        done = cli('chat', '--output', 'out', stdin=said)
        assert (here / 'form.txt').read_text() == 'Name:\n'
        assert (here / 'out/form.txt').read_text() == 'Name:\nmore\n'  # what was made first stays as it is
        assert 'Name:\nmore\nmore\n' in done.out  # the second script goes on with what the first one wrote
        assert 'not written: out/form.txt: it already exists' in done.err

    def test_programs_are_told_by_events_only(self, cli: Cli, here: Path):
        done = cli('chat', '--json', '--write', 'run forms edit.sh form.txt')
        assert (done.err, (here / 'form.txt').read_text()) == ('', 'Name:\nmore\n')


@pytest.mark.parametrize('terminal', [False, True])
def test_it_ends_quietly_when_nobody_reads_on(cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool):
    class Gone(io.TextIOWrapper):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(sys, 'stdout', Gone(io.BytesIO()))
    done = cli('chat', 'list')
    assert (done.status, done.err) == (0, '')


def test_long_results_are_cut_on_the_terminal_only(cli: Cli, here: Path):
    write_skill(here / 'skills/long', files={'long.md': '\n'.join(map(str, range(100)))})
    done = cli('chat', stdin='load long\nread long.md\n')
    assert '  … 80 more lines' in done.out
    told = events(cli('chat', '--json', stdin='load long\nread long.md\n').out)
    assert told[-2]['result'].endswith('99')


def test_scripts_of_others_run_in_the_sandbox(cli: Cli, repository: Repository):
    cli('add', repository.path)
    told = events(cli('chat', '--json', stdin='load pdf\nrun fill.py form\n').out)
    assert told[-1]['text'] == 'The script printed: filled form\n'


class TestAsking:
    @pytest.fixture(autouse=True)
    def asks(self, here: Path, skills: Path) -> None:
        write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\npolicy = "ask"\n'})

    def test_nobody_to_ask_is_no(self, cli: Cli):
        done = cli('chat', stdin='load units\nrun convert.sh 26\n')
        assert 'That did not work: It was not approved.' in done.out
        assert 'convert.sh 26' in done.err

    def test_yes_can_be_said_beforehand(self, cli: Cli):
        assert 'The script printed: 26 mi' in cli('chat', '--yes', stdin='load units\nrun convert.sh 26\n').out


class TestModels:
    def test_a_real_model_can_be_named(self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
        def infer(model: models.Model | str) -> models.Model:
            return model if isinstance(model, models.Model) else TestModel(custom_output_text=f'I am {model}.')

        monkeypatch.setattr('pydantic_ai_skills.cli.conversation.infer_model', infer)
        assert 'I am some:model.' in cli('chat', '--model', 'some:model', 'Hello').out
        assert cli('chat', '--model', 'some:model').err == f'Type a message.\n{LEAVING}\n'

    @pytest.mark.parametrize('model', ['nobody:nothing', 'nonsense'])
    def test_one_that_cannot_be_had_is_a_mistake(self, cli: Cli, skills: Path, model: str):
        done = cli('chat', '--model', model, 'Hello')
        assert (done.status, done.out) == (2, '')
        assert 'Unknown model' in done.err

    def test_one_that_fails_is_told(self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
        def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            raise ConnectionError('no network')

        monkeypatch.setattr('pydantic_ai_skills.cli.conversation.offline_model', lambda: FunctionModel(fail))
        done = cli('chat', 'Hello')
        assert (done.status, done.err) == (3, 'error: ConnectionError: no network\n')

    def test_a_directory_that_is_not_there_is_a_mistake(self, cli: Cli):
        assert cli('chat', '-d', 'nowhere', 'Hello').err == "error: There is no directory 'nowhere'.\n"
        assert (
            cli('chat', '--json', '-d', 'nowhere', 'Hello').out == '{"error": "There is no directory \'nowhere\'."}\n'
        )
