"""Lineages of the tuples of one input of a continuous join: the queries whose clauses a tuple satisfies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tureen.joining.join_input import Numbers
from tureen.joining.lineage_kernels import add_slots
from tureen.joining.lineages import Bitmaps, Lineages, bitmap_of, distinct_keys
from tureen.joining.sparse_lineages import SparseLineages
from tureen.matching.clause_set import ClauseSet
from tureen.predicate import Clause
from tureen.stems.cells.lineage_pairs import pairs_of
from tureen.stems.index import BLOCK_ROWS, Block

DENSE_PAIRS = 0.5
"""Lineages are bitmaps if there are more pairs of a tuple and a query than this per word of the bitmaps."""


SORTED_PAIRS = 8
"""The cost of sorting a pair of a tuple and a clause: that of writing this many words of bitmaps."""


class ClauseLineages:
    """The clauses of one input, from which the lineages of its tuples follow."""

    def __init__(self, schema: pa.Schema) -> None:
        """Start without slots; tuples have the columns of that schema."""
        self._schema = schema
        self._set = ClauseSet(schema)
        self._numbers: dict[Clause, int] = {}
        self._slots: dict[Clause, set[int]] = {}
        self._table: SlotTable | None = None

    def add(self, slot: int, clause: Clause) -> None:
        """Add a slot for the tuples that satisfy a clause of simple factors."""
        slots = self._slots.setdefault(clause, set())
        if clause and not slots:
            self._numbers[clause] = self._set.add(clause)
        slots.add(slot)
        self._table = None

    def remove(self, slot: int, clause: Clause) -> None:
        """Remove a slot."""
        slots = self._slots[clause]
        slots.remove(slot)
        if not slots:
            del self._slots[clause]
            if clause:
                self._set.remove(self._numbers.pop(clause))
        self._table = None

    @property
    def columns(self) -> list[str]:
        """The columns that the clauses compare."""
        return self._set.columns

    def lineages(self, columns: Sequence[pa.Array], rows: int, words: int) -> Lineages | SparseLineages:
        """The lineages of tuples, given the columns of `columns`; slots are those of bitmaps of that many words."""
        table = self._table
        if table is None or table.words != words:
            table = self._table = SlotTable.of(self._numbers, self._slots, words)
        everywhere = table.everywhere
        if not len(self._set):
            return Lineages(everywhere.reshape(1, -1), np.zeros(rows, np.int64))
        batch = pa.RecordBatch.from_arrays(list(columns), names=self.columns)
        of_rows, of_clauses = [_NO_NUMBERS], [_NO_NUMBERS]
        for begin in range(0, rows, BLOCK_ROWS):
            block = Block(batch.slice(begin, BLOCK_ROWS))
            for cell in self._set.match(block):
                matched, clauses = table.live(*pairs_of(cell.batch, block.rows))
                of_rows.append(matched + begin)
                of_clauses.append(clauses)
        matched, clauses = np.concatenate(of_rows), np.concatenate(of_clauses)
        if table.count(clauses, rows) <= DENSE_PAIRS * rows * words:
            return table.sparse(matched, clauses, rows)
        return table.dense(matched, clauses, rows)


@dataclass(frozen=True)
class SlotTable:
    """The slots of clauses, for compiled loops."""

    words: int
    numbers: Numbers
    """The numbers of the clauses, ascending."""
    starts: Numbers
    slots: Numbers
    wide: Numbers
    wide_bits: Bitmaps
    slots_everywhere: Numbers
    """The slots without a clause."""
    everywhere: Bitmaps
    """The same as a bitmap."""

    @classmethod
    def of(cls, numbers: dict[Clause, int], slots: dict[Clause, set[int]], words: int) -> SlotTable:
        """The table of clauses with these numbers and slots."""
        clauses = sorted(numbers, key=lambda clause: numbers[clause])
        of_clause = [sorted(slots[clause]) for clause in clauses]
        is_wide = [len(members) > words for members in of_clause]
        wide_bits = [bitmap_of(members, words) for members, wide in zip(of_clause, is_wide, strict=True) if wide]
        return cls(
            words,
            np.array([numbers[clause] for clause in clauses], np.int64),
            np.cumsum([0, *map(len, of_clause)]),
            np.array([slot for members in of_clause for slot in members], np.int64),
            np.where(is_wide, np.cumsum(is_wide) - 1, -1).astype(np.int64),
            np.stack(wide_bits) if wide_bits else np.zeros((0, words), np.uint64),
            np.array(sorted(slots.get((), ())), np.int64),
            bitmap_of(sorted(slots.get((), ())), words),
        )

    def live(self, rows: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Pairs of a row and a clause, given numbers of clauses; without clauses that were removed."""
        clauses = np.searchsorted(self.numbers, numbers)
        is_live = self.numbers[np.minimum(clauses, len(self.numbers) - 1)] == numbers
        return (rows, clauses) if is_live.all() else (rows[is_live], clauses[is_live])

    def count(self, clauses: Numbers, rows: int) -> int:
        """The number of pairs of a row and a slot, of that many rows which satisfy these clauses."""
        sizes = self.starts[1:] - self.starts[:-1]
        return int(sizes[clauses].sum()) + rows * len(self.slots_everywhere)

    def dense(self, rows: Numbers, clauses: Numbers, count: int) -> Lineages:
        """The slots of rows as bitmaps, given the clauses that they satisfy.

        If bitmaps are long and rows satisfy few clauses, rows with the same clauses are found first.
        """
        if self.words * count <= SORTED_PAIRS * len(rows):
            bits = np.tile(self.everywhere, (count, 1))
            add_slots(bits, rows, clauses, self.starts, self.slots, self.wide, self.wide_bits)
            return Lineages.of_rows(bits)
        order = np.lexsort((clauses, rows))
        rows, clauses = rows[order], clauses[order]
        firsts, of_row = _distinct_sets(rows, clauses, count)
        line_of = np.full(count, -1, np.int64)
        line_of[firsts] = np.arange(len(firsts))
        lines = line_of[rows]
        is_first = lines >= 0
        bits = np.tile(self.everywhere, (len(firsts), 1))
        add_slots(bits, lines[is_first], clauses[is_first], self.starts, self.slots, self.wide, self.wide_bits)
        distinct = Lineages.of_rows(bits)
        return Lineages(distinct.bits, distinct.of_row[of_row])

    def sparse(self, rows: Numbers, clauses: Numbers, count: int) -> SparseLineages:
        """The slots of rows, given the clauses that they satisfy."""
        sizes = (self.starts[1:] - self.starts[:-1])[clauses]
        ends = np.cumsum(sizes)
        offsets = np.arange(int(sizes.sum())) + np.repeat(self.starts[clauses] - (ends - sizes), sizes)
        everywhere = self.slots_everywhere
        pair_rows = np.concatenate([np.repeat(rows, sizes), np.repeat(np.arange(count), len(everywhere))])
        slots = np.concatenate([self.slots[offsets], np.tile(everywhere, count)])
        order = np.argsort(pair_rows, kind="stable")
        return SparseLineages(pair_rows[order], slots[order], count, self.words)


def _distinct_sets(rows: Numbers, numbers: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """A row of each distinct set of numbers, and for each row the index of its set among these.

    The pairs of a row and a number are sorted; there are `count` rows, some perhaps without numbers.

    >>> firsts, of_row = _distinct_sets(np.array([0, 0, 2, 2, 3]), np.array([5, 7, 5, 7, 5]), 4)
    >>> bool(of_row[0] == of_row[2]), len(firsts), of_row[firsts].tolist()
    (True, 3, [0, 1, 2])
    """
    sizes = np.bincount(rows, minlength=count)
    starts = np.cumsum(sizes) - sizes
    keys = numbers.astype(np.uint64)
    sums = [sizes.view(np.uint64)]
    for factor in (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)):
        mixed = (keys + factor) * factor
        mixed = (mixed ^ (mixed >> np.uint64(29))) * factor
        ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        sums.append(ends[starts + sizes] - ends[starts])
    table = np.ascontiguousarray(np.stack(sums)).view(np.int64)
    firsts, of_row = distinct_keys(table)
    # Sums of hashes are the same for the same numbers; whether the numbers are the same is checked.
    offsets = np.arange(len(rows)) - starts[rows]
    if np.array_equal(numbers[starts[firsts[of_row[rows]]] + offsets], numbers):
        return firsts, of_row
    return np.arange(count), np.arange(count)


_NO_NUMBERS: Numbers = np.empty(0, np.int64)
