"""Entry points that name skills written in Python: a `Skill`, several, or a function that returns them.

What they are called is read from the source where that is possible, so that they are imported when one of them is used.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.types.items import SkillFiles
from pydantic_ai_skills.types.skill import Skill, SkillOptions, SkillProvenance

from .imports import import_source
from .source import ModuleSource

__all__ = ('NamedSkills', 'WrittenSkill', 'read_skills')

MAX_STEPS = 20
"""How many names are followed from an entry point to the skills it means."""

_Scope = Mapping[str, ast.AST]


_KNOWN_LATER = frozenset({'content', 'resources', 'scripts', 'tools'})
"""What a skill is made with that need not be known before it is imported."""

_OPTIONS = frozenset({'uri', *SkillOptions.__optional_keys__}) - _KNOWN_LATER
"""What has to be, besides its name and description."""


class WrittenSkill(NamedTuple):
    """A skill as the source has it."""

    name: str
    description: str
    options: dict[str, Any]


class NamedSkills:
    """The skills that an entry point names, imported when they are first needed."""

    def __init__(self, source: ModuleSource, attribute: str) -> None:
        self.source = source
        self.attribute = attribute
        self._loaded: dict[str, Skill[Any]] | None = None
        self._lock = threading.Lock()

    def load(self) -> dict[str, Skill[Any]]:
        """Import the module and take its skills.

        Raises:
            SkillRegistryError: It cannot be imported, or there are no skills.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = {skill.name: skill for skill in self._take()}
            return self._loaded

    def later(self, written: WrittenSkill, about: SkillProvenance) -> Skill[Any]:
        """A skill of which the source told enough to list it."""
        return Skill[Any](
            written.name,
            written.description,
            lambda: self._get(written.name).content,
            **written.options,
            files=lambda: self._files(written.name),
            source=about,
            late=True,
        )

    def _files(self, name: str) -> SkillFiles:
        skill = self._get(name)
        return replace(skill.files, tools=tuple(skill.tools))

    def _get(self, name: str) -> Skill[Any]:
        skill = self.load().get(name)
        if skill is None:
            raise SkillRegistryError(f'{self._label} has no skill {name!r} any more.')
        return skill

    @property
    def _label(self) -> str:
        return f'{self.source.name}:{self.attribute}'

    def _take(self) -> Iterator[Skill[Any]]:
        value: Any = import_source(self.source)
        for step in self.attribute.split('.'):
            value = getattr(value, step, None)
        if callable(value):
            try:
                value = value()
            except (Exception, SystemExit) as error:
                raise SkillRegistryError(f'{self._label} failed with {type(error).__name__}: {error}') from error
        if not isinstance(value, list | tuple | set | frozenset):
            value = [value]
        for item in cast('list[object]', value):
            if not isinstance(item, Skill):
                kind = type(item).__name__
                raise SkillRegistryError(f'{self._label} is no skill, list of skills or function, but gives a {kind}.')
            yield cast('Skill[Any]', item)


def read_skills(source: ModuleSource, attribute: str) -> list[WrittenSkill] | None:
    """The names and descriptions of the skills that a name in a module means; `None` if the source does not tell."""
    scope: dict[str, ast.AST] = dict(_scope(source.tree.body))
    try:
        written = list(_skills(scope[attribute], scope, MAX_STEPS))
        for skill in written:
            Skill[Any](skill.name, skill.description, '', **skill.options)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return written or None


def _scope(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _skills(node: ast.AST, scope: _Scope, steps: int) -> Iterator[WrittenSkill]:
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
                raise TypeError('It cannot be told what the function returns.')
            yield from _skills(returns[0].value, {**scope, **dict(_scope(node.body))}, steps - 1)
        case ast.Call(func=ast.Name(id='Skill') | ast.Attribute(attr='Skill')):
            yield _written(node, scope)
        case ast.Call(func=ast.Subscript(value=ast.Name(id='Skill') | ast.Attribute(attr='Skill'))):
            yield _written(node, scope)
        case _:
            raise TypeError('It is no skill that the source tells.')


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """What a function returns, not what the functions in it return."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Return):
            yield inner
        elif not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _returns(inner)


def _written(call: ast.Call, scope: _Scope) -> WrittenSkill:
    named = {str(keyword.arg): keyword.value for keyword in call.keywords}
    if not named.keys() <= {'name', 'description', *_KNOWN_LATER, *_OPTIONS}:
        raise TypeError('It is made with more than can be told.')
    literals = {name: ast.literal_eval(_followed(node, scope)) for name, node in named.items() if name in _OPTIONS}
    return WrittenSkill(_text(call, 0, 'name', scope), _text(call, 1, 'description', scope), literals)


def _followed(node: ast.AST, scope: _Scope) -> Any:
    return scope[node.id] if isinstance(node, ast.Name) else node


def _text(call: ast.Call, position: int, name: str, scope: _Scope) -> str:
    """An argument that is a text, or a name for one."""
    named: dict[str | None, ast.AST] = {keyword.arg: keyword.value for keyword in call.keywords}
    node = _followed(call.args[position] if position < len(call.args) else named[name], scope)
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise TypeError('It is not a text.')
    return node.value
