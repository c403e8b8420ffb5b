"""Matches the arguments of a call to the parameters that a script declares."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, cast

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.arguments import flag_words, is_read_as_flag, to_positional, to_word

from .parameters import Declaration, Parameter

OtherFlags = Callable[[str, Any], list[str]]
"""Makes flags from a name and a value that are not declared."""

MAX_USAGE_TOLD = 1_200
"""How much of the usage a message shows."""

_COMMAND_KEYS = ('command', 'subcommand', 'cmd', 'action')
_HELP = frozenset({'h', 'help'})
_NO = frozenset({'false', 'no', 'off'})
_YES = frozenset({'true', 'yes', 'on'})


def match_arguments(
    declared: Declaration, name: str, given: Mapping[str, Any], words: Sequence[str], *, other: OtherFlags
) -> list[str]:
    """The argument vector for values by name and positional words.

    Args:
        declared: What the script declares.
        name: The script, for messages.
        given: Values by the names the model used.
        words: Positional arguments that were sent without names.
        other: Makes flags from a name and a value that are not declared, where the declaration may be incomplete.

    Raises:
        SkillScriptExecutionError: They do not fit. The message shows the usage.
    """
    return _Call(declared, name, dict(given), list(words), other).argv()


@dataclass
class _Call:
    """One call, with the arguments that are still to be matched."""

    declared: Declaration
    name: str
    given: dict[str, Any]
    words: list[str]
    other: OtherFlags
    command: str | None = None

    def argv(self) -> list[str]:
        declared = self.declared
        above = self._take(declared) if declared.commands else None
        if above is None:
            return self._level(declared)
        self.command = self._choose_command()
        before = self._flags(declared, above)
        if self.command is None:
            return [*before, *self._flags_of_others(declared)]
        inner = declared.commands[self.command]
        if inner.commands:
            rest = _Call(inner, f'{self.name} {self.command}', self.given, self.words, self.other)
            return [*before, self.command, *rest.argv()]
        return [*before, self.command, *self._level(inner)]

    # --- Names ----------------------------------------------------------------------------------------------------

    def _take(self, declared: Declaration) -> dict[Parameter, Any]:
        """Take the values whose names are declared here, in the order in which they were sent."""
        taken: dict[Parameter, Any] = {}
        for key in list(self.given):
            parameter = _find(key, declared.parameters)
            if parameter is None:
                continue
            if parameter in taken:
                raise self._misfit(f'{parameter.name!r} is given twice.')
            value = self.given.pop(key)
            taken[parameter] = _inverted(value) if _switches_off(key, parameter) else value
        return taken

    def _choose_command(self) -> str | None:
        """Take the name of the sub-command: under its own key, as a key with an object, or the first plain word."""
        commands = self.declared.commands
        keys = (self.declared.command_key, *_COMMAND_KEYS)
        key = next((key for key in keys if isinstance(self.given.get(key), str)), None)
        if key is not None and self._may_be_command(key):
            chosen = self.given.pop(key)
        elif len(nested := [key for key in self.given if key in commands and isinstance(self.given[key], dict)]) == 1:
            chosen = nested[0]
            self.given |= cast('dict[str, Any]', self.given.pop(chosen))
        elif self.words:
            chosen = self.words.pop(0)
        else:
            chosen = None
        if chosen in commands:
            return chosen
        if chosen is not None:
            raise self._misfit(f'There is no command {chosen[:60]!r}. The commands are: {", ".join(commands)}.')
        if self.declared.needs_command and not _asks_for_help(self.given):
            raise self._misfit(f'It needs a command: one of {", ".join(commands)}, as the first value of "_".')
        return None

    def _may_be_command(self, key: str) -> bool:
        """Whether this key names the sub-command, and is not a parameter of one that is chosen by a plain word."""
        if self.given[key] in self.declared.commands:
            return True
        return not (self.words and self.words[0] in self.declared.commands)

    # --- One level ------------------------------------------------------------------------------------------------

    def _level(self, declared: Declaration) -> list[str]:
        taken = self._take(declared)
        named = {parameter: value for parameter, value in taken.items() if parameter.is_positional}
        flags = self._flags(declared, {key: value for key, value in taken.items() if key not in named})
        others = self._flags_of_others(declared)
        if _asks_for_help(self.given):
            return [*flags, *others]
        words = self._positionals(declared, named, taken)
        # Positional arguments first, or a flag with many values would take them too; those that take all come last.
        takes_all = any(each.most is None and each.least == 0 for each in declared.positionals)
        return [*flags, *others, *words] if takes_all and not _is_open(taken) else [*words, *flags, *others]

    def _flags_of_others(self, declared: Declaration) -> list[str]:
        """Flags for names that are not declared, where the script may have more parameters than could be read."""
        found: list[str] = []
        for key, value in self.given.items():
            if key.lstrip('-') in _HELP:
                found.append('--help')
            elif declared.complete and value is not None:
                raise self._unknown(key, declared)
            elif not declared.complete:
                found += self.other(key, value)
        return found

    def _flags(self, declared: Declaration, taken: Mapping[Parameter, Any]) -> list[str]:
        return [word for parameter, value in taken.items() for word in self._flag(parameter, value)]

    def _flag(self, parameter: Parameter, value: Any) -> Iterator[str]:
        if value is None:
            return
        if parameter.is_switch:
            yield from self._switch(parameter, value)
            return
        flag = parameter.flag
        if value is True and parameter.least == 0:
            yield flag
        elif value is False and not parameter.reads_words and _choice('false', parameter, any_case=True) is None:
            return
        elif parameter.repeats:
            for item in cast('list[Any]', value) if isinstance(value, list) else [value]:
                yield from _with_flag(flag, self._values(parameter, item))
        else:
            yield from _with_flag(flag, self._values(parameter, value))

    def _switch(self, parameter: Parameter, value: Any) -> Iterator[str]:
        if parameter.repeats and isinstance(value, int) and not isinstance(value, bool):
            yield from [parameter.flag] * min(value, 100)
            return
        if isinstance(value, list):  # one for each time it is given
            for item in cast('list[Any]', value):
                yield from self._switch(parameter, item)
            return
        is_on = _truth(value)
        if is_on is None:
            raise self._misfit(f'{parameter.shown} is a switch: send true or false.')
        if is_on:
            yield from [parameter.flag] if parameter.flags else []
        else:
            yield from parameter.off[:1]

    def _values(self, parameter: Parameter, value: Any) -> list[str]:
        """The texts of one parameter, checked against how many and which it takes."""
        items = cast('list[Any]', value) if isinstance(value, list) else [value]
        what = f'The value of {parameter.name!r}'
        if any(isinstance(item, list) for item in items):
            raise self._misfit(f'{what} is a list of lists.')
        words = [self._word(parameter, item, what, is_first=not i) for i, item in enumerate(items)]
        if len(words) < parameter.least or (parameter.most is not None and len(words) > parameter.most):
            raise self._misfit(f'{parameter.shown} takes {_amount(parameter)}, not {len(words)}.')
        if len(words) > 1 and not parameter.takes_rest and (flags := list(filter(is_read_as_flag, words))):
            raise self._misfit(f'{flags[0][:60]!r}, a value of {parameter.shown}, would be read as a flag.')
        return words

    def _word(self, parameter: Parameter, value: Any, what: str, *, is_first: bool) -> str:
        plain = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
        stands_alone = parameter.is_positional and (is_first or not parameter.takes_rest)
        word = (to_positional if stands_alone else to_word)(plain, what)
        if not parameter.choices:
            return word
        choice = _choice(word, parameter, any_case=isinstance(value, bool) or parameter.ignores_case)
        if choice is None:
            wrong = f'{word[:60]!r} is not a choice of {parameter.shown}. The choices are: '
            raise self._misfit(f'{wrong}{", ".join(map(repr, parameter.choices[:50]))}.')
        return choice

    # --- Positional parameters ------------------------------------------------------------------------------------

    def _positionals(
        self, declared: Declaration, named: Mapping[Parameter, Any], taken: Mapping[Parameter, Any]
    ) -> list[str]:
        """The positional arguments in the order of their parameters; those without names fill the free places."""
        words = list(self.words)
        texts = {place: self._values(place, value) for place, value in named.items() if value is not None}
        places = declared.positionals
        needed = sum(place.least for place in places if place not in texts)
        for place in (place for place in places if place not in texts):
            needed -= place.least
            free = max(0, len(words) - needed)
            count = free if place.most is None else min(place.most, free)
            if count:
                texts[place] = self._values(place, words[:count])
                words = words[count:]
        if declared.complete:
            self._check_complete(declared, {*texts, *(key for key, value in taken.items() if value is not None)}, words)
        self._check_order(places, texts)
        return [word for place in places for word in texts.get(place, ())] + words

    def _check_complete(self, declared: Declaration, filled: Collection[Parameter], left: Sequence[str]) -> None:
        missing = [each.shown for each in declared.parameters if each.required and each not in filled]
        if missing:
            raise self._misfit(f'It also needs {", ".join(missing)}.')
        if left:
            raise self._misfit(f'{left[0][:60]!r} is one positional argument too many.')

    def _check_order(self, places: Sequence[Parameter], texts: Mapping[Parameter, Sequence[str]]) -> None:
        for before, place in pairwise(places):
            if texts.get(place) and not texts.get(before):
                raise self._misfit(f'{place.name!r} comes after {before.name!r}, so send that as well.')

    # --- Messages -------------------------------------------------------------------------------------------------

    def _unknown(self, key: str, declared: Declaration) -> SkillScriptExecutionError:
        names = [parameter.name for parameter in declared.parameters]
        close = get_close_matches(key.strip('-')[:60], names, n=1)
        meant = f' Did you mean {close[0]!r}?' if close else ''
        return self._misfit(f'It has no parameter {key[:60]!r}.{meant}')

    def _misfit(self, message: str) -> SkillScriptExecutionError:
        usage = self.declared.usage_line(self.name, self.command)
        usage = usage if len(usage) <= MAX_USAGE_TOLD else f'{usage[: MAX_USAGE_TOLD - 1]}…'
        return SkillScriptExecutionError(
            f'The arguments do not fit {self.name!r}, so it was not started. {message} A list is passed on as it is.\n'
            f'{usage}'
        )


def _find(key: str, parameters: Iterable[Parameter]) -> Parameter | None:
    """The parameter a name means: by its own name, by a flag, then in other letter case or without separators."""
    every = list(parameters)
    for same in (str, str.casefold, _squeezed):
        wanted = same(_plain(key))
        found = [each for each in every if wanted in map(same, _names(each))]
        if len(found) == 1:
            return found[0]
    return None


def _names(parameter: Parameter) -> Iterator[str]:
    yield parameter.name
    yield from map(_plain, (*parameter.flags, *parameter.off))


def _plain(name: str) -> str:
    return name.lstrip('-').replace('-', '_')


def _squeezed(name: str) -> str:
    return ''.join(filter(str.isalnum, name.casefold()))


def _switches_off(key: str, parameter: Parameter) -> bool:
    """Whether a name is that of the flag that switches a parameter off."""
    plain = _plain(key)
    return plain != parameter.name and plain in map(_plain, parameter.off)


def _inverted(value: Any) -> Any:
    is_on = _truth(value)
    return value if is_on is None else not is_on


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, str | int) else ''
    return True if word in _YES | {'1'} else False if word in _NO | {'0', ''} and isinstance(value, str | int) else None


def _choice(word: str, parameter: Parameter, *, any_case: bool) -> str | None:
    """The choice that a word means."""
    same = str.casefold if any_case else str
    return next((choice for choice in parameter.choices if same(choice) == same(word)), None)


def _amount(parameter: Parameter) -> str:
    least, most = parameter.least, parameter.most
    if most is None:
        return f'at least {least} value{"s" if least != 1 else ""}'
    count = str(most) if least == most else f'{least} to {most}'
    return f'{count} value{"s" if most != 1 else ""}'


def _is_open(taken: Iterable[Parameter]) -> bool:
    """Whether a flag with any number of values is among these, which would take what follows."""
    return any(parameter.most is None and not parameter.is_positional for parameter in taken)


def _with_flag(flag: str, words: Sequence[str]) -> Sequence[str]:
    return flag_words(flag, words[0]) if len(words) == 1 else (flag, *words)


def _asks_for_help(given: Iterable[str]) -> bool:
    return any(key.lstrip('-') in _HELP for key in given)
