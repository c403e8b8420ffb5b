"""Runs async code in a way that a person can always interrupt."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Coroutine, Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar('T')


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run one coroutine to its end."""
    with event_loop() as runner:
        return runner.run(work)


@contextmanager
def event_loop() -> Generator[asyncio.Runner]:
    """A runner whose loop wakes up at every signal.

    Python notes a signal at once, and handles it before the next step of the main thread. Without the wake-up, an
    interrupt that arrives just as the loop falls asleep, or in another thread, is noticed only when something else
    happens.
    """
    with asyncio.Runner() as runner, ExitStack() as stack:
        # The loop of Windows does this by itself. Only the main thread handles signals.
        with suppress(NotImplementedError, ValueError):
            _wake_at_signals(runner.get_loop(), stack)
        yield runner


def _wake_at_signals(loop: asyncio.AbstractEventLoop, stack: ExitStack) -> None:
    watched, written = map(stack.enter_context, socket.socketpair())
    for end in (watched, written):
        end.setblocking(False)
    loop.add_reader(watched, watched.recv, 4096)
    stack.callback(loop.remove_reader, watched)
    before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    stack.callback(signal.set_wakeup_fd, before)
