"""Skills from installed packages, through the registry and whole conversations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic_ai import Agent, DeferredToolRequests, RunContext

from pydantic_ai_skills import (
    PackageSkillsRegistry,
    PathPolicy,
    Skill,
    SkillPackage,
    SkillProblem,
    SkillProvenance,
    SkillScript,
    SkillScriptExecutionError,
    SkillsToolset,
    SkillValidationError,
)
from tests.conversations import Call, ScriptedModel
from tests.folders import CONTEXT, call_tool, settle, skill_md, write
from tests.registries.asked import names
from tests.registries.packages.sites import STATS, Site, skill

MODULE = {'pydantic_ai_skills': {'acme-stats': 'acme.stats'}}


def told(registry: PackageSkillsRegistry) -> list[tuple[str, str]]:
    return [(found.code, Path(found.path).name) for found in registry.problems]


def stats(place: Site, text: str = STATS, **options: Any) -> PackageSkillsRegistry:
    place.install('acme', {'acme/__init__.py': '', 'acme/stats.py': text}, entry_points=MODULE)
    return PackageSkillsRegistry(packages=['acme'], path=[place.path], **options)


# --- What is offered ----------------------------------------------------------------------------------------------


def test_nothing_is_offered_unless_it_was_named(place: Site):
    place.install('acme-tools', skill('acme-tools'), version='2.1')
    place.install('plain', {'plain/__init__.py': ''})
    registry = PackageSkillsRegistry(path=[place.path])
    assert registry.get_skills() == []
    assert registry.available == [
        SkillPackage(distribution='acme-tools', version='2.1', skills=('acme-tools',), offered=False)
    ]
    assert registry.problems == snapshot(
        [
            SkillProblem(
                path='acme-tools 2.1',
                code='package-available',
                severity='warning',
                message="It has skills that are not offered ('acme-tools'). To offer them, add it to packages=[...].",
            )
        ]
    )


@pytest.mark.parametrize('packages', ['all', ['acme-tools'], ['Acme_Tools'], {'acme.tools'}])
def test_a_package_is_named_as_installers_take_it_or_all_are(place: Site, packages: Any):
    place.install('acme-tools', skill('acme-tools'))
    registry = PackageSkillsRegistry(packages=packages, path=[place.path])
    assert names(registry) == ['acme-tools']
    assert [package.offered for package in registry.available] == [True]
    assert registry.problems == []


@pytest.mark.parametrize('setting', ['packages', 'trusted'])
@pytest.mark.parametrize('value', ['acme', ['acme>=1'], [''], ['../acme']])
def test_what_is_no_name_of_a_package_is_refused(setting: str, value: Any):
    with pytest.raises(SkillValidationError, match=setting):
        PackageSkillsRegistry(**{setting: value})


def test_a_named_package_that_is_missing_or_has_no_skills_is_a_problem(place: Site):
    place.install('acme-tools', skill('acme-tools'))
    place.install('plain', {'plain/__init__.py': ''})
    registry = PackageSkillsRegistry(packages=['acme-tool', 'plain'], path=[place.path])
    assert [(found.code, found.message) for found in registry.problems] == snapshot(
        [
            (
                'package-missing',
                "No package 'acme-tool' is installed. The skill packages are: 'acme-tools'.",
            ),
            ('package-empty', "The package 'plain' is installed and has no skills."),
        ]
    )


def test_the_provenance_has_the_distribution_and_its_version(place: Site):
    place.install('Acme.Tools', skill('acme-tools'), version='2.1')
    (found,) = PackageSkillsRegistry(packages='all', path=[place.path]).get_skills()
    assert found.source == SkillProvenance(
        kind='package',
        url='pkg:pypi/acme-tools@2.1',
        path='acme_tools/.agents/skills/acme-tools',
        distribution='Acme.Tools',
        version='2.1',
    )


def test_of_two_skills_with_one_name_the_one_of_the_package_named_first_is_used(place: Site):
    for name in ('one', 'two'):
        place.install(name, {f'{name}/skills/same/SKILL.md': skill_md('same', f'From {name}.')})
    registry = PackageSkillsRegistry(packages=['two', 'one'], path=[place.path])
    assert [found.description for found in registry.get_skills()] == ['From two.']
    assert [(found.code, found.path, found.message) for found in registry.problems] == snapshot(
        [('shadowed', 'one 1.0: same', "The skill 'same' is not used: the one of two 1.0: same comes first.")]
    )
    assert [found.description for found in PackageSkillsRegistry(packages='all', path=[place.path]).get_skills()] == [
        'From one.'
    ]


def test_a_refresh_sees_what_was_installed_and_edited_and_else_gives_the_same_again(place: Site):
    place.install('acme-tools', skill('acme-tools'))
    registry = stats(place)
    registry.packages = 'all'
    settle()
    first = registry.find()
    assert registry.refresh() is first
    assert registry.find() is first
    assert registry.latest is first
    (place.path / 'acme/stats.py').write_text('"""Other words."""\n')
    place.install('later', skill('later'))
    assert {found.name: found.description for found in registry.refresh().skills} == {
        'acme-stats': 'Other words.',
        'acme-tools': 'Does it.',
        'later': 'Does it.',
    }
    assert registry.find() is registry.latest is not first


def test_a_look_that_fails_keeps_the_skills_and_is_a_problem(place: Site, monkeypatch: pytest.MonkeyPatch):
    place.install('acme-tools', skill('acme-tools'))
    registry = PackageSkillsRegistry(packages='all', path=[place.path])
    skills = registry.find().skills

    def fail(*_: Any) -> Any:
        raise OSError('disk on fire')

    monkeypatch.setattr(os, 'scandir', fail)
    (place.path / 'acme_tools/.agents/skills/acme-tools/SKILL.md').write_text(skill_md('acme-tools', 'New.'))
    assert registry.refresh().skills == ()
    monkeypatch.undo()
    assert (
        [found.description for found in registry.refresh().skills]
        == ['New.']
        != [found.description for found in skills]
    )


def test_it_composes_like_any_registry(place: Site):
    registry = stats(place).prefixed('acme-').filtered(lambda found: 'stats' in found.name)
    assert [found.name for found in registry.get_skills()] == ['acme-acme-stats']
    assert repr(stats(place)) == "PackageSkillsRegistry(packages=['acme'])"
    assert repr(PackageSkillsRegistry(packages='all')) == "PackageSkillsRegistry(packages='all')"


# --- Modules ------------------------------------------------------------------------------------------------------


async def test_a_model_loads_a_module_and_calls_its_functions(importable: Site, tmp_path: Path):
    registry = stats(importable, trusted=True)
    calls: list[Call] = [
        ('load_skill', {'skill_name': 'acme-stats'}),
        ('run_skill_script', {'skill_name': 'acme-stats', 'script_name': 'mean', 'args': {'values': 'many'}}),
        ('run_skill_script', {'skill_name': 'acme-stats', 'script_name': 'mean', 'args': {'values': [1, 2, 2]}}),
    ]
    model = ScriptedModel(calls=calls)
    await Agent(model.model, toolsets=[SkillsToolset(registries=[registry])]).run('Go')
    assert model.instructions[0] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `load_skill` first and follow its instructions.

<available_skills>
<skill name="acme-stats">Statistics for small tables. Use for means and reports.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert [(tool, outcome, str(content)) for tool, outcome, content in model.results] == snapshot(
        [
            (
                'load_skill',
                'success',
                '''\
<skill name="acme-stats">
<resources>
<resource name="api">One symbol in full, with args {"symbol": "name"}; a method is `Class.method`. {"additionalProperties":false,"properties":{"symbol":{"default":"","type":"string"}},"type":"object"}</resource>
</resources>
<scripts>
<script name="mean">The mean of some numbers. {"additionalProperties":false,"properties":{"values":{"items":{"type":"number"},"type":"array","description":"the numbers"},"digits":{"default":2,"type":"integer","description":"how many digits to keep"}},"required":["values"],"type":"object"}</script>
<script name="save">Save a report. {"additionalProperties":false,"properties":{"target":{"description":"Where to.","format":"path","type":"string"},"text":{"description":"The report.","type":"string"}},"required":["target","text"],"type":"object"}</script>
</scripts>
<skill_instructions>
Statistics for small tables. Use for means and reports.

Call `mean` first.

# API of `acme.stats`

```python
def mean(
    values: list[float],  # the numbers
    digits: int = 2,  # how many digits to keep
) -> float:  # the mean
    """The mean of some numbers."""

def save(
    target: Path,  # Where to.
    text: str,  # The report.
) -> str:
    """Save a report."""

class Table:
    """Rows and columns."""
    rows: int = 0
    def __init__(self, path: str) -> None:
        ...
    def add(self, row: list[str]) -> None:
        """Add a row."""
    size: int  # property: How many rows there are.
```
</skill_instructions>
</skill>\
''',
            ),
            (
                'run_skill_script',
                'failed',
                "The arguments for script 'mean' do not fit. values: Input should be a valid list. It takes: values (array), digits (integer, optional).",
            ),
            ('run_skill_script', 'success', '1.67'),
        ]
    )


async def test_a_module_is_imported_when_a_function_is_first_run_and_not_before(importable: Site):
    registry = stats(importable, trusted=['acme'])
    toolset = SkillsToolset(registries=[registry])
    await call_tool(toolset, 'load_skill', skill_name='acme-stats')
    run = {'skill_name': 'acme-stats', 'script_name': 'mean'}
    wrong, _ = await call_tool(toolset, 'run_skill_script', **run, args={'numbers': [1]})
    assert not wrong
    assert 'acme.stats' not in sys.modules
    assert 'acme' not in sys.modules
    assert await call_tool(toolset, 'run_skill_script', **run, args='{"values": [1, 2]}') == (True, 1.5)
    assert 'acme.stats' in sys.modules
    assert await call_tool(toolset, 'run_skill_script', **run, args={'values': [4], 'digits': 0}) == (True, 4.0)


def denied(*_: Any) -> str:
    return 'deny'


@pytest.mark.parametrize(
    ('trusted', 'policy', 'reason'),
    [
        (False, None, 'may not be run here'),
        (['other'], None, 'may not be run here'),
        (False, 'allow', 'say so with its `trusted` option'),
        (True, 'deny', 'may not be run here'),
        (True, denied, 'may not be run here'),
    ],
)
async def test_nothing_is_imported_without_trust_or_against_the_policy(
    importable: Site, trusted: Any, policy: Any, reason: str
):
    toolset = SkillsToolset(registries=[stats(importable, trusted=trusted)], script_policy=policy)
    succeeded, message = await call_tool(
        toolset, 'run_skill_script', skill_name='acme-stats', script_name='mean', args={'values': [1]}
    )
    assert not succeeded
    assert reason in message
    assert 'acme.stats' not in sys.modules


async def test_running_a_script_of_an_untrusted_module_by_hand_imports_nothing(importable: Site):
    toolset = SkillsToolset(registries=[stats(importable)])
    await call_tool(toolset, 'load_skill', skill_name='acme-stats')
    with pytest.raises(SkillScriptExecutionError, match='never runs in this process'):
        await toolset.get_skill('acme-stats').scripts[0].run(CONTEXT, {'values': [1]})
    assert 'acme' not in sys.modules


async def test_a_path_outside_the_folder_of_a_policy_is_refused_and_nothing_is_written(
    importable: Site, tmp_path: Path
):
    out = tmp_path / 'out'
    out.mkdir()
    policy = PathPolicy(write={'target': [out]})
    toolset = SkillsToolset(registries=[stats(importable, trusted=True)], script_policy=policy)
    run = {'skill_name': 'acme-stats', 'script_name': 'save'}
    for target in (tmp_path / 'evil.txt', out / '../evil.txt'):
        succeeded, message = await call_tool(
            toolset, 'run_skill_script', **run, args={'target': str(target), 'text': 'x'}
        )
        assert not succeeded
        assert 'is not one that may be written' in message
    assert 'acme.stats' not in sys.modules
    assert sorted(path.name for path in tmp_path.iterdir()) == ['out', 'site-packages']
    good = {'target': str(out / 'good.txt'), 'text': 'x'}
    assert await call_tool(toolset, 'run_skill_script', **run, args=good) == (True, 'saved good.txt')
    assert (out / 'good.txt').read_text() == 'x'


EXPANDING = '''\
"""Saves notes."""
from pathlib import Path
from typing import Annotated
from pydantic import AfterValidator

def save(target: Annotated[Path, AfterValidator(lambda path: Path(__file__).parent / path.name)]) -> None:
    target.write_text('written')
'''


async def test_a_policy_sees_the_arguments_as_the_function_gets_them(importable: Site, tmp_path: Path):
    registry = stats(importable, EXPANDING, trusted=True)
    toolset = SkillsToolset(registries=[registry], script_policy=PathPolicy(write={'target': [tmp_path / 'out']}))
    succeeded, message = await call_tool(
        toolset,
        'run_skill_script',
        skill_name='acme-stats',
        script_name='save',
        args={'target': str(tmp_path / 'out/x')},
    )
    assert not succeeded
    assert 'site-packages' in message
    assert not (importable.path / 'acme/x').exists()


@pytest.mark.parametrize(('again', 'outcome'), [('deny', 'failed'), ('ask', 'asked'), ('allow', 'ran')])
async def test_a_policy_is_asked_again_when_the_function_is_known(importable: Site, again: str, outcome: str):
    decisions = iter(['allow', again])

    def policy(ctx: RunContext[Any], skill: Skill[Any], script: SkillScript, args: Any) -> Any:
        return next(decisions)

    toolset = SkillsToolset(registries=[stats(importable, trusted=True)], script_policy=policy)
    calls: list[Call] = [
        ('run_skill_script', {'skill_name': 'acme-stats', 'script_name': 'mean', 'args': {'values': [1]}})
    ]
    model = ScriptedModel(calls=calls)
    agent = Agent(model.model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    result = await agent.run('Go')
    if isinstance(result.output, DeferredToolRequests):
        assert outcome == 'asked'
    else:
        assert [found for _, found, _ in model.results] == ['success' if outcome == 'ran' else 'failed']


async def test_an_approval_is_for_the_source_of_the_module_as_it_was(importable: Site):
    toolset = SkillsToolset(registries=[stats(importable, trusted=True)], script_policy='ask')
    calls: list[Call] = [
        ('run_skill_script', {'skill_name': 'acme-stats', 'script_name': 'mean', 'args': {'values': [1]}})
    ]
    for text, expected in ((STATS, 'success'), (STATS.replace('return round', 'return  round'), 'failed')):
        (importable.path / 'acme/stats.py').write_text(STATS)
        model = ScriptedModel(calls=calls)
        agent = Agent(model.model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
        asked = await agent.run('Go')
        assert isinstance(asked.output, DeferredToolRequests)
        (importable.path / 'acme/stats.py').write_text(text)
        answer = asked.output.build_results(approve_all=True, metadata=asked.output.metadata)
        await agent.run(message_history=asked.all_messages(), deferred_tool_results=answer)
        assert [outcome for _, outcome, _ in model.results] == [expected]


BROKEN = {
    'syntax': (b'"""Doc."""\ndef f(:\n', 'module-invalid'),
    'null': (b'"""Doc."""\nx = "\0"\n', 'module-invalid'),
    'nested': (b'"""Doc."""\nx = ' + b'(' * 5000 + b')' * 5000, 'module-invalid'),
    'deep': (b'"""Doc."""\nx = ' + b'-' * 200_000 + b'1', 'module-invalid'),
    'latin': (b'"""D\xf6c."""\n', 'module-invalid'),
    'coding': (b'# coding: no-such-thing\n"""Doc."""\n', 'module-invalid'),
    'huge': (b'"""Doc."""\n' + b'#' * 2_000_000, 'module-invalid'),
    'raises': (b'"""Doc."""\nraise RuntimeError("no")\n', 'module-fails'),
    'asserts': (b'"""Doc."""\nassert False, "no"\n', 'module-fails'),
    'silent': (b'x = 1\n', 'module-undocumented'),
    'empty': (b'', 'module-undocumented'),
    'blank': (b'"""   """\n', 'module-undocumented'),
}


@pytest.mark.parametrize('case', BROKEN)
def test_a_broken_module_is_one_problem_and_the_others_load(place: Site, case: str):
    text, code = BROKEN[case]
    write(place.path, {'bad.py': text})
    place.install('bad', entry_points={'pyskills': {'bad': 'bad'}})
    place.install('acme-tools', skill('acme-tools'))
    registry = PackageSkillsRegistry(packages='all', path=[place.path])
    assert names(registry) == ['acme-tools']
    assert told(registry) == [(code, 'bad.py')]


@pytest.mark.parametrize(
    ('value', 'files', 'code'),
    [
        ('fast', ['fast.abi3.so'], 'module-compiled'),
        ('fast', ['fast.pyc'], 'module-compiled'),
        ('pack', ['pack/__init__.abi3.so'], 'module-compiled'),
        ('gone', [], 'module-missing'),
        ('pack.gone', ['pack/__init__.py'], 'module-missing'),
        ('sys', [], 'module-missing'),
        ('not a module', [], 'entry-point-invalid'),
        ('a..b', [], 'entry-point-invalid'),
    ],
)
def test_an_entry_point_without_source_is_one_problem(place: Site, value: str, files: list[str], code: str):
    place.install('bad', dict.fromkeys(files, ''), entry_points={'pyskills': {'bad': value}})
    place.install('acme-tools', skill('acme-tools'))
    registry = PackageSkillsRegistry(packages='all', path=[place.path])
    assert names(registry) == ['acme-tools']
    assert [found.code for found in registry.problems] == [code]


@pytest.mark.parametrize(
    'text',
    [
        'no section\n',
        '[pyskills]\n= x\n[[[\n',
        '[pyskills]\n\x00\n',
        f'[pyskills]\nx = {"x" * 501}\n',
        '[pyskills]\n' + ''.join(f'x{number} = x\n' for number in range(1_001)),
    ],
)
def test_entry_points_that_cannot_be_read_are_one_problem(place: Site, text: str):
    place.install('bad', info={'entry_points.txt': f'{text}[pyskills]\nx\n'})
    place.install('acme-tools', skill('acme-tools'))
    registry = PackageSkillsRegistry(packages='all', path=[place.path])
    assert names(registry) == ['acme-tools']
    assert told(registry) == [('package-unreadable', 'entry_points.txt')]


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('"""Doc."""\nimport no_such_module_anywhere\ndef f(): ...\n', 'ModuleNotFoundError'),
        ('"""Doc."""\nimport sys\ndef f(): ...\nsys.exit(3)\n', 'SystemExit'),
        ('"""Doc."""\ndef f(): ...\nx = 1 / 0\n', 'ZeroDivisionError'),
        ('"""Doc."""\ndef f(): ...\ndel f\n', "has no function 'f'"),
        ('"""Doc."""\ndef f(x: "Nothing"): ...\n', 'Nothing'),
        ('"""Doc."""\nimport json\ndef f(x: "json.Nothing"): ...\n', 'Nothing'),
        ('"""Doc."""\nclass C: ...\ndef f(x: C): ...\n', "The parameters of 'f' cannot be read"),
        (
            '"""Doc."""\nfrom typing import Callable\ndef f(x: Callable[[], int]): ...\n',
            "The parameters of 'f' cannot be read",
        ),
    ],
)
async def test_a_module_that_cannot_be_imported_is_a_tool_failure_and_a_problem(
    importable: Site, text: str, reason: str
):
    toolset = SkillsToolset(registries=[stats(importable, text, trusted=True)])
    for _ in range(2):
        succeeded, message = await call_tool(
            toolset, 'run_skill_script', skill_name='acme-stats', script_name='f', args={'x': 1} if 'x:' in text else {}
        )
        assert not succeeded
        assert reason in message
    assert [found.code for found in toolset.problems] == ['import-failed']


RETURNS = '''"""Doc."""
class Thing:
    def __repr__(self): return 'a thing'
def thing(): return Thing()
def numbers(n: int): yield from range(n)
def ring():
    items = []
    items.append(items)
    return items
def half(): return 'a\\ud800'
async def later(): return {1: Thing()}
def breaks():
    yield 1
    raise ValueError('no more')
def leave(): raise SystemExit(3)
'''


@pytest.mark.parametrize(
    ('script', 'args', 'expected'),
    [
        ('thing', {}, 'a thing'),
        ('numbers', {'n': 1000}, [*range(1000)]),
        ('numbers', {'n': 1001}, [*range(1000), '(Only the first 1,000 items.)']),
        ('ring', {}, '[[...]]'),
        ('half', {}, r"'a\ud800'"),
        ('later', {}, '{1: a thing}'),
        ('breaks', {}, "The script 'breaks' failed with ValueError: no more"),
        ('leave', {}, "The script 'leave' failed with SystemExit: 3"),
    ],
)
async def test_whatever_a_function_of_a_module_gives_the_run_goes_on(
    importable: Site, script: str, args: dict[str, int], expected: Any
):
    call = ('run_skill_script', {'skill_name': 'acme-stats', 'script_name': script, 'args': args})
    model = ScriptedModel(calls=[call])
    toolset = SkillsToolset(registries=[stats(importable, RETURNS, trusted=True)])
    result = await Agent(model.model, toolsets=[toolset]).run('Go')
    ((_, _, told),) = model.results
    assert (result.output, told) == ('done', expected)


def test_a_function_that_cannot_be_analysed_does_not_hide_the_others(place: Site):
    text = '"""Doc."""\nfrom pydantic_ai import RunContext\ndef good(): ...\ndef bad(x: int, ctx: RunContext): ...\n'
    (found,) = stats(place, text).get_skills()
    assert [script.name for script in found.scripts] == ['good']
    (told,) = found.files.problems
    assert (told.code, "'bad' is not offered" in told.message) == ('module-unclear', True)


@pytest.mark.parametrize('setting', ['read_from', 'write_to'])
@pytest.mark.parametrize('value', ['notes', Path('notes')])
def test_one_folder_that_is_no_list_is_refused(setting: str, value: Any):
    with pytest.raises(SkillValidationError, match=rf"Give {setting} as a list of folders: \['notes'\]"):
        PackageSkillsRegistry(**{setting: value})


def test_a_module_that_breaks_the_analysis_is_its_docstring(place: Site):
    registry = stats(place, f'"""Words of its own."""\nclass Deep({"x." * 1_500}x): ...\n')
    (found,) = registry.get_skills()
    assert found.content == 'Words of its own.\n\n(Its API cannot be analysed: RecursionError.)'
    assert (found.scripts, [told.code for told in found.files.problems]) == ([], ['module-unclear'])


async def test_another_module_of_the_same_name_is_not_called(
    importable: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    registry = stats(importable, trusted=True)
    write(tmp_path / 'other', {'acme/__init__.py': '', 'acme/stats.py': STATS})
    monkeypatch.setattr(sys, 'path', [str(tmp_path / 'other'), *sys.path])
    succeeded, message = await call_tool(
        SkillsToolset(registries=[registry]),
        'run_skill_script',
        skill_name='acme-stats',
        script_name='mean',
        args={'values': [1]},
    )
    for name in ('acme.stats', 'acme'):
        del sys.modules[name]
    assert (succeeded, 'is not the one that was read' in message) == (False, True)


def test_one_module_under_both_groups_is_one_skill(place: Site):
    points = {'pyskills': {'acme.stats': 'acme.stats'}, 'pydantic_ai_skills': {'stats': 'acme.stats'}}
    place.install('acme', {'acme/stats.py': STATS}, entry_points=points)
    registry = PackageSkillsRegistry(packages='all', path=[place.path])
    assert (names(registry), registry.problems) == (['stats'], [])
    only = PackageSkillsRegistry(packages='all', groups=['pyskills'], path=[place.path])
    assert names(only) == ['acme-stats']


def test_a_name_that_is_no_skill_name_is_made_one(place: Site):
    points = {'pyskills': {'Acme_Stats.V2': 'acme.stats', '!!!': 'acme.more:x'}}
    place.install('acme', {'acme/stats.py': STATS, 'acme/more.py': '"""More."""'}, entry_points=points)
    assert names(PackageSkillsRegistry(packages='all', path=[place.path])) == ['acme-stats-v2', 'acme-more']


def test_an_entry_point_without_a_letter_does_not_hide_the_others(place: Site):
    place.install('bad', {'__.py': '"""Does it."""\n'}, entry_points={'pyskills': {'_': '__'}})
    place.install('acme-tools', skill('acme-tools'))
    assert names(PackageSkillsRegistry(packages='all', path=[place.path])) == ['acme-tools', 'skill']


def test_without_griffe_folders_work_and_modules_say_which_extra_is_missing(
    place: Site, monkeypatch: pytest.MonkeyPatch
):
    place.install('acme-tools', skill('acme-tools'))
    registry = stats(place)
    registry.packages = 'all'
    monkeypatch.setitem(sys.modules, 'griffe', None)
    found = {found.name: found for found in registry.get_skills()}
    assert [(found.code, found.message) for found in registry.problems] == snapshot(
        [
            (
                'extra-missing',
                "Loading 'acme-stats' needs griffe: pip install 'pydantic-ai-skills[packages]'.",
            )
        ]
    )
    assert found['acme-tools'].content == 'Do it.'
    with pytest.raises(ImportError, match=r"pip install 'pydantic-ai-skills\[packages\]'"):
        _ = found['acme-stats'].content
    with pytest.raises(ImportError, match=r"pip install 'pydantic-ai-skills\[packages\]'"):
        _ = found['acme-stats'].scripts


# --- Skills written in Python -------------------------------------------------------------------------------------

WRITTEN = """\
import pydantic_ai_skills
from pydantic_ai_skills import Skill

TEXT = 'Greets people. Use when somebody arrives.'
greeting: Skill = Skill('greeting', TEXT, 'Say hello.')
parting = pydantic_ai_skills.Skill[None](name='parting', description='Says goodbye.', content='Say goodbye.')
both = [greeting, *(parting,)]


@greeting.script
def greet(name: str) -> str:
    return f'Hello {name}'


@greeting.tool_plain
def wave(times: int) -> str:
    return 'o/ ' * times


LICENSE = 'MIT'
private = Skill(
    'private',
    'Is for people.',
    'Ask.',
    license=LICENSE,
    metadata={'version': '2'},
    disable_model_invocation=True,
)
by_settings = Skill('by-settings', 'Has a computed license.', 'x', license=LICENSE.lower())
by_mapping = Skill('by-mapping', 'Has what a mapping says.', 'x', **{'user_invocable': False})
by_source = Skill('by-source', 'Says where it is from.', 'x', license='MIT', source=None, late=False)

def made():
    def content() -> str:
        return 'Made.'

    return [Skill('made', 'Is made by a function.', content)]


def endless():
    return endless


def unclear(x=1):
    if x:
        return greeting
    return parting


def computed():
    return [Skill(f'computed-{number}', 'Is computed.', 'x') for number in range(2)]


def fstring():
    return Skill(f'f-{len("abc")}', 'Has a computed name.', 'x')


def fails():
    raise RuntimeError('no skills today')


def leaves():
    raise SystemExit('no skills ever')


nothing = 3
"""


def written(place: Site, attribute: str, **options: Any) -> PackageSkillsRegistry:
    files = {'acme/__init__.py': '', 'acme/skills_of_ours.py': WRITTEN}
    place.install('acme', files, entry_points={'pydantic_ai_skills': {'ours': f'acme.skills_of_ours:{attribute}'}})
    return PackageSkillsRegistry(packages='all', path=[place.path], **options)


@pytest.mark.parametrize(
    ('attribute', 'expected'),
    [
        ('greeting', {'greeting': 'Greets people. Use when somebody arrives.'}),
        ('parting', {'parting': 'Says goodbye.'}),
        ('both', {'greeting': 'Greets people. Use when somebody arrives.', 'parting': 'Says goodbye.'}),
        ('made', {'made': 'Is made by a function.'}),
    ],
)
def test_skills_that_the_source_tells_are_imported_when_they_are_used(
    importable: Site, attribute: str, expected: dict[str, str]
):
    toolset = SkillsToolset(registries=[written(importable, attribute, trusted=True).prefixed('a-')])
    found = list(toolset.skills.values())
    assert {skill.name.removeprefix('a-'): skill.description for skill in found} == expected
    assert 'acme.skills_of_ours' not in sys.modules
    assert [len(skill.content) > 0 for skill in found] == [True] * len(expected)
    assert 'acme.skills_of_ours' in sys.modules
    assert {skill.source.distribution for skill in found if skill.source} == {'acme'}


def test_a_function_that_may_return_this_or_that_is_called(importable: Site):
    assert names(written(importable, 'unclear', trusted=True, import_to_list=True)) == ['greeting']
    assert names(written(importable, 'fstring', trusted=True, import_to_list=True)) == ['f-3']


def test_skills_that_only_a_function_knows_are_listed_by_calling_it(importable: Site):
    registry = written(importable, 'computed', trusted=['acme'], import_to_list=True)
    assert names(registry) == ['computed-0', 'computed-1']
    assert [skill.source.version for skill in registry.get_skills() if skill.source] == ['1.0', '1.0']


async def test_a_script_of_a_skill_in_a_package_runs(importable: Site):
    toolset = SkillsToolset(registries=[written(importable, 'greeting', trusted=True)])
    run = {'skill_name': 'greeting', 'script_name': 'greet', 'args': {'name': 'Ada'}}
    assert await call_tool(toolset, 'run_skill_script', **run) == (True, 'Hello Ada')


@pytest.mark.parametrize('prefix', ['', 'a-'])
async def test_a_typed_tool_of_a_skill_in_a_package_is_offered_once_it_is_loaded(importable: Site, prefix: str):
    registry = written(importable, 'greeting', trusted=True)
    toolset = SkillsToolset(registries=[registry.prefixed(prefix) if prefix else registry])
    name = f'{prefix.replace("-", "_")}greeting__wave'
    script = ScriptedModel(calls=[('load_skill', {'skill_name': f'{prefix}greeting'}), (name, {'times': 2})])
    await Agent(script.model, toolsets=[toolset]).run('Go.')
    assert [name in tools for tools in script.tools] == [False, True, True]
    assert script.results[1:] == [(name, 'success', 'o/ o/ ')]


async def test_the_typed_tools_of_a_skill_in_a_package_are_made_once(importable: Site):
    toolset = SkillsToolset(registries=[written(importable, 'greeting', trusted=True)])
    await toolset.load(tools=True)
    skill = toolset.get_skill('greeting')
    assert [tool.name for tool in skill.tools] == ['wave']
    assert [tool.name for tool in skill.renamed('welcome').tools] == ['wave']
    made = toolset.actions.typed.known(skill)
    assert made is not None
    assert list(made.tools) == ['greeting__wave']


def test_what_the_source_says_of_a_skill_counts_before_it_is_imported(importable: Site):
    (skill,) = written(importable, 'private', trusted=True).get_skills()
    assert 'acme.skills_of_ours' not in sys.modules
    assert (skill.license, skill.metadata, skill.disable_model_invocation) == ('MIT', {'version': '2'}, True)


@pytest.mark.parametrize(
    ('attribute', 'license', 'user_invocable'),
    [('by_settings', 'mit', True), ('by_mapping', None, False), ('by_source', 'MIT', True)],
)
def test_a_skill_of_which_the_source_does_not_tell_all_is_imported_to_list_it(
    importable: Site, attribute: str, license: str | None, user_invocable: bool
):
    (skill,) = written(importable, attribute, trusted=True, import_to_list=True).get_skills()
    assert 'acme.skills_of_ours' in sys.modules
    assert (skill.license, skill.user_invocable) == (license, user_invocable)


def test_skills_that_only_their_code_knows_are_left_out_rather_than_imported_at_discovery(importable: Site):
    registry = written(importable, 'computed', trusted=True)
    assert registry.get_skills() == []
    assert [found.code for found in registry.problems] == ['entry-point-unclear']
    assert 'acme.skills_of_ours' not in sys.modules


@pytest.mark.parametrize('attribute', ['greeting', 'computed'])
def test_skills_that_have_to_be_imported_are_left_out_without_trust(importable: Site, attribute: str):
    registry = written(importable, attribute)
    assert registry.get_skills() == []
    assert [found.code for found in registry.problems] == ['package-untrusted']
    assert 'acme.skills_of_ours' not in sys.modules


@pytest.mark.parametrize(
    ('attribute', 'reason'),
    [
        ('fails', 'acme.skills_of_ours:fails failed with RuntimeError: no skills today'),
        ('leaves', 'acme.skills_of_ours:leaves failed with SystemExit: no skills ever'),
        ('nothing', 'must be or return skills, not a int'),
        ('greeting.missing', 'not a NoneType'),
        ('missing', 'not a NoneType'),
        ('endless', 'not a function'),
    ],
)
def test_an_entry_point_that_names_no_skill_is_one_problem(importable: Site, attribute: str, reason: str):
    registry = written(importable, attribute, trusted=True, import_to_list=True)
    assert registry.find().skills == ()
    assert [found.code for found in registry.problems] == ['entry-point-invalid']
    assert reason in registry.problems[0].message


async def test_a_skill_that_is_not_what_the_source_said_is_a_tool_failure(importable: Site):
    toolset = SkillsToolset(registries=[written(importable, 'greeting', trusted=True)])
    await toolset.load()
    (importable.path / 'acme/skills_of_ours.py').write_text(WRITTEN.replace("'greeting'", "'welcome'"))
    succeeded, message = await call_tool(toolset, 'load_skill', skill_name='greeting')
    assert (succeeded, message) == (False, "acme.skills_of_ours:greeting has no skill 'greeting' any more.")
