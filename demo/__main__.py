"""Watch an agent use the skills in `examples/skills`. Offline, unless `--model` names a real model."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import SkillsToolset

SKILLS = Path(__file__).parent.parent / 'examples/skills'
QUESTION = 'A marathon is 26.2 miles. How many kilometres is that, to two decimal places?'

BOLD, DIM, BLUE, GREEN, MAGENTA, YELLOW = '1', '2', '34', '32', '35', '33'
SHOWN_LINES = 40
"""A longer text is cut here in the terminal; the model always gets all of it."""


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a model: decide on the next step from what the tools have returned so far."""
    returned = {
        part.tool_name: part
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    if 'list_skills' not in returned:
        return call('I will see which skills there are.', 'list_skills')

    skill = skill_for('convert', returned['list_skills'].model_response_str())
    if 'load_skill' not in returned:
        return call(f'{skill!r} fits. I will load it.', 'load_skill', skill_name=skill)

    manual = returned['load_skill'].model_response_str()
    reference, script = first(r'references/[\w.-]+', manual), first(r'scripts/[\w.-]+', manual)
    if 'read_skill_resource' not in returned:
        return call(
            'It tells me to look up the symbols of the units first.',
            'read_skill_resource',
            skill_name=skill,
            resource_name=reference,
        )

    units = returned['read_skill_resource'].model_response_str()
    symbols = [first(rf'\| (\w+) \| {unit} \|', units) for unit in ('mile', 'kilometre')]
    if 'run_skill_script' not in returned:
        return call(
            'Now I can run its script.',
            'run_skill_script',
            skill_name=skill,
            script_name=script,
            args={'_': ['26.2', *symbols], 'digits': 2},
        )

    line = first(r'26\.2 .* = .*', returned['run_skill_script'].model_response_str())
    return ModelResponse(parts=[TextPart(f'The converter says: {line} (rounded).')])


def skill_for(verb: str, listed: str) -> str:
    """The first skill whose description starts with what is to be done."""
    skills: dict[str, str] = json.loads(listed)
    fitting = [name for name, description in skills.items() if description.casefold().startswith(verb)]
    assert fitting, f'No skill says that it can {verb}: {listed}'
    return fitting[0]


def call(thought: str, tool: str, **args: Any) -> ModelResponse:
    """Say something and call a tool."""
    return ModelResponse(parts=[TextPart(thought), ToolCallPart(tool, args)])


def first(pattern: str, text: str) -> str:
    """The pattern's last group, or all of it, where it is first found."""
    match = re.search(pattern, text)
    assert match, f'{pattern!r} is not in:\n{text}'
    return match[match.lastindex or 0]


def shown(message: ModelMessage) -> Iterator[str]:
    """The blocks of text to print for a message."""
    for part in message.parts:
        match part:
            case UserPromptPart():
                yield block('user', str(part.content), BLUE)
            case TextPart():
                yield block('model', part.content, GREEN)
            case ToolCallPart():
                args = ', '.join(f'{name}={value!r}' for name, value in part.args_as_dict().items())
                yield block('model calls', f'{part.tool_name}({args})', YELLOW)
            case ToolReturnPart():
                yield block(f'result of {part.tool_name}', readable(part.model_response_str()), MAGENTA)
            case _:
                pass


def readable(text: str) -> str:
    """JSON with a line for each item; other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def block(title: str, text: str, colour: str) -> str:
    """A titled, indented piece of the conversation, in lines that fit the terminal."""
    width = min(shutil.get_terminal_size().columns, 100)
    lines = [
        piece
        for line in text.strip().splitlines()
        for piece in textwrap.wrap(line, width, initial_indent='  ', subsequent_indent='  ') or ['']
    ]
    if len(lines) > SHOWN_LINES:
        lines[SHOWN_LINES:] = [painted(f'  … {len(lines) - SHOWN_LINES} more lines', DIM)]
    heading = painted(f'── {title} '.ljust(width, '─'), BOLD, colour)
    return '\n'.join((heading, *lines, ''))


def painted(text: str, *codes: str) -> str:
    """Colour on a terminal, or where FORCE_COLOR asks for it; plain text elsewhere."""
    wanted = os.environ.get('FORCE_COLOR') or (sys.stdout.isatty() and not os.environ.get('NO_COLOR'))
    return f'\x1b[{";".join(codes)}m{text}\x1b[0m' if wanted else text


async def converse(model: Model) -> None:
    """Ask the question and print each message as it comes."""
    agent = Agent(model, toolsets=[SkillsToolset(directories=[SKILLS])])
    printed = 0
    async with agent.iter(QUESTION) as run:
        async for _ in run:
            messages = run.all_messages()
            for message in messages[printed:]:
                if printed == 0 and isinstance(message, ModelRequest):
                    print(block('instructions', message.instructions or '', DIM))
                print('\n'.join(shown(message)))
                printed += 1


def main(argv: list[str] | None = None) -> None:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', help='a real model, such as openai:gpt-5.2; a scripted offline one without it')
    args = parser.parse_args(argv)
    try:
        model = infer_model(args.model) if args.model else FunctionModel(scripted, model_name='scripted')
    except (ImportError, UserError) as error:
        parser.error(str(error))
    asyncio.run(converse(model))


if __name__ == '__main__':
    main()
