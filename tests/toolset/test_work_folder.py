"""The work folder of a conversation: scripts share it, the model reads it, the application exchanges files with it."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import anyio
import pytest
from anyio import to_thread
from inline_snapshot import snapshot
from pydantic_ai import Agent, RunContext, UserError
from pydantic_ai.workspaces import FileEntry, LocalWorkspaceBackend, ReadOnlyWorkspace, Workspace

from pydantic_ai_skills import (
    LocalSkillScriptExecutor,
    ScriptFinished,
    ScriptLimits,
    ScriptResult,
    SkillResourceLoadError,
    SkillsCapability,
    SkillsDirectory,
    SkillsToolset,
)
from pydantic_ai_skills.execution.work_dir import remove_kept_folders
from tests.conversations import Call, ScriptedModel, converse
from tests.execution.test_workspace import RecordingBackend
from tests.folders import CONTEXT, call_tool, write_skill

WRITE = """
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(sys.argv[2])
"""


@pytest.fixture(autouse=True)
def toolsets(private_dirs: Callable[[], list[Path]]) -> Iterator[None]:
    """Closes all toolsets at the end of a test."""
    yield
    while opened:
        opened.pop().close()


opened: list[SkillsToolset[Any]] = []


def closing(toolset: SkillsToolset[Any]) -> SkillsToolset[Any]:
    opened.append(toolset)
    return toolset


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    scripts: dict[str, str | bytes] = {'write.py': WRITE, 'show.sh': 'cat "$1"', 'rm.sh': 'rm -r "$@"', 'pwd.sh': 'pwd'}
    write_skill(tmp_path / 'skills/writer', files={**scripts, 'guide.md': 'The guide.'})
    return tmp_path / 'skills'


def run(script: str, *args: str) -> Call:
    return 'run_skill_script', {'skill_name': 'writer', 'script_name': script, 'args': list(args)}


def read(name: str) -> Call:
    return 'read_skill_resource', {'skill_name': 'writer', 'resource_name': name}


class TestTheModel:
    async def test_is_told_names_that_the_next_script_and_the_read_tool_take(self, skills: Path):
        toolset = SkillsToolset(directories=[skills])
        script = await converse(
            toolset,
            run('write', 'out/report.md', 'first'),
            run('show', 'out/report.md'),
            read('out/report.md'),
            run('write', 'out/report.md', 'second'),
            read('./out/report.md'),
            read('out/other.md'),
        )
        assert [result for _, *result in script.results] == snapshot(
            [
                ['success', "It wrote files, which can be read with read_skill_resource: 'out/report.md'"],
                ['success', 'first'],
                ['success', 'first'],
                ['success', "It wrote files, which can be read with read_skill_resource: 'out/report.md'"],
                ['success', 'second'],
                [
                    'failed',
                    "There is no resource 'out/other.md' in skill 'writer'. The resources are: 'guide.md'.",
                ],
            ]
        )
        await toolset.aclose()

    async def test_reads_the_skills_own_file_under_a_name_that_both_have(self, skills: Path):
        toolset = closing(SkillsToolset(directories=[skills]))
        script = await converse(
            toolset,
            run('write', 'guide.md', 'Not the guide.'),
            read('guide.md'),
            read('work:guide.md'),
            read('work:other.md'),
        )
        assert [content for *_, content in script.results] == snapshot(
            [
                "It wrote files, which can be read with read_skill_resource: 'work:guide.md'",
                'The guide.',
                'Not the guide.',
                "There is no file 'other.md' in the work folder.",
            ]
        )

    async def test_reads_a_file_by_the_whole_path_that_a_script_printed(self, skills: Path):
        toolset = closing(SkillsToolset(directories=[skills]))
        first = await converse(toolset, run('write', 'a.md', 'text'), run('pwd'))
        folder = first.results[1][-1].strip()
        again = await converse(toolset, read(f'{folder}/a.md'), history=first.saved)
        assert again.results[-1][-1] == 'text'

    async def test_reads_a_file_by_the_name_it_was_shown(self, skills: Path):
        odd = 'a \u202f  b\n.md'
        toolset = closing(SkillsToolset(directories=[skills]))
        script = await converse(toolset, run('write', odd, 'odd'), read('a b .md'), read(odd))
        assert script.results[0][-1].endswith("'a b .md'")
        assert [content for *_, content in script.results[1:]] == ['odd', 'odd']

    async def test_cannot_read_what_models_do_not_take(self, skills: Path):
        toolset = closing(SkillsToolset(directories=[skills]))
        script = await converse(toolset, run('write', 'data.bin', 'x'), read('data.bin'))
        assert script.results[-1][-1] == 'x'
        await to_thread.run_sync(toolset.put_files, conversation(script), {'data.bin': bytes(9)})
        again = await converse(toolset, read('data.bin'), history=script.saved)
        assert "'data.bin' is binary" in again.results[-1][-1]

    async def test_is_told_of_files_of_a_script_that_failed(self, skills: Path):
        write_skill(skills / 'failing', files={'fail.sh': 'echo half > half.txt; exit 3'})
        toolset = closing(SkillsToolset(directories=[skills]))
        script = await converse(toolset, ('run_skill_script', {'skill_name': 'failing', 'script_name': 'fail.sh'}))
        assert "'half.txt'" in script.results[0][-1]


def conversation(script: ScriptedModel) -> str:
    found = script.saved[-1].conversation_id
    assert found is not None
    return found


class TestAConversation:
    async def test_keeps_its_files_from_one_run_to_the_next(self, skills: Path):
        toolset = SkillsToolset(directories=[skills])
        first = await converse(toolset, run('write', 'a.txt', 'kept'))
        second = await converse(toolset, run('show', 'a.txt'), history=first.saved)
        assert second.results[-1][1:] == ('success', 'kept')
        await toolset.aclose()

    async def test_sees_no_files_of_another(self, skills: Path):
        toolset = closing(SkillsToolset(directories=[skills]))
        await converse(toolset, run('write', 'a.txt', 'secret'))
        other = await converse(toolset, run('show', 'a.txt'), read('a.txt'), read('gone/a.txt'), read('../a.txt'))
        assert {outcome for _, outcome, _ in other.results} == {'failed'}

    async def test_that_is_the_least_recent_loses_its_folder_when_there_are_too_many(
        self, skills: Path, private_dirs: Callable[[], list[Path]]
    ):
        toolset = closing(SkillsToolset(directories=[skills], max_work_dirs=2))
        talks = [await converse(toolset, run('write', 'a.txt', str(number))) for number in range(2)]
        await converse(toolset, run('show', 'a.txt'), history=talks[0].saved)
        await converse(toolset, run('write', 'a.txt', '3'))
        assert len(await to_thread.run_sync(private_dirs)) == 2
        kept, lost = [await converse(toolset, run('show', 'a.txt'), history=talk.saved) for talk in talks]
        assert [kept.results[-1][1], lost.results[-1][1]] == ['success', 'failed']

    async def test_does_not_lose_its_folder_while_a_script_runs_in_it(self, skills: Path):
        waits = 'echo started > started; while [ ! -e go ]; do sleep 0.01; done; echo done'
        write_skill(skills / 'waiting', files={'wait.sh': waits})
        toolset = SkillsToolset(directories=[skills], max_work_dirs=1)
        agent = Agent(toolsets=[toolset])
        folder = await to_thread.run_sync(toolset.work_dir_of, 'slow')
        assert folder is not None

        async def slow() -> None:
            call: Call = ('run_skill_script', {'skill_name': 'waiting', 'script_name': 'wait.sh'})
            model = ScriptedModel(calls=[call])
            await agent.run('Go.', model=model.model, conversation_id='slow')
            outcomes.append(model.results[-1][1:])

        outcomes: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            while not await to_thread.run_sync((folder / 'started').exists):
                await anyio.sleep(0.01)
            await converse(toolset, run('write', 'a.txt', 'x'))
            await to_thread.run_sync((folder / 'go').touch)
        assert outcomes[0][0] == 'success'
        await toolset.aclose()

    async def test_gets_another_folder_in_place_of_one_that_a_script_replaced_by_a_link(
        self, skills: Path, tmp_path: Path, private_dirs: Callable[[], list[Path]]
    ):
        elsewhere = tmp_path / 'elsewhere'
        elsewhere.mkdir()
        (elsewhere / 'mine').write_text('mine')
        write_skill(
            skills / 'swapping',
            files={'swap.sh': f'cd /; rmdir "$SKILL_WORK_DIR"; ln -s {elsewhere} "$SKILL_WORK_DIR"'},
        )
        toolset = closing(SkillsToolset(directories=[skills]))
        swap: Call = ('run_skill_script', {'skill_name': 'swapping', 'script_name': 'swap.sh'})
        script = await converse(toolset, swap, read('mine'), run('write', 'new.txt', 'x'), run('show', 'mine'))
        assert [outcome for _, outcome, _ in script.results] == ['success', 'failed', 'success', 'failed']
        await toolset.aclose()
        assert [path.name for path in elsewhere.iterdir()] == ['mine']
        assert await to_thread.run_sync(private_dirs) == []


class TestPrivateFolders:
    async def test_are_gone_when_the_toolset_is_closed(self, skills: Path, private_dirs: Callable[[], list[Path]]):
        toolset = closing(SkillsToolset(directories=[skills]))
        first = await converse(toolset, run('write', 'a.txt', 'x'))
        await converse(toolset, run('write', 'a.txt', 'y'))
        modes = {path.stat().st_mode & 0o777 for path in await to_thread.run_sync(private_dirs)}
        assert modes == {0o700}
        await to_thread.run_sync(toolset.close, conversation(first))
        assert len(await to_thread.run_sync(private_dirs)) == 1
        await toolset.aclose()
        assert await to_thread.run_sync(private_dirs) == []
        await toolset.aclose('never heard of')

    def test_are_gone_when_the_toolset_is_gone(self, skills: Path, private_dirs: Callable[[], list[Path]]):
        toolset = SkillsToolset(directories=[skills])
        toolset.put_files('chat', {'a.txt': 'x'})
        assert len(private_dirs()) == 1
        del toolset
        gc.collect()
        until = time.monotonic() + 120
        while private_dirs() and time.monotonic() < until:
            time.sleep(0.01)
        assert private_dirs() == []

    def test_belong_to_the_process_that_made_them(self, skills: Path):
        toolset = SkillsToolset(directories=[skills])
        mine = toolset.work_dir_of('chat')
        assert mine is not None
        child = os.fork()
        if not child:
            wrong = True
            try:
                wrong = toolset.work_dir_of('chat') == mine
                toolset.close()
                remove_kept_folders()
            finally:
                os._exit(wrong)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert mine.is_dir()
        toolset.close()
        assert not mine.exists()

    def test_are_forgotten_after_a_fork(self, skills: Path, monkeypatch: pytest.MonkeyPatch):
        toolset = SkillsToolset(directories=[skills])
        mine = toolset.work_dir_of('chat')
        monkeypatch.setattr(os, 'getpid', lambda: 1)  # as in the child
        assert toolset.work_dir_of('chat') != mine
        assert mine is not None
        assert mine.is_dir()

    def test_need_a_conversation(self, skills: Path):
        with pytest.raises(UserError, match='belongs to no run'):
            SkillsToolset(directories=[skills]).work_dir_of(CONTEXT)

    def test_of_no_conversation_are_not_kept(self, skills: Path):
        with pytest.raises(ValueError, match='max_work_dirs must be at least 1, not 0'):
            SkillsToolset(directories=[skills], max_work_dirs=0)

    async def test_that_cannot_be_made_are_told(self, skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'missing'))
        script = await converse(SkillsToolset(directories=[skills]), run('pwd'))
        assert script.results[-1][1:] == snapshot(
            (
                'failed',
                'The work folder cannot be made: no such file or directory. For the developer: see `work_dir`, or else TMPDIR.',
            )
        )


class TestAFolderOfTheDeveloper:
    async def test_is_shared_by_all_conversations_and_stays(self, skills: Path, tmp_path: Path):
        toolset = closing(SkillsToolset(directories=[skills], work_dir=tmp_path / 'work'))
        await converse(toolset, run('write', 'a.txt', 'kept'))
        other = await converse(toolset, run('show', 'a.txt'), read('a.txt'))
        assert [content for *_, content in other.results] == ['kept', 'kept']
        assert (tmp_path / 'work/a.txt').read_text() == 'kept'
        assert (tmp_path / 'work').stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize('is_async', [False, True])
    async def test_can_depend_on_the_run(self, skills: Path, tmp_path: Path, is_async: bool):
        def folder(ctx: RunContext[str]) -> str | None:
            return str(tmp_path / ctx.deps) if ctx.deps else None

        async def folder_later(ctx: RunContext[str]) -> str | None:
            return folder(ctx)

        toolset = SkillsToolset[str](
            directories=[skills], work_dir=folder_later if is_async else folder, max_work_dirs=1
        )
        seen: list[Path | None] = []
        toolset.on(ScriptFinished)(lambda ctx, event: seen.append(toolset.work_dir_of(ctx)))
        for name in ('bert', 'anna'):
            await converse(toolset, run('write', 'a.txt', 'x'), deps=name)
        assert (tmp_path / 'anna/a.txt').exists()
        assert seen == [tmp_path / 'bert', tmp_path / 'anna']
        await converse(toolset, run('write', 'a.txt', 'x'), deps='')
        assert seen[2] is not None
        assert tmp_path not in seen[2].parents
        with pytest.raises(UserError, match='a conversation does not tell its folder'):
            toolset.work_dir_of('chat')
        await toolset.aclose()

    async def test_is_not_told_to_who_cannot_wait_for_it(self, skills: Path, tmp_path: Path, ctx: RunContext[None]):
        async def slowly(ctx: RunContext[Any]) -> Path:
            await anyio.sleep(0)
            return tmp_path / 'work'

        toolset = SkillsToolset(directories=[skills], work_dir=slowly)
        await converse(toolset, run('write', 'a.txt', 'x'))
        assert (tmp_path / 'work/a.txt').exists()
        with pytest.raises(UserError, match='has to wait'):
            toolset.work_dir_of(ctx)
        with pytest.raises(UserError, match='has to wait'):  # in a thread without an event loop
            await anyio.to_thread.run_sync(toolset.work_dir_of, ctx)

    async def test_is_not_the_folder_of_the_skill(self, skills: Path):
        toolset = SkillsToolset(directories=[skills], work_dir=skills / 'writer/out')
        script = await converse(toolset, run('pwd'))
        assert script.results[-1][1:] == snapshot(
            (
                'failed',
                "The work folder is in the folder of the skill 'writer', which scripts must not change. For the developer: choose another `work_dir`.",
            )
        )

    async def test_lists_only_what_a_script_added_or_changed(self, skills: Path, tmp_path: Path):
        write_skill(
            skills / 'changing',
            files={'change.sh': 'echo more >> edited; echo new > new; rm removed; mv old renamed; touch kept.d/x'},
        )
        work = tmp_path / 'work'
        (work / 'kept.d').mkdir(parents=True)
        for name in ('kept', 'edited', 'removed', 'old', 'kept.d/x', 'kept.d/y'):
            (work / name).write_text('x')
        results: list[ScriptResult] = []
        toolset = SkillsToolset(directories=[skills], work_dir=work)
        toolset.on(ScriptFinished)(lambda ctx, event: results.append(event.result))
        await converse(toolset, ('run_skill_script', {'skill_name': 'changing', 'script_name': 'change.sh'}))
        assert [(file.name, file.size) for file in results[0].files] == [
            ('edited', 6),
            ('kept.d/x', 1),
            ('new', 4),
            ('renamed', 1),
        ]
        assert results[0].work_dir == work


class TestTheApplication:
    async def test_puts_files_in_before_a_run_and_takes_them_out_after_it(self, skills: Path, tmp_path: Path):
        (tmp_path / 'form.txt').write_text('Name:')
        toolset = closing(SkillsToolset(directories=[skills]))
        files = {'form.txt': tmp_path / 'form.txt', 'in/a.txt': 'text', 'in/b.bin': b'\0'}
        await to_thread.run_sync(toolset.put_files, 'chat-1', files)
        model = ScriptedModel(calls=[run('show', 'form.txt'), run('write', 'filled.txt', 'Name: Anna')])
        await Agent(model.model, toolsets=[toolset]).run('Fill it in.', conversation_id='chat-1')
        assert model.results[0][-1] == 'Name:'
        assert await to_thread.run_sync(toolset.read_file, 'chat-1', 'filled.txt') == b'Name: Anna'
        folder = toolset.work_dir_of('chat-1')
        assert folder is not None
        assert (folder / 'in/b.bin').read_bytes() == b'\0'

    @pytest.mark.parametrize('name', ['../x', '/x', 'link/x', 'pipe/x', ''])
    def test_writes_nothing_elsewhere(self, skills: Path, tmp_path: Path, name: str):
        (tmp_path / 'outside').mkdir()
        with SkillsToolset(directories=[skills]) as toolset:
            folder = toolset.work_dir_of('chat')
            assert folder is not None
            (folder / 'link').symlink_to(tmp_path / 'outside')
            os.mkfifo(folder / 'pipe')
            with pytest.raises(SkillResourceLoadError, match='cannot be written|is not a path below'):
                toolset.put_files('chat', {name: 'x'})
        assert list((tmp_path / 'outside').iterdir()) == []

    def test_replaces_a_link_and_does_not_follow_it(self, skills: Path, tmp_path: Path):
        (tmp_path / 'outside').write_text('mine')
        with SkillsToolset(directories=[skills]) as toolset:
            folder = toolset.work_dir_of('chat')
            assert folder is not None
            (folder / 'form.txt').symlink_to(tmp_path / 'outside')
            with pytest.raises(SkillResourceLoadError, match="There is no file 'form.txt'"):
                toolset.read_file('chat', 'form.txt')
            toolset.put_files('chat', {'form.txt': 'new'})
            assert toolset.read_file('chat', 'form.txt') == b'new'
            (folder / 'full').mkdir()
            (folder / 'full/x').touch()
            with pytest.raises(SkillResourceLoadError, match="'full' cannot be written"):
                toolset.put_files('chat', {'full': 'x'})
            assert sorted(path.name for path in folder.iterdir()) == ['form.txt', 'full']
        assert (tmp_path / 'outside').read_text() == 'mine'


class TestAWorkspace:
    async def test_on_this_machine_is_the_work_folder(self, skills: Path, tmp_path: Path):
        (tmp_path / 'project').mkdir()
        seen: list[Path | None] = []
        toolset = SkillsToolset(directories=[skills], work_dir=tmp_path / 'not this one')
        toolset.on(ScriptFinished)(lambda ctx, event: seen.append(toolset.work_dir_of(ctx)))
        workspace = LocalWorkspaceBackend(tmp_path / 'project')
        script = await converse(toolset, run('write', 'a.txt', 'x'), read('a.txt'), workspace=workspace)
        assert script.results[-1][-1] == 'x'
        assert [path.name for path in (tmp_path / 'project').iterdir()] == ['a.txt']
        assert seen == [tmp_path / 'project']

    async def test_that_is_read_only_runs_no_scripts(self, skills: Path, tmp_path: Path):
        (tmp_path / 'project').mkdir()
        workspace = ReadOnlyWorkspace(Workspace(LocalWorkspaceBackend(tmp_path / 'project')))
        script = await converse(SkillsToolset(directories=[skills]), run('pwd'), workspace=workspace)
        assert script.results[-1][1:] == (
            'failed',
            'The workspace of this run is read-only, so scripts cannot be run in it.',
        )


def test_a_script_can_be_run_by_hand_in_a_folder(skills: Path, tmp_path: Path):
    import asyncio

    script = SkillsDirectory(skills).get_skills()['writer'].scripts[0].in_work_dir(tmp_path)
    assert asyncio.run(script.run(None)).stdout == f'{tmp_path}\n'


class Elsewhere(RecordingBackend):
    """A machine elsewhere with one file, a folder and a file that is too long to be read."""

    async def stat(self, path: str) -> FileEntry:
        size = {'/remote/a.txt': 4, '/remote/long.txt': 1 << 30, '/remote/folder': None}.get(path, -1)
        if size == -1:
            raise FileNotFoundError(path)
        return FileEntry(name=path.rpartition('/')[2], path=path, is_dir=path.endswith('folder'), size=size)

    async def read_bytes(self, path: str) -> bytes:
        return b'text'


async def test_files_in_a_workspace_elsewhere_can_be_read(skills: Path):
    model = ScriptedModel(calls=[read(name) for name in ('a.txt', 'long.txt', 'folder', 'gone.txt', '../a.txt')])
    agent = Agent(model.model, toolsets=[SkillsToolset(directories=[skills])])
    await agent.run('Go.', workspace=Elsewhere(skills))
    first, long, *others = [content for *_, content in model.results]
    assert first == 'text'
    assert long == "'long.txt' is larger than 10,485,760 bytes."
    assert all('There is no resource' in other for other in others)


async def test_without_a_conversation_there_is_no_work_folder_to_read(skills: Path):
    done, told = await call_tool(
        SkillsToolset(directories=[skills]), 'read_skill_resource', skill_name='writer', resource_name='a.txt'
    )
    assert (done, told) == (False, "There is no resource 'a.txt' in skill 'writer'. The resources are: 'guide.md'.")


async def test_a_durable_unit_without_a_workspace_has_the_folder_of_its_conversation(skills: Path, tmp_path: Path):
    class Carried:
        conversation_id = 'chat'

        @property
        def workspace(self) -> Workspace:
            raise UserError('not carried')

    toolset = SkillsToolset(directories=[skills], work_dir=tmp_path / 'work')
    assert await to_thread.run_sync(toolset.work_dir_of, cast(Any, Carried())) == tmp_path / 'work'


@pytest.mark.parametrize(
    'quick', ['echo more >> old; head -c 3000000 /dev/zero > new', 'head -c 3000000 /dev/zero >> old']
)
async def test_what_makes_a_private_folder_too_full_is_removed(skills: Path, quick: str):
    write_skill(skills / 'filling', files={'fill.sh': quick})
    executor = LocalSkillScriptExecutor(limits=ScriptLimits(work_folder=1 << 20))
    toolset = closing(SkillsToolset(directories=[skills], script_executor=executor))
    fill: Call = ('run_skill_script', {'skill_name': 'filling', 'script_name': 'fill.sh'})
    script = await converse(toolset, run('write', 'kept.txt', 'x'), fill, run('show', 'kept.txt'))
    assert 'the work folder holds more than 1 MiB' in script.results[1][-1]
    assert script.results[2][-1] == 'x'
    names = await to_thread.run_sync(lambda: os.listdir(toolset.work_dir_of(conversation(script)) or ''))
    assert names == ['kept.txt']


async def test_a_private_folder_that_hides_what_is_in_it_is_removed(skills: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr('pydantic_ai_skills.execution.disk_use.has_room', Mock(return_value=False))
    toolset = closing(SkillsToolset(directories=[skills]))
    script = await converse(toolset, run('write', 'a.txt', 'x'), run('show', 'a.txt'))
    assert [outcome for _, outcome, _ in script.results] == ['failed', 'failed']


async def test_capabilities_of_one_agent_share_the_folder(skills: Path, tmp_path: Path):
    write_skill(tmp_path / 'more/reader', files={'show.sh': 'cat "$1"'})
    first, second = SkillsCapability(directories=[skills]), SkillsCapability(directories=[tmp_path / 'more'])
    show: Call = ('run_skill_script', {'skill_name': 'reader', 'script_name': 'show.sh', 'args': ['a.txt']})
    model = ScriptedModel(calls=[run('write', 'a.txt', 'shared'), show])
    agent = Agent(model.model, capabilities=[first, second])
    result = await agent.run('Go.')
    assert model.results[-1][-1] == 'shared'
    for capability in (first, second):
        assert await to_thread.run_sync(capability.toolset.read_file, result.conversation_id, 'a.txt') == b'shared'
    await first.toolset.aclose()
    with pytest.raises(SkillResourceLoadError):
        await to_thread.run_sync(second.toolset.read_file, result.conversation_id, 'a.txt')
    await second.toolset.aclose()


async def test_a_workspace_elsewhere_runs_no_local_scripts(skills: Path):
    toolset = SkillsToolset(directories=[skills])
    model = ScriptedModel(calls=[run('pwd')])
    seen: list[Path | None] = []
    toolset.on(ScriptFinished)(lambda ctx, event: seen.append(toolset.work_dir_of(ctx)))
    await Agent(model.model, toolsets=[toolset]).run('Go.', workspace=RecordingBackend(skills.parent))
    assert model.results[-1][1:] == snapshot(
        (
            'failed',
            'The files of this run are in a workspace that is not on this machine, where the script would not find them. For the developer: run scripts in the workspace, with a WorkspaceSkillScriptExecutor.',
        )
    )
    assert seen == [None]
