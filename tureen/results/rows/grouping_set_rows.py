"""Grouping sets of an answer: the rows of each grouping, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tureen.query import GROUPING_ID, Grouping, key_name


def rows_of_sets(grouping: Grouping, parts: Sequence[pa.RecordBatch]) -> pa.Table:
    """The rows of several groupings with all keys; the keys that a grouping does not have are NULL."""
    return pa.concat_tables(
        _widened(grouping, numbers, rows) for numbers, rows in zip(grouping.each, parts, strict=True)
    )


def _widened(grouping: Grouping, numbers: tuple[int, ...], rows: pa.RecordBatch) -> pa.Table:
    # In the rows of a grouping, its keys are numbered from 0.
    present = {key_name(number): rows.column(key_name(index)) for index, number in enumerate(numbers)}
    absent = {
        key_name(number): pa.nulls(rows.num_rows, key.type.arrow)
        for number, key in enumerate(grouping.keys)
        if number not in numbers
    }
    others = {name: rows.column(name) for name in rows.schema.names[len(numbers) :]}
    bits = pa.array(np.full(rows.num_rows, grouping.grouping_id(numbers), np.int64))
    columns = {**present, **absent, **others, GROUPING_ID: bits}
    return pa.table({name: columns[name] for name in sorted(columns)})
