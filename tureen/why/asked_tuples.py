"""The tuples that a user asks about: the latest of an input that satisfy a condition, in its window or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.predicate import Clause
from tureen.results.answering import Answers
from tureen.results.joins.join_inputs import StreamInput, TableInput, rows_satisfying
from tureen.results.rows.gather import StreamMatches
from tureen.results.rows.selection import Selection
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState


@dataclass(frozen=True)
class Place:
    """Where a tuple of a stream is: in which segment, and at which position in it."""

    segment: Segment
    position: int


@dataclass(frozen=True)
class AskedTuple:
    """A tuple of an input that satisfies the condition."""

    id: int
    """Its tuple id; of a row that is no tuple, its number."""
    values: pa.RecordBatch
    """All its columns, in one row."""
    time: int | None = None
    place: Place | None = None

    @property
    def row(self) -> Mapping[str, Any]:
        """Its values by column."""
        row: Mapping[str, Any] = self.values.to_pylist()[0]
        return row


@dataclass(frozen=True)
class AskedTuples:
    """Tuples in order of time, and the number of all that satisfy the condition."""

    tuples: list[AskedTuple]
    total: int


def tuples_of_stream(answers: Answers, state: StreamState, clause: Clause, limit: int) -> AskedTuples:
    """The latest stored tuples of a stream that satisfy a clause, whether they have expired or not."""
    stream = state.stream
    whole = [(0, segment.rows) for segment in state.segments]
    selector, lazy = Selector(clause, stream.schema), RegisteredInput(stream_id=stream.id)
    matches = Selection(state, lazy, selector, whole, None, answers.watch).matches()
    source = StreamInput(matches)
    latest = np.argsort(source.times, kind="stable")[-limit:] if len(source) else np.empty(0, np.int64)
    names = stream.schema.stored.names
    columns = source.columns_at(names, latest)
    ids, times = source.ids_at(latest) if len(latest) else latest, source.times[latest]
    tuples = [
        AskedTuple(
            int(ids[index]),
            pa.RecordBatch.from_arrays([column.slice(index, 1) for column in columns], names),
            int(times[index]),
            _place(matches, int(latest[index])),
        )
        for index in range(len(latest))
    ]
    return AskedTuples(tuples, len(matches))


def rows_of_table(table: pa.Table, clause: Clause, limit: int) -> AskedTuples:
    """The last rows of a table, or of a block's answer, that satisfy a clause."""
    numbers = rows_satisfying(table, Selector(clause, table.schema))
    source = TableInput(table)
    last = numbers[-limit:]
    columns = source.columns_at(table.column_names, last)
    tuples = [
        AskedTuple(
            int(number), pa.RecordBatch.from_arrays([column.slice(index, 1) for column in columns], table.column_names)
        )
        for index, number in enumerate(last)
    ]
    return AskedTuples(tuples, len(numbers))


def _place(matches: StreamMatches, number: int) -> Place:
    """The place of a tuple, given its number among matches."""
    for hit in matches.hits:
        if number < len(hit.rows):
            return Place(hit.segment, int(hit.positions()[number]))
        number -= len(hit.rows)
    raise AssertionError("a number beyond all matches")
