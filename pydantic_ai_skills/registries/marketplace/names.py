"""Names for the skills of several plugins: their own, prefixed with the plugin's where two would be the same."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

from pydantic_ai_skills.parsing.skill_names import MAX_NAME_LENGTH, shorten_skill_name

_DIGITS = 6
"""How many digits distinguish names that are the same even with the plugin's before them."""


def offered_names(names: Mapping[str, str]) -> dict[str, str]:
    """The names under which skills are offered, by their folders, which begin with the plugin.

    They do not depend on the order of the plugins. A name stays the same while plugins come and go, unless one of them
    has a skill of that name too.
    """
    count = Counter(names.values())
    own = {folder: name for folder, name in names.items() if count[name] == 1}
    long = {folder: _with_plugin(folder, name) for folder, name in names.items() if count[name] > 1}
    count = Counter([*own.values(), *long.values()])
    return own | {folder: name if count[name] == 1 else _marked(folder, name) for folder, name in long.items()}


def _with_plugin(folder: str, name: str) -> str:
    return shorten_skill_name(f'{folder.partition("/")[0]}-{name}')


def _marked(folder: str, name: str) -> str:
    digits = hashlib.sha256(folder.encode()).hexdigest()[:_DIGITS]
    return f'{name[: MAX_NAME_LENGTH - _DIGITS - 1].rstrip("-")}-{digits}'
