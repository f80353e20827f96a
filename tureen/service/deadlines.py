"""Deadlines of many waiting tasks, with one timer for all of them."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

CLOCK_RESOLUTION = 0.005
"""Deadlines within this many seconds are one, and a timeout with at most as many left has expired."""


class Deadlines:
    """Ends the waiting of tasks at their deadlines, at most `CLOCK_RESOLUTION` later.

    A follower waits again after each push. If each had a timer of the event loop, a push would cancel and create as
    many as there are followers.
    """

    def __init__(self) -> None:
        """Start without waiting tasks."""
        self._waiting: dict[int, set[asyncio.Future[None]]] = {}
        """The tasks that wait until each multiple of the resolution."""
        self._timer: asyncio.TimerHandle | None = None
        self._next_tick = 0
        """When the timer rings, which the handles of some event loops do not show."""

    async def wait(self, waiter: asyncio.Future[None], seconds: float) -> None:
        """Wait until a future is done, or until `seconds` have passed; the future is done then."""
        loop = asyncio.get_running_loop()
        # Not before the deadline; one in the distant past or future must not overflow.
        tick = math.ceil((loop.time() + min(max(seconds, 0.0), 1e9)) / CLOCK_RESOLUTION)
        self._waiting.setdefault(tick, set()).add(waiter)
        if self._timer is None or tick < self._next_tick:
            self._set_timer(loop, tick)
        try:
            await waiter
        finally:
            with suppress(KeyError):
                waiting = self._waiting[tick]
                waiting.discard(waiter)
                if not waiting:
                    del self._waiting[tick]

    def _set_timer(self, loop: asyncio.AbstractEventLoop, tick: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_tick = tick
        self._timer = loop.call_at(tick * CLOCK_RESOLUTION, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        """End what is due, and set the timer for the next deadline."""
        self._timer = None
        now = loop.time()
        for tick in sorted(tick for tick in self._waiting if tick * CLOCK_RESOLUTION <= now + CLOCK_RESOLUTION / 10):
            for waiter in self._waiting.pop(tick):
                if not waiter.done():
                    waiter.set_result(None)
        if self._waiting:
            self._set_timer(loop, min(self._waiting))
