"""Writes how a script is used, from what its text declares. Nothing is run or imported."""

from __future__ import annotations

from pydantic_ai_skills.execution.declared import MAX_SOURCE_BYTES, Declaration, Parameter, read_declaration

__all__ = ['MAX_SOURCE_BYTES', 'MAX_USAGE_CHARS', 'describe_usage', 'render_usage']

MAX_USAGE_CHARS = 1_500
"""How long the text for the model may be."""

MAX_TEXT_CHARS = 800
"""How much of a docstring or comment is shown."""

MAX_HELP_CHARS = 160
"""How much of the help for one argument is shown."""


def describe_usage(name: str, source: bytes) -> str | None:
    """How to use a script with this file name and text; `None` if the text does not say."""
    return render_usage(read_declaration(name, source))


def render_usage(declared: Declaration) -> str | None:
    """The text about a script, its usage line if it has one of its own, and the parameters it declares."""
    parts = [_shortened(declared.about, MAX_TEXT_CHARS), _shortened(declared.usage, MAX_TEXT_CHARS)]
    if declared.reads_code:
        parts += _arguments(declared)
    return _shortened('\n'.join(filter(None, parts)), MAX_USAGE_CHARS) or None


def _arguments(declared: Declaration) -> list[str]:
    lines = [_line(parameter) for parameter in declared.parameters]
    for name, command in declared.commands.items():
        words = ' '.join((name, *(parameter.in_usage() for parameter in command.parameters)))
        about = _first_line(command.about)
        lines.append(f'  {words}: {about}' if about else f'  {words}')
    return ['Arguments:', *lines] if lines else []


def _line(parameter: Parameter) -> str:
    details = ', '.join(_details(parameter))
    shown = f'  {parameter.shown} ({details})' if details else f'  {parameter.shown}'
    described = ' '.join(parameter.help.split())
    return f'{shown}: {_shortened(described, MAX_HELP_CHARS)}' if described else shown


def _details(parameter: Parameter) -> list[str]:
    found = ['|'.join(parameter.choices)] if parameter.choices else []
    if parameter.required and not parameter.is_positional:
        found.append('required')
    if parameter.is_switch:
        found.append('flag')
    elif parameter.most is None or parameter.repeats:
        found.append('many')
    return found


def _first_line(text: str) -> str:
    return _shortened(next(iter(text.strip().splitlines()), ''), MAX_HELP_CHARS)


def _shortened(text: str, limit: int) -> str:
    text = text.strip()
    return text if len(text) <= limit else f'{text[: limit - 1].rstrip()}…'
