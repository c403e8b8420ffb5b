"""A module as a skill: its docstring and API as instructions, its public functions as scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai_skills.parsing import find_headings
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.registries.packages.code import Code
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.skill import Skill, SkillFiles

from .allowed import AllowedFunction, read_declarations
from .api import RETURNS, parameter_descriptions, render_api
from .functions import FunctionRules, ModuleFunction, ModuleScript
from .signatures import is_exact, parameter_names, static_schema, takes
from .source import AnyFunctionDef, ModuleSource, UnusableModule
from .symbols import MissingExtraError, Module, Symbol

if TYPE_CHECKING:
    import griffe


def module_skill(
    name: str, source: ModuleSource, code: Code, *, about: SkillProvenance, rules: FunctionRules
) -> Skill[Any]:
    """Make a skill of a module with a docstring. Its API is analysed when the skill is loaded, without an import."""
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
    except Exception as error:  # noqa: BLE001 - other people's code may break the analysis
        return f'{module.source.docstring}\n\n(Its API cannot be analysed: {type(error).__name__}.)'
    if not api:
        return module.source.docstring
    fence = '`' * max(3, *(len(run) + 1 for run in re.findall('`+', api)), 3)
    return f'{module.source.docstring}\n\n# API of `{module.source.name}`\n\n{fence}python\n{api}\n{fence}'


def _files(skill_name: str, module: Module, rules: FunctionRules) -> SkillFiles:
    files = SkillFiles()

    def report(found: SkillProblem) -> None:
        if found not in files.problems:
            files.problems = (*files.problems, found)

    try:
        declared = read_declarations(module.source)
        for symbol in module.symbols:
            allowed = AllowedFunction() if declared is None else declared.get(symbol.name)
            function = symbol.function
            if allowed is None or function is None:
                continue
            try:
                script = _script(symbol, function, module.source, allowed, rules, report)
            except UnusableModule as unusable:
                report(unusable.problem)
            else:
                script.skill_name = skill_name
                files.scripts.append(script)
    except MissingExtraError:
        raise
    except Exception as error:  # noqa: BLE001 - other people's code may break the analysis
        message = f'Its functions are not offered: they cannot be analysed, {type(error).__name__}: {error}.'
        return SkillFiles(problems=(problem('module-unclear', module.source.file.path, message),))
    return files


def _script(
    symbol: Symbol,
    function: AnyFunctionDef,
    source: ModuleSource,
    allowed: AllowedFunction,
    rules: FunctionRules,
    report: Callable[[SkillProblem], None],
) -> ModuleScript:
    def unusable(code: str, why: str) -> UnusableModule:
        return UnusableModule(problem(code, source.file.path, f'{symbol.name!r} is not offered: {why}.'))

    if allowed.unknown_policy is not None:
        raise unusable('policy-unknown', f'its policy {allowed.unknown_policy} is not known here')
    paths = [way for way in (*allowed.read, *allowed.write) if isinstance(way, str)]
    if missing := [name for name in paths if not takes(function, name)]:
        raise unusable('policy-unknown', f'its policy is about {missing[0]!r}, which it does not take')
    try:
        comments = parameter_descriptions(symbol, cast('griffe.Function', symbol.meaning))
        comments.pop(RETURNS, None)
        schema = static_schema(function, imports=symbol.home.source.imports, comments=comments, name=symbol.name)
    except Exception as error:  # other people's code: one function does not hide the rest
        raise unusable('module-unclear', f'it cannot be analysed, {type(error).__name__}: {error}') from error
    return ModuleScript(
        ModuleFunction(symbol.name, source, schema, is_exact(function), report),
        allowed=allowed,
        positions=parameter_names(function),
        rules=rules,
    )
