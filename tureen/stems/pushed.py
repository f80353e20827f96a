"""Pushed rows as they are in the inbox: an Arrow record batch of the stream's columns and a time of arrival."""

from __future__ import annotations

import pyarrow as pa

from tureen.abstract_clock import with_instants
from tureen.schema import ARRIVAL, Schema
from tureen.stems.value_arrays import repeated_time


def stored_tuples(schema: Schema, payload: bytes | memoryview, arrival: int) -> pa.Table:
    """The stored tuples of one push; raises ArrowException or ValueError if the payload is not one."""
    batch = pa.ipc.read_record_batch(pa.py_buffer(payload), schema.arrow)
    table = pa.Table.from_batches([batch])
    if schema.time is None:
        table = table.append_column(ARRIVAL, repeated_time(arrival, len(table)))
    return with_instants(schema, table)
