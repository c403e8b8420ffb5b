from __future__ import annotations

import logging
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from anyio import create_task_group, to_thread
from pydantic_ai import Agent
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import RunContext

from pydantic_ai_skills import (
    Skill,
    SkillNotFoundError,
    SkillRegistry,
    SkillsCapability,
    SkillsDirectory,
    SkillsToolset,
)
from pydantic_ai_skills.catalog.merge import MAX_SKILLS_LISTED
from tests.conversations import ScriptedModel
from tests.folders import write_skill

pytestmark = pytest.mark.anyio


class Counting(SkillRegistry):
    def __init__(self) -> None:
        self.asked = 0

    def get_skills(self) -> list[Skill[Any]]:
        self.asked += 1
        return [Skill(f'remote-{self.asked}', 'Remote.', '')]


class TestConstructor:
    def test_it_reads_nothing(self, tmp_path: Path):
        registry = Counting()
        toolset = SkillsToolset(directories=[tmp_path], registries=[registry])
        write_skill(tmp_path / 'later')
        assert registry.asked == 0
        assert list(toolset.skills) == ['later', 'remote-1']

    def test_a_default_folder_that_is_missing_is_a_warning_to_the_developer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(tmp_path)
        with pytest.warns(UserWarning, match="There is no directory 'skills' in .*Say where the skills are"):
            toolset = SkillsToolset()
        assert toolset.skills == {}
        assert [problem.code for problem in toolset.problems] == ['directory-missing']

    @pytest.mark.parametrize('as_given', [str, Path, SkillsDirectory, lambda path: [path]])  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    def test_a_single_directory_may_stand_alone(self, tmp_path: Path, as_given: Any):
        write_skill(tmp_path / 'alpha')
        assert list(SkillsToolset(directories=as_given(tmp_path)).skills) == ['alpha']

    def test_a_template_without_a_place_for_the_list_is_refused(self):
        with pytest.raises(ValueError, match=r"must contain '\{skills_list\}'"):
            SkillsToolset(skills=[], instruction_template='Skills!')

    def test_an_unknown_tool_cannot_be_excluded(self):
        with pytest.raises(ValueError, match=r"names \['read_file'\]; the tools are"):
            SkillsToolset(skills=[], exclude_tools=['list_skills', 'read_file'])

    def test_excluding_load_skill_is_a_warning(self):
        with pytest.warns(UserWarning, match='Without load_skill'):
            SkillsToolset(skills=[], exclude_tools={'load_skill'})

    def test_a_negative_budget_is_refused(self):
        with pytest.raises(ValueError, match='catalog_budget must be 0 or more, or None for no limit, not -1'):
            SkillsToolset(skills=[], catalog_budget=-1)

    def test_a_skill_that_is_written_twice_is_a_warning_and_the_later_one_counts(self):
        with pytest.warns(UserWarning, match="'alpha' is defined twice"):
            toolset = SkillsToolset(skills=[Skill('alpha', 'First.', ''), Skill('alpha', 'Second.', '')])
        assert toolset.get_skill('alpha').description == 'Second.'

    def test_validate_and_max_depth_reach_the_directories(self, tmp_path: Path):
        write_skill(tmp_path / 'a' / 'b/deep')
        (tmp_path / 'a' / 'b' / 'deep').rename(tmp_path / 'a' / 'b' / 'other-name')
        assert SkillsToolset(directories=[tmp_path], max_depth=1).skills == {}
        assert [problem.code for problem in SkillsToolset(directories=[tmp_path]).problems] == ['name-mismatch']
        lenient = SkillsToolset(directories=[tmp_path], validate=False)
        assert (list(lenient.skills), lenient.problems) == (['deep'], [])


class TestReload:
    def test_registries_are_asked_again_only_on_request(self):
        registry = Counting()
        toolset = SkillsToolset(registries=[registry])
        toolset.reload()
        toolset.reload()
        assert list(toolset.skills) == ['remote-1']
        toolset.reload(include_registries=True)
        assert list(toolset.skills) == ['remote-2']

    def test_decorated_skills_survive(self, tmp_path: Path):
        toolset = SkillsToolset(directories=[tmp_path])

        @toolset.skill
        def mine() -> str:
            """Mine."""
            return ''

        write_skill(tmp_path / 'alpha')
        toolset.reload()
        assert list(toolset.skills) == ['alpha', 'mine']

    def test_a_skill_decorated_after_loading_is_there_at_once_and_reads_nothing(self, tmp_path: Path):
        toolset = SkillsToolset(directories=[tmp_path])
        assert toolset.skills == {}
        write_skill(tmp_path / 'unseen')

        @toolset.skill
        def mine() -> str:
            """Mine."""
            return ''

        assert list(toolset.skills) == ['mine']

    async def test_runs_at_the_same_time_share_a_look_but_none_misses_an_earlier_change(self, tmp_path: Path):
        write_skill(tmp_path / 'alpha')
        toolset = SkillsToolset(directories=[tmp_path], auto_reload=True)
        script = ScriptedModel(calls=[])
        agent = Agent(script.model, toolsets=[toolset])

        async def run() -> None:
            await agent.run('Go.')

        async with create_task_group() as group:
            for _ in range(20):
                group.start_soon(run)
        write_skill(tmp_path / 'beta')
        await run()
        assert 'beta' in str(script.instructions[-1])


class TestProblems:
    async def test_they_are_told_once_in_the_log(self, tmp_path: Path, caplog: pytest.LogCaptureFixture):
        (tmp_path / 'broken').mkdir()
        (tmp_path / 'broken' / 'SKILL.md').write_text('no frontmatter')
        write_skill(tmp_path / 'fine')
        toolset = SkillsToolset(directories=[tmp_path])
        with caplog.at_level(logging.WARNING, 'pydantic_ai_skills'):
            await toolset.load()
            write_skill(tmp_path / 'more')
            await to_thread.run_sync(toolset.reload)
        assert list(toolset.skills) == ['fine', 'more']
        assert [record.getMessage() for record in caplog.records] == [str(toolset.problems[0])]
        assert 'SKILL.md' in str(toolset.problems[0])
        assert '[no-frontmatter]' in str(toolset.problems[0])

    def test_pins_that_do_not_work_out_are_told(self, caplog: pytest.LogCaptureFixture):
        skills = [Skill('alpha', 'x' * 900, ''), Skill('beta', 'y' * 900, '')]
        toolset = SkillsToolset(skills=skills, pinned=['alpha', 'gone'], catalog_budget=1_000)
        assert [(problem.code, problem.path) for problem in toolset.problems] == [
            ('pinned-unknown', 'gone'),
            ('pinned-too-long', 'pinned'),
        ]
        assert 'the budget is 1,000.' in toolset.problems[1].message
        assert len(caplog.records) == 2
        assert SkillsToolset(skills=skills, pinned=['alpha'], catalog_budget=2_500).problems == []
        assert SkillsToolset(skills=skills, pinned=['alpha'], catalog_budget=None).problems == []
        assert [p.code for p in SkillsToolset(skills=[], pinned=['alpha']).problems] == ['pinned-unknown']

    def test_those_of_files_come_with_the_list_of_files(self, tmp_path: Path):
        folder = write_skill(tmp_path / 'alpha')
        (folder / 'link.md').symlink_to('/etc/hostname')
        toolset = SkillsToolset(directories=[tmp_path])
        assert toolset.get_skill('alpha').resources == []
        assert [problem.code for problem in toolset.problems] == ['file-link']


class TestPydanticAI:
    async def test_instructions_are_one_part_that_is_cached_and_appended_on_change(self, ctx: RunContext[None]):
        toolset = SkillsToolset(skills=[Skill('alpha', 'Does.', '')])
        part = await toolset.get_instructions(ctx)
        assert isinstance(part, InstructionPart)
        assert (part.name, part.on_change, part.dynamic) == ('catalog', 'append', False)
        assert await toolset.get_instructions(ctx) is part
        assert toolset.id == 'skills'
        assert SkillsToolset(skills=[], id='other').id == 'other'

    async def test_instructions_added_to_the_toolset_are_kept(self, ctx: RunContext[None]):
        for skills in ([], [Skill('alpha', 'Does.', '')]):
            toolset = SkillsToolset(skills=skills)

            @toolset.instructions
            def more() -> str:
                return 'More.'

            parts = await toolset.get_instructions(ctx)
            assert isinstance(parts, list)
            assert [part.content == 'More.' for part in parts] == [False] * len(skills) + [True]

    async def test_tools_added_to_the_toolset_are_kept(self, ctx: RunContext[None]):
        toolset = SkillsToolset(skills=[Skill('alpha', 'Does.', '')])

        @toolset.tool_plain
        def my_tool() -> str:
            return 'mine'

        tools = await toolset.get_tools(ctx)
        assert list(tools) == ['list_skills', 'load_skill', 'my_tool']
        assert await toolset.call_tool('my_tool', {}, ctx, tools['my_tool']) == 'mine'

    async def test_a_skill_that_was_loaded_under_two_names_is_loaded_once(self):
        toolset = SkillsToolset(skills=[Skill('my-skill', 'Mine.', '')])
        calls = [ToolCallPart('load_skill', {'skill_name': name}) for name in ('my-skill', 'My_Skill')]
        seen: list[list[str]] = []

        def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return ModelResponse(parts=[TextPart('done')] if len(messages) > 1 else calls)

        def look(ctx: RunContext[None]) -> None:
            seen.append([skill.name for skill in toolset.loaded_skills(ctx)])

        await Agent(FunctionModel(respond), deps_type=NoneType, toolsets=[toolset], instructions=look).run('Go.')
        assert seen == [[], ['my-skill']]

    async def test_many_skills_are_not_searched_for_files_to_leave_out_a_tool(
        self, tmp_path: Path, ctx: RunContext[None]
    ):
        for number in range(MAX_SKILLS_LISTED + 1):
            write_skill(tmp_path / f'skill-{number}')
        toolset = SkillsToolset(directories=[tmp_path])
        assert {'read_skill_resource', 'run_skill_script'} <= (await toolset.get_tools(ctx)).keys()
        assert not any(skill.is_listed for skill in toolset.skills.values())

    async def test_after_load_nothing_is_read(self, tmp_path: Path, ctx: RunContext[None]):
        write_skill(tmp_path / 'alpha')
        toolset = SkillsToolset(directories=[tmp_path])
        await toolset.load()
        (tmp_path / 'alpha' / 'SKILL.md').unlink()
        assert 'alpha' in str(await toolset.get_instructions(ctx))
        assert list(await toolset.get_tools(ctx)) == ['list_skills', 'load_skill']
        with pytest.raises(SkillNotFoundError, match="no skill 'beta'"):
            toolset.get_skill('beta')

    def test_the_capability_has_the_toolset(self, tmp_path: Path):
        write_skill(tmp_path / 'alpha')
        capability = SkillsCapability(directories=[tmp_path], id='mine')
        assert capability.get_toolset() is capability.toolset
        assert (capability.id, capability.toolset.id) == ('mine', 'mine')
        assert list(capability.toolset.skills) == ['alpha']
