"""Every example in the README, the docs and the docstrings runs, and prints what it says it prints."""

from __future__ import annotations

import logging
import re
import shutil
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS
from pydantic_ai import models
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pytest_examples import CodeExample, EvalExample, find_examples

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(
    find_examples(ROOT / 'README.md', ROOT / 'docs', ROOT / 'pydantic_ai_skills'), key=lambda e: (e.path, e.start_line)
)
TITLED_FILE = re.compile(r'^```\w+ title="(?P<path>[^"]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Script:
    """What the stand-in model does with a prompt: call these tools in turn, then answer from the last result."""

    calls: list[tuple[str, dict[str, Any]]]
    found: str
    """A pattern in the last tool's result; its groups fill `answer`."""
    answer: str
    failures: int = 0
    """How many of the calls have to fail, the first ones."""


CONVERT: list[tuple[str, dict[str, Any]]] = [
    ('read_skill_resource', {'skill_name': 'unit-converter', 'resource_name': 'references/units.md'}),
    (
        'run_skill_script',
        {
            'skill_name': 'unit-converter',
            'script_name': 'scripts/convert.py',
            'args': {'_': ['26.2', 'mi', 'km'], 'digits': 2},
        },
    ),
]
CONVERTED = (r'([\d.]+) mi = ([\d.]+) km', '{} miles are {} km.')

SCRIPTS = {
    'A marathon is 26.2 miles. How many kilometres is that?': Script(
        [('load_skill', {'skill_name': 'unit-converter'}), *CONVERT], *CONVERTED
    ),
    'Convert 26.2 miles, on demand.': Script([('load_capability', {'id': 'unit-converter'}), *CONVERT], *CONVERTED),
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
    'What are our total sales?': Script(
        [
            ('load_skill', {'skill_name': 'totals'}),
            ('run_skill_script', {'skill_name': 'totals', 'script_name': 'total', 'args': ['sales.csv', 'amount']}),
        ],
        r'([\d.]+)',
        'Our total sales are {}.',
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
    'Tell Ada that the build is green.': Script(
        [
            ('load_skill', {'skill_name': 'mailer'}),
            ('mailer__send', {'to': 'ada@example.com', 'text': 'The build is green.'}),
        ],
        r'(sent to .*)',
        '{}',
    ),
    'Tag version 1.2.': Script(
        [('load_skill', {'skill_name': 'release'}), ('shell', {'command': 'git tag v1.2'})], r'(ran .*)', '{}'
    ),
    '/announce "our new lamp" designers': Script([], '', 'Our new lamp, for designers.'),
    'Load a skill, and forget it.': Script(
        [('load_skill', {'skill_name': 'unit-converter'}), ('list_skills', {}), ('list_skills', {})], '', 'Not told.'
    ),
    'How many words has "to be or not to be"?': Script(
        [('load_skill', {'skill_name': 'text-stats'}), ('text_stats__count', {'text': 'to be or not to be'})],
        r'(\d+)',
        'It has {} words.',
    ),
    'Roll a die with 20 sides, seed 7.': Script(
        [('load_skill', {'skill_name': 'dice'}), ('dice__roll', {'sides': 20, 'seed': 7})], r'(\d+)', 'It shows {}.'
    ),
    'How many desks are left?': Script(
        [('load_skill', {'skill_name': 'stock-keeper'}), ('stock_keeper__count', {'product': 'desk'})],
        r'(\d+)',
        '{} desks are left.',
    ),
    'Hello': Script([], '', 'Hello.'),
}


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Play the script of the prompt, and insist that every tool call succeeds, or fails as it has to."""
    parts = [part for message in messages for part in message.parts]
    prompt, *notes = [part.content for part in parts if isinstance(part, UserPromptPart)]
    if notes and 'no longer in the conversation' in str(notes[-1]):
        told = str(notes[-1]).partition('">')[2].partition('</context>')[0]
        return ModelResponse(parts=[TextPart(told.strip())])
    script = SCRIPTS[prompt if isinstance(prompt, str) else str(prompt[0])]
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


async def stream_stand_in(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    (part,) = stand_in(messages, info).parts
    if isinstance(part, ToolCallPart):
        yield {0: DeltaToolCall(name=part.tool_name, json_args=part.args_as_json_str())}
    elif isinstance(part, TextPart):
        yield part.content


def infer_stand_in(model: models.Model | str) -> models.Model:
    if isinstance(model, models.Model):
        return model
    return FunctionModel(stand_in, stream_function=stream_stand_in, model_name=str(model))


@pytest.fixture
def example_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the example skills, where the repository has them and in `skills`."""
    for folder in ('skills', 'examples/skills'):
        shutil.copytree(ROOT / 'examples/skills', tmp_path / folder)
    shutil.copytree(ROOT / 'examples/library', tmp_path / 'examples/library')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [str(tmp_path), *sys.path])
    return tmp_path


@pytest.fixture
def nothing_left_behind() -> Iterator[None]:
    """An example may import a file of its page, start DBOS, or set up logging."""
    logger = logging.getLogger('pydantic_ai_skills')
    handlers, level, modules = list(logger.handlers), logger.level, set(sys.modules)
    yield
    logger.handlers, logger.level = handlers, level
    for name in {'agents'} & (set(sys.modules) - modules):
        del sys.modules[name]
    DBOS.destroy(destroy_registry=True)


@pytest.mark.usefixtures('loop_of_run_sync', 'nothing_left_behind')
@pytest.mark.parametrize('example', EXAMPLES, ids=lambda example: str(example.path.relative_to(ROOT)))
def test_example(
    example: CodeExample, eval_example: EvalExample, example_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    infer_model = models.infer_model
    for module in [module for name, module in sys.modules.items() if name.startswith('pydantic_ai.')]:
        if vars(module).get('infer_model') is infer_model:
            monkeypatch.setattr(module, 'infer_model', infer_stand_in)
    for file in TITLED_FILE.finditer(example.path.read_text('utf-8')):
        path = example_folder / file['path']
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file['text'], 'utf-8')

    eval_example.set_config(line_length=120, quotes='single', target_version='py310', ruff_ignore=['D', 'I', 'T'])
    if eval_example.update_examples:  # `pytest tests/docs/test_examples.py --update-examples` writes the output in
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
