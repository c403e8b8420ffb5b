"""Which functions of a module can be called, and where the paths in their arguments may lead."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from pydantic_ai_skills import PackageSkillsRegistry, SkillScriptExecutionError, SkillsToolset
from tests.folders import call_tool
from tests.registries.packages.sites import Site

PYSKILLS = """\
class PosAllowPolicy:
    def __init__(self, pos=0, kw=None): ...
class OpenWritePolicy: ...
class PathWritePolicy:
    def __init__(self, target_pos=None, target_kw=None): ...
class PathPolicy:
    def __init__(self, **folders): ...
class OwnPolicy: ...
def allow(*items, allow_policy=None):
    return items[0]
"""
FUNCTIONS = '''\
"""Files."""
import rules
from rules import *

def plain(): ...
def save(target: str, text: str = 'x') -> str:
    with open(target, 'w') as file:
        file.write(text)
    return 'saved'
def load(text: str, source: str) -> str:
    with open(source) as file:
        return file.read()
class Files:
    def close(self): ...
class Folder:
    """A folder."""

    def __init__(self, place: str, name: str = 'note') -> None:
        self.path = f'{place}/{name}'

    def __fspath__(self) -> str:
        return self.path

    def write(self, text: str) -> str:
        """Write a note."""
        with open(self.path, 'w') as file:
            return f'{file.write(text)} characters'

    def join(self, first: str, /, *rest: str) -> str:
        return '/'.join((self.path, first, *rest))

    def _hidden(self): ...

    @staticmethod
    def double(number: int) -> int:
        return 2 * number

    @classmethod
    def named(cls, name: str) -> str:
        return cls('there', name).path
def open_file(file: str, mode: str = 'r') -> str:
    with open(file, mode) as opened:
        return opened.read() if mode == 'r' else str(opened.write('x'))
'''


def toolset(place: Site, declaration: str, **options: Any) -> SkillsToolset[Any]:
    files = {'acme_files.py': f'{FUNCTIONS}{declaration}\n', 'rules.py': PYSKILLS}
    place.install('acme', files, entry_points={'pyskills': {'files': 'acme_files'}})
    return SkillsToolset(registries=[PackageSkillsRegistry(packages='all', path=[place.path], trusted=True, **options)])


def offered(toolset: SkillsToolset[Any]) -> list[str]:
    return [script.name for script in toolset.get_skill('files').scripts]


async def run(toolset: SkillsToolset[Any], script: str, **args: Any) -> tuple[bool, Any]:
    return await call_tool(toolset, 'run_skill_script', skill_name='files', script_name=script, args=args)


@pytest.mark.parametrize(
    ('declaration', 'expected'),
    [
        ('', ['plain', 'save', 'load', 'open_file']),
        ("__all__ = ['save']", ['save']),
        ("__skill_scripts__ = ['plain']", ['plain']),
        ("__skill_scripts__: tuple = ('plain', 'load')", ['plain', 'load']),
        ("__skill_scripts__ = {'save': {'write': 'target'}, 'load': {}}", ['save', 'load']),
        ('__skill_scripts__ = [name for name in ()]', []),
        ('__skill_scripts__ = 3', []),
        ('__skill_scripts__: list', []),
        ('allow(plain)', ['plain']),
        ('rules.allow(plain, load)', ['plain', 'load']),
        ('allow(*[plain, load])', ['plain', 'load']),
        ('allow(*(x for x in ()))', []),
        ('allow({Files: ...}, {Files: ["close"]})', ['Files.close']),
        ('allow(Folder.write, Folder.missing, Other.thing)', ['Folder.write']),
        ('allow({Folder: ...})', ['Folder.write', 'Folder.join', 'Folder.double', 'Folder.named']),
        (
            'allow({Folder: ("write", ("join", None), 3)}, {Files: "close"})',
            ['Folder.write', 'Folder.join', 'Files.close'],
        ),
        ('allow({Folder: ["_hidden"], 3: ...}, 3)', []),
        ('class Odd:\n    def loose(*all): ...\nallow({Odd: ...})', ['Odd.loose']),
        ('allow({save: PosAllowPolicy(0)}, plain)', ['plain', 'save']),
        ('allow(save, allow_policy=None)', ['save']),
        ('allow({save: None, load: OpenWritePolicy()})', ['load']),
        ('allow({"save": PosAllowPolicy(0)})', []),
        ('@allow\ndef more(): ...', ['more']),
        ('try:\n    allow(plain)\nexcept ImportError: ...', ['plain']),
        ('if rules:\n    __skill_scripts__ = ["plain"]', ['plain']),
        ('done = allow(plain)', ['plain']),
        ('from rules import allow as permit\npermit(plain)', ['plain']),
        ('def inner():\n    allow(plain)', ['plain', 'save', 'load', 'open_file', 'inner']),
        ('@other\ndef more(): ...', ['plain', 'save', 'load', 'open_file', 'more']),
    ],
)
def test_only_what_a_module_declares_can_be_called(place: Site, declaration: str, expected: list[str]):
    found = toolset(place, declaration)
    assert sorted(offered(found)) == sorted(expected)
    assert found.problems == []


@pytest.mark.parametrize(
    'declaration',
    [
        'allow(save, allow_policy=OwnPolicy())',
        'allow({save: rules.OwnPolicy})',
        'allow({save: PosAllowPolicy(kw=len)})',
        'allow({save: PathPolicy(write={"target": ["out"]}, otherwise="ask")})',
        "__skill_scripts__ = {'save': 'always'}",
        "__skill_scripts__ = {'save': {'delete': ['target']}}",
        "__skill_scripts__ = {'save': {'write': ['tagret']}}",
        "__skill_scripts__ = {'save': {'write': [0]}}",
        "__skill_scripts__ = {'more': {'write': ['rest']}}\ndef more(**rest): ...",
        'allow({save: PosAllowPolicy(0, "filename")})',
        'allow({save: PathWritePolicy()})',
        'allow({save: PathWritePolicy(target_pos=len)})',
    ],
)
def test_a_function_under_a_policy_that_is_not_known_is_not_offered(place: Site, declaration: str):
    found = toolset(place, declaration)
    assert offered(found) == []
    assert [problem.code for problem in found.problems] == ['policy-unknown']


WAYS = [
    "__skill_scripts__ = {'save': {'write': ['target']}}",
    "__skill_scripts__ = {'save': {'write': 'target'}}",
    'allow({save: PosAllowPolicy(0, "target")})',
    'allow({save: PosAllowPolicy()})',
    'allow({save: PosAllowPolicy(pos=0)})',
    'allow(save, allow_policy=PosAllowPolicy(kw="target"))',
    'allow({save: rules.OpenWritePolicy()})',
    'allow({save: OpenWritePolicy})',
    'try:\n    allow({save: PosAllowPolicy(0, "target")})\nexcept ImportError: ...',
    'from rules import allow as permit\npermit({save: PosAllowPolicy()})',
]


@pytest.mark.parametrize('declaration', WAYS)
async def test_a_declared_path_stays_in_the_folders_of_the_developer(
    importable: Site, tmp_path: Path, declaration: str
):
    out = tmp_path / 'out'
    out.mkdir()
    found = toolset(importable, declaration, write_to=[out])
    for target in (tmp_path / 'evil', out / '../evil', '/etc/evil'):
        succeeded, message = await run(found, 'save', target=str(target))
        assert (succeeded, 'is not one that may be written' in message) == (False, True)
        assert 'acme_files' not in sys.modules
    assert await run(found, 'save', target=str(out / 'good')) == (True, 'saved')
    succeeded, _ = await run(found, 'save', target=str(tmp_path / 'evil'))
    assert not succeeded
    assert not (tmp_path / 'evil').exists()


@pytest.mark.parametrize('declaration', WAYS)
async def test_without_a_folder_a_function_with_declared_paths_is_not_called(
    importable: Site, tmp_path: Path, declaration: str
):
    found = toolset(importable, declaration)
    succeeded, message = await run(found, 'save', target=str(tmp_path / 'x'))
    assert (succeeded, 'write_to=[...]' in message) == (False, True)
    assert not (tmp_path / 'x').exists()


async def test_what_is_read_has_folders_of_its_own(importable: Site, tmp_path: Path):
    (tmp_path / 'in').mkdir()
    (tmp_path / 'in/a').write_text('A')
    (tmp_path / 'b').write_text('B')
    declaration = "__skill_scripts__ = {'load': {'read': ['source']}}"
    found = toolset(importable, declaration, read_from=[tmp_path / 'in'], write_to=[tmp_path])
    assert await run(found, 'load', text='', source=str(tmp_path / 'in/a')) == (True, 'A')
    succeeded, message = await run(found, 'load', text='', source=str(tmp_path / 'b'))
    assert (succeeded, 'is not one that may be read' in message) == (False, True)
    closed = toolset(importable, declaration, write_to=[tmp_path])
    succeeded, message = await run(closed, 'load', text='', source=str(tmp_path / 'in/a'))
    assert (succeeded, 'read_from=[...]' in message) == (False, True)


@pytest.mark.parametrize(
    'declaration',
    [
        'allow({{save: PathPolicy(write={{"target": [{folder!r}]}})}})',
        "__skill_scripts__ = {{'save': {{'write': {{'target': [{folder!r}]}}}}}}",
        "__skill_scripts__ = {{'save': {{'write': {{'target': {folder!r}}}}}}}",
    ],
)
@pytest.mark.parametrize(('write_to', 'is_allowed'), [(None, True), ('out', True), ('other', False)])
async def test_folders_that_a_module_names_hold_beside_those_of_the_developer(
    importable: Site, tmp_path: Path, declaration: str, write_to: str | None, is_allowed: bool
):
    for name in ('out', 'other'):
        (tmp_path / name).mkdir()
    options = {} if write_to is None else {'write_to': [tmp_path / write_to]}
    found = toolset(importable, declaration.format(folder=str(tmp_path / 'out')), **options)
    succeeded, _ = await run(found, 'save', target=str(tmp_path / 'out/x'))
    assert succeeded == is_allowed == (tmp_path / 'out/x').exists()
    succeeded, _ = await run(found, 'save', target=str(tmp_path / 'other/x'))
    assert not succeeded


@pytest.mark.parametrize(
    'policy', ['PosAllowPolicy(7)', "PosAllowPolicy(0, 'traget')", "PathPolicy(read={'x': ['.']})"]
)
async def test_a_function_without_the_declared_path_is_not_run(importable: Site, tmp_path: Path, policy: str):
    found = toolset(importable, f'allow({{save: {policy}}})', write_to=[tmp_path])
    succeeded, told = await run(found, 'save', target=str(tmp_path / 'x'))
    assert not succeeded
    # A name that the source does not have is noticed before that of a position.
    assert 'it has no such parameter' in told or 'There is no script' in told
    assert not (tmp_path / 'x').exists()


@pytest.mark.parametrize('parameters', ['*target: str', '*, target: str', '**rest: str'])
async def test_a_declared_path_may_be_any_kind_of_parameter(importable: Site, tmp_path: Path, parameters: str):
    found = toolset(
        importable,
        f"__skill_scripts__ = {{'more': {{'write': ['target']}}}}\ndef more({parameters}): return 'called'",
        write_to=[tmp_path / 'out'],
    )
    ways = [[str(tmp_path / name)] if parameters.startswith('*t') else str(tmp_path / name) for name in ('x', 'out/x')]
    succeeded, message = await run(found, 'more', target=ways[0])
    assert (succeeded, 'is not one that may be written' in message) == (False, True)
    assert await run(found, 'more', target=ways[1]) == (True, 'called')


@pytest.mark.parametrize(
    ('script', 'args', 'result'),
    [
        ('Folder.double', {'number': 4}, '8'),
        ('Folder.named', {'name': 'x'}, 'there/x'),
        ('Folder.join', {'self': 'here', 'first': 'a', 'rest': ['b', 'c']}, 'here/note/a/b/c'),
        ('Folder.join', {'self': {'place': 'here', 'name': 'n'}, 'first': 'a', 'rest': []}, 'here/n/a'),
    ],
)
async def test_methods_are_called_with_what_makes_the_instance(
    importable: Site, script: str, args: dict[str, Any], result: str
):
    found = toolset(importable, 'allow({Folder: ...})')
    succeeded, answer = await run(found, script, **args)
    assert (succeeded, str(answer)) == (True, result)


async def test_a_method_that_is_gone_or_misused_is_a_tool_failure(importable: Site):
    found = toolset(importable, 'allow({Folder: ...})\nFolder.write = 3\nFolder.join = None')
    succeeded, message = await run(found, 'Folder.write', self='x', text='y')
    assert (succeeded, "has no function 'Folder.write'" in message) == (False, True)
    succeeded, message = await run(found, 'Folder.named', nothing='x')
    assert (succeeded, 'do not fit' in message) == (False, True)


@pytest.mark.parametrize(
    ('policy', 'args'),
    [('PathWritePolicy()', {}), ('PathWritePolicy(0)', {'text': 'out'}), ('PathWritePolicy(target_kw="text")', {'text': 'out'})],
)  # fmt: skip
async def test_the_instance_of_a_method_can_be_a_path_that_is_written_to(
    importable: Site, tmp_path: Path, policy: str, args: dict[str, str]
):
    out = tmp_path / 'out'
    out.mkdir()
    found = toolset(importable, f'allow({{Folder: [("write", {policy})]}})', write_to=[out])
    text = str(out / args['text']) if args else 'Hello'
    assert await run(found, 'Folder.write', self=str(out), text=text) == (True, f'{len(text)} characters')
    for bad in ({'self': str(tmp_path)}, {'self': {'place': str(out)}}, *([{'text': str(tmp_path)}] if args else [])):
        succeeded, message = await run(found, 'Folder.write', **{'self': str(out), 'text': text, **bad})
        assert (succeeded, 'may be written' in message) == (False, True)


@pytest.mark.parametrize('mode', [{}, {'mode': 'r'}])
async def test_a_policy_for_open_lets_reads_pass(importable: Site, tmp_path: Path, mode: dict[str, str]):
    (tmp_path / 'in').write_text('A')
    found = toolset(importable, 'allow({open_file: OpenWritePolicy()})', write_to=[tmp_path / 'out'])
    assert await run(found, 'open_file', file=str(tmp_path / 'in'), **mode) == (True, 'A')


@pytest.mark.parametrize('mode', ['w', 'a', 'x', 'r+', '', 3])
async def test_a_policy_for_open_confines_writes(importable: Site, tmp_path: Path, mode: Any):
    (tmp_path / 'out').mkdir()
    found = toolset(importable, 'allow({open_file: OpenWritePolicy()})', write_to=[tmp_path / 'out'])
    succeeded, message = await run(found, 'open_file', file=str(tmp_path / 'in'), mode=mode)
    assert not succeeded
    assert ('may be written' in message) == isinstance(mode, str)
    assert not (tmp_path / 'in').exists()
    if mode in ('w', 'a', 'x'):
        assert await run(found, 'open_file', file=str(tmp_path / 'out/x'), mode=mode) == (True, '1')


@pytest.mark.parametrize('args', [['in', 'w'], '{'])
async def test_arguments_that_are_not_an_object_are_no_reads(importable: Site, tmp_path: Path, args: Any):
    found = toolset(importable, 'allow({open_file: OpenWritePolicy()})', write_to=[tmp_path])
    await found.load()
    (script,) = await to_thread.run_sync(lambda: found.get_skill('files').scripts)
    with pytest.raises(SkillScriptExecutionError, match='do not fit'):
        await script.run(None, args)


async def test_a_policy_for_open_checks_a_function_that_has_no_mode(importable: Site, tmp_path: Path):
    found = toolset(importable, 'allow({save: OpenWritePolicy()})', write_to=[tmp_path / 'out'])
    succeeded, message = await run(found, 'save', target=str(tmp_path / 'evil'), text='r')
    assert (succeeded, 'may be written' in message) == (False, True)
