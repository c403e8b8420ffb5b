from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from dirty_equals import IsPartialDict
from inline_snapshot import snapshot
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills import (
    ScriptResult,
    Skill,
    SkillResource,
    SkillResourceLoadError,
    SkillScript,
    SkillScriptExecutionError,
    SkillsToolset,
    SkillValidationError,
    normalize_skill_name,
)
from pydantic_ai_skills.parsing import SkillHeader
from pydantic_ai_skills.types.functions import FunctionOptions
from tests.folders import skill_md, write, write_skill

pytestmark = pytest.mark.anyio


@pytest.fixture
def ctx(ctx: RunContext[None]) -> RunContext[Any]:
    return replace(cast('RunContext[Any]', ctx), deps='the deps')


class TestSkill:
    def test_its_uri_follows_from_its_name_unless_one_was_given(self):
        assert Skill('alpha', 'x', '').uri == 'skill://alpha'
        assert Skill('alpha', 'x', '', uri='https://example.com/a').uri == 'https://example.com/a'

    @pytest.mark.parametrize('name', ['Alpha', 'my skill', 'a--b', '-a', '', 'a' * 65, 'a_b'])
    def test_a_name_that_breaks_the_rules_is_refused(self, name: str):
        with pytest.raises(SkillValidationError):
            Skill(name, 'x', '')

    def test_a_description_is_required(self):
        with pytest.raises(SkillValidationError, match="Skill 'alpha' needs a description"):
            Skill('alpha', ' ', '')

    def test_instructions_from_a_function_are_written_once_on_first_use(self):
        calls: list[int] = []

        def write() -> str:
            calls.append(1)
            return 'Do it.'

        skill = Skill('alpha', 'x', write)
        assert calls == []
        assert (skill.content, skill.content, len(calls)) == ('Do it.', 'Do it.', 1)

    def test_scripts_know_their_skill(self):
        script = SkillScript('go', function=lambda: 1)
        Skill('alpha', 'x', '', scripts=[script])
        assert script.skill_name == 'alpha'

    def test_it_shows_itself(self):
        assert repr(Skill('alpha', 'Does.', '')) == "Skill(name='alpha', description='Does.')"

    def test_it_is_read_from_the_text_of_a_skill_file(self):
        skill = Skill.from_text(
            '---\nname: alpha\ndescription: Does.\nlicense: MIT\ncompatibility: A shell.\nversion: 1.10\n'
            'metadata:\n  author: Ada\n---\n# Alpha\n'
        )
        assert (skill.name, skill.description, skill.content) == ('alpha', 'Does.', '# Alpha')
        assert (skill.license, skill.compatibility) == ('MIT', 'A shell.')
        assert skill.metadata == IsPartialDict(version='1.10', author='Ada')

    @pytest.mark.parametrize(
        ('text', 'why'),
        [
            ('', 'empty'),
            ('# Alpha', '---'),
            ('---\nname: alpha\n---\n', 'description'),
            ('---\ndescription: Does.\n---\n', 'name'),
        ],
    )
    def test_text_that_holds_no_skill_is_refused_with_the_reason(self, text: str, why: str):
        for validate in (True, False):
            with pytest.raises(SkillValidationError, match=why):
                Skill.from_text(text, validate=validate)

    @pytest.mark.parametrize(
        ('name', 'description', 'code', 'why'),
        [
            ('My Skill', 'Does.', 'name-invalid', 'is not a skill name'),
            ('a' * 65, 'Does.', 'name-too-long', 'at most 64'),
            ('alpha', 'x' * 1025, 'description-too-long', 'at most 1024'),
        ],
    )
    def test_text_that_breaks_a_hard_rule_is_refused_unless_it_need_not_be_valid(
        self, name: str, description: str, code: str, why: str
    ):
        text = f'---\nname: {name}\ndescription: {description}\n---\n'
        with pytest.raises(SkillValidationError, match=why):
            Skill.from_text(text)

        skill = Skill.from_text(text, validate=False)

        assert [problem.code for problem in skill.problems] == [code]

    def test_other_problems_of_a_text_are_kept_on_the_skill_and_told_by_its_toolset(self):
        skill = Skill.from_text('---\nname: alpha\ndescription: Does.\nmodel: gpt\n---\n')

        (problem,) = skill.problems

        assert (problem.path, problem.code, problem.line) == ('skill://alpha', 'model-ignored', 4)
        assert SkillsToolset(skills=[skill]).problems == [problem]
        assert Skill('beta', 'Does.', '').problems == []

    @pytest.mark.parametrize('inside', ['', 'SKILL.md'])
    def test_it_is_read_from_its_folder_or_file(self, inside: str, tmp_path: Path):
        files = {'scripts/run.py': 'print()', 'notes.md': 'Notes.', 'skills/inner/SKILL.md': skill_md('inner')}
        write_skill(tmp_path / 'alpha', 'Does: it.', files=files)

        skill = Skill.from_path(tmp_path / 'alpha' / inside)

        assert (skill.name, skill.description, skill.content) == ('alpha', 'Does: it.', 'Do it.')
        assert [script.name for script in skill.scripts] == ['scripts/run.py']
        assert [problem.code for problem in skill.problems] == ['yaml-repaired']
        assert SkillsToolset(skills=[skill]).problems == skill.problems

    def test_a_folder_is_read_with_the_options_of_a_directory(self, tmp_path: Path):
        write_skill(tmp_path / 'alpha')

        assert not Skill.from_path(str(tmp_path / 'alpha'), trusted=False).is_trusted

    @pytest.mark.parametrize(
        ('files', 'why'),
        [
            ({}, 'It has no SKILL.md'),
            ({'SKILL.md': '---\nname: alpha\n---\n'}, 'There is no description'),
            (None, 'There is no such directory'),
        ],
    )
    def test_a_folder_without_a_skill_is_refused_with_the_reason(
        self, files: dict[str, str] | None, why: str, tmp_path: Path
    ):
        if files is not None:
            write(tmp_path / 'alpha', files)
        with pytest.raises(SkillValidationError, match=why):
            Skill.from_path(tmp_path / 'alpha')


class TestDecorators:
    async def test_functions_become_resources_and_scripts_under_their_own_name_and_docstring(
        self, ctx: RunContext[str]
    ):
        skill: Skill[str] = Skill('alpha', 'x', '')

        @skill.resource
        def plain() -> str:
            """Plain."""
            return 'plain'

        @skill.resource
        async def with_context(ctx: RunContext[str]) -> str:
            return ctx.deps

        @skill.script
        async def run_query(ctx: RunContext[str], query: str, limit: int = 10) -> str:
            """Run it.

            Args:
                query: What to look for.
                limit: How many.
            """
            return f'{ctx.deps}: {query}, {limit}'

        @skill.script(name='other', description='Another.')
        def named() -> int:
            return 7

        assert [(r.name, r.description, r.takes_ctx) for r in skill.resources] == [
            ('plain', 'Plain.', False),
            ('with_context', None, True),
        ]
        assert [(s.name, s.description, s.takes_ctx, s.skill_name) for s in skill.scripts] == [
            ('run_query', 'Run it.', True, 'alpha'),
            ('other', 'Another.', False, 'alpha'),
        ]
        assert [await resource.load(ctx) for resource in skill.resources] == ['plain', 'the deps']
        assert await skill.scripts[0].run(ctx, {'query': 'x'}) == 'the deps: x, 10'
        assert await skill.scripts[0].run(ctx, '{"query": "x", "limit": "3"}') == 'the deps: x, 3'
        assert await skill.scripts[1].run(ctx) == 7
        assert await skill.scripts[1].run(ctx, '') == 7
        assert plain() == 'plain'
        assert skill.scripts[0].function_schema is not None
        assert skill.scripts[0].function_schema.json_schema == snapshot(
            {
                'additionalProperties': False,
                'properties': {
                    'query': {'description': 'What to look for.', 'type': 'string'},
                    'limit': {'default': 10, 'description': 'How many.', 'type': 'integer'},
                },
                'required': ['query'],
                'type': 'object',
            }
        )

    async def test_takes_ctx_can_be_said_instead_of_annotated(self, ctx: RunContext[str]):
        skill = Skill('alpha', 'x', '')

        @skill.script(takes_ctx=True, docstring_format='google')
        def unannotated(ctx, word='x'):  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
            return ctx.deps + word  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

        assert await skill.scripts[0].run(ctx, {'word': '!'}) == 'the deps!'

    @pytest.mark.parametrize('args', [None, {}, '', ' ', '{}', 'null'])
    async def test_no_arguments_can_be_said_in_several_ways(self, args: object, ctx: RunContext[str]):
        assert await SkillScript('now', function=lambda: 'noon').run(ctx, args) == 'noon'

    @pytest.mark.parametrize(
        ('args', 'message'),
        [
            (
                {},
                snapshot(
                    "The arguments for script 'search' do not fit. query: Field required. It takes: query (string), limit (integer, optional)."
                ),
            ),
            (
                {'query': 'x', 'limit': 'many'},
                snapshot(
                    "The arguments for script 'search' do not fit. limit: Input should be a valid integer, unable to parse string as an integer. It takes: query (string), limit (integer, optional)."
                ),
            ),
            (
                {'query': 'x', 'other': 1},
                snapshot(
                    "The arguments for script 'search' do not fit. other: Extra inputs are not permitted. It takes: query (string), limit (integer, optional)."
                ),
            ),
            (
                ['x'],
                snapshot(
                    "The arguments for script 'search' do not fit. arguments: Input should be a valid dictionary. It takes: query (string), limit (integer, optional)."
                ),
            ),
            (
                '{"query"',
                snapshot(
                    "The arguments for script 'search' do not fit: EOF while parsing an object at line 1 column 8"
                ),
            ),
            (
                5,
                snapshot(
                    "The arguments for script 'search' do not fit. arguments: Input should be a valid dictionary. It takes: query (string), limit (integer, optional)."
                ),
            ),
        ],
    )
    async def test_arguments_that_do_not_fit_are_explained(self, args: object, message: object, ctx: RunContext[str]):
        def search(query: str, limit: int = 10) -> str: ...

        script = SkillScript('search', function=search)
        resource = SkillResource('search', function=search)
        with pytest.raises(SkillScriptExecutionError) as script_error:
            await script.run(ctx, args)
        with pytest.raises(SkillResourceLoadError) as resource_error:
            await resource.read(ctx, args)
        assert str(script_error.value) == message
        assert str(resource_error.value) == str(script_error.value).replace('script', 'resource')

    async def test_what_a_function_raises_for_pydantic_ai_passes_through(self, ctx: RunContext[str]):
        def ask_again() -> str:
            raise ModelRetry('Not now.')

        with pytest.raises(ModelRetry):
            await SkillScript('again', function=ask_again).run(ctx)

    async def test_cancelling_is_not_a_failure_of_the_function(self, ctx: RunContext[str]):
        async def never() -> None:
            await asyncio.sleep(10)

        task = asyncio.create_task(SkillScript('never', function=never).run(ctx))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestWrapper:
    def test_it_is_a_skill_named_after_its_function(self):
        skills = SkillsToolset(skills=[])

        @skills.skill
        def data_analyzer() -> str:
            """Analyze data."""
            return 'Instructions.'

        assert (data_analyzer.name, data_analyzer.description) == ('data-analyzer', 'Analyze data.')
        assert data_analyzer.to_skill() is data_analyzer
        assert data_analyzer.content == data_analyzer.function() == 'Instructions.'
        assert skills.get_skill('data-analyzer') is data_analyzer

    def test_everything_can_be_given(self):
        skills = SkillsToolset(skills=[])
        resource, script = SkillResource('r', content='x'), SkillScript('s', function=lambda: 1)

        @skills.skill(
            name='other',
            description='Given.',
            license='MIT',
            compatibility='None.',
            metadata={'a': 1},
            resources=[resource],
            scripts=[script],
        )
        def data_analyzer() -> str:
            return ''

        assert (data_analyzer.name, data_analyzer.description) == ('other', 'Given.')
        assert (data_analyzer.license, data_analyzer.compatibility, data_analyzer.metadata) == (
            'MIT',
            'None.',
            {'a': 1},
        )
        assert (data_analyzer.resources, data_analyzer.scripts) == ([resource], [script])

    def test_an_invalid_name_a_missing_description_and_arguments_are_refused(self):
        skills = SkillsToolset(skills=[])

        def fine() -> str:
            """Fine."""
            return ''

        def silent() -> str:
            return ''

        def needy(ctx: RunContext[Any], more: str) -> str:
            """Needy."""
            return ''

        with pytest.raises(SkillValidationError, match='Not_Valid'):
            skills.skill(name='Not_Valid')(fine)
        with pytest.raises(SkillValidationError, match='needs a description'):
            skills.skill(silent)
        with pytest.raises(SkillValidationError, match='it takes nothing, or a RunContext'):
            skills.skill(needy)  # pyright: ignore[reportArgumentType, reportCallIssue] - what is refused
        assert skills.skills == {}


class TestResource:
    @pytest.mark.parametrize('kind', [SkillResource, SkillScript])
    def test_it_needs_a_name_and_something_to_offer(self, kind: type[SkillResource] | type[SkillScript]):
        with pytest.raises(SkillValidationError, match="'x' needs one of"):
            kind('x')
        with pytest.raises(SkillValidationError, match='needs a name'):
            kind(' ', uri='x')
        assert repr(kind('x', uri='x')) == f"{kind.__name__}(name='x')"

    async def test_an_empty_text_is_content(self, ctx: RunContext[str]):
        assert await SkillResource('x', content='').load(ctx) == ''

    async def test_text_is_read_as_written_and_loaded_as_a_value(self, ctx: RunContext[str]):
        resource = SkillResource('versions.yaml', content='version: "1.10" # keep\nnumbers: [1, 2]\n')
        assert await resource.read(ctx) == 'version: "1.10" # keep\nnumbers: [1, 2]\n'
        assert await resource.load(ctx) == {'version': '1.10', 'numbers': [1, 2]}

    async def test_a_file_is_named_by_path_or_uri(self, tmp_path: Path, ctx: RunContext[str]):
        file = tmp_path / 'a b.json'
        file.write_text('{"a": 1}')
        assert await SkillResource('a.json', uri=str(file)).load(ctx) == {'a': 1}
        assert await SkillResource('a.json', uri=file.as_uri()).read(ctx) == '{"a": 1}'
        image = tmp_path / 'a.png'
        image.write_bytes(b'\x89PNG')
        assert await SkillResource('a', uri=str(image)).load(ctx) == BinaryContent(b'\x89PNG', media_type='image/png')
        with pytest.raises(SkillResourceLoadError, match='only paths and file: URIs'):
            await SkillResource('a', uri='https://example.com/a').read(ctx)


async def test_of_two_resources_or_scripts_of_one_name_the_later_one_is_used(ctx: RunContext[str]):
    message = "'a' of skill 'x' is defined twice"
    with pytest.warns(UserWarning, match=message):
        skill = Skill('x', 'x', '', resources=(SkillResource('a', content=text) for text in ('first', 'second')))
    skill.script(name='a')(lambda: 'first')
    with pytest.warns(UserWarning, match=message) as warned:
        skill.script(name='a')(lambda: 'second')
    assert [Path(warning.filename) for warning in warned] == [Path(__file__)]
    assert [await resource.load(ctx) for resource in skill.resources] == ['second']
    assert [await script.run(ctx) for script in skill.scripts] == ['second']


class TestScript:
    async def test_a_file_is_run_by_the_local_executor_unless_another_is_given(self, tmp_path: Path):
        file = tmp_path / 'hello.py'
        file.write_text('print("hello")')
        script = SkillScript('hello.py', uri=str(file))
        assert script.path == file
        result = await script.run(None)
        assert isinstance(result, ScriptResult)
        assert (result.exit_code, result.stdout) == (0, 'hello\n')

    def test_a_function_has_no_path_and_no_usage(self):
        script = SkillScript('x', function=lambda: 1)
        assert (script.path, script.usage) == (None, None)

    def test_how_a_file_is_used_is_read_from_its_text(self, tmp_path: Path):
        file = tmp_path / 'hello.py'
        script = SkillScript('hello.py', uri=str(file))
        assert script.usage is None
        file.write_text('"""Say hello."""\n')
        assert script.usage == 'Say hello.'
        shared = SkillScript('hello.py', uri=str(file), skill_dir=tmp_path / 'elsewhere')
        assert shared.usage == 'Say hello.'


def test_a_schema_can_be_given_for_a_function():
    def search(query: str) -> str: ...

    schema = FunctionOptions().read_schema(search)
    assert SkillScript('x', function=search, function_schema=schema).function_schema is schema


@pytest.mark.parametrize(
    ('given', 'name'),
    [('MySkillName', 'my-skill-name'), ('my_skill_name', 'my-skill-name'), ('my skill', 'my-skill')],
)
def test_names_are_normalised(given: str, name: str):
    assert normalize_skill_name(given) == name


def test_what_the_header_says_can_be_read_and_assigned():
    skill = Skill('alpha', 'Does it.', 'Do it.', license='MIT', metadata={'version': '1'}, allowed_tools=['Read'])
    skill.description, skill.license, skill.user_invocable = 'Does more.', None, False
    skill.metadata['author'] = 'me'
    assert skill.header == SkillHeader(
        name='alpha',
        description='Does more.',
        metadata={'version': '1', 'author': 'me'},
        allowed_tools=('Read',),
        user_invocable=False,
    )
    other = skill.renamed('beta')
    assert other.header == skill.header._replace(name='beta')
    other.metadata['author'] = 'you'
    assert (skill.name, skill.metadata['author']) == ('alpha', 'me')
