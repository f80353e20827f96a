"""Gathering: the rows of an answer, copied from the memory-mapped blocks that contain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.results.rows.gather_kernels import collect
from tureen.results.rows.remembered_rows import remember_column
from tureen.results.snapshot.segment import Hits
from tureen.schema import Schema
from tureen.stems.run import Addresses


@lru_cache(maxsize=1024)
def no_rows(fields: pa.Schema) -> pa.Table:
    """A table without rows, made once: that takes Arrow longer than many an answer."""
    return fields.empty_table()


def fields_of(schema: Schema, names: Sequence[str]) -> pa.Schema:
    """The Arrow schema of columns as they are stored; computed once for a query."""
    return pa.schema([(name, schema.stored.field(name).type) for name in names])


@dataclass(frozen=True)
class StreamMatches:
    """Matches of a query over one stream: see `tureen.results.rows.matches.Matches`."""

    schema: Schema
    hits: Sequence[Hits]
    """The tuples of each segment, in order of tuple id."""

    def __len__(self) -> int:
        """The number of tuples."""
        return sum(len(hit.rows) for hit in self.hits)

    def table(self, fields: pa.Schema) -> pa.Table:
        """Columns of the tuples, in order of time and tuple id; a stable sort by time suffices for that."""
        if not self.hits:
            return no_rows(fields)
        table = pa.Table.from_arrays(self.columns(fields), schema=fields)
        order = _time_order(self.schema, self.hits)
        return table if order is None else table.take(order)

    def column(self, name: str) -> pa.Array:
        """A column of the tuples, in the order of `hits`."""
        kind = self.schema.stored.field(name).type
        parts = [_whole_column(name, kind, hit) for hit in self.hits]
        return concatenated_column(parts) if parts else pa.nulls(0, kind)

    def columns(self, fields: pa.Schema) -> list[pa.Array]:
        """Columns of the tuples, in the order of `hits`."""
        mapped = [(hit, hit.run.map_blocks(hit.starts)) for hit in self.hits]
        return [
            concatenated_column([_column(name, kind, *hit) for hit in mapped]) if mapped else pa.nulls(0, kind)
            for name, kind in zip(fields.names, fields.types, strict=True)
        ]


def gather_segment(schema: Schema, names: Sequence[str], hit: Hits) -> pa.Table:
    """Columns of the hits of one segment, in the segment's order."""
    kinds = {name: schema.stored.field(name).type for name in names}
    addresses = hit.run.map_blocks(hit.starts)
    return pa.table({name: _column(name, kind, hit, addresses) for name, kind in kinds.items()})


def _whole_column(name: str, kind: pa.DataType, hit: Hits) -> pa.Array:
    """A column of the hits of one segment, remembered if they are."""
    known = None if hit.columns is None else hit.columns.get(name)
    if known is None:
        known = _column(name, kind, hit, hit.run.map_blocks(hit.starts))
        remember_column(hit, name, known)
    return known


def _column(name: str, kind: pa.DataType, hit: Hits, addresses: Addresses) -> pa.Array:
    if not len(hit.rows):
        # Its blocks may be unmapped, and are not read to find out what they hold.
        return pa.nulls(0, kind)
    numbers = hit.run.numbers_at(name, addresses)
    if numbers is not None:
        # Plain numbers without NULLs, the usual case.
        values = _numbers(name, number_type(kind), numbers, hit)
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
    parts = [
        block.column(name).take(pa.array(hit.rows[low:high]))
        for block, (low, high) in zip(hit.run.blocks, pairwise(hit.starts), strict=True)
        if high > low
    ]
    return concatenated_column(parts) if parts else pa.nulls(0, kind)


def _numbers(name: str, dtype: np.dtype[Any], addresses: npt.NDArray[np.int64], hit: Hits) -> npt.NDArray[Any]:
    """The plain numbers of the hits: one compiled call for all blocks.

    Of a single block, numpy takes them as fast. So a new process answers from the rows pushed last without loading
    compiled code, which takes a third of a second (docs/decisions/0029).
    """
    if len(hit.run.blocks) == 1:
        column = hit.run.blocks[0].column(name)
        return np.frombuffer(column.buffers()[1], dtype)[column.offset :].take(hit.rows)
    return collect(addresses, hit.starts, hit.rows, np.empty(len(hit.rows), dtype))


def number_type(kind: pa.DataType) -> np.dtype[Any]:
    """The type of plain numbers of 32 or 64 bits, as far as copying them needs it."""
    return np.dtype(np.int32 if kind.bit_width == 32 else np.int64)


def concatenated_column(parts: Sequence[pa.Array]) -> pa.Array:
    """The values of one or more arrays, one after the other."""
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _time_order(schema: Schema, hits: Sequence[Hits]) -> pa.Array | None:
    """The permutation into time order; None if the segments do not overlap in time."""
    if all(hit.segment.max_time <= following.segment.min_time for hit, following in pairwise(hits)):
        return None
    times = np.concatenate([_times(schema, hit) for hit in hits])
    return pa.array(np.argsort(times, kind="stable"))


def _times(schema: Schema, hit: Hits) -> npt.NDArray[np.int64]:
    numbers = hit.run.numbers_at(schema.time_column, hit.run.map_blocks(hit.starts))
    assert numbers is not None, "every tuple has a time"
    return _numbers(schema.time_column, np.dtype(np.int64), numbers, hit)
