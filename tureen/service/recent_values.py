"""Recent values: what many clients poll for is computed and encoded once, for all that accept a value of that age.

A client says which age it accepts with the header `Cache-Control: max-age=1`, as the page does. Without it, each
response is computed after its request has arrived, so that it reflects all that was acknowledged before.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")

MAX_VALUES = 64
"""The maximum number of values; the least recently used are dropped."""

MAX_AGE = 10.0
"""The most seconds for which a value is used, whatever a client accepts."""

_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])", re.IGNORECASE)


class _Computation(NamedTuple):
    """A value that is computed or is being computed, and when that began."""

    began_at: float
    task: asyncio.Task[Any]


class RecentValues:
    """The last value of each key; used in one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without values."""
        self._clock = clock
        self._known: LRUCache[Hashable, _Computation] = LRUCache(MAX_VALUES)

    async def get(self, key: Hashable, max_age: float, compute: Callable[[], Awaitable[Value]]) -> Value:
        """The value of a key; computed unless one that is at most `max_age` seconds old is known or being computed.

        The key must tell everything that the value depends on besides time, including who may see it.
        """
        if max_age <= 0:
            return await compute()
        known, now = self._known.get(key), self._clock()
        if known is None or now - known.began_at >= max_age:
            known = self._known[key] = _Computation(now, asyncio.ensure_future(_run(compute)))
            known.task.add_done_callback(lambda task: self._drop_failed(key, task))
        # A client that disconnects does not cancel what others wait for.
        value: Value = await asyncio.shield(known.task)
        return value

    def _drop_failed(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        if task.cancelled() or task.exception() is not None:
            known = self._known.get(key)
            if known is not None and known.task is task:
                del self._known[key]


async def _run(compute: Callable[[], Awaitable[Value]]) -> Value:
    return await compute()


def accepted_age(headers: Mapping[str, str]) -> float:
    """How many seconds old a response may be by the Cache-Control header of its request.

    >>> [accepted_age({"cache-control": value}) for value in ("max-age=2", "no-cache", "max-age=1e9")]
    [2.0, 0.0, 0.0]
    """
    value = headers.get("cache-control")
    match = None if value is None else _MAX_AGE.search(value)
    return 0.0 if match is None else min(float(match.group(1)), MAX_AGE)
