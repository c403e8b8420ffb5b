"""Whole conversations: an agent with skills, and everything its model receives."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from inline_snapshot import snapshot
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import LocalWorkspace
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    CallableSkillScriptExecutor,
    LocalSkillScriptExecutor,
    Skill,
    SkillRegistry,
    SkillResource,
    SkillsCapability,
    SkillScript,
    SkillsDirectory,
    SkillsToolset,
    WorkspaceSkillScriptExecutor,
)
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

ADD = 'import sys\nprint(sum(map(int, sys.argv[1:])))\n'


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_by_default_the_skills_are_in_the_folder_skills(in_tmp_path: Path):
    write_skill(
        in_tmp_path / 'skills/adding',
        'Adds numbers. Use for sums.',
        '# Adding\n\nSee `references/rules.md`, then run `scripts/add.py A B`.',
        {'references/rules.md': 'Numbers are whole.\n', 'scripts/add.py': ADD},
    )
    script = await converse(
        await to_thread.run_sync(SkillsToolset),
        ('list_skills', {}),
        ('load_skill', {'skill_name': 'adding'}),
        ('read_skill_resource', {'skill_name': 'adding', 'resource_name': 'references/rules.md'}),
        ('run_skill_script', {'skill_name': 'adding', 'script_name': 'scripts/add.py', 'args': {'_': [2, 3]}}),
        ('load_skill', {'skill_name': 'adding'}),
    )
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="adding">Adds numbers. Use for sums.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert set(script.instructions) == {script.instructions[0]}
    assert _without_path(script.results, in_tmp_path) == snapshot(
        [
            ('list_skills', 'success', {'adding': 'Adds numbers. Use for sums.'}),
            (
                'load_skill',
                'success',
                """\
<skill name="adding" location="…/skills/adding">
<resources>
references/: rules.md
</resources>
<scripts>
scripts/: add.py
</scripts>
<skill_instructions>
# Adding

See `references/rules.md`, then run `scripts/add.py A B`.
</skill_instructions>
</skill>\
""",
            ),
            ('read_skill_resource', 'success', 'Numbers are whole.\n'),
            ('run_skill_script', 'success', '5\n'),
            (
                'load_skill',
                'success',
                "The skill 'adding' is loaded already: its instructions are above and have not changed.",
            ),
        ]
    )


async def test_the_tools_say_how_they_are_called(tmp_path: Path):
    write_skill(tmp_path / 'adding', files={'rules.md': 'Whole numbers.', 'scripts/add.py': ADD})
    script = await converse(SkillsToolset(directories=[tmp_path]))
    assert script.definitions == snapshot(
        {
            'list_skills': {
                'description': 'List all skills.',
                'parameters': {
                    'additionalProperties': False,
                    'properties': {
                        'page': {
                            'default': 1,
                            'type': 'integer',
                        }
                    },
                    'type': 'object',
                },
            },
            'load_skill': {
                'description': "Load a skill's instructions and file names. Do this before using it.",
                'parameters': {
                    'additionalProperties': False,
                    'properties': {'skill_name': {'type': 'string'}},
                    'required': ['skill_name'],
                    'type': 'object',
                },
            },
            'read_skill_resource': {
                'description': 'Read a file or another resource of a loaded skill, or a file that a script wrote.',
                'parameters': {
                    'additionalProperties': False,
                    'properties': {
                        'skill_name': {'type': 'string'},
                        'resource_name': {'type': 'string'},
                        'args': {
                            'anyOf': [
                                {'additionalProperties': True, 'type': 'object'},
                                {'type': 'string'},
                                {'type': 'null'},
                            ],
                            'default': None,
                            'description': 'Its parameters, or {"page": 2} of a long text.',
                        },
                    },
                    'required': ['skill_name', 'resource_name'],
                    'type': 'object',
                },
            },
            'run_skill_script': {
                'description': 'Run a script of a loaded skill. All scripts of a conversation start in the same folder.',
                'parameters': {
                    'additionalProperties': False,
                    'properties': {
                        'skill_name': {'type': 'string'},
                        'script_name': {'type': 'string'},
                        'args': {
                            'anyOf': [
                                {'additionalProperties': True, 'type': 'object'},
                                {'items': {'type': 'string'}, 'type': 'array'},
                                {'type': 'string'},
                                {'type': 'null'},
                            ],
                            'default': None,
                            'description': """\
Options by name, positional arguments under "_", standard input under "_stdin":
{"_": ["in.pdf"], "limit": 5}. Or a list, or JSON text.\
""",
                        },
                    },
                    'required': ['skill_name', 'script_name'],
                    'type': 'object',
                },
            },
        }
    )


async def test_a_later_directory_wins_over_an_earlier_one(tmp_path: Path):
    write_skill(tmp_path / 'one/alpha', 'Alpha of one.', 'one')
    write_skill(tmp_path / 'one/both', 'Both of one.', 'one')
    write_skill(tmp_path / 'two/both', 'Both of two.', 'two')
    write_skill(tmp_path / 'two/beta', 'Beta of two.', 'two')
    toolset = SkillsToolset(directories=[tmp_path / 'one', str(tmp_path / 'two')])
    script = await converse(toolset, ('load_skill', {'skill_name': 'both'}))
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="alpha">Alpha of one.</skill>
<skill name="beta">Beta of two.</skill>
<skill name="both">Both of two.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert _without_path(script.results, tmp_path) == snapshot(
        [
            (
                'load_skill',
                'success',
                """\
<skill name="both" location="…/two/both">
<skill_instructions>
two
</skill_instructions>
</skill>\
""",
            )
        ]
    )
    assert [(p.code, p.severity, p.path, p.message.replace(str(tmp_path), '')) for p in toolset.problems] == [
        (
            'shadowed',
            'warning',
            str(tmp_path / 'one' / 'both'),
            "The skill 'both' is not used: the one in /two/both comes first.",
        )
    ]


class Shelf(SkillRegistry):
    def __init__(self, *skills: Skill) -> None:
        self._skills = skills

    def get_skills(self) -> list[Skill]:
        return list(self._skills)


async def test_python_wins_over_directories_and_directories_over_registries(tmp_path: Path):
    write_skill(tmp_path / 'everywhere', 'From the directory.')
    write_skill(tmp_path / 'on-disk', 'From the directory.')
    toolset = SkillsToolset(
        skills=[Skill('everywhere', 'From Python.', 'Python speaking.')],
        directories=[tmp_path],
        registries=[
            Shelf(Skill('everywhere', 'From a registry.', ''), Skill('on-disk', 'From a registry.', '')),
            Shelf(Skill('remote', 'From a second registry.', ''), Skill('on-disk', 'From a second registry.', '')),
        ],
    )
    script = await converse(toolset, ('load_skill', {'skill_name': 'everywhere'}))
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="everywhere">From Python.</skill>
<skill name="on-disk">From the directory.</skill>
<skill name="remote">From a second registry.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert script.results == snapshot(
        [
            (
                'load_skill',
                'success',
                """\
<skill name="everywhere">
<skill_instructions>
Python speaking.
</skill_instructions>
</skill>\
""",
            )
        ]
    )
    assert sorted(p.code for p in toolset.problems) == ['shadowed'] * 4


async def test_other_braces_in_a_template_are_text(tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    toolset = SkillsToolset(
        directories=[tmp_path], instruction_template='Answer as {"json": true} or {}.\n{skills_list}\n{not_a_field}'
    )
    script = await converse(toolset)
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
Answer as {"json": true} or {}.
<available_skills>
<skill name="alpha">Does things.</skill>
</available_skills>
{not_a_field}
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")


async def test_excluded_tools_are_neither_offered_nor_mentioned(tmp_path: Path):
    write_skill(tmp_path / 'alpha', files={'scripts/add.py': ADD, 'notes.md': 'x'})
    toolset = SkillsToolset(directories=[tmp_path], exclude_tools=['list_skills', 'run_skill_script'])
    script = await converse(toolset)
    assert script.tools == [['load_skill', 'read_skill_resource']]
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="alpha">Does things.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")


@dataclass
class Shop:
    stock: dict[str, int]


async def test_decorated_functions_get_the_dependencies_of_the_run():
    skills = SkillsToolset[Shop](skills=[])

    @skills.skill(metadata={'version': '1.0'})
    def stock_keeper() -> str:
        """Knows what is in stock."""
        return 'Read `get_items` first.'

    @stock_keeper.resource
    async def get_items(ctx: RunContext[Shop]) -> list[str]:
        """All items there are."""
        return sorted(ctx.deps.stock)

    @stock_keeper.script
    def take(ctx: RunContext[Shop], item: str, count: int = 1) -> str:
        """Take items out of stock.

        Args:
            item: What to take.
            count: How many.
        """
        ctx.deps.stock[item] -= count
        return f'{ctx.deps.stock[item]} left'

    script = ScriptedModel(
        calls=[
            ('load_skill', {'skill_name': 'stock-keeper'}),
            ('read_skill_resource', {'skill_name': 'stock-keeper', 'resource_name': 'get_items'}),
            (
                'run_skill_script',
                {'skill_name': 'stock-keeper', 'script_name': 'take', 'args': {'item': 'nut', 'count': '2'}},
            ),
            (
                'run_skill_script',
                {'skill_name': 'stock-keeper', 'script_name': 'take', 'args': '{"item": "nut"}'},
            ),
        ]
    )
    shop = Shop(stock={'nut': 5, 'bolt': 1})
    await Agent(script.model, toolsets=[skills], deps_type=Shop).run('Take two nuts, then one.', deps=shop)
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="stock-keeper">Knows what is in stock.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert script.results == snapshot(
        [
            (
                'load_skill',
                'success',
                """\
<skill name="stock-keeper">
<resources>
<resource name="get_items">All items there are.</resource>
</resources>
<scripts>
<script name="take">Take items out of stock. {"additionalProperties":false,"properties":{"item":{"description":"What to take.","type":"string"},"count":{"default":1,"description":"How many.","type":"integer"}},"required":["item"],"type":"object"}</script>
</scripts>
<skill_instructions>
Read `get_items` first.
</skill_instructions>
</skill>\
""",
            ),
            ('read_skill_resource', 'success', ['bolt', 'nut']),
            ('run_skill_script', 'success', '3 left'),
            ('run_skill_script', 'success', '2 left'),
        ]
    )
    assert skills.skills['stock-keeper'].metadata == {'version': '1.0'}
    assert shop.stock == {'nut': 2, 'bolt': 1}


async def test_added_edited_and_deleted_skills_are_seen_after_a_reload(tmp_path: Path):
    write_skill(tmp_path / 'kept', 'As it was.')
    write_skill(tmp_path / 'gone', 'Will go.')
    toolset = SkillsToolset(directories=[tmp_path])
    before = await converse(toolset)
    write_skill(tmp_path / 'added', 'Is new.', 'New.')
    write_skill(tmp_path / 'kept', 'Was edited.', 'Edited.')
    (tmp_path / 'gone' / 'SKILL.md').unlink()
    (tmp_path / 'gone').rmdir()
    assert (await converse(toolset)).instructions == before.instructions
    await to_thread.run_sync(toolset.reload)
    after = await converse(toolset, ('load_skill', {'skill_name': 'kept'}), ('load_skill', {'skill_name': 'gone'}))
    assert (before.instructions[0], after.instructions[0]) == snapshot(
        (
            """\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="gone">Will go.</skill>
<skill name="kept">As it was.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""",
            """\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="added">Is new.</skill>
<skill name="kept">Was edited.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""",
        )
    )
    assert _without_path(after.results, tmp_path) == snapshot(
        [
            (
                'load_skill',
                'success',
                """\
<skill name="kept" location="…/kept">
<skill_instructions>
Edited.
</skill_instructions>
</skill>\
""",
            ),
            ('load_skill', 'failed', "There is no skill 'gone'. The skills are: 'added', 'kept'."),
        ]
    )


async def test_with_auto_reload_a_run_sees_what_changed_before_it(tmp_path: Path):
    toolset = SkillsToolset(directories=[tmp_path], auto_reload=True)
    empty = await converse(toolset)
    assert empty.instructions == [None]
    assert empty.tools == [['list_skills', 'load_skill', 'read_skill_resource', 'run_skill_script']]
    write_skill(tmp_path / 'alpha', 'Is new.')
    assert 'Is new.' in str((await converse(toolset)).instructions)
    write_skill(tmp_path / 'alpha', 'Was edited.')
    assert 'Was edited.' in str((await converse(toolset)).instructions)
    os.remove(tmp_path / 'alpha' / 'SKILL.md')
    assert (await converse(toolset)).instructions == [None]


async def test_a_catalogue_that_changes_is_appended_to_the_conversation(tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    toolset = SkillsToolset(directories=[tmp_path])
    first = ScriptedModel(calls=[])
    agent = Agent(first.model, toolsets=[toolset])
    result = await agent.run('One.')
    write_skill(tmp_path / 'beta')
    await to_thread.run_sync(toolset.reload)
    second = ScriptedModel(calls=[])
    with agent.override(model=second.model):
        await agent.run('Two.', message_history=result.all_messages())
    assert second.instructions == first.instructions
    assert second.received[2:] == snapshot(
        [
            {
                'parts': [
                    {'content': 'Two.', 'part_kind': 'user-prompt'},
                    {
                        'content': """\
<system><context_diff id="toolset:skills:catalog">
--- before
+++ after
@@ -3,3 +3,4 @@
 <available_skills>
 <skill name="alpha">Does things.</skill>
+<skill name="beta">Does things.</skill>
 </available_skills>
</context_diff></system>\
""",
                        'part_kind': 'user-prompt',
                    },
                ],
                'kind': 'request',
                'state': 'complete',
            }
        ]
    )


async def test_a_model_that_errs_again_and_again_gets_there_in_one_run(tmp_path: Path):
    write_skill(tmp_path / 'adding', files={'references/rules.md': 'Whole numbers.', 'scripts/add.py': ADD})
    toolset = SkillsToolset(directories=[tmp_path])

    @toolset.skill
    def greeting() -> str:
        """Greets."""
        return 'Run greet.'

    @greeting.script
    def greet(name: str, times: int = 1) -> str:
        return f'Hello {name}! ' * times

    script = await converse(
        toolset,
        ('load_skill', {'skill_name': 'adder'}),
        ('load_skill', {'skill_name': 'Adding'}),
        ('read_skill_resource', {'skill_name': 'adding', 'resource_name': 'docs/rules.md'}),
        ('read_skill_resource', {'skill_name': 'adding', 'resource_name': 'scripts/add.py'}),
        ('read_skill_resource', {'skill_name': 'adding', 'resource_name': 'rules'}),
        ('run_skill_script', {'skill_name': 'adding', 'script_name': 'sum.py'}),
        ('run_skill_script', {'skill_name': 'adding', 'script_name': 'add', 'args': {'_': ['two']}}),
        ('run_skill_script', {'skill_name': 'adding', 'script_name': 'add', 'args': {'bad name': 1}}),
        ('run_skill_script', {'skill_name': 'greeting', 'script_name': 'greet', 'args': {'nme': 'Ada', 'times': 'x'}}),
        ('run_skill_script', {'skill_name': 'greeting', 'script_name': 'greet', 'args': ['Ada']}),
        ('run_skill_script', {'skill_name': 'greeting', 'script_name': 'greet', 'args': '{"name": '}),
        ('run_skill_script', {'skill': 'greeting'}),
        ('run_skill_script', '{"skill_name": '),
        ('run_skill_script', {'skill_name': 'greeting', 'script_name': 'greet', 'args': {'name': 'Ada'}}),
        ('run_skill_script', {'skill_name': 'adding', 'script_name': 'add', 'args': ['1', '2']}),
    )
    assert _without_path(script.results, tmp_path) == snapshot(
        [
            ('load_skill', 'failed', "There is no skill 'adder'. The skills are: 'adding', 'greeting'."),
            (
                'load_skill',
                'success',
                """\
<skill name="adding" location="…/adding">
<resources>
references/: rules.md
</resources>
<scripts>
scripts/: add.py
</scripts>
<skill_instructions>
Do it.
</skill_instructions>
</skill>\
""",
            ),
            (
                'read_skill_resource',
                'failed',
                "There is no resource 'docs/rules.md' in skill 'adding'. The resources are: 'references/rules.md'.",
            ),
            ('read_skill_resource', 'success', 'import sys\nprint(sum(map(int, sys.argv[1:])))\n'),
            ('read_skill_resource', 'success', 'Whole numbers.'),
            (
                'run_skill_script',
                'failed',
                "There is no script 'sum.py' in skill 'adding'. The scripts are: 'scripts/add.py'.",
            ),
            (
                'run_skill_script',
                'failed',
                """\
<script_stderr>Traceback (most recent call last):
  File "…/adding/scripts/add.py", line 2, in <module>
    print(sum(map(int, sys.argv[1:])))
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: invalid literal for int() with base 10: 'two'</script_stderr>
Exit code: 1\
""",
            ),
            (
                'run_skill_script',
                'failed',
                '\'bad name\' cannot be the name of an argument. A name is letters, digits, "_", "-" and ".", at most 100 of them, and begins with a letter or digit. Positional arguments go under \'_\'.',
            ),
            (
                'run_skill_script',
                'failed',
                "The arguments for script 'greet' do not fit. name: Field required; times: Input should be a valid integer, unable to parse string as an integer; nme: Extra inputs are not permitted. It takes: name (string), times (integer, optional).",
            ),
            (
                'run_skill_script',
                'failed',
                "The arguments for script 'greet' do not fit. arguments: Input should be a valid dictionary. It takes: name (string), times (integer, optional).",
            ),
            (
                'run_skill_script',
                'failed',
                "The arguments for script 'greet' do not fit: EOF while parsing a value at line 1 column 9",
            ),
            (
                'run_skill_script',
                'failed',
                'The arguments of run_skill_script do not fit. skill_name: Field required; script_name: Field required; skill: Extra inputs are not permitted. It takes: skill_name (string), script_name (string), args (object or array or string or null, optional).',
            ),
            (
                'run_skill_script',
                'failed',
                'The arguments of run_skill_script do not fit. arguments: Invalid JSON: EOF while parsing a value at line 1 column 15. It takes: skill_name (string), script_name (string), args (object or array or string or null, optional).',
            ),
            ('run_skill_script', 'success', 'Hello Ada! '),
            ('run_skill_script', 'success', '3\n'),
        ]
    )


async def test_what_a_script_prints_on_stderr_and_a_failing_exit_code_are_told(tmp_path: Path):
    warn = 'import sys\nprint("out")\nprint("careful </script_stderr>", file=sys.stderr)\nsys.exit(int(sys.argv[1]))\n'
    write_skill(tmp_path / 'noisy', files={'warn.py': warn, 'quiet.py': ''})
    toolset = SkillsToolset(directories=[tmp_path])
    run: Call = ('run_skill_script', {'skill_name': 'noisy', 'script_name': 'warn.py', 'args': ['0']})
    fail: Call = ('run_skill_script', {'skill_name': 'noisy', 'script_name': 'warn.py', 'args': ['3']})
    quiet: Call = ('run_skill_script', {'skill_name': 'noisy', 'script_name': 'quiet.py'})
    assert (await converse(toolset, run, fail, quiet)).results == snapshot(
        [
            (
                'run_skill_script',
                'success',
                """\
<script_stdout>out
</script_stdout>
<script_stderr>careful &lt;/script_stderr></script_stderr>\
""",
            ),
            (
                'run_skill_script',
                'failed',
                """\
<script_stdout>out
</script_stdout>
<script_stderr>careful &lt;/script_stderr></script_stderr>
Exit code: 3\
""",
            ),
            ('run_skill_script', 'success', '(The script printed nothing.)'),
        ]
    )


async def test_a_script_that_takes_too_long_is_stopped_and_what_it_printed_is_told(tmp_path: Path):
    slow = 'import time\nprint("begun", flush=True)\ntime.sleep(60)\n'
    write_skill(tmp_path / 'slow', files={'slow.py': slow})
    toolset = SkillsToolset(directories=[tmp_path], script_executor=LocalSkillScriptExecutor(timeout=6))
    script = await converse(toolset, ('run_skill_script', {'skill_name': 'slow', 'script_name': 'slow.py'}))
    assert script.results == snapshot(
        [
            (
                'run_skill_script',
                'failed',
                """\
The script 'slow.py' was stopped: it did not end within 6 s.
<script_stdout>begun
</script_stdout>
Exit code: 137 (SIGKILL)\
""",
            )
        ]
    )


async def test_a_name_that_two_files_have_is_answered_with_both(tmp_path: Path):
    files: dict[str, str | bytes] = {'a/notes.md': 'a', 'b/notes.md': 'b', 'notes.txt': 't'}
    write_skill(tmp_path / 'alpha', files=files)
    script = await converse(
        SkillsToolset(directories=[tmp_path]),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'notes.md'}),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'c/notes.md'}),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'notes.txt'}),
    )
    assert script.results == snapshot(
        [
            ('read_skill_resource', 'failed', "'notes.md' can mean 'a/notes.md' or 'b/notes.md' in skill 'alpha'."),
            (
                'read_skill_resource',
                'failed',
                "There is no resource 'c/notes.md' in skill 'alpha'. The resources are: 'b/notes.md', 'a/notes.md', 'notes.txt'.",
            ),
            ('read_skill_resource', 'success', 't'),
        ]
    )


async def test_a_long_text_is_read_in_pages(tmp_path: Path):
    text = ''.join(f'line {number}\n' for number in range(10_000))
    write_skill(tmp_path / 'long', files={'book.md': text})
    toolset = SkillsToolset(directories=[tmp_path])
    book = {'skill_name': 'long', 'resource_name': 'book.md'}
    script = await converse(
        toolset,
        *(('read_skill_resource', {**book, 'args': args}) for args in (None, {'page': 2}, '{"page": 3}', {'page': 9})),
    )
    pages = [str(content) for _, _, content in script.results]
    assert [page.rpartition('\n\n')[2] for page in pages] == snapshot(
        [
            '[Page 1 of 3 of \'book.md\', 98,890 characters. Read on with args {"page": 2}.]',
            '[Page 2 of 3 of \'book.md\', 98,890 characters. Read on with args {"page": 3}.]',
            "[Page 3 of 3 of 'book.md', 98,890 characters.]",
            "['book.md' has 3 pages; there is no page 9.]",
        ]
    )
    assert ''.join(page.rpartition('\n\n')[0] for page in pages[:3]) == text


async def test_a_page_that_is_no_number_is_the_first(tmp_path: Path):
    write_skill(tmp_path / 'short', files={'note.md': 'All of it.'})
    ask = '{"skill_name": "short", "resource_name": "note.md", "args": {"page": %s}}'
    calls = [('read_skill_resource', ask % page) for page in ('"x"', 'null', '[]', '1e999', 'NaN')]
    script = await converse(SkillsToolset(directories=[tmp_path]), *calls)
    assert script.results == [('read_skill_resource', 'success', 'All of it.')] * 5


async def test_images_reach_the_model_as_images_and_other_binaries_are_not_offered(tmp_path: Path):
    png = b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR'
    write_skill(tmp_path / 'pictures', files={'logo.png': png, 'data.zip': b'PK\x03\x04\0\0'})
    toolset = SkillsToolset(directories=[tmp_path])
    script = ScriptedModel(
        calls=[
            ('read_skill_resource', {'skill_name': 'pictures', 'resource_name': 'logo.png'}),
            ('read_skill_resource', {'skill_name': 'pictures', 'resource_name': 'data.zip'}),
        ]
    )
    await Agent(script.model, toolsets=[toolset]).run('Look.')
    contents = [
        part.content for message in script.messages for part in message.parts if part.part_kind == 'tool-return'
    ]
    assert contents == [
        BinaryContent(data=png, media_type='image/png'),
        "There is no resource 'data.zip' in skill 'pictures'. The resources are: 'logo.png'.",
    ]


async def test_tools_that_cannot_do_anything_are_not_offered(tmp_path: Path):
    write_skill(tmp_path / 'bare')
    toolset = SkillsToolset(directories=[tmp_path])
    assert (await converse(toolset)).tools == [['list_skills', 'load_skill']]
    assert '_skill_' not in str((await converse(toolset)).instructions)

    @toolset.skill
    def helper() -> str:
        """Helps."""
        return ''

    assert (await converse(toolset)).tools == [['list_skills', 'load_skill']]

    @helper.script
    def help_out() -> str:
        return 'helped'

    later = await converse(toolset, ('run_skill_script', {'skill_name': 'helper', 'script_name': 'help_out'}))
    assert later.tools[0] == ['list_skills', 'load_skill', 'run_skill_script']
    assert later.results == [('run_skill_script', 'success', 'helped')]

    @helper.resource(name='manual', description='How to help.')
    def read_manual() -> str:
        return 'Help.'

    assert 'read_skill_resource' in (await converse(toolset)).tools[0]


async def test_a_folder_of_a_skill_can_be_listed(tmp_path: Path):
    write_skill(tmp_path / 'alpha', files={'refs/a.md': 'A', 'refs/more/b.md': 'B', 'c.md': 'C'})
    listing: Call = ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'refs/'})
    missing: Call = ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'none/'})
    script = await converse(SkillsToolset(directories=[tmp_path]), listing, missing)
    assert script.results[0] == ('read_skill_resource', 'success', 'refs/a.md\nrefs/more/b.md')
    assert script.results[1][1] == 'failed'


async def test_without_skills_there_is_no_block_and_no_tool():
    script = await converse(SkillsToolset(skills=[]))
    assert (script.instructions, script.tools) == ([None], [[]])


async def test_resources_and_scripts_given_to_a_skill_are_used():
    def double(x: int) -> int:
        return x * 2

    skill = Skill(
        'mixed',
        'Has all kinds.',
        'Use them.',
        uri='https://example.com/mixed',
        compatibility='A network.',
        resources=[
            SkillResource('note', content=''),
            SkillResource('now', description='The time.', function=lambda: 12),
        ],
        scripts=[SkillScript('double', function=double)],
    )
    script = await converse(
        SkillsToolset(skills=[skill]),
        ('load_skill', {'skill_name': 'mixed'}),
        ('read_skill_resource', {'skill_name': 'mixed', 'resource_name': 'note'}),
        ('read_skill_resource', {'skill_name': 'mixed', 'resource_name': 'now'}),
        ('run_skill_script', {'skill_name': 'mixed', 'script_name': 'double', 'args': {'x': 21}}),
    )
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="mixed" uri="https://example.com/mixed">Has all kinds.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert script.results == snapshot(
        [
            (
                'load_skill',
                'success',
                """\
<skill name="mixed" uri="https://example.com/mixed">
<compatibility>A network.</compatibility>
<resources>
<resource name="now">The time.</resource>
note
</resources>
<scripts>
<script name="double">{"additionalProperties":false,"properties":{"x":{"type":"integer"}},"required":["x"],"type":"object"}</script>
</scripts>
<skill_instructions>
Use them.
</skill_instructions>
</skill>\
""",
            ),
            ('read_skill_resource', 'success', ''),
            ('read_skill_resource', 'success', 12),
            ('run_skill_script', 'success', 42),
        ]
    )


async def test_a_function_that_fails_is_a_failure_the_model_sees(caplog: pytest.LogCaptureFixture):
    toolset = SkillsToolset(skills=[])

    @toolset.skill
    def fragile() -> str:
        """Breaks."""
        return ''

    @fragile.script
    def divide(by: int) -> float:
        return 1 / by

    script = await converse(
        toolset, ('run_skill_script', {'skill_name': 'fragile', 'script_name': 'divide', 'args': {'by': 0}})
    )
    assert script.results == snapshot(
        [('run_skill_script', 'failed', "The script 'divide' failed with ZeroDivisionError: division by zero")]
    )
    assert 'ZeroDivisionError' in caplog.text


async def test_an_agent_that_a_function_asks_may_fail_but_not_spend_more_than_the_run_may():
    def unavailable(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ModelHTTPError(503, 'busy')

    expert = Agent(FunctionModel(unavailable))
    toolset = SkillsToolset(skills=[Skill('experts', 'Asks.', 'Ask.')])

    @toolset.get_skill('experts').script
    async def ask(ctx: RunContext[object], requests: int) -> str:
        limits = UsageLimits(request_limit=requests)
        return (await expert.run('Well?', usage=ctx.usage, usage_limits=limits)).output

    def asking(requests: int) -> Call:
        args = {'requests': requests}
        return 'run_skill_script', {'skill_name': 'experts', 'script_name': 'ask', 'args': args}

    script = await converse(toolset, asking(50))
    assert script.results == snapshot(
        [
            (
                'run_skill_script',
                'failed',
                "The script 'ask' failed with ModelHTTPError: status_code: 503, model_name: busy, body: None",
            )
        ]
    )
    with pytest.raises(UsageLimitExceeded):
        await converse(toolset, asking(1))


async def test_what_a_function_yields_reaches_the_model():
    toolset = SkillsToolset(skills=[Skill('counter', 'Counts.', 'Count.')])
    counter = toolset.get_skill('counter')

    @counter.resource
    def numbers() -> Any:
        yield from range(3)

    @counter.script
    async def forever() -> Any:
        for number in itertools.count():
            yield number

    @counter.script
    async def letters() -> Any:
        for letter in 'ab':
            yield letter

    @counter.tool_plain
    def broken() -> Any:
        yield 1 / 0

    script = await converse(
        toolset,
        ('load_skill', {'skill_name': 'counter'}),
        ('read_skill_resource', {'skill_name': 'counter', 'resource_name': 'numbers'}),
        ('run_skill_script', {'skill_name': 'counter', 'script_name': 'letters'}),
        ('run_skill_script', {'skill_name': 'counter', 'script_name': 'forever'}),
        ('counter__broken', {}),
    )
    _, read, ended, ran, called = script.results
    assert read == ('read_skill_resource', 'success', [0, 1, 2])
    assert ended == ('run_skill_script', 'success', ['a', 'b'])
    assert ran == ('run_skill_script', 'success', [*range(1000), '(Only the first 1,000 items.)'])
    assert called[1:] == ('failed', "The tool 'counter__broken' failed with ZeroDivisionError: division by zero")


async def test_an_executor_of_ones_own_runs_the_scripts_of_a_directory(tmp_path: Path):
    write_skill(tmp_path / 'remote', files={'scripts/go.py': ''})

    def run_elsewhere(script: SkillScript, args: object) -> str:
        return f'{script.skill_name}/{script.name} with {args}'

    directory = SkillsDirectory(tmp_path, script_executor=CallableSkillScriptExecutor(run_elsewhere))
    script = await converse(
        SkillsToolset(directories=[directory]),
        ('run_skill_script', {'skill_name': 'remote', 'script_name': 'go', 'args': {'fast': True}}),
    )
    assert script.results == [('run_skill_script', 'success', "remote/scripts/go.py with {'fast': True}")]


async def test_an_executor_of_ones_own_may_return_an_iterator(tmp_path: Path):
    write_skill(tmp_path / 'remote', files={'scripts/go.py': ''})

    def run_elsewhere(script: SkillScript, args: list[int]) -> Iterator[int]:
        return iter(args)

    executor = CallableSkillScriptExecutor(run_elsewhere)
    toolset = SkillsToolset(directories=[SkillsDirectory(tmp_path, script_executor=executor)])
    run: Call = ('run_skill_script', {'skill_name': 'remote', 'script_name': 'go', 'args': [1, 2]})
    assert (await converse(toolset, run)).results == [('run_skill_script', 'success', [1, 2])]


async def test_an_executor_of_ones_own_that_fails_does_not_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    write_skill(tmp_path / 'remote', files={'scripts/go.py': ''})

    async def run_elsewhere(script: SkillScript, args: object) -> str:
        raise ConnectionError('The cluster is down.')

    directory = SkillsDirectory(tmp_path, script_executor=CallableSkillScriptExecutor(run_elsewhere))
    script = await converse(
        SkillsToolset(directories=[directory]),
        ('run_skill_script', {'skill_name': 'remote', 'script_name': 'go'}),
    )
    assert script.results == snapshot(
        [
            (
                'run_skill_script',
                'failed',
                "The script 'scripts/go.py' failed with ConnectionError: The cluster is down.",
            )
        ]
    )
    assert 'Traceback' in caplog.text


async def test_scripts_run_in_a_sandbox(tmp_path: Path):
    look = 'import os, pathlib\nprint(pathlib.Path.home().exists(), os.getpid() < 10, sorted(os.listdir("..")))\n'
    write_skill(tmp_path / 'curious', files={'scripts/look.py': look})
    executor = await to_thread.run_sync(BubblewrapSkillScriptExecutor)
    script = await converse(
        SkillsToolset(directories=[tmp_path], script_executor=executor),
        ('run_skill_script', {'skill_name': 'curious', 'script_name': 'look'}),
    )
    ((_, outcome, content),) = script.results
    assert (outcome, str(content).split()[1]) == ('success', 'True')
    assert str(tmp_path) not in str(content)


async def test_scripts_run_in_the_workspace_of_the_agent(tmp_path: Path):
    write_skill(tmp_path / 'skills/adding', files={'scripts/add.py': ADD})
    workspace = tmp_path / 'workspace'
    workspace.mkdir()
    toolset = SkillsToolset(directories=[tmp_path / 'skills'], script_executor=WorkspaceSkillScriptExecutor())
    script = ScriptedModel(
        calls=[
            ('run_skill_script', {'skill_name': 'adding', 'script_name': 'add', 'args': [1, 2]}),
            ('run_skill_script', {'skill_name': 'adding', 'script_name': 'add', 'args': ['x']}),
        ]
    )
    local = await to_thread.run_sync(LocalWorkspace, workspace)
    await Agent(script.model, toolsets=[toolset], capabilities=[local]).run('Go.')
    assert script.results[0] == ('run_skill_script', 'success', '3\n')
    assert script.results[1][1] == 'failed'
    assert list(workspace.rglob('add.py')) != []


async def test_the_capability_gives_an_agent_the_same_as_the_toolset(tmp_path: Path):
    write_skill(tmp_path / 'adding', files={'notes.md': 'x', 'scripts/add.py': ADD})
    as_toolset = await converse(SkillsToolset(directories=[tmp_path]), ('load_skill', {'skill_name': 'adding'}))
    script = await converse(SkillsCapability(directories=[tmp_path]), *as_toolset.calls)
    assert (script.instructions, script.definitions) == (as_toolset.instructions, as_toolset.definitions)
    assert script.received == as_toolset.received


async def test_an_agent_spec_can_name_the_capability(tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    script = ScriptedModel(calls=[('load_skill', {'skill_name': 'alpha'})])
    agent = Agent.from_spec(
        {'model': 'test', 'capabilities': [{'SkillsCapability': {'directories': [str(tmp_path)]}}]},
        custom_capability_types=[SkillsCapability],
    )
    with agent.override(model=script.model):
        await agent.run('Go.')
    assert script.results[0][:2] == ('load_skill', 'success')


def _without_path(results: Any, path: Path) -> Any:
    """Results with the name of the test's own folder left out of their texts."""
    text = json.dumps(results).replace(str(path), '…').replace('~~~^', '^^^^')  # as Python 3.13 marks a call
    return [tuple(result) for result in json.loads(text)]
