"""A module as a skill: its docstring and API as instructions, its public functions as scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.parsing import find_headings
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.registries.packages.code import Code
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.resource import SkillResource
from pydantic_ai_skills.types.skill import Skill, SkillFiles

from .allowed import ALL, INSTANCE, AllowedFunction, read_declarations
from .api import RETURNS, parameter_descriptions, render_api
from .describe import describe_in
from .functions import FunctionRules, ModuleFunction, ModuleScript
from .methods import as_function
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
        for symbol, function, allowed in _allowed(module, declared):
            try:
                script = _script(symbol, function, module.source, allowed, rules, report)
            except UnusableModule as unusable:
                report(unusable.problem)
            else:
                script.skill_name = skill_name
                files.scripts.append(script)
        files.resources.append(_api_resource(module))
    except MissingExtraError:
        raise
    except Exception as error:  # noqa: BLE001 - other people's code may break the analysis
        message = f'Its functions are not offered: they cannot be analysed, {type(error).__name__}: {error}.'
        return SkillFiles(problems=(problem('module-unclear', module.source.file.path, message),))
    return files


def _api_resource(module: Module) -> SkillResource:
    """The API of the module as a resource, whole or for one symbol."""

    def api(symbol: str = '') -> str:
        text = describe_in(module, symbol)
        if text is None:
            raise SkillResourceLoadError(closest_first('symbol', symbol, module.public_names))
        return text

    description = 'One symbol in full, with args {"symbol": "name"}; a method is `Class.method`.'
    return SkillResource('api', description, function=api)


def _allowed(
    module: Module, declared: Mapping[str, AllowedFunction] | None
) -> Iterator[tuple[Symbol, AnyFunctionDef, AllowedFunction]]:
    """The functions and methods that may be called: what the module declares, or else its public functions."""
    for symbol in module.symbols:
        if symbol.function is not None and (declared is None or symbol.name in declared):
            yield symbol, symbol.function, declared[symbol.name] if declared else AllowedFunction()
        for method in symbol.methods if declared else ():
            allowed = (declared or {}).get(method.name) or (declared or {}).get(f'{symbol.name}.{ALL}')
            if allowed is not None and method.function is not None:
                yield method, method.function, allowed


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
    function, positions = as_function(function) if '.' in symbol.name else (function, parameter_names(function))
    paths = [way for way in (*allowed.read, *allowed.write) if isinstance(way, str)]
    if missing := [name for name in paths if not takes(function, name)]:
        raise unusable('policy-unknown', f'its policy is about {missing[0]!r}, which it does not take')
    try:
        comments = parameter_descriptions(symbol, cast('griffe.Function', symbol.meaning))
        comments.pop(RETURNS, None)
        comments[INSTANCE] = (
            f'The arguments that make the `{symbol.name.partition(".")[0]}`, as an object or one value.'
        )
        schema = static_schema(function, imports=symbol.home.source.imports, comments=comments, name=symbol.name)
    except Exception as error:  # other people's code: one function does not hide the rest
        raise unusable('module-unclear', f'it cannot be analysed, {type(error).__name__}: {error}') from error
    module_function = ModuleFunction(symbol.name, source, schema, is_exact(function), report)
    return ModuleScript(
        symbol.name,
        module_function.description,
        function_schema=module_function,
        module_function=module_function,
        allowed=allowed,
        positions=positions,
        rules=rules,
    )
