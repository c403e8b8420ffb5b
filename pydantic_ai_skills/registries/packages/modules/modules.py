"""A module as a skill: its docstring and API as instructions, its public functions as scripts."""

from __future__ import annotations

import re
from typing import Any

from pydantic_ai_skills.parsing import find_headings
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.types.items import SkillFiles
from pydantic_ai_skills.types.skill import Skill, SkillProvenance

from .allowed import read_declarations
from .api import parameter_descriptions, render_api
from .code import Code
from .comments import RETURNS
from .functions import FunctionRules, ModuleFunction, ModuleScript
from .signatures import parameter_names, static_schema, takes
from .source import ModuleSource, UnusableModule
from .symbols import MissingExtraError, Module, Symbol

__all__ = ('module_skill',)


def module_skill(
    name: str, source: ModuleSource, code: Code, *, about: SkillProvenance, rules: FunctionRules
) -> Skill[Any]:
    """A skill of a module. Its API is analysed when the skill is loaded, and nothing of it is imported for that.

    Args:
        name: The skill's name.
        source: The module.
        code: Where the modules are from which it may import.
        about: Where the skill comes from.
        rules: What the developer decides about its functions.

    Raises:
        UnusableModule: It has no docstring to describe it.
    """
    if not source.summary:
        message = f'The module {source.name!r} has no docstring, whose first paragraph would be the description.'
        raise UnusableModule(problem('module-undocumented', source.file.path, message))
    module = Module(source, code)
    return Skill[Any](
        name,
        source.summary,
        lambda: _instructions(module),
        files=lambda: _files(name, module, rules),
        metadata={'module': source.name},
        source=about,
        headings=find_headings(source.docstring.encode()),
        late=True,
    )


def _instructions(module: Module) -> str:
    try:
        api = render_api(module)
    except MissingExtraError:
        raise
    except Exception as error:  # noqa: BLE001 - the border to an analysis of code of others, which may break it
        return f'{module.source.docstring}\n\n(Its API cannot be analysed: {type(error).__name__}.)'
    if not api:
        return module.source.docstring
    fence = '`' * max(3, *(len(run) + 1 for run in re.findall('`+', api)), 3)
    return f'{module.source.docstring}\n\n# API of `{module.source.name}`\n\n{fence}python\n{api}\n{fence}'


def _files(skill_name: str, module: Module, rules: FunctionRules) -> SkillFiles:
    try:
        return _list_scripts(skill_name, module, rules)
    except MissingExtraError:
        raise
    except Exception as error:  # noqa: BLE001 - the border to an analysis of code of others, which may break it
        message = f'Its functions are not offered: they cannot be analysed, {type(error).__name__}: {error}.'
        return SkillFiles(problems=(problem('module-unclear', module.source.file.path, message),))


def _list_scripts(skill_name: str, module: Module, rules: FunctionRules) -> SkillFiles:
    files = SkillFiles()
    declared = read_declarations(module.source)

    def report(found: Any) -> None:
        if found not in files.problems:
            files.problems = (*files.problems, found)

    for symbol in module.symbols:
        allowed = declared.get(symbol.name)
        function = symbol.function
        if allowed is None or function is None:
            continue
        if allowed.unknown_policy is not None:
            message = f'{symbol.name!r} is not offered: its policy {allowed.unknown_policy} is not known here.'
            report(problem('policy-unknown', module.source.file.path, message))
            continue
        paths = [way for way in (*allowed.read, *allowed.write) if isinstance(way, str)]
        if missing := [name for name in paths if not takes(function, name)]:
            message = f'{symbol.name!r} is not offered: its policy is about {missing[0]!r}, which it does not take.'
            report(problem('policy-unknown', module.source.file.path, message))
            continue
        try:
            schema = static_schema(
                function, imports=symbol.home.source.imports, comments=_comments(symbol), name=symbol.name
            )
        except Exception as error:  # noqa: BLE001 - the border to code of others: one function does not hide the rest
            message = f'{symbol.name!r} is not offered: it cannot be analysed, {type(error).__name__}: {error}.'
            report(problem('module-unclear', module.source.file.path, message))
            continue
        script = ModuleScript(
            ModuleFunction(symbol.name, module.source, schema, function, report),
            allowed=allowed,
            positions=parameter_names(function),
            rules=rules,
        )
        script.skill_name = skill_name
        files.scripts.append(script)
    return files


def _comments(symbol: Symbol) -> dict[str, str]:
    described = parameter_descriptions(symbol, symbol.meaning)  # pyright: ignore[reportArgumentType] - a function
    described.pop(RETURNS, None)
    return described
