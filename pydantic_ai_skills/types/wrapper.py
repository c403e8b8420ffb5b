"""Skills from functions: what `@toolset.skill` returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing.skill_names import normalize_skill_name

from .functions import DepsT
from .skill import Skill, SkillOptions


class SkillWrapper(Skill[DepsT]):
    """What `@toolset.skill` makes of a function: the skill, to which resources, scripts and tools can be added.

    What is added after registration is visible to the model at its next request.
    """

    __slots__ = ('function',)

    def __init__(
        self,
        function: Callable[[], str],
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[SkillOptions],
    ) -> None:
        """Make a skill of a function that returns its instructions.

        Args:
            function: Takes nothing, returns the instructions; called once, when they are first needed.
            name: The skill's name; made from the function's name when not given.
            description: What it does and when to use it; the function's docstring when not given.
            **options: The fields of `SkillOptions`.

        Raises:
            SkillValidationError: The name or description does not follow the rules, or the function takes arguments.
        """
        if inspect.iscoroutinefunction(function) or inspect.signature(function).parameters:
            raise SkillValidationError(
                f'The function {function.__name__!r} of a skill takes no arguments and is not async: it returns the '
                'instructions. What depends on the run belongs in a `.resource` or a `.script` of the skill.'
            )
        super().__init__(
            normalize_skill_name(function.__name__) if name is None else name,
            inspect.getdoc(function) or '' if description is None else description,
            function,
            **options,
        )
        self.function = function

    def to_skill(self) -> Skill[DepsT]:
        """The skill itself; what is added to it later shows here too."""
        return self
