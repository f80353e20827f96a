"""What the windows of standing queries need of a stream that keeps what is needed.

The begin of each window is stored with the input of its query, so that the distinct ones of a million queries are read
from an index, within the transaction that frees tuples: a query that is registered before it counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import func, select

from tureen.pot.catalog_tables import query_inputs, streams
from tureen.pot.runs import Run
from tureen.pot.transaction import Transaction
from tureen.window import At, Bound, Now, RowsBack, Window, from_micros

SHORTER_MONTH = 24 * 3600 * 1_000_000
"""How far NOW minus some months may go back as NOW passes: days of a long month lead to the last of a shorter one."""


class WindowNeed(NamedTuple):
    """Where the windows of some queries begin; None if they need all tuples."""

    begin: Bound | None
    queries: int


def dump_need(window: Window) -> str:
    """The begin of a window, as the catalog has it."""
    match window.begin:
        case Now(micros, months):
            return json.dumps(["now", micros, months])
        case At(micros):
            return json.dumps(["at", micros])
        case RowsBack(rows):
            return json.dumps(["rows", rows])
    return json.dumps(["all"])


def load_need(text: str) -> Bound | None:
    """The inverse of `dump_need`.

    >>> load_need(dump_need(Window(Now(-5, -1), Now())))
    Now(micros=-5, months=-1)
    """
    match json.loads(text):
        case ["now", micros, months]:
            return Now(micros, months)
        case ["at", micros]:
            return At(micros)
        case ["rows", rows]:
            return RowsBack(rows)
    return None


def describe_begin(begin: Bound | None) -> str:
    """Where windows begin, in words.

    >>> describe_begin(Now(-90_000_000)), describe_begin(RowsBack(5)), describe_begin(None)
    ('windows from NOW - 0:01:30', 'windows of 5 rows', 'windows of all rows')
    """
    match begin:
        case At(micros):
            return f"windows from {from_micros(micros).isoformat()}"
        case Now(micros, months):
            parts = [
                f" - {-months} months" if months else "",
                f" - {timedelta(microseconds=-micros)}" if micros else "",
            ]
            return "windows from NOW" + "".join(parts)
        case RowsBack(rows):
            return f"windows of {rows} rows"
    return "windows of all rows"


_DERIVING = select(streams.c.query_id).where(streams.c.query_id.is_not(None))


def window_needs(tx: Transaction, stream_id: int) -> list[WindowNeed]:
    """The begins of all windows over a stream; not those of the queries of derived streams, which nobody invokes."""
    counted = (
        select(query_inputs.c.needs, func.count(query_inputs.c.query_id.distinct()).label("queries"))
        .where(query_inputs.c.stream_id == stream_id, query_inputs.c.needs.is_not(None))
        .where(query_inputs.c.query_id.not_in(_DERIVING))
        .group_by(query_inputs.c.needs)
    )
    return [WindowNeed(load_need(row.needs), row.queries) for row in tx.execute(counted)]


def needed_from(bound: Bound | None, now: int, runs: Sequence[Run]) -> int | None:
    """The earliest time that a window needs at `now` and later; None if it needs all tuples of the stream."""
    match bound:
        case At(micros):
            return micros
        case Now(months=0):
            return bound.at(now)
        case Now():
            return bound.at(now) - SHORTER_MONTH
        case RowsBack(rows):
            return _time_of_last(rows, now, runs)
    return None


def _time_of_last(rows: int, now: int, runs: Iterable[Run]) -> int | None:
    """A time from which on there are that many tuples up to `now`, from the bounds of runs; None if there are fewer."""
    for run in sorted(runs, key=lambda run: run.min_time, reverse=True):
        if run.max_time <= now:
            rows -= run.rows
            if rows <= 0:
                return run.min_time
    return None
