"""Scripts in the workspace of a run: a real local one, and one that writes down what it is asked to do."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from anyio import to_thread
from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    LocalWorkspaceBackend,
    ReadOnlyWorkspace,
    UnavailableWorkspace,
    Workspace,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.base import SkillScriptExecutor
from pydantic_ai_skills.execution.packages import find_uv
from pydantic_ai_skills.execution.result import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
from pydantic_ai_skills.execution.workspace import WorkspaceSkillScriptExecutor
from pydantic_ai_skills.types import SkillScript
from tests.folders import write

from .conftest import MakeScript, write_wheel


class RecordingBackend:
    """A remote machine that is a folder here. It writes down each call."""

    def __init__(self, root: Path, *, has_ref: bool = True) -> None:
        self.root = root
        self.calls: list[str] = []
        self.answer: CommandResult | Exception | None = None
        self._has_ref = has_ref

    @property
    def ref(self) -> WorkspaceRef | None:
        return WorkspaceRef(provider='recording', id=str(self.root)) if self._has_ref else None

    async def working_dir(self) -> str:
        return '/remote'

    def _here(self, path: str) -> Path:
        return self.root / path.removeprefix('/')

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        self.calls.append(f'run {command if isinstance(command, str) else " ".join(command)} (timeout {timeout})')
        self.env = env
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or CommandResult(exit_code=0, stdout='ran\n', stderr='')

    async def exists(self, path: str) -> bool:
        self.calls.append(f'exists {path}')
        return await to_thread.run_sync(self._here(path).exists)

    async def write_bytes(self, path: str, data: bytes) -> None:
        self.calls.append(f'write {path}')

        def write() -> None:
            self._here(path).parent.mkdir(parents=True, exist_ok=True)
            self._here(path).write_bytes(data)

        await to_thread.run_sync(write)

    async def read_bytes(self, path: str) -> bytes:
        raise NotImplementedError

    async def stat(self, path: str) -> FileEntry:
        raise NotImplementedError

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        raise NotImplementedError

    async def make_dir(self, path: str) -> None:
        raise NotImplementedError

    async def remove(self, path: str) -> None:
        raise NotImplementedError


def context(backend: Any) -> Any:
    return SimpleNamespace(workspace=backend if isinstance(backend, Workspace) else Workspace(backend))


@pytest.fixture
def remote(tmp_path: Path) -> RecordingBackend:
    return RecordingBackend(tmp_path / 'remote')


@pytest.fixture
def local(tmp_path: Path) -> Any:
    (tmp_path / 'workspace').mkdir()
    return context(LocalWorkspaceBackend(tmp_path / 'workspace'))


@pytest.mark.parametrize(
    ('name', 'source'),
    [
        ('scripts/a.py', 'import os, sys; print(sys.argv[1:], os.getcwd())'),
        ('scripts/a.sh', 'echo "[\'$1\']" $PWD'),
        ('scripts/tool', '#!/bin/sh\necho "[\'$1\']" $PWD'),
        ('scripts/none', '#!/not/there/sh\necho "[\'$1\']" $PWD'),
    ],
)
async def test_a_script_runs_in_the_workspace_with_its_skill_beside_it(
    make_script: MakeScript, local: Any, tmp_path: Path, name: str, source: str
) -> None:
    script = make_script(name, source, mode=0o755)
    make_script('assets/x.txt', 'x')
    result = await WorkspaceSkillScriptExecutor().run(script, {'_': 'it'}, local)
    folder = (tmp_path / 'workspace').resolve()
    assert result == ScriptResult(exit_code=0, stdout=result.stdout, stderr='', duration=result.duration)
    assert str(folder) in result.stdout
    assert 'it' in result.stdout
    (copy,) = (folder / '.skills').iterdir()
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob('*') if path.is_file()) == sorted(
        ['.complete', 'assets/x.txt', name]
    )


async def test_words_reach_the_script_as_they_are(make_script: MakeScript, local: Any) -> None:
    script = make_script('my scripts/a.py', 'import sys; print(sys.argv[1:])')
    argv = ["it's", '$(id)', '`id`', '; rm -rf /', 'a\nb', '', '*']
    result = await WorkspaceSkillScriptExecutor().run(script, argv, local)
    assert result.stdout == f'{argv}\n'


async def test_text_for_standard_input_and_variables_reach_the_script(
    make_script: MakeScript, local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('API_TOKEN', 'token-value')
    script = make_script('a.sh', 'cat; echo $MODE $API_TOKEN; cat "$SKILL_DIR/a.txt"; exit 3')
    make_script('a.txt', 'asset')
    executor = WorkspaceSkillScriptExecutor(env={'MODE': 'fast'}, pass_env=['API_TOKEN'])
    result = await executor.run(script, {'_stdin': 'text '}, local)
    assert (result.exit_code, result.stdout) == (3, 'text fast [secret]\nasset')
    assert [path.name for path in (tmp_path / 'workspace' / '.skills').iterdir() if 'stdin' in path.name] == []


async def test_a_script_can_start_beside_its_copy(make_script: MakeScript, local: Any) -> None:
    make_script('scripts/data.txt', 'beside')
    script = make_script('scripts/a.sh', 'cat data.txt')
    assert (await WorkspaceSkillScriptExecutor(cwd='script').run(script, None, local)).stdout == 'beside'


async def test_a_skill_is_copied_once_for_each_version(make_script: MakeScript, remote: RecordingBackend) -> None:
    script = make_script('a.sh', 'echo 1')
    tool = make_script('tool', '#!/bin/sh\n', mode=0o755)
    executor = WorkspaceSkillScriptExecutor(timeout=7, staging_dir='cache')
    assert (await executor.run(script, ['x y'], context(remote))).stdout == 'ran\n'
    folder = remote.calls[0].removeprefix('exists ').removesuffix('/.complete')
    assert folder.startswith('/remote/cache/skill-')
    choice = f"exec bash {folder}/a.sh 'x y'; command -v sh >/dev/null 2>&1 && exec sh {folder}/a.sh 'x y'"
    otherwise = "{ echo 'pydantic-ai-skills: no interpreter' >&2; exit 127; }"
    whole = (
        f'export SKILL_WORK_DIR="$PWD"; '
        f"[ -e {folder}/.complete ] && [ -e {folder}/a.sh ] || {{ echo 'pydantic-ai-skills: no copy' >&2; exit 127; }}"
    )
    assert remote.calls == [
        f'exists {folder}/.complete',
        f'write {folder}/a.sh',
        f'write {folder}/tool',
        f'run chmod +x {folder}/tool (timeout None)',
        f'write {folder}/.complete',
        f'run {whole}; {{ command -v bash >/dev/null 2>&1 && {choice}; {otherwise}; }} (timeout 7)',
    ]
    named = dict.fromkeys(('SKILL_DIR', 'CLAUDE_SKILL_DIR', 'PYTHONPATH'), folder)
    assert remote.env == {'PYTHONDONTWRITEBYTECODE': '1', **named}
    remote.calls.clear()
    await executor.run(tool, None, context(remote))
    assert remote.calls[0].startswith('run ')
    # Another executor does not know of the copy, and asks.
    remote.calls.clear()
    await WorkspaceSkillScriptExecutor(staging_dir='cache').run(script, None, context(remote))
    assert [call.split()[0] for call in remote.calls] == ['exists', 'run']
    assert script.path is not None
    script.path.write_text('echo 2')
    remote.calls.clear()
    await executor.run(script, None, context(remote))
    assert [call.split()[0] for call in remote.calls] == ['exists', 'write', 'write', 'run', 'write', 'run']


async def _run_together(executor: WorkspaceSkillScriptExecutor, script: SkillScript, ctx: Any) -> list[str]:
    printed: list[str] = []

    async def run() -> None:
        printed.append((await executor.run(script, None, ctx)).stdout)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(run)
    return printed


@pytest.mark.parametrize('has_ref', [True, False])
async def test_a_skill_is_copied_once_when_its_scripts_start_together(
    make_script: MakeScript, tmp_path: Path, has_ref: bool
) -> None:
    remote = RecordingBackend(tmp_path / 'remote', has_ref=has_ref)
    executor = WorkspaceSkillScriptExecutor()
    assert await _run_together(executor, make_script('a.sh', 'echo 1'), context(remote)) == ['ran\n'] * 3
    # To write a file anew would empty it for a moment, under the hands of a script that runs already.
    assert sorted(call.rpartition('/')[2] for call in remote.calls if call.startswith('write')) == ['.complete', 'a.sh']


async def test_a_copy_that_was_deleted_is_made_again_once_for_all(
    make_script: MakeScript, local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = WorkspaceSkillScriptExecutor()
    script = make_script('a.py', 'print("whole")')
    await executor.run(script, None, local)
    await to_thread.run_sync(shutil.rmtree, tmp_path / 'workspace' / '.skills')
    written: list[str] = []
    done: list[Any] = []
    run, write = LocalWorkspaceBackend.run, LocalWorkspaceBackend.write_bytes

    async def counted(*args: Any, **options: Any) -> Any:
        done.append(await run(*args, **options))
        return done[-1]

    async def when_all_have_looked(self: LocalWorkspaceBackend, path: str, data: bytes) -> None:
        while len(done) < 3:
            await anyio.sleep(0.01)
        await anyio.sleep(0.1)
        written.append(Path(path).name)
        await write(self, path, data)

    monkeypatch.setattr(LocalWorkspaceBackend, 'run', counted)
    monkeypatch.setattr(LocalWorkspaceBackend, 'write_bytes', when_all_have_looked)
    assert await _run_together(executor, script, local) == ['whole\n'] * 3
    assert written == ['a.py', '.complete']


@pytest.mark.parametrize('gone', ['', '.complete', 'scripts/a.py'])
async def test_a_copy_that_was_deleted_is_made_again(
    make_script: MakeScript, local: Any, tmp_path: Path, gone: str
) -> None:
    executor = WorkspaceSkillScriptExecutor()
    script = make_script('scripts/a.py', 'import sys; print(sys.stdin.read())')
    await executor.run(script, {'_stdin': 'first'}, local)
    (copy,) = (tmp_path / 'workspace' / '.skills').iterdir()
    if gone:
        (copy / gone).unlink()
    else:
        shutil.rmtree(copy)
    assert (await executor.run(script, {'_stdin': 'again'}, local)).stdout == 'again\n'
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


async def test_a_copy_that_does_not_last_is_told(make_script: MakeScript, remote: RecordingBackend) -> None:
    remote.answer = CommandResult(exit_code=127, stdout='', stderr='pydantic-ai-skills: no copy\n')
    with pytest.raises(SkillScriptExecutionError, match='does not keep the copy of the skill'):
        await WorkspaceSkillScriptExecutor().run(make_script('a.sh', ''), None, context(remote))
    assert [call.split()[0] for call in remote.calls] == ['exists', 'write', 'write', 'run', 'write', 'write', 'run']


async def test_a_workspace_without_an_identity_is_asked_each_time(make_script: MakeScript, tmp_path: Path) -> None:
    backend = RecordingBackend(tmp_path / 'remote', has_ref=False)
    executor = WorkspaceSkillScriptExecutor()
    script = make_script('a.sh', '')
    for _ in range(2):
        await executor.run(script, None, context(backend))
    assert [call.split()[0] for call in backend.calls] == ['exists', 'write', 'write', 'run', 'exists', 'run']


async def test_what_is_remembered_is_bounded(make_script: MakeScript, remote: RecordingBackend) -> None:
    executor = WorkspaceSkillScriptExecutor(max_remembered=1)
    script, other = make_script('a.sh', ''), SkillScript('b.sh', uri=str(make_script('b.sh', '').path))
    for run in (script, other, script):
        await executor.run(run, None, context(remote))
    assert sum(call.startswith('exists') for call in remote.calls) == 3


async def test_a_script_without_a_skill_is_copied_alone(make_script: MakeScript, remote: RecordingBackend) -> None:
    make_script('other.txt', '')
    script = make_script('a.sh', '')
    script.skill_dir, script.skill_name = None, 'Mein Skill: é'
    await WorkspaceSkillScriptExecutor().run(script, None, context(remote))
    assert [call.rpartition('/')[2] for call in remote.calls if call.startswith('write')] == ['a.sh', '.complete']
    assert '/remote/.skills/Mein-Skill-' in remote.calls[0]


async def test_an_executable_file_is_run_as_it_is(make_script: MakeScript, remote: RecordingBackend) -> None:
    await WorkspaceSkillScriptExecutor().run(make_script('tool', '\x7fELF', mode=0o755), None, context(remote))
    assert '; exec /remote/.skills/skill-' in remote.calls[-1]


@pytest.mark.parametrize(
    ('answer', 'error', 'message'),
    [
        (
            WorkspaceTimeoutError('slow', stdout='so far', stderr='e'),
            SkillScriptTimeoutError,
            "The script 'a.sh' was stopped: it did not end within 30 s.",
        ),
        (
            WorkspaceOutputLimitError('much', limit=100, stdout='so far', stderr='e'),
            SkillScriptStoppedError,
            "The script 'a.sh' was stopped: it printed more than 100 bytes.",
        ),
    ],
)
async def test_a_script_that_was_stopped_leaves_what_it_printed(
    make_script: MakeScript,
    remote: RecordingBackend,
    answer: Exception,
    error: type[SkillScriptStoppedError],
    message: str,
) -> None:
    remote.answer = answer
    with pytest.raises(error) as caught:
        await WorkspaceSkillScriptExecutor().run(make_script('a.sh', ''), None, context(remote))
    assert str(caught.value) == message
    assert (caught.value.result.stdout, caught.value.result.stderr) == ('so far', 'e')
    assert caught.value.result.timed_out is isinstance(caught.value, SkillScriptTimeoutError)


async def test_long_output_is_cut_as_everywhere(make_script: MakeScript, remote: RecordingBackend) -> None:
    remote.answer = CommandResult(exit_code=0, stdout='x' * 1_000_000, stderr='')
    result = await WorkspaceSkillScriptExecutor(max_output=1000).run(make_script('a.sh', ''), None, context(remote))
    assert result.truncated
    assert len(result.stdout.encode()) <= 1000


@pytest.mark.parametrize(
    ('answer', 'message'),
    [
        (WorkspaceUnavailableError('it expired'), 'The workspace is not available: it expired'),
        (
            CommandResult(exit_code=127, stdout='', stderr='pydantic-ai-skills: no interpreter\n'),
            "'a.sh' needs 'bash' or 'sh', which the workspace does not have. For the developer: install it there.",
        ),
        (WorkspaceError('not in this folder'), 'The workspace refused to run a script: not in this folder'),
        (ConnectionResetError('gone'), 'The workspace refused to run a script: gone'),
    ],
)
async def test_a_workspace_that_cannot_run_the_script_is_told(
    make_script: MakeScript, remote: RecordingBackend, answer: Any, message: str
) -> None:
    remote.answer = answer
    with pytest.raises(SkillScriptExecutionError) as caught:
        await WorkspaceSkillScriptExecutor().run(make_script('a.sh', ''), None, context(remote))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ('source', 'needed'),
    [
        ('#!/usr/bin/env no-such-program\n', "'a.py' needs 'no-such-program'"),
        ('# /// script\n# dependencies = ["rich"]\n# ///\n', "'a.py' depends on rich and needs 'uv' to provide it"),
    ],
)
async def test_a_missing_interpreter_is_found_out_for_real_and_named(
    make_script: MakeScript, local: Any, source: str, needed: str
) -> None:
    executor = WorkspaceSkillScriptExecutor(env={'PATH': '/nowhere'})
    with pytest.raises(SkillScriptExecutionError, match=f'{needed}, which the workspace does not have'):
        await executor.run(make_script('a.py', source), None, local)


@pytest.fixture
def uv() -> str:
    found = find_uv()
    assert found is not None
    return found


@pytest.mark.parametrize('first', ['', '#!/usr/bin/env -S uv run --script\n'])
@pytest.mark.parametrize('has_uv', [True, False])
async def test_what_uv_cannot_provide_may_be_installed_in_the_workspace(
    make_script: MakeScript, local: Any, tmp_path: Path, uv: str, first: str, has_uv: bool
) -> None:
    programs = write(tmp_path / 'bin', {'python3': f'#!/bin/sh\nexec {sys.executable} "$@"\n'})
    (programs / 'python3').chmod(0o755)
    if has_uv:
        (programs / 'uv').symlink_to(uv)
    executor = WorkspaceSkillScriptExecutor(env={'PATH': f'{programs}:/usr/bin:/bin', 'UV_OFFLINE': '1'})
    script = make_script(
        'a.py', f'{first}# /// script\n# dependencies = ["rich>=9999"]\n# ///\nimport rich; print("ran")\n'
    )
    result = await executor.run(script, None, local)
    assert (result.stdout, result.stderr) == ('ran\n', '')


async def test_dependencies_are_provided_in_the_workspace(
    make_script: MakeScript, local: Any, skill_dir: Path, uv: str
) -> None:
    head = f'# /// script\n# dependencies = ["tinyhelper @ {write_wheel(skill_dir).as_uri()}"]\n# ///\n'
    script = make_script('a.py', head + 'import sys, tinyhelper; print(tinyhelper.VALUE, sys.stdin.read())')
    search_path = f'{os.path.dirname(uv)}:{Path(sys.executable).parent}:/usr/bin:/bin'
    executor = WorkspaceSkillScriptExecutor(env={'PATH': search_path, 'UV_OFFLINE': '1', 'HOME': str(skill_dir.parent)})
    result = await executor.run(script, {'_stdin': 'text'}, local)
    assert (result.stdout, result.stderr) == ('42 text\n', '')


@pytest.mark.parametrize('first_line', ['#!/usr/bin/env python3.99', '#!/usr/bin/python3.99', ''])
async def test_any_python_of_the_workspace_will_do(make_script: MakeScript, local: Any, first_line: str) -> None:
    script = make_script('a.py', f'{first_line}\nprint("ran")')
    assert (await WorkspaceSkillScriptExecutor().run(script, None, local)).stdout == 'ran\n'


async def test_a_file_in_the_place_of_the_copies_is_told(make_script: MakeScript, local: Any, tmp_path: Path) -> None:
    (tmp_path / 'workspace' / '.skills').touch()
    with pytest.raises(SkillScriptExecutionError, match='The workspace refused to run a script: .*Not a directory'):
        await WorkspaceSkillScriptExecutor().run(make_script('a.sh', ''), None, local)


@pytest.mark.parametrize('ctx', [None, SimpleNamespace(), context(UnavailableWorkspace('none'))])
async def test_a_run_without_a_workspace_runs_nothing(make_script: MakeScript, ctx: Any) -> None:
    with pytest.raises(
        SkillScriptExecutionError, match='no workspace to run scripts in. For the developer: pass `work'
    ):
        await WorkspaceSkillScriptExecutor().run(make_script('a.sh', ''), None, ctx)


async def test_a_read_only_workspace_runs_nothing(make_script: MakeScript, local: Any) -> None:
    ctx = context(ReadOnlyWorkspace(local.workspace))
    with pytest.raises(SkillScriptExecutionError, match='The workspace of this run is read-only'):
        await WorkspaceSkillScriptExecutor().run(make_script('a.sh', ''), None, ctx)


async def test_what_is_not_a_file_of_the_skill_is_refused(make_script: MakeScript, local: Any, skill_dir: Path) -> None:
    executor = WorkspaceSkillScriptExecutor()
    with pytest.raises(SkillScriptExecutionError, match="'greet' is not a file on this machine"):
        await executor.run(SkillScript('greet', function=print), None, local)
    os.symlink('/bin/ls', skill_dir / 'link.sh')
    link = SkillScript('link.sh', uri=str(skill_dir / 'link.sh'), skill_dir=skill_dir)
    with pytest.raises(SkillScriptExecutionError, match="'link.sh' cannot be read: it is a link"):
        await executor.run(link, None, local)
    gone = SkillScript('gone.sh', uri=str(skill_dir / 'gone.sh'), skill_dir=skill_dir)
    with pytest.raises(SkillScriptExecutionError, match="'gone.sh' is not a regular file of its skill"):
        await executor.run(gone, None, local)


def test_it_is_an_executor_with_limits() -> None:
    executor = WorkspaceSkillScriptExecutor(timeout=5)
    assert isinstance(executor, SkillScriptExecutor)
    assert executor.limits.wall_time == 5
    with pytest.raises(ValueError, match='wall_time must be a positive number'):
        WorkspaceSkillScriptExecutor(timeout=0)
