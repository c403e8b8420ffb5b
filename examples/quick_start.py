"""Quick start: an agent that answers with a skill from a folder."""

from __future__ import annotations

from pathlib import Path

from offline import model
from pydantic_ai import Agent

from pydantic_ai_skills import SkillsToolset

QUESTION = 'A marathon is 26.2 miles. How many kilometres is that?'
SKILL = {'skill_name': 'unit-converter'}

skills = SkillsToolset(directories=[Path(__file__).parent / 'skills'])
offline = model(
    [
        ('load_skill', SKILL),
        ('read_skill_resource', SKILL | {'resource_name': 'references/units.md'}),
        ('run_skill_script', SKILL | {'script_name': 'scripts/convert.py', 'args': {'_': ['26.2', 'mi', 'km']}}),
    ],
    answer='The converter says: {}',
)
agent = Agent(offline, toolsets=[skills])


def main() -> None:
    """Ask, and print the answer and the way to it."""
    print('Skills:', ', '.join(skills.skills))
    result = agent.run_sync(QUESTION)
    for message in result.all_messages():
        for part in message.parts:
            if part.part_kind == 'tool-call':
                print('Called:', part.tool_name, part.args_as_json_str())
    print(result.output)


if __name__ == '__main__':
    main()
