"""Abstract clocks: the time of a stream as a number of seconds (DOUBLE or BIGINT) instead of a TIMESTAMP.

Second 0 is 1970-01-01 00:00:00 UTC, so that windows, retention and steps compute with instants in any stream. The
instants are kept beside the declared column, rounded to microseconds.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import InvalidRows
from tureen.schema import CLOCK, Kind, Schema, Type

EARLIEST, LATEST = -62_135_596_800, 253_402_300_799
"""The seconds between which times can be stored: the years 1 to 9999."""

_INSTANT = Type(Kind.TIMESTAMP).arrow


def has_time(schema: Schema, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Which values of the declared time column are times: not NULL, and in the range of an abstract clock."""
    if not schema.has_abstract_clock:
        return pc.is_valid(values)
    # Comparisons with NaN are false.
    within = pc.and_(pc.greater_equal(values, EARLIEST), pc.less_equal(values, LATEST))
    return pc.fill_null(within, False)


def check_times(schema: Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of a stream's columns; raises InvalidRows that names the first row without a time."""
    if schema.time is None:
        return batch
    values = batch.column(schema.time)
    valid = has_time(schema, values)
    if pc.all(valid, min_count=0).as_py():
        return batch
    row_index = pc.index(valid, False).as_py()
    value = values[row_index].as_py()
    if value is None:
        raise InvalidRows(f"row {row_index}: the time column '{schema.time}' is NULL", hint="every tuple needs a time")
    raise InvalidRows(
        f"row {row_index}: the time column '{schema.time}' is {value}",
        hint=f"the seconds of an abstract clock are from {EARLIEST} to {LATEST}",
    )


def instants(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The instants of an abstract clock, for seconds that `check_times` accepted."""
    if pa.types.is_integer(values.type):
        return pc.multiply(values, 1_000_000).cast(_INSTANT)
    return pc.round(pc.multiply(values, 1e6)).cast(pa.int64()).cast(_INSTANT)


def with_instants(schema: Schema, table: pa.Table) -> pa.Table:
    """Tuples with the instants of their abstract clock, if the stream has one."""
    return table.append_column(CLOCK, instants(table.column(schema.time))) if schema.has_abstract_clock else table
