"""How commands run async code."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator

import pytest

from pydantic_ai_skills.cli.event_loop import event_loop, run

HANGS = 60
"""Seconds after which nothing has woken the loop."""


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Interrupts as at a terminal: a shell that runs the tests in the background has them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures('interrupts')
def test_an_interrupt_is_noticed_while_the_loop_sleeps_and_another_thread_gets_the_signal():
    is_over, was_noticed = threading.Event(), list[bool]()

    def work() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        was_noticed.append(is_over.wait(HANGS))

    async def wait() -> None:
        thread.start()
        try:
            await asyncio.sleep(2 * HANGS)
        finally:
            is_over.set()

    thread = threading.Timer(0.1, work)
    with pytest.raises(KeyboardInterrupt):
        run(wait())
    thread.join()
    assert was_noticed == [True]


def test_signals_wake_what_they_woke_before_when_it_is_over():
    with event_loop() as outer:
        wakes = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakes)
        with event_loop():
            assert signal.set_wakeup_fd(wakes) != wakes
        assert signal.set_wakeup_fd(wakes) == wakes
        assert outer.run(asyncio.sleep(0, 'still there')) == 'still there'
    assert signal.set_wakeup_fd(-1) == -1


def test_a_command_may_be_run_in_another_thread():
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(run(asyncio.sleep(0, 'done'))))
    thread.start()
    thread.join()
    assert found == ['done']
