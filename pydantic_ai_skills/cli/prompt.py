"""`prompt`: show exactly what a model is sent, and what it costs."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import dataclass, field
from html import escape
from typing import Annotated, Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from typer import Argument

from pydantic_ai_skills import SkillsToolset, estimate_tokens

from .command import command
from .formats import content_of
from .output import Output
from .skills import ChosenSkills, complete_skill_names, find_project, find_skill

MAX_LOADED = 200
"""With more skills than this, they are not loaded to see what that costs; their instructions are counted instead."""


@dataclass
class Seen:
    """What a model was sent."""

    instructions: str = ''
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    loaded: dict[str, str] = field(default_factory=dict[str, str])


@command
def prompt(
    out: Output,
    names: Annotated[
        list[str] | None,
        Argument(
            metavar='NAME',
            help='Skills to show as the model sees them once loaded.',
            autocompletion=complete_skill_names,
        ),
    ] = None,
    *,
    chosen: ChosenSkills,
) -> None:
    """Show exactly what the model is sent, and what it costs.

    That is the instructions and the tools, and with NAME the text of loaded skills, without what a `tools.py` would
    add: nothing is imported. Tokens are estimates, one for every four bytes.
    """
    toolset = chosen.look(out)
    wanted = [find_skill(toolset, name).name for name in names or ()]
    skills = toolset.skills
    loaded = list(skills) if len(skills) <= MAX_LOADED else wanted
    with out.progress('Loading skills'):
        not_imported = [name for name in loaded if skills[name].files.tools_module]
        seen = asyncio.run(look(toolset, loaded))
    costs = [
        {
            'name': name,
            'listed': estimate_tokens(_entry(seen.instructions, name)),
            'loaded': estimate_tokens(seen.loaded.get(name, '') or content_of(skills[name])),
        }
        for name in skills
    ]
    budget = _budget()
    if out.as_json:
        out.data(
            {
                'instructions': seen.instructions,
                'characters': len(seen.instructions),
                'budget': budget,
                'tokens': {
                    'instructions': estimate_tokens(seen.instructions),
                    'tools': estimate_tokens(json.dumps(seen.tools)),
                },
                'tools': seen.tools,
                'loaded': {name: seen.loaded[name] for name in wanted},
                'skills': costs,
                'not_imported': not_imported,
            }
        )
    else:
        _show(out, seen, wanted, costs, budget)
        if not_imported:
            out.line(f'\nWithout the tools in tools.py, which is not imported to be shown: {", ".join(not_imported)}')


async def look(toolset: SkillsToolset[Any], names: list[str]) -> Seen:
    """Run an agent whose model records what it is sent, and loads some skills."""
    seen = Seen()

    def note(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        seen.loaded.update({part.tool_call_id: part.model_response_str() for part in returned})
        if not returned:
            seen.instructions = info.instructions or ''
            seen.tools = [
                {'name': tool.name, 'description': tool.description, 'parameters': tool.parameters_json_schema}
                for tool in info.function_tools
            ]
            if names:
                calls = (ToolCallPart('load_skill', {'skill_name': name}, tool_call_id=name) for name in names)
                return ModelResponse(parts=list(calls))
        return ModelResponse(parts=[TextPart('done')])

    await Agent(FunctionModel(note, model_name='none'), toolsets=[toolset]).run('Hello')
    return seen


def _show(out: Output, seen: Seen, wanted: list[str], costs: list[dict[str, Any]], budget: int | None) -> None:
    room = f' of {budget:,}' if budget is not None else ''
    tokens = estimate_tokens(seen.instructions)
    out.line((f'Instructions: {len(seen.instructions):,}{room} characters, about {tokens:,} tokens', 'bold'))
    out.block(seen.instructions or '(none: there are no skills)')
    out.heading(f'Tools: about {estimate_tokens(json.dumps(seen.tools)):,} tokens')
    for tool in seen.tools:
        out.line((tool['name'], 'green'))
        out.block(str(tool['description']))
        out.line((json.dumps(tool['parameters'], ensure_ascii=False), 'dim'))
    for name in wanted:
        out.heading(f'Loaded {name}: about {estimate_tokens(seen.loaded[name]):,} tokens')
        out.block(seen.loaded[name])
    if costs:
        out.heading('Cost in tokens')
        rows = ((cost['name'], f'{cost["listed"]:,}', f'{cost["loaded"]:,}') for cost in costs)
        out.table(('skill', '>always', '>when loaded'), rows)


def _entry(instructions: str, name: str) -> str:
    """What the instructions say about one skill."""
    _, found, rest = instructions.partition(f'<skill name="{escape(name)}"')
    return f'{found}{rest.partition(chr(10))[0]}'


def _budget() -> int | None:
    said = find_project().settings.catalog_budget
    return inspect.signature(SkillsToolset).parameters['catalog_budget'].default if said is None else said
