"""Gathering: the rows of an answer, from the memory-mapped blocks that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.results.gather_kernels import collect
from tureen.results.segment import Hits
from tureen.schema import Schema


def fields_of(schema: Schema, names: Sequence[str]) -> pa.Schema:
    """Some columns as they are stored: what `gather` wants to know, and whoever calls it often makes once."""
    return pa.schema([(name, schema.stored.field(name).type) for name in names])


def gather(schema: Schema, fields: pa.Schema, hits: Sequence[Hits]) -> pa.Table:
    """Some columns of the hits, in time order and then by tuple id.

    Hits come in order of tuple id, so a stable sort by time gives that order.
    """
    if not hits:
        return fields.empty_table()
    kinds = zip(fields.names, fields.types, strict=True)
    columns = [_joined([_column(name, kind, hit) for hit in hits]) for name, kind in kinds]
    table = pa.Table.from_arrays(columns, schema=fields)
    order = _time_order(schema, hits)
    return table if order is None else table.take(order)


def gather_segment(schema: Schema, names: Sequence[str], hit: Hits) -> pa.Table:
    """Some columns of the hits of one segment, in the segment's order."""
    kinds = {name: schema.stored.field(name).type for name in names}
    return pa.table({name: _column(name, kind, hit) for name, kind in kinds.items()})


def _column(name: str, kind: pa.DataType, hit: Hits) -> pa.Array:
    addresses = hit.run.numbers_at(name, hit.starts)
    if addresses is not None:
        # Plain numbers without NULLs, the usual case: one compiled call for all blocks.
        empty = np.empty(len(hit.rows), np.int32 if kind.bit_width == 32 else np.int64)
        values = collect(addresses, hit.starts, hit.rows, empty)
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
    parts = [
        block.column(name).take(pa.array(hit.rows[low:high]))
        for block, (low, high) in zip(hit.run.blocks, pairwise(hit.starts), strict=True)
        if high > low
    ]
    return _joined(parts) if parts else pa.nulls(0, kind)


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _time_order(schema: Schema, hits: Sequence[Hits]) -> pa.Array | None:
    """The permutation into time order, or None where the segments follow one another in time."""
    if all(one.segment.max_time <= other.segment.min_time for one, other in pairwise(hits)):
        return None
    times = np.concatenate([_times(schema, hit) for hit in hits])
    return pa.array(np.argsort(times, kind="stable"))


def _times(schema: Schema, hit: Hits) -> npt.NDArray[np.int64]:
    addresses = hit.run.numbers_at(schema.time_column, hit.starts)
    assert addresses is not None, "every tuple has a time"
    return collect(addresses, hit.starts, hit.rows, np.empty(len(hit.rows), np.int64))
