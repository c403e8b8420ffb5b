"""Noticing changes by the events of the file system."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import anyio
import pytest
import watchfiles
from anyio import to_thread
from pydantic_ai import Agent
from watchfiles import Change

from pydantic_ai_skills import SkillsCapability, SkillsDirectory, SkillsToolset
from pydantic_ai_skills.directory.settings import ScanLimits
from pydantic_ai_skills.directory.watch import MAX_LOOKS, Events, Fence, WatchedDirectory, WatchTimes
from tests.conversations import ScriptedModel
from tests.directory.test_directory import CHANGES, refuse_to_open
from tests.folders import settle, skill_md, write, write_skill


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for events as long as it takes: a machine with much else to do is no reason to stop trusting them."""
    monkeypatch.setattr(WatchedDirectory, 'times', WatchTimes(patience=60, first_patience=60))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / 'parent/root'
    write_skill(root / 'a')
    write_skill(root / 'b')
    settle()
    return root


class Counting(SkillsDirectory):
    looks = 0

    def find(self) -> Any:
        self.looks += 1
        return super().find()


@pytest.mark.parametrize('change', CHANGES)
def test_a_change_is_seen_at_the_next_look(root: Path, change: str) -> None:
    watched = WatchedDirectory(SkillsDirectory(root))
    assert len(watched.find().skills) == 2
    make, expected = CHANGES[change]
    make(root)
    assert {skill.name: skill.description for skill in watched.find().skills} == expected


def test_where_nothing_has_changed_nothing_is_looked_at(root: Path) -> None:
    directory = Counting(root)
    watched = WatchedDirectory(directory)
    found = watched.find()
    looks = directory.looks
    assert [watched.find() for _ in range(3)] == [found] * 3
    assert directory.looks == looks
    assert repr(watched) == repr(directory)


def test_hundreds_of_changes_are_each_seen_at_once(root: Path) -> None:
    watched = WatchedDirectory(SkillsDirectory(root))
    path = root / 'a/SKILL.md'
    for number in range(200):
        path.write_text(skill_md('a', f'Number {number}.'))
        assert watched.find().skills[0].description == f'Number {number}.'


def test_a_file_in_a_skill_is_seen_too(root: Path) -> None:
    watched = WatchedDirectory(SkillsDirectory(root))
    assert watched.find().skills[0].resources == []
    write(root / 'a', {'references/new/deep.md': 'new'})
    assert [item.name for item in watched.find().skills[0].resources] == ['references/new/deep.md']
    write(root / 'a', {'references/new/other.md': 'new'})
    assert len(watched.find().skills[0].resources) == 2


def test_a_folder_that_was_replaced_is_watched_again(root: Path) -> None:
    directory = Counting(root)
    watched = WatchedDirectory(directory)
    watched.find()
    for number in range(3):
        shutil.rmtree(root / 'a')
        write_skill(root / 'a', f'Replaced {number}.')
        assert watched.find().skills[0].description == f'Replaced {number}.'
        write_skill(root / 'a', f'Edited {number}.')
        assert watched.find().skills[0].description == f'Edited {number}.'
    looks = directory.looks
    watched.find()
    assert directory.looks == looks


def test_a_list_of_files_is_kept_up_to_date_without_events_for_its_folders(root: Path) -> None:
    write(root / 'a', {'references/deep/one.md': '1'})
    settle()
    watched = WatchedDirectory(SkillsDirectory(root))
    assert len(watched.find().skills[0].resources) == 1
    write(root / 'a', {'references/deep/two.md': '2'})
    assert len(watched.find().skills[0].resources) == 2
    shutil.rmtree(root / 'a/references/deep')
    assert len(watched.find().skills[0].resources) == 0
    settle()
    watched.find()
    _ = watched.find().skills[0].resources
    (root / 'a/references').rename(root.parent / 'elsewhere')
    assert watched.find().skills[0].resources == []


def test_a_folder_that_goes_while_it_is_about_to_be_watched_is_no_problem(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Events.__init__

    def remove_then_watch(self: Events, folders: frozenset[str], patience: float) -> None:
        shutil.rmtree(root / 'a', ignore_errors=True)
        watch(self, folders, patience)

    monkeypatch.setattr(Events, '__init__', remove_then_watch)
    watched = WatchedDirectory(SkillsDirectory(root))
    assert [skill.name for skill in watched.find().skills] == ['b']
    assert watched.find().problems == ()


def test_a_folder_that_cannot_be_opened_keeps_no_other_from_being_watched(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Counting(root)
    watched = WatchedDirectory(directory)
    with monkeypatch.context() as patch:
        refuse_to_open(patch, 'b', errno.EACCES)
        assert [found.code for found in watched.find().problems] == ['unreadable']
        looks = directory.looks
        watched.find()
        assert directory.looks == looks
    write_skill(root / 'a', 'Edited.')
    assert [skill.description for skill in watched.find().skills] == ['Edited.', 'Does things.']


@pytest.mark.parametrize('at_first', [True, False])
def test_a_directory_that_can_be_opened_again_is_seen_at_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, at_first: bool
) -> None:
    watched = WatchedDirectory(SkillsDirectory(root))
    if not at_first:
        watched.find()
    root.chmod(0o700)
    with monkeypatch.context() as patch:
        refuse_to_open(patch, str(root), errno.EACCES)
        assert [found.code for found in watched.find().problems] == ['unreadable']
    assert [skill.name for skill in watched.find().skills] == ['a', 'b']
    write_skill(root / 'c')
    assert len(watched.find().skills) == 3


def test_where_folders_come_all_the_time_the_looks_have_an_end(root: Path) -> None:
    class Growing(Counting):
        def find(self) -> Any:
            found = super().find()
            write_skill(root / f'new-{self.looks}')
            return found

    directory = Growing(root)
    found = WatchedDirectory(directory).find()
    assert directory.looks == 1 + MAX_LOOKS
    assert [skill.name for skill in found.skills] == ['a', 'b', *(f'new-{look}' for look in range(1, directory.looks))]


def test_a_link_that_goes_takes_no_events_with_it(root: Path) -> None:
    (root / 'link').symlink_to('b')
    watched = WatchedDirectory(SkillsDirectory(root))
    watched.find()
    (root / 'link').unlink()
    watched.find()
    write_skill(root / 'b', 'Edited.')
    assert watched.find().skills[1].description == 'Edited.'


def test_a_link_that_leads_to_a_folder_now_is_told(root: Path, tmp_path: Path) -> None:
    (root / 'link').symlink_to(tmp_path / 'elsewhere')
    settle()
    watched = WatchedDirectory(SkillsDirectory(root))
    assert watched.find().problems == ()
    (tmp_path / 'elsewhere').mkdir()
    assert [problem.code for problem in watched.find().problems] == ['folder-link']
    (tmp_path / 'elsewhere').rmdir()
    assert watched.find().problems == ()


def test_a_directory_that_comes_later_is_watched_then(tmp_path: Path) -> None:
    watched = WatchedDirectory(SkillsDirectory(tmp_path / 'root'))
    assert watched.find().skills == ()
    write_skill(tmp_path / 'root/a')
    assert len(watched.find().skills) == 1
    shutil.rmtree(tmp_path / 'root')
    assert watched.find().skills == ()
    write_skill(tmp_path / 'root/b')
    write_skill(tmp_path / 'root/c')
    assert len(watched.find().skills) == 2


@pytest.mark.parametrize('how', ['the directory is a link', 'links are followed'])
def test_where_links_play_a_part_the_files_are_looked_at(root: Path, how: str) -> None:
    elsewhere = root.parent / 'elsewhere'
    shutil.copytree(root, elsewhere)
    if how == 'links are followed':
        shutil.rmtree(root / 'a')
        (root / 'a').symlink_to(elsewhere / 'a')
        directory = Counting(root, follow_links=True)
    else:
        shutil.rmtree(root)
        root.symlink_to(elsewhere)
        directory = Counting(root)
    watched = WatchedDirectory(directory)
    assert len(watched.find().skills) == 2
    write_skill(elsewhere / 'a', 'Edited.')
    assert watched.find().skills[0].description == 'Edited.'
    watched.find()
    assert directory.looks == 3


def test_a_child_process_watches_for_itself(root: Path) -> None:
    watched = WatchedDirectory(SkillsDirectory(root))
    watched.find()
    read, send = os.pipe()
    child = os.fork()
    if not child:
        write_skill(root / 'a', 'Edited.')
        os.write(send, watched.find().skills[0].description.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b'Edited.'
    os.close(read)
    os.close(send)


def test_everything_is_looked_at_once_in_a_while(root: Path) -> None:
    directory = Counting(root)
    watched = WatchedDirectory(directory)
    watched.find()
    looks = directory.looks
    watched.times = WatchTimes(trust=0)
    watched.find()
    assert directory.looks == looks + 1


def test_where_events_are_late_the_files_are_looked_at(root: Path) -> None:
    directory = Counting(root)
    watched = WatchedDirectory(directory)
    assert watched.find().problems == ()
    looks = directory.looks
    watched.times = WatchTimes(patience=-1, first_patience=-1)
    watched.find()
    assert directory.looks > looks
    write_skill(root / 'a', 'Edited.')
    found = watched.find()
    assert found.skills[0].description == 'Edited.'
    assert ['no events come' in problem.message for problem in found.problems] == [True]


def test_the_event_is_waited_for_once_the_folders_are_watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watchfiles.watch

    def slow_watch(*folders: str, **options: Any) -> Iterator[Any]:
        time.sleep(3.1)
        yield from watch(*folders, **options)

    monkeypatch.setattr(watchfiles, 'watch', slow_watch)
    assert WatchedDirectory(SkillsDirectory(root), WatchTimes(first_patience=3)).find().problems == ()


def test_changes_that_are_told_apart_are_seen_together(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(*folders: str, stop_event: Fence, **options: Any) -> Iterator[set[tuple[Change, str]]]:
        """Tell of each file in a folder of ours by itself, after two changes elsewhere."""
        while not stop_event.is_set():
            yield {(Change.modified, '/skills/a/SKILL.md')}
            yield {(Change.added, '/skills/b')}
            yield {(Change.added, path) for path in glob(f'{folders[-1]}/*')}

    monkeypatch.setattr(watchfiles, 'watch', watch)
    events = Events(frozenset({'/skills/a'}))
    assert events.since_last_asked() == {'/skills/a/SKILL.md/.', '/skills/b'}


def test_a_directory_that_cannot_be_watched_is_a_problem_and_works(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[frozenset[str]] = []

    def refuse(self: Events, folders: frozenset[str], patience: float) -> None:
        tries.append(folders)
        raise OSError('OS file watch limit reached.')

    def later(seconds: float, now: Callable[[], float] = time.monotonic) -> float:
        return now() + seconds

    monkeypatch.setattr(Events, '__init__', refuse)
    watched = WatchedDirectory(SkillsDirectory(root))
    (found,) = watched.find().problems
    assert (found.code, found.severity, found.path) == ('watch-failed', 'warning', str(root))
    assert 'OS file watch limit reached' in found.message
    write_skill(root / 'a', 'Edited.')
    assert watched.find().skills[0].description == 'Edited.'
    assert len(tries) == 1
    monkeypatch.setattr('pydantic_ai_skills.directory.watch.time.monotonic', partial(later, WatchTimes().retry))
    write_skill(root / 'a', 'Edited again.')
    assert watched.find().skills[0].description == 'Edited again.'
    assert len(tries) == 2


def test_a_folder_whose_name_is_no_text_hides_no_skill(root: Path) -> None:
    os.mkdir(os.fsencode(root) + b'/\xff')
    toolset = SkillsToolset[Any](directories=[root], auto_reload='watch')
    assert list(toolset.skills) == ['a', 'b']
    assert [problem.code for problem in toolset.problems] == ['watch-failed']
    write_skill(root / 'a', 'Edited.')
    toolset.reload()
    assert toolset.get_skill('a').description == 'Edited.'


def test_a_file_whose_name_is_no_text_hides_no_change(root: Path) -> None:
    watched = WatchedDirectory(SkillsDirectory(root))
    watched.find()
    for number in range(3):
        Path(os.fsdecode(os.fsencode(root) + b'/a/\xff')).write_text(str(number))
        write_skill(root / 'a', f'Number {number}.')
        found = watched.find()
        assert (found.skills[0].description, found.problems) == (f'Number {number}.', ())


def test_a_file_that_stays_half_written_is_seen_without_an_event(root: Path) -> None:
    directory = SkillsDirectory(root)
    directory.limits = ScanLimits(patience_s=0.0, stall_ns=10**15)
    watched = WatchedDirectory(directory)
    watched.find()
    (root / 'a/SKILL.md').write_text('---\nname: a\n')
    assert [skill.name for skill in watched.find().skills] == ['a', 'b']
    directory.limits = ScanLimits(patience_s=0.0, stall_ns=0)
    found = watched.find()
    assert [skill.name for skill in found.skills] == ['b']
    assert [problem.code for problem in found.problems] == ['unclosed-frontmatter']


def test_a_change_that_could_not_be_looked_at_is_seen_later(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedDirectory(SkillsDirectory(root))
    watched.find()
    write_skill(root / 'a', 'Edited.')
    with monkeypatch.context() as patch:
        refuse_to_open(patch, 'SKILL.md', errno.EMFILE)
        with pytest.raises(OSError, match='Too many open files'):
            watched.find()
    assert watched.find().skills[0].description == 'Edited.'


def test_where_temporary_files_are_cleared_up_changes_are_seen_all_the_same(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = write(tmp_path / 'temporary', {})
    monkeypatch.setattr(tempfile, 'tempdir', str(temporary))
    directory = Counting(root)
    watched = WatchedDirectory(directory)
    watched.find()
    (own,) = temporary.iterdir()
    shutil.rmtree(own)
    write_skill(root / 'a', 'Edited.')
    assert watched.find().skills[0].description == 'Edited.'
    looks = directory.looks
    assert watched.find().skills[0].description == 'Edited.'
    assert directory.looks == looks


def test_that_a_directory_cannot_be_watched_is_told_for_as_long_as_it_is_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Events, folders: frozenset[str], patience: float) -> None:
        raise OSError('OS file watch limit reached.')

    def no_events(self: Events, patience: float) -> None:
        return None

    watched = WatchedDirectory(SkillsDirectory(root), WatchTimes(retry=0.0))
    assert watched.find().problems == ()
    with monkeypatch.context() as patch:
        patch.setattr(Events, 'since_last_asked', no_events)
        patch.setattr(Events, '__init__', refuse)
        assert [problem.code for problem in watched.find().problems] == ['watch-failed']
    assert watched.find().problems == ()


def test_without_watchfiles_the_error_names_the_extra(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'watchfiles', None)
    monkeypatch.setattr('pydantic_ai_skills.directory.watch.find_spec', lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(
        ImportError, match=r"auto_reload='watch' needs watchfiles: pip install 'pydantic-ai-skills\[watch\]'"
    ):
        SkillsToolset(directories=[root], auto_reload='watch')


@pytest.mark.anyio
@pytest.mark.parametrize('make', [SkillsToolset[Any], SkillsCapability[Any]])
async def test_a_run_sees_what_changed_before_it(root: Path, make: Callable[..., Any]) -> None:
    given = make(directories=[root], auto_reload='watch')
    toolset: SkillsToolset[Any] = getattr(given, 'toolset', given)
    script = ScriptedModel(calls=[])
    agent = Agent(script.model, toolsets=[toolset])
    await agent.run('Go.')
    write_skill(root / 'c', 'Is new.')
    await agent.run('Go.')
    assert ['Is new.' in str(text) for text in script.instructions] == [False, True]
    assert len(script.tools[0]) == 4


@pytest.mark.anyio
async def test_an_event_loop_does_not_wait_until_what_a_dropped_watch_leaves_is_removed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = write(tmp_path / 'temporary', {})
    monkeypatch.setattr(tempfile, 'tempdir', str(temporary))
    watched = WatchedDirectory(SkillsDirectory(root))
    await to_thread.run_sync(watched.find)
    assert len(os.listdir(temporary)) == 1
    del watched
    with anyio.fail_after(60):
        while await to_thread.run_sync(os.listdir, temporary):
            await anyio.sleep(0.02)
