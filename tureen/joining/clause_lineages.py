"""The clauses of one input of a continuous join: which of them a tuple satisfies tells which queries want it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tureen.joining.join_input import Numbers
from tureen.joining.lineage_kernels import add_slots
from tureen.joining.lineages import Bitmaps, Lineages, bitmap_of
from tureen.joining.sparse_lineages import SparseLineages
from tureen.matching.clause_set import ClauseSet
from tureen.predicate import Clause
from tureen.stems.cells.lineage_pairs import pairs_of
from tureen.stems.index import BLOCK_ROWS, Block

DENSE_PAIRS = 0.5
"""With more pairs of a tuple and a query than this for each word of bitmaps, lineages are bitmaps."""


class ClauseLineages:
    """The clauses of one input: which of them a tuple satisfies tells who wants it."""

    def __init__(self, schema: pa.Schema) -> None:
        """Start without slots; tuples have the columns of that schema."""
        self._schema = schema
        self._set = ClauseSet(schema)
        self._numbers: dict[Clause, int] = {}
        self._slots: dict[Clause, set[int]] = {}
        self._table: _SlotTable | None = None

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
            table = self._table = _SlotTable.of(self._numbers, self._slots, words)
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
        bits = np.tile(everywhere, (rows, 1))
        add_slots(bits, matched, clauses, table.starts, table.slots, table.wide, table.wide_bits)
        return Lineages.of_rows(bits)


@dataclass(frozen=True)
class _SlotTable:
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
    def of(cls, numbers: dict[Clause, int], slots: dict[Clause, set[int]], words: int) -> _SlotTable:
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


_NO_NUMBERS: Numbers = np.empty(0, np.int64)
