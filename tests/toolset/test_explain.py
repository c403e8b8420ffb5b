"""Why a skill would be chosen for a prompt, or not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    EmbeddingRanker,
    LocalSkillScriptExecutor,
    Skill,
    SkillProvenance,
    SkillsCapability,
    SkillsDirectory,
    SkillsToolset,
    explain_skills,
)
from pydantic_ai_skills.types.attached import SkillFiles
from tests.embedders import ConceptModel
from tests.folders import write, write_skill

pytestmark = pytest.mark.anyio

PROMPT = 'Fill in this tax form, please.'
FORMS = 'Fill in PDF forms. Use when a form has to be filled in, for taxes or insurance. Needs no network at all.'


def forms(**options: Any) -> Skill[Any]:
    return Skill('pdf-forms', FORMS, 'Do it.', **options)


def others(count: int) -> list[Skill[Any]]:
    return [
        Skill(f'job-{number:03}', f'Does the job of number {number} in a long list.', '') for number in range(count)
    ]


def untrusted(folder: Path, **options: Any) -> SkillsToolset[Any]:
    write_skill(folder / 'pdf-forms', FORMS, files={'scripts/fill.py': 'print(1)'})
    directory = SkillsDirectory(folder, trusted=False, script_executor=LocalSkillScriptExecutor())
    return SkillsToolset(directories=[directory], **options)


def invalid(folder: Path) -> SkillsToolset[Any]:
    write(folder, {'pdf-forms/SKILL.md': '---\nname: pdf-forms\n---\nNo description.\n'})
    return SkillsToolset(directories=[folder])


def shadowed(folder: Path) -> SkillsToolset[Any]:
    write_skill(folder / 'pdf-forms', 'Another one.')
    return SkillsToolset(skills=[forms()], directories=[folder])


def with_script() -> Skill[Any]:
    skill = forms()

    @skill.script
    def fill() -> str:
        raise AssertionError('nothing is executed')

    return skill


def alike() -> list[Skill[Any]]:
    return [forms(), Skill('form-filler', 'Fill in forms in PDF, for insurance or taxes; no network is needed.', '')]


SITUATIONS: dict[str, tuple[Callable[[Path], SkillsToolset[Any]], list[str]]] = {
    'the list has room for it': (lambda _: SkillsToolset(skills=[forms()]), ['listed']),
    'its description is shortened': (
        lambda _: SkillsToolset(skills=[forms(), *others(20)], catalog_budget=1_600),
        ['shortened'],
    ),
    'only names fit': (lambda _: SkillsToolset(skills=[forms(), *others(20)], catalog_budget=1_200), ['name-only']),
    'not even its name fits': (
        lambda _: SkillsToolset(skills=[forms(), *others(40)], catalog_budget=1_200),
        ['not-listed'],
    ),
    'the filter hides it': (
        lambda _: SkillsToolset(skills=[forms()], skill_filter=lambda ctx, skill: False),
        ['filtered'],
    ),
    'only people may load it': (
        lambda _: SkillsToolset(skills=[forms(disable_model_invocation=True)]),
        ['person-only'],
    ),
    'it is a deferred capability': (
        lambda _: SkillsCapability[Any](skills=[forms()], disclosure='on-demand').toolset,
        ['on-demand'],
    ),
    'another skill has its name': (shadowed, ['listed', 'shadowed']),
    'it breaks a rule': (invalid, ['invalid']),
    'no script may run': (
        lambda _: SkillsToolset(skills=[with_script()], script_policy='deny'),
        ['listed', 'scripts-denied'],
    ),
    'strangers wrote its scripts': (untrusted, ['listed', 'scripts-untrusted']),
    'another description says the same': (lambda _: SkillsToolset(skills=alike()), ['listed', 'overlaps']),
}


@pytest.mark.parametrize('situation', SITUATIONS)
async def test_the_right_reason_is_named(situation: str, tmp_path: Path):
    make, codes = SITUATIONS[situation]
    explanation = await explain_skills(make(tmp_path), PROMPT)
    about = explanation.about('pdf-forms')
    assert [code for skill in about for code in skill.codes] == codes
    assert [skill.state for skill in about] == [code for code in codes if code not in ('overlaps', *SCRIPTS)]


SCRIPTS = ('scripts-denied', 'scripts-untrusted')


def test_the_table_has_twelve_situations():
    assert len(SITUATIONS) == 12
    assert len({codes[-1] for _, codes in SITUATIONS.values()}) == 12


async def test_each_state_says_what_the_model_is_sent():
    for budget in (None, 1_600, 1_200, 600):
        toolset = SkillsToolset[Any](skills=[forms(), *others(20)], catalog_budget=budget)
        part: Any = await toolset.get_instructions(None)
        explanation = await explain_skills(toolset, PROMPT)
        assert explanation.characters == len(part.content)
        for skill in explanation.skills:
            entry = {
                'listed': f'<skill name="{skill.name}">{skill.shown}</skill>\n',
                'shortened': f'<skill name="{skill.name}">{skill.shown}</skill>\n',
                'name-only': f'<skill name="{skill.name}"/>\n',
            }.get(skill.state)
            assert (f'name="{skill.name}"' in part.content) == (entry is not None)
            assert entry is None or entry in part.content


LONG = 'Fill in forms of any kind, whatever they are about. Then sign. Use when a form has to be filled in. No network.'


@pytest.mark.parametrize(
    ('budget', 'shown', 'cut'),
    [
        (478, 'Use when a form has to be…', [LONG[:62], 'filled in. No network.']),
        (490, 'Use when a form has to be filled in.', [LONG[:62], 'No network.']),
        (502, 'Fill in form… Use when a form has to be filled in.', [LONG[12:62], 'No network.']),
    ],
)
async def test_what_was_cut_is_told(budget: int, shown: str, cut: list[str]):
    skills = [Skill[Any]('pdf-forms', LONG, ''), Skill[Any]('short', 'Short.', '')]
    explanation = await explain_skills(SkillsToolset(skills=skills, catalog_budget=budget), PROMPT)
    (skill,) = explanation.about('pdf-forms')
    assert (skill.state, skill.shown, list(skill.cut)) == ('shortened', shown, cut)


async def test_nothing_is_cut_after_the_end():
    skills = [Skill[Any]('pdf-forms', LONG.removesuffix(' No network.'), ''), Skill[Any]('short', 'Short.', '')]
    explanation = await explain_skills(SkillsToolset(skills=skills, catalog_budget=494), PROMPT)
    assert explanation.about('pdf-forms')[0].cut == (LONG[:62],)


async def test_a_skill_that_is_offered_under_another_name_is_not_shadowed():
    class Server:
        def get_skills(self) -> list[Skill[Any]]:
            return [
                Skill('pdf-forms', 'Another one.', '', source=SkillProvenance(kind='mcp', url='x', qualifier='server'))
            ]

    explanation = await explain_skills(SkillsToolset(skills=[forms()], registries=Server()), PROMPT)
    assert [(skill.name, skill.state) for skill in explanation.skills] == [
        ('pdf-forms', 'listed'),
        ('server-pdf-forms', 'listed'),
    ]


async def test_pinned_skills_are_seen_whatever_the_budget():
    toolset = SkillsToolset(skills=[forms(), *others(20)], catalog_budget=1_200, pinned='pdf-forms')
    explanation = await explain_skills(toolset, PROMPT)
    assert explanation.about('pdf-forms')[0].codes == ('listed',)
    assert explanation.offers_search


async def test_the_search_tells_the_rank_and_the_words():
    skills = [
        forms(),
        Skill[Any]('tax-rates', 'Look up tax rates.', '# Forms'),
        Skill[Any]('haiku', 'Write poems.', ''),
    ]
    explanation = await explain_skills(SkillsToolset(skills=skills), PROMPT)
    assert [(skill.name, skill.rank, skill.word_rank, skill.words) for skill in explanation.skills] == [
        ('pdf-forms', 1, 1, ('fill', 'tax', 'form')),
        ('tax-rates', 2, 2, ('tax', 'form')),
        ('haiku', None, None, ()),
    ]
    fill, tax, form = explanation.words
    assert (fill.word, fill.means, fill.skills) == ('fill', ('fill', 'filled'), 1)
    assert (tax.skills, dict(tax.found_in)) == (
        2,
        {'pdf-forms': ('description',), 'tax-rates': ('name', 'description')},
    )
    assert form.found_in['tax-rates'] == ('headings',)


async def test_with_embeddings_the_similarity_is_told(tmp_path: Path):
    ranker = EmbeddingRanker(ConceptModel(), disk_index=False)
    skills = [Skill[Any]('invoice-writer', 'Create an invoice.', ''), Skill[Any]('haiku', 'Write verse.', '')]
    explanation = await explain_skills(SkillsToolset(skills=skills, ranker=ranker), 'Bill them')
    first, second = explanation.skills
    assert (first.name, first.rank, first.word_rank) == ('invoice-writer', 1, None)
    assert (first.similarity or 0) > 0.5 > (second.similarity or 0)


async def test_without_a_provider_there_is_no_similarity():
    model = ConceptModel()
    model.failure = ValueError()
    ranker = EmbeddingRanker(model, disk_index=False)
    explanation = await explain_skills(SkillsToolset(skills=[forms()], ranker=ranker), PROMPT)
    assert (explanation.skills[0].rank, explanation.skills[0].similarity) == (1, None)


async def test_a_skill_that_has_to_be_searched_for_in_vain_is_told():
    explanation = await explain_skills(
        SkillsToolset(skills=[forms(), *others(40)], catalog_budget=1_200), 'Job number 3 of the list'
    )
    assert explanation.about('pdf-forms')[0].codes == ('not-listed', 'not-found')
    assert explanation.about('job-003')[0].rank == 1


async def test_the_filter_gets_the_context_of_the_run():
    toolset = SkillsToolset[str](skills=[forms()], skill_filter=lambda ctx, skill: ctx.deps == 'ana')
    agent = Agent('test', deps_type=str, toolsets=[toolset])
    states: list[str] = []

    @agent.tool
    async def look(ctx: RunContext[str]) -> str:
        states.append((await explain_skills(toolset, PROMPT, ctx)).skills[0].state)
        return ''

    for deps in ('ana', 'bob'):
        await agent.run('Go.', deps=deps)
    assert states == ['listed', 'filtered']


async def test_two_folders_of_one_directory_with_the_same_name(tmp_path: Path):
    write_skill(tmp_path / 'a/pdf-forms', FORMS)
    write_skill(tmp_path / 'b/pdf-forms', 'Another one.')
    explanation = await explain_skills(SkillsToolset(directories=[tmp_path]), PROMPT)
    first, second = explanation.about('pdf-forms')
    assert (first.state, second.state, second.source) == ('listed', 'shadowed', str(tmp_path / 'b/pdf-forms'))
    assert str(tmp_path / 'a/pdf-forms') in second.reasons[0].message


async def test_sources_that_fail_are_told(tmp_path: Path):
    class Failing:
        def get_skills(self) -> list[Skill[Any]]:
            raise OSError('no route')

    explanation = await explain_skills(SkillsToolset(skills=[forms()], registries=[Failing()]), PROMPT)
    assert [problem.code for problem in explanation.problems] == ['source-failed']
    assert [skill.state for skill in explanation.skills] == ['listed']


@pytest.mark.parametrize(
    ('options', 'codes'),
    [({'exclude_tools': 'run_skill_script'}, ['scripts-denied']), ({'script_policy': 'ask'}, ['scripts-untrusted'])],
)
async def test_scripts_are_judged_by_the_gate(tmp_path: Path, options: dict[str, Any], codes: list[str]):
    explanation = await explain_skills(untrusted(tmp_path, **options), PROMPT)
    assert list(explanation.skills[0].codes[1:]) == codes


def test_scripts_of_strangers_in_a_sandbox_are_no_reason(tmp_path: Path):
    write_skill(tmp_path / 'pdf-forms', FORMS, files={'scripts/fill.py': 'print(1)'})
    toolset = SkillsToolset(directories=[tmp_path], script_executor=BubblewrapSkillScriptExecutor())
    assert asyncio.run(explain_skills(toolset, PROMPT)).skills[0].codes == ('listed',)


def test_a_skill_whose_files_cannot_be_listed_is_explained_all_the_same():
    def files() -> SkillFiles:
        raise OSError('gone')

    class Registry:
        def get_skills(self) -> list[Skill[Any]]:
            return [Skill('pdf-forms', FORMS, '', files=files)]

    assert asyncio.run(explain_skills(SkillsToolset(registries=Registry()), PROMPT)).skills[0].codes == ('listed',)


async def test_in_a_large_catalog_only_files_of_skills_that_rank_are_listed(tmp_path: Path):
    for number in range(101):
        write_skill(tmp_path / f's-{number}', f'Does {number}.', files={'scripts/x.py': 'print(1)'})
    toolset = SkillsToolset[Any](directories=[tmp_path], script_policy='deny')
    explanation = await explain_skills(toolset, 'Does 7')
    assert {skill.name: skill.rank for skill in explanation.skills if 'scripts-denied' in skill.codes}.keys() == {
        skill.name for skill in explanation.skills if skill.rank
    }


async def test_many_rivals_are_counted():
    explanation = await explain_skills(
        SkillsToolset(skills=[Skill(f's-{number}', 'Merge PDF pages.', '') for number in range(6)]), PROMPT
    )
    (why,) = [why for why in explanation.skills[0].reasons if why.code == 'overlaps']
    assert why.message == "Its description is hard to tell from that of 's-1', 's-2', 's-3' and 2 more."


async def test_without_skills_there_is_nothing_to_explain():
    explanation = await explain_skills(SkillsToolset(skills=[]), PROMPT)
    assert (explanation.skills, explanation.characters, explanation.offers_search) == ((), 0, False)


async def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match='at least one word'):
        await explain_skills(SkillsToolset(skills=[forms()]), '  ')
