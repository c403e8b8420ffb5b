"""Instructions that a function returns: once for all runs, or anew for each run that loads the skill."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillValidationError

from .functions import DepsT, guarded

if TYPE_CHECKING:
    from .skill import Skill

InstructionsFunction = (
    Callable[[], str]
    | Callable[[], Awaitable[str]]
    | Callable[[RunContext[DepsT]], str]
    | Callable[[RunContext[DepsT]], Awaitable[str]]
)
"""Returns the instructions of a skill. With a `RunContext` it is called for each load, without one only once."""


class WrittenInstructions:
    """Tells whether a function writes the instructions of a skill for each run."""

    __slots__ = ()

    if TYPE_CHECKING:
        path: str | None
        content: str
        _content: Any

    @property
    def writer(self) -> Callable[..., Any] | None:
        """The function that writes the instructions when a run loads the skill, if there is one."""
        content = self._content
        return None if self.path is not None or isinstance(content, str) or not needs_run(content) else content

    @property
    def _text(self) -> str | Callable[..., Any]:
        return self.writer or self.content


def check_function(function: Callable[..., Any], what: str) -> None:
    """Raise a `SkillValidationError` if a function takes more than a `RunContext`."""
    if len(_required(function)) > 1:
        raise SkillValidationError(
            f'The function {what} of a skill returns the instructions: it takes nothing, or a RunContext. What the '
            'model passes arguments to is a `.resource` or a `.script` of the skill.'
        )


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether a function has to be called with the context of a run."""
    return bool(_required(function))


def needs_run(function: Callable[..., Any]) -> bool:
    """Whether a function takes the context of a run, or has to be awaited."""
    return takes_context(function) or _is_async(function)


def text_of(value: object, function: Callable[..., Any]) -> str:
    """What a function returned, if it is a text.

    Raises:
        SkillResourceLoadError: It is something else.
    """
    if isinstance(value, str):
        return value
    name = getattr(function, '__name__', '')
    raise SkillResourceLoadError(f'The function {name!r} returned {value!r}, not the instructions.')


async def write_instructions(skill: Skill[Any], ctx: RunContext[Any] | None) -> str | None:
    """Call the function that writes a skill's instructions for a run; `None` if the skill has its instructions.

    Raises:
        SkillResourceLoadError: The function failed, did not return a text, or takes a context and there is none.
    """
    function = skill.writer
    if function is None:
        return None
    arguments = (ctx,) if takes_context(function) else ()
    if arguments == (None,):
        raise SkillResourceLoadError(only_in_a_run(skill))
    what = f'instructions of skill {skill.name!r}'
    calling = function(*arguments) if _is_async(function) else anyio.to_thread.run_sync(function, *arguments)
    text = text_of(await guarded(cast(Awaitable[object], calling), what=what, error=SkillResourceLoadError), function)
    if not arguments:
        skill.content = text
    return text


def only_in_a_run(skill: Skill[Any]) -> str:
    """Why the instructions of a skill cannot be read outside of a run, and how they can be."""
    return (
        f'The instructions of skill {skill.name!r} depend on the run: a function writes them when the skill is loaded. '
        'For a person who invokes it, pass the dependencies: `toolset.invoke(name, arguments, deps=…)`.'
    )


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, '__call__', None))  # noqa: B004 - an object with such a method


def _required(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments that a function cannot be called without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions in C do not tell
        return []
    positional = (each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD))
    return [each.name for each in positional if each.default is each.empty]
