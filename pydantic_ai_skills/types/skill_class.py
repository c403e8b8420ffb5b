"""A skill as a class: its methods are what the model can read, run and call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing.skill_names import normalize_skill_name

from .decorators import Mark, make_tool, mark_of
from .functions import DepsT, FunctionOptions
from .instructions import InstructionsFunction
from .skill import Skill, SkillOptions


class SkillClass(Skill[DepsT]):
    """A skill whose resources, scripts and tools are methods. Subclass it, and give the toolset an instance.

    The class is named after the skill (`StockKeeper` is `stock-keeper`), its docstring is the description, and
    `instructions` is a text or a method that returns one. Subclasses inherit the marked methods; an override
    needs no mark of its own, and a method that is set to `None` is no longer offered.

    ```python
    from dataclasses import dataclass

    from pydantic_ai import RunContext
    from pydantic_ai_skills import SkillClass, resource, tool


    @dataclass
    class Shop:
        stock: dict[str, int]


    class StockKeeper(SkillClass[Shop]):
        skill_description = 'Answers questions about what is in stock. Use for quantities and reorders.'
        instructions = 'Read `products`, then call `count` for each product in question.'

        @resource(description='The names of all products.')
        def products(self, ctx: RunContext[Shop]) -> str:
            return ', '.join(ctx.deps.stock)

        @tool(description='How many of a product are in stock.')
        async def count(self, ctx: RunContext[Shop], product: str) -> int:
            return ctx.deps.stock[product]


    skill = StockKeeper()
    print(skill.name, [tool.name for tool in skill.tools])
    #> stock-keeper ['count']
    ```
    """

    skill_name: ClassVar[str | None] = None
    """The skill's name; made from the name of the class when not given."""

    skill_description: ClassVar[str | None] = None
    """What it does and when to use it; the docstring of the class when not given."""

    skill_options: ClassVar[SkillOptions] = {}
    """Other options of `Skill`, such as `license` and `metadata`."""

    instructions: str | InstructionsFunction[Any]
    """The instructions: a text, or a method that returns one, for each load if it takes a `RunContext`, else once."""

    def __init__(self, **fields: Any) -> None:
        """Make the skill. A subclass with its own `__init__` calls this one, without arguments.

        Args:
            **fields: The fields of a copy, as `dataclasses.replace` gives them.

        Raises:
            SkillValidationError: There are no instructions or no description, or a name does not follow the rules.
        """
        if fields:
            super().__init__(**fields)
            return
        cls = type(self)
        instructions = getattr(self, 'instructions', None)
        if instructions is None:
            raise SkillValidationError(f'{cls.__name__} needs `instructions`: a text, or a method that returns one.')
        marked = dict(_marked(cls))
        hiding = next((name for name in marked if hasattr(Skill, name)), None)
        if hiding is not None:
            raise SkillValidationError(
                f'{cls.__name__}.{hiding} would hide what every skill has under that name. Rename the method; '
                f'the model can still call it that: name={hiding!r}.'
            )
        super().__init__(
            normalize_skill_name(cls.__name__) if cls.skill_name is None else cls.skill_name,
            _description(cls) if cls.skill_description is None else cls.skill_description,
            instructions,
            **cls.skill_options,
        )
        for name, mark in marked.items():
            self._take(getattr(self, name), mark)

    def _take(self, method: Callable[..., Any], mark: Mark) -> None:
        if mark.kind == 'tool':
            self.tools.append(make_tool(method, mark.options))  # pyright: ignore[reportArgumentType] - as marked
        elif mark.kind == 'resource':
            self._add_resource(method, FunctionOptions(**mark.options))
        else:
            self._add_script(method, FunctionOptions(**mark.options))


def _description(cls: type[SkillClass[Any]]) -> str:
    """The docstring of the class, or of the nearest class it inherits from."""
    own = (base.__doc__ for base in cls.__mro__ if issubclass(base, SkillClass) and base is not SkillClass)
    return inspect.cleandoc(next(filter(None, own), ''))


def _marked(cls: type[SkillClass[Any]]) -> Iterator[tuple[str, Mark]]:
    """The marked methods, those of base classes first, in the order they are written."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    for name in names:
        if getattr(cls, name, None) is None:
            continue
        # An override need not repeat the mark. Below `@staticmethod` and `@classmethod` it is on the function.
        methods = (vars(base).get(name) for base in cls.__mro__)
        marks = (mark_of(method) or mark_of(getattr(method, '__func__', None)) for method in methods)
        mark = next(filter(None, marks), None)
        if mark is not None:
            yield name, mark
