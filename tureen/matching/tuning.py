"""The thresholds of matching, and what its parts cost: by these the way of each clause is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Costs:
    """What the parts of matching cost, in nanoseconds, as measured (docs/decisions/0013).

    `visit`: a clause that is visited, with the ranks of its cut points; `word`: 64 rows of a visited clause whose rows
    are many. `search`: a row that looks for its bucket; `pair`: a row of a bucket, for each member.
    """

    visit: float = 100.0
    word: float = 1.0
    search: float = 25.0
    pair: float = 1.0


@dataclass(frozen=True, slots=True)
class Tuning:
    """The thresholds of matching: they decide what it costs, never what it gives.

    `exact_bytes`: up to this size a column's prefix bitmaps stand at every cut point; beyond, at every
    `coarse_slots`-th part of the block. `short_share`: a factor with at most one row in so many gives
    candidates to check, instead of bitmaps to AND. `costs` decide between the ways to a clause.
    """

    exact_bytes: int = 4 << 20
    coarse_slots: int = 1024
    short_share: int = 64
    costs: Costs = field(default_factory=Costs)

    def looks_up(self, rows: int, members: int) -> bool:
        """Whether so many rows look for their buckets, or the column's clauses, so many, are all visited."""
        return rows * self.costs.search <= members * self.costs.visit

    def most_rows(self, rows: int) -> float:
        """The most rows of a block of that size that a bucket is scanned for; with more, its key is hot."""
        if self.costs.pair == 0:
            return rows
        return (self.costs.visit + self.costs.word * ((rows + 63) // 64)) / self.costs.pair
