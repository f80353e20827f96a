"""Wakes many waiting tasks in groups, so that the event loop does other work between two groups.

An event loop sends what tasks have written when all tasks that are ready have run. If thousands of followers became
ready at once, the first would be sent its event when the last has written, and all other requests would wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

WOKEN_AT_A_TIME = 32
"""The number of tasks that are woken between two turns of other tasks; 32 followers take two milliseconds."""


class WakeQueue:
    """Waiting tasks that are to be woken, in order; used in one event loop."""

    def __init__(self) -> None:
        """Start with none."""
        self._queued: deque[asyncio.Future[None]] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, waiters: Iterable[asyncio.Future[None]]) -> None:
        """Wake these tasks after those that were added before."""
        self._queued.extend(waiters)
        if self._queued and (self._task is None or self._task.done()):
            self._wake_group()
            if self._queued:
                self._task = asyncio.get_running_loop().create_task(self._wake_groups())

    async def _wake_groups(self) -> None:
        while self._queued:
            # The tasks of the group before run first, and what they have written is sent.
            await asyncio.sleep(0)
            self._wake_group()

    def _wake_group(self) -> None:
        for _ in range(min(WOKEN_AT_A_TIME, len(self._queued))):
            wake(self._queued.popleft())

    def wake_all(self) -> None:
        """Wake all of them now."""
        while self._queued:
            wake(self._queued.popleft())


def wake(waiter: asyncio.Future[None]) -> None:
    """End the waiting of a task, unless it has ended."""
    if not waiter.done():
        waiter.set_result(None)
