"""Control groups: real ones where this process may make them, folders that look like one everywhere."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from anyio import to_thread

from pydantic_ai_skills import ScriptLimits, SkillScriptExecutionError
from pydantic_ai_skills.execution.bubblewrap.executor import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.execution.cgroup import (
    PREFIX,
    ControlGroup,
    can_make_groups,
    control_groups,
    find_parents,
    groups_in,
)
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.result import SkillScriptStoppedError

from .conftest import MakeScript

EXECUTORS = [LocalSkillScriptExecutor, BubblewrapSkillScriptExecutor]
MakeExecutor = type[LocalSkillScriptExecutor | BubblewrapSkillScriptExecutor]


@pytest.fixture
def parent(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a new one has the files of a control group of a version, as in the kernel's file system."""
    mkdir = os.mkdir

    def make(path: str | Path, *args: Any, **options: Any) -> None:
        mkdir(path, *args, **options)
        group = Path(path)
        if group.parent == parent:
            (group / 'pids.max').write_text('max\n')
            (group / 'cgroup.procs').touch()
            if request.param == 1:
                (group / 'tasks').touch()

    parent = tmp_path / 'group'
    parent.mkdir()
    monkeypatch.setattr(os, 'mkdir', make)
    return parent


version_1 = pytest.mark.parametrize('parent', [1], indirect=True)
both_versions = pytest.mark.parametrize('parent', [1, 2], indirect=True)


def only_group(parent: Path) -> Path:
    (group,) = (path for path in parent.iterdir() if path.is_dir())
    return group


def members_of(group: Path) -> Path:
    """The file through which a process joins a group."""
    return next(path for name in ('tasks', 'cgroup.procs') if (path := group / name).exists())


@both_versions
def test_a_group_caps_its_tasks_and_forbids_new_ones_before_it_kills(parent: Path) -> None:
    group = ControlGroup({'processes': parent}, {'processes': 9})
    folder = only_group(parent)
    assert (folder / 'pids.max').read_text().startswith('9')
    process = subprocess.Popen(['sleep', '30'])
    (folder / 'cgroup.procs').write_text(f'{process.pid}\n')
    group.kill()
    assert process.wait() == -9
    assert (folder / 'pids.max').read_text().startswith('0')


@both_versions
def test_this_process_and_those_of_other_namespaces_are_left_alone(parent: Path) -> None:
    group = ControlGroup({'processes': parent}, {'processes': 9})
    members = only_group(parent) / 'cgroup.procs'
    members.write_text(f'0\n{os.getpid()}\n')
    group.kill()  # a signal to either would have ended this test
    assert members.read_text() == f'0\n{os.getpid()}\n'


@both_versions
def test_a_shell_that_cannot_join_the_group_goes_no_further(parent: Path) -> None:
    command = ['/bin/sh', '-c', f'{ControlGroup({"processes": parent}, {"processes": 9}).join}; echo joined']
    done = subprocess.run(command, capture_output=True, text=True)
    members = members_of(only_group(parent))
    assert (done.stdout, members.read_text()) == ('joined\n', '0\n')
    members.unlink()
    members.mkdir()
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.returncode != 0) == ('', True)


def test_a_group_that_cannot_be_made_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SkillScriptExecutionError, match='No control group could be made for a script: .*pids.max'):
        ControlGroup({'processes': tmp_path}, {'processes': 9})  # no file appears in a plain folder
    assert list(tmp_path.iterdir()) == []


MOUNTS = (
    '30 25 0:26 / /proc rw - proc proc rw\n'
    '31 25 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n'
    '32 25 0:28 /ours /cg/pids rw,nosuid shared:9 - cgroup cgroup rw,cpu,pids\n'
    '33 25 0:29 / /cg/unified rw - cgroup2 cgroup2 rw\n'
)


@pytest.mark.parametrize(
    ('groups', 'found'),
    [
        (
            '5:memory:/m\n4:cpu,pids:/ours/deep\n0::/unified\n',
            {'processes': Path('/cg/pids/deep'), 'memory': Path('/cg/memory/m')},
        ),
        ('0::/unified/deep\n', {}),  # not delegated
        ('5:memory:/m\n', {'memory': Path('/cg/memory/m')}),
    ],
)
def test_the_groups_of_this_process_are_found(tmp_path: Path, groups: str, found: dict[str, Path]) -> None:
    memberships, mounts = tmp_path / 'cgroup', tmp_path / 'mountinfo'
    memberships.write_text(groups)
    mounts.write_text(MOUNTS)
    assert find_parents(memberships, mounts) == found
    mounts.write_text('')
    assert find_parents(memberships, mounts) == {}
    assert find_parents(tmp_path / 'missing', mounts) == {}


def test_there_are_none_outside_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, 'platform', 'darwin')
    assert find_parents() == {}


@pytest.mark.parametrize('enabled', ['', 'deep', 'deep/er'])
def test_in_version_2_the_nearest_group_that_holds_most_is_taken(tmp_path: Path, enabled: str) -> None:
    own = tmp_path / 'cg' / 'deep' / 'er'
    own.mkdir(parents=True)
    for folder in (own, own.parent, own.parent.parent):
        (folder / 'cgroup.subtree_control').write_text('cpu memory\n')
    memberships, mounts = tmp_path / 'cgroup', tmp_path / 'mountinfo'
    memberships.write_text('0::/ours/deep/er\n')
    mounts.write_text(f'33 25 0:29 /ours {tmp_path}/cg rw - cgroup2 cgroup2 rw\n')
    assert find_parents(memberships, mounts) == {'memory': own}
    delegated = tmp_path / 'cg' / enabled
    (delegated / 'cgroup.subtree_control').write_text('cpu memory pids\n')
    assert find_parents(memberships, mounts) == {'processes': delegated, 'memory': delegated}


def test_what_groups_can_hold_is_seen_from_their_parent(tmp_path: Path) -> None:
    assert groups_in(tmp_path) == {'processes': tmp_path}
    (tmp_path / 'memory.limit_in_bytes').touch()
    assert groups_in(tmp_path) == {'memory': tmp_path}


MEMORY_FILES = {
    1: {
        'memory.limit_in_bytes': '',
        'memory.memsw.limit_in_bytes': '',
        'memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 0\n',
    },
    2: {'memory.max': '', 'memory.swap.max': '', 'memory.events': 'low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\n'},
}


@pytest.mark.parametrize('swap', [True, False])
@both_versions
def test_a_group_caps_memory_with_and_without_swap(
    parent: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, swap: bool
) -> None:
    version = request.node.callspec.params['parent']
    names = {name: text for name, text in MEMORY_FILES[version].items() if swap or 'sw' not in name}
    mkdir = os.mkdir

    def make(path: str, *args: Any, **options: Any) -> None:
        mkdir(path, *args, **options)
        for name, text in names.items():
            Path(path, name).write_text(text)

    monkeypatch.setattr(os, 'mkdir', make)
    group = ControlGroup({'memory': parent}, {'memory': 1000})
    (folder,) = (path for path in parent.iterdir() if path.is_dir())
    limit, *rest = (name for name in names if name.endswith(('in_bytes', 'max')))
    assert (folder / limit).read_text() == '1000'
    assert [(folder / name).read_text() for name in rest] == (['1000' if version == 1 else '0'] if swap else [])
    assert not group.ran_out_of_memory()
    events = folder / [*names][-1]
    events.write_text(events.read_text().replace('oom_kill 0', 'oom_kill 1'))
    assert group.ran_out_of_memory()
    events.unlink()
    assert not group.ran_out_of_memory()


@both_versions
def test_whether_groups_can_be_made_and_joined_is_tried(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert can_make_groups({'processes': parent})
    assert not can_make_groups({'processes': tmp_path / 'missing'})
    monkeypatch.setattr('pydantic_ai_skills.execution.cgroup.SHELL', '/no/sh')
    assert not can_make_groups({'processes': parent})


def test_where_no_group_is_found_none_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, 'platform', 'darwin')
    assert control_groups.__wrapped__() == {}


def test_groups_of_processes_that_were_killed_are_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen(['true'])
    ended.wait()
    (tmp_path / f'{PREFIX}{ended.pid}-1').mkdir()
    (tmp_path / f'{PREFIX}{os.getpid()}-1').mkdir()
    assert not can_make_groups({'processes': tmp_path})
    assert [folder.name for folder in tmp_path.iterdir()] == [f'{PREFIX}{os.getpid()}-1']


@both_versions
@pytest.mark.parametrize('make', EXECUTORS)
async def test_a_script_joins_a_group_of_its_own(make: MakeExecutor, make_script: MakeScript, parent: Path) -> None:
    executor = await to_thread.run_sync(lambda: make(limits=ScriptLimits(processes=5), control_group=parent))
    assert (await executor.run(make_script('a.sh', 'echo done'))).stdout == 'done\n'
    group = only_group(parent)
    assert group.name.startswith(f'{PREFIX}{os.getpid()}-')
    assert members_of(group).read_text() == '0\n'
    assert (group / 'pids.max').read_text().startswith('48')


@version_1
@pytest.mark.parametrize('make', EXECUTORS)
async def test_without_a_limit_on_processes_there_is_no_group(
    make: MakeExecutor, make_script: MakeScript, parent: Path
) -> None:
    executor = await to_thread.run_sync(lambda: make(limits=ScriptLimits(processes=None), control_group=parent))
    assert (await executor.run(make_script('a.sh', 'echo done'))).stdout == 'done\n'
    assert list(parent.iterdir()) == []


@both_versions
async def test_the_group_of_a_script_that_cannot_be_started_is_closed(
    make_script: MakeScript, parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('pydantic_ai_skills.execution.local.limits_in_shell', Mock(side_effect=RuntimeError('no')))
    monkeypatch.setattr(ControlGroup, 'close', close := Mock())
    with pytest.raises(RuntimeError, match='no'):
        await LocalSkillScriptExecutor(control_group=parent).run(make_script('a.sh', 'echo done'))
    close.assert_called_once()


async def test_without_a_group_the_kernel_caps_the_tasks_of_the_user(make_script: MakeScript) -> None:
    script = make_script('a.sh', '#!/usr/bin/env bash\nulimit -Su; ulimit -Hu')
    before = len(list(Path('/proc').glob('[0-9]*/task/*')))
    limits = ScriptLimits(processes=5)
    soft, hard = (await LocalSkillScriptExecutor(limits=limits, control_group=None).run(script)).stdout.split()
    assert soft == hard
    assert 48 <= int(soft) <= before + 5_000  # 48 more than the machine had, on which other tests start processes
    limits = ScriptLimits(processes=None)
    result = await LocalSkillScriptExecutor(limits=limits, control_group=None).run(script)
    assert result.stdout.split() == [_shown(limit) for limit in resource.getrlimit(resource.RLIMIT_NPROC)]


def _shown(limit: int) -> str:
    return 'unlimited' if limit == resource.RLIM_INFINITY else str(limit)


@pytest.mark.parametrize('make', EXECUTORS)
async def test_where_there_are_no_groups_a_script_is_stopped_all_the_same(
    make: MakeExecutor, make_script: MakeScript
) -> None:
    executor = await to_thread.run_sync(lambda: make(limits=ScriptLimits(processes=5), control_group=None))
    with pytest.raises(SkillScriptStoppedError, match='it started more than 5 processes'):
        await executor.run(make_script('a.sh', 'for i in 1 2 3 4 5 6 7; do sleep 9 & done; wait'))


def test_an_executor_says_which_limits_it_only_watches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / 'cgroup.subtree_control').write_text('memory pids')
    everything = 'memory', 'processes', 'work_folder'
    for user, groups, by_local, by_sandbox in [
        (0, None, everything, everything),
        (0, tmp_path, ('work_folder',), ('work_folder',)),
        (1000, None, everything, ('memory', 'work_folder')),
    ]:
        local = LocalSkillScriptExecutor(control_group=groups)
        sandbox = BubblewrapSkillScriptExecutor(control_group=groups)
        monkeypatch.setattr(os, 'getuid', Mock(return_value=user))
        assert (local.watched, sandbox.watched) == (by_local, by_sandbox)
        assert local.unenforced == sandbox.unenforced == (() if groups else ('memory',))
    limits = ScriptLimits(memory=None, work_folder=None)
    assert LocalSkillScriptExecutor(limits=limits, control_group=None).watched == ('processes',)
    assert LocalSkillScriptExecutor(limits=limits, control_group=None).unenforced == ()
    monkeypatch.setattr(sys, 'platform', 'darwin')
    elsewhere = LocalSkillScriptExecutor()
    assert (elsewhere.watched, elsewhere.unenforced) == ((), everything)


@pytest.mark.parametrize('make', EXECUTORS)
async def test_a_real_group_is_gone_after_the_run(make: MakeExecutor, make_script: MakeScript) -> None:
    script = make_script('a.sh', 'cat /proc/self/cgroup; setsid sleep 30 > /dev/null 2>&1 &')
    result = await (await to_thread.run_sync(make)).run(script)
    assert ':/' in result.stdout
    assert [found for parent in control_groups().values() for found in parent.glob(f'{PREFIX}{os.getpid()}-*')] == []


@pytest.mark.parametrize('make', EXECUTORS)
async def test_a_script_that_fills_its_group_is_told_so_or_the_executor_has_said_that_nothing_holds_it(
    make: MakeExecutor, make_script: MakeScript
) -> None:
    source = """
        import os
        fd = os.memfd_create('x')
        for _ in range(160):
            os.write(fd, bytes(1 << 20))
    """
    executor = await to_thread.run_sync(lambda: make(limits=ScriptLimits(memory=64 << 20)))
    is_held = 'memory' in control_groups()
    assert executor.unenforced == (() if is_held else ('memory',))
    stopped = pytest.raises(SkillScriptStoppedError, match='it used more than 64 MiB of memory')
    with stopped if is_held else nullcontext():
        await executor.run(make_script('a.py', source))
