"""Skills, resources and scripts are values: compared, copied, replaced and assigned like any dataclass."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from pydantic_ai.tools import RunContext, Tool

from pydantic_ai_skills import (
    FileSkillResource,
    Skill,
    SkillClass,
    SkillResource,
    SkillsCapability,
    SkillScript,
    SkillsDirectory,
    SkillsToolset,
    SkillValidationError,
)
from pydantic_ai_skills.directory.folder_skill import FolderSkill
from pydantic_ai_skills.types.skill import SkillFiles
from tests.conversations import converse
from tests.folders import call_tool, write_skill

pytestmark = pytest.mark.anyio

Copy = Callable[[Any], Any]
COPIES: list[Copy] = [copy.copy, copy.deepcopy, replace, lambda value: pickle.loads(pickle.dumps(value))]


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def greet(ctx: RunContext[Any], name: str) -> str:
    """Greet somebody."""
    return f'Hello {name}'


def made_skill(**options: Any) -> Skill[Any]:
    return Skill(
        'alpha',
        'Does it.',
        'Do it.',
        'MIT',
        'Needs a network.',
        [SkillResource('notes', 'What to note.', 'Short notes.'), SkillResource('doubled', function=double)],
        [SkillScript('greet', 'Greets.', greet)],
        'https://example.com/alpha',
        {'version': '1.0'},
        **options,
    )


@pytest.fixture
def in_folder(tmp_path: Path) -> FolderSkill:
    """A skill in a folder, of which only the header was read."""
    (tmp_path / 'alpha.md').write_text('Elsewhere.')
    scripts = {'notes.md': 'Short notes.', 'scripts/run.py': 'print("ran")'}
    write_skill(tmp_path / 'alpha', files=scripts)
    return scan(tmp_path)


def scan(folder: Path) -> FolderSkill:
    skill = SkillsDirectory(folder).get_skills()['alpha']
    assert isinstance(skill, FolderSkill)
    return skill


async def instructions(toolset: SkillsToolset[None], ctx: RunContext[None]) -> str:
    part: Any = await toolset.get_instructions(ctx)
    return part.content


class TestFields:
    def test_a_skill_has_them_in_the_documented_order(self):
        names = [field.name for field in fields(Skill)][:9]
        assert names == [
            'name',
            'description',
            'content',
            'license',
            'compatibility',
            'resources',
            'scripts',
            'uri',
            'metadata',
        ]

    def test_a_resource_and_a_script_have_them_in_the_documented_order(self):
        own = ['function', 'takes_ctx', 'function_schema', 'uri']
        assert [field.name for field in fields(SkillResource)] == ['name', 'description', 'content', *own]
        assert [field.name for field in fields(SkillScript)][:7] == ['name', 'description', *own, 'skill_name']

    def test_they_can_be_shown_as_a_dictionary(self):
        skill = made_skill()
        shown = asdict(skill)
        assert shown['name'] == 'alpha'
        assert shown['metadata'] == {'version': '1.0'}
        assert [resource['content'] for resource in shown['resources']] == ['Short notes.', None]
        assert asdict(SkillResource('n', 'd', 'text'))['content'] == 'text'

    def test_values_can_be_matched_by_position(self):
        match SkillResource('n', 'd', 'text'):
            case SkillResource(name, _, content):
                assert (name, content) == ('n', 'text')


class TestEquality:
    def test_two_skills_with_the_same_fields_are_equal(self):
        same = skill = made_skill()
        assert skill == same
        assert made_skill() == made_skill()

    @pytest.mark.parametrize(
        ('name', 'value'),
        [
            ('name', 'beta'),
            ('description', 'Does more.'),
            ('content', 'Do more.'),
            ('license', None),
            ('compatibility', None),
            ('resources', []),
            ('scripts', []),
            ('uri', 'https://example.com/beta'),
            ('metadata', {}),
            ('tools', [Tool(double)]),
            ('user_invocable', False),
        ],
    )
    def test_a_skill_with_another_field_differs(self, name: str, value: object):
        assert replace(made_skill(), **{name: value}) != made_skill()

    def test_a_value_of_another_kind_differs(self):
        assert made_skill() != 'alpha'
        assert SkillResource('x', content='') != SkillScript('x', function=double)

    def test_a_value_that_can_change_has_no_hash(self):
        for value in (made_skill(), SkillResource('x', content=''), SkillScript('x', function=double)):
            with pytest.raises(TypeError, match='unhashable'):
                hash(value)

    def test_two_scans_of_a_folder_find_equal_skills(self, in_folder: FolderSkill, tmp_path: Path):
        found, again = in_folder, scan(tmp_path)
        assert found is not again
        assert found == again
        (Path(str(again.path)) / 'SKILL.md').write_text('---\nname: alpha\ndescription: Does it.\n---\nDo more.')
        assert scan(tmp_path) != found


class TestCopies:
    @pytest.mark.parametrize('make_copy', COPIES)
    def test_a_copy_of_a_skill_is_equal_and_can_be_changed_on_its_own(self, make_copy: Copy):
        skill = made_skill(tools=[], allowed_tools=['Read'])
        copied = make_copy(skill)
        assert copied == skill
        copied.description, copied.resources = 'Another.', []
        assert skill == made_skill(tools=[], allowed_tools=['Read'])

    @pytest.mark.parametrize('make_copy', COPIES)
    async def test_a_copy_of_a_skill_in_a_folder_still_reads_and_runs(self, make_copy: Copy, in_folder: FolderSkill):
        copied = await to_thread.run_sync(make_copy, in_folder)
        assert await to_thread.run_sync(in_folder.__eq__, copied)
        toolset = SkillsToolset[None](skills=[copied])
        assert 'Do it.' in (await call_tool(toolset, 'load_skill', skill_name='alpha'))[1]
        _, text = await call_tool(toolset, 'read_skill_resource', skill_name='alpha', resource_name='notes.md')
        assert text == 'Short notes.'
        _, ran = await call_tool(toolset, 'run_skill_script', skill_name='alpha', script_name='run')
        assert 'ran' in str(ran)

    @pytest.mark.parametrize('make_copy', COPIES)
    async def test_a_copy_of_a_function_still_takes_its_arguments(self, make_copy: Copy, ctx: RunContext[None]):
        script = make_copy(SkillScript('greet', function=greet))
        assert script.takes_ctx is True
        assert await script.run(ctx, {'name': 'Ada'}) == 'Hello Ada'

    def test_a_renamed_skill_can_be_pickled(self):
        renamed = made_skill().renamed('beta')
        assert pickle.loads(pickle.dumps(renamed)) == renamed

    def test_a_skill_made_by_the_decorator_can_be_pickled_and_replaced(self):
        toolset = SkillsToolset[None](skills=[])

        @toolset.skill
        def from_function() -> str:
            """Does it."""
            return 'Do it.'

        for copied in (pickle.loads(pickle.dumps(from_function)), replace(from_function)):
            assert copied == from_function
            assert copied.function() == 'Do it.'

    def test_a_skill_class_can_be_replaced(self):
        class Keeper(SkillClass[None]):
            """Keeps things."""

            instructions = 'Keep it.'

        assert replace(Keeper(), description='Other.').description == 'Other.'

    def test_a_replaced_skill_in_a_folder_keeps_what_is_known_of_its_files(self, in_folder: FolderSkill):
        renamed = replace(in_folder, name='beta', uri=None)
        assert renamed.files.executor is in_folder.files.executor
        assert renamed.path == in_folder.path
        assert renamed.uri == 'skill://beta'
        assert renamed.root == renamed.path


class TestAssignment:
    @pytest.mark.parametrize('is_in_python', [False, True])
    async def test_the_model_sees_what_is_assigned_at_its_next_request(
        self, is_in_python: bool, in_folder: FolderSkill, tmp_path: Path, ctx: RunContext[None]
    ):
        sources: Any = {'skills': [made_skill()]} if is_in_python else {'directories': [tmp_path]}
        toolset = SkillsToolset[None](**sources)
        await instructions(toolset, ctx)
        skill = toolset.get_skill('alpha')
        await to_thread.run_sync(lambda: skill.files)  # replacing some of them takes knowing the others
        skill.description = 'Weighs parcels.'
        skill.content = '# Scales\n\nPut it on the scales.'
        skill.compatibility = 'Needs scales.'
        skill.resources = [SkillResource('weights', content='1 kg')]
        skill.scripts = []
        prompt = await instructions(toolset, ctx)
        assert 'Weighs parcels.' in prompt
        assert 'run_skill_script' not in prompt
        assert (await call_tool(toolset, 'list_skills'))[1] == {'alpha': 'Weighs parcels.'}
        loaded = str((await call_tool(toolset, 'load_skill', skill_name='alpha'))[1])
        for text in ('Put it on the scales.', 'Needs scales.', 'weights'):
            assert text in loaded
        assert 'Do it.' not in loaded
        assert (await call_tool(toolset, 'read_skill_resource', skill_name='alpha', resource_name='weights'))[
            1
        ] == '1 kg'

    async def test_a_skill_that_was_loaded_shows_what_is_assigned_with_the_instructions_it_had(
        self, in_folder: FolderSkill
    ):
        skill, toolset = in_folder, SkillsToolset[None](skills=[in_folder])
        assert 'Do it.' in str((await call_tool(toolset, 'load_skill', skill_name='alpha'))[1])
        skill.compatibility = 'Needs scales.'
        loaded = str((await call_tool(toolset, 'load_skill', skill_name='alpha'))[1])
        assert 'Needs scales.' in loaded
        assert 'Do it.' in loaded

    async def test_a_new_name_is_the_only_one(self, in_folder: FolderSkill, ctx: RunContext[None]):
        skill, toolset = in_folder, SkillsToolset[None](skills=[in_folder])
        await instructions(toolset, ctx)
        assert [script.skill_name for script in skill.scripts] == ['alpha']
        skill.name = 'beta'
        assert list(toolset.skills) == ['beta']
        assert [script.skill_name for script in skill.scripts] == ['beta']
        assert 'name="beta"' in await instructions(toolset, ctx)
        with pytest.raises(SkillValidationError):
            skill.name = 'Not A Name'
        with pytest.raises(SkillValidationError, match='needs a description'):
            skill.description = ' '

    def test_the_search_finds_what_is_assigned(self):
        skills = [Skill('alpha', 'Does it.', ''), Skill('beta', 'Does that.', '')]
        toolset = SkillsToolset[None](skills=skills, search_tool='always')
        assert [found.name for found in toolset.search('parcels')] == []
        skills[1].description = 'Weighs parcels.'
        assert [found.name for found in toolset.search('parcels')] == ['beta']

    async def test_on_demand_the_instructions_that_are_assigned_are_sent(self):
        skill = Skill[None]('alpha', 'Does it.', 'Do it.')
        capability = SkillsCapability[None](skills=[skill], disclosure='on-demand')
        call = ('load_capability', {'id': 'alpha'})
        first = await converse(capability, call)
        assert 'Do it.' in str(first.received)
        skill.content = 'Do that.'
        second = await converse(capability, call)
        assert 'Do that.' in str(second.received)

    async def test_resources_and_scripts_are_read_and_run_as_assigned(self, ctx: RunContext[None]):
        skill = made_skill()
        notes, doubled = skill.resources
        script = skill.scripts[0]
        notes.content = 'Long notes.'
        doubled.function = greet
        script.function, script.description = double, 'Doubles.'
        assert await notes.load(ctx) == 'Long notes.'
        assert await doubled.load(ctx, {'name': 'Ada'}) == 'Hello Ada'
        assert await script.run(ctx, {'number': 2}) == 4
        loaded = str((await call_tool(SkillsToolset[None](skills=[skill]), 'load_skill', skill_name='alpha'))[1])
        assert 'Doubles.' in loaded
        assert '"number"' in loaded

    def test_tools_and_files_can_be_assigned(self):
        skill = made_skill()
        skill.tools = [Tool(double)]
        skill.files = SkillFiles(resources=[SkillResource('only', content='x')])
        skill.uri = 'https://example.com/other'
        assert [tool.name for tool in skill.tools] == ['double']
        assert [resource.name for resource in skill.resources] == ['only']
        assert skill.uri == 'https://example.com/other'

    async def test_a_file_can_be_given_another_name_text_or_place(self, in_folder: FolderSkill, ctx: RunContext[None]):
        (resource,) = await to_thread.run_sync(lambda: in_folder.resources)
        assert isinstance(resource, FileSkillResource)
        resource.name = 'renamed.md'
        assert await resource.load(ctx) == 'Short notes.'
        resource.uri = f'{in_folder.path}.md'
        assert await resource.load(ctx) == 'Elsewhere.'
        resource.content = 'Text.'
        assert await resource.load(ctx) == 'Text.'


class Weather(SkillResource):
    async def load(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        if args == {'place': 'nowhere'}:
            raise LookupError('no such place')
        return f'Rain with {args}.'


class Dice(SkillScript):
    async def run(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        if args == {'sides': 0}:
            raise ZeroDivisionError
        return 4


class TestSubclasses:
    async def test_the_tools_call_an_overridden_load_and_run(self):
        skill = Skill[None]('alpha', 'Does it.', '', resources=[Weather('weather')], scripts=[Dice('dice')])
        toolset = SkillsToolset[None](skills=[skill])
        read = {'skill_name': 'alpha', 'resource_name': 'weather'}
        run = {'skill_name': 'alpha', 'script_name': 'dice'}
        assert (await call_tool(toolset, 'read_skill_resource', **read, args={'n': 1}))[1] == "Rain with {'n': 1}."
        assert (await call_tool(toolset, 'run_skill_script', **run))[1] == 4
        worked, text = await call_tool(toolset, 'read_skill_resource', **read, args={'place': 'nowhere'})
        assert not worked
        assert 'no such place' in text
        worked, text = await call_tool(toolset, 'run_skill_script', **run, args={'sides': 0})
        assert not worked
        assert 'ZeroDivisionError' in text

    def test_a_person_approves_the_source_of_an_overridden_run(self):
        assert 'return 4' in str(Dice('dice').source_text)
        unknown = type('Unknown', (Dice,), {'__module__': 'nowhere'})
        assert 'Unknown' in str(unknown('dice').source_text)
        assert SkillScript('double', function=double).source_text is None


class TestBadUse:
    def test_something_to_read_or_run_is_required(self):
        with pytest.raises(ValueError, match='needs one of `content`, `function` or `uri`'):
            SkillResource('nothing')
        with pytest.raises(ValueError, match='needs one of `function` or `uri`'):
            SkillScript('nothing')

    async def test_what_is_gone_since_is_a_value_error(self, ctx: RunContext[None], tmp_path: Path):
        resource, script = SkillResource('x', content='x'), SkillScript('x', function=double)
        resource.content = script.function = None
        with pytest.raises(ValueError, match='needs one of `content`, `function` or `uri`'):
            await resource.load(ctx)
        with pytest.raises(ValueError, match='needs one of `function` or `uri`'):
            await script.run(ctx)
        script.uri = str(tmp_path / 'run.py')
        with pytest.raises(ValueError, match='without an `executor`'):
            await script.run(ctx)
