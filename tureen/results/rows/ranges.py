"""Which tuples of each segment a window contains.

A segment is in (time, id) order, so a window contains one interval of each segment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tureen.results.snapshot.segment import Segment
from tureen.window import Span

Range = tuple[int, int]


def ranges_of(segments: Sequence[Segment], span: Span, horizon: int | None) -> list[Range]:
    """For each segment, the first tuple in the window and the one after the last."""
    ranges = [_by_time(segment, later(span.begin, horizon), span.end) for segment in segments]
    if not span.counts_rows:
        return ranges
    counted = _by_count(segments, span, horizon)
    return [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(ranges, counted, strict=True)]


def later(begin: int | None, horizon: int | None) -> int | None:
    """The later of two times at which something begins; None has no begin.

    >>> later(3, 5), later(None, 5), later(None, None)
    (5, 5, None)
    """
    if begin is None or horizon is None:
        return horizon if begin is None else begin
    return max(begin, horizon)


def _by_time(segment: Segment, begin: int | None, end: int | None) -> Range:
    first = 0 if begin is None else segment.rows_before(begin, inclusive=False)
    last = segment.rows if end is None else segment.rows_before(end, inclusive=True)
    return first, max(first, last)


def _by_count(segments: Sequence[Segment], span: Span, horizon: int | None) -> list[Range]:
    """Number the tuples up to `until` back from the latest by (time, id), and return those in the window."""
    within = [_by_time(segment, horizon, span.until) for segment in segments]
    limit = sum(last - first for first, last in within) if span.take is None else span.take
    # Of each segment only its last `limit` tuples can be among the `limit` latest of all.
    candidates = [(max(first, last - limit), last) for first, last in within]
    owners = np.concatenate(
        [np.full(last - first, number) for number, (first, last) in enumerate(candidates)] or [np.empty(0)]
    ).astype(np.int64)
    times = [
        segment.times(first, last) for segment, (first, last) in zip(segments, candidates, strict=True) if last > first
    ]
    order = np.argsort(np.concatenate(times), kind="stable") if times else np.empty(0, np.int64)
    latest_first = owners[order][::-1]
    taken = np.bincount(latest_first[:limit], minlength=len(segments))
    skipped = np.bincount(latest_first[: min(span.skip, limit)], minlength=len(segments))
    return [
        (last - int(take), last - int(skip)) for (_, last), take, skip in zip(candidates, taken, skipped, strict=True)
    ]
