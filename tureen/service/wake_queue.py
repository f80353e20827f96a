"""Makes many calls in groups, so that the event loop does other work between two groups.

Each call wakes a waiting task, or writes an event for it. An event loop sends what was written when all tasks that are
ready have run. If thousands of followers became ready at once, the first would be sent its event when the last has
written, and all other requests would wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable

logger = logging.getLogger(__name__)

WOKEN_AT_A_TIME = 32
"""The number of calls between two turns of other tasks; 32 tasks that are woken take two milliseconds."""

Call = Callable[[], None]


class WakeQueue:
    """Calls that are to be made, in order; used in one event loop."""

    def __init__(self) -> None:
        """Start with none."""
        self._first: deque[Call] = deque()
        self._queued: deque[Call] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, calls: Iterable[Call], *, first: bool = False) -> None:
        """Make these calls after those that were added before; with `first`, before all others."""
        (self._first if first else self._queued).extend(calls)
        if self._has_calls and (self._task is None or self._task.done()):
            self._wake_group()
            if self._has_calls:
                self._task = asyncio.get_running_loop().create_task(self._wake_groups())

    @property
    def _has_calls(self) -> bool:
        return bool(self._first or self._queued)

    async def _wake_groups(self) -> None:
        while self._has_calls:
            # The tasks that the group before has woken run first, and what was written is sent.
            await asyncio.sleep(0)
            self._wake_group()

    def _wake_group(self) -> None:
        for _ in range(WOKEN_AT_A_TIME):
            if not self._has_calls:
                return
            self._make_next()

    def _make_next(self) -> None:
        call = (self._first or self._queued).popleft()
        try:
            call()
        except Exception:
            # It concerns one follower, whose deadline ends its waiting; the others get their calls.
            logger.exception("a follower could not be told of news")

    def wake_all(self) -> None:
        """Make all calls now."""
        while self._has_calls:
            self._make_next()


def wake(waiter: asyncio.Future[None]) -> None:
    """End the waiting of a task, unless it has ended."""
    if not waiter.done():
        waiter.set_result(None)
