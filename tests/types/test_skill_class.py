"""Skills as classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from inline_snapshot import snapshot
from pydantic_ai import RunContext

from pydantic_ai_skills import SkillClass, SkillsToolset, SkillValidationError, resource, script, tool
from pydantic_ai_skills.types import SkillOptions
from tests.conversations import Call, ScriptedModel, converse

pytestmark = pytest.mark.anyio


@dataclass
class Shop:
    stock: dict[str, int]


class StockKeeper(SkillClass[Shop]):
    """Answers questions about the stock."""

    instructions = 'Count.'
    skill_options: ClassVar[SkillOptions] = {'license': 'MIT', 'metadata': {'version': '1'}}

    def __init__(self, unit: str = 'pieces') -> None:
        super().__init__()
        self.unit = unit

    @resource
    def products(self, ctx: RunContext[Shop]) -> str:
        """The names of all products."""
        return ', '.join(ctx.deps.stock)

    @script(name='empty')
    def clear(self, ctx: RunContext[Shop]) -> str:
        ctx.deps.stock.clear()
        return 'gone'

    @tool(description='How many there are.')
    async def count(self, ctx: RunContext[Shop], product: str) -> str:
        return f'{ctx.deps.stock[product]} {self.unit}'

    @tool
    @staticmethod
    def double(number: int) -> int:
        return 2 * number

    @staticmethod
    @tool
    def half(number: int) -> float:
        return number / 2

    @classmethod
    @resource
    def kind(cls) -> str:
        return cls.__name__

    def helper(self) -> None: ...


class Inventory(StockKeeper):
    skill_name = 'full-inventory'
    clear = None  # pyright: ignore[reportAssignmentType] - no longer offered

    def instructions(self) -> str:
        return f'Count in {self.unit}.'

    async def count(self, ctx: RunContext[Shop], product: str) -> str:
        return f'exactly {await super().count(ctx, product)}'

    @tool
    def total(self, ctx: RunContext[Shop]) -> int:
        return sum(ctx.deps.stock.values())


def call(tool: str, skill: str, **args: Any) -> Call:
    return tool, {'skill_name': skill, **args}


async def keep_shop(skill: SkillClass[Shop], *calls: Call) -> ScriptedModel:
    return await converse(SkillsToolset[Shop](skills=[skill]), *calls, deps=Shop({'lamp': 12, 'desk': 3}))


async def test_the_methods_of_a_class_are_what_the_skill_has():
    model = await keep_shop(
        StockKeeper('units'),
        call('load_skill', 'stock-keeper'),
        call('read_skill_resource', 'stock-keeper', resource_name='products'),
        ('stock_keeper__count', {'product': 'lamp'}),
        ('stock_keeper__double', {'number': 4}),
        ('stock_keeper__half', {'number': 4}),
        call('read_skill_resource', 'stock-keeper', resource_name='kind'),
        call('run_skill_script', 'stock-keeper', script_name='empty'),
    )
    assert [content for _, _, content in model.results[1:]] == ['lamp, desk', '12 units', 8, 2.0, 'StockKeeper', 'gone']
    assert model.tools[-1][4:] == ['stock_keeper__count', 'stock_keeper__double', 'stock_keeper__half']
    assert model.definitions['stock_keeper__count'] == snapshot(
        {
            'description': 'How many there are.',
            'parameters': {
                'additionalProperties': False,
                'properties': {'product': {'type': 'string'}},
                'required': ['product'],
                'type': 'object',
            },
        }
    )
    skill = StockKeeper()
    assert (skill.description, skill.license, skill.metadata) == (
        'Answers questions about the stock.',
        'MIT',
        {'version': '1'},
    )


async def test_a_subclass_inherits_overrides_adds_and_takes_away():
    model = await keep_shop(
        Inventory('units'),
        call('load_skill', 'full-inventory'),
        ('full_inventory__count', {'product': 'lamp'}),
        ('full_inventory__total', {}),
    )
    assert 'Count in units.' in model.results[0][2]
    assert '<script>' not in model.results[0][2]
    assert [content for _, _, content in model.results[1:]] == ['exactly 12 units', 15]
    assert Inventory().description == 'Answers questions about the stock.'


def test_a_class_needs_instructions_and_a_description():
    class Empty(SkillClass[Any]):
        """Has a description."""

    class Silent(SkillClass[Any]):
        instructions = 'Do it.'

    class Named(Silent):
        skill_name = 'Not A Name'
        skill_description = 'Does it.'

    with pytest.raises(SkillValidationError, match='Empty needs `instructions`'):
        Empty()
    with pytest.raises(SkillValidationError, match="Skill 'silent' needs a description"):
        Silent()
    with pytest.raises(SkillValidationError, match='is not a skill name'):
        Named()


def test_a_method_that_would_hide_an_attribute_of_a_skill_is_refused():
    class Hiding(SkillClass):
        """Hides its name."""

        instructions = ''

        @tool
        def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - which is what is refused
            return ''

    with pytest.raises(SkillValidationError, match='Hiding.name would hide what every skill has under that name'):
        Hiding()
