"""Rules for every test: no model is called, and no package code blocks an event loop."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBusterFunction, blockbuster_ctx
from coverage import Coverage
from hypothesis import HealthCheck, settings
from pydantic_ai import models
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage

from pydantic_ai_skills.execution.work_dir import remove_kept_folders
from tests.registries.packages.sites import Site
from tests.toolset.durable.sqlite import teach_fractions_of_seconds

models.ALLOW_MODEL_REQUESTS = False

# No test fails by luck: the same examples are tried each time, however slowly a busy machine makes them.
# `HYPOTHESIS_PROFILE=explore make test` looks for new ones.
settings.register_profile('same', deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile('explore', deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'same'))

teach_fractions_of_seconds()

PACKAGE = ['pydantic_ai_skills']


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped in CI, whose machine has what every test needs."""
    report = yield
    if report.skipped and os.environ.get('CI'):
        report.outcome, report.longrepr = 'failed', f'It was skipped in CI: {report.longrepr}'
    return report


def pytest_sessionfinish() -> None:
    """Save what was covered now: a worker that takes longer than ten seconds to end is killed by pytest-xdist."""
    measuring = Coverage.current()
    if measuring is not None:
        measuring.save()


@pytest.fixture(scope='session')
def anyio_backend() -> str:
    return 'asyncio'


@pytest.fixture(scope='session')
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation as it is published. Warnings of the builder are failures."""
    folder = tmp_path_factory.mktemp('site')
    build = [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--site-dir', folder]
    env = {**os.environ, 'NO_MKDOCS_2_WARNING': '1'}
    done = subprocess.run(build, cwd=Path(__file__).parent.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def ctx() -> RunContext[None]:
    """The context of a run in which nothing has happened yet."""
    return RunContext(deps=None, model=TestModel(), usage=RunUsage())


@pytest.fixture
def private_dirs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Path]]:
    """Call it for the private work folders that exist now."""
    remove_kept_folders()
    temp = tmp_path_factory.mktemp('temp')
    monkeypatch.setattr(tempfile, 'tempdir', str(temp))
    return lambda: list(temp.glob('*/*'))


@pytest.fixture
def loop_of_run_sync() -> Iterator[None]:
    """`Agent.run_sync` makes an event loop where there is none, and leaves it open for the next call."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(autouse=True)
def nothing_blocks_the_event_loop() -> Iterator[None]:
    """Fail a test in which package code blocks a running event loop, naming the call."""
    with blockbuster_ctx(scanned_modules=PACKAGE) as blockbuster:
        # `files.py` works on descriptors, which blockbuster does not watch by itself.
        for name in ('os.open', 'os.lstat'):
            blockbuster.functions[name] = BlockBusterFunction(None, name, scanned_modules=PACKAGE)
        # asyncio opens the null device for a process it starts, on the loop's own thread.
        blockbuster.functions['os.open'].can_block_in('subprocess.py', '_get_devnull')
        # Coverage looks up the path of a file the first time it sees it, wherever that is.
        blockbuster.functions['os.lstat'].can_block_in('coverage/files.py', 'abs_file')
        # It notes in a dictionary, behind a lock, which files each thread is in.
        blockbuster.functions['threading.Lock.acquire'].can_block_in('coverage/collector.py', 'lock_data')
        # Which folder the program is in is known to the kernel: no disk has to answer.
        blockbuster.functions['os.getcwd'].can_block_in('directory/directory.py', '__init__')
        blockbuster.activate()
        yield


@pytest.fixture
def place(tmp_path: Path) -> Site:
    """A folder of installed packages that is not on Python's path."""
    return Site(tmp_path / 'site-packages')


@pytest.fixture
def importable(place: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The same folder on Python's path. Modules imported from it are forgotten afterwards."""
    monkeypatch.setattr(sys, 'path', [str(place.path), *sys.path])
    importlib.invalidate_caches()
    before = set(sys.modules)
    yield place
    for name in set(sys.modules) - before:
        if str(place.path) in str(getattr(sys.modules[name], '__file__', '')):
            del sys.modules[name]
