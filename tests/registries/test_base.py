from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from pydantic_ai_skills import Skill, SkillRegistry, SkillRegistryError, SkillRegistryRefusedError, SkillsToolset
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.registries import CombinedRegistry
from pydantic_ai_skills.types import FoundSkills
from tests.registries.asked import codes, given


class Shelf(SkillRegistry):
    """Gives what the test puts on it."""

    def __init__(self, *names: str) -> None:
        self.skills = [Skill(name, f'Does {name}.', f'How to {name}.') for name in names]
        self.error: Exception | None = None
        self.asked = 0

    def __repr__(self) -> str:
        return 'Shelf()'

    def get_skills(self) -> list[Skill[Any]]:
        self.asked += 1
        if self.error:
            raise self.error
        return self.skills


class WithResponse(Exception):
    """An error like those of httpx and requests."""

    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)


class Broken(SkillRegistry):
    """One whose author handles no errors."""

    def get_skills(self) -> list[Skill[Any]]:
        return []

    def find(self) -> FoundSkills:
        raise OSError('no such host')

    def refresh(self) -> FoundSkills:
        return self.find()


class TestSkillRegistry:
    def test_it_is_asked_once_and_again_on_refresh(self):
        shelf = Shelf('a')
        assert shelf.latest is None
        first = shelf.find()
        assert shelf.find() is first is shelf.latest
        assert shelf.asked == 1
        shelf.skills = [*shelf.skills, Skill('b', 'b.', '')]
        assert shelf.find() is first
        assert [skill.name for skill in shelf.refresh().skills] == ['a', 'b']
        assert shelf.asked == 2

    def test_a_refresh_that_finds_nothing_new_gives_the_same_object(self):
        shelf = Shelf('a')
        assert shelf.refresh() is shelf.refresh()

    def test_on_failure_the_last_skills_are_kept_with_the_reason(self):
        shelf = Shelf('a')
        first = shelf.find()
        shelf.error = TimeoutError('too slow')
        second = shelf.refresh()
        assert second.skills == first.skills
        assert [str(problem) for problem in shelf.problems] == [
            'Shelf(): error [source-failed] It failed with TimeoutError: too slow. Its 1 skills from before are kept.'
        ]
        shelf.error = None
        assert shelf.refresh() == first
        assert shelf.problems == []

    @pytest.mark.parametrize(
        'error',
        [
            SkillRegistryRefusedError('The shelf is closed'),
            HTTPError('http://x', 403, 'Forbidden', Message(), None),
            ModelHTTPError(401, 'x'),
            WithResponse(401),
        ],
    )
    def test_after_a_refusal_no_skills_are_kept(self, error: Exception):
        shelf = Shelf('a')
        registry = CombinedRegistry([shelf.cached(ttl=0).prefixed('x-')])
        toolset = SkillsToolset(registries=[registry])
        assert list(toolset.skills) == ['x-a']
        shelf.error = error
        toolset.reload(include_registries=True)
        assert (list(toolset.skills), codes(registry)) == ([], ['source-refused'])
        with pytest.raises(SkillRegistryError):
            registry.get_skills()

    def test_a_first_failure_is_a_problem_too(self):
        shelf = Shelf('a')
        shelf.error = SkillRegistryError('The shelf is empty')
        assert shelf.find().skills == ()
        assert shelf.problems[0].message == 'The shelf is empty.'

    def test_problems_of_a_subclass_are_found(self):
        class Picky(Shelf):
            @property
            def problems(self) -> list[SkillProblem]:
                return [SkillProblem(path='x', code='shadowed', severity='warning', message='Hm.')]

        assert codes(Picky('a')) == ['shadowed']

    async def test_refreshing_does_not_block_the_event_loop(self):
        threads: list[str] = []

        class Slow(Shelf):
            def get_skills(self) -> list[Skill[Any]]:
                threads.append(threading.current_thread().name)
                return super().get_skills()

        found = await Slow('a').refresh_async()
        assert [skill.name for skill in found.skills] == ['a']
        assert threads != ['MainThread']


class TestWrappers:
    def test_filtered_leaves_out_the_others(self):
        shelf = Shelf('a', 'b')
        filtered = shelf.filtered(lambda skill: skill.name == 'b')
        assert given(filtered) == ['b']
        assert given(shelf) == ['a', 'b']
        assert repr(filtered) == 'Shelf().filtered(<lambda>)'

    @pytest.mark.parametrize('called_from', ['sync code', 'a worker thread', 'load'])
    async def test_an_async_predicate_is_awaited(self, called_from: str):
        async def is_b(skill: Skill[Any]) -> bool:
            await asyncio.sleep(0)
            return skill.name == 'b'

        async def nobody(skill: Skill[Any]) -> bool:
            return False

        for predicate, expected in ((is_b, ['b']), (nobody, [])):
            filtered = Shelf('a', 'b').filtered(predicate)
            toolset = SkillsToolset(registries=[filtered])
            match called_from:
                case 'sync code':
                    thread = threading.Thread(target=filtered.find)
                    thread.start()
                    thread.join()
                case 'a worker thread':
                    await filtered.refresh_async()
                case _:
                    await toolset.load()
            assert (given(filtered), list(toolset.skills), codes(filtered)) == (expected, expected, [])

    def test_a_predicate_may_be_async_for_some_skills_and_may_fail(self):
        async def yes() -> bool:
            return True

        shelf = Shelf('a', 'b', 'c', 'd')
        mixed = shelf.filtered(lambda skill: skill.name == 'a' if skill.name in 'ac' else yes())
        assert given(mixed) == ['a', 'b', 'd']

        async def fail(skill: Skill[Any]) -> bool:
            raise LookupError('no such team')

        (problem,) = shelf.filtered(fail).find().problems
        assert problem.message == 'It failed with LookupError: no such team.'
        assert shelf.filtered(fail).find().skills == ()

    def test_prefixed_gives_new_names_and_leaves_the_original_as_it_is(self):
        shelf = Shelf('a')
        original = shelf.skills[0]

        @original.script
        def run() -> str:
            return 'ran'

        (prefixed,) = shelf.prefixed('acme-').get_skills()
        assert (prefixed.name, prefixed.content, prefixed.description) == ('acme-a', 'How to a.', 'Does a.')
        assert [script.skill_name for script in prefixed.scripts] == ['acme-a']
        assert (original.name, original.scripts[0].skill_name) == ('a', 'a')

        @prefixed.resource
        def notes() -> str:
            return ''

        assert [resource.name for resource in prefixed.resources] == ['notes']
        assert original.resources == []
        assert repr(shelf.prefixed('acme-')) == "Shelf().prefixed('acme-')"

    def test_renamed_takes_new_names_with_the_old_ones_and_understands_the_other_way_round(self):
        assert given(Shelf('a', 'b').renamed({'x': 'a'})) == ['x', 'b']
        assert given(Shelf('a', 'b').renamed({'a': 'x'})) == ['x', 'b']
        assert repr(Shelf().renamed({'x': 'a'})) == "Shelf().renamed({'x': 'a'})"

    def test_two_skills_can_swap_names(self):
        swapped = Shelf('a', 'b').renamed({'a': 'b', 'b': 'a'})
        assert [(skill.name, skill.content) for skill in swapped.get_skills()] == [
            ('b', 'How to a.'),
            ('a', 'How to b.'),
        ]

    def test_a_name_that_no_skill_has_is_a_problem(self):
        renamed = Shelf('a').renamed({'x': 'gone'})
        assert given(renamed) == ['a']
        (problem,) = renamed.problems
        assert (problem.code, problem.message) == ('rename-unknown', "There is no skill 'gone' to rename to 'x'.")

    @pytest.mark.parametrize(
        ('wrapped', 'code', 'left'),
        [
            (Shelf('a', 'b').prefixed('Not Valid '), 'name-unusable', []),
            (Shelf('a', 'b').prefixed('x' * 64), 'name-unusable', []),
            (Shelf('a', 'b').renamed({'--': 'a'}), 'name-unusable', ['b']),
            (Shelf('a', 'b').renamed({'b': 'a'}), 'shadowed', ['b']),
        ],
    )
    def test_a_new_name_that_cannot_be_costs_the_skill_not_the_others(
        self, wrapped: SkillRegistry, code: str, left: list[str]
    ):
        assert given(wrapped) == left
        assert set(codes(wrapped)) == {code}

    def test_wrappers_compose_and_give_the_same_object_while_nothing_changes(self):
        shelf = Shelf('a', 'b')
        composed = shelf.filtered(lambda skill: skill.name != 'b').prefixed('x-').renamed({'y': 'x-a'})
        assert composed.latest is None
        found = composed.find()
        assert given(composed) == ['y']
        assert composed.find() is found is composed.latest
        shelf.skills = []
        assert composed.refresh().skills == ()

    def test_a_predicate_that_fails_costs_its_registry_not_the_others(self):
        toolset = SkillsToolset(registries=[Shelf('a').filtered(lambda skill: 1 / 0 > 0), Shelf('b')])
        assert list(toolset.skills) == ['b']
        assert 'ZeroDivisionError' in toolset.problems[0].message

    def test_a_wrapper_of_a_registry_that_failed_says_why(self):
        shelf = Shelf('a')
        shelf.error = SkillRegistryError('The shelf is gone.')
        with pytest.raises(SkillRegistryError, match=r'^The shelf is gone.$'):
            shelf.prefixed('x-').get_skills()


class TestCached:
    def test_it_asks_again_only_when_the_skills_are_too_old(self):
        shelf = Shelf('a')
        forever, never = shelf.cached(), shelf.cached(ttl=timedelta(0))
        forever.find()
        forever.find()
        forever.refresh()
        assert shelf.asked == 1
        never.find()
        assert shelf.asked == 1
        never.find()
        never.refresh()
        assert shelf.asked == 3
        assert repr(never) == 'Shelf().cached(ttl=0.0)'
        assert never.latest is shelf.latest

    def test_a_negative_age_is_refused(self):
        with pytest.raises(ValueError, match='ttl must be 0 or more'):
            Shelf().cached(ttl=-1)


class TestCombined:
    def test_the_first_registry_wins_and_the_other_is_a_problem(self):
        first, second = Shelf('a'), Shelf('a', 'b')
        combined = CombinedRegistry([first, second])
        assert combined.get_skills() == [first.skills[0], second.skills[1]]
        assert [str(problem) for problem in combined.problems] == [
            "Shelf(): warning [shadowed] The skill 'a' is not used: the one of Shelf() comes first."
        ]
        assert repr(combined) == 'CombinedRegistry([Shelf(), Shelf()])'

    def test_one_that_fails_hides_no_other(self):
        shaky = Shelf('a')
        combined = CombinedRegistry([shaky, Broken(), Shelf('b')])
        assert given(combined) == ['a', 'b']
        shaky.error = OSError('gone')
        found = combined.refresh()
        assert [skill.name for skill in found.skills] == ['a', 'b']
        assert [problem.code for problem in found.problems] == ['source-failed', 'source-failed']

    def test_it_gives_the_same_object_while_nothing_changes(self):
        first, second = Shelf('a'), Shelf('b')
        combined = CombinedRegistry([first, second])
        assert combined.latest is None
        found = combined.find()
        assert combined.find() is found is combined.latest
        second.skills = []
        assert [skill.name for skill in combined.refresh().skills] == ['a']


class TestInAToolset:
    def test_a_reload_takes_what_a_registry_has_fetched_by_itself(self):
        shelf = Shelf('a')
        toolset = SkillsToolset(registries=[shelf])
        assert list(toolset.skills) == ['a']
        shelf.skills = [*shelf.skills, Skill('b', 'b.', '')]
        toolset.reload()
        assert list(toolset.skills) == ['a']
        shelf.refresh()
        toolset.reload()
        assert list(toolset.skills) == ['a', 'b']
        assert shelf.asked == 2

    def test_a_registry_that_fails_on_refresh_keeps_its_skills(self):
        shelf = Shelf('a')
        toolset = SkillsToolset(registries=[shelf, Broken()])
        assert list(toolset.skills) == ['a']
        shelf.error = OSError('gone')
        toolset.reload(include_registries=True)
        assert list(toolset.skills) == ['a']
        assert [problem.code for problem in toolset.problems] == ['source-failed', 'source-failed']
