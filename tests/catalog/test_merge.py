from __future__ import annotations

from typing import Any

import pytest

from pydantic_ai_skills import Skill, SkillNotFoundError
from pydantic_ai_skills.catalog.merge import MAX_SKILLS_LISTED, Catalog, load_catalog
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.skill import SkillFiles


class Source:
    """A source that gives what the test puts into it."""

    def __init__(self, *names: str) -> None:
        self.found: FoundSkills | Exception = FoundSkills(tuple(Skill(name, f'{name}.', '') for name in names))

    def __repr__(self) -> str:
        return 'Source()'

    def find(self) -> FoundSkills:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def load(*written: Skill[Any], directories: tuple[Source, ...] = (), registries: tuple[Source, ...] = ()) -> Catalog:
    return load_catalog(written, directories, registries)


def test_skills_are_sorted_by_name():
    assert list(load(Skill('b', 'b.', ''), directories=(Source('c', 'a'),)).skills) == ['a', 'b', 'c']


@pytest.mark.parametrize(
    ('directories', 'registries', 'winner'),
    [
        (('x', 'x'), (), 'later directory'),
        (('x',), ('x',), 'directory'),
        ((), ('x', 'x'), 'earlier registry'),
    ],
)
def test_the_source_of_higher_priority_wins(directories: tuple[str, ...], registries: tuple[str, ...], winner: str):
    folders, remotes = tuple(map(Source, directories)), tuple(map(Source, registries))
    catalog = load(directories=folders, registries=remotes)
    first = folders[-1] if folders else remotes[0]
    assert isinstance(first.found, FoundSkills)
    assert catalog.skills['x'] is first.found.skills[0]
    assert [problem.code for problem in catalog.problems] == ['shadowed']


def test_a_source_that_fails_hides_no_other_and_keeps_what_it_had():
    steady, shaky = Source('steady'), Source('shaky')
    first = load(directories=(steady,), registries=(shaky,))
    shaky.found = RuntimeError('no network')
    second = load_catalog((), [steady], [shaky], last=first)
    assert list(second.skills) == ['shaky', 'steady']
    (problem,) = second.problems
    assert (problem.code, problem.severity, problem.path) == ('source-failed', 'error', 'Source()')
    assert problem.message == 'It failed with RuntimeError: no network. Its 1 skills from before are kept.'
    fresh = load(directories=(steady,), registries=(shaky,))
    assert list(fresh.skills) == ['steady']
    assert fresh.problems[0].message == 'It failed with RuntimeError: no network.'


def test_files_are_listed_before_the_merge_unless_there_are_many():
    few, many = Source(), Source()
    few.found, many.found = (
        FoundSkills(tuple(Skill(f's{number}', 'x', '', files=SkillFiles) for number in range(count)))
        for count in (MAX_SKILLS_LISTED, MAX_SKILLS_LISTED + 1)
    )
    assert all(skill.is_listed for skill in load(directories=(few,)).skills.values())
    assert not any(skill.is_listed for skill in load(directories=(many,)).skills.values())


def test_files_are_not_listed_where_that_is_not_wanted_or_has_to_wait():
    skill = Skill[None]('s', 'x', '', files=SkillFiles)
    load_catalog([skill], (), (), list_files=False)
    late = Skill[None]('late', 'x', '', files=SkillFiles, late=True)
    load(late)
    assert not skill.is_listed
    assert not late.is_listed


def test_a_skill_whose_files_cannot_be_listed_hides_no_other():
    def refuse() -> SkillFiles:
        raise RuntimeError('no disk')

    skill = Skill[None]('odd', 'x', '', files=refuse)
    assert list(load(skill, directories=(Source('good'),)).skills) == ['good', 'odd']
    with pytest.raises(RuntimeError, match='no disk'):
        _ = skill.files


def test_a_look_that_finds_nothing_new_gives_the_same_catalog():
    directory, registry = Source('a'), Source('b')
    first = load(directories=(directory,), registries=(registry,))
    assert load_catalog((), [directory], [registry], last=first) is first
    registry.found = FoundSkills((Skill('c', 'c.', ''),))
    assert load_catalog((), [directory], [registry], last=first, include_registries=False) is first
    assert list(load_catalog((), [directory], [registry], last=first).skills) == ['a', 'c']


def test_a_name_is_found_in_other_letters_and_a_wrong_one_is_answered_with_close_ones():
    catalog = load(Skill('pdf-forms', 'x', ''), Skill('excel', 'x', ''))
    assert catalog.find('pdf-forms') is catalog.find('PDF_Forms') is catalog.skills['pdf-forms']
    assert catalog.find('ExCel') is catalog.skills['excel']
    with pytest.raises(SkillNotFoundError, match=r"no skill 'pdf-form'. The skills are: 'pdf-forms', 'excel'."):
        catalog.find('pdf-form')
    with pytest.raises(SkillNotFoundError, match=r"no skill '!'. The skills are: 'excel', 'pdf-forms'."):
        catalog.find('!')
    with pytest.raises(SkillNotFoundError, match='There are no skills'):
        load().find('x')


def test_of_many_names_the_closest_are_told():
    catalog = load(directories=(Source(*(f'skill-{number:03}' for number in range(100))),))
    with pytest.raises(SkillNotFoundError) as error:
        catalog.find('skil-042')
    assert str(error.value).startswith("There is no skill 'skil-042'. The skills are: 'skill-042', ")
    assert str(error.value).endswith(' and 80 more.')
    with pytest.raises(SkillNotFoundError, match="The skills are: 'skill-000'"):
        catalog.find('x' * 1_000_000)
