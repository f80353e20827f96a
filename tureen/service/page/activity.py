"""The activity of the last minutes: rates and latencies, sampled every two seconds.

A sample reads counters in memory, so that a server without open pages pays microseconds for it. All pages show the same
samples.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import Counter, Histogram

from tureen.service.metrics import Metrics

SAMPLE_SECONDS = 2.0
"""The seconds between two samples."""

KEPT_SAMPLES = 450
"""The most samples that are kept: a quarter of an hour."""

Buckets = tuple[tuple[float, float], ...]
"""The upper bounds of a histogram's buckets, and the number of values up to each."""


@dataclass(frozen=True)
class ActivitySample:
    """What happened in the seconds before a moment; times in seconds, None where nothing was measured."""

    at: float
    """Seconds since the epoch."""
    rows_per_second: float
    changes_per_second: float
    invocations_per_second: float
    invocation_p50: float | None
    invocation_p99: float | None
    freshness_p50: float | None
    freshness_p99: float | None
    followers: int
    memory_bytes: int


@dataclass(frozen=True)
class _Counts:
    """The counters at a moment."""

    at: float
    rows: float
    changes: float
    invocations: Buckets
    freshness: Buckets


class ActivityHistory:
    """The last samples of a server."""

    def __init__(self, metrics: Metrics, followers: Callable[[], int], clock: Callable[[], float] = time.time) -> None:
        """Sample these metrics."""
        self._metrics, self._followers, self._clock = metrics, followers, clock
        self._samples: deque[ActivitySample] = deque(maxlen=KEPT_SAMPLES)
        self._last = self._read()

    def sample(self) -> None:
        """Add a sample of the time since the last one."""
        now, last = self._read(), self._last
        seconds = max(now.at - last.at, 1e-3)
        invocations, freshness = _since(last.invocations, now.invocations), _since(last.freshness, now.freshness)
        self._samples.append(
            ActivitySample(
                at=now.at,
                rows_per_second=(now.rows - last.rows) / seconds,
                changes_per_second=(now.changes - last.changes) / seconds,
                invocations_per_second=(invocations[-1][1] if invocations else 0.0) / seconds,
                invocation_p50=quantile(invocations, 0.5),
                invocation_p99=quantile(invocations, 0.99),
                freshness_p50=quantile(freshness, 0.5),
                freshness_p99=quantile(freshness, 0.99),
                followers=self._followers(),
                memory_bytes=resident_bytes(),
            )
        )
        self._last = now

    def samples(self, after: float = 0.0) -> list[ActivitySample]:
        """The samples after a moment, the oldest first."""
        return [sample for sample in self._samples if sample.at > after]

    def _read(self) -> _Counts:
        metrics = self._metrics
        return _Counts(
            self._clock(),
            _value(metrics.rows),
            _value(metrics.changes),
            _buckets(metrics.invocations),
            _buckets(metrics.freshness),
        )


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """A quantile of the values in buckets, by interpolation within a bucket; None if there are no values.

    >>> quantile([(1.0, 0.0), (2.0, 10.0), (float("inf"), 10.0)], 0.5)
    1.5
    """
    total = buckets[-1][1] if buckets else 0.0
    if not total:
        return None
    rank, low, below = share * total, 0.0, 0.0
    for high, count in buckets:
        if count >= rank and count > below:
            # Values above the last bound are only known to be above it.
            return low if high == float("inf") else low + (high - low) * (rank - below) / (count - below)
        low, below = high, count
    return low


def resident_bytes() -> int:
    """The memory of this process."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _since(before: Buckets, after: Buckets) -> Buckets:
    return tuple((bound, count - earlier) for (bound, count), (_, earlier) in zip(after, before, strict=True))


def _value(counter: Counter) -> float:
    return next(sample.value for sample in next(iter(counter.collect())).samples if sample.name.endswith("_total"))


def _buckets(histogram: Histogram) -> Buckets:
    samples = next(iter(histogram.collect())).samples
    return tuple((float(sample.labels["le"]), sample.value) for sample in samples if sample.name.endswith("_bucket"))
