"""`prompt`: show exactly what a model is sent, and what it costs."""

from __future__ import annotations

import inspect
import json
from html import escape
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

import pydantic_ai_skills as api

from .command import command
from .event_loop import run
from .formats import content_of
from .output import Output
from .skills import ChosenSkills, complete_skill_names, find_project, find_skill

if TYPE_CHECKING:
    from .model_view import Seen

MAX_LOADED = 200
"""With more skills than this, they are not loaded to measure the cost; their instructions are counted instead."""


@command
def prompt(
    out: Output,
    names: Annotated[
        list[str] | None,
        Argument(
            metavar='SKILL',
            help='Skills to show as the model sees them once loaded.',
            autocompletion=complete_skill_names,
        ),
    ] = None,
    *,
    chosen: ChosenSkills,
) -> None:
    """It shows the instructions and the tools, and with SKILL the text of loaded skills.

    What a `tools.py` would add is left out: nothing is imported. Tokens are estimates, one for every four bytes.
    """
    from .model_view import look  # imports pydantic-ai, which `--help` does without

    toolset = chosen.naming(*(names or ())).look(out)
    wanted = [find_skill(toolset, name).name for name in names or ()]
    skills = toolset.skills
    loaded = list(skills) if len(skills) <= MAX_LOADED else wanted
    with out.progress('Loading skills'):
        not_imported = [name for name in loaded if skills[name].files.tools_module]
        seen = run(look(toolset, loaded))
    costs = [
        {
            'name': name,
            'listed': api.estimate_tokens(_entry(seen.instructions, name)),
            'loaded': api.estimate_tokens(seen.loaded.get(name, '') or content_of(skills[name])),
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
                    'instructions': api.estimate_tokens(seen.instructions),
                    'tools': api.estimate_tokens(json.dumps(seen.tools)),
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
            out.line(f'\nNot shown, because nothing is imported: the tools in tools.py of {", ".join(not_imported)}')


def _show(out: Output, seen: Seen, wanted: list[str], costs: list[dict[str, Any]], budget: int | None) -> None:
    room = f' of {budget:,}' if budget is not None else ''
    tokens = api.estimate_tokens(seen.instructions)
    out.line((f'Instructions: {len(seen.instructions):,}{room} characters, about {tokens:,} tokens', 'bold'))
    out.block(seen.instructions or '(none: there are no skills)')
    out.heading(f'Tools: about {api.estimate_tokens(json.dumps(seen.tools)):,} tokens')
    for tool in seen.tools:
        out.line((tool['name'], 'green'))
        out.block(str(tool['description']))
        out.line((json.dumps(tool['parameters'], ensure_ascii=False), 'dim'))
    for name in wanted:
        out.heading(f'Loaded {name}: about {api.estimate_tokens(seen.loaded[name]):,} tokens')
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
    return inspect.signature(api.SkillsToolset).parameters['catalog_budget'].default if said is None else said
