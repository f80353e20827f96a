"""What keeps a tuple out of an answer before any join: retention, the window and the clause of its input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tureen.errors import LimitExceeded, QueryFailed
from tureen.matching import holds
from tureen.matching.opaque import evaluate
from tureen.predicate import AllOf, AnyOf, Clause, Interval, IsNull, Opaque, Predicate, Within, columns_of
from tureen.results.rows.ranges import ranges_of
from tureen.results.snapshot.stream_state import StreamState
from tureen.stems.index import Block
from tureen.why.asked_tuples import AskedTuple, Place
from tureen.why.explanation import Reason, value_text
from tureen.why.shown_values import ShownInput, duration_text, failed_factor
from tureen.window import Span, from_micros


@dataclass(frozen=True)
class StreamWindow:
    """A stream, its window at one NOW, and the time before which its tuples have expired."""

    state: StreamState
    span: Span
    horizon: int | None

    def reasons(self, asked: AskedTuple) -> Iterator[Reason]:
        """Why a tuple is not in the window, if it is not."""
        assert asked.time is not None
        assert asked.place is not None
        horizon, span = self.horizon, self.span
        if horizon is not None and asked.time < horizon:
            yield Reason(
                "expired",
                f"expired: its time is {duration_text(horizon - asked.time)} before {_moment(horizon)}, from which on "
                "tuples are retained",
                distance=_seconds(horizon - asked.time),
            )
        elif span.begin is not None and asked.time < span.begin:
            before = span.begin - asked.time
            text = f"outside the window: {duration_text(before)} before it begins at {_moment(span.begin)}"
            yield Reason("window", text, distance=_seconds(before))
        elif span.end is not None and asked.time > span.end:
            after = asked.time - span.end
            text = f"outside the window: {duration_text(after)} after it ends at {_moment(span.end)}"
            yield Reason("window", text, distance=_seconds(after))
        elif not self._contains(asked.place):
            yield self._not_counted(asked.place, asked.time)

    @property
    def rows(self) -> int:
        """The number of tuples in the window."""
        return sum(last - first for first, last in ranges_of(self.state.segments, self.span, self.horizon))

    def _contains(self, place: Place) -> bool:
        ranges = ranges_of(self.state.segments, self.span, self.horizon)
        first, last = ranges[self._number(place)]
        return first <= place.position < last

    def _number(self, place: Place) -> int:
        return next(n for n, segment in enumerate(self.state.segments) if segment is place.segment)

    def _not_counted(self, place: Place, time: int) -> Reason:
        """Why a tuple is not in a window of rows."""
        span = self.span
        assert span.until is not None
        if time > span.until:
            after = time - span.until
            text = f"outside the window: {duration_text(after)} after NOW, {_moment(span.until)}, up to which it counts"
            return Reason("window", text, distance=_seconds(after))
        number = 1 + self._later(place, time, span.until)
        beyond = span.skip + 1 - number if span.take is None or number <= span.skip else number - span.take
        if span.take is None:
            counted = f"contains all but the latest {span.skip:,}"
        else:
            counted = f"contains the tuples {span.skip + 1:,} to {span.take:,} from the latest"
        text = f"outside the window: it is tuple {number:,} from the latest, and the window {counted}"
        return Reason("window", text, distance=float(beyond))

    def _later(self, place: Place, time: int, until: int) -> int:
        """The number of tuples after a tuple by (time, id), up to a time."""
        own, later = self._number(place), 0
        for number, segment in enumerate(self.state.segments):
            end = segment.rows_before(until, inclusive=True)
            # Of tuples with the same time, those of later segments have higher ids.
            begin = place.position + 1 if number == own else segment.rows_before(time, inclusive=number < own)
            later += max(end - begin, 0)
        return later


def clause_reasons(clause: Clause, asked: AskedTuple, shown: ShownInput) -> list[Reason]:
    """The factors of a clause that are not true for a tuple.

    A factor that raises an error counts only if all others are true, as in an invocation.
    """
    failed, raised = [], []
    for factor in clause:
        values = shown.values(asked.row, sorted(columns_of(factor)))
        try:
            truth = truth_of(factor, asked.values)
        except LimitExceeded:
            raise
        except QueryFailed as error:
            reason = failed_factor(shown.factor(factor), "error", values, "error")
            raised.append(replace(reason, text=f"{reason.text}: {error.detail or error.message}"))
            continue
        if truth is not True:
            failed.append(failed_factor(shown.factor(factor), truth_name(truth), values))
    return failed or raised


def truth_name(truth: bool | None) -> str:
    """The name of a condition's value."""
    return "unknown" if truth is None else "true" if truth else "false"


def truth_of(predicate: Predicate, row: pa.RecordBatch) -> bool | None:
    """The value of a predicate for one row; None is unknown.

    >>> row = pa.record_batch({"a": pa.array([None], pa.int32()), "b": pa.array([1], pa.int32())})
    >>> truth_of(AnyOf((Within("a", ()), IsNull("b"))), row) is None
    True
    """
    match predicate:
        case AllOf(parts):
            truths, error = _truths(parts, row)
            if error is not None and all(truths):
                raise error
            return _all(truths)
        case AnyOf(parts):
            truths, error = _truths(parts, row)
            if error is not None and not any(truths):
                raise error
            negated = _all([None if truth is None else not truth for truth in truths])
            return None if negated is None else not negated
        case Opaque(_, columns):
            value: bool | None = evaluate(predicate, row.select(list(columns) or row.schema.names[:1]))[0].as_py()
            return value
        case IsNull() | Within(_, (Interval(low=None, high=None),)):
            return bool(holds(predicate, Block(row))[0])
        case _:
            if any(row.column(name).null_count for name in columns_of(predicate)):
                return None
            return bool(holds(predicate, Block(row))[0])


def _truths(parts: Sequence[Predicate], row: pa.RecordBatch) -> tuple[list[bool | None], QueryFailed | None]:
    """The values of the parts that raise no error, and the error that another one raises."""
    truths: list[bool | None] = []
    error: QueryFailed | None = None
    for part in parts:
        try:
            truths.append(truth_of(part, row))
        except LimitExceeded:
            raise
        except QueryFailed as raised:
            error = raised
    return truths, error


def _all(truths: Sequence[bool | None]) -> bool | None:
    """The conjunction of truth values."""
    if False in truths:
        return False
    return None if None in truths else True


def _seconds(micros: int) -> float:
    return micros / 1_000_000


def _moment(micros: int) -> str:
    try:
        return value_text(from_micros(micros))
    except OverflowError:
        return f"{micros} microseconds after 1970"
