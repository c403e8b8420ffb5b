"""Entry points that name skills written in Python: a `Skill`, several, or a function that returns them.

Where possible their names are read from the source, so that the module is imported only when one of them is used.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.script import ImportedCode
from pydantic_ai_skills.types.skill import Skill, SkillFiles, SkillOptions

from .source import ModuleSource, import_source, last_name

MAX_STEPS = 20
"""How many names are followed from an entry point to its skills."""

_Scope = Mapping[str, ast.AST]

_KNOWN_LATER = frozenset({'content', 'resources', 'scripts', 'tools'})
"""Arguments of a skill that need not be known before the import."""

_OPTIONS = frozenset({'uri', *SkillOptions.__optional_keys__}) - _KNOWN_LATER
"""Arguments that have to be known, besides name and description."""


class DeclaredSkill(NamedTuple):
    """A skill as its source declares it."""

    name: str
    description: str
    options: dict[str, Any]


class NamedSkills:
    """The skills that an entry point names, imported when they are first needed."""

    def __init__(self, source: ModuleSource, attribute: str) -> None:
        self.source = source
        self.attribute = attribute
        self._loaded: dict[str, Skill[Any]] | None = None
        self._lock = ThreadLock()

    def load(self) -> dict[str, Skill[Any]]:
        """Import the module and take its skills."""
        with self._lock:
            if self._loaded is None:
                self._loaded = {skill.name: skill for skill in self._take()}
            return self._loaded

    def declared(self) -> list[DeclaredSkill] | None:
        """Read names and descriptions of the skills from the source; `None` if it does not say."""
        scope: dict[str, ast.AST] = dict(_scope(self.source.tree.body))
        try:
            declared = list(_skills(scope[self.attribute], scope, MAX_STEPS))
            for skill in declared:
                Skill[Any](skill.name, skill.description, '', **skill.options)
        except (KeyError, TypeError, ValueError, RecursionError):
            return None
        return declared or None

    def deferred(self, declared: DeclaredSkill, about: SkillProvenance) -> Skill[Any]:
        """A skill that is imported when its content is needed."""
        return Skill[Any](
            declared.name,
            declared.description,
            lambda: self._get(declared.name).content,
            **declared.options,
            files=lambda: self._files(declared.name),
            source=about,
            late=self._code(declared.name),
        )

    def _code(self, skill_name: str) -> ImportedCode:
        source = self.source
        return ImportedCode(source.name, uri=source.file.path, skill_name=skill_name, source=source.text)

    def _files(self, name: str) -> SkillFiles:
        skill = self._get(name)
        return replace(skill.files, tools=tuple(skill.tools))

    def _get(self, name: str) -> Skill[Any]:
        skill = self.load().get(name)
        if skill is None:
            raise SkillRegistryError(f'{self.label} has no skill {name!r} any more.')
        return skill

    @property
    def label(self) -> str:
        return f'{self.source.name}:{self.attribute}'

    def _take(self) -> Iterator[Skill[Any]]:
        value: Any = import_source(self.source)
        for step in self.attribute.split('.'):
            value = getattr(value, step, None)
        if callable(value):
            try:
                value = value()
            except (Exception, SystemExit) as error:
                raise SkillRegistryError(f'{self.label} failed with {type(error).__name__}: {error}') from error
        if not isinstance(value, list | tuple | set | frozenset):
            value = [value]
        for item in cast('list[object]', value):
            if not isinstance(item, Skill):
                raise SkillRegistryError(f'{self.label} must be or return skills, not a {type(item).__name__}.')
            yield cast('Skill[Any]', item)


def _scope(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _skills(node: ast.AST, scope: _Scope, steps: int) -> Iterator[DeclaredSkill]:
    if not steps:
        raise RecursionError
    match node:
        case ast.Name():
            yield from _skills(scope[node.id], scope, steps - 1)
        case ast.List() | ast.Tuple() | ast.Set():
            for item in node.elts:
                yield from _skills(item.value if isinstance(item, ast.Starred) else item, scope, steps - 1)
        case ast.FunctionDef():
            returns = list(_returns(node))
            if len(returns) != 1 or returns[0].value is None:
                raise TypeError('The source does not say what the function returns.')
            yield from _skills(returns[0].value, {**scope, **dict(_scope(node.body))}, steps - 1)
        case ast.Call(func=ast.Subscript(value=function) | function) if last_name(function) == 'Skill':
            yield _declared(node, scope)
        case _:
            raise TypeError('The source does not say which skill it is.')


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """The `return` statements of a function, without those of inner functions."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Return):
            yield inner
        elif not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _returns(inner)


def _declared(call: ast.Call, scope: _Scope) -> DeclaredSkill:
    given: dict[str, ast.AST] = dict(zip(('name', 'description'), call.args, strict=False))
    given |= {str(keyword.arg): keyword.value for keyword in call.keywords}
    if not given.keys() <= {'name', 'description', *_KNOWN_LATER, *_OPTIONS}:
        raise TypeError('It has unknown arguments.')
    literals = {name: ast.literal_eval(_followed(node, scope)) for name, node in given.items() if name in _OPTIONS}
    return DeclaredSkill(_text(given['name'], scope), _text(given['description'], scope), literals)


def _followed(node: ast.AST, scope: _Scope) -> Any:
    return scope[node.id] if isinstance(node, ast.Name) else node


def _text(node: ast.AST, scope: _Scope) -> str:
    """The value of an argument that is a string, or a name for one."""
    node = _followed(node, scope)
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise TypeError('It is not a string.')
    return node.value
