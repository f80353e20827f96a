"""Shared answers: pages that poll one query get what was rendered for another page, while nothing new has happened.

A client that accepts an answer of some age (`Cache-Control: max-age=1`) gets one of this age only if there was no push
and no commit since. So it misses no tuple, and only the edges of a window that moves with the clock may lag behind.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from cachetools import LRUCache

from tureen.pot.pot_progress import Moment
from tureen.service.rendering import Rendered, ResponseFormat

MAX_BYTES = 64 << 20
"""The maximum size of all answers in bytes; the least recently used are dropped."""


class AnswerKey(NamedTuple):
    """What an answer depends on besides the tuples and the time."""

    principal: str
    handle: str
    response_format: ResponseFormat


class _KnownAnswer(NamedTuple):
    """An answer, and when it was computed."""

    moment: Moment
    began_at: float
    rendered: Rendered


class SharedAnswers:
    """The last answers that clients have polled; used in one event loop."""

    def __init__(
        self,
        current_moment: Callable[[], Moment],
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without answers; `current_moment` tells whether there were pushes or commits."""
        self._current_moment, self._clock = current_moment, clock
        self._known: LRUCache[AnswerKey, _KnownAnswer] = LRUCache(max_bytes, _bytes_of)

    async def get(self, key: AnswerKey, max_age: float, invoke: Callable[[], Awaitable[Rendered]]) -> Rendered:
        """An answer that is at most `max_age` seconds old and reflects all pushes and commits so far."""
        # Both are read before the answer is computed: what happens meanwhile may not be in it.
        moment, began_at = self._current_moment(), self._clock()
        known = self._known.get(key)
        if known is not None and known.moment == moment and began_at - known.began_at < max_age:
            return known.rendered
        rendered = await invoke()
        answer = _KnownAnswer(moment, began_at, rendered)
        # Chunks can be read only once.
        if isinstance(rendered.body, bytes) and _bytes_of(answer) <= self._known.maxsize:
            self._known[key] = answer
        return rendered


def _bytes_of(answer: _KnownAnswer) -> int:
    return 1_000 + len(answer.rendered.body) if isinstance(answer.rendered.body, bytes) else 0
