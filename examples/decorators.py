"""Skills in Python: functions that use the dependencies of the run, with arguments that pydantic validates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt
from offline import model
from pydantic_ai import Agent, RunContext

from pydantic_ai_skills import SkillsToolset


@dataclass
class Shop:
    """What the agent of a shop works with."""

    stock: dict[str, int]


skills = SkillsToolset[Shop](skills=[])


@skills.skill(metadata={'version': '1.0'})
def stock_keeper() -> str:
    """Answer questions about the stock and take things out of it. Use for quantities and orders."""
    return 'Read `products`. Run `take` once for each product that leaves the shop, and never guess a name.'


@stock_keeper.resource
def products(ctx: RunContext[Shop]) -> str:
    """The products with their quantities."""
    return '\n'.join(f'{product}: {number}' for product, number in ctx.deps.stock.items())


@stock_keeper.script
async def take(ctx: RunContext[Shop], product: str, number: Annotated[int, Gt(0)] = 1) -> str:
    """Take some of a product out of the stock."""
    ctx.deps.stock[product] -= number
    return f'{ctx.deps.stock[product]} left'


SKILL = {'skill_name': 'stock-keeper'}
offline = model(
    [
        ('load_skill', SKILL),
        ('read_skill_resource', SKILL | {'resource_name': 'products'}),
        ('run_skill_script', SKILL | {'script_name': 'take', 'args': {'product': 'lamp', 'number': -2}}),
        ('run_skill_script', SKILL | {'script_name': 'take', 'args': {'product': 'lamp', 'number': 2}}),
    ],
    answer='Done. Of the lamps there are {}.',
)
agent = Agent(offline, deps_type=Shop, toolsets=[skills])

if __name__ == '__main__':
    shop = Shop({'lamp': 12, 'desk': 3})
    print(agent.run_sync('Two lamps were sold.', deps=shop).output)
    print(shop.stock)
