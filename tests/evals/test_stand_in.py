"""The stand-in always does the same: it compares words, and follows the first step of a skill."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart

from pydantic_ai_skills import SkillsToolset
from pydantic_ai_skills.evals import stand_in_model
from pydantic_ai_skills.evals.stand_in import best_skill
from tests.folders import write_skill

LIST = """<available_skills>
<skill name="fill-forms">Fill in PDF forms and merge pages of a document.</skill>
<skill name="merge-tables">Merge tables of a document by a column.</skill>
<skill name="r&amp;d">Notes &lt;about&gt; experiments.</skill>
<skill name="bare"/>
</available_skills>"""


@pytest.mark.parametrize(
    ('prompt', 'enough', 'chosen'),
    [
        ('Filling in the forms', 0, 'fill-forms'),
        ('Merge these documents', 0, 'fill-forms'),  # a tie goes to the first
        ('Merge by columns', 0, 'merge-tables'),
        ('Merge this', 0, 'fill-forms'),
        ('Merge this', 1.5, None),  # two skills have the word, so that it counts half
        ('merge-tables, please', 1.5, 'merge-tables'),
        ('experiment', 0, 'r&d'),
        ('Hello there', 0, None),
        ('What can you do with that?', 0, None),
    ],
)
def test_the_skill_with_the_most_words_in_common_is_chosen(prompt: str, enough: float, chosen: str | None):
    assert best_skill(prompt, LIST, enough=enough) == chosen


def test_without_skills_there_is_none_to_choose():
    assert best_skill('Anything', '') is None


@pytest.fixture
def skills(tmp_path: Path) -> SkillsToolset[object]:
    echo = 'import sys\nprint(sys.argv[1:])\n'
    write_skill(
        tmp_path / 'painter',
        'Mixes paint from colours.',
        "It's `not run`, and ` ` neither. Odd: `it's`.\n\nRun `scripts/mix.py COLOUR COLOUR --parts NUMBER --on DATE FILE`.",
        files={'scripts/mix.py': echo, 'scripts/more.py': echo},
    )
    write_skill(
        tmp_path / 'greeter',
        'Greets visitors in words.',
        'Say it so:\n\n```text\nWelcome to us!\n```\n',
    )
    write_skill(tmp_path / 'thinker', 'Thinks about philosophy.', 'Think first.\n\nThen think again.')
    write_skill(
        tmp_path / 'breaker',
        'Breaks glass windows.',
        'Run `break.py`.',
        files={'break.py': 'print(1)\nraise SystemExit(3)'},
    )
    write_skill(
        tmp_path / 'teller',
        'Tells versions and quotes.',
        'Run `tell.sh "TEXT" VERSION`.',
        files={'tell.sh': 'echo "$1 and $2"'},
    )
    return SkillsToolset(directories=[tmp_path])


@pytest.mark.parametrize(
    ('prompt', 'calls', 'answer'),
    [
        (
            'Mix paint of #fff and #00ff7f, 2.5 parts, on 2026-03-02, as plans/paint.txt says.',
            ['load_skill', 'run_skill_script'],
            "['#fff', '#00ff7f', '--parts', '2.5', '--on', '2026-03-02', 'plans/paint.txt']",
        ),
        (
            'Mix paint of colours #fff and #000.',
            ['load_skill'],
            'The prompt does not have all that `scripts/mix.py` needs.',
        ),
        ('Greets our visitors', ['load_skill'], 'Welcome to us!'),
        ('Thinks about philosophy', ['load_skill'], 'Think first.'),
        ('Tells quotes: "to be" of 1.2.3', ['load_skill', 'run_skill_script'], 'to be and 1.2.3'),
        ('Hello', [], 'No skill fits, and a stand-in knows nothing by itself.'),
    ],
)
async def test_it_follows_the_first_step(skills: SkillsToolset[object], prompt: str, calls: list[str], answer: str):
    agent = Agent(stand_in_model(), toolsets=[skills])
    first, second = await agent.run(prompt), await agent.run(prompt)
    parts = [part for message in first.all_messages() for part in message.parts]
    assert [part.tool_name for part in parts if isinstance(part, ToolCallPart)] == calls
    assert (first.output, second.output) == (answer, answer)
    assert first.usage == second.usage


async def test_a_script_that_fails_is_told(skills: SkillsToolset[object]):
    output = (await Agent(stand_in_model(), toolsets=[skills]).run('Breaks the glass windows')).output
    assert output.startswith('That did not work: ')
    assert 'Exit code: 3' in output


async def test_it_needs_the_tool_that_loads_skills(tmp_path: Path):
    write_skill(tmp_path / 'greeter', 'Greets visitors in words.')
    with pytest.warns(UserWarning, match='load_skill'):
        toolset = SkillsToolset[object](directories=[tmp_path], exclude_tools='load_skill')
    agent = Agent(stand_in_model(), toolsets=[toolset])
    assert (await agent.run('Greets visitors in words')).output.startswith('No skill fits')


async def test_each_prompt_of_a_conversation_is_a_new_one(skills: SkillsToolset[object]):
    agent = Agent(stand_in_model(), toolsets=[skills])
    first = await agent.run('Greets our visitors')
    second = await agent.run('Hello', message_history=first.all_messages())
    assert second.output.startswith('No skill fits')
