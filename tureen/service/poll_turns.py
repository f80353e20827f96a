"""Requests of clients that poll yield to all others: they are handled when the event loop is idle, or after a while.

A client that accepts a response of some age (`Cache-Control: max-age=1`, as the page sends) does not mind if it comes a
few milliseconds later. Others do: while many invocations wait for the event loop, each poll that is handled among them
delays all that come after it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

IDLE_SECONDS = 0.0003
"""A turn of the event loop that takes less had nothing to do."""

MAX_WAIT = 0.05
"""The most seconds for which a poll yields."""


async def yield_to_others(clock: Callable[[], float] = time.perf_counter) -> None:
    """Let the event loop handle everything else that is ready, again and again until that is nothing."""
    now = clock()
    deadline = now + MAX_WAIT
    while now < deadline:
        began = now
        await asyncio.sleep(0)
        now = clock()
        if now - began < IDLE_SECONDS:
            return
