"""Finds out from the output of a failed script what it lacked."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai_skills.execution.missing import MissingNeed
from pydantic_ai_skills.execution.result import ScriptResult
from pydantic_ai_skills.filesystem.safe_open import SkillFolder
from pydantic_ai_skills.parsing.needs import read_needs
from pydantic_ai_skills.parsing.needs.distributions import distribution_of
from pydantic_ai_skills.parsing.needs.javascript import package_of
from pydantic_ai_skills.parsing.needs.programs import PROGRAMS

from .needs import read_sources

if TYPE_CHECKING:
    from .script import SkillScript

logger = logging.getLogger('pydantic_ai_skills')

MAX_LOOKED_AT = 20_000
"""How many characters at the end of the output are searched."""

_VARIABLE = r'\b([A-Z][A-Z0-9_]{2,99}+)\b'
_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,100})'")
_NPM = re.compile(r"Cannot find (?:module|package) '([^'\n]{1,200})'")
_COMMAND = re.compile(
    r'(?:^|: )([\w.+-]{1,64}): (?:command )?not found\s*$|command not found: ([\w.+-]{1,64})\s*$', re.MULTILINE
)
_NO_FILE = re.compile(r"No such file or directory: '([\w.+-]{1,64})'|\bspawn ([\w.+-]{1,64}) ENOENT")
_KEY = re.compile(
    rf"KeyError: '{_VARIABLE}'"
    rf'|{_VARIABLE}: (?:unbound variable|parameter )'
    rf'|{_VARIABLE}[^\n]{{0,60}}?\b(?:not set|missing|required|not found|unset|undefined|not defined|must be set)\b'
    rf'|\b(?:[Mm]issing|[Ss]et|[Pp]rovide|[Rr]equires?|[Nn]o)\b[^\n]{{0,60}}?{_VARIABLE}'
)


def explain_failure(result: ScriptResult, script: SkillScript) -> ScriptResult:
    """The result of a failed script, with what it lacked if its output shows that. May read the skill's files.

    Logs the way out for the developer.
    """
    modules: set[str] = set()
    keys: set[str] = set()

    def read() -> None:
        if script.skill_dir is not None:
            sources = read_sources(SkillFolder(script.root or str(script.skill_dir), str(script.skill_dir)))
            modules.update(sources.modules)
            keys.update(found.name for _, found in read_needs(sources) if found.kind == 'key')

    missing = find_missing(result.stderr, read, modules, keys)
    if missing is None:
        return result
    skill_name = script.skill_name or script.name
    way_out = missing.way_out(skill_name)
    logger.warning('Script %r of skill %r lacks %r: %s.', script.name, skill_name, missing.name, way_out)
    return replace(result, missing=missing)


def find_missing(
    output: str, read: Callable[[], None], modules: Collection[str], keys: Collection[str]
) -> MissingNeed | None:
    """The first thing that the output of a script says it lacks.

    Modules of the skill itself do not count, nor do keys that the skill does not read. `read` fills in `modules` and
    `keys`; it is called only if the output names a module or a variable.
    """
    output = output[-MAX_LOOKED_AT:]
    named = {match[1].partition('.')[0]: match[1] for match in _MODULE.finditer(output)}
    variables = list(_names(_KEY, output))
    if named or variables:
        read()
    for top, module in named.items():
        if top not in modules:
            return MissingNeed(kind='python', name=distribution_of(module) or top.replace('_', '-'))
    for imported in _names(_NPM, output):
        if package := package_of(imported):
            return MissingNeed(kind='npm', name=package)
    for variable in variables:
        if variable in keys:
            return MissingNeed(kind='key', name=variable)
    programs = [*_names(_COMMAND, output), *(name for name in _names(_NO_FILE, output) if name in PROGRAMS)]
    return MissingNeed(kind='program', name=programs[0], provider=PROGRAMS.get(programs[0], '')) if programs else None


def _names(pattern: re.Pattern[str], output: str) -> Iterator[str]:
    return (next(filter(None, match.groups())) for match in pattern.finditer(output))
