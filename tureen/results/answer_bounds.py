"""What an answer tells beside its rows: its window, its position, and whether tuples may be missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tureen.pot.streams import Stream
from tureen.query import Query
from tureen.results.answer import Bounds
from tureen.results.snapshot.past_state import has_all_tuples
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.window import Span


def position_of(snapshot: Snapshot, query: Query, now: int) -> str:
    """The position of an answer; with NOW for groups, which change as time passes."""
    return snapshot.position if query.grouping is None else str(snapshot.position_at(now))


def bounds_of(spans: Sequence[Span]) -> Bounds:
    """The window of an answer: from the earliest begin to the latest end of its inputs."""
    if not spans:
        return Bounds.of(None, None)
    begin, end = spans[0].begin, end_of(spans[0])
    for span in spans[1:]:
        # One that is open leaves the bound open.
        begin = None if begin is None or span.begin is None else min(begin, span.begin)
        end = None if end is None or (last := end_of(span)) is None else max(end, last)
    return Bounds.of(begin, end)


def is_complete(state: StreamState, span: Span, held: int, horizon: int | None) -> bool:
    """Whether all tuples of the window are retained; `held` is the number of tuples in it."""
    if horizon is None:
        return True
    if span.begin is not None and span.begin < horizon:
        return False
    if span.take is None:
        # Without a begin, the window is what a duration retains; but what others do not need is no answer.
        return span.begin is not None or not state.stream.keeps_needed
    return held + span.skip >= span.take or has_all_tuples(state, None, horizon)


def end_of(span: Span) -> int | None:
    """The last instant of a window, which ends at NOW at the latest where it counts rows."""
    if span.until is None:
        return span.end
    return span.until if span.end is None else min(span.end, span.until)


def note_of(snapshot: Snapshot, streams: Iterable[Stream]) -> str | None:
    """Why tuples of other servers may be missing; None if none are."""
    if not snapshot.troubles:
        return None
    replicas = (stream.id for stream in streams if stream.replica_of is not None)
    return (
        "; ".join(dict.fromkeys(snapshot.troubles[number] for number in replicas if number in snapshot.troubles))
        or None
    )
