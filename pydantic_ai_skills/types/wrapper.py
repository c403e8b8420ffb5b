"""Skills from functions: what `@toolset.skill` returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing.skill_names import normalize_skill_name

from .functions import DepsT, called_by, name_of
from .instructions import InstructionsFunction, check_function, needs_run, text_of
from .skill import Skill, SkillOptions


class SkillWrapper(Skill[DepsT]):
    """What `@toolset.skill` makes of a function: the skill, to which resources, scripts and tools can be added.

    What is added after registration is visible to the model at its next request.
    """

    __slots__ = ('function',)

    def __init__(
        self,
        function: InstructionsFunction[DepsT] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        content: str = '',
        **options: Unpack[SkillOptions],
    ) -> None:
        """Make a skill of a function that returns its instructions.

        Args:
            function: Returns the instructions, sync or async. With a `RunContext` as its parameter it is called for
                each load, without parameters once, when they are first needed.
            name: The skill's name; made from the function's name when not given.
            description: What it does and when to use it; the function's docstring when not given.
            content: The instructions, if there is no function, as in a copy by `dataclasses.replace`.
            **options: The fields of `SkillOptions`.

        Raises:
            SkillValidationError: The name or description does not follow the rules, or the function takes other
                arguments than a `RunContext`.
        """
        function = partial(_same, content) if function is None else function
        check_function(function, repr(name_of(function)))
        name = normalize_skill_name(name_of(function)) if name is None else name
        description = inspect.getdoc(called_by(function)) if description is None else description
        if not description:
            raise SkillValidationError(
                f'The skill {name!r} needs a description, by which the model chooses it: give the function '
                f"{name_of(function)!r} a docstring, or pass description='…'."
            )
        instructions: Any = function if needs_run(function) else partial(_instructions, function)
        super().__init__(name, description, instructions, **options)
        self.function: Callable[..., Any] = function
        """Returns the instructions."""

    def __getstate__(self) -> object:
        if self.writer is None:
            # A decorated function cannot be pickled: its name means the skill now.
            self._content, self.function = self.content, partial(_same, self.content)
        return super().__getstate__()

    def to_skill(self) -> Skill[DepsT]:
        """The skill itself; what is added to it later shows here too."""
        return self


def _same(content: str) -> str:
    return content


def _instructions(function: Callable[..., object]) -> str:
    return text_of(function(), function)
