"""What a model is shown of a module."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot

from pydantic_ai_skills import PackageSkillsRegistry
from pydantic_ai_skills.registries.packages.code import Code, ModuleFile
from pydantic_ai_skills.registries.packages.modules.api import render_api
from pydantic_ai_skills.registries.packages.modules.source import read_module
from pydantic_ai_skills.registries.packages.modules.symbols import Module
from pydantic_ai_skills.registries.packages.trees import FolderTree
from tests.registries.packages.sites import Site


def load(place: Site, files: dict[str, str], module: str = 'acme.main') -> str:
    place.install('acme', files, entry_points={'pyskills': {'acme': module}})
    (skill,) = PackageSkillsRegistry(packages='all', path=[place.path]).get_skills()
    return skill.content


def shown(place: Site, text: str, **files: str) -> str:
    """The API of a module, without its docstring."""
    more = {f'acme/{name}.py': content for name, content in files.items()}
    content = load(place, {'acme/__init__.py': '', 'acme/main.py': f'"""Doc."""\n{text}', **more})
    return content.removeprefix('Doc.\n\n# API of `acme.main`\n\n```python\n').removesuffix('\n```')


def test_every_kind_of_symbol_is_shown(place: Site):
    text = '''
import os
from typing import overload

LIMIT: int = 3
"""How many."""
names = ['a', 'b']
_private = 1

async def fetch(url: str, /, retries=3, *, timeout: float = 1.0, **options) -> bytes:
    """Fetch a page.

    It takes a while.

    Returns:
        The bytes.
    """

def bare(*args, key): ...

def only_positional(x, /): ...

class Base(dict[str, int], metaclass=type):
    colour = 'red'

    def __init__(self, size: int):
        self.size = size
        self.kept: str = ''
        """What is kept."""

    @staticmethod
    def make(x): return x

    @classmethod
    def load(cls, path: str) -> "Base":
        """Load it."""

    @property
    def plain(self): ...

    def __repr__(self): return ''

class Empty: ...
'''
    assert shown(place, text) == snapshot('''\
LIMIT: int = 3  # How many.

names = ['a', 'b']

async def fetch(url: str, /, retries=3, *, timeout: float = 1.0, **options) -> bytes:  # The bytes.
    """Fetch a page."""

def bare(*args, key):
    ...

def only_positional(x, /):
    ...

class Base(dict[str, int]):
    colour = 'red'
    def __init__(self, size: int):
        ...
    kept: str = ''  # What is kept.
    @staticmethod
    def make(x):
        ...
    @classmethod
    def load(cls, path: str) -> Base:
        """Load it."""
    plain  # property

class Empty:
    ...\
''')


def test_symbols_are_followed_through_imports(place: Site):
    text = """
import acme.tools
import json
from .inner import first as renamed, loop
from .stars import *
from acme import tools
from acme.missing import nothing
from acme.broken import something
__all__ = ['renamed', 'starred', 'tools', 'nothing', 'something', 'loop', 'unknown', 'json']
__all__ += ['own']
def own(): ...
def hidden(): ...
"""
    files = {
        'inner': 'from .deeper import first\nfrom .inner import loop\n',
        'deeper': 'def first(x: int) -> int:\n    """The first."""\n',
        'stars': 'def starred(): ...\n',
        'tools': '"""Tools of the trade.\n\nMore."""\ndef hammer(): ...\n',
        'broken': 'def (',
    }
    assert shown(place, text, **files) == snapshot('''\
def renamed(x: int) -> int:
    """The first."""

def starred():
    ...

def own():
    ...

# acme.tools
# Tools of the trade.

def hammer():
    ...\
''')


def test_relative_imports_of_a_package_are_followed(place: Site):
    files = {
        'acme/__init__.py': '"""Doc."""\nfrom .parts import part\nfrom . import parts\n__all__ = ["part", "parts"]\n',
        'acme/parts.py': 'def part(): ...\n',
    }
    assert 'def part():' in load(place, files, 'acme')


def test_names_that_other_modules_export_are_exported_with_them(place: Site):
    text = """
from . import sub
from .more import *
from .more import __all__ as more_names
from .ring import turn
import acme.ring
OWN = list(globals())
__all__ = ['own', *more_names, *acme.ring.__all__, 'turn'] + sub.__all__ + OWN
def own(): ...
def hidden(): ...
"""
    files = {
        'sub': "__all__ = ['inner']\ndef inner(): ...\n",
        'more': "__all__ = ['also']\ndef also(): ...\ndef not_this(): ...\n",
        'ring': "import acme.main\n__all__ = ['turn', *acme.main.__all__]\ndef turn(): ...\n",
    }
    lines = shown(place, f'from .sub import inner\n{text}', **files).splitlines()
    assert [line for line in lines if line.startswith(('def', '__all__'))][:4] == [
        'def own():',
        'def also():',
        'def turn():',
        'def inner():',
    ]
    assert not any('hidden' in line or '__all__' in line for line in lines)


def test_overloads_are_shown_before_what_they_are_of(place: Site):
    text = """
from typing import overload
@overload
def half(x: int) -> int: ...
@overload
def half(x: str, /) -> str:
    '''Of a word.'''
def half(x):
    '''The half of it.'''
"""
    assert shown(place, text) == snapshot('''\
@overload
def half(x: int) -> int:
    ...
@overload
def half(x: str, /) -> str:
    """Of a word."""
def half(x):
    """The half of it."""\
''')


def test_a_module_without_symbols_is_its_docstring(place: Site):
    assert load(place, {'acme/main.py': '"""Only words.\n\nAnd more.\n"""\n'}) == 'Only words.\n\nAnd more.'


def test_the_api_stays_in_its_fence(place: Site):
    text = load(place, {'acme/main.py': '"""Doc."""\ndef f():\n    """Use ``` and \\"\\"\\" well."""\n'})
    assert text == snapshot('''\
Doc.

# API of `acme.main`

````python
def f():
    """Use ``` and \'\'\' well."""
````\
''')


def test_a_long_api_is_cut_and_says_what_is_left_out(place: Site):
    text = '\n'.join(f'def function_{number}(): ...' for number in range(5)) + f'\nx = {"y" * 300!r}\n'
    place.install('acme', {'acme.py': text})
    source = read_module('acme', ModuleFile(FolderTree(str(place.path)), 'acme.py'))
    assert render_api(Module(source, Code(trees=())), max_chars=60) == snapshot("""\
def function_0():
    ...

def function_1():
    ...

# 4 more, not shown: function_2, function_3, function_4, x\
""")


def test_long_values_and_comments_are_shortened(place: Site):
    text = f'x = {list(range(100))}\ndef f(\n    a={"z" * 200!r}, # {"comment " * 50}\n): ...\n'
    assert max(map(len, shown(place, text).splitlines())) < 330


@pytest.mark.parametrize(
    'text',
    [
        '"""A \\d doc."""\ndef f(x=r"\\d", y="\\d", z=\'\\\'\\w\'): ...\n',
        '# it\'s "quoted\n"""A \\d doc."""\ndef f(x=rb"\\d"): ...\n',
        'R"""A \\d doc."""\n',
    ],
)
def test_escapes_that_python_does_not_know_warn_nobody(place: Site, text: str, recwarn: Any):
    content = load(place, {'acme/main.py': text})
    assert content.startswith('A \\d doc.')
    assert list(recwarn) == []


def test_the_encoding_a_module_declares_is_used(place: Site):
    place.install(
        'acme',
        {'acme.py': '# coding: latin-1\n"""Grüße."""\n'.encode('latin-1')},
        entry_points={'pyskills': {'acme': 'acme'}},
    )
    (skill,) = PackageSkillsRegistry(packages='all', path=[place.path]).get_skills()
    assert skill.description == 'Grüße.'
