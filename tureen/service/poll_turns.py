"""Requests of clients that poll yield to all others: they are handled when the event loop is idle, or after a while.

A client that accepts a response of some age (`Cache-Control: max-age=1`, as the page sends) does not mind if it comes a
few milliseconds later. Others do: while many invocations wait for the event loop, each poll that is handled among them
delays all that come after it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tureen.service.wake_queue import wake

IDLE_SECONDS = 0.0003
"""A turn of the event loop that takes less had nothing to do."""

MAX_WAIT = 0.05
"""The most seconds for which a poll yields."""


class _WaitingPoll(NamedTuple):
    """A poll that yields."""

    deadline: float
    waiter: asyncio.Future[None]


class PollTurns:
    """The polls that yield, in order; used in one event loop.

    One task watches the event loop for all of them: if each did, many would keep it busy.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Start without polls."""
        self._clock = clock
        self._waiting: deque[_WaitingPoll] = deque()
        self._task: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Wait until the event loop has handled everything else that is ready, or for `MAX_WAIT`."""
        loop = asyncio.get_running_loop()
        poll = _WaitingPoll(self._clock() + MAX_WAIT, loop.create_future())
        self._waiting.append(poll)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._watch())
        await poll.waiter

    async def _watch(self) -> None:
        """Let one poll go on after each turn of the event loop that took no time, and those that have waited enough."""
        now = self._clock()
        while self._waiting:
            began = now
            await asyncio.sleep(0)
            now = self._clock()
            if now - began < IDLE_SECONDS:
                wake(self._waiting.popleft().waiter)
            while self._waiting and self._waiting[0].deadline <= now:
                wake(self._waiting.popleft().waiter)
