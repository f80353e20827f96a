"""The thresholds of matching, and what its parts cost: by these the way of each clause is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Costs:
    """What the parts of matching cost, in nanoseconds, as measured (docs/decisions/0013).

    `visit`: a clause that is visited and matches little, with the ranks of its cut points. `bitmap`: what it costs
    more if it matches many rows, `word`: and more for each 64 rows of the block. `late`: what it costs more if it is
    visited for a hot key. `row`: to see whether a row may have a bucket; `search`: to find a bucket, `search_text` if
    its key is a text. `pair`: a row of a bucket, for each member. `stretch`: to find a row's place among a column's
    cut points; `lineage`: a row and a visited clause, row-major.
    """

    visit: float = 200.0
    bitmap: float = 300.0
    word: float = 2.4
    late: float = 150.0
    row: float = 4.0
    search: float = 25.0
    search_text: float = 150.0
    pair: float = 1.25
    stretch: float = 80.0
    lineage: float = 1.0


@dataclass(frozen=True, slots=True)
class Tuning:
    """The thresholds of matching: they decide what it costs, never what it gives.

    `exact_bytes`: up to this size a column's prefix bitmaps stand at every cut point; beyond, at every
    `coarse_slots`-th part of the block. `short_share`: a factor with at most one row in so many gives
    candidates to check, instead of bitmaps to AND. `costs` decide between the ways to a clause. `dense_share`: the
    entry of a clause of ranges alone with more than one row in so many has no container, because the index of the block
    gives its rows for little more; 0 writes all of them.
    """

    exact_bytes: int = 4 << 20
    coarse_slots: int = 1024
    short_share: int = 64
    dense_share: int = 0
    costs: Costs = field(default_factory=Costs)

    def looks_up(self, rows: int, keys: int, members: int, text: bool) -> bool:
        """Whether so many rows look for their buckets, or the column's clauses, so many, are all visited."""
        costs = self.costs
        search = costs.search_text if text else costs.search
        return rows * costs.row + min(rows, keys) * search <= members * costs.visit

    def most_rows(self, rows: int) -> float:
        """The most rows of a block of that size that a bucket is scanned for; with more, its key is hot."""
        costs = self.costs
        visited = costs.visit + costs.bitmap + costs.late + costs.word * ((rows + 63) // 64)
        return visited / costs.pair if costs.pair else rows

    def most_by_row(self, clauses: int, columns: int) -> float:
        """The most rows of a block whose visited clauses, so many, over so many columns, are matched row-major."""
        costs = self.costs
        a_row = clauses * costs.lineage + columns * costs.stretch
        return clauses * (costs.visit + costs.bitmap) / a_row if a_row else float("inf")
