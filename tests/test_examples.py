"""Every example in the README, the docs and the docstrings runs, and prints what it says it prints."""

from __future__ import annotations

import asyncio
import re
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pytest_examples import CodeExample, EvalExample, find_examples

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(
    find_examples(ROOT / 'README.md', ROOT / 'docs', ROOT / 'pydantic_ai_skills'), key=lambda e: (e.path, e.start_line)
)
TITLED_FILE = re.compile(r'^```\w+ title="(?P<path>skills/[^"]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Script:
    """What the stand-in model does with a prompt: call these tools in turn, then answer from the last result."""

    calls: list[tuple[str, dict[str, Any]]]
    found: str
    """A pattern in the last tool's result; its groups fill `answer`."""
    answer: str
    failures: int = 0
    """How many of the calls have to fail, the first ones."""


SCRIPTS = {
    'A marathon is 26.2 miles. How many kilometres is that?': Script(
        [
            ('load_skill', {'skill_name': 'unit-converter'}),
            ('read_skill_resource', {'skill_name': 'unit-converter', 'resource_name': 'references/units.md'}),
            (
                'run_skill_script',
                {
                    'skill_name': 'unit-converter',
                    'script_name': 'scripts/convert.py',
                    'args': {'_': ['26.2', 'mi', 'km'], 'digits': 2},
                },
            ),
        ],
        r'([\d.]+) mi = ([\d.]+) km',
        '{} miles are {} km.',
    ),
    'Which region sold the most?': Script(
        [
            ('load_skill', {'skill_name': 'csv-report'}),
            (
                'run_skill_script',
                {
                    'skill_name': 'csv-report',
                    'script_name': 'scripts/summarize.py',
                    'args': {'_': ['assets/sales.csv'], 'value': 'revenue', 'group-by': 'region'},
                },
            ),
        ],
        r'mean\n(\w+),\d+,([\d.]+),',
        '{} sold the most: {}.',
    ),
    'Bonjour, je suis Marie.': Script(
        [
            ('load_skill', {'skill_name': 'greeting'}),
            (
                'run_skill_script',
                {'skill_name': 'greeting', 'script_name': 'greet', 'args': {'_': ['Marie'], 'language': 'fr'}},
            ),
        ],
        r'(Bonjour, .*!)',
        '{}',
    ),
    'How many lamps are left?': Script(
        [
            ('load_skill', {'skill_name': 'stock-keeper'}),
            ('read_skill_resource', {'skill_name': 'stock-keeper', 'resource_name': 'products'}),
            (
                'run_skill_script',
                {'skill_name': 'stock-keeper', 'script_name': 'count', 'args': {'product': 'lamp'}},
            ),
        ],
        r'(\d+)',
        '{} lamps are left.',
    ),
    'Who is our first customer?': Script(
        [
            ('load_skill', {'skill_name': 'data-analyzer'}),
            ('read_skill_resource', {'skill_name': 'data-analyzer', 'resource_name': 'schema'}),
            (
                'run_skill_script',
                {
                    'skill_name': 'data-analyzer',
                    'script_name': 'run_query',
                    'args': {'table': 'customers', 'limit': 1},
                },
            ),
        ],
        r'"(\w+)"',
        'The first customer is {}.',
    ),
    'What does the weather script print for Oslo?': Script(
        [
            ('load_skill', {'skill_name': 'weather'}),
            (
                'run_skill_script',
                {'skill_name': 'weather', 'script_name': 'scripts/forecast.py', 'args': {'_': ['Oslo']}},
            ),
        ],
        r'(GET (?s:.*)sun\.)',
        '{}',
    ),
    'Save a note, first in the wrong place.': Script(
        [
            (
                'run_skill_script',
                {
                    'skill_name': 'note-taker',
                    'script_name': 'save',
                    'args': {'target': target, 'text': 'Water the plants.'},
                },
            )
            for target in ('out/../notes.txt', 'out/note.txt')
        ],
        '(saved .*)',
        'Failed, then: {}',
        failures=1,
    ),
    'Hello': Script([], '', 'Hello.'),
}


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Play the script of the prompt, and insist that every tool call succeeds, or fails as it has to."""
    parts = [part for message in messages for part in message.parts]
    prompt = next(part.content for part in parts if isinstance(part, UserPromptPart))
    script = SCRIPTS[str(prompt)]
    returns = [part for part in parts if isinstance(part, ToolReturnPart)]
    for index, part in enumerate(returns):
        expected = 'failed' if index < script.failures else 'success'
        assert part.outcome == expected, part.model_response_str()
    if len(returns) < len(script.calls):
        return ModelResponse(parts=[ToolCallPart(*script.calls[len(returns)])])
    text = returns[-1].model_response_str() if returns else ''
    match = re.search(script.found, text)
    assert match, text
    return ModelResponse(parts=[TextPart(script.answer.format(*match.groups()))])


def infer_stand_in(model: models.Model | str) -> models.Model:
    return model if isinstance(model, models.Model) else FunctionModel(stand_in, model_name=str(model))


@pytest.fixture
def example_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the example skills, where the repository has them and in `skills`."""
    for folder in ('skills', 'examples/skills'):
        shutil.copytree(ROOT / 'examples/skills', tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def loop_of_run_sync() -> Iterator[None]:
    """`Agent.run_sync` makes an event loop where there is none, and leaves it open for the next call."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures('loop_of_run_sync')
@pytest.mark.parametrize('example', EXAMPLES, ids=lambda example: str(example.path.relative_to(ROOT)))
def test_example(
    example: CodeExample, eval_example: EvalExample, example_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, 'infer_model', infer_stand_in)
    for file in TITLED_FILE.finditer(example.path.read_text('utf-8')):
        path = example_folder / file['path']
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file['text'], 'utf-8')

    eval_example.set_config(line_length=120, quotes='single', target_version='py310', ruff_ignore=['D', 'I', 'T'])
    if eval_example.update_examples:  # `pytest tests/test_examples.py --update-examples` writes the output in
        eval_example.format_ruff(example)
    else:
        eval_example.lint_ruff(example)
    settings = example.prefix_settings()
    if 'title' in settings:
        return  # a file of a skill, which the page's other examples use
    if settings.get('test') == 'skip':
        return  # it needs what a test has not, such as the network; a reader is shown nothing that it prints
    run = eval_example.run_print_update if eval_example.update_examples else eval_example.run_print_check
    failure = ''
    try:
        run(example)
    except Exception as error:  # noqa: BLE001
        failure = ''.join(traceback.format_exception_only(error))
    # Not raised from the error: on Python 3.11 pytest cannot show the traceback that pytest-examples makes up for it.
    if failure:
        pytest.fail(f'{example}\n{failure}', pytrace=False)
