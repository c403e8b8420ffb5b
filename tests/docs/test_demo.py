"""`make demo` shows in 60 lines what the package does: offline, with real tools, processes and files."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from pydantic_ai import models
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from pydantic_ai_skills import SkillsToolset

ROOT = Path(__file__).parent.parent.parent
DEMO = ROOT / 'demo'
MAX_LINES = 60


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    monkeypatch.setenv('PYDANTIC_AI_NO_BANNER', '1')  # which the demo sets; it is put back after the test
    monkeypatch.setattr(sys, 'path', [str(DEMO), *sys.path])
    return runpy.run_path(str(DEMO / '__main__.py'))['main']


def run_demo(folder: Path, *wrapper: str | Path, **env: str) -> str:
    """What the demo prints when it is started in some folder."""
    command = [*wrapper, sys.executable, DEMO]
    environment = {**os.environ, 'FORCE_COLOR': '', **env}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert done.stderr == ''
    return done.stdout


def scene(shown: str, number: int) -> str:
    return next(text for text in shown.split('\n── ') if text.startswith(f'{number}. '))


def test_the_demo(tmp_path: Path) -> None:
    shown = run_demo(tmp_path)
    assert len(shown.splitlines()) <= MAX_LINES
    assert max(map(len, shown.splitlines())) <= 80
    assert shown == snapshot("""\
pydantic-ai-skills: an agent with skills. The model is a scripted stand-in.

── 1. A skill fills in a form, with two scripts ────────────────────────────────
you     Please fill in my expense claim: Ada Byron, conference in Lisbon, 3 to 6
        November 2026, 412.50 euros in total.
model   load_skill: fill-form
        → 250 tokens
model   run_skill_script: fill-form list_fields.py expense-claim.txt
        → 5 fields: name, trip, from (date), until (date), total (amount)
model   run_skill_script: fill-form fill_form.py fields.json claim.txt --set
        'name=Ada Byron' 'trip=Conference in Lisbon' from=2026-11-03
        until=2026-11-06 total=412.5
        → Filled in 5 fields of claim.txt.
model   Your expense claim is in claim.txt.
        │ EXPENSE CLAIM
        │
        │ Name    Ada Byron
        │ Trip    Conference in Lisbon
        │ From    03 Nov 2026 to 06 Nov 2026
        │ Total   412.50 EUR

── 2. Tokens: the list is in every request, the rest only when it is needed ────
the list of 4 skills                      ██ 219
what was loaded for the form              ██ 250
all instructions, references and scripts  ██████████████████████████████ 3,539

── 3. A stranger's script: "count my words", and it looks around ───────────────
without a sandbox: refused                   │ in a sandbox: contained
The script 'scripts/count.py' of skill       │ 4 words
'word-count' may not be run here, so carry   │ read your diary: no, No such file
on without it. For the developer: its source │ or directory
is not trusted, and code of strangers runs   │ plant a file: no, No such file or
in a sandbox only, such as                   │ directory
BubblewrapSkillScriptExecutor. If you vouch  │ send it away: no, Connection
for the source, say so with its `trusted`    │ refused
option.                                      │
after   The private folder still holds: diary.txt.

── 4. Approvals: script_policy='ask' ───────────────────────────────────────────
unit-converter wants to run: python convert.py 26.2 mi km
Run it? [y/N] y   (the demo answers for you)
ran     26.2 mi = 42.1648 km
changed The script 'scripts/convert.py' was not run: it, its arguments or a file
        of its skill is not what was approved. Call it again to ask for another
        approval.

── 5. A broken skill is reported, and fixed ────────────────────────────────────
code-review/SKILL.md:3: warning [yaml-repaired] The frontmatter is not valid
    YAML: mapping values are not allowed in this context. Read as plain text:
    'description'. Put such values in quotes.
  fix: Put values that hold `: `, ` #` or quotes into quotes.
  fixed: description: "Review a change: style, tests and naming. Use before a
    merge."

── 6. What to try next ─────────────────────────────────────────────────────────
make demo MODEL=openai:gpt-5.2              the first scene with a real model
.venv/bin/python examples/web_chat.py       a chat in the browser, offline
.venv/bin/pydantic-ai-skills new my-skill   begin a skill of your own
.venv/bin/pydantic-ai-skills validate       check it
docs/tutorial.md                            an agent with skills, step by step
""")


def test_without_bubblewrap_it_says_so_and_goes_on(tmp_path: Path) -> None:
    shown = run_demo(tmp_path, PATH=str(tmp_path))
    assert 'in a sandbox: not on this machine' in scene(shown, 3)
    assert 'bubblewrap (bwrap) is not' in scene(shown, 3)
    assert 'send it away' not in scene(shown, 3)
    assert 'web_chat.py' in scene(shown, 6)


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary = tmp_path / 'tmp'
    temporary.mkdir()
    run_demo(tmp_path, TMPDIR=str(temporary))
    assert list(tmp_path.rglob('*')) == [temporary]


def test_on_a_terminal_it_has_colours_and_no_banner_of_another_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('PYDANTIC_AI_NO_BANNER', raising=False)
    for name in ('CI', 'NO_COLOR', 'FORCE_COLOR'):
        monkeypatch.delenv(name, raising=False)
    in_terminal = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))'
    shown = run_demo(tmp_path, sys.executable, '-c', in_terminal)
    assert shown.startswith('\x1b[1mpydantic-ai-skills\x1b[0m: an agent with skills.')
    assert 'observability' not in shown


def test_colour_can_be_forced(
    main: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('FORCE_COLOR', '1')
    main([])
    assert '\x1b[1;36m── 1. ' in capsys.readouterr().out


def test_a_real_model_can_be_named(
    main: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def infer(model: models.Model | str) -> models.Model:
        if isinstance(model, models.Model):
            return model
        asked.append(model)
        return TestModel(call_tools=['list_skills'], custom_output_text='I have no idea.')

    monkeypatch.setitem(main.__globals__, 'infer_model', infer)
    main(['--model', 'openai:gpt-5.2'])
    shown = capsys.readouterr().out
    assert asked == ['openai:gpt-5.2']
    assert shown.startswith('pydantic-ai-skills: an agent with skills. The model is openai:gpt-5.2.\n')
    assert 'I have no idea.' in scene(shown, 1)


def test_a_model_that_cannot_be_had_is_one_line(
    main: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(['--model', 'nobody:nothing'])
    assert stopped.value.code == 2
    assert ': error: Unknown model: nobody:nothing' in capsys.readouterr().err


def test_a_model_that_fails_is_one_line(
    main: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ModelHTTPError(401, 'gpt-5.2')

    failing = {'openai:gpt-5.2': FunctionModel(refuse)}
    monkeypatch.setitem(main.__globals__, 'infer_model', failing.get)
    with pytest.raises(SystemExit) as stopped:
        main(['--model', 'openai:gpt-5.2'])
    assert stopped.value.code == 1
    assert capsys.readouterr().err.startswith('The model failed: status_code: 401')


@pytest.mark.parametrize(
    ('folder', 'names'),
    [
        ('examples/skills', ['csv-report', 'release-notes', 'unit-converter']),
        ('examples/forms', ['fill-form']),
        ('demo/stranger', ['word-count']),
    ],
)
def test_the_example_skills_break_no_rule(folder: str, names: list[str]) -> None:
    toolset = SkillsToolset(directories=[ROOT / folder])
    assert list(toolset.skills) == names
    assert toolset.problems == []


GOOD = {'name': 'Ada', 'trip': 'Lisbon', 'from': '2026-11-03', 'until': '2026-11-06', 'total': '412.5'}


@pytest.mark.parametrize(
    ('values', 'said'),
    [
        pytest.param({**GOOD, 'until': '6 November'}, "until is not a valid date: '6 November'", id='date'),
        pytest.param({**GOOD, 'total': 'much'}, "total is not a valid amount: 'much'", id='amount'),
        pytest.param({'name': 'Ada'}, 'the form has these fields: name, trip, from, until, total', id='missing'),
        pytest.param({**GOOD, 'age': '36'}, 'you gave: name, trip, from, until, total, age', id='unknown'),
    ],
)
def test_the_form_is_not_written_with_a_wrong_value(tmp_path: Path, values: dict[str, str], said: str) -> None:
    def script(name: str, *args: str) -> subprocess.CompletedProcess[str]:
        path = ROOT / 'examples/forms/fill-form/scripts' / name
        return subprocess.run([sys.executable, path, *args], cwd=tmp_path, capture_output=True, text=True)

    fill = ('fill_form.py', 'fields.json', 'claim.txt', '--set', *(f'{name}={value}' for name, value in values.items()))
    assert 'run list_fields.py first' in script(*fill).stderr
    assert script('list_fields.py', 'expense-claim.txt').returncode == 0
    done = script(*fill)
    assert (done.returncode, said in done.stderr) == (2, True)
    assert not (tmp_path / 'claim.txt').exists()
