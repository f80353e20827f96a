"""A strip: the keys and arguments of one run's tuples, with a tree of partial aggregates.

Its *hits* are the tuples of the run that satisfy the clause, in the run's order. The tree's leaves are chunks of hits;
each node has the states of the groups that occur below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.groups import Codes
from tureen.aggregates.plan import Form, Measure, Plan
from tureen.stems.index import address_of, keys_of

SMALLEST_CHUNK = 256
"""The minimum number of hits of a leaf, which also is at least four times the strip's number of groups."""


Division = tuple[int, int]
"""The length and the phase of panes."""


class Entries(NamedTuple):
    """Stored states: the interval (number of a pane or step) and the group of each, its integers and its doubles."""

    intervals: npt.NDArray[np.int64]
    codes: Codes
    ints: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float64]

    def take(self, selection: slice | npt.NDArray[Any]) -> Entries:
        """The selected entries."""
        return Entries(self.intervals[selection], self.codes[selection], self.ints[selection], self.floats[selection])


class Columns:
    """The measures of tuples, as a table of addresses for compiled loops."""

    def __init__(self, measures: Sequence[Measure], values: Sequence[pa.Array]) -> None:
        """Convert each column of values to the form of its measure."""
        self._arrays: list[npt.NDArray[np.generic]] = []
        table = [self._entry(measure, value) for measure, value in zip(measures, values, strict=True)]
        self.table = np.array(table, np.int64).reshape(len(measures), 2)
        self.nbytes = sum(array.nbytes for array in self._arrays)

    def _entry(self, measure: Measure, value: pa.Array) -> tuple[int, int]:
        present = 0
        if value.null_count:
            present = self._keep(value.is_valid().cast(pa.uint8()).to_numpy())
        if measure.form is Form.PRESENCE:
            return 0, present
        if measure.form is Form.DOUBLE:
            return self._keep(value.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)), present
        return self._keep(np.ascontiguousarray(keys_of(value))), present

    def _keep(self, values: npt.NDArray[np.generic]) -> int:
        self._arrays.append(values)
        return address_of(values)


def scratch_for(plan: Plan, groups: int) -> kernels.States:
    """Scratch space for the states of `groups` groups, none of them touched."""
    return kernels.States(
        np.zeros(groups, np.uint8),
        np.empty(groups, np.int32),
        np.empty((groups, plan.ints), np.int64),
        np.empty((groups, plan.floats), np.float64),
    )


@dataclass(frozen=True, eq=False)
class Tree:
    """Stored states level by level; each node of a higher level combines `FAN` nodes of the level below."""

    levels: npt.NDArray[np.int64]
    """The start of each level's nodes, and the end of the last."""
    starts: npt.NDArray[np.int64]
    """The start of each node's entries, and the end of the last."""
    entries: Entries

    def addresses(self) -> dict[int, int]:
        """Its fields for compiled loops."""
        return {
            kernels.LEVELS: len(self.levels) - 1,
            kernels.LEVEL_FIRST: address_of(self.levels),
            kernels.NODE_START: address_of(self.starts),
            kernels.NODE_CODES: address_of(self.entries.codes),
            kernels.NODE_INTS: address_of(self.entries.ints),
            kernels.NODE_FLOATS: address_of(self.entries.floats),
        }


@dataclass(eq=False)
class Strip:
    """The hits of one run and their tree."""

    plan: Plan
    rows: npt.NDArray[np.int32] | None
    """The row of each hit within the run; None if every row is a hit."""
    codes: Codes
    columns: Columns
    chunk: int
    tree: Tree
    by_time: dict[Division, Panes] = field(default_factory=dict)
    by_row: dict[Division, Panes] = field(default_factory=dict)
    """The panes computed so far, by time and by row."""

    def __post_init__(self) -> None:
        self.entry = table_row(
            {
                kernels.HITS: len(self.codes),
                kernels.HIT_ROWS: 0 if self.rows is None else address_of(self.rows),
                kernels.CODES: address_of(self.codes),
                kernels.MEASURES: address_of(self.columns.table),
                kernels.CHUNK: self.chunk,
                **self.tree.addresses(),
            }
        )

    @property
    def nbytes(self) -> int:
        """The approximate memory in bytes."""
        rows = 0 if self.rows is None else self.rows.nbytes
        panes = sum(array.nbytes for divisions in (self.by_time, self.by_row) for array in divisions.values())
        return rows + self.codes.nbytes + self.columns.nbytes + sum(array.nbytes for array in self.tree.entries) + panes

    def hit_rows(self) -> npt.NDArray[np.int64]:
        """The row of each hit."""
        return np.arange(len(self.codes)) if self.rows is None else self.rows.astype(np.int64)

    def hits_before(self, row: int) -> int:
        """The number of hits in rows before a given row."""
        return int(kernels.hits_before(int(self.entry[kernels.HIT_ROWS]), len(self.codes), row))


def table_row(fields: dict[int, int]) -> npt.NDArray[np.int64]:
    """The fields of a strip or a tree as an array for compiled loops."""
    row = np.zeros(kernels.FIELDS, np.int64)
    for column, value in fields.items():
        row[column] = value
    return row


@dataclass(frozen=True, eq=False)
class Panes:
    """The states of a strip's groups pane by pane."""

    numbers: npt.NDArray[np.int64]
    hits: npt.NDArray[np.int64]
    """The start of each pane's hits, and the end of the last."""
    starts: npt.NDArray[np.int64]
    """The start of each pane's entries, and the end of the last."""
    entries: Entries

    @property
    def nbytes(self) -> int:
        """The approximate memory in bytes."""
        return self.numbers.nbytes + self.hits.nbytes + self.starts.nbytes + sum(array.nbytes for array in self.entries)


def make_strip(
    plan: Plan, rows: npt.NDArray[np.int32] | None, codes: Codes, values: Sequence[pa.Array], groups: int
) -> Strip:
    """Build the strip of hits, given their groups and the values of all measures."""
    columns = Columns(plan.measures, values)
    occurring = len(np.unique(codes)) if groups > SMALLEST_CHUNK // 4 else groups
    chunk = SMALLEST_CHUNK
    while chunk < 4 * occurring:
        chunk *= 2
    scratch = scratch_for(plan, groups)
    chunks = np.arange(len(codes) // chunk + 1, dtype=np.int64) * chunk
    lowest = fold_hits(plan, columns, codes, chunks, chunks[:-1], scratch)
    return Strip(plan, rows, codes, columns, chunk, grow_tree(plan, *lowest, scratch))


def grow_tree(plan: Plan, starts: npt.NDArray[np.int64], entries: Entries, scratch: kernels.States) -> Tree:
    """Build the tree over stored states, whose lowest nodes start at `starts`."""
    levels, ends, parts = [0], [np.zeros(1, np.int64)], [entries]
    offset = 0
    while len(starts) > 1:
        levels.append(levels[-1] + len(starts) - 1)
        ends.append(starts[1:] + offset)
        offset += len(parts[-1].codes)
        above = starts[:: kernels.FAN]
        if len(above) < 2:
            break
        starts, entries = fold_entries(plan, parts[-1], above, above[:-1], scratch)
        parts.append(entries)
    return Tree(np.array(levels, np.int64), np.concatenate(ends), concat_entries(plan, parts))


def fold_hits(
    plan: Plan,
    columns: Columns,
    codes: Codes,
    starts: npt.NDArray[np.int64],
    intervals: npt.NDArray[np.int64],
    scratch: kernels.States,
) -> tuple[npt.NDArray[np.int64], Entries]:
    """The states of the groups of each stretch of hits, and the start of each stretch's states."""
    out_start, output = _room(plan, codes, starts, scratch)
    kernels.fold_hits(plan.program, columns.table, codes, starts, scratch, output, out_start)
    return out_start, Entries(np.repeat(intervals, np.diff(out_start)), *output)


def fold_entries(
    plan: Plan,
    entries: Entries,
    starts: npt.NDArray[np.int64],
    intervals: npt.NDArray[np.int64],
    scratch: kernels.States,
) -> tuple[npt.NDArray[np.int64], Entries]:
    """The states of the groups of each stretch of stored states, and the start of each stretch's states."""
    out_start, output = _room(plan, entries.codes, starts, scratch)
    source = kernels.StateArrays(entries.codes, entries.ints, entries.floats)
    kernels.fold_states(plan.program, source, starts, scratch, output, out_start)
    return out_start, Entries(np.repeat(intervals, np.diff(out_start)), *output)


def _room(
    plan: Plan, codes: Codes, starts: npt.NDArray[np.int64], scratch: kernels.States
) -> tuple[npt.NDArray[np.int64], kernels.StateArrays]:
    """Memory for the states of each stretch's groups, and for the start of each stretch's states."""
    return np.empty(len(starts), np.int64), room_for(plan, kernels.count_entries(codes, starts, scratch.mark))


def room_for(plan: Plan, size: int) -> kernels.StateArrays:
    """Memory for `size` stored states."""
    return kernels.StateArrays(
        np.empty(size, np.int32), np.empty((size, plan.ints), np.int64), np.empty((size, plan.floats), np.float64)
    )


def concat_entries(plan: Plan, parts: Sequence[Entries]) -> Entries:
    """Concatenate stored states."""
    if not parts:
        return Entries(np.empty(0, np.int64), *room_for(plan, 0))
    if len(parts) == 1:
        return parts[0]
    return Entries(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
