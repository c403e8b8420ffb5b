"""One client of an MCP server, in a thread with an event loop of its own.

Registries are called from worker threads and from any event loop, while a client belongs to one loop.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import mcp_types
from fastmcp import Client
from mcp import MCPError
from mcp.client.subscriptions import listen

T = TypeVar('T')

CLOSING_SECONDS = 10.0
"""How long `close` waits for the client to disconnect."""


class Connection:
    """A client that is connected by the first call, and again by the next one if the connection was lost."""

    def __init__(self, make_client: Callable[[], Client[Any]]) -> None:
        """Remember how to make a client."""
        self._make_client = make_client
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._end: Callable[[], object] | None = None
        self._changed = threading.Event()

    def call(self, work: Callable[[Client[Any]], Awaitable[T]], seconds: float) -> T:
        """Run `work` with the client and return its result. Blocks the calling thread.

        Raises:
            TimeoutError: It took longer than `seconds`.
        """
        return self._running().call(work, seconds)

    @property
    def has_changed(self) -> bool:
        """Whether the server's list has changed, or may have, since the last `forget_changes`."""
        return self._changed.is_set()

    def note_change(self) -> None:
        """Note that the list is to be read again."""
        self._changed.set()

    def forget_changes(self) -> None:
        """Forget the changes so far, because the list is about to be read."""
        self._changed.clear()

    def close(self) -> None:
        """Disconnect. The next call connects again."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None and self._end is not None:
            self._end()
            worker.join()

    def _running(self) -> _Worker:
        with self._lock:
            # In a process that was forked, the thread is gone.
            if self._worker is None or not self._worker.is_alive:
                self._worker = _Worker(self._make_client, self._changed)
                self._end = weakref.finalize(self, self._worker.stop)
            return self._worker


class _Worker:
    """The thread, its loop and the client in it. It holds no reference to the connection, which may be collected."""

    def __init__(self, make_client: Callable[[], Client[Any]], changed: threading.Event) -> None:
        self._make_client = make_client
        self._changed = changed
        self._started = threading.Event()
        self._client: Client[Any] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        """The task that holds the client open, and the one that listens to the server."""
        # A daemon, so that a program which forgets to close a registry ends all the same.
        self._thread = threading.Thread(target=asyncio.run, args=(self._main(),), daemon=True, name='mcp-skills')
        self._thread.start()
        self._started.wait()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def call(self, work: Callable[[Client[Any]], Awaitable[T]], seconds: float) -> T:
        return asyncio.run_coroutine_threadsafe(self._use(work, seconds), self._loop).result()

    def stop(self) -> None:
        """Let the thread end. It may be called by the garbage collector, in any thread."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stop.set)

    def join(self) -> None:
        self._thread.join(CLOSING_SECONDS)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop, self._connecting = asyncio.Event(), asyncio.Lock()
        self._started.set()
        await self._stop.wait()
        await self._disconnect()

    async def _use(self, work: Callable[[Client[Any]], Awaitable[T]], seconds: float) -> T:
        async with asyncio.timeout(seconds):
            before = self._client
            client = await self._connected()
            try:
                return await work(client)
            except Exception as error:
                if not _is_loss(error):
                    raise
                await self._disconnect()
                if client is not before:
                    raise
            # The server was restarted, or has closed the connection: one more attempt.
            return await work(await self._connected())

    async def _connected(self) -> Client[Any]:
        async with self._connecting:
            if self._client is None or any(task.done() for task in self._tasks):
                await self._disconnect()
                client = self._make_client()
                opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._tasks = [asyncio.create_task(self._hold(client, opened))]
                await opened
                self._client = client
                self._tasks.append(asyncio.create_task(self._listen(client)))
            return self._client

    async def _hold(self, client: Client[Any], opened: asyncio.Future[None]) -> None:
        """Keep a client open. It is entered and left by one task, as its task groups demand."""
        try:
            async with client:
                opened.set_result(None)
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001 - passed on to whoever waits for the connection
            with suppress(asyncio.InvalidStateError):  # nobody waits any more
                opened.set_exception(error)

    async def _listen(self, client: Client[Any]) -> None:
        """Wait for the server to say that its list has changed; without end, if it never says so."""
        try:
            async with listen(client.session, resources_list_changed=True) as events:
                async for _ in events:
                    self._changed.set()
        except MCPError:
            await asyncio.Event().wait()  # it does not say
        except Exception:  # noqa: BLE001 - the stream was lost, and with it what it would have said
            self._changed.set()

    async def _disconnect(self) -> None:
        tasks, self._tasks, self._client = self._tasks, [], None
        for task in tasks:
            task.cancel()
        for task in tasks:
            await asyncio.wait([task], timeout=CLOSING_SECONDS)


def _is_loss(error: Exception) -> bool:
    """Whether an error means that the connection was lost. An error that the server answers with does not."""
    if isinstance(error, MCPError):
        return error.code == mcp_types.CONNECTION_CLOSED
    return not isinstance(error, TimeoutError | ValueError)
