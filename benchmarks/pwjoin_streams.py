"""The streams of PWJoin's experiments (§6.1): `punct-[order]-[segment size]-[share of matches]`.

A segment ends with a punctuation of a value. Its size, and the share of its tuples that have this value, are Poisson
distributed. The other tuples have values that are punctuated later; the paper does not say which: here one of the next
ten. The time between two tuples is Poisson distributed with a mean of 10 milliseconds, as in the paper, or less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tureen.punctuation import Punctuation
from tureen.window import from_micros

START = 1_700_000_000_000_000
AHEAD = 10
"""The number of values from which tuples take theirs that do not match the next punctuation."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StreamSpec:
    """What a stream is like; without an order, it has no punctuations and uniform values."""

    order: str | None = "asc"
    segment: int = 100
    matches: int = 40
    irrelevant: Literal["outside", "between"] | None = None
    """Punctuations are about values that no tuple has: less than all values of tuples, or between them."""
    values: int = 15_000
    """The number of uniform values."""
    rate: int = 100
    """Tuples per second, in the mean."""

    def __str__(self) -> str:
        """The name that the paper gives it."""
        if self.order is None:
            return f"no punctuation, {self.values:,} values"
        return f"punct-{self.order}-{self.segment}-{self.matches}"


@dataclass(frozen=True)
class GeneratedStream:
    """Tuples in order, and punctuations, each after a number of tuples."""

    values: Numbers
    times: Numbers
    places: Numbers
    closed: Numbers

    def items(self, begin: int, end: int) -> list[Any]:
        """The rows and punctuations between two times."""
        first, last = np.searchsorted(self.times, [begin, end])
        # A punctuation stands after its last tuple, and comes with it.
        punctuations = {
            int(place): int(value)
            for place, value in zip(self.places, self.closed, strict=True)
            if first < place <= last
        }
        items: list[Any] = []
        for row in range(int(first), int(last)):
            items.append({"k": int(self.values[row]), "ts": from_micros(int(self.times[row]))})
            if row + 1 in punctuations:
                items.append(Punctuation(k=punctuations[row + 1]))
        return items


def generate(spec: StreamSpec, seconds: int, seed: int) -> GeneratedStream:
    """A stream of that many seconds."""
    random = np.random.default_rng(seed)
    count = seconds * spec.rate
    # In microseconds, because milliseconds would be zero too often at high rates.
    gaps = random.poisson(10, count) * (100_000 // spec.rate)
    times = START + np.cumsum(gaps)
    if spec.order is None:
        nothing = np.empty(0, np.int64)
        return GeneratedStream(random.integers(0, spec.values, count), times, nothing, nothing)
    segments = 2 * count // spec.segment + AHEAD + 1
    order = np.arange(segments)
    if spec.order != "asc":
        order = order[::-1].copy() if spec.order == "desc" else random.permutation(segments)
    values, places, closed = [], [], []
    size = 0
    for number in range(segments - AHEAD):
        length = max(1, int(random.poisson(spec.segment)))
        matching = random.random(length) < random.poisson(spec.matches) / 100
        later = order[number + 1 + random.integers(0, AHEAD, length)]
        values.append(np.where(matching, order[number], later))
        size += length
        places.append(size)
        closed.append(order[number])
        if size >= count:
            break
    within = [place <= count for place in places]
    return GeneratedStream(
        _spread(spec, np.concatenate(values)[:count].astype(np.int64)),
        times,
        np.array(places)[within],
        _closed(spec, np.array(closed)[within].astype(np.int64)),
    )


def _spread(spec: StreamSpec, values: Numbers) -> Numbers:
    """The values of tuples: even numbers, if punctuations are about values between them."""
    return 2 * values if spec.irrelevant == "between" else values


def _closed(spec: StreamSpec, values: Numbers) -> Numbers:
    """The values of punctuations, given those of the tuples that they are about in a stream with relevant ones."""
    if spec.irrelevant is None:
        return values
    return 2 * values + 1 if spec.irrelevant == "between" else -1 - values
