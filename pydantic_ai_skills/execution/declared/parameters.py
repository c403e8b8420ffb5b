"""What a script declares about its parameters, in whatever way. It is remembered while the text stays the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic_ai_skills.execution.interpreters import MAX_HEAD_BYTES, read_script_head

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

MAX_SOURCE_BYTES = MAX_HEAD_BYTES
"""How much of a script is examined, which also limits the memory of the parser."""

MAX_REMEMBERED = 500
"""How many scripts are remembered."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a script."""

    name: str
    """The name under which the script keeps its value."""

    flags: tuple[str, ...] = ()
    """The flags that give it a value, such as `-o` and `--output`; a positional parameter has none."""

    off: tuple[str, ...] = ()
    """The flags that switch it off, such as `--no-cache`."""

    least: int = 1
    """How many values it takes at least; a switch takes none."""

    most: int | None = 1
    """How many values it takes at most; `None` for any number."""

    takes_rest: bool = False
    """Whether it takes everything that follows, including flags of other programs."""

    reads_words: bool = False
    """Whether the script turns its text into a value by itself, so that `false` means something."""

    repeats: bool = False
    """Whether each value comes with a flag of its own."""

    choices: tuple[str, ...] = ()
    """The values it may have, if they are limited."""

    ignores_case: bool = False
    """Whether the letter case of a choice does not matter."""

    required: bool = False
    """Whether the script refuses to run without it."""

    help: str = ''
    """What the script says about it."""

    @property
    def is_positional(self) -> bool:
        """Whether its values stand for themselves, without a flag."""
        return not self.flags and not self.off

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off and takes no value."""
        return self.most == 0

    @property
    def flag(self) -> str:
        """The flag to use: the first long one, if it has any."""
        flags = self.flags or self.off
        return next((flag for flag in flags if flag.startswith('--')), flags[0])

    @property
    def shown(self) -> str:
        """Its names, as help texts list them."""
        return ', '.join((*self.flags, *self.off)) or self.name

    def in_usage(self) -> str:
        """How it is written on a usage line."""
        value = '|'.join(self.choices) if 0 < len(self.choices) <= 8 else self.name
        if self.is_positional:
            words = value if self.most == 1 else f'{value} ...'
        else:
            words = self.flag if self.is_switch else f'{self.flag} {value.upper() if value == self.name else value}'
            words += ' ...' if self.most is None else ''
        return words if self.required else f'[{words}]'


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What the text of a script says about how to call it."""

    about: str = ''
    """Its docstring, its description or the comment at its top."""

    usage: str = ''
    """A usage line that it prints."""

    parameters: tuple[Parameter, ...] = ()
    """Its parameters, in the order in which it declares them."""

    commands: Mapping[str, Declaration] = field(default_factory=dict[str, 'Declaration'])
    """Its sub-commands, by name."""

    command_key: str = 'command'
    """The name under which the script keeps the chosen sub-command."""

    needs_command: bool = False
    """Whether it refuses to run without a sub-command."""

    reads_code: bool = False
    """Whether the parameters were read from code, not from a usage line, which shows them already."""

    complete: bool = False
    """Whether these are all parameters it has, so that any other is a mistake."""

    @property
    def positionals(self) -> tuple[Parameter, ...]:
        """The parameters without flags, in their order."""
        return tuple(parameter for parameter in self.parameters if parameter.is_positional)

    @property
    def says_nothing(self) -> bool:
        """Whether no parameter could be read."""
        return not (self.parameters or self.commands or self.complete)

    def usage_line(self, name: str, command: str | None = None) -> str:
        """How to call the script, on one line; for a script that only prints a usage text, that text."""
        if self.usage and not self.complete:
            return self.usage
        words = [name, *_words(self.parameters)]
        if command is not None:
            words += [command, *_words(self.commands[command].parameters)]
        elif self.commands:
            words.append(f'{{{",".join(self.commands)}}} ...')
        return f'usage: {" ".join(words)}'

    def without_requirements(self) -> Declaration:
        """The same with no parameter required, for parameters that are declared on only one way through a script."""
        return replace(self, parameters=tuple(replace(parameter, required=False) for parameter in self.parameters))


def _words(parameters: Iterable[Parameter]) -> Iterator[str]:
    """Flags first, then positional parameters, as argparse writes them."""
    yield from (parameter.in_usage() for parameter in sorted(parameters, key=lambda each: each.is_positional))


_remembered: dict[tuple[str, bytes], Declaration] = {}


def declaration_of(script: SkillScript, source: bytes | None = None) -> Declaration:
    """What a script declares in the given text, or else in its file on this machine.

    Raises:
        SkillScriptExecutionError: The file cannot be opened, or a link is in its way.
    """
    text = (read_script_head(script).head if source is None else source)[:MAX_SOURCE_BYTES]
    # By content: a file can change twice within one tick of the clock.
    key = script.name, hashlib.blake2b(text, digest_size=16).digest()
    found = _remembered.get(key)
    if found is None:
        from .reader import read_declaration  # not needed for a script that is known

        if len(_remembered) >= MAX_REMEMBERED:
            _remembered.clear()
        found = _remembered[key] = read_declaration(script.name, text)
    return found
