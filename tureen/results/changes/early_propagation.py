"""Early propagation: what a window and a punctuation close together (PWJoin §4.4, Theorem 4.1).

Let input i be closed for some values, let all of its tuples with these values be older than r before the earliest time
that later tuples of the other inputs can have, and let r be how far a tuple of i may be before the latest tuple of a
joined one. A later joined tuple with these values needs a tuple of i, which has arrived, and a tuple of another input
that arrives later, and so is too late for it. So there is none: the values are *exhausted*, and a punctuation on them
holds for the output before the other inputs have closed them.

The earliest time of later tuples is known by the lateness of their stream, or by a punctuation on its time. Without
either, a tuple may be late, and nothing is exhausted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tureen.closed.closed_set import BatchCodes, row_code
from tureen.closed.pattern import ValueList
from tureen.joining.join_input import Flags
from tureen.results.changes.closed_inputs import ClosedInputs, PunctuatedJoin
from tureen.results.changes.output_patterns import Part
from tureen.schema import Schema


@dataclass(frozen=True)
class Exhaustion:
    """Which values are exhausted in the inputs of a join with windows."""

    punctuated: PunctuatedJoin
    reach: Sequence[int | None]
    """For each input, how long before the latest tuple its tuples may be, in microseconds; None without a limit."""
    hidden: Set[int] = frozenset()
    """The inputs of which only the existence of a row counts."""

    def horizon(self, number: int, closed: ClosedInputs) -> int | None:
        """The time before which tuples of an input have left their window for good; None if there is none."""
        reach = self.reach[number]
        if reach is None:
            return None
        others = [other for other in self.punctuated.stream_inputs() if other != number]
        bounds = [closed.earliest_time(other) for other in others]
        known = [bound for bound in bounds if bound is not None]
        return min(known) - reach if known and len(known) == len(others) else None

    def settled_before(self, number: int, closed: ClosedInputs) -> int | None:
        """The time before which tuples of an input have left their window for good, and all that they were joined with.

        A tuple was joined with tuples that are at most as much later than itself as its window reaches.
        """
        horizons = [self.horizon(each, closed) for each in self.punctuated.stream_inputs()]
        known = [horizon for horizon in horizons if horizon is not None]
        reach = self.reach[number]
        return min(known) - reach if reach is not None and len(known) == len(horizons) else None

    def reported_classes(self, number: int) -> dict[str, int]:
        """The columns of an input whose value every row has that its tuples were joined with, and their classes."""
        classes = self.punctuated.classes
        visible = {field.input for field in classes.class_of} - self.hidden
        return {
            column: of_class
            for column, of_class in classes.columns_of(number).items()
            if any(field.input in visible for field in classes.members[of_class])
        }

    def exhausted(self, number: int, values: Mapping[int, pa.Array], closed: ClosedInputs) -> Flags:
        """Which values of equality classes are exhausted in an input."""
        columns = self.columns(number, values)
        size = len(next(iter(values.values())))
        horizon = self.horizon(number, closed)
        if not columns or horizon is None:
            return np.zeros(size, np.bool_)
        exhausted = closed.closes(number, columns)
        candidates = np.flatnonzero(exhausted)
        if len(candidates):
            stream_id = self.punctuated.join.relations[number].stream_id
            assert stream_id is not None
            stem = closed.stem(number, (0, closed.marks[stream_id].next_id), horizon)
            taken = {name: column.take(pa.array(candidates)) for name, column in columns.items()}
            left, right = self.punctuated.rows_by_value(stem, number, taken)
            in_window = left[stem.times_at(right) >= horizon]
            exhausted[candidates[in_window]] = False
        return exhausted

    def propagated_early(self, number: int, values: Mapping[int, pa.Array], closed: ClosedInputs) -> Flags:
        """Of values of equality classes, those of which a punctuation was propagated because they are exhausted.

        That happens when the last tuple with a value leaves the window, or with a later punctuation of the value. It
        may not have happened to values without tuples, or within a range.
        """
        early = self.exhausted(number, values, closed)
        columns = self.columns(number, values)
        if early.any():
            early &= closed.closes_value(number, columns)
        candidates = np.flatnonzero(early)
        if len(candidates):
            stream_id = self.punctuated.join.relations[number].stream_id
            assert stream_id is not None
            stem = closed.stem(number, (0, closed.marks[stream_id].next_id))
            taken = {name: column.take(pa.array(candidates)) for name, column in columns.items()}
            occurring, _ = self.punctuated.rows_by_value(stem, number, taken)
            early[np.delete(candidates, occurring)] = False
        return early

    def columns(self, number: int, values: Mapping[int, pa.Array]) -> dict[str, pa.Array]:
        """The columns of an input that values of equality classes determine."""
        classes = self.punctuated.classes.columns_of(number)
        return {column: values[of_class] for column, of_class in classes.items() if of_class in values}

    def newly_exhausted(self, before: ClosedInputs, after: ClosedInputs) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Inputs with the values of their keys that are exhausted because their last tuples have left the window.

        Values that the other inputs have closed too are left out: they are propagated for that reason.
        """
        for number in self.punctuated.stream_inputs():
            first, end = self.horizon(number, before), self.horizon(number, after)
            keys = self.punctuated.classes.columns_of(number)
            if end is None or not keys or (first is not None and first >= end):
                continue
            stream_id = self.punctuated.join.relations[number].stream_id
            assert stream_id is not None
            stem = after.stem(number, (0, after.marks[stream_id].next_id))
            rows = stem.rows_in_time(first, end)
            if not len(rows):
                continue
            columns = dict(zip(keys, stem.columns_at(list(keys), rows), strict=True))
            distinct = pa.table(columns).group_by(list(keys), use_threads=False).aggregate([])
            columns = {name: distinct.column(name).combine_chunks() for name in keys}
            values = {keys[name]: column for name, column in columns.items()}
            exhausted = self.exhausted(number, values, after)
            if exhausted.any():
                exhausted &= ~self.closed_by_others(number, values, after)
            if exhausted.any():
                yield number, {name: column.filter(pa.array(exhausted)) for name, column in columns.items()}

    def closed_by_others(self, number: int, values: Mapping[int, pa.Array], closed: ClosedInputs) -> Flags:
        """For which values of equality classes all inputs except one are closed."""
        held = np.ones(len(next(iter(values.values()))), np.bool_)
        for other in self.punctuated.stream_inputs():
            if other != number and held.any():
                columns = self.columns(other, values)
                held &= closed.closes(other, columns) if columns else False
        return held


def value_parts(schema: Schema, columns: Mapping[str, pa.Array]) -> list[dict[str, Part]]:
    """Patterns with the values of some columns of a stream: one with all values of a single column, or one per row."""
    names = [name for name in schema.names if name in columns]
    batch = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    codes = BatchCodes(schema, batch)
    rows = [{name: row_code(schema, codes, name, row) for name in names} for row in range(batch.num_rows)]
    if len(names) == 1 and rows:
        return [{names[0]: ValueList(tuple(sorted({row[names[0]] for row in rows})))}]
    return [{name: ValueList((code,)) for name, code in row.items()} for row in rows]
