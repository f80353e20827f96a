"""How many standing queries are held: rows arrive at a steady rate, and what they change is seen within two seconds.

A *probe* lets so many queries stand, lets rows arrive for a stretch of time, and gives the freshness: the time from a
row's push to the moment when an answer or a feed shows it (its 99th percentile, after a warm-up). `walk` finds the
largest number of queries whose freshness stays within a limit.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scale import Scale

LIMIT = 2.0
"""The freshness that is wanted, in seconds."""


@dataclass(frozen=True)
class Ceiling:
    """The most that was held, the least that was not (None if everything was), and all that was tried."""

    held: int
    broken: int | None
    tried: Mapping[int, float]


def walk(
    probe: Callable[[int], float], limit: float, *, first: int, most: int, factor: int = 4, steps: int = 2
) -> Ceiling:
    """Find the largest number for which a probe stays within a limit, walking up by a factor and then bisecting.

    If the first one is too many already, walk down. Numbers are halved on a logarithmic scale, `steps` times.
    """
    tried: dict[int, float] = {}

    def holds(number: int) -> bool:
        tried[number] = probe(number)
        return tried[number] <= limit

    held, broken, number = 0, None, min(first, most)
    if holds(number):
        held = number
        while held < most and broken is None:
            number = min(held * factor, most)
            if holds(number):
                held = number
            else:
                broken = number
    else:
        broken = number
        while held == 0 and number > 1:
            number = max(number // factor, 1)
            if holds(number):
                held = number
            else:
                broken = number
    if broken is not None and held:
        for _ in range(steps):
            middle = max(math.isqrt(held * broken), held + 1)
            if middle == broken:
                break
            if holds(middle):
                held = middle
            else:
                broken = middle
    return Ceiling(held, broken, tried)


@dataclass(frozen=True)
class Freshness:
    """How late rows were seen, in seconds."""

    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, late: Sequence[float]) -> Freshness:
        """Percentiles of the delays; nothing seen is never."""
        if not late:
            return NEVER
        p99 = sorted(late)[math.ceil(0.99 * len(late)) - 1]
        return cls(statistics.median(late), p99, max(late))


NEVER = Freshness(math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class Pace:
    """Pushes of so many rows, equally far apart in time; the first ones warm up."""

    rows: int
    every: float
    warm: int
    pushes: int

    @classmethod
    def of(cls, scale: Scale) -> Pace:
        """As many pushes as fill the stretch and its warm-up."""
        warm = round(scale.warm_seconds / scale.push_every)
        return cls(
            round(scale.rate * scale.push_every),
            scale.push_every,
            warm,
            warm + round(scale.seconds / scale.push_every),
        )

    @property
    def seconds(self) -> float:
        """How long all of them take."""
        return self.pushes * self.every

    def play(self, push: Callable[[int, float], None]) -> None:
        """Call `push` with the number of each push, from 1 on, and the moment at which it was due.

        A push that comes late because those before it took too long was due all the same: its rows are that much older.
        """
        began = time.perf_counter()
        for number in range(1, self.pushes + 1):
            due = began + (number - 1) * self.every
            time.sleep(max(0.0, due - time.perf_counter()))
            push(number, due)
