"""Runs the background commands of conversations, keeps their output until it is read, and stops them."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

if TYPE_CHECKING:
    from .result import ScriptResult
    from .streaming import OnOutput, StreamName

MAX_KEPT_CHARS = 60_000
"""How much of the unread output of a background command is kept, counted from its end."""

MAX_AT_ONCE = 8
"""How many background commands a conversation may have at the same time."""

STOP_GRACE = 2.0
"""Seconds to wait for a stopped command to end."""

RunCommand: TypeAlias = 'Callable[[Callable[[], bool], OnOutput], ScriptResult]'
"""Runs a command to its end. Takes a function that returns whether to stop it, and one that receives its output."""


class BackgroundCommand:
    """A command that runs in a thread of its own until it ends, is stopped, or its time is up."""

    def __init__(self, run: RunCommand) -> None:
        self._run = run
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._unread = ''
        self._ending: str | None = None
        self._thread = threading.Thread(target=self._work, name='skill-command', daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    @property
    def has_news(self) -> bool:
        """Whether it has unread output, or has ended."""
        return bool(self._unread) or not self.is_running

    def read(self) -> tuple[str, str]:
        """What it printed since the last call, and a sentence about its state."""
        with self._lock:
            unread, self._unread = self._unread, ''
        return unread, 'It is running.' if self.is_running else self._ending or 'It was stopped.'

    def stop(self) -> None:
        """Stop it, and wait for at most `STOP_GRACE` seconds until it has ended."""
        self._stop.set()
        self._thread.join(STOP_GRACE)

    def _work(self) -> None:
        from .result import SkillScriptStoppedError, describe_exit  # not needed where nothing is run

        try:
            result = self._run(self._stop.is_set, self._on_output)
            if not self._stop.is_set():
                self._ending = f'It ended with exit code {describe_exit(result.exit_code)}.'
        except SkillScriptStoppedError as error:
            self._ending = str(error)
        except SkillScriptExecutionError as error:
            self._ending = f'It failed: {error}'

    def _on_output(self, stream: StreamName, text: str) -> None:
        with self._lock:
            self._unread = (self._unread + text)[-MAX_KEPT_CHARS:]


class BackgroundCommands:
    """The background commands of the conversations of a toolset, by their ids."""

    def __init__(self) -> None:
        self._commands: dict[str, dict[str, BackgroundCommand]] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()
        weakref.finalize(self, _stop_soon, self._commands).atexit = False

    def start(self, conversation: str, run: RunCommand) -> tuple[str, BackgroundCommand]:
        """Start a command for a conversation; return its id and the command.

        Raises:
            SkillScriptExecutionError: Too many commands of the conversation are running.
        """
        with self._lock:
            mine = self._commands.setdefault(conversation, {})
            if sum(command.is_running for command in mine.values()) >= MAX_AT_ONCE:
                raise SkillScriptExecutionError(
                    f'{MAX_AT_ONCE} commands are running in the background already. Stop one of them first.'
                )
            for key in [key for key, command in mine.items() if not command.is_running][:-MAX_AT_ONCE]:
                del mine[key]
            key = f'command-{next(self._numbers)}'
            mine[key] = BackgroundCommand(run)
            return key, mine[key]

    def find(self, conversation: str, key: str) -> BackgroundCommand:
        """A command of a conversation.

        Raises:
            SkillScriptExecutionError: The conversation has no command with this id. The message lists those it has.
        """
        mine = self._commands.get(conversation, {})
        if key not in mine:
            known = f'There are: {", ".join(mine)}.' if mine else 'None was started in this conversation.'
            raise SkillScriptExecutionError(f'There is no background command {key!r}. {known}')
        return mine[key]

    def stop(self, conversation: str | None = None) -> None:
        """Stop the commands of a conversation that is over, or of all conversations."""
        with self._lock:
            keys = list(self._commands) if conversation is None else [conversation]
            stopped = [command for key in keys for command in self._commands.pop(key, {}).values()]
        _stop_all(stopped)


_RUNNING: weakref.WeakSet[BackgroundCommand] = weakref.WeakSet()


def _stop_all(commands: Iterable[BackgroundCommand]) -> None:
    running = [command for command in commands if command.is_running]
    for command in running:
        command.stop()


def _stop_soon(commands: dict[str, dict[str, BackgroundCommand]]) -> None:
    """Stop all commands of a toolset that is gone; in a thread, since an event loop may be running."""
    left = [command for mine in commands.values() for command in mine.values()]
    if left:
        threading.Thread(target=_stop_all, args=(left,)).start()


@atexit.register
def _stop_at_exit() -> None:
    _stop_all(list(_RUNNING))
