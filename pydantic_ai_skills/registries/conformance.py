"""The conformance suite for registries: what every source of skills has to do, as tests that run on yours.

Subclass a suite in a module of your tests and provide its fixtures; pytest does the rest. Each test checks one rule.
The guide to writing a source has an example. It needs pytest.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import SkillsToolset
from pydantic_ai_skills.parsing.skill_names import check_skill_name
from pydantic_ai_skills.types.found_skills import FoundSkills

from .base import SkillRegistry
from .source import SourceRegistry

__all__ = ('FetchedRegistrySuite', 'RefusableRegistrySuite', 'SkillRegistrySuite')

MakeRegistry = Callable[..., SkillRegistry]
"""Makes a new registry of the same source, with the options it is given."""

MakeSource = Callable[..., SourceRegistry]
Change = Callable[[], object]
"""Changes the source so that a skill has another description or other instructions."""

Outage = Callable[[], AbstractContextManager[object]]
"""A context in which the source cannot be reached, or refuses."""

THREADS = 8


class SkillRegistrySuite:
    """The rules for every registry. Provide the fixtures `make_registry`, `change` and `outage`.

    The source must have at least one skill, and its skills must have different names.
    """

    @pytest.fixture
    def make_registry(self) -> MakeRegistry:
        """A function that makes a new registry of the source."""
        raise NotImplementedError('provide a `make_registry` fixture')

    @pytest.fixture
    def change(self) -> Change:
        """A function that changes the description or the instructions of a skill of the source."""
        raise NotImplementedError('provide a `change` fixture')

    @pytest.fixture
    def outage(self) -> Outage:
        """A function that returns a context manager, within which the source cannot be reached."""
        raise NotImplementedError('provide an `outage` fixture')

    @pytest.fixture
    def new(self, make_registry: MakeRegistry) -> MakeRegistry:
        """What the tests make registries with."""
        return make_registry

    def test_the_constructor_does_nothing(self, new: MakeRegistry, outage: Outage) -> None:
        """It neither asks the source nor fails when the source is gone."""
        with outage():
            registry = new()
            assert registry.latest is None, 'the constructor has fetched skills already'
        assert registry.find().skills, 'a registry that was made during an outage finds nothing after it'

    def test_names_are_valid_and_unique(self, new: MakeRegistry) -> None:
        """The model calls skills by name."""
        names = _names(new().find())
        assert names, 'the source has no skills'
        assert [check_skill_name(name) for name in names] == names
        assert len(set(names)) == len(names), f'two skills have the same name: {names}'

    def test_find_returns_the_same_object_while_nothing_changes(self, new: MakeRegistry) -> None:
        """The catalog is merged again when a source returns another object."""
        registry = new()
        found = registry.find()
        assert registry.find() is found, 'find() returned another object, though nothing has changed'
        assert registry.latest is found, 'latest is not what find() returned'

    def test_two_registries_find_the_same(self, new: MakeRegistry) -> None:
        """What is found depends on the source only."""
        assert _told(new().find()) == _told(new().find())

    def test_refresh_sees_a_change(self, new: MakeRegistry, change: Change) -> None:
        """And only `refresh()` does: `find()` asks no more than once."""
        registry = new()
        before = _told(registry.find())
        change()
        assert _told(registry.find()) == before, 'find() asked the source again'
        after = _told(registry.refresh())
        assert after != before, 'refresh() did not see that the source has changed'
        assert _told(registry.find()) == after == _told(new().find())

    def test_a_first_failure_is_a_problem(self, new: MakeRegistry, outage: Outage) -> None:
        """It is not an exception, and other sources go on."""
        registry = new()
        with outage():
            found = registry.find()
            assert not found.skills, 'there are skills though the source cannot be reached'
            assert _failures(found), 'nothing says that the source cannot be reached'
            toolset = SkillsToolset[None](registries=[registry, _Constant()])
            assert 'constant' in toolset.skills, 'the failure hides the skills of another source'
        assert registry.refresh().skills, 'refresh() does not recover from the failure'
        assert not _failures(registry.find()), 'the problem is still there after the failure'

    def test_a_failure_keeps_the_last_skills(self, new: MakeRegistry, outage: Outage) -> None:
        """And says so."""
        registry = new()
        before = _told(registry.find())
        with outage():
            during = registry.refresh()
            assert _told(during) == before, 'the failure took the skills away'
            assert _failures(during), 'nothing says that the source failed'
        assert not _failures(registry.refresh()), 'the problem is still there after the failure'

    def test_wrappers_work(self, new: MakeRegistry) -> None:
        """Prefixed, renamed, filtered and cached."""
        registry = new()
        names = _names(registry.find())
        assert _names(registry.prefixed('x-').find()) == [f'x-{name}' for name in names]
        assert 'another-name' in _names(registry.renamed({'another-name': names[0]}).find())
        chosen = registry.filtered(lambda skill: skill.name == names[0])
        assert list(SkillsToolset[None](registries=[chosen]).skills) == names[:1]
        assert _names(registry.cached(60).find()) == names

    def test_what_brings_files_says_where_it_is_from(self, new: MakeRegistry) -> None:
        """And is not trusted, unless the developer says so."""
        for skill in new().find().skills:
            assert skill.path is None or skill.source is not None, f'{skill.name} has no provenance'
            assert skill.source is None or not skill.source.trusted, f'{skill.name} is trusted by default'

    def test_copies_find_the_same(self, new: MakeRegistry) -> None:
        """Agents and toolsets are copied. A registry that holds a secret may refuse to be pickled."""
        registry = new()
        found = registry.find()
        copies = [copy.copy(registry), copy.deepcopy(registry)]
        with suppress(TypeError, AttributeError, pickle.PicklingError):
            copies.append(pickle.loads(pickle.dumps(registry)))  # noqa: S301 - written right here
        for each in copies:
            assert each.latest is None, 'a copy did not start without skills'
            assert _told(each.find()) == _told(found), 'a copy finds something else'

    def test_threads_share_what_is_found(self, new: MakeRegistry) -> None:
        """All of them get the same object, though they ask at once."""
        registry = new()
        at_once = Barrier(THREADS)

        def find(_: int) -> FoundSkills:
            at_once.wait()
            return registry.find()

        with ThreadPoolExecutor(THREADS) as threads:
            found = list(threads.map(find, range(THREADS)))
        assert all(each is found[0] for each in found), 'threads that asked at once got different objects'
        assert found[0].skills

    def test_an_agent_loads_every_skill(self, new: MakeRegistry) -> None:
        """In a conversation, with the instructions that the skill has."""
        registry = new()
        loaded = _load_all(registry)
        for skill in registry.find().skills:
            outcome, text = loaded[skill.name]
            assert outcome == 'success', f'{skill.name} cannot be loaded: {text}'
            assert skill.content.strip()[:40] in text, f'{skill.name} was loaded without its instructions'


class RefusableRegistrySuite(SkillRegistrySuite):
    """The rules for a source that wants credentials. Provide the fixture `refusal` too."""

    @pytest.fixture
    def refusal(self) -> Outage:
        """A function that returns a context manager, within which the source does not accept the credentials."""
        raise NotImplementedError('provide a `refusal` fixture')

    def test_a_refusal_takes_the_skills_away(self, new: MakeRegistry, refusal: Outage) -> None:
        """What somebody may not have any more is not offered, not even from a cache."""
        registry = new()
        before = _told(registry.find())
        with refusal():
            found = registry.refresh()
            assert not found.skills, 'skills are offered after a refusal'
            assert 'source-refused' in _codes(found), 'nothing says that the source refused'
            assert not new().find().skills, 'a new registry offers skills after a refusal'
        assert _told(registry.refresh()) == before, 'the skills are not back after the refusal'


class FetchedRegistrySuite(SkillRegistrySuite):
    """The rules for a source that is kept in the cache and pinned by a lock file: a `FetchedRegistry`.

    `make_registry` has to pass on the options it is given. Provide `secrets` if the source has any.
    """

    @pytest.fixture
    def secrets(self) -> Collection[str]:
        """Credentials that must appear in no output and no file."""
        return ()

    @pytest.fixture
    def new(self, make_registry: MakeRegistry, tmp_path: Path) -> MakeRegistry:
        """Makes registries with a cache and a lock file that belong to the test."""
        home = tmp_path / 'conformance'
        return partial(make_registry, cache_dir=home / 'cache', lock_file=home / 'skills.lock')

    def test_every_skill_has_an_exact_provenance(self, new: MakeSource) -> None:
        """Kind, address, revision and content."""
        registry = new()
        sources = [skill.source for skill in registry.find().skills]
        for source in sources:
            assert source is not None
            assert (source.kind, source.url, source.ref) == (registry.kind, registry.url, registry.ref)
            assert source.commit == registry.commit
            assert (source.content_hash or '').startswith('sha256:'), 'the content is not hashed'

    def test_the_developer_can_trust_it_and_choose_skills(self, new: MakeSource) -> None:
        """With `trusted` and `only`, which all such registries take; other options are refused."""
        name = _names(new().find())[0]
        (skill,) = new(trusted=True, only=[name]).find().skills
        assert skill.source is not None
        assert (skill.name, skill.source.trusted) == (name, True)
        with pytest.raises(TypeError):
            new(no_such_option=True)

    def test_the_lock_file_pins_every_skill(self, new: MakeSource, tmp_path: Path) -> None:
        """With its address and its content."""
        registry = new()
        text = registry.lock(tmp_path / 'pins.lock').read_text('utf-8')
        pins = [skill.source.content_hash for skill in registry.find().skills if skill.source is not None]
        assert all(about in text for about in (registry.kind, registry.url, registry.commit, *pins) if about)

    def test_a_locked_start_finds_what_was_locked(self, new: MakeSource, outage: Outage, tmp_path: Path) -> None:
        """On this machine, on another one, and here while the source is gone."""
        registry = new()
        before = _told(registry.find())
        registry.lock()
        for options in ({}, {'cache_dir': tmp_path / 'another'}):
            found = new(locked=True, **options).find()
            assert (_told(found), found.problems) == (before, ()), 'a locked start differs from what was locked'
        with outage():
            assert _told(new(locked=True).find()) == before, 'a locked start needs the source'

    def test_a_change_is_held_against_the_lock(self, new: MakeSource, change: Change, tmp_path: Path) -> None:
        """What differs from the lock file is not offered until somebody locks it again."""
        registry = new()
        before = _told(registry.find())
        registry.lock()
        change()
        locked = new(locked=True, cache_dir=tmp_path / 'another')
        found = locked.find()
        assert _told(found).items() <= before.items(), 'a changed skill is offered against the lock file'
        assert 'lock-mismatch' in _codes(found), 'nothing says that the source differs from the lock file'
        locked.lock()
        assert _told(locked.find()) == _told(registry.refresh()), 'lock() did not accept the change'

    def test_without_a_lock_file_nothing_is_offered(self, new: MakeSource, tmp_path: Path) -> None:
        """When the lock file was asked for."""
        found = new(locked=True, lock_file=tmp_path / 'missing.lock').find()
        assert not found.skills, 'skills are offered that nothing pins'
        assert _failures(found)

    def test_an_offline_start_needs_no_source(self, new: MakeSource, outage: Outage, tmp_path: Path) -> None:
        """If everything was fetched before; if not, there is a problem."""
        before = _told(new().find())
        with outage():
            found = new(offline=True).find()
        assert (_told(found), found.problems) == (before, ()), 'an offline start differs from the one before'
        nothing = new(offline=True, cache_dir=tmp_path / 'empty').find()
        assert not nothing.skills, 'offline=True has fetched'
        assert _failures(nothing)

    def test_a_start_without_the_source_uses_the_cache(self, new: MakeSource, outage: Outage) -> None:
        """And says so."""
        before = _told(new().find())
        with outage():
            found = new().find()
        assert _told(found) == before, 'what was fetched before is not used'
        assert _failures(found), 'nothing says that the source cannot be reached'

    def test_the_remote_revision_moves_with_the_source(self, new: MakeSource, change: Change) -> None:
        """And asking for it changes nothing."""
        registry = new()
        found = registry.find()
        assert registry.remote_commit() == registry.commit
        change()
        assert registry.remote_commit() != registry.commit, 'the revision does not depend on the content'
        assert registry.find() is found
        assert registry.refresh() is not found
        assert registry.remote_commit() == registry.commit

    def test_a_limit_of_bytes_holds(self, new: MakeSource) -> None:
        """A source that is too large is not used, not even in part."""
        found = new(max_bytes=1).find()
        assert not found.skills, 'max_bytes= has no effect'
        assert _failures(found)

    def test_secrets_are_kept(self, new: MakeSource, secrets: Collection[str], tmp_path: Path) -> None:
        """They are not in what the registry shows, nor in any file."""
        registry = new()
        registry.lock()
        shown = [repr(registry), repr(registry.find()), *(repr(skill.source) for skill in registry.find().skills)]
        files = [path.read_bytes() for path in (tmp_path / 'conformance').rglob('*') if path.is_file()]
        assert files, 'the cache of the test is empty: make_registry does not pass on its options'
        for secret in secrets:
            assert not any(secret in text for text in shown), 'a secret is shown'
            assert not any(secret.encode() in data for data in files), 'a secret was written to disk'


class _Constant(SkillRegistry):
    def get_skills(self) -> list[Any]:
        from pydantic_ai_skills import Skill

        return [Skill('constant', 'Never fails.', 'Stay calm.')]


def _names(found: FoundSkills) -> list[str]:
    return [skill.name for skill in found.skills]


def _told(found: FoundSkills) -> dict[str, tuple[str, str]]:
    """The description and the instructions of each skill, by its name."""
    return {skill.name: (skill.description, skill.content) for skill in found.skills}


def _codes(found: FoundSkills) -> list[str]:
    return [problem.code for problem in found.problems]


def _failures(found: FoundSkills) -> list[str]:
    return [problem.message for problem in found.problems if problem.is_source_failure]


def _load_all(registry: SkillRegistry) -> dict[str, tuple[str, str]]:
    """Let an agent load every skill; return the outcome and the text of each load."""
    names = _names(registry.find())

    def respond(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart('done')])
        return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': name}, name) for name in names])

    agent = Agent(FunctionModel(respond), toolsets=[SkillsToolset[object](registries=[registry])])
    messages = asyncio.run(agent.run('Go.')).all_messages()
    parts = [part for message in messages for part in message.parts if part.part_kind == 'tool-return']
    return {part.tool_call_id: (part.outcome, part.model_response_str()) for part in parts}
