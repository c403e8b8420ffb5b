"""Every source of the package passes the suite, and registries that break a rule do not."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import (
    FolderSkillsRegistry,
    GitSkillsRegistry,
    Skill,
    SkillProvenance,
    SkillRegistry,
    SkillRegistryError,
    SkillRegistryRefusedError,
)
from pydantic_ai_skills.registries import FetchedRegistry, FetchSession, FetchSettings, FileSink, Upstream
from pydantic_ai_skills.registries.conformance import FetchedRegistrySuite, RefusableRegistrySuite, SkillRegistrySuite
from pydantic_ai_skills.types.found_skills import FoundSkills
from tests.folders import skill_md, write_skill
from tests.registries.buckets import SECRET, Buckets, BucketServer, answering
from tests.registries.repositories import GitServer, Repository

pytest_plugins = ['pytester']

Make = Callable[..., Any]
Change = Callable[[], object]
Outage = Callable[[], AbstractContextManager[object]]


@contextmanager
def during(obj: Any, name: str, value: Any) -> Generator[None]:
    """Set an attribute for a while."""
    before = getattr(obj, name)
    setattr(obj, name, value)
    try:
        yield
    finally:
        setattr(obj, name, before)


class TestGit(FetchedRegistrySuite, RefusableRegistrySuite):
    @pytest.fixture
    def make_registry(self, server: GitServer) -> Make:
        server.password = 'x-access-token:token-1'
        about: dict[str, Any] = {'token': 'token-1', 'allowed_protocols': ('http',), 'timeout': 20}
        return partial(GitSkillsRegistry, f'{server.url}/acme', **about)

    @pytest.fixture
    def change(self, repository: Repository) -> Change:
        def change() -> None:
            repository.skill('pdf', 'Does other things.')
            repository.commit()

        return change

    @pytest.fixture
    def outage(self, server: GitServer) -> Outage:
        return lambda: during(server, 'redirect', 'http://127.0.0.1:9')

    @pytest.fixture
    def refusal(self, server: GitServer) -> Outage:
        return lambda: during(server, 'password', 'x-access-token:token-2')

    @pytest.fixture
    def secrets(self) -> Collection[str]:
        return ['token-1']


class TestFolder(FetchedRegistrySuite):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_skill(tmp_path / 'skills/pdf', files={'scripts/fill.py': 'print("filled")\n'}).parent

    @pytest.fixture
    def make_registry(self, folder: Path) -> Make:
        return partial(FolderSkillsRegistry, folder)

    @pytest.fixture
    def change(self, folder: Path) -> Change:
        return lambda: write_skill(folder / 'pdf', 'Does other things.')

    @pytest.fixture
    def outage(self, folder: Path) -> Outage:
        @contextmanager
        def moved() -> Generator[None]:
            aside = shutil.move(folder, folder.with_name('aside'))
            yield
            shutil.move(aside, folder)

        return moved


class TestObjects(FetchedRegistrySuite, RefusableRegistrySuite):
    @pytest.fixture
    def bucket(self) -> Iterator[BucketServer]:
        server = BucketServer()
        server.put({'skills/pdf/SKILL.md': skill_md('pdf'), 'skills/pdf/forms.md': '# Forms\n'})
        yield server
        server.stop()

    @pytest.fixture
    def make_registry(self, bucket: BucketServer, tmp_path: Path) -> Make:
        return Buckets(bucket, tmp_path / 'cache')

    @pytest.fixture
    def change(self, bucket: BucketServer) -> Change:
        return lambda: bucket.put({'skills/pdf/SKILL.md': skill_md('pdf', 'Does other things.')})

    @pytest.fixture
    def outage(self, bucket: BucketServer) -> Outage:
        return lambda: during(bucket, 'fault', answering(503))

    @pytest.fixture
    def refusal(self, bucket: BucketServer) -> Outage:
        return lambda: during(bucket, 'fault', answering(403))

    @pytest.fixture
    def secrets(self) -> Collection[str]:
        return [SECRET, 'AKIDEXAMPLE']


# --- Registries that break a rule ---------------------------------------------------------------------------------


@dataclass
class World:
    """A source in memory, which can change, fail and refuse."""

    text: str = 'First.'
    error: Exception | None = None

    def change(self) -> None:
        self.text = 'Second.'

    def outage(self) -> AbstractContextManager[None]:
        return during(self, 'error', OSError('gone'))

    def refusal(self) -> AbstractContextManager[None]:
        return during(self, 'error', SkillRegistryRefusedError('no'))


@dataclass(eq=False)
class Good(SkillRegistry):
    """It breaks no rule."""

    world: World

    def __post_init__(self) -> None: ...

    def get_skills(self) -> list[Skill[Any]]:
        if self.world.error:
            raise self.world.error
        return self.skills()

    def skills(self) -> list[Skill[Any]]:
        return [Skill('pdf', self.world.text, 'Do it.'), Skill('csv', 'Reads.', 'Read it.')]

    def __deepcopy__(self, memo: Any) -> SkillRegistry:
        return type(self)(self.world)


class TestGood(RefusableRegistrySuite):
    @pytest.fixture
    def world(self) -> World:
        return World()

    @pytest.fixture
    def make_registry(self, world: World) -> Make:
        return lambda: Good(world)

    @pytest.fixture
    def change(self, world: World) -> Change:
        return world.change

    @pytest.fixture
    def outage(self, world: World) -> Outage:
        return world.outage

    @pytest.fixture
    def refusal(self, world: World) -> Outage:
        return world.refusal


class Eager(Good):
    def __post_init__(self) -> None:
        self.find()


class Impatient(Good):
    def __post_init__(self) -> None:
        self.get_skills()


class Twice(Good):
    def skills(self) -> list[Skill[Any]]:
        return super().skills() * 2


class Empty(Good):
    def skills(self) -> list[Skill[Any]]:
        return []


class Renaming(Good):
    count = 0

    def find(self) -> FoundSkills:
        return self.refresh()


class Forgetful(Good):
    def find(self) -> FoundSkills:
        return super().find()._replace(source='copied')


class Random(Good):
    made = 0

    def skills(self) -> list[Skill[Any]]:
        Random.made += 1
        return [Skill('pdf', f'Number {Random.made}.', 'Do it.')]


class Deaf(Good):
    def refresh(self) -> FoundSkills:
        return self.find()


class Raising(Good):
    def _ask(self) -> FoundSkills:
        self._found = FoundSkills(tuple(self.get_skills()))
        return self._found


class Silent(Good):
    def get_skills(self) -> list[Skill[Any]]:
        return [] if self.world.error else self.skills()


class Mute(Good):
    """It keeps the last skills and does not say that it failed."""

    def refresh(self) -> FoundSkills:
        return self.find() if self.world.error else super().refresh()


class Grudging(Good):
    """It does not get over a failure."""

    def get_skills(self) -> list[Skill[Any]]:
        self.failed = getattr(self, 'failed', None) or self.world.error
        if self.failed:
            raise self.failed
        return self.skills()


class Unwrappable(Good):
    def prefixed(self, prefix: str) -> Any:
        return self


class Trusting(Good):
    def skills(self) -> list[Skill[Any]]:
        skills = super().skills()
        skills[0].source = SkillProvenance(kind='x', url='x', trusted=True)
        return skills


class Nameless(Good):
    def _note_source(self, found: FoundSkills) -> None:
        found.skills[0].path = '/nowhere'


class Remembering(Good):
    def __getstate__(self) -> dict[str, Any]:
        return vars(self)


class Racing(Good):
    def find(self) -> FoundSkills:
        return self._found or FoundSkills(tuple(self.get_skills()))


class Unreadable(Good):
    def skills(self) -> list[Skill[Any]]:
        return [Skill('pdf', 'Fills.', 'Do it.', disable_model_invocation=True)]


class Stubborn(Good):
    """It keeps its skills after a refusal."""

    def get_skills(self) -> list[Skill[Any]]:
        if self.world.error:
            raise OSError('gone')
        return self.skills()


RULES_BROKEN: list[tuple[type[Good], Callable[..., None]]] = [
    (Eager, SkillRegistrySuite.test_the_constructor_does_nothing),
    (Impatient, SkillRegistrySuite.test_the_constructor_does_nothing),
    (Twice, SkillRegistrySuite.test_names_are_valid_and_unique),
    (Empty, SkillRegistrySuite.test_names_are_valid_and_unique),
    (Renaming, SkillRegistrySuite.test_find_returns_the_same_object_while_nothing_changes),
    (Forgetful, SkillRegistrySuite.test_find_returns_the_same_object_while_nothing_changes),
    (Random, SkillRegistrySuite.test_two_registries_find_the_same),
    (Deaf, SkillRegistrySuite.test_refresh_sees_a_change),
    (Renaming, SkillRegistrySuite.test_refresh_sees_a_change),
    (Raising, SkillRegistrySuite.test_a_first_failure_is_a_problem),
    (Silent, SkillRegistrySuite.test_a_first_failure_is_a_problem),
    (Grudging, SkillRegistrySuite.test_a_first_failure_is_a_problem),
    (Silent, SkillRegistrySuite.test_a_failure_keeps_the_last_skills),
    (Mute, SkillRegistrySuite.test_a_failure_keeps_the_last_skills),
    (Grudging, SkillRegistrySuite.test_a_failure_keeps_the_last_skills),
    (Unwrappable, SkillRegistrySuite.test_wrappers_work),
    (Trusting, SkillRegistrySuite.test_what_brings_files_says_where_it_is_from),
    (Nameless, SkillRegistrySuite.test_what_brings_files_says_where_it_is_from),
    (Remembering, SkillRegistrySuite.test_copies_find_the_same),
    (Racing, SkillRegistrySuite.test_threads_share_what_is_found),
    (Unreadable, SkillRegistrySuite.test_an_agent_loads_every_skill),
    (Stubborn, RefusableRegistrySuite.test_a_refusal_takes_the_skills_away),
    (Silent, RefusableRegistrySuite.test_a_refusal_takes_the_skills_away),
]


def run_rule(rule: Callable[..., None], **given: Any) -> None:
    """Call a test of a suite with those of the arguments that it takes."""
    suite = RefusableRegistrySuite() if 'Refusable' in rule.__qualname__ else FetchedRegistrySuite()
    rule(suite, **{name: given[name] for name in signature(rule).parameters if name != 'self'})


@pytest.mark.parametrize(('broken', 'rule'), RULES_BROKEN, ids=lambda given: given.__name__)
def test_a_registry_that_breaks_a_rule_fails_its_test(broken: type[Good], rule: Callable[..., None]):
    world = World()
    about: dict[str, Any] = {'change': world.change, 'outage': world.outage, 'refusal': world.refusal}
    with pytest.raises((AssertionError, OSError)):
        run_rule(rule, new=lambda: broken(world), **about)


def test_every_rule_for_all_registries_can_fail():
    rules = {name for name in vars(SkillRegistrySuite) | vars(RefusableRegistrySuite) if name.startswith('test_')}
    assert {rule.__name__ for _, rule in RULES_BROKEN} == rules


# --- Fetched registries that break a rule -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Misbehaving(Upstream):
    """A folder with one skill, read carelessly."""

    folder: Path
    url: str = 'bad://source'
    max_bytes: int = 10**6
    leaks: bool = False
    fixed_revision: bool = False

    def ask(self, session: FetchSession) -> str:
        text = '' if self.fixed_revision else self._read()
        return hashlib.sha256(text.encode()).hexdigest()

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        text = self._read()
        if len(text) > self.max_bytes:
            raise SkillRegistryError('too large')
        sink.write('pdf/SKILL.md', 'sesame' if self.leaks else revision, text.encode(), executable=False)
        return []

    def _read(self) -> str:
        try:
            return (self.folder / 'pdf' / 'SKILL.md').read_text()
        except OSError:
            raise SkillRegistryError('gone') from None


class Fetching(FetchedRegistry):
    """It breaks no rule, unless the options of `Misbehaving` or those that it ignores say so."""

    kind = 'bad'

    def __init__(self, folder: Path, ignored: Collection[str], upstream: Mapping[str, Any], **options: Any) -> None:
        given: Any = {name: value for name, value in options.items() if name not in ignored}
        settings = FetchSettings.of(self, given)
        about: Any = {'max_bytes': settings.max_bytes, **upstream}
        self._fetch_from(Misbehaving(folder=folder, **about), settings)


class Unpinned(Fetching):
    def lock(self, path: str | Path | None = None) -> Path:
        path = Path(path or self.lock_file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('version = 1\n')
        return path


class Misattributed(Fetching):
    @property
    def commit(self) -> str:
        return 'f' * 64


class Wasteful(Fetching):
    def __init__(self, *args: Any, cache_dir: Path, **options: Any) -> None:
        super().__init__(*args, cache_dir=cache_dir / uuid.uuid4().hex, **options)


NO_FAULT: Mapping[str, Any] = {}
FETCH_RULES_BROKEN: list[tuple[type[Fetching], Collection[str], Mapping[str, Any], Callable[..., None]]] = [
    (Misattributed, (), NO_FAULT, FetchedRegistrySuite.test_every_skill_has_an_exact_provenance),
    (Fetching, ('trusted',), NO_FAULT, FetchedRegistrySuite.test_the_developer_can_trust_it_and_choose_skills),
    (Fetching, ('no_such_option',), NO_FAULT, FetchedRegistrySuite.test_the_developer_can_trust_it_and_choose_skills),
    (Unpinned, (), NO_FAULT, FetchedRegistrySuite.test_the_lock_file_pins_every_skill),
    (Unpinned, (), NO_FAULT, FetchedRegistrySuite.test_a_locked_start_finds_what_was_locked),
    (Fetching, ('locked',), NO_FAULT, FetchedRegistrySuite.test_a_change_is_held_against_the_lock),
    (Fetching, ('locked',), NO_FAULT, FetchedRegistrySuite.test_without_a_lock_file_nothing_is_offered),
    (Fetching, ('offline',), NO_FAULT, FetchedRegistrySuite.test_an_offline_start_needs_no_source),
    (Wasteful, (), NO_FAULT, FetchedRegistrySuite.test_a_start_without_the_source_uses_the_cache),
    (
        Fetching,
        (),
        {'fixed_revision': True},
        FetchedRegistrySuite.test_the_remote_revision_moves_with_the_source,
    ),
    (Fetching, ('max_bytes',), NO_FAULT, FetchedRegistrySuite.test_a_limit_of_bytes_holds),
    (Fetching, (), {'leaks': True}, FetchedRegistrySuite.test_secrets_are_kept),
    (Fetching, (), {'url': 'bad://sesame@source'}, FetchedRegistrySuite.test_secrets_are_kept),
]


def fetching(
    folder: Path, make: type[Fetching], ignored: Collection[str], upstream: Mapping[str, Any]
) -> dict[str, Any]:
    """What a rule for fetched registries is given."""
    aside = folder.with_name('aside')

    @contextmanager
    def outage() -> Generator[None]:
        folder.rename(aside)
        yield
        aside.rename(folder)

    home = folder.parent / 'conformance'
    new = partial(make, folder, ignored, upstream, cache_dir=home / 'cache', lock_file=home / 'skills.lock')
    change = partial(write_skill, folder / 'pdf', 'Does other things.')
    return {'new': new, 'change': change, 'outage': outage, 'secrets': ['sesame'], 'tmp_path': folder.parent}


@pytest.mark.parametrize(
    ('make', 'ignored', 'upstream', 'rule'),
    FETCH_RULES_BROKEN,
    ids=[f'{rule.__name__}-{number}' for number, (*_, rule) in enumerate(FETCH_RULES_BROKEN)],
)
def test_a_fetched_registry_that_breaks_a_rule_fails_its_test(
    make: type[Fetching],
    ignored: Collection[str],
    upstream: Mapping[str, Any],
    rule: Callable[..., None],
    tmp_path: Path,
):
    folder = write_skill(tmp_path / 'skills/pdf').parent
    run_rule(rule, **fetching(folder, Fetching, (), {}))
    shutil.rmtree(tmp_path)
    write_skill(folder / 'pdf')
    with pytest.raises((AssertionError, SkillRegistryError, pytest.fail.Exception)):
        run_rule(rule, **fetching(folder, make, ignored, upstream))


def test_every_rule_for_fetched_registries_can_fail():
    rules = {name for name in vars(FetchedRegistrySuite) if name.startswith('test_')}
    assert {rule.__name__ for *_, rule in FETCH_RULES_BROKEN} == rules


@pytest.mark.parametrize('fixture', ['make_registry', 'change', 'outage', 'refusal'])
def test_a_fixture_that_is_missing_is_named(fixture: str, pytester: pytest.Pytester):
    given = ''.join(
        f'    @pytest.fixture\n    def {name}(self): return lambda: None\n'
        for name in ('make_registry', 'change', 'outage', 'refusal')
        if name != fixture
    )
    head = 'import pytest\nfrom pydantic_ai_skills.registries.conformance import RefusableRegistrySuite\n'
    takes = f'    def test_it(self, {fixture}): ...\n'
    pytester.makepyfile(f'{head}class TestMine(RefusableRegistrySuite):\n{given}{takes}')
    result = pytester.runpytest_inprocess('-k', 'test_it')
    result.stdout.fnmatch_lines([f'*NotImplementedError: provide a* `{fixture}` fixture'])
