"""What the source of a function tells about its arguments, without an import."""

from __future__ import annotations

from typing import Any

import pytest

from pydantic_ai_skills import PackageSkillsRegistry, SkillsToolset
from tests.folders import call_tool
from tests.registries.packages.sites import Site

IMPORTS = '''\
"""Doc."""
import datetime as dt
import typing
import typing as t
from collections.abc import Iterable, Mapping
from pathlib import Path as P
from typing import Annotated, Any, List, Literal, Optional, Union

from pydantic import AfterValidator, Field
from pydantic_ai import RunContext
from typing_extensions import Doc

class Own: ...
LIMIT = 3
'''


def schema(place: Site, signature: str, body: str = '...') -> dict[str, Any]:
    """The schema that the model is shown, without the import that would tell more."""
    text = f'{IMPORTS}{signature}\n    {body}\n'
    place.install('acme', {'acme.py': text}, entry_points={'pyskills': {'acme': 'acme'}})
    (skill,) = PackageSkillsRegistry(packages='all', path=[place.path]).get_skills()
    (script,) = [script for script in skill.scripts if script.name == 'f']
    assert script.function_schema is not None
    assert script.function is None
    return script.function_schema.json_schema


@pytest.mark.parametrize(
    ('annotation', 'expected'),
    [
        ('int', {'type': 'integer'}),
        ("'int'", {'type': 'integer'}),
        ('float | None', {'anyOf': [{'type': 'number'}, {'type': 'null'}]}),
        ('Optional[bool]', {'anyOf': [{'type': 'boolean'}, {'type': 'null'}]}),
        ('t.Union[int, str]', {'anyOf': [{'type': 'integer'}, {'type': 'string'}]}),
        ('list[str]', {'type': 'array', 'items': {'type': 'string'}}),
        ('List[List[int]]', {'type': 'array', 'items': {'type': 'array', 'items': {'type': 'integer'}}}),
        ('list', {'type': 'array', 'items': {}}),
        ('Iterable[int]', {'type': 'array', 'items': {'type': 'integer'}}),
        ('dict[str, int]', {'type': 'object', 'additionalProperties': {'type': 'integer'}}),
        ('Mapping[str, Own]', {'type': 'object', 'additionalProperties': True}),
        ('tuple[int, ...]', {'type': 'array', 'items': {'type': 'integer'}}),
        ("Literal['a', 2]", {'enum': ['a', 2]}),
        ('P', {'type': 'string', 'format': 'path'}),
        ('dt.date', {'type': 'string', 'format': 'date'}),
        ("Annotated[int, Field(ge=1), 'positive']", {'type': 'integer'}),
        ("Annotated[str, Doc('A word.')]", {'type': 'string'}),
        ('Annotated[int, AfterValidator(abs)]', {}),
        ('Own', {}),
        ('Any', {}),
        ('typing.Callable[[int], str]', {}),
        ('Own | int', {'anyOf': [{}, {'type': 'integer'}]}),
        ('int[str]', {}),
        ("'not ('", {}),
        ('Own()', {}),
        ('Own().x', {}),
        ('Literal[LIMIT]', {}),
        ('3', {}),
    ],
)
def test_annotations_are_looked_up_and_never_evaluated(place: Site, annotation: str, expected: dict[str, Any]):
    assert schema(place, f'def f(x: {annotation}):')['properties']['x'] == expected


@pytest.mark.parametrize(
    ('signature', 'properties', 'required'),
    [
        ('def f():', {}, []),
        ('def f(x, /, y, *, z):', {'x': {}, 'y': {}, 'z': {}}, ['x', 'y', 'z']),
        ('def f(x=1, *, y="a"):', {'x': {'default': 1}, 'y': {'default': 'a'}}, []),
        ('def f(x, y=LIMIT):', {'x': {}, 'y': {}}, ['x']),
        ('def f(x: int = len("abc")):', {'x': {'type': 'integer'}}, []),
        ("def f(x=b'\\xff'):", {'x': {}}, []),
        ('def f(*values: int):', {'values': {'type': 'array', 'items': {'type': 'integer'}}}, ['values']),
        ('def f(x, **rest: int):', {'x': {}}, ['x']),
        ('def f(ctx: RunContext[None], x: int):', {'x': {'type': 'integer'}}, ['x']),
        ('async def f(ctx: RunContext, x: int):', {'x': {'type': 'integer'}}, ['x']),
    ],
)
def test_parameters_of_all_kinds_are_shown(
    place: Site, signature: str, properties: dict[str, Any], required: list[str]
):
    found = schema(place, signature)
    assert (found.get('properties', {}), found.get('required', [])) == (properties, required)


@pytest.mark.parametrize(
    ('signature', 'expected'),
    [
        ('def f(\n    x, # first\n    y=(\n 1), # second\n):', {'x': 'first', 'y': 'second'}),
        ('def f(x, # first\n    y): # second', {'x': 'first', 'y': 'second'}),
        ('def f(x): # about all of it', {}),
        ('def f(x) -> int: # the result', {}),
        ('def f(x, y, # both\n    *args, # more\n    **kwargs # rest\n):', {'args': 'more'}),
        ('def f(\n    *, x: int = 1 # one\n) -> int: # the result', {'x': 'one'}),
    ],
)
def test_comments_behind_parameters_describe_them(place: Site, signature: str, expected: dict[str, str]):
    found = schema(place, signature)['properties']
    assert {name: field['description'] for name, field in found.items() if 'description' in field} == expected


@pytest.mark.parametrize(
    'docstring',
    [
        '"""Do it.\n\n    Args:\n        x: The number.\n    """',
        '"""Do it.\n\n    :param x: The number.\n    """',
        '"""Do it.\n\n    Parameters\n    ----------\n    x : int\n        The number.\n    """',
    ],
)
def test_docstrings_describe_parameters(place: Site, docstring: str):
    assert schema(place, 'def f(x: int):', docstring)['properties']['x']['description'] == 'The number.'


CALLED = '''\
"""Doc."""
import functools
from dataclasses import dataclass
from pydantic_ai import RunContext

@dataclass
class Point:
    x: int

def shift(point: Point, by: int = len('abc')) -> int:
    return point.x + by

def with_context(ctx: RunContext, word: str) -> str:
    return f'{word} {ctx.deps}'

@functools.cache
def cached(x: int) -> int:
    return x + 1

def renamed_by(function):
    @functools.wraps(function)
    def inner(number: int) -> int:
        return function(number)
    inner.__signature__ = __import__('inspect').signature(inner, follow_wrapped=False)
    del inner.__wrapped__
    return inner

@renamed_by
def decorated(x: int) -> int:
    return x * 2

async def later(x: int) -> int:
    return x
'''


@pytest.mark.parametrize(
    ('script', 'args', 'expected'),
    [
        ('shift', {'point': {'x': 1}}, (True, 4)),
        ('shift', {'point': {'x': 'one'}}, (False, 'valid integer')),
        ('with_context', {'word': 'deps:'}, (True, 'deps: None')),
        ('cached', {'x': 1}, (True, 2)),
        ('cached', {'x': 'one'}, (False, 'valid integer')),
        ('decorated', {'number': 4}, (True, 8)),
        ('decorated', {'x': 4}, (False, 'It takes: number ')),
        ('later', '{"x": 5}', (True, 5)),
        ('later', '{"x": ', (False, 'do not fit')),
    ],
)
async def test_once_it_is_imported_the_function_itself_says_what_it_takes(
    importable: Site, script: str, args: Any, expected: tuple[bool, Any]
):
    importable.install('acme', {'acme.py': CALLED}, entry_points={'pyskills': {'acme': 'acme'}})
    registry = PackageSkillsRegistry(packages='all', path=[importable.path], trusted=True)
    toolset = SkillsToolset(registries=[registry])
    succeeded, result = await call_tool(toolset, 'run_skill_script', skill_name='acme', script_name=script, args=args)
    if expected[0]:
        assert (succeeded, result) == expected
    else:
        assert not succeeded
        assert expected[1] in result
