"""A work folder as a workspace: pydantic-ai's own rules for back ends, and that nothing leads out of the folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_ai.workspaces import (
    Workspace,
    WorkspaceBackend,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceUnavailableError,
)
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from pydantic_ai_skills import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor, ScriptLimits
from pydantic_ai_skills.execution.work_backend import WorkDirBackend
from pydantic_ai_skills.execution.work_dir import WorkDir


def backend_in(folder: Path, **options: Any) -> WorkDirBackend:
    folder.mkdir(exist_ok=True)
    return WorkDirBackend(WorkDir(path=folder), LocalSkillScriptExecutor(**options))


class TestLocal(WorkspaceBackendSuite):
    # A work folder is there from the start, and nobody attaches to one by a reference, so these rules do not apply.
    test_concurrent_first_use_shares_one_environment: Any = None
    test_a_backend_attached_by_ref_reaches_the_same_environment: Any = None
    test_destroying_environment_during_command_raises_unavailable: Any = None
    test_attaching_to_a_destroyed_environment_raises_unavailable: Any = None
    test_permission_denied_uses_builtin_error: Any = None  # root is denied nothing

    @pytest.fixture
    def backend(self, tmp_path: Path) -> WorkspaceBackend:
        return backend_in(tmp_path / 'work')

    async def test_background_child_does_not_hold_up_completed_command(
        self, backend: WorkspaceBackend, has_real_posix_shell: bool, can_detect_exit_with_inherited_output_pipes: bool
    ) -> None:
        """Nor does it go on: what a command leaves running is stopped with it, unlike in other workspaces."""
        workspace = Workspace(backend)
        done = await workspace.run('(while [ ! -f go ]; do sleep 0.02; done; touch gone-on) & printf done', shell=True)
        assert (done.exit_code, done.stdout) == (0, 'done')
        await workspace.write_bytes('go', b'')
        await anyio.sleep(0.1)
        assert not await workspace.exists('gone-on')


@pytest.mark.skipif(os.name != 'posix', reason='bubblewrap is for Linux')
class TestSandbox(TestLocal):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> WorkspaceBackend:
        (tmp_path / 'work').mkdir()
        return WorkDirBackend(WorkDir(path=tmp_path / 'work'), BubblewrapSkillScriptExecutor())

    @pytest.fixture
    def filesystem_honors_shell_permissions(self) -> bool:
        return False  # inside, the user has another number

    async def test_cancellation_stops_foreground_work(self, backend: Any, has_real_posix_shell: bool) -> None:
        """Each command has process numbers of its own, so a heartbeat shows that the command was stopped."""
        workspace = Workspace(backend)
        async with anyio.create_task_group() as group:
            beat = 'while true; do date +%s%N > beat; sleep 0.01; done'
            group.start_soon(lambda: workspace.run(beat, shell=True))
            with anyio.fail_after(120):
                while not await workspace.exists('beat'):
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        last = await workspace.read_bytes('beat')
        await anyio.sleep(0.1)
        assert await workspace.read_bytes('beat') == last


LEADS_OUT = ('../outside/secret', 'link', 'folder/secret', 'chain/secret')
Work = Callable[[Workspace, str], Any]
OPERATIONS: dict[str, Work] = {
    'read': lambda workspace, path: workspace.read_bytes(path),
    'write': lambda workspace, path: workspace.write_bytes(path, b'changed'),
    'stat': lambda workspace, path: workspace.stat(path),
    'list': lambda workspace, path: workspace.list_dir(path),
    'make': lambda workspace, path: workspace.make_dir(f'{path}/new'),
}


@pytest.mark.parametrize('operation', OPERATIONS)
@pytest.mark.parametrize('path', LEADS_OUT)
async def test_no_path_leads_out_of_the_folder(tmp_path: Path, path: str, operation: str):
    outside, work = tmp_path / 'outside', tmp_path / 'work'
    outside.mkdir()
    (outside / 'secret').write_text('secret')
    workspace = Workspace(backend_in(work))
    (work / 'link').symlink_to(outside / 'secret')
    (work / 'folder').symlink_to(outside)
    (work / 'chain').symlink_to('folder')
    with pytest.raises(PermissionError, match='not in the work folder'):
        await OPERATIONS[operation](workspace, path)
    assert not await workspace.exists(path)
    assert [entry.is_dir for entry in await workspace.list_dir('.')] == [False] * 3
    assert (outside / 'secret').read_text() == 'secret'
    assert os.listdir(outside) == ['secret']


async def test_a_link_is_removed_itself_and_nothing_outside_can_be(tmp_path: Path):
    workspace = Workspace(backend_in(tmp_path / 'work'))
    (tmp_path / 'secret').write_text('secret')
    (tmp_path / 'work/link').symlink_to(tmp_path / 'secret')
    with pytest.raises(ValueError, match='inside the work folder'):
        await workspace.remove('../secret')
    await workspace.remove('link')
    assert sorted(os.listdir(tmp_path)) == ['secret', 'work']
    assert os.listdir(tmp_path / 'work') == []


async def test_a_file_keeps_its_mode_and_no_half_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    workspace = Workspace(backend_in(tmp_path / 'work'))
    await workspace.write_text('run.sh', 'echo 1')
    (tmp_path / 'work/run.sh').chmod(0o755)
    await workspace.write_text('run.sh', 'echo 2')
    assert (tmp_path / 'work/run.sh').stat().st_mode & 0o777 == 0o755
    assert (await workspace.run(['./run.sh'])).exit_code in (0, 126)

    def fails(*_: Any, **__: Any) -> None:
        raise OSError(28, 'No space left')

    monkeypatch.setattr(os, 'replace', fails)
    with pytest.raises(OSError, match='No space left'):
        await workspace.write_text('run.sh', 'echo 3')
    assert os.listdir(tmp_path / 'work') == ['run.sh']


async def test_what_is_not_a_plain_file_is_neither_read_nor_replaced(tmp_path: Path):
    workspace = Workspace(backend_in(tmp_path / 'work'))
    os.mkfifo(tmp_path / 'work/pipe')
    with pytest.raises(OSError, match='not a regular file'):
        await workspace.read_bytes('pipe')
    with pytest.raises(PermissionError):
        await workspace.write_bytes('pipe', b'')
    (tmp_path / 'work/link').symlink_to('.')
    assert {entry.name: entry.is_dir for entry in await workspace.list_dir('.')} == {'link': True, 'pipe': False}


async def test_limits_of_the_executor_are_errors_of_the_workspace(tmp_path: Path):
    chatty = Workspace(backend_in(tmp_path / 'work', limits=ScriptLimits(output=1_000)))
    with pytest.raises(WorkspaceOutputLimitError):
        await chatty.run('seq 10000', shell=True)
    full = Workspace(backend_in(tmp_path / 'work', limits=ScriptLimits(work_folder=1_000)))
    with pytest.raises(WorkspaceError, match='stopped'):
        await full.run('head -c 100000 /dev/zero > x; sleep 20', shell=True)
    gone = backend_in(tmp_path / 'gone')
    (tmp_path / 'gone').rmdir()
    with pytest.raises(WorkspaceUnavailableError):
        await gone.working_dir()
    with pytest.raises(WorkspaceUnavailableError):
        await gone.run('true', shell=True)
