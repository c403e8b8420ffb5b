"""Typed tools, word for word: all that a model was told, for each kind of tool and each way to disclose skills."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolCallPart

from tests.capability import test_on_demand
from tests.conversations import converse
from tests.toolset.typed_tools.test_typed_tools import CALLS, Kind

from . import test_typed_tools

pytestmark = pytest.mark.anyio


def told(messages: Sequence[ModelMessage], folder: Path) -> list[str]:
    """The parts of a conversation as lines, after the instructions."""
    lines = [str(messages[0].instructions) if isinstance(messages[0], ModelRequest) else '']
    for part in (part for message in messages for part in message.parts):
        content = part.args if isinstance(part, ToolCallPart) else getattr(part, 'content', '')
        outcome = getattr(part, 'outcome', '')
        lines.append(f'{part.part_kind} {getattr(part, "tool_name", "")} {outcome}: {content}')
    return [line.replace(str(folder), 'SKILLS') for line in lines]


async def with_tools(folder: Path, kind: Kind) -> list[str]:
    script = await converse(test_typed_tools.toolset_of(folder, kind), test_typed_tools.LOAD, *CALLS)
    return told(script.saved, folder)


async def on_demand(folder: Path, kind: Kind) -> list[str]:
    script = await converse(test_on_demand.capability_of(folder, kind), test_on_demand.LOAD, *CALLS)
    return told(script.saved, folder)


async def test_tools_of_a_manifest(tmp_path: Path):
    assert await with_tools(tmp_path, 'manifest') == snapshot(
        [
            """\
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="adder">Adds.</skill>
</available_skills>\
""",
            'user-prompt  : Go.',
            'instruction-baseline  : ',
            "tool-call load_skill : {'skill_name': 'adder'}",
            """\
tool-return load_skill success: <skill name="adder" location="SKILLS/adder">
<scripts>
scripts/: add.py
</scripts>
<skill_instructions>
Call `add`.
</skill_instructions>
</skill>\
""",
            'tool-availability-delta  : ',
            "tool-call adder__add : {'a': 2, 'b': 3}",
            'tool-return adder__add success: 5\n',
            "tool-call adder__add : {'a': 'x'}",
            'tool-return adder__add failed: The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            "tool-call adder__add : {'a': 200}",
            """\
tool-return adder__add failed: <script_stderr>too large</script_stderr>
Exit code: 1\
""",
            'text  : done',
        ]
    )


async def test_tools_of_a_module(tmp_path: Path):
    assert await with_tools(tmp_path, 'module') == snapshot(
        [
            """\
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="adder">Adds.</skill>
</available_skills>\
""",
            'user-prompt  : Go.',
            'instruction-baseline  : ',
            "tool-call load_skill : {'skill_name': 'adder'}",
            """\
tool-return load_skill success: <skill name="adder" location="SKILLS/adder">
<skill_instructions>
Call `add`.
</skill_instructions>
</skill>\
""",
            'tool-availability-delta  : ',
            "tool-call adder__add : {'a': 2, 'b': 3}",
            'tool-return adder__add success: 5\n',
            "tool-call adder__add : {'a': 'x'}",
            'tool-return adder__add failed: The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            "tool-call adder__add : {'a': 200}",
            "tool-return adder__add failed: The tool 'adder__add' failed with ValueError: too large",
            'text  : done',
        ]
    )


async def test_tools_in_python(tmp_path: Path):
    assert await with_tools(tmp_path, 'python') == snapshot(
        [
            """\
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="adder">Adds.</skill>
</available_skills>\
""",
            'user-prompt  : Go.',
            'instruction-baseline  : ',
            "tool-call load_skill : {'skill_name': 'adder'}",
            """\
tool-return load_skill success: <skill name="adder">
<skill_instructions>
Call `add`.
</skill_instructions>
</skill>\
""",
            'tool-availability-delta  : ',
            "tool-call adder__add : {'a': 2, 'b': 3}",
            'tool-return adder__add success: 5\n',
            "tool-call adder__add : {'a': 'x'}",
            'tool-return adder__add failed: The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            "tool-call adder__add : {'a': 200}",
            "tool-return adder__add failed: The tool 'adder__add' failed with ValueError: too large",
            'text  : done',
        ]
    )


async def test_tools_of_a_manifest_on_demand(tmp_path: Path):
    assert await on_demand(tmp_path, 'manifest') == snapshot(
        [
            """\
The following capabilities are deferred and can be loaded using the `load_capability` tool. A capability's tools stay hidden until it is loaded:
- adder: Adds.\
""",
            'user-prompt  : Go.',
            'instruction-baseline  : ',
            "tool-call load_capability : {'id': 'adder'}",
            "tool-return load_capability success: {'message': \"Capability 'adder' loaded. Its instructions, if any, follow.\"}",
            'tool-availability-delta  : ',
            """\
instruction-delta  : <skill name="adder" location="SKILLS/adder">
<scripts>
scripts/: add.py
</scripts>
</skill>

Call `add`.\
""",
            "tool-call adder__add : {'a': 2, 'b': 3}",
            'tool-return adder__add success: 5\n',
            "tool-call adder__add : {'a': 'x'}",
            'tool-return adder__add failed: The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            "tool-call adder__add : {'a': 200}",
            """\
tool-return adder__add failed: <script_stderr>too large</script_stderr>
Exit code: 1\
""",
            'text  : done',
        ]
    )


async def test_tools_of_a_module_on_demand(tmp_path: Path):
    assert await on_demand(tmp_path, 'module') == snapshot(
        [
            """\
The following capabilities are deferred and can be loaded using the `load_capability` tool. A capability's tools stay hidden until it is loaded:
- adder: Adds.\
""",
            'user-prompt  : Go.',
            'instruction-baseline  : ',
            "tool-call load_capability : {'id': 'adder'}",
            "tool-return load_capability success: {'message': \"Capability 'adder' loaded. Its instructions, if any, follow.\"}",
            'tool-availability-delta  : ',
            """\
instruction-delta  : <skill name="adder" location="SKILLS/adder">
</skill>

Call `add`.\
""",
            "tool-call adder__add : {'a': 2, 'b': 3}",
            'tool-return adder__add success: 5\n',
            "tool-call adder__add : {'a': 'x'}",
            'tool-return adder__add failed: The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            "tool-call adder__add : {'a': 200}",
            "tool-return adder__add failed: The tool 'adder__add' failed with ValueError: too large",
            'text  : done',
        ]
    )


async def test_tools_in_python_on_demand(tmp_path: Path):
    assert await on_demand(tmp_path, 'python') == snapshot(
        [
            """\
The following capabilities are deferred and can be loaded using the `load_capability` tool. A capability's tools stay hidden until it is loaded:
- adder: Adds.\
""",
            'user-prompt  : Go.',
            'instruction-baseline  : ',
            "tool-call load_capability : {'id': 'adder'}",
            "tool-return load_capability success: {'message': \"Capability 'adder' loaded. Its instructions, if any, follow.\"}",
            'tool-availability-delta  : ',
            """\
instruction-delta  : <skill name="adder">
</skill>

Call `add`.\
""",
            "tool-call adder__add : {'a': 2, 'b': 3}",
            'tool-return adder__add success: 5\n',
            "tool-call adder__add : {'a': 'x'}",
            'tool-return adder__add failed: The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            "tool-call adder__add : {'a': 200}",
            "tool-return adder__add failed: The tool 'adder__add' failed with ValueError: too large",
            'text  : done',
        ]
    )
