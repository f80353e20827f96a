"""Threads that the calls of many followers share."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

CALLS_PER_THREAD = 16
"""The most calls of followers that one thread gets at a time."""

MAX_THREADS = 8
"""The maximum number of threads that run calls at a time: fewer slow calls than that delay no others."""

Result = TypeVar("Result")
QueuedCall = tuple[asyncio.Future[Any], Callable[[], Any]]


class SharedThreads:
    """Runs calls of many tasks in a few threads.

    A push wakes all followers. If each of them asked for a thread, most of the time would be spent on handovers between
    the event loop and the threads. So calls that come together are handed over together, and so are those that come
    while all threads are busy.
    """

    def __init__(self) -> None:
        """Start without calls."""
        self._queued: deque[QueuedCall] = deque()
        self._is_scheduled = False
        self._groups: set[asyncio.Task[None]] = set()
        """The calls that run, in groups."""

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run a call in a thread, and return its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._queued.append((future, call))
        if not self._is_scheduled:
            # After the tasks that are ready, which may have calls too.
            self._is_scheduled = True
            loop.call_soon(self._hand_over)
        return await future

    def _hand_over(self) -> None:
        self._is_scheduled = False
        while self._queued and len(self._groups) < MAX_THREADS:
            group = [self._queued.popleft() for _ in range(min(CALLS_PER_THREAD, len(self._queued)))]
            task = asyncio.get_running_loop().create_task(self._run_group(group))
            self._groups.add(task)
            task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._groups.discard(task)
        self._hand_over()

    async def _run_group(self, group: Sequence[QueuedCall]) -> None:
        outcomes = await asyncio.to_thread(lambda: [_outcome(call) for _, call in group])
        for (future, _), outcome in zip(group, outcomes, strict=True):
            if future.done():
                continue  # the connection was closed in the meantime
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


def _outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or its error."""
    try:
        return call()
    except Exception as error:
        return error
