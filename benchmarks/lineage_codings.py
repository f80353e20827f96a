"""Codings of lineages, for 100 to 100,000 queries over one join: which queries want each of a block's joined tuples.

* *dense bitmaps*: a bitmap for each tuple, and one for each joined tuple.
* *dictionary*: a bitmap for each distinct set of clauses that tuples satisfy, and each pair of them combined once
  (`tureen/joining/lineages.py`).
* *pairs*: for each new tuple, the queries whose clause it satisfies; those whose clause on the other input the partner
  does not satisfy are removed (`tureen/joining/sparse_lineages.py`).
* *chosen*: what the operator does: pairs where there are few, else the dictionary.

Clauses on the first input either overlap (a tenth of the values each, a thousand distinct ones) or are disjoint (each
query has its own values); sixteen clauses on the other input overlap. The codings must give the same pairs. Times are
those of a block of new tuples with one partner each: from the clauses that the tuples satisfy to the queries, and to
the rows of a hundred queries, if they read them one by one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.plot import draw_curves
from benchmarks.report import Report
from tureen.joining.clause_lineages import DENSE_PAIRS, SlotTable
from tureen.joining.lineage_kernels import add_slots
from tureen.joining.lineages import Lineages
from tureen.joining.sparse_lineages import SparseLineages, combined

Numbers = npt.NDArray[np.int64]
Bitmaps = npt.NDArray[np.uint64]

TUPLES = 4_096
VALUES = 100_000
COUNTS = (100, 1_000, 10_000, 100_000)
QUICK_COUNTS = (100, 1_000)
DISTINCT = 1_000
"""The distinct overlapping clauses on the first input."""
OTHER = 16
"""The clauses on the other input."""
READERS = 100
ROUNDS = 5
SEED = 2002


@dataclass(frozen=True)
class SatisfiedClauses:
    """Which clauses of an input tuples satisfy, and the queries of each clause."""

    rows: Numbers
    clauses: Numbers
    table: SlotTable

    @classmethod
    def of(cls, rows: Numbers, clauses: Numbers, of_query: Numbers, count: int) -> SatisfiedClauses:
        """Group the queries by clause."""
        words = -(-len(of_query) // 64)
        slots = np.argsort(of_query, kind="stable")
        starts = np.searchsorted(of_query[slots], np.arange(count + 1))
        nothing = np.zeros((0, words), np.uint64)
        wide, nobody = np.full(count, -1, np.int64), np.empty(0, np.int64)
        everywhere = np.zeros(words, np.uint64)
        return cls(rows, clauses, SlotTable(words, np.arange(count), starts, slots, wide, nothing, nobody, everywhere))

    def bitmaps(self) -> Bitmaps:
        """A bitmap of queries for each tuple."""
        table = self.table
        bits = np.zeros((TUPLES, table.words), np.uint64)
        add_slots(bits, self.rows, self.clauses, table.starts, table.slots, table.wide, table.wide_bits)
        return bits

    def dense(self) -> Lineages:
        """A bitmap for each distinct set of clauses."""
        return self.table.dense(self.rows, self.clauses, TUPLES)

    def sparse(self) -> SparseLineages:
        """Pairs of a tuple and a query."""
        return self.table.sparse(self.rows, self.clauses, TUPLES)

    def chosen(self) -> Lineages | SparseLineages:
        """The form that the operator chooses."""
        has_few = self.table.count(self.clauses, TUPLES) <= DENSE_PAIRS * TUPLES * self.table.words
        return self.sparse() if has_few else self.dense()


@dataclass(frozen=True)
class JoinedBlockClauses:
    """New tuples, their partners, and the clauses that both satisfy; the n-th tuples of both are joined."""

    queries: int
    left: SatisfiedClauses
    right: SatisfiedClauses


@dataclass(frozen=True)
class CodedBlock:
    """The queries of joined tuples in some coding."""

    size: int
    """Bytes."""
    rows_of: Callable[[int], Numbers]
    """The joined tuples that a query wants."""


def workload(queries: int, *, overlapping: bool) -> JoinedBlockClauses:
    """Queries over one join, and a block of joined tuples."""
    random = np.random.default_rng(SEED)
    values, other_values = random.integers(0, VALUES, (2, TUPLES))
    if overlapping:
        lows = np.arange(DISTINCT) * (VALUES * 9 // 10) // DISTINCT
        rows, clauses = np.nonzero((values[:, None] >= lows) & (values[:, None] < lows + VALUES // 10))
        left = SatisfiedClauses.of(rows, clauses, random.integers(0, DISTINCT, queries), DISTINCT)
    else:
        left = SatisfiedClauses.of(np.arange(TUPLES), values * queries // VALUES, np.arange(queries), queries)
    lows = np.arange(OTHER) * (VALUES // 2) // OTHER
    rows, clauses = np.nonzero((other_values[:, None] >= lows) & (other_values[:, None] < lows + VALUES // 2))
    return JoinedBlockClauses(
        queries, left, SatisfiedClauses.of(rows, clauses, random.integers(0, OTHER, queries), OTHER)
    )


def _coded(lineages: Lineages | SparseLineages) -> CodedBlock:
    rows = lineages.nonempty
    coded = lineages.take(rows).compacted()
    if isinstance(coded, Lineages):
        return CodedBlock(coded.bits.nbytes + coded.of_row.nbytes, lambda slot: rows[coded.rows_of(slot)])
    return CodedBlock(coded.rows.nbytes + coded.slots_of_rows.nbytes, lambda slot: rows[coded.rows_of(slot)])


def dense_bitmaps(block: JoinedBlockClauses) -> CodedBlock:
    """A bitmap for each joined tuple."""
    bits = block.left.bitmaps() & block.right.bitmaps()
    rows = np.flatnonzero(np.any(bits, axis=1))
    bits = bits[rows]

    def rows_of(slot: int) -> Numbers:
        has_slot = bits[:, slot >> 6] >> np.uint64(slot & 63) & np.uint64(1)
        matching: Numbers = rows[np.flatnonzero(has_slot)]
        return matching

    return CodedBlock(bits.nbytes + rows.nbytes, rows_of)


CODINGS: Mapping[str, Callable[[JoinedBlockClauses], CodedBlock]] = {
    "dense bitmaps": dense_bitmaps,
    "dictionary": lambda block: _coded(combined(block.left.dense(), block.right.dense())),
    "pairs": lambda block: _coded(combined(block.left.sparse(), block.right.dense())),
    "chosen": lambda block: _coded(combined(block.left.chosen(), block.right.chosen())),
}


def measure(report: Report, *, quick: bool) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Milliseconds of processor time by kind of clauses, coding and number of queries."""
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for kind in ("overlapping", "disjoint"):
        curves[kind] = {coding: [] for coding in CODINGS}
        for queries in QUICK_COUNTS if quick else COUNTS:
            block = workload(queries, overlapping=kind == "overlapping")
            _verify(block)
            for coding, code in CODINGS.items():
                coded, milliseconds, reading = _measured(code, block)
                label = f"lineages of {queries:,} queries, {kind} clauses, {coding}"
                report.add(f"{label}: a block of {TUPLES:,} joined tuples", milliseconds, "ms")
                report.add(f"{label}: the rows of {READERS} queries", reading, "ms")
                report.add(f"{label}: memory", coded.size / 1e6, "MB")
                curves[kind][coding].append((queries, milliseconds + reading))
    return curves


def plot(curves: Mapping[str, Mapping[str, list[tuple[float, float]]]], report: Report) -> None:
    """Draw a plot for each kind of clauses."""
    for kind, by_coding in curves.items():
        title = f"Codings of lineages, {kind} clauses"
        path = report.plot(f"lineages-{kind}.svg", title)
        draw_curves(path, title, by_coding, x="queries", y=f"ms for {TUPLES:,} joined tuples", base=10)


def _measured(
    code: Callable[[JoinedBlockClauses], CodedBlock], block: JoinedBlockClauses
) -> tuple[CodedBlock, float, float]:
    coding, reading = [], []
    slots = np.random.default_rng(SEED).integers(0, block.queries, READERS).tolist()
    for _ in range(ROUNDS):
        began = time.process_time()
        coded = code(block)
        coding.append(time.process_time() - began)
        began = time.process_time()
        for slot in slots:
            coded.rows_of(slot)
        reading.append(time.process_time() - began)
    return coded, 1000 * statistics.median(coding), 1000 * statistics.median(reading)


def _verify(block: JoinedBlockClauses) -> None:
    coded = [code(block) for code in CODINGS.values()]
    for slot in np.random.default_rng(1).integers(0, block.queries, 50).tolist():
        rows = [np.sort(each.rows_of(slot)).tolist() for each in coded]
        assert all(each == rows[0] for each in rows), f"the codings have different rows of query {slot}"
