"""Packages that skills need, installed by uv. Nothing is downloaded: a folder with a wheel is the index."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    SkillScriptExecutionError,
    UvEnvironments,
)
from pydantic_ai_skills.filesystem.locks import LockFile
from pydantic_ai_skills.types import SkillScript
from tests.folders import write

from .conftest import write_script, write_wheel

USES = 'import sys, tinyhelper\nprint(tinyhelper.VALUE, sys.prefix)\n'
INLINE = f'# /// script\n# dependencies = ["tinyhelper"]\n# ///\n{USES}'
EXECUTORS = [
    pytest.param(LocalSkillScriptExecutor, id='local'),
    pytest.param(BubblewrapSkillScriptExecutor, id='sandbox'),
]


@pytest.fixture
def environments(tmp_path: Path) -> UvEnvironments:
    wheels = write(tmp_path / 'wheels', {})
    write_wheel(wheels)
    options = ['--offline', '--no-index', '--find-links', str(wheels)]
    return UvEnvironments(index_options=options, cache_dir=tmp_path / 'cache')


def made_in(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / 'cache/environments').iterdir() if not path.name.startswith('.'))


@pytest.mark.parametrize('executor_type', EXECUTORS)
@pytest.mark.parametrize(
    ('files', 'script'),
    [
        ({'requirements.txt': 'tinyhelper\n', 'scripts/a.py': USES}, 'scripts/a.py'),
        ({'requirements.txt': 'tinyhelper>=1,<2\n', 'a.sh': f'exec python3 -c "{USES.strip()}"\n'}, 'a.sh'),
        ({'scripts/inline.py': INLINE}, 'scripts/inline.py'),
        ({'scripts/inline.py': f'#!/usr/bin/env -S uv run --script\n{INLINE}'}, 'scripts/inline.py'),
    ],
)
async def test_a_skill_has_the_packages_it_needs(
    executor_type: Any, files: dict[str, str | bytes], script: str, tmp_path: Path, environments: UvEnvironments
):
    skill = write(tmp_path / 'skill', files)
    executor = await to_thread.run_sync(partial(executor_type, dependencies=environments))
    result = await executor.run(described(skill, script))
    assert (result.exit_code, result.stderr) == (0, '')
    value, prefix = result.stdout.split()
    assert value == '42'
    environment, versions = made_in(tmp_path)
    assert prefix == str(tmp_path / 'cache/environments' / environment)
    assert versions == f'{environment}.txt'
    assert 'tinyhelper==1.0 \\\n    --hash=sha256:' in (tmp_path / 'cache/environments' / versions).read_text()
    assert sorted(str(path.relative_to(skill)) for path in skill.rglob('*') if path.is_file()) == sorted(files)


def described(skill: Path, script: str) -> SkillScript:
    return SkillScript(script, uri=str(skill / script), skill_name='one', skill_dir=skill)


async def test_an_environment_is_made_once_for_each_set_of_requirements(tmp_path: Path, environments: UvEnvironments):
    skill = write(tmp_path / 'skill', {'requirements.txt': 'tinyhelper\n', 'a.py': USES})
    executor = LocalSkillScriptExecutor(dependencies=environments)
    first = await executor.run(described(skill, 'a.py'))
    shutil.rmtree(tmp_path / 'wheels')
    assert (await executor.run(described(skill, 'a.py'))).stdout == first.stdout
    (skill / 'requirements.txt').write_text('tinyhelper==1.0\n')
    with pytest.raises(SkillScriptExecutionError, match=r'needs \(tinyhelper==1.0\) cannot be installed'):
        await executor.run(described(skill, 'a.py'))


async def test_an_environment_that_is_made_again_has_the_same_versions(tmp_path: Path, environments: UvEnvironments):
    skill = write(tmp_path / 'skill', {'requirements.txt': 'tinyhelper\n', 'a.py': USES})
    executor = LocalSkillScriptExecutor(dependencies=environments)
    await executor.run(described(skill, 'a.py'))
    environment, versions = made_in(tmp_path)
    root = tmp_path / 'cache/environments'
    os.unlink(root / environment / 'bin/python')  # as after an upgrade of the system
    (root / versions).write_text((root / versions).read_text().replace('1.0', '0.9'))
    with pytest.raises(SkillScriptExecutionError, match='0.9'):
        await executor.run(described(skill, 'a.py'))
    (root / versions).write_text((root / versions).read_text().replace('0.9', '1.0'))
    assert (await executor.run(described(skill, 'a.py'))).stdout.startswith('42')


async def test_a_skill_without_packages_runs_as_ever(tmp_path: Path, environments: UvEnvironments):
    skill = write(tmp_path / 'skill', {'a.py': 'import sys; print(sys.prefix)'})
    result = await LocalSkillScriptExecutor(dependencies=environments).run(described(skill, 'a.py'))
    assert result.stdout.strip() == sys.prefix
    assert not (tmp_path / 'cache').exists()
    alone = write_script(tmp_path / 'other', 'a.py', 'print(1)')
    alone.skill_dir = None
    assert (await LocalSkillScriptExecutor(dependencies=environments).run(alone)).stdout == '1\n'


def write_source_package(folder: Path, proof: Path) -> None:
    """A package without a wheel, whose build leaves a proof."""
    backend = f'open({str(proof)!r}, "w").close()\nraise SystemExit("no")\n'
    settings = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    write(folder / 'onlysource-1.0', {'backend.py': backend, 'pyproject.toml': settings, 'PKG-INFO': 'Name: x\n'})
    shutil.make_archive(str(folder / 'onlysource-1.0'), 'gztar', folder, 'onlysource-1.0')


@pytest.mark.parametrize(('builds', 'allowed', 'ran'), [(None, False, False), (None, True, True), (False, True, False)])
def test_packages_are_built_only_where_the_code_of_skills_runs_anyway(
    builds: bool | None, allowed: bool, ran: bool, tmp_path: Path
):
    write_source_package(write(tmp_path / 'wheels', {}), tmp_path / 'proof')
    options = ['--offline', '--no-index', '--find-links', str(tmp_path / 'wheels')]
    environments = UvEnvironments(index_options=options, cache_dir=tmp_path / 'cache', builds=builds)
    with pytest.raises(SkillScriptExecutionError, match='cannot be installed'):
        environments.provide('one', ['onlysource'], python=sys.executable, builds=allowed)
    assert (tmp_path / 'proof').exists() is ran


def test_nothing_of_a_wheel_runs_while_it_is_installed(tmp_path: Path):
    proof, wheels = tmp_path / 'proof', write(tmp_path / 'wheels', {})
    # Python runs such lines whenever it starts.
    write_wheel(wheels, {'tiny.pth': f'import pathlib; pathlib.Path({str(proof)!r}).touch()\n'})
    options = ['--offline', '--no-index', '--find-links', str(wheels)]
    environments = UvEnvironments(index_options=options, cache_dir=tmp_path / 'cache')
    python = environments.provide('one', ['tinyhelper'], python=sys.executable, builds=False)
    assert list(python.parent.parent.rglob('tiny.pth'))
    assert not proof.exists()
    subprocess.run([python, '-c', ''], check=True)
    assert proof.exists()


def test_a_skill_cannot_ask_for_countless_packages(tmp_path: Path):
    with pytest.raises(SkillScriptExecutionError, match='more than 100 packages'):
        UvEnvironments(cache_dir=tmp_path).provide('one', ['x'] * 101, python=sys.executable, builds=False)


@pytest.mark.parametrize('executor_type', EXECUTORS)
async def test_only_the_local_executor_builds(executor_type: Any, tmp_path: Path):
    asked: list[bool] = []

    class Recording(UvEnvironments):
        def provide(self, *args: Any, builds: bool, **options: Any) -> Path:
            asked.append(builds)
            raise SkillScriptExecutionError('enough')

    skill = write(tmp_path / 'skill', {'requirements.txt': 'tinyhelper\n', 'a.py': USES})
    executor = await to_thread.run_sync(partial(executor_type, dependencies=Recording()))
    with pytest.raises(SkillScriptExecutionError, match='enough'):
        await executor.run(described(skill, 'a.py'))
    assert asked == [not executor.sandboxed]


def test_a_failure_names_the_packages_but_no_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv('UV_HTTP_RETRIES', '0')
    options = ['--index-url', 'http://user:hunter2@127.0.0.1:9/simple']
    environments = UvEnvironments(index_options=options, cache_dir=tmp_path)
    with caplog.at_level(logging.WARNING), pytest.raises(SkillScriptExecutionError) as failure:
        environments.provide('one', ['tinyhelper'], python=sys.executable, builds=False)
    assert 'needs (tinyhelper) cannot be installed' in str(failure.value)
    assert '127.0.0.1' not in str(failure.value)
    assert 'hunter2' not in str(failure.value) + caplog.text
    assert 'uv could not install packages (tinyhelper)' in caplog.text
    assert [path.name for path in (tmp_path / 'environments').iterdir() if not path.name.endswith('.busy')] == []


@pytest.mark.parametrize('uv', ['/nothing/uv', None])
def test_without_uv_the_way_to_get_it_is_told(uv: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('PATH', '')
    monkeypatch.setattr(sys, 'executable', str(tmp_path / 'python'))
    with pytest.raises(SkillScriptExecutionError, match="run 'pip install uv'"):
        UvEnvironments(cache_dir=tmp_path, uv=uv).provide('one', ['x'], python='python3', builds=False)


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path):
    (tmp_path / 'environments').mkdir()
    (tmp_path / 'environments').chmod(0o777)
    with pytest.raises(SkillScriptExecutionError, match='can be written by other users'):
        UvEnvironments(cache_dir=tmp_path).provide('one', ['x'], python=sys.executable, builds=False)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(SkillScriptExecutionError, match='the folder for them cannot be made'):
        UvEnvironments(cache_dir=tmp_path / 'file').provide('one', ['x'], python=sys.executable, builds=False)


def fake_uv(folder: Path, source: str) -> str:
    program = write(folder, {'uv': f'#!/bin/sh\n{source}\n'}) / 'uv'
    program.chmod(0o755)
    return str(program)


def test_a_cancelled_run_stops_the_installation(tmp_path: Path):
    uv = fake_uv(tmp_path, f'echo $$ > {tmp_path}/pid; exec sleep 60')
    started = tmp_path / 'pid'
    environments = UvEnvironments(cache_dir=tmp_path / 'cache', uv=uv)
    with pytest.raises(SkillScriptExecutionError, match='cancelled before the script started'):
        environments.provide('one', ['x'], python='python3', builds=False, cancelled=started.exists)
    assert list((tmp_path / 'cache/environments').glob('.*[!y]')) == []


@pytest.mark.parametrize('timeout', [0, 0.05])
def test_an_installation_that_takes_too_long_is_stopped(timeout: float, tmp_path: Path):
    environments = UvEnvironments(cache_dir=tmp_path / 'cache', uv=fake_uv(tmp_path, 'exec sleep 60'), timeout=timeout)
    with pytest.raises(SkillScriptExecutionError, match='it took too long'):
        environments.provide('one', ['x'], python='python3', builds=False)


def test_two_processes_make_an_environment_once(tmp_path: Path, environments: UvEnvironments):
    first = environments.provide('one', ['tinyhelper'], python=sys.executable, builds=False)
    root, name = first.parent.parent.parent, first.parent.parent.name
    os.rename(root / name, root / 'aside')
    other = LockFile(root / f'.{name}.busy')
    assert other.acquire()

    def finish() -> None:
        time.sleep(0.1)
        os.rename(root / 'aside', root / name)
        other.release()

    thread = threading.Thread(target=finish)
    thread.start()
    shutil.rmtree(tmp_path / 'wheels')  # so it cannot be made again
    (root / f'{name}.txt').unlink()
    assert environments.provide('one', ['tinyhelper'], python=sys.executable, builds=False) == first
    thread.join()


def test_a_disk_that_fails_is_an_error_for_the_model(tmp_path: Path):
    uv = fake_uv(tmp_path, 'exit 0')  # it writes nothing
    with pytest.raises(SkillScriptExecutionError, match='cannot be installed: No such file or directory'):
        UvEnvironments(cache_dir=tmp_path / 'cache', uv=uv).provide('one', ['x'], python='python3', builds=False)


def test_uv_gets_its_own_settings_and_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in {'UV_INDEX_URL': 'u', 'https_proxy': 'p', 'ACME_TOKEN': 'secret'}.items():
        monkeypatch.setenv(name, value)
    uv = fake_uv(tmp_path, f'env > {tmp_path}/env; exit 1')
    with pytest.raises(SkillScriptExecutionError):
        UvEnvironments(cache_dir=tmp_path / 'cache', uv=uv).provide('one', ['x'], python='python3', builds=False)
    env = (tmp_path / 'env').read_text()
    assert 'UV_INDEX_URL=u' in env
    assert 'https_proxy=p' in env
    assert 'ACME_TOKEN' not in env


def test_another_way_to_install_is_a_value_error():
    with pytest.raises(ValueError, match=r"`dependencies` is None, 'uv' or UvEnvironments\(…\), not 'pip'"):
        LocalSkillScriptExecutor(dependencies='pip')  # pyright: ignore[reportArgumentType]
    assert isinstance(LocalSkillScriptExecutor(dependencies='uv').dependencies, UvEnvironments)
