"""Scripts as real processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from inline_snapshot import snapshot

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution import process as process_module
from pydantic_ai_skills.execution.interpreters import ScriptHead
from pydantic_ai_skills.execution.limits import ScriptLimits
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.result import ScriptResult, SkillScriptTimeoutError
from pydantic_ai_skills.types import SkillScript
from tests.folders import write

from .conftest import MakeScript, if_installed, write_wheel, zombies

ECHO = 'import json, sys; print(json.dumps(sys.argv[1:]))'


async def test_a_script_gets_its_arguments_and_its_output_comes_back(make_script: MakeScript) -> None:
    script = make_script('scripts/echo.py', ECHO)
    result = await LocalSkillScriptExecutor().run(script, {'_': ['in file.pdf'], 'level': 3, 'offset': '-1'})
    assert result == ScriptResult(exit_code=0, stdout=result.stdout, stderr='', duration=result.duration)
    assert 0 < result.duration < 10
    assert json.loads(result.stdout) == ['in file.pdf', '--level', '3', '--offset=-1']


async def test_a_script_can_import_what_lies_beside_it(make_script: MakeScript) -> None:
    make_script('scripts/helper.py', 'VALUE = 42')
    script = make_script('scripts/main.py', 'import helper; print(helper.VALUE)')
    result = await LocalSkillScriptExecutor().run(script)
    assert script.path is not None
    assert result.stdout == '42\n'
    # The run leaves nothing behind in the skill's folder.
    assert sorted(path.name for path in script.path.parent.iterdir()) == ['helper.py', 'main.py']


@pytest.mark.parametrize(
    ('name', 'source', 'mode'),
    [
        ('a.sh', 'echo "got $1"', 0o644),
        ('a.py', 'import sys; print("got", sys.argv[1])', 0o644),
        *if_installed('node', 'a.js', 'console.log("got " + process.argv[2])', 0o644),
        *if_installed('perl', 'a.pl', 'print "got $ARGV[0]\\n"', 0o644),
        ('tool', '#!/bin/sh\necho "got $1"', 0o755),
        ('tool', '#!/usr/bin/env bash\necho "got $1"', 0o644),
    ],
)
async def test_scripts_of_every_kind_run(make_script: MakeScript, name: str, source: str, mode: int) -> None:
    result = await LocalSkillScriptExecutor().run(make_script(name, source, mode=mode), ['it'])
    assert (result.stdout, result.stderr, result.exit_code) == ('got it\n', '', 0)


async def test_a_program_file_runs_by_itself(skill_dir: Path) -> None:
    program = skill_dir / 'tool'
    program.write_bytes(Path('/bin/echo').read_bytes())
    program.chmod(0o755)
    result = await LocalSkillScriptExecutor().run(SkillScript('tool', uri=str(program)), ['hello'])
    assert result.stdout == 'hello\n'


async def test_a_script_that_fails_is_a_result(make_script: MakeScript) -> None:
    script = make_script('a.sh', 'echo out; echo err >&2; exit 3')
    result = await LocalSkillScriptExecutor().run(script)
    assert (result.exit_code, result.stdout, result.stderr) == (3, 'out\n', 'err\n')


async def test_a_script_that_a_signal_ends_has_the_exit_code_of_a_shell(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', 'kill -TERM $$'))
    assert result.exit_code == 128 + signal.SIGTERM


async def test_standard_input_is_empty_or_the_text_that_was_sent(make_script: MakeScript) -> None:
    script = make_script('a.py', 'import sys; print(len(sys.stdin.read()))')
    executor = LocalSkillScriptExecutor(timeout=120)
    assert (await executor.run(script)).stdout == '0\n'
    assert (await executor.run(script, {'_stdin': 'x' * 1_000_000})).stdout == '1000000\n'
    assert (await executor.run(script, {'_stdin': ''})).stdout == '0\n'


async def test_a_script_that_does_not_read_its_input_ends_all_the_same(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(
        make_script('a.sh', 'exec <&-; echo done'), {'_stdin': 'x' * 1_000_000}
    )
    assert result.stdout == 'done\n'
    result = await LocalSkillScriptExecutor().run(
        make_script('b.sh', 'sleep 0.1; echo done'), {'_stdin': 'x' * 1_000_000}
    )
    assert result.stdout == 'done\n'


async def test_output_that_is_not_utf_8_is_replaced(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', r"printf 'ok\377\n'"))
    assert result.stdout == 'ok\ufffd\n'


async def test_a_flood_of_short_lines_is_taken_in_gulps(make_script: MakeScript) -> None:
    script = make_script('a.py', 'import os\nfor i in range(30_000): os.write(1, b"%099d\\n" % i)')
    result = await LocalSkillScriptExecutor().run(script)
    assert result.truncated
    assert result.stdout.startswith(f'{0:099}\n{1:099}\n')
    assert result.stdout.endswith(f'{29_999:099}\n')


async def test_short_lines_after_a_flood_are_kept(make_script: MakeScript) -> None:
    flood = 'import os, time\nos.write(1, b"x" * 2_000_000)\n'
    lines = 'for i in range(5): time.sleep(0.1); os.write(1, b"line %d\\n" % i)'
    result = await LocalSkillScriptExecutor().run(make_script('a.py', flood + lines))
    assert result.truncated
    assert result.stdout.endswith('xline 0\nline 1\nline 2\nline 3\nline 4\n')


async def test_a_script_that_closes_its_output_is_waited_for(make_script: MakeScript) -> None:
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', 'exec >&- 2>&-; sleep 0.2; exit 4'))
    assert result.exit_code == 4


async def test_time_up_kills_the_script_and_keeps_what_it_printed(make_script: MakeScript) -> None:
    script = make_script('scripts/slow.sh', 'echo started; echo why >&2; sleep 30; echo never')
    started = time.monotonic()
    with pytest.raises(SkillScriptTimeoutError) as caught:
        await LocalSkillScriptExecutor(timeout=3).run(script)
    assert time.monotonic() - started < 60
    assert str(caught.value) == snapshot("The script 'scripts/slow.sh' was stopped: it did not end within 3 s.")
    result = caught.value.result
    assert (result.exit_code, result.stdout, result.stderr, result.timed_out) == (137, 'started\n', 'why\n', True)
    assert 3 <= result.duration < 60


def survivor(folder: Path) -> str:
    """Shell code that waits for a file, for as long as it lives, and then makes another."""
    return f'(until [ -e {folder}/go ]; do sleep 0.02; done; touch {folder}/survived)'


async def survived(folder: Path) -> bool:
    """Whether a survivor still runs when it gets its file."""
    (folder / 'go').touch()
    await anyio.sleep(0.3)
    return (folder / 'survived').exists()


async def test_time_up_kills_the_children_too(make_script: MakeScript, tmp_path: Path) -> None:
    script = make_script('a.sh', f'{survivor(tmp_path)} & sleep 30')
    with pytest.raises(SkillScriptTimeoutError):
        await LocalSkillScriptExecutor(timeout=0.2).run(script)
    assert not await survived(tmp_path)


async def test_a_child_may_finish_its_line_after_the_script_has_ended(
    make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, 'DRAIN_GRACE', 60)
    result = await LocalSkillScriptExecutor().run(make_script('a.sh', '(sleep 0.1; echo late) & echo early'))
    assert result.stdout == 'early\nlate\n'


@pytest.mark.parametrize('missing', ['pidfd_open', None])
async def test_a_background_child_does_not_hold_the_call_and_does_not_survive_it(
    make_script: MakeScript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    if missing:
        monkeypatch.delattr(os, missing)
    script = make_script('a.sh', f'{survivor(tmp_path)} & echo done')
    started = time.monotonic()
    result = await LocalSkillScriptExecutor().run(script)
    assert (result.stdout, result.exit_code) == ('done\n', 0)
    assert time.monotonic() - started < 15
    assert not await survived(tmp_path)


async def test_cancelling_a_running_script_kills_it(make_script: MakeScript, tmp_path: Path) -> None:
    script = make_script('a.sh', survivor(tmp_path))
    with anyio.move_on_after(0.2) as scope:
        await LocalSkillScriptExecutor().run(script)
    assert scope.cancelled_caught
    assert not await survived(tmp_path)


async def test_cancelling_while_a_child_holds_the_output_returns_at_once(
    make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = make_script('a.sh', 'sleep 600 & echo done')
    monkeypatch.setattr(process_module, 'DRAIN_GRACE', 60)
    with anyio.move_on_after(0.3) as scope:
        await LocalSkillScriptExecutor().run(script)
    assert scope.cancelled_caught


class SlowToPrepare(LocalSkillScriptExecutor):
    """Waits until the test lets it find the interpreter."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.may_go_on = threading.Event()

    def _interpreter(self, head: ScriptHead, packages: Path | None = None) -> list[str]:
        assert self.may_go_on.wait(60)
        return super()._interpreter(head, packages)


async def test_a_run_that_is_cancelled_before_its_script_starts_does_not_start_it(
    make_script: MakeScript, tmp_path: Path, private_dirs: Callable[[], list[Path]]
) -> None:
    script = make_script('a.sh', f'touch {tmp_path}/started')
    executor = SlowToPrepare()
    with anyio.move_on_after(0.05) as scope:
        await executor.run(script)
    assert scope.cancelled_caught
    executor.may_go_on.set()
    with anyio.fail_after(60):
        while await to_thread.run_sync(private_dirs):
            await anyio.sleep(0.02)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await executor.run(script)
    await anyio.sleep(0.5)
    assert not (tmp_path / 'started').exists()


async def test_a_script_that_cannot_be_killed_does_not_hold_the_call(
    make_script: MakeScript, skill_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, 'killpg', refuse)
    started = time.monotonic()
    executor = LocalSkillScriptExecutor(timeout=3, control_group=None)
    with pytest.raises(SkillScriptTimeoutError) as caught:
        await executor.run(make_script('a.sh', 'echo $$ > "$SKILL_DIR/pid"; exec sleep 600'))
    assert time.monotonic() - started < 60
    assert caught.value.result.exit_code == 137
    os.kill(int((skill_dir / 'pid').read_text()), signal.SIGKILL)
    with anyio.fail_after(60):
        while zombies():
            await anyio.sleep(0.02)


async def test_a_script_sees_a_small_environment(make_script: MakeScript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-secret')
    monkeypatch.setenv('LC_NUMERIC', 'C')
    result = await LocalSkillScriptExecutor().run(make_script('a.py', 'import os; print(*sorted(os.environ))'))
    seen = set(result.stdout.split())
    assert {'PATH', 'LC_NUMERIC', 'PYTHONDONTWRITEBYTECODE'} <= seen
    assert 'OPENAI_API_KEY' not in seen


async def test_python_executable_is_used(make_script: MakeScript, tmp_path: Path) -> None:
    python = tmp_path / 'mypython'
    python.write_text(f'#!/bin/sh\necho mine\nexec {sys.executable} "$@"')
    python.chmod(0o755)
    executor = LocalSkillScriptExecutor(python_executable=python)
    assert (await executor.run(make_script('a.py', 'print(1)'))).stdout == 'mine\n1\n'


async def test_relative_paths_are_those_of_the_application(
    make_script: MakeScript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'mypython').symlink_to(sys.executable)
    make_script('scripts/a.py', 'import os; print(os.environ["SKILL_DIR"])')
    for folder, seen in ((None, tmp_path / 'skill/scripts'), (Path('skill'), tmp_path / 'skill')):
        script = SkillScript('a.py', uri='skill/scripts/a.py', skill_dir=folder)
        executor = await to_thread.run_sync(lambda: LocalSkillScriptExecutor(python_executable='./mypython'))
        assert executor.python_executable == str(tmp_path / 'mypython')
        result = await executor.run(script)
        assert (result.stdout, result.stderr) == (f'{seen}\n', '')
    monkeypatch.setenv('PATH', f'tools{os.pathsep}{os.environ["PATH"]}')
    (tmp_path / 'tools').mkdir()
    (tmp_path / 'tools' / 'bash').symlink_to('/bin/sh')
    script = make_script('b.sh', 'echo here')
    assert (await LocalSkillScriptExecutor().run(script)).stdout == 'here\n'
    command = await to_thread.run_sync(LocalSkillScriptExecutor().command_line, script)
    assert command[0] == str(tmp_path / 'tools/bash')


async def test_inline_dependencies_are_provided_by_uv(
    make_script: MakeScript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(tmp_path)
    head = f'# /// script\n# dependencies = ["tinyhelper @ {wheel.as_uri()}"]\n# ///\n'
    script = make_script('a.py', head + 'import sys, tinyhelper; print(tinyhelper.VALUE, sys.argv[1:])')
    monkeypatch.setenv('HOME', str(tmp_path))
    executor = LocalSkillScriptExecutor(env={'UV_OFFLINE': '1'}, python_executable=sys.executable)
    result = await executor.run(script, {'n': 1})
    assert (result.stdout, result.stderr) == ("42 ['-n', '1']\n", '')


@pytest.mark.parametrize('first', ['', '#!/usr/bin/env -S uv run --script\n'])
@pytest.mark.parametrize(
    ('package', 'told'), [('rich', 'rich\n'), ('absent_module', "No module named 'absent_module'")]
)
async def test_what_uv_cannot_provide_may_be_installed(
    make_script: MakeScript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    first: str,
    package: str,
    told: str,
) -> None:
    declared = f'{first}# /// script\n# dependencies = ["{package}>=9999"]\n# ///\n'
    monkeypatch.setenv('HOME', str(tmp_path))
    executor = LocalSkillScriptExecutor(env={'UV_OFFLINE': '1'})
    result = await executor.run(make_script('a.py', f'{declared}import {package}\nprint({package}.__name__)\n'))
    assert told in f'{result.stdout}{result.stderr}'
    assert "uv cannot provide the packages of 'a.py', so Python runs it:\nerror: No solution found" in caplog.text


async def test_what_uv_cannot_provide_runs_as_the_module_it_is(
    make_script: MakeScript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_script('scripts/value.py', 'VALUE = 42')
    source = '# /// script\n# dependencies = ["rich>=9999"]\n# ///\nfrom .value import VALUE\nprint(VALUE)\n'
    script = make_script('scripts/a.py', source)
    monkeypatch.setenv('HOME', str(tmp_path))
    result = await LocalSkillScriptExecutor(env={'UV_OFFLINE': '1'}).run(script)
    assert (result.stdout, result.stderr) == ('42\n', '')


async def test_a_run_that_is_cancelled_while_uv_works_does_not_start_its_script(
    make_script: MakeScript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    uv = write(tmp_path / 'bin', {'uv': f'#!/bin/sh\ntouch {tmp_path}/working\nexec sleep 600\n'}) / 'uv'
    uv.chmod(0o755)
    monkeypatch.setenv('PATH', f'{uv.parent}{os.pathsep}{os.environ["PATH"]}')
    script = make_script('a.py', f'# /// script\n# dependencies = ["rich"]\n# ///\nopen("{tmp_path}/started", "w")')
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(LocalSkillScriptExecutor(timeout=600).run, script)
            while not await to_thread.run_sync((tmp_path / 'working').exists):
                await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()
    assert not (tmp_path / 'started').exists()
    assert 'uv cannot provide' not in caplog.text


async def test_a_function_is_not_a_file(make_script: MakeScript) -> None:
    script = SkillScript('greet', function=print)
    with pytest.raises(SkillScriptExecutionError, match="The script 'greet' is not a file on this machine"):
        await LocalSkillScriptExecutor().run(script)
    with pytest.raises(SkillScriptExecutionError, match="The script 'greet' is not a file on this machine"):
        LocalSkillScriptExecutor().command_line(script)


async def test_a_file_that_is_no_program_cannot_be_started(make_script: MakeScript) -> None:
    script = make_script('tool', 'binary\0nonsense', mode=0o755)
    with pytest.raises(SkillScriptExecutionError, match="There is no way to run 'tool'"):
        await LocalSkillScriptExecutor().run(script)
    broken = await LocalSkillScriptExecutor().run(make_script('broken', '\x7fELF nonsense', mode=0o755))
    assert broken.exit_code in (126, 127)


async def test_a_platform_without_process_groups_is_named(
    make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, 'killpg')
    with pytest.raises(SkillScriptExecutionError, match='has no process groups. Use WorkspaceSkillScriptExecutor'):
        await LocalSkillScriptExecutor().run(make_script('a.py', ''))


async def test_what_the_operating_system_cannot_take_is_an_execution_error(
    make_script: MakeScript, private_dirs: Callable[[], list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module.subprocess, 'Popen', _raise_value_error)
    with pytest.raises(SkillScriptExecutionError, match=r"'a\.py' could not be started: embedded null byte\."):
        await LocalSkillScriptExecutor().run(make_script('a.py', ''))
    assert private_dirs() == []


async def test_a_system_without_a_shell_is_told(make_script: MakeScript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, 'SHELL', '/no/sh')
    with pytest.raises(SkillScriptExecutionError, match=r"'a\.py' could not be started: No such file or directory\."):
        await LocalSkillScriptExecutor().run(make_script('a.py', ''))


def _raise_value_error(*_: Any, **__: Any) -> None:
    raise ValueError('embedded null byte')


def test_the_timeout_is_30_seconds_unless_set() -> None:
    assert LocalSkillScriptExecutor().timeout == 30
    assert LocalSkillScriptExecutor(timeout=5).timeout == 5
    assert LocalSkillScriptExecutor(limits=ScriptLimits(wall_time=7)).timeout == 7


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'timeout': 0}, 'wall_time must be a positive number, not 0'),
        ({'timeout': float('inf')}, 'wall_time must be a positive number, not inf'),
        ({'timeout': float('nan')}, 'wall_time must be a positive number, not nan'),
        ({'pass_env': 'HOME'}, r"Give names of variables as a list: \['HOME'\]"),
        ({'skill_env': {'weather': 'KEY'}}, r"Give names of variables as a list: \['KEY'\]"),
        ({'env': {'A=B': 'x'}}, "'A=B' cannot be the name of an environment variable"),
        ({'pass_env': ['']}, "'' cannot be the name of an environment variable"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalSkillScriptExecutor(**options)
