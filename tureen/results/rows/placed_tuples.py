"""Placed tuples: tuples at given positions of a stream's segments, in any order and with repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.joining.join_input import Flags, Numbers, take_or_null
from tureen.keys import KeyColumns
from tureen.results.rows.gather import StreamMatches, concatenated_column, number_type
from tureen.results.rows.gather_kernels import locate, pick
from tureen.results.snapshot.segment import Hits, Segment
from tureen.schema import Schema
from tureen.stems.run import Addresses


class TuplePlaces(NamedTuple):
    """Where tuples are: the numbers of their segments, and their numbers within these; -1 if they were dropped."""

    segments: Numbers
    rows: Numbers


class PlacedTuples:
    """Tuples by their positions, which count through some segments one after the other: an input of a join.

    Only the segments and blocks that have such tuples are read.
    """

    def __init__(self, schema: Schema, segments: Sequence[Segment], positions: Numbers) -> None:
        """Read nothing yet; each of the segments has some of the tuples."""
        self._schema, self._segments, self._positions = schema, segments, positions

    @classmethod
    def among(cls, schema: Schema, segments: Sequence[Segment], positions: Numbers) -> PlacedTuples:
        """Tuples by positions in segments, some of which may have none of them."""
        if len(segments) == 1:
            return cls(schema, segments, positions)
        firsts = _first_positions(segments)
        of_tuples = np.searchsorted(firsts, positions, side="right") - 1
        occurring = np.flatnonzero(np.bincount(of_tuples, minlength=len(segments)))
        with_tuples = [segments[number] for number in occurring.tolist()]
        shifts = np.zeros(len(segments), np.int64)
        shifts[occurring] = _first_positions(with_tuples) - firsts[occurring]
        return cls(schema, with_tuples, positions + shifts[of_tuples])

    def __len__(self) -> int:
        """The number of tuples."""
        return len(self._positions)

    def column(self, name: str) -> pa.Array:
        """A column of the tuples."""
        kind, count = self._schema.stored.field(name).type, len(self._positions)
        if not count:
            return pa.nulls(0, kind)
        numbers = self._numbers(name)
        if numbers is None:
            return self._values(name)
        return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(numbers)])

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some tuples; a row of -1 has NULLs."""
        if len(rows) == len(self) and bool((rows == np.arange(len(rows))).all()):
            return [self.column(name) for name in names]
        exists = rows >= 0
        if exists.all():
            placed = self.at(rows)
            return [placed.column(name) for name in names]
        placed, numbers = self.at(rows[exists]), np.where(exists, np.cumsum(exists) - 1, -1)
        return [take_or_null(placed.column(name), numbers) for name in names]

    @cached_property
    def times(self) -> Numbers:
        """The times of the tuples."""
        if not len(self._positions):
            return _NONE
        times = self._numbers(self._schema.time_column)
        assert times is not None, "every tuple has a time"
        return times

    @cached_property
    def ids(self) -> Numbers:
        """The tuple ids."""
        if len(self._segments) == 1:
            return self._segments[0].ids_at(self._positions)
        ids = np.empty(len(self), np.int64)
        numbers = np.searchsorted(self._firsts, self._positions, side="right") - 1
        for number, segment in enumerate(self._segments):
            inside = numbers == number
            ids[inside] = segment.ids_at(self._positions[inside] - self._firsts[number])
        return ids

    def times_at(self, rows: Numbers) -> Numbers:
        """The times of some tuples."""
        return self.at(rows).times

    def ids_at(self, rows: Numbers) -> Numbers:
        """The ids of some tuples."""
        return self.at(rows).ids

    def may_probe(self, keys: int) -> bool:  # noqa: ARG002
        """No."""
        return False

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> None:
        """None: the tuples have no index."""

    def at(self, rows: Numbers) -> PlacedTuples:
        """Some of the tuples, in any order."""
        return PlacedTuples.among(self._schema, self._segments, self._positions[rows])

    def _numbers(self, name: str) -> npt.NDArray[Any] | None:
        """The values of a column of plain numbers without NULLs; None for others."""
        if len(self._segments) == 1 and len(blocks := self._segments[0].run().blocks) == 1:
            # Few rows are mostly of one block, from which numpy takes them in fewer calls.
            plain = blocks[0].plain(name)
            return None if plain is None else plain.take(self._positions)
        runs = [segment.run() for segment in self._segments]
        addresses = [run.numbers_at(name, mapped) for run, mapped in zip(runs, self._mapped, strict=True)]
        known = [address for address in addresses if address is not None]
        if len(known) < len(addresses):
            return None
        values = np.empty(len(self._positions), number_type(self._schema.stored.field(name).type))
        return pick(known[0] if len(known) == 1 else np.concatenate(known), self._block_starts, self._positions, values)

    def _values(self, name: str) -> pa.Array:
        """The values of any column, taken block by block."""
        blocks = [block for segment in self._segments for block in segment.run().blocks]
        numbers = np.searchsorted(self._block_starts, self._positions, side="right") - 1
        order = np.argsort(numbers, kind="stable")
        in_order = self._positions[order] - self._block_starts[numbers[order]]
        occurring, begins = np.unique(numbers[order], return_index=True)
        bounds = pairwise([*begins.tolist(), len(order)])
        parts = [
            blocks[number].column(name).take(pa.array(in_order[begin:end]))
            for number, (begin, end) in zip(occurring.tolist(), bounds, strict=True)
        ]
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.arange(len(order))
        return concatenated_column(parts).take(pa.array(inverse))

    @cached_property
    def _firsts(self) -> Numbers:
        return _first_positions(self._segments)

    @cached_property
    def _block_starts(self) -> Numbers:
        """The position of the first tuple of each block."""
        starts = [segment.run().block_starts for segment in self._segments]
        if len(starts) == 1:
            return starts[0]
        return np.concatenate([first + of_run for first, of_run in zip(self._firsts, starts, strict=True)])

    @cached_property
    def _mapped(self) -> list[Addresses]:
        """The addresses of columns in the blocks with these tuples, which are verified and mapped now."""
        addresses, ascending = [], None
        for segment, first in zip(self._segments, self._firsts.tolist(), strict=True):
            run, starts = segment.run(), _NONE
            if not run.is_mapped:
                ascending = np.sort(self._positions) if ascending is None else ascending
                starts = np.searchsorted(ascending, first + np.array(run.starts))
            addresses.append(run.map_blocks(starts))
        return addresses


def placed_rows(matches: StreamMatches, rows: Numbers) -> PlacedTuples:
    """Some matches, by their numbers among all of them."""
    hits = matches.hits
    segments = [hit.segment for hit in hits]
    if len(hits) == 1:
        return PlacedTuples(matches.schema, segments, _positions(hits[0], rows))
    begins = np.cumsum([0, *(len(hit.rows) for hit in hits)])
    of_hits = np.searchsorted(begins, rows, side="right") - 1
    positions = np.empty(len(rows), np.int64)
    for number, first in enumerate(_first_positions(segments).tolist()):
        inside = np.flatnonzero(of_hits == number)
        if len(inside):
            positions[inside] = first + _positions(hits[number], rows[inside] - begins[number])
    return PlacedTuples.among(matches.schema, segments, positions)


def placed_by_id(schema: Schema, segments: Sequence[Segment], ids: Numbers) -> PlacedTuples:
    """Tuples by id, all of which exist."""
    places = find_tuples(segments, ids)
    return PlacedTuples.among(schema, segments, _first_positions(segments)[places.segments] + places.rows)


def find_tuples(segments: Sequence[Segment], ids: Numbers) -> TuplePlaces:
    """Where the tuples with these ids are; segments are in order of their first ids."""
    if len(segments) == 1:
        rows = segments[0].positions_of(ids)
        return TuplePlaces(np.where(rows < 0, -1, 0), rows)
    first_ids = [segment.first_id for segment in segments]
    numbers = np.searchsorted(first_ids, ids, side="right") - 1
    if len(ids) and (number := int(numbers[0])) >= 0 and (numbers == number).all():
        rows = segments[number].positions_of(ids)
    else:
        rows = np.full(len(ids), -1)
        for number in np.unique(numbers[numbers >= 0]).tolist():
            inside = numbers == number
            rows[inside] = segments[number].positions_of(ids[inside])
    return TuplePlaces(np.where(rows < 0, -1, numbers), rows)


def _positions(hit: Hits, numbers: Numbers) -> Numbers:
    """The positions of some hits in their segment."""
    return locate(hit.starts, hit.rows, hit.run.block_starts, numbers, np.empty(len(numbers), np.int64))


def _first_positions(segments: Sequence[Segment]) -> Numbers:
    """The position of the first tuple of each segment."""
    sizes = np.array([segment.rows for segment in segments], np.int64)
    return np.cumsum(sizes) - sizes


_NONE: Numbers = np.empty(0, np.int64)
