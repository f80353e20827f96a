"""The largest number of standing queries for which changes are visible within two seconds at a steady rate of rows.

A *probe* registers a number of queries, pushes rows for some time, and returns the freshness: the time from a row's
push until an answer or a feed shows it (99th percentile, after a warm-up). `walk` finds the largest number of queries
whose freshness stays within a limit.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scale import Scale

LIMIT = 2.0
"""The required freshness, in seconds."""


@dataclass(frozen=True)
class Ceiling:
    """The largest number that was sustained, the smallest that was not (None if all were), and all that were tried."""

    sustained: int
    broken: int | None
    tried: Mapping[int, float]


def walk(
    probe: Callable[[int], float], limit: float, *, first: int, most: int, factor: int = 4, steps: int = 2
) -> Ceiling:
    """Find the largest number for which a probe stays within a limit: increase it by a factor, then bisect.

    If the first number is too large, decrease it instead. The bisection is logarithmic and takes `steps` steps.
    """
    tried: dict[int, float] = {}

    def holds(number: int) -> bool:
        tried[number] = probe(number)
        return tried[number] <= limit

    sustained, broken, number = 0, None, min(first, most)
    if holds(number):
        sustained = number
        while sustained < most and broken is None:
            number = min(sustained * factor, most)
            if holds(number):
                sustained = number
            else:
                broken = number
    else:
        broken = number
        while sustained == 0 and number > 1:
            number = max(number // factor, 1)
            if holds(number):
                sustained = number
            else:
                broken = number
    if broken is not None and sustained:
        for _ in range(steps):
            middle = max(math.isqrt(sustained * broken), sustained + 1)
            if middle == broken:
                break
            if holds(middle):
                sustained = middle
            else:
                broken = middle
    return Ceiling(sustained, broken, tried)


@dataclass(frozen=True)
class Delays:
    """Percentiles of the delays until rows were visible, in seconds."""

    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, delays: Sequence[float]) -> Delays:
        """Percentiles of delays; `NEVER` if there are none."""
        if not delays:
            return NEVER
        p99 = sorted(delays)[math.ceil(0.99 * len(delays)) - 1]
        return cls(statistics.median(delays), p99, max(delays))


NEVER = Delays(math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class PushSchedule:
    """Pushes of equal size at equal intervals; the first `warm` pushes are the warm-up."""

    rows: int
    every: float
    warm: int
    pushes: int

    @classmethod
    def of(cls, scale: Scale) -> PushSchedule:
        """The pushes of the warm-up and the measured time."""
        warm = round(scale.warm_seconds / scale.push_every)
        return cls(
            round(scale.rate * scale.push_every),
            scale.push_every,
            warm,
            warm + round(scale.seconds / scale.push_every),
        )

    @property
    def seconds(self) -> float:
        """The duration of all pushes."""
        return self.pushes * self.every

    def play(self, push: Callable[[int, float], None]) -> None:
        """Call `push` with the number of each push, from 1 on, and the time at which it was due.

        A push that is late because earlier pushes took too long keeps its due time, so its rows count as older.
        """
        began = time.perf_counter()
        for number in range(1, self.pushes + 1):
            due = began + (number - 1) * self.every
            time.sleep(max(0.0, due - time.perf_counter()))
            push(number, due)
