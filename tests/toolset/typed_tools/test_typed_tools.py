"""Typed tools of skills in whole conversations: absent before the skill is loaded, there after it, checked, forgiving."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from anyio import sleep_forever, to_thread
from inline_snapshot import snapshot
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.durable_exec import DurableRunContext
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition

from pydantic_ai_skills import (
    CallableSkillScriptExecutor,
    Skill,
    SkillsCapability,
    SkillScript,
    SkillsDirectory,
    SkillsToolset,
)
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import CONTEXT, skill_md, write
from tests.toolset.test_approvals import Remote

pytestmark = pytest.mark.anyio

Kind = Literal['manifest', 'module', 'python']
KINDS: list[Kind] = ['manifest', 'module', 'python']

HEAD = '---\nname: adder\ndescription: Adds.\n'
MANIFEST = """\
tools:
  add:
    description: Add two numbers.
    script: scripts/add.py
    args:
      a: {type: integer, description: The first.}
      b: {type: integer, default: 1}
"""
SCRIPT = """\
import sys
a, b = map(int, sys.argv[1:])
sys.exit('too large') if a > 100 else print(a + b)
"""
MODULE = '''\
from pydantic_ai_skills import tool

@tool
def add(a: int, b: int = 1) -> str:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    if a > 100:
        raise ValueError('too large')
    return f'{a + b}\\n'
'''

LOAD: Call = ('load_skill', {'skill_name': 'adder'})
CALLS: list[Call] = [('adder__add', {'a': 2, 'b': 3}), ('adder__add', {'a': 'x'}), ('adder__add', {'a': 200})]


def adder(folder: Path, kind: Kind) -> list[Any]:
    """Skills and directories for a skill that adds."""
    if kind == 'python':
        skill = Skill('adder', 'Adds.', 'Call `add`.')

        @skill.tool_plain
        def add(a: int, b: int = 1) -> str:
            """Add two numbers."""
            if a > 100:
                raise ValueError('too large')
            return f'{a + b}\n'

        return [[skill], []]
    head = f'{HEAD}{MANIFEST if kind == "manifest" else ""}---\nCall `add`.'
    files = {'scripts/add.py': SCRIPT} if kind == 'manifest' else {'tools.py': MODULE}
    write(folder / 'adder', {'SKILL.md': head, **files})
    return [[], [folder]]


def toolset_of(folder: Path, kind: Kind) -> SkillsToolset[Any]:
    skills, directories = adder(folder, kind)
    return SkillsToolset(skills=skills, directories=directories)


@pytest.mark.parametrize('kind', KINDS)
async def test_tools_appear_with_their_skill_and_come_back_with_the_conversation(tmp_path: Path, kind: Kind):
    toolset = toolset_of(tmp_path, kind)
    script = await converse(toolset, LOAD, *CALLS)
    history = script.saved
    before, *after = script.tools
    assert 'adder__add' not in before
    assert after == [[*before, 'adder__add']] * 4
    assert script.definitions['adder__add']['description'] == 'Add two numbers.'
    assert script.definitions['adder__add']['parameters']['properties']['a']['type'] == 'integer'
    assert script.results[1:3] == snapshot(
        [
            ('adder__add', 'success', '5\n'),
            (
                'adder__add',
                'failed',
                'The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            ),
        ]
    )
    _, outcome, content = script.results[3]
    assert outcome == 'failed'
    assert 'too large' in content

    fresh = await converse(toolset)
    assert fresh.tools == [before]
    resumed = await converse(toolset_of(tmp_path, kind), CALLS[0], history=history)
    assert resumed.tools == [[*before, 'adder__add']] * 2
    assert resumed.results[-1] == ('adder__add', 'success', '5\n')


async def test_what_another_toolset_loaded_can_be_loaded_here_too(tmp_path: Path):
    history = (await converse(toolset_of(tmp_path, 'python'), LOAD)).saved
    skills, _ = adder(tmp_path, 'python')
    script = await converse(SkillsToolset(skills=skills, id='second'), LOAD, CALLS[0], history=history)
    first, second, result = script.results
    assert first == second
    assert result == ('adder__add', 'success', '5\n')


async def test_a_toolset_keeps_tools_deferred_until_their_skill_is_loaded(tmp_path: Path):
    script = await converse(toolset_of(tmp_path, 'python'), *[CALLS[0]] * 4, LOAD, CALLS[0])
    assert ['adder__add' in tools for tools in script.tools] == [False] * 5 + [True] * 2
    assert script.results[3][1:] == snapshot(
        (
            'retried',
            "Tool 'adder__add' is not available yet: search for it first, then call it again once you've seen its schema.",
        )
    )
    assert script.results[-1] == ('adder__add', 'success', '5\n')


@pytest.mark.parametrize('kind', ['manifest', 'python'])
@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_a_capability_answers_a_call_before_the_load_as_often_as_it_takes(
    tmp_path: Path, kind: Kind, disclosure: Any
):
    skills, directories = adder(tmp_path, kind)
    capability = SkillsCapability(skills=skills, directories=directories, disclosure=disclosure)
    load: Call = LOAD if disclosure == 'tools' else ('load_capability', {'id': 'adder'})
    script = await converse(capability, *[CALLS[0]] * 4, load, CALLS[0])
    assert ['adder__add' in tools for tools in script.tools] == [False] * 5 + [True] * 2
    assert 'search_tools' not in str(script.tools)
    assert load[0] in script.results[3][2]
    if disclosure == 'tools':
        assert script.results[3][1:] == snapshot(
            ('failed', "The skill 'adder' is not loaded. Call `load_skill` with skill_name 'adder' first.")
        )
    assert script.results[-1] == ('adder__add', 'success', '5\n')


async def test_a_search_finds_a_tool_that_still_waits_for_its_skill(tmp_path: Path):
    search: Call = ('search_tools', {'queries': ['add']})
    script = await converse(toolset_of(tmp_path, 'python'), search, CALLS[0])
    assert script.results[-1] == snapshot(
        ('adder__add', 'failed', "The skill 'adder' is not loaded. Call `load_skill` with skill_name 'adder' first.")
    )


async def test_a_toolset_that_is_deferred_as_a_whole_reveals_the_tools_of_a_loaded_skill(tmp_path: Path):
    skills, _ = adder(tmp_path, 'python')
    toolset = SkillsToolset(skills=skills)
    script = await converse(toolset.defer_loading(), ('search_tools', {'queries': ['skill']}), LOAD, CALLS[0])
    assert script.tools[0] == []
    assert '`' not in (script.instructions[0] or '')
    assert '`load_skill`' in str(script.messages)
    assert script.results[-1] == ('adder__add', 'success', '5\n')


async def test_instructions_do_not_name_a_tool_that_was_filtered_out(tmp_path: Path):
    skills, _ = adder(tmp_path, 'python')
    toolset = SkillsToolset(skills=skills)
    script = await converse(toolset.filtered(lambda ctx, tool: tool.name != 'load_skill'))
    assert script.tools[0] == ['list_skills']
    assert script.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
These skills are available.

<available_skills>
<skill name="adder">Adds.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")


async def test_all_kinds_mix_in_one_skill_and_each_name_is_used_once(tmp_path: Path):
    adder(tmp_path, 'manifest')
    write(tmp_path / 'adder', {'tools.py': MODULE + '\n@tool\ndef subtract(a: int) -> int:\n    return -a\n'})
    toolset = SkillsToolset(directories=[tmp_path])
    await to_thread.run_sync(lambda: toolset.skills)
    toolset.get_skill('adder').tool_plain(name='multiply-all')(lambda: 'x')
    script = await converse(toolset, LOAD, CALLS[0])
    assert script.tools[-1][-3:] == ['adder__multiply_all', 'adder__add', 'adder__subtract']
    assert [(problem.code, problem.message) for problem in toolset.problems] == snapshot(
        [('tool-name-clash', "The tool 'add' is left out: another tool is called 'adder__add' already.")]
    )
    # Another conversation can know of those only that need no import.
    other = await converse(toolset, ('search_tools', {'queries': ['adder']}))
    assert ('adder__add' in str(other.results), 'adder__subtract' in str(other.results)) == (True, False)


async def test_tools_added_while_the_toolset_is_in_use_are_there_at_once():
    skill = Skill('adder', 'Adds.', 'Add.')
    toolset = SkillsToolset(skills=[skill])
    history = (await converse(toolset, LOAD)).saved

    @skill.tool
    def late(ctx: RunContext[Any]) -> str:
        return f'call {ctx.tool_name}'

    script = await converse(toolset, ('adder__late', {}), history=history)
    assert script.results[-1] == ('adder__late', 'success', 'call adder__late')


# --- Declared in the frontmatter ----------------------------------------------------------------------------------

ECHO = 'import json, sys\nprint(json.dumps([sys.argv[1:], sys.stdin.read()]))'
ARGS = """\
      text: string
      n: {type: number, required: false}
      tags: {type: array, items: {type: string, enum: [x, y]}, required: false}
      more: {type: object, required: false}
      size: {type: integer, enum: [1, 2], required: false}
      loud: {type: boolean, required: false}
      rows: {type: array, items: array, required: false}
"""


@pytest.mark.parametrize(
    ('passing', 'args', 'expected'),
    [
        ('positional', {'text': 'a b', 'n': -1.5, 'tags': ['x', 'y']}, '[["a b", "-1.5", "x", "y"], ""]'),
        ('positional', {'text': '', 'n': None}, '[[""], ""]'),
        ('positional', {'text': 'a', 'tags': ['x']}, "'tags' cannot be given without 'n', which comes before it."),
        ('positional', {'text': '--help'}, "The value of 'text' begins with a dash, which the script would read as"),
        ('positional', {'text': '-5'}, '[["-5"], ""]'),
        ('positional', {'text': '-1E-5'}, '[["-1E-5"], ""]'),
        ('positional', {'text': '-'}, '[["-"], ""]'),
        ('positional', {'text': 'a', 'tags': ['z']}, "tags.0: Input should be 'x' or 'y'"),
        ('flags', {'text': '-a', 'tags': ['x', 'y'], 'loud': True}, '[["--text=-a", "--tags", "x", "--tags", "y", "--loud"], ""]'),
        ('flags', {'text': 'a', 'more': {'b': [1]}}, r'[["--text", "a", "--more", "{\"b\": [1]}"], ""]'),
        ('json-stdin', {'text': 'ä', 'more': {'b': 1}}, r'[[], "{\"text\": \"\u00e4\", \"more\": {\"b\": 1}}"]'),
        ('flags', {'text': 'a', 'size': 2}, '[["--text", "a", "--size", "2"], ""]'),
        ('flags', {'text': 'a', 'rows': [[1, 2], ['x']]}, r'[["--text", "a", "--rows", "[1, 2]", "--rows", "[\"x\"]"], ""]'),
        ('positional', {'text': 'a', 'n': 1, 'tags': [], 'more': {}, 'size': 1, 'loud': False, 'rows': [[1], []]}, '[["a", "1.0", "{}", "1", "false", "[1]", "[]"], ""]'),
        ('flags', {'text': 'a', 'size': 3}, 'size: Input should be 1 or 2'),
        ('flags', {'text': 'a', 'speed': 1}, 'speed: Extra inputs are not permitted'),
    ],
)  # fmt: skip
async def test_arguments_reach_the_script_as_declared(tmp_path: Path, passing: str, args: Any, expected: str):
    head = f'{HEAD}tools:\n  echo:\n    script: echo.py\n    pass: {passing}\n    args:\n{ARGS}---\n'
    write(tmp_path / 'adder', {'SKILL.md': head, 'echo.py': ECHO})
    script = await converse(SkillsToolset(directories=[tmp_path]), LOAD, ('adder__echo', args))
    assert expected in script.results[-1][2]


@pytest.mark.parametrize('trusted', [True, False])
async def test_the_items_of_every_array_are_told_since_providers_refuse_a_schema_without(tmp_path: Path, trusted: bool):
    args = 'args: {any: array, rows: {type: array, items: array}, names: {type: array, items: string}}'
    head = f'{HEAD}tools:\n  echo: {{script: echo.py, pass: json-stdin, {args}}}\n---\n'
    write(tmp_path / 'adder', {'SKILL.md': head, 'echo.py': ECHO})
    registry = Remote(SkillsDirectory(tmp_path), trusted=trusted)
    script = await converse(SkillsToolset(registries=[registry], script_policy='allow'), LOAD)
    simple = {'anyOf': [{'type': 'string'}, {'type': 'number'}, {'type': 'boolean'}]}
    names: dict[str, Any] = {'type': 'string'} if trusted else simple
    rows: dict[str, Any] = {'type': 'array', 'items': simple} if trusted else simple
    assert script.definitions['adder__echo']['parameters']['properties'] == {
        'any': {'type': 'array', 'items': simple},
        'rows': {'type': 'array', 'items': rows},
        'names': {'type': 'array', 'items': names},
    }


async def test_any_file_of_the_skill_can_be_a_tool_and_one_that_is_missing_is_a_problem(tmp_path: Path):
    tools = (
        'tools:\n  run: {script: lib/run.py}\n  gone: {script: gone.py}\n  where: {script: lib/run.py, timeout: 9}\n'
    )
    folder = write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}{tools}---\n', 'lib/run.py': 'print("ran")'})
    toolset = SkillsToolset(directories=[tmp_path])
    script = await converse(toolset, LOAD, ('adder__run', {}), ('adder__where', {}))
    assert [result[2] for result in script.results[1:]] == ['ran\n', 'ran\n']
    assert [str(problem) for problem in toolset.problems] == [
        f"{folder}: warning [tool-script-missing] The tool 'gone' is left out: the skill has no file 'gone.py'."
    ]
    (folder / 'gone.py').write_text('print("here")')
    await to_thread.run_sync(toolset.reload)
    assert toolset.problems == []
    script = await converse(toolset, LOAD, ('adder__gone', {}))
    assert script.results[-1] == ('adder__gone', 'success', 'here\n')


async def test_a_skill_from_text_runs_the_scripts_it_is_given():
    skill = Skill[Any].from_text(
        f'{HEAD}tools:\n  run: {{script: run.py, timeout: 1}}\n  no: {{script: no}}\n---\nDo it.'
    )

    def run(script: SkillScript, args: Any) -> str:
        return f'{script.name} {args}'

    executor = CallableSkillScriptExecutor(run)
    skill.scripts.append(SkillScript('run.py', uri='/nowhere/run.py', executor=executor))
    script = await converse(SkillsToolset(skills=[skill]), LOAD, ('adder__run', {}))
    assert script.results[-1] == ('adder__run', 'success', 'run.py []')


async def test_a_tool_has_its_own_time_limit(tmp_path: Path):
    tools = 'tools:\n  nap: {script: nap.py, timeout: 0.2}\n'
    write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}{tools}---\n', 'nap.py': 'import time; time.sleep(60)'})
    script = await converse(SkillsToolset(directories=[tmp_path]), LOAD, ('adder__nap', {}))
    assert script.results[-1][1] == 'failed'
    assert 'did not end within 0.2 s' in script.results[-1][2]


async def test_a_declared_tool_obeys_the_policy(tmp_path: Path):
    adder(tmp_path, 'manifest')
    denied = SkillsToolset(directories=[tmp_path], script_policy='deny')
    script = await converse(denied, LOAD, CALLS[0])
    assert script.results[-1][1:] == snapshot(
        ('failed', "The script 'scripts/add.py' of skill 'adder' may not be run here, so carry on without it.")
    )
    stranger = SkillsToolset(registries=[Remote(SkillsDirectory(tmp_path), trusted=False)])
    script = await converse(stranger, LOAD, CALLS[0])
    assert script.results[-1][1] == 'failed'
    assert 'code of strangers runs in a sandbox only' in script.results[-1][2]


async def test_a_declared_tool_asks_a_person_for_the_exact_command(tmp_path: Path):
    tools = 'tools:\n  go: {script: go.py, args: {name: string}, requires_approval: true}\n'
    write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}{tools}---\n', 'go.py': 'import sys; print(sys.argv[1])'})
    script = ScriptedModel(calls=[LOAD, ('adder__go', {'name': 'x y'})])
    toolset = SkillsToolset(directories=[tmp_path])
    agent = Agent(script.model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    result = await agent.run('Go.')
    assert isinstance(result.output, DeferredToolRequests)
    ((call_id, metadata),) = result.output.metadata.items()
    assert metadata['command'].endswith("adder/go.py 'x y'")
    approved = DeferredToolResults(approvals={call_id: True})
    await agent.run(message_history=result.all_messages(), deferred_tool_results=approved)
    assert script.results[-1] == ('adder__go', 'success', 'x y\n')


# --- In `tools.py` ------------------------------------------------------------------------------------------------


async def test_a_function_with_two_names_is_one_tool(tmp_path: Path):
    write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}---\nCall `add`.', 'tools.py': f'{MODULE}\nplus = add\n'})
    toolset = SkillsToolset(directories=[tmp_path])
    script = await converse(toolset, LOAD, *CALLS)
    assert [name for name in script.tools[-1] if name.startswith('adder__')] == ['adder__add']
    assert await to_thread.run_sync(lambda: toolset.problems) == []


async def test_a_private_name_is_not_offered(tmp_path: Path):
    private = MODULE.replace('def add', 'def _add')
    write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}---\nCall `plus`.', 'tools.py': f'{private}\nplus = _add\n'})
    write(tmp_path / 'hidden', {'SKILL.md': skill_md('hidden'), 'tools.py': private})
    script = await converse(SkillsToolset(directories=[tmp_path]), LOAD, ('load_skill', {'skill_name': 'hidden'}))
    assert [name for name in script.tools[-1] if '__' in name] == ['adder___add']


async def test_a_module_is_imported_when_its_skill_is_first_loaded_and_again_when_it_has_changed(tmp_path: Path):
    log = tmp_path / 'log'
    seen = f'with open({str(log)!r}, "a") as log:\n    log.write("x")\n'
    module = f'import pydantic_ai_skills as s\n{seen}@s.tool\ndef one() -> int:\n    return 1\n'
    folder = write(tmp_path / 'skills' / 'adder', {'SKILL.md': f'{HEAD}---\nCall `one`.', 'tools.py': module})
    toolset = SkillsToolset(directories=[tmp_path / 'skills'])
    await converse(toolset)
    assert not log.exists()
    script = await converse(toolset, LOAD, LOAD)
    assert log.read_text() == 'x'
    assert 'tools.py' not in script.results[0][2]

    (folder / 'tools.py').write_text(module.replace('def one', 'def number_two'))
    script = await converse(toolset, LOAD)
    assert script.tools[-1][-1] == 'adder__number_two'
    assert log.read_text() == 'xx'


async def test_tool_objects_keep_what_they_say_and_files_beside_the_module_can_be_imported(tmp_path: Path):
    module = """
from __future__ import annotations
from pydantic import BaseModel
from pydantic_ai import RunContext, Tool
from pydantic_ai_skills import tool
from .helper import shout

class Word(BaseModel):
    text: str

async def hide(ctx, tool_def):
    return None

def say(ctx: RunContext[str], word: Word) -> str:
    return shout(word.text) + ctx.deps

strict = Tool(say, strict=True, metadata={'a': 1}, max_retries=7, sequential=True, timeout=5, defer_loading=True)
hidden = Tool(say, name='hidden', prepare=hide)

@tool(name='other', description='Another.', requires_approval=True)
def some_function(x: int) -> int: return x
"""
    helper = 'def shout(text): return text.upper()'
    write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}---\n', 'tools.py': module, 'helper.py': helper})
    toolset = SkillsToolset[str](directories=[tmp_path])
    script = ScriptedModel(calls=[LOAD, ('adder__say', {'text': 'hi'})])
    result = await Agent(script.model, toolsets=[toolset], deps_type=str).run('Go.', deps='!')
    assert script.results[-1] == ('adder__say', 'success', 'HI!')
    tools = await toolset.get_tools(replace(CONTEXT, messages=result.all_messages()))
    say, other = tools['adder__say'], tools['adder__other']
    definition = say.tool_def
    assert (definition.strict, definition.metadata, definition.sequential, definition.timeout, say.max_retries) == (
        True,
        {'a': 1},
        True,
        5,
        7,
    )
    assert (definition.defer_loading, definition.toolset_id) == (False, 'skills')
    assert (other.tool_def.kind, other.tool_def.description) == ('unapproved', 'Another.')
    assert 'adder__hidden' not in tools


@pytest.mark.parametrize(
    ('module', 'last_line'),
    [
        ('import pydantic_ai_skills, missing_module', "ModuleNotFoundError: No module named 'missing_module'"),
        ('import pydantic_ai_skills\nraise SystemExit(3)', 'SystemExit: 3'),
        ('import pydantic_ai_skills\ndef f(:', 'SyntaxError: invalid syntax'),
        ('from pydantic_ai_skills import tool\n@tool\ndef f(x: nothing) -> int: ...', "NameError: name 'nothing' is not defined"),
    ],
)  # fmt: skip
async def test_a_module_that_cannot_be_imported_is_a_tool_failure_and_a_log_entry(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, module: str, last_line: str
):
    folder = write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}---\n', 'tools.py': module})
    toolset = SkillsToolset(directories=[tmp_path])
    with caplog.at_level(logging.ERROR):
        script = await converse(toolset, LOAD)
    assert script.results == [('load_skill', 'failed', f"The tools of skill 'adder' cannot be imported: {last_line}")]
    (record,) = caplog.records
    assert record.exc_info
    assert 'Traceback' in caplog.text
    problems = await to_thread.run_sync(lambda: toolset.problems)
    assert [(problem.path, problem.code) for problem in problems] == [(f'{folder}/tools.py', 'import-failed')]
    assert last_line in problems[0].message
    up_front = SkillsToolset[Any](directories=[tmp_path])
    await up_front.load(tools=True)
    assert await to_thread.run_sync(lambda: up_front.problems) == problems

    (folder / 'tools.py').write_text(MODULE)
    script = await converse(toolset, LOAD, CALLS[0])
    assert script.results[-1] == ('adder__add', 'success', '5\n')
    assert await to_thread.run_sync(lambda: toolset.problems) == []


async def test_a_resumed_conversation_goes_on_without_a_module_that_is_broken_now(tmp_path: Path):
    toolset = toolset_of(tmp_path, 'module')
    history = (await converse(toolset, LOAD)).saved
    (tmp_path / 'adder/tools.py').write_text('import pydantic_ai_skills, gone')
    script = await converse(SkillsToolset(directories=[tmp_path]), history=history)
    assert 'adder__add' not in script.tools[0]
    (tmp_path / 'adder/tools.py').unlink()
    script = await converse(SkillsToolset(directories=[tmp_path]), history=history)
    assert 'adder__add' not in script.tools[0]
    (tmp_path / 'adder/SKILL.md').unlink()
    script = await converse(SkillsToolset(directories=[tmp_path]), history=history)
    assert script.tools == [[]]


async def test_a_module_that_is_broken_now_does_not_take_the_other_tools_along(tmp_path: Path):
    head = f'{HEAD}{MANIFEST}---\nCall `add`.'
    module = write(tmp_path / 'adder', {'SKILL.md': head, 'scripts/add.py': SCRIPT}) / 'tools.py'
    module.write_text(MODULE.replace('def add', 'def plus'))
    history = (await converse(SkillsToolset(directories=[tmp_path]), LOAD)).saved
    module.write_text('import pydantic_ai_skills, gone')
    script = await converse(SkillsToolset(directories=[tmp_path]), CALLS[0], history=history)
    assert script.tools[0][4:] == ['adder__add']
    assert script.results[-1] == ('adder__add', 'success', '5\n')


async def test_a_module_that_breaks_between_a_request_and_the_call_does_not_end_the_run(tmp_path: Path):
    toolset = toolset_of(tmp_path, 'module')
    history = (await converse(toolset, LOAD)).saved
    calls = [CALLS[2]]

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not calls:
            return ModelResponse(parts=[TextPart('done')])
        (tmp_path / 'adder/tools.py').write_text('import pydantic_ai_skills, gone')
        await converse(toolset, LOAD)
        return ModelResponse(parts=[ToolCallPart(*calls.pop())])

    result = await Agent(FunctionModel(respond), toolsets=[toolset]).run('Go.', message_history=history)
    (returned,) = (part for part in result.new_messages()[-2].parts if isinstance(part, ToolReturnPart))
    assert returned.content == "The tool 'adder__add' failed with ValueError: too large"


async def test_a_module_is_compiled_as_python_would(tmp_path: Path):
    module = """\
from pydantic import BaseModel
from pydantic_ai_skills import tool

def make():
    class Query(BaseModel):
        text: str

    @tool
    def search(query: Query) -> str:
        return query.text

    return search

search = make()
"""
    write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}---\n', 'tools.py': module})
    toolset = SkillsToolset(directories=[tmp_path])
    script = await converse(toolset, LOAD, ('adder__search', {'text': 'found'}))
    assert script.results[-1] == ('adder__search', 'success', 'found')


@pytest.mark.parametrize('trusted', [True, False])
async def test_a_module_from_a_stranger_is_not_imported(tmp_path: Path, trusted: bool):
    adder(tmp_path, 'module')
    toolset = SkillsToolset(registries=[Remote(SkillsDirectory(tmp_path), trusted=trusted).prefixed('my-')])
    script = await converse(toolset, ('load_skill', {'skill_name': 'my-adder'}))
    assert ('my_adder__add' in script.tools[-1]) is trusted
    assert [problem.code for problem in toolset.problems] == ([] if trusted else ['tools-refused'])
    assert script.results[0][1] == 'success'


async def test_a_file_called_tools_that_brings_none_is_a_script(tmp_path: Path):
    write(tmp_path / 'adder', {'SKILL.md': f'{HEAD}---\n', 'tools.py': 'print("a script")'})
    run: Call = ('run_skill_script', {'skill_name': 'adder', 'script_name': 'tools.py'})
    script = await converse(SkillsToolset(directories=[tmp_path]), LOAD, run)
    assert script.results[-1] == ('run_skill_script', 'success', 'a script\n')


async def test_a_module_that_goes_away_between_two_looks_is_a_tool_failure(tmp_path: Path):
    adder(tmp_path, 'module')
    toolset = SkillsToolset(directories=[tmp_path])

    module = tmp_path / 'adder/tools.py'

    def look() -> None:
        assert toolset.get_skill('adder').files.tools_module

    await to_thread.run_sync(look)
    module.unlink()
    module.mkdir()
    script = await converse(toolset, LOAD)
    assert script.results == snapshot(
        [('load_skill', 'failed', "The tools of skill 'adder' cannot be read: 'tools.py' is not a regular file.")]
    )
    module.rmdir()
    script = await converse(toolset, LOAD)
    assert (script.results[0][1], script.tools[-1]) == ('success', ['list_skills', 'load_skill'])


# --- Written in Python --------------------------------------------------------------------------------------------


async def test_a_function_that_wants_to_end_the_program_is_a_tool_failure():
    skill = Skill('adder', 'Adds.', 'Add.')

    @skill.tool_plain
    def leave() -> None:
        raise SystemExit(3)

    @skill.script
    async def stop() -> None:
        raise SystemExit('bye')

    run: Call = ('run_skill_script', {'skill_name': 'adder', 'script_name': 'stop'})
    script = await converse(SkillsToolset(skills=[skill]), LOAD, ('adder__leave', {}), run)
    assert script.results[1:] == snapshot(
        [
            ('adder__leave', 'failed', "The tool 'adder__leave' failed with SystemExit: 3"),
            ('run_skill_script', 'failed', "The script 'stop' failed with SystemExit: bye"),
        ]
    )


async def test_a_function_that_takes_too_long_costs_no_retries():
    skill = Skill('adder', 'Adds.', 'Add.')

    @skill.tool_plain(timeout=0.01)
    async def wait() -> None:
        await sleep_forever()

    call: Call = ('adder__wait', {})
    script = await converse(SkillsToolset(skills=[skill]), LOAD, call, call, call)
    assert script.results[1:] == [('adder__wait', 'failed', 'Timed out after 0.01 seconds.')] * 3


async def test_what_a_tool_says_to_pydantic_ai_is_kept():
    skill = Skill('adder', 'Adds.', 'Add.', tools=[Tool(lambda: 'x', name='given', description='Given.')])

    @skill.tool(requires_approval=True)
    def risky(ctx: RunContext[Any]) -> str:
        return 'done'

    @skill.tool_plain(max_retries=2)
    def picky(n: int) -> str:
        if n < 2:
            raise ModelRetry('More.')
        return 'enough'

    script = ScriptedModel(
        calls=[LOAD, ('adder__picky', {'n': 0}), ('adder__picky', {'n': 1}), ('adder__picky', {'n': 2}), ('adder__risky', {})]
    )  # fmt: skip
    toolset = SkillsToolset(skills=[skill])
    agent = Agent(script.model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    result = await agent.run('Go.')
    assert isinstance(result.output, DeferredToolRequests)
    assert [call.tool_name for call in result.output.approvals] == ['adder__risky']
    assert script.results[-1] == ('adder__picky', 'success', 'enough')


async def test_a_tool_whose_name_no_provider_takes_is_left_out():
    skill = Skill('a' * 50, 'Adds.', 'Add.')
    skill.tool_plain(name='b' * 13)(lambda: None)
    skill.tool_plain(name='two words')(lambda: None)
    skill.tool_plain(name='fine')(lambda: None)
    toolset = SkillsToolset(skills=[skill])
    script = await converse(toolset, ('load_skill', {'skill_name': 'a' * 50}))
    assert script.tools[-1][-1] == f'{"a" * 50}__fine'
    assert [problem.code for problem in toolset.problems] == ['tool-name-too-long', 'tool-invalid']


# --- For durable engines ------------------------------------------------------------------------------------------


async def test_tools_can_be_made_up_front(tmp_path: Path):
    adder(tmp_path, 'module')
    write(tmp_path / 'broken', {'SKILL.md': '---\nname: broken\ndescription: x\n---\n', 'tools.py': 'pydantic_ai'})
    toolset = SkillsToolset(directories=[tmp_path])
    await toolset.load(tools=True)
    definition = ToolDefinition(name='adder__add')
    tool = toolset.tool_for_tool_def(definition, ctx=CONTEXT)
    assert await toolset.call_tool('adder__add', {'a': 1}, CONTEXT, tool) == '2\n'
    own = toolset.tool_for_tool_def(ToolDefinition(name='list_skills'), ctx=CONTEXT)
    assert await toolset.call_tool('list_skills', {}, CONTEXT, own) == {'adder': 'Adds.', 'broken': 'x'}


async def test_a_step_of_a_durable_engine_has_no_messages_and_needs_none(tmp_path: Path):
    toolset = toolset_of(tmp_path, 'module')
    step = DurableRunContext[Any](
        deps=None, run_id='x', retries={}, retry=0, max_retries=1, tool_call_id='call', tool_name='load_skill'
    )
    tools = await toolset.get_tools(step)
    assert list(tools) == ['list_skills', 'load_skill']
    returned = await toolset.call_tool('load_skill', {'skill_name': 'adder'}, step, tools['load_skill'])
    assert 'Call `add`.' in returned.return_value


async def test_a_call_that_asked_for_no_skill_loads_none_without_metadata():
    skill = Skill('adder', 'Adds.', 'Add.')
    skill.tool_plain(name='add')(lambda: None)
    toolset = SkillsToolset(skills=[skill])
    history = (await converse(toolset, LOAD)).saved
    for message in history:
        if isinstance(message, ModelResponse):
            message.parts = [
                ToolCallPart(part.tool_name, '[]', tool_call_id=part.tool_call_id, tool_kind=part.tool_kind)
                if isinstance(part, ToolCallPart)
                else part
                for part in message.parts
            ]
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                part.metadata = None
    script = await converse(SkillsCapability(skills=[skill]), history=history)
    assert 'adder__add' not in script.tools[0]
