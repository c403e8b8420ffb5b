"""What holds for every test: no model is called, and nothing of the package blocks an event loop."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from blockbuster import BlockBusterFunction, blockbuster_ctx
from hypothesis import settings
from pydantic_ai import models

models.ALLOW_MODEL_REQUESTS = False

# Timings vary too much on shared machines for deadlines. CI must not fail by the luck of a draw.
settings.register_profile('default', deadline=None)
settings.register_profile('ci', deadline=None, derandomize=True)
settings.load_profile('ci' if os.environ.get('CI') else 'default')

PACKAGE = ['pydantic_ai_skills']


@pytest.fixture(scope='session')
def anyio_backend() -> str:
    return 'asyncio'


@pytest.fixture(autouse=True)
def nothing_blocks_the_event_loop() -> Iterator[None]:
    """Fail a test in which package code blocks a running event loop, with the call that did it."""
    with blockbuster_ctx(scanned_modules=PACKAGE) as blockbuster:
        # `files.py` works on descriptors, which blockbuster does not watch by itself.
        for name in ('os.open', 'os.lstat'):
            blockbuster.functions[name] = BlockBusterFunction(None, name, scanned_modules=PACKAGE)
        # asyncio opens the null device for a process it starts, on the loop's own thread.
        blockbuster.functions['os.open'].can_block_in('subprocess.py', '_get_devnull')
        # Coverage looks up the path of a file the first time it sees it, wherever that is.
        blockbuster.functions['os.lstat'].can_block_in('coverage/files.py', 'abs_file')
        blockbuster.activate()
        yield
