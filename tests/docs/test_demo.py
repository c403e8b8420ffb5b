"""`make demo` shows a whole conversation, offline, and its answer comes from the script it ran."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from pydantic_ai import models
from pydantic_ai.models.test import TestModel

from pydantic_ai_skills import SkillsToolset

ROOT = Path(__file__).parent.parent.parent
DEMO = ROOT / 'demo/__main__.py'


@pytest.fixture
def main() -> Callable[[list[str]], None]:
    return runpy.run_path(str(DEMO))['main']


def headings(text: str) -> list[str]:
    return re.findall(r'── (.*?) ──', text)


def test_the_demo_lists_loads_reads_and_runs(
    main: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    main([])
    shown = capsys.readouterr().out
    assert headings(shown) == snapshot(
        [
            'instructions',
            'user',
            'model',
            'model calls',
            'result of list_skills',
            'model',
            'model calls',
            'result of load_skill',
            'model',
            'model calls',
            'result of read_skill_resource',
            'model',
            'model calls',
            'result of run_skill_script',
            'model',
        ]
    )
    assert shown.rstrip().endswith('The converter says: 26.2 mi = 42.16 km (rounded).')


def test_the_demo_runs_from_any_folder(tmp_path: Path) -> None:
    env = {**os.environ, 'FORCE_COLOR': ''}
    done = subprocess.run([sys.executable, DEMO], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert '26.2 mi = 42.16 km' in done.stdout
    assert '\x1b' not in done.stdout
    assert done.stderr == ''


def test_colour_can_be_forced(
    main: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('FORCE_COLOR', '1')
    main([])
    assert '\x1b[1;34m── user ─' in capsys.readouterr().out


def test_a_real_model_can_be_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def infer(model: models.Model | str) -> models.Model:
        if isinstance(model, models.Model):
            return model
        asked.append(model)
        return TestModel(call_tools=['list_skills'], custom_output_text='42.16 km')

    monkeypatch.setattr(models, 'infer_model', infer)
    runpy.run_path(str(DEMO))['main'](['--model', 'openai:gpt-5.2'])
    assert asked == ['openai:gpt-5.2']
    assert '42.16 km' in capsys.readouterr().out


def test_a_model_that_cannot_be_had_is_one_line(
    main: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(['--model', 'nobody:nothing'])
    assert stopped.value.code == 2
    assert ': error: Unknown model: nobody:nothing' in capsys.readouterr().err


def test_the_example_skills_break_no_rule() -> None:
    toolset = SkillsToolset(directories=[ROOT / 'examples/skills'])
    assert list(toolset.skills) == ['csv-report', 'release-notes', 'unit-converter']
    assert toolset.problems == []
