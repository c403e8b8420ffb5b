"""Typed tools: a skill brings tools of its own, with a schema each. The model has them once it has loaded the skill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Gt
from offline import model
from pydantic_ai import Agent, RunContext

from pydantic_ai_skills import Skill, SkillsToolset

Currency = Literal['CHF', 'EUR', 'USD']


@dataclass
class Bank:
    """Where the rates come from: the dependencies of a run."""

    euros: dict[Currency, float]


currency = Skill[Bank]('currency', 'Convert money. Use for amounts in another currency.', 'Call `convert`.')


@currency.tool
def convert(ctx: RunContext[Bank], amount: Annotated[float, Gt(0)], source: Currency, target: Currency) -> str:
    """Convert an amount of money.

    Args:
        ctx: The run.
        amount: How much.
        source: The currency it is in.
        target: The currency wanted.
    """
    euros = ctx.deps.euros
    return f'{amount * euros[source] / euros[target]:.2f} {target}'


offline = model(
    [
        ('load_skill', {'skill_name': 'currency'}),
        ('currency__convert', {'amount': 100, 'source': 'USD', 'target': 'GBP'}),  # refused: not one of the three
        ('currency__convert', {'amount': 100, 'source': 'USD', 'target': 'CHF'}),
    ]
)
agent = Agent(offline, deps_type=Bank, toolsets=[SkillsToolset[Bank](skills=[currency])])

if __name__ == '__main__':
    result = agent.run_sync('What are 100 dollars in francs?', deps=Bank({'CHF': 1.07, 'EUR': 1.0, 'USD': 0.86}))
    for message in result.all_messages():
        for part in message.parts:
            if part.part_kind == 'tool-call':
                print(part.tool_name, part.args_as_json_str())
    print(result.output)
