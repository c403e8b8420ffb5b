"""What developers pass by mistake, or in short: each has its obvious meaning, or an error that names the option."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    CallableSkillScriptExecutor,
    CombinedRegistry,
    LocalSkillScriptExecutor,
    Skill,
    SkillNotFoundError,
    SkillResourceLoadError,
    SkillsCapability,
    SkillsDirectory,
    SkillsToolset,
    SkillValidationError,
)
from tests.folders import write_skill


class Handbook:
    """A source that knows nothing of this package."""

    def __init__(self, skills: object) -> None:
        self.skills = skills

    def get_skills(self) -> Any:
        return self.skills


class Travel(Skill[Any]):
    def __init__(self) -> None:
        super().__init__('travel', 'Books travel.', 'Ask first.')


ALPHA = Skill[Any]('alpha', 'Alpha.', '')
NOT_SKILLS = 'skills takes Skill objects, not '
NOT_AN_EXECUTOR = 'script_executor takes an executor or a function, not '
NOT_REGISTRIES = 'registries takes registries, such as GitSkillsRegistry(url), or objects with get_skills(), not '


@pytest.mark.parametrize('kind', [SkillsToolset, SkillsCapability])
@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'skills': './skills'}, f"{NOT_SKILLS}'./skills'. For a folder of skills: directories='./skills'."),
        ({'skills': ['x']}, f"{NOT_SKILLS}'x'."),
        ({'skills': [Travel]}, f'{NOT_SKILLS}{Travel!r}. Make one: Travel().'),
        ({'skills': 3}, 'skills takes one value or a list of them, not 3.'),
        ({'directories': 3}, 'directories takes one value or a list of them, not 3.'),
        ({'directories': [None]}, 'A directory of skills is a path, as text or a Path, not None.'),
        ({'registries': 'acme/skills'}, f"{NOT_REGISTRIES}'acme/skills'."),
        ({'registries': [Handbook]}, f'{NOT_REGISTRIES}{Handbook!r}.'),
        ({'script_executor': 'bubblewrap'}, f"{NOT_AN_EXECUTOR}'bubblewrap'. Such as BubblewrapSkillScriptExecutor()."),
        (
            {'script_executor': BubblewrapSkillScriptExecutor},
            f'{NOT_AN_EXECUTOR}{BubblewrapSkillScriptExecutor!r}. Call it: BubblewrapSkillScriptExecutor().',
        ),
        ({'skill_filter': True}, 'skill_filter takes a function, not True.'),
        ({'exclude_tools': 3}, 'exclude_tools takes one value or a list of them, not 3.'),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_what_the_option_takes(
    kind: Any, options: dict[str, Any], message: str
):
    with pytest.raises(TypeError, match=f'^{re.escape(message)}$'):
        kind(**options)


@pytest.mark.parametrize(
    'options',
    [{'skills': ALPHA}, {'registries': Handbook([ALPHA])}, {'registries': [Handbook({'alpha': ALPHA})]}],
    ids=['a skill', 'an object with get_skills()', 'one that returns them by name'],
)
def test_a_single_value_or_any_source_will_do(options: Any):
    assert list(SkillsToolset[Any](**options).skills) == ['alpha']


def test_a_source_of_any_kind_is_trusted_only_if_it_says_so(tmp_path: Path):
    folder = write_skill(tmp_path / 'pdf', files={'scripts/fill.py': 'print()'})
    source = Handbook(SkillsDirectory(folder).get_skills())
    found = CombinedRegistry([source]).get_skills()[0]  # pyright: ignore[reportArgumentType] - on purpose
    assert (found.source and found.source.url, found.is_trusted) == ('Handbook', False)


def test_a_source_of_any_kind_that_fails_is_a_problem_of_its_own():
    toolset = SkillsToolset[Any](skills=[ALPHA], registries=[Handbook(None)])
    assert list(toolset.skills) == ['alpha']
    assert [problem.code for problem in toolset.problems] == ['source-failed']
    assert 'Handbook object' in toolset.problems[0].path


@pytest.mark.parametrize('kind', [SkillsToolset, SkillsCapability])
def test_a_path_by_position_is_a_directory(kind: Any, tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    made = kind(tmp_path)
    assert list(getattr(made, 'toolset', made).skills) == ['alpha']
    with pytest.raises(TypeError, match='given twice: by position and as directories='):
        kind(tmp_path, directories=tmp_path)


def test_a_skill_is_found_by_its_file(tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    write_skill(tmp_path / 'alpha/inner')
    assert list(SkillsToolset[Any](tmp_path / 'alpha' / 'SKILL.md').skills) == ['alpha']


def test_a_relative_path_starts_where_the_toolset_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_skill(tmp_path / 'skills/alpha')
    monkeypatch.chdir(tmp_path)
    toolset = SkillsToolset[Any]('skills')
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path / 'elsewhere')
    assert list(toolset.skills) == ['alpha']


def test_a_directory_that_does_not_exist_is_a_warning_with_the_closest_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / 'skills').mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match=r"no directory 'skillz' in .*\. Did you mean 'skills'\?") as caught:
        SkillsToolset('skillz')
    assert caught[0].filename == __file__


async def test_no_directory_is_looked_for_where_that_would_block(tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert SkillsToolset[Any](tmp_path / 'none').id == 'skills'


def test_one_excluded_tool_and_one_pinned_skill_need_no_list():
    toolset = SkillsToolset[Any](skills=[ALPHA], exclude_tools='run_skill_script', pinned='alpha')
    assert 'run_skill_script' not in toolset.tools
    assert toolset.library.settings.pinned == ('alpha',)


def run_nothing(script: object, args: object) -> str:
    return f'{script} {args}'


@pytest.mark.parametrize(
    'executor', [LocalSkillScriptExecutor(), CallableSkillScriptExecutor(run_nothing), run_nothing]
)
def test_an_executor_may_be_a_plain_function(executor: Any, tmp_path: Path):
    write_skill(tmp_path / 'alpha', files={'scripts/fill.py': 'print()'})
    (script,) = SkillsToolset[Any](tmp_path, script_executor=executor).get_skill('alpha').scripts
    assert hasattr(script.executor, 'run')


def test_only_a_function_can_be_called():
    with pytest.raises(TypeError, match="CallableSkillScriptExecutor takes a function, not 'run'"):
        CallableSkillScriptExecutor('run')  # pyright: ignore[reportArgumentType] - on purpose


def test_handlers_are_for_classes_of_events():
    with pytest.raises(TypeError, match="takes the class of an event: SkillLoaded, .*; not 'script'"):
        SkillsToolset[Any](skills=[]).on('script')  # pyright: ignore[reportArgumentType] - on purpose


class TestFunctions:
    def test_instructions_that_are_not_text_are_told_when_they_are_read(self):
        toolset = SkillsToolset[Any](skills=[])

        @toolset.skill
        def silent() -> str:  # pyright: ignore[reportReturnType] - on purpose
            """Says nothing."""

        with pytest.raises(SkillResourceLoadError, match="The function 'silent' returned None, not the instructions"):
            _ = silent.content

    def test_a_missing_description_names_both_ways_to_give_one(self):
        def helper() -> str: ...

        message = "The skill 'helper' needs a description.*the function 'helper' a docstring, or pass description="
        with pytest.raises(SkillValidationError, match=message):
            SkillsToolset[Any](skills=[]).skill(func=helper)

    def test_a_first_parameter_ctx_without_annotation_is_the_context(self):
        skill = Skill[Any]('alpha', 'Alpha.', '')

        @skill.script
        def run(ctx, amount: int):  # pyright: ignore  # noqa: PGH003 - as people write it
            return ctx.deps + amount  # pyright: ignore  # noqa: PGH003

        schema: Any = skill.scripts[0].function_schema
        assert (schema.takes_ctx, list(schema.json_schema['properties'])) == (True, ['amount'])


class TestSkills:
    def test_a_skill_can_be_added_and_removed_later(self, tmp_path: Path):
        write_skill(tmp_path / 'alpha')
        toolset = SkillsToolset[Any](tmp_path)
        assert list(toolset.skills) == ['alpha']
        toolset.add_skill(Travel())
        assert list(toolset.skills) == ['alpha', 'travel']
        toolset.remove_skill('travel')
        assert list(toolset.skills) == ['alpha']

    def test_a_skill_can_be_removed_before_the_first_look(self):
        toolset = SkillsToolset[Any](skills=[ALPHA, Travel()])
        toolset.library.remove(ALPHA)
        assert list(toolset.skills) == ['travel']

    def test_a_skill_of_a_directory_cannot_be_removed(self, tmp_path: Path):
        write_skill(tmp_path / 'alpha')
        message = "The skill 'alpha' was not added in Python; it is from .*alpha. Hide it with `skill_filter`"
        with pytest.raises(SkillNotFoundError, match=message):
            SkillsToolset[Any](tmp_path).remove_skill('alpha')

    def test_the_mapping_of_skills_is_to_be_read(self):
        skills: Any = SkillsToolset[Any](skills=[ALPHA]).skills
        with pytest.raises(TypeError, match='add_skill'):
            skills['z'] = ALPHA
        with pytest.raises(TypeError, match='remove_skill'):
            del skills['alpha']
        assert (repr(skills), len(skills), skills == {'alpha': ALPHA}) == (repr({'alpha': ALPHA}), 1, True)


async def test_the_options_of_a_function_toolset_mean_what_they_mean_there():
    toolset = SkillsToolset[Any](skills=[ALPHA], max_retries=4, metadata={'team': 'a'}, instructions='Be brief.')
    assert {(tool.max_retries, str(tool.metadata)) for tool in toolset.tools.values()} == {(4, "{'team': 'a'}")}
    seen: list[str] = []

    def note(ctx: RunContext[Any]) -> str:
        seen.append(ctx.prompt if isinstance(ctx.prompt, str) else '')
        return 'noted'

    toolset.add_function(note)
    result = await Agent(TestModel(call_tools=['note']), toolsets=[toolset]).run('go')
    assert seen == ['go']
    assert 'Be brief.' in str(result.all_messages()[0])
