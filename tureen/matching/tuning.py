"""The thresholds and costs of matching, by which the access path of each clause is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of the steps of matching, in nanoseconds, as measured (docs/decisions/0013).

    `visit`: visiting a clause that matches little, with the ranks of its cut points. `bitmap`: the extra cost if it
    matches many rows, and `word`: the extra cost for each 64 rows of the block. `late`: the extra cost of visiting it
    because of a hot key. `row`: checking whether a row may have a bucket; `search`: finding a bucket, `search_text` if
    its key is a text. `pair`: a row of a bucket, for each member. `stretch`: finding a row's stretch between a column's
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
    """The thresholds of matching, which affect its speed but never its result.

    `exact_bytes`: up to this size a column has a prefix bitmap at every cut point; beyond, at `coarse_slots` ranks of
    the block. `short_share`: a factor with at most 1 in `short_share` rows yields candidates to check, instead of
    bitmaps to AND. `dense_share`: the entry of a clause of ranges only with more than 1 in `dense_share` rows gets no
    container, because the index of the block yields its rows about as quickly; 0 writes all containers. `costs` decide
    between access paths.
    """

    exact_bytes: int = 4 << 20
    coarse_slots: int = 1024
    short_share: int = 64
    dense_share: int = 0
    costs: Costs = field(default_factory=Costs)

    def prefers_lookup(self, rows: int, keys: int, members: int, text: bool) -> bool:
        """Whether looking up the buckets of `rows` rows costs at most as much as visiting all `members` clauses."""
        costs = self.costs
        search = costs.search_text if text else costs.search
        return rows * costs.row + min(rows, keys) * search <= members * costs.visit

    def hot_key_limit(self, rows: int) -> float:
        """The number of a block's rows above which a key is hot: its clauses are visited, its bucket is not scanned."""
        costs = self.costs
        visited = costs.visit + costs.bitmap + costs.late + costs.word * ((rows + 63) // 64)
        return visited / costs.pair if costs.pair else rows

    def row_major_limit(self, clauses: int, columns: int) -> float:
        """The number of a block's rows up to which `clauses` visited clauses over `columns` columns match row-major."""
        costs = self.costs
        row_cost = clauses * costs.lineage + columns * costs.stretch
        return clauses * (costs.visit + costs.bitmap) / row_cost if row_cost else float("inf")
