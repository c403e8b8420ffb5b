"""Searching a toolset: for the model, for a developer, and by somebody else's ranker."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from anyio import create_task_group, to_thread
from inline_snapshot import snapshot
from pydantic_ai import Embedder, RunContext
from pydantic_ai.embeddings.test import TestEmbeddingModel
from pydantic_core import to_jsonable_python

from pydantic_ai_skills import Skill, SkillError, SkillNotFoundError, SkillsCapability, SkillsToolset
from pydantic_ai_skills.catalog.merge import MAX_NAMES_COMPARED
from pydantic_ai_skills.toolset.library import MAX_SKILLS_FILTERED_AT_ONCE
from pydantic_ai_skills.toolset.model_tools import MAX_FOUND
from tests.conversations import Call, converse
from tests.folders import call_tool, settle, write_skill

pytestmark = pytest.mark.anyio

ALL_TOOLS = ['list_skills', 'search_skills', 'load_skill', 'read_skill_resource', 'run_skill_script']
PDF = [Skill('pdf-forms', 'Fill in PDF forms.', ''), Skill('pdf-merge', 'Merge PDF files.', '')]


def many(count: int, *more: Skill[Any]) -> list[Skill[Any]]:
    return [*(Skill(f'filler-{number:04}', f'Does job {number}.', '') for number in range(count)), *more]


class Recording:
    """A ranker that gives what it was told, in reverse, and records how it was called."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.updates: list[tuple[list[str], list[str]]] = []
        self.asked: list[tuple[str, int]] = []

    def update(self, changed: Sequence[Skill[Any]], removed: Collection[str]) -> None:
        self.updates.append(([skill.name for skill in changed], sorted(removed)))
        gone = {*removed, *self.updates[-1][0]}
        self.names = [*(name for name in self.names if name not in gone), *self.updates[-1][0]]

    def rank(self, query: str, limit: int) -> Iterable[str]:
        self.asked.append((query, limit))
        return sorted(self.names, reverse=True)[:limit]


class TestTool:
    async def test_it_is_there_only_if_the_list_does_not_fit(self):
        assert 'search_skills' not in (await converse(SkillsToolset(skills=PDF))).tools[0]
        large = await converse(SkillsToolset(skills=many(300, *PDF)))
        assert large.tools[0] == ALL_TOOLS
        assert '`search_skills`' in str(large.instructions[0])

    @pytest.mark.parametrize('capability', [False, True])
    async def test_or_if_it_is_asked_for(self, capability: bool):
        kind = SkillsCapability[Any] if capability else SkillsToolset[Any]
        given = kind(skills=PDF, search_tool='always')
        toolset = given.toolset if isinstance(given, SkillsCapability) else given
        script = await converse(toolset, ('search_skills', {'query': 'merge'}))
        assert 'search_skills' in script.tools[0]
        assert script.results == [('search_skills', 'success', {'pdf-merge': 'Merge PDF files.'})]

    async def test_or_never(self):
        script = await converse(SkillsToolset(skills=many(300), exclude_tools=['search_skills']))
        assert script.tools[0] == [name for name in ALL_TOOLS if name != 'search_skills']
        assert 'search_skills' not in str(script.instructions[0])
        assert '`list_skills`' in str(script.instructions[0])

    async def test_without_skills_there_is_nothing_to_search(self):
        assert (await converse(SkillsToolset(skills=[], search_tool='always'))).tools == [[]]

    async def test_what_the_model_is_told_and_gets(self):
        script = await converse(
            SkillsToolset(skills=many(300, *PDF)),
            ('search_skills', {'query': 'fill form'}),
            ('search_skills', {'query': 'pdf', 'limit': 1}),
            ('search_skills', {'query': 'quantum'}),
            ('search_skills', {'query': '  '}),
            ('search_skills', {'query': 'pdf', 'limit': 0}),
            ('search_skills', {'query': 'pdf', 'limit': MAX_FOUND + 1}),
            ('search_skills', {}),
        )
        assert script.definitions['search_skills'] == snapshot(
            {
                'description': 'Find skills for a task.',
                'parameters': {
                    'additionalProperties': False,
                    'properties': {
                        'query': {'description': 'A few words about the task.', 'type': 'string'},
                        'limit': {
                            'default': 10,
                            'maximum': 100,
                            'minimum': 1,
                            'type': 'integer',
                        },
                    },
                    'required': ['query'],
                    'type': 'object',
                },
            }
        )
        assert script.results == snapshot(
            [
                (
                    'search_skills',
                    'success',
                    {
                        'pdf-forms': 'Fill in PDF forms.',
                        'pdf-merge': 'Merge PDF files.',
                        'filler-0000': 'Does job 0.',
                        'filler-0001': 'Does job 1.',
                        'filler-0002': 'Does job 2.',
                        'filler-0003': 'Does job 3.',
                        'filler-0004': 'Does job 4.',
                        'filler-0005': 'Does job 5.',
                        'filler-0006': 'Does job 6.',
                        'filler-0007': 'Does job 7.',
                    },
                ),
                ('search_skills', 'success', {'pdf-merge': 'Merge PDF files.'}),
                ('search_skills', 'success', "No skill fits 'quantum'. Try other words: fewer, or more general ones."),
                ('search_skills', 'failed', 'A search needs at least one word, and a limit of at least 1.'),
                (
                    'search_skills',
                    'failed',
                    'The arguments of search_skills do not fit. limit: Input should be greater than or equal to 1. It takes: query (string), limit (integer, optional).',
                ),
                (
                    'search_skills',
                    'failed',
                    'The arguments of search_skills do not fit. limit: Input should be less than or equal to 100. It takes: query (string), limit (integer, optional).',
                ),
                (
                    'search_skills',
                    'failed',
                    'The arguments of search_skills do not fit. query: Field required. It takes: query (string), limit (integer, optional).',
                ),
            ]
        )

    async def test_with_auto_reload_it_comes_and_goes_with_the_size_of_the_library(self, tmp_path: Path):
        toolset = SkillsToolset(directories=[tmp_path], auto_reload=True)
        tools = [(await converse(toolset)).tools[0]]
        for number in range(150):
            write_skill(tmp_path / f'skill-{number:03}', f'Does {"many " * 20}things.')
        tools.append((await converse(toolset)).tools[0])
        for number in range(1, 150):
            (tmp_path / f'skill-{number:03}' / 'SKILL.md').unlink()
        settle()
        tools.append((await converse(toolset)).tools[0])
        assert ['search_skills' in names for names in tools] == [False, True, False]
        assert len(tools[0]) == len(tools[2]) == 4


class TestToolset:
    def test_a_developer_can_search_too(self):
        toolset = SkillsToolset(skills=many(300, *PDF))
        assert [skill.name for skill in toolset.search('merge pdfs', limit=2)] == ['pdf-merge', 'pdf-forms']
        assert toolset.search('quantum') == toolset.search('!?') == []
        for query, limit in (('', 10), (' ', 10), ('pdf', 0)):
            with pytest.raises(ValueError, match='at least one word, and a limit of at least 1'):
                toolset.search(query, limit)

    @pytest.mark.parametrize(
        ('query', 'name'),
        [
            ('pdf-merge', 'pdf-merge'),
            ('PDF_Merge', 'pdf-merge'),
            ('pdf merge', 'pdf-merge'),
            ('PdfMerge', 'pdf-merge'),
            ('MergePDF', 'mergepdf'),
        ],
    )
    def test_an_exact_name_is_always_first(self, query: str, name: str):
        others = [Skill(f'pdf-merge-{number}', 'Merge PDF, merge PDF, pdf-merge.', '') for number in range(20)]
        others += [Skill(f'mergepdf-{number}', 'Mergepdf, mergepdf.', '') for number in range(20)]
        toolset = SkillsToolset(skills=[*others, *PDF, Skill('mergepdf', 'A long description, which counts less.', '')])
        assert toolset.search(query)[0].name == name
        assert len(toolset.search(query)) == 10

    def test_headings_of_files_are_searched(self, tmp_path: Path):
        write_skill(tmp_path / 'one', body='# First steps\n\nText.\n\n## Rotating the keys')
        write_skill(tmp_path / 'two', body='Nothing.')
        assert [skill.name for skill in SkillsToolset(directories=[tmp_path]).search('rotate key')] == ['one']

    def test_what_a_function_would_return_is_not_searched_for_headings(self):
        toolset = SkillsToolset[Any](skills=[])

        @toolset.skill
        def lazy() -> str:
            """Is lazy."""
            raise AssertionError

        assert [skill.name for skill in toolset.search('lazy')] == ['lazy']

    def test_a_reload_changes_what_is_found(self, tmp_path: Path):
        write_skill(tmp_path / 'one', 'About apples.')
        write_skill(tmp_path / 'two', 'About pears.')
        toolset = SkillsToolset(directories=[tmp_path])
        assert [skill.name for skill in toolset.search('apples')] == ['one']
        write_skill(tmp_path / 'two', 'About apples and plums.')
        write_skill(tmp_path / 'three', 'About plums.')
        (tmp_path / 'one' / 'SKILL.md').unlink()
        settle()
        toolset.reload()
        assert [skill.name for skill in toolset.search('apples')] == ['two']
        assert sorted(skill.name for skill in toolset.search('plum')) == ['three', 'two']
        assert toolset.search('pears') == []

    def test_a_skill_that_is_decorated_later_is_found(self):
        toolset = SkillsToolset(skills=PDF)
        assert toolset.search('poem') == []

        @toolset.skill
        def haiku() -> str:
            """Write poems."""
            return ''

        assert [skill.name for skill in toolset.search('poem')] == ['haiku']

    async def test_searches_and_reloads_at_the_same_time_do_not_disturb_each_other(self, tmp_path: Path):
        for number in range(50):
            write_skill(tmp_path / f'skill-{number}', f'About fruit {number}.')
        toolset = SkillsToolset[Any](directories=[tmp_path])
        found: list[int] = []

        async def search() -> None:
            found.append(len(await to_thread.run_sync(toolset.search, 'fruit', 60)))

        async def change(number: int) -> None:
            write_skill(tmp_path / f'skill-{number}', f'About fruit and more {number}.')
            await to_thread.run_sync(toolset.reload)

        async with create_task_group() as group:
            for number in range(20):
                group.start_soon(search)
                group.start_soon(change, number)
        assert found == [50] * 20


class TestNames:
    @pytest.mark.parametrize('count', [MAX_NAMES_COMPARED - 10, 5_000])
    @pytest.mark.parametrize('name', ['pdf-form', 'pdfforms', 'pdf-froms', 'PDFForm'])
    async def test_a_mistake_is_answered_with_the_closest_names(self, count: int, name: str):
        toolset = SkillsToolset(skills=many(count, *PDF))
        fine, told = await call_tool(toolset, 'load_skill', skill_name=name)
        assert not fine
        assert told.startswith(f"There is no skill {name!r}. The skills are: 'pdf-forms', ")
        assert told.endswith(' more.')
        with pytest.raises(SkillNotFoundError) as error:
            await to_thread.run_sync(toolset.get_skill, name)
        assert str(error.value) == told

    async def test_where_sqlite_cannot_search_the_names_are_told_all_the_same(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr('pydantic_ai_skills.catalog.fulltext._SCHEMA', 'CREATE VIRTUAL TABLE x USING missing()')
        toolset = SkillsToolset(skills=many(1_000, *PDF))
        _, told = await call_tool(toolset, 'load_skill', skill_name='pdf-form')
        assert told.startswith("There is no skill 'pdf-form'. The skills are: 'filler-0000', ")
        fine, told = await call_tool(toolset, 'search_skills', query='pdf')
        assert (fine, told) == (False, 'Skills cannot be searched: SQLite here has no FTS5 (no such module: missing).')


class TestFilter:
    @pytest.mark.parametrize('count', [300, MAX_SKILLS_FILTERED_AT_ONCE + 1])
    async def test_only_what_a_run_may_see_is_found_or_told(self, count: int):
        secrets = [Skill(f'secret-pdf-{number}', 'Merge PDF files, merge PDF.', '') for number in range(30)]

        def may_see(ctx: RunContext[str], skill: Skill[str]) -> bool:
            return ctx.deps == 'boss' or not skill.name.startswith('secret')

        toolset = SkillsToolset[str](skills=many(count, *PDF, *secrets), skill_filter=may_see)
        calls: list[Call] = [
            ('search_skills', {'query': 'merge pdf', 'limit': 2}),
            ('search_skills', {'query': 'secret-pdf-3'}),
            ('load_skill', {'skill_name': 'secret-pdf'}),
        ]
        clerk = await converse(toolset, *calls, deps='clerk')
        boss = await converse(toolset, *calls, deps='boss')
        assert clerk.results[0][2] == {'pdf-merge': 'Merge PDF files.', 'pdf-forms': 'Fill in PDF forms.'}
        assert 'secret' not in str([content for _, _, content in clerk.results[:2]])
        assert clerk.results[2][2].startswith("There is no skill 'secret-pdf'. The skills are: 'pdf-")
        assert 'secret-pdf-' not in clerk.results[2][2]
        assert next(iter(boss.results[1][2])) == 'secret-pdf-3'

    async def test_a_run_that_sees_few_skills_needs_no_search(self):
        toolset = SkillsToolset[str](
            skills=many(300, *PDF), skill_filter=lambda ctx, skill: skill.name.startswith(ctx.deps)
        )
        assert [
            'search_skills' in (await converse(toolset, deps=deps)).tools[0] for deps in ('pdf', 'filler', 'pdf')
        ] == [False, True, False]


class TestRanker:
    def test_it_is_told_what_changed_and_asked(self, tmp_path: Path):
        ranker = Recording()
        for name in 'abc':
            write_skill(tmp_path / name)
        settle()
        toolset = SkillsToolset(directories=[tmp_path], ranker=ranker)
        assert toolset.skills
        assert ranker.updates == []
        assert [skill.name for skill in toolset.search(' first ', 2)] == ['c', 'b']
        toolset.reload()
        toolset.search('second')
        write_skill(tmp_path / 'b', 'Edited.')
        write_skill(tmp_path / 'd')
        (tmp_path / 'a' / 'SKILL.md').unlink()
        settle()
        toolset.reload()
        assert [skill.description for skill in toolset.search('third')] == ['Does things.', 'Does things.', 'Edited.']
        assert ranker.asked == [('first', 2), ('second', 10), ('third', 10)]
        (tmp_path / 'broken').mkdir()
        (tmp_path / 'broken' / 'SKILL.md').write_text('No skill.')
        toolset.reload()
        assert len(toolset.problems) == 1
        assert len(toolset.search('fourth')) == 3
        assert ranker.updates == [(['a', 'b', 'c'], []), (['b', 'd'], ['a'])]

    def test_an_exact_name_is_first_and_what_it_makes_up_is_left_out(self):
        ranker = Recording()
        toolset = SkillsToolset(skills=PDF, ranker=ranker)
        toolset.search('x')
        ranker.names += ['zzz', 'pdf-forms']
        assert [skill.name for skill in toolset.search('pdf-forms')] == ['pdf-forms', 'pdf-merge']

    async def test_where_many_may_not_be_seen_it_is_asked_for_more(self):
        ranker = Recording()
        toolset = SkillsToolset[None](
            skills=many(300),
            ranker=ranker,
            search_tool='always',
            skill_filter=lambda ctx, skill: skill.name < 'filler-0003',
        )
        _, found = await call_tool(toolset, 'search_skills', query='x', limit=2)
        assert list(found) == ['filler-0002', 'filler-0001']
        assert ranker.asked == [('x', 2), ('x', 20), ('x', 200), ('x', 2000)]

    async def test_one_that_fails_is_a_tool_failure_and_is_tried_again(self):
        class Shaky(Recording):
            def update(self, changed: Sequence[Skill[Any]], removed: Collection[str]) -> None:
                super().update(changed, removed)
                if len(self.updates) == 1:
                    raise ConnectionError('no network')

        toolset = SkillsToolset(skills=PDF, ranker=Shaky(), search_tool='always')
        script = await converse(toolset, ('search_skills', {'query': 'x'}), ('search_skills', {'query': 'x'}))
        assert script.results == [
            ('search_skills', 'failed', 'The search failed with ConnectionError: no network'),
            ('search_skills', 'success', {'pdf-merge': 'Merge PDF files.', 'pdf-forms': 'Fill in PDF forms.'}),
        ]
        with pytest.raises(SkillError, match='ConnectionError: no network'):
            SkillsToolset(skills=PDF, ranker=Shaky()).search('x')

    async def test_it_may_be_async_and_runs_on_the_loop_of_the_agent(self):
        class Embeddings:
            def __init__(self) -> None:
                self.embedder = Embedder(TestEmbeddingModel())
                self.names: list[str] = []
                self.threads: set[int] = set()

            async def update(self, changed: Sequence[Skill[Any]], removed: Collection[str]) -> None:
                self.threads.add(threading.get_ident())
                result = await self.embedder.embed_documents([skill.description for skill in changed])
                assert len(result.embeddings) == 2
                self.names = [skill.name for skill in changed]

            async def rank(self, query: str, limit: int) -> Sequence[str]:
                self.threads.add(threading.get_ident())
                await self.embedder.embed_query(query)
                return self.names[::-1]

        ranker = Embeddings()
        toolset = SkillsToolset(skills=PDF, ranker=ranker, search_tool='always')
        script = await converse(toolset, ('search_skills', {'query': 'x'}))
        assert [list(found) for _, _, found in script.results] == [['pdf-merge', 'pdf-forms']]
        assert ranker.threads == {threading.get_ident()}
        assert [skill.name for skill in await to_thread.run_sync(toolset.search, 'x')] == ['pdf-merge', 'pdf-forms']


class TestList:
    async def test_a_long_list_comes_in_pages_which_together_are_the_list(self):
        skills = [Skill(f'skill-{number:04}', f'Does {"very " * 20}much {number}.', '') for number in range(1_000)]
        toolset = SkillsToolset(skills=skills)
        _, first = await call_tool(toolset, 'list_skills')
        pages = [
            first,
            *[(await call_tool(toolset, 'list_skills', page=page))[1] for page in range(2, first['pages'] + 1)],
        ]
        assert {name: text for page in pages for name, text in page['skills'].items()} == {
            skill.name: skill.description for skill in skills
        }
        assert [(page['page'], page['pages'], page['total']) for page in pages] == [
            (number, 4, 1_000) for number in range(1, 5)
        ]
        assert all(len(str(to_jsonable_python(page))) < 50_000 for page in pages)
        assert [page.get('more') for page in pages] == [
            'Ask for page 2.', 'Ask for page 3.', 'Ask for page 4.', None,
        ]  # fmt: skip
        assert await call_tool(toolset, 'list_skills', page=5) == (
            True,
            'There is no page 5: the list of skills has 4.',
        )

    async def test_a_short_list_is_one_page(self):
        toolset = SkillsToolset(skills=PDF)
        assert await call_tool(toolset, 'list_skills', page=1) == (
            True,
            {'pdf-forms': 'Fill in PDF forms.', 'pdf-merge': 'Merge PDF files.'},
        )
        assert (await call_tool(toolset, 'list_skills', page=0))[1] == 'There is no page 0: the list of skills has 1.'

    async def test_one_long_description_does_not_make_an_empty_page(self):
        toolset = SkillsToolset(skills=[Skill('a', 'x' * 100_000, ''), Skill('b', 'y', '')])
        _, listed = await call_tool(toolset, 'list_skills')
        assert {name: len(text) for name, text in listed.items()} == {'a': 1024, 'b': 1}
