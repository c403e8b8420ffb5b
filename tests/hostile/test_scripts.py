"""Scripts that strangers wrote: HOSTILE cases 15 and 17 to 21, each without and in the sandbox."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.bubblewrap.executor import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor, SubprocessSkillScriptExecutor
from pydantic_ai_skills.execution.result import SkillScriptTimeoutError
from tests.execution.conftest import write_script, zombies

from .conftest import CPU_TIME, Scoreboard, Stopwatch, processes_with, wait_until


@pytest.fixture(params=['local', 'sandbox'])
def where(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make(where: str) -> Callable[..., Awaitable[SubprocessSkillScriptExecutor]]:
    """Builds an executor in a thread: a sandbox is tried out when it is built."""
    kind = LocalSkillScriptExecutor if where == 'local' else BubblewrapSkillScriptExecutor

    async def build(**options: Any) -> SubprocessSkillScriptExecutor:
        return await to_thread.run_sync(partial(kind, **options))

    return build


Make = Callable[..., Awaitable[SubprocessSkillScriptExecutor]]


@pytest.mark.parametrize(
    ('what', 'source'),
    [
        ('child in the group', 'sleep 60 & echo done'),
        ('child in a session of its own', 'setsid sleep 60 & echo done'),
        ('child that writes for ever', 'yes & echo done'),
        ('script waits for it', 'sleep 60 & echo done; wait'),
        ('script waits for one in its own session', 'setsid sleep 60 & echo done; wait'),
    ],
)
async def test_15_a_pipe_held_by_a_background_child_does_not_hold_the_call(
    tmp_path: Path, scoreboard: Scoreboard, make: Make, where: str, what: str, source: str
) -> None:
    timeout = 1.0
    script = write_script(tmp_path, 'a.sh', f'trap "" HUP; {source}')
    executor = await make(timeout=timeout)
    watch = Stopwatch(limit=timeout + 1)
    for _ in watch:
        with watch:
            try:
                result = await executor.run(script)
            except SkillScriptTimeoutError as error:
                result = error.result
        for pid in pids_with(str(tmp_path)):  # those that left the group; without a sandbox nothing else can end them
            os.kill(pid, 9)
        assert result.stdout.startswith(('done', 'y'))
    scoreboard.record(15, f'{where}: pipe held, {what}', f'{watch.best:.2f} s', f'{timeout + 1:.0f} s')
    assert watch.best <= timeout + 1


def pids_with(cwd: str) -> list[int]:
    """Processes that were started in this folder and still run."""
    found: list[int] = []
    for entry in Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / 'stat').read_text().rpartition(')')[2].split()[0]
                if state != 'Z' and os.readlink(entry / 'cwd') == cwd:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.alone
@pytest.mark.parametrize('ignores', ['', 'trap "" TERM INT HUP;'])
async def test_17_cancelling_the_run_kills_the_group_at_once(
    tmp_path: Path, scoreboard: Scoreboard, make: Make, where: str, ignores: str
) -> None:
    executor = await make()
    watch = Stopwatch(limit=0.1)
    for _ in watch:
        seconds = f'600.{uuid4().int % 10**12:012}'
        script = write_script(tmp_path, 'a.sh', f'{ignores} sleep {seconds} & (sleep {seconds}; :) & sleep {seconds}')
        task = asyncio.create_task(executor.run(script))
        await to_thread.run_sync(wait_until, lambda mark=seconds: len(processes_with(mark)) == 3)
        with watch:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        # One that was killed may still have to be given the processor to end; one that was not sleeps for minutes.
        await to_thread.run_sync(wait_until, lambda mark=seconds: not processes_with(mark))
        assert processes_with(seconds) == []
    scoreboard.record(17, f'{where}: cancelled run returns', f'{watch.best * 1000:.0f} ms', '100 ms')
    scoreboard.record(17, f'{where}: survivors in the group', '0', '0')
    assert watch.best <= 0.1


FLOOD = """
import asyncio, json, re, sys
from pathlib import Path
from pydantic_ai_skills import execution
from pydantic_ai_skills.types import SkillScript

def peak():
    return int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) * 1024

async def main():
    small, flood = (SkillScript(name, uri=str(Path(sys.argv[1]) / name)) for name in ('small.sh', 'flood.sh'))
    await executor.run(small)
    Path('/proc/self/clear_refs').write_text('5')  # the peak begins anew
    before, took, tries = peak(), 60, 0
    while took > 1 and (tries := tries + 1) <= 10:  # a processor that is shared computes more slowly
        started = cpu_time()
        result = await executor.run(flood)
        took = min(took, cpu_time() - started)
    print(json.dumps([took, peak() - before, len(str(result).encode()), result.truncated, str(result)]))

executor = getattr(execution, sys.argv[2])()
asyncio.run(main())
"""


@pytest.mark.parametrize('stream', ['1', '2'])
def test_18_100_mb_of_output_cost_little_and_are_cut_with_a_note(
    tmp_path: Path, scoreboard: Scoreboard, where: str, stream: str
) -> None:
    write_script(tmp_path, 'small.sh', 'echo')
    write_script(
        tmp_path, 'flood.sh', f'exec >&{stream}; echo first; head -c 104857600 /dev/zero | tr "\\0" x; echo last'
    )
    kind = 'LocalSkillScriptExecutor' if where == 'local' else 'BubblewrapSkillScriptExecutor'
    # In a process of its own, whose peak of memory nothing else has raised.
    command = [sys.executable, '-c', CPU_TIME + FLOOD, tmp_path, kind]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    took, memory, size, truncated, text = json.loads(output.stdout)
    scoreboard.record(18, f'{where}: 100 MB of output, for the model', f'{size / 1024:.0f} KiB', '64 KiB')
    scoreboard.record(18, f'{where}: 100 MB of output, more memory', f'{memory / 1e6:.1f} MB', '20 MB')
    scoreboard.record(18, f'{where}: 100 MB of output, time', f'{took:.2f} s of CPU', '1 s')
    assert truncated
    assert 'bytes left out' in text
    assert 'first' in text[:100]
    assert text.endswith('last')
    assert size <= 64 * 1024
    assert memory <= 20e6
    assert took <= 1


SECRETS = {
    'OPENAI_API_KEY': 'canary-1',
    'ANTHROPIC_API_KEY': 'canary-2',
    'AWS_SECRET_ACCESS_KEY': 'canary-3',
    'GITHUB_TOKEN': 'canary-4',
    'DATABASE_URL': 'postgres://u:canary-5@db/x',
    'HTTPS_PROXY': 'http://u:canary-6@proxy',
    'LOGFIRE_TOKEN': 'canary-7',
    'my_lower_case_secret': 'canary-8',
}


@pytest.mark.parametrize('name', ['env.py', 'env.sh'])
async def test_19_secrets_in_the_environment_are_not_visible_to_the_script(
    tmp_path: Path, scoreboard: Scoreboard, monkeypatch: pytest.MonkeyPatch, make: Make, where: str, name: str
) -> None:
    for variable, value in SECRETS.items():
        monkeypatch.setenv(variable, value)
    source = 'import os; print(os.environ)' if name == 'env.py' else 'env; cat /proc/self/environ'
    result = await (await make()).run(write_script(tmp_path, name, source))
    seen = [value for value in SECRETS if value in result.stdout]
    scoreboard.record(19, f'{where}: planted secrets seen by {name}', f'{len(seen)} of {len(SECRETS)}', '0')
    assert 'PATH' in result.stdout
    assert seen == []
    assert 'canary' not in result.stdout


@pytest.mark.alone
async def test_20_a_hundred_runs_leave_no_zombies_and_no_descriptors(
    tmp_path: Path, scoreboard: Scoreboard, make: Make, where: str
) -> None:
    script = write_script(tmp_path, 'a.sh', 'cat; sleep 60 & disown; kill %1; echo x; exit 1')
    executor = await make()
    await executor.run(script)
    gc.collect()  # what other tests have left behind is closed now, not meanwhile
    before, zombies_before = len(os.listdir('/proc/self/fd')), zombies()
    for batch in range(10):
        args = {'_stdin': 'text'} if batch % 2 else None
        results = await asyncio.gather(*[executor.run(script, args) for _ in range(10)])
        assert {result.stdout for result in results} == {'textx\n' if batch % 2 else 'x\n'}
    descriptors = len(os.listdir('/proc/self/fd')) - before
    left = zombies() - zombies_before
    scoreboard.record(20, f'{where}: zombies after 100 runs', str(left), '0')
    scoreboard.record(20, f'{where}: descriptors more after 100 runs', str(descriptors), '0')
    assert (left, descriptors) == (0, 0)


@pytest.mark.parametrize(
    ('what', 'args'),
    [
        ('NUL', {'a': 'x\0y'}),
        ('1 MB string', {'a': 'x' * 1_000_000}),
        ('1 MB string in a vector', ['x' * 1_000_000]),
        ('10,000 items', {'a': ['x'] * 10_000}),
        ('10,000 items in a vector', ['x'] * 10_000),
        ('nested object', {'a': {'b': {'c': 1}}}),
        ('name with a space', {'a b': 1}),
        ('name with a leading dash', {'--a': 1}),
        ('empty name', {'': 1}),
        ('half a surrogate pair', {'a': '\ud800'}),
        ('NaN', '{"a": NaN}'),
        ('deep JSON', '[' * 100_000),
        ('a line for a shell', 'rm -rf / | tee x'),
        ('half a line', 'rm "-rf /'),
    ],
)
async def test_21_arguments_that_cannot_be_passed_are_refused_before_anything_starts(
    tmp_path: Path, scoreboard: Scoreboard, what: str, args: Any
) -> None:
    script = write_script(tmp_path, 'a.sh', 'touch ran')
    started = time.monotonic()
    with pytest.raises(SkillScriptExecutionError):
        await LocalSkillScriptExecutor().run(script, args)
    took = time.monotonic() - started
    scoreboard.record(21, f'arguments refused: {what}', f'{took * 1000:.0f} ms', 'refused')
    assert not (tmp_path / 'ran').exists()
