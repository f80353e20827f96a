"""Matches of a template: which new tuples satisfy which of its queries, all queries at once.

Queries of one shape are rows of values, so that matching them is a join of tuples and values on the template's
WHERE clause. DuckDB finds its equalities and hashes them, which is CACQ's and PSoup's index of queries (grouped
filters) for as many queries as there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.values import ROW, numbered
from tureen.matching.duck import run
from tureen.pot.position import Position
from tureen.query import Expression
from tureen.results.changes import News

NUMBER = "_number"
"""The column that says which query of the template some values make."""

BATCH = 1 << 16
"""How many tuples are joined with the values at a time."""


@dataclass(frozen=True)
class Matches:
    """New rows with the numbers of the queries they satisfy, in order of arrival and then of the number."""

    news: News
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """How many."""
        return len(self.numbers)

    def position(self, place: int | None = None) -> str:
        """Where to go on after the match at that place, or after all of them."""
        if place is None or place + 1 == len(self) or self.news.ids[place] != self.news.ids[place + 1]:
            return self.news.position(place)
        return self.news.position_at(int(self.news.ids[place]), int(self.numbers[place]) + 1)


def matches(news: News, condition: Expression | None, values: pa.Table, since: Position | None) -> Matches:
    """The queries that each new row satisfies; a row appears once for each of them."""
    rows, queries = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    only = "" if condition is None else f" WHERE {condition.sql}"
    sql = f"SELECT {ROW}, {NUMBER} FROM rows, queries{only} ORDER BY {ROW}, {NUMBER}"
    table = numbered(news.rows)
    for start in range(0, table.num_rows, BATCH):
        found = run(sql, {"rows": table.slice(start, BATCH), "queries": values}, "the condition")
        rows.append(found.column(0).to_numpy())
        queries.append(found.column(1).to_numpy())
    at, numbers = np.concatenate(rows), np.concatenate(queries)
    if since is not None and since.member:
        # The first tuple was given to some of the queries already.
        left = (news.ids[at] != since.ids) | (numbers >= since.member)
        at, numbers = at[left], numbers[left]
    return Matches(replace(news, rows=news.rows.take(pa.array(at)), ids=news.ids[at]), numbers)
