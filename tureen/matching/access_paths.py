"""The access paths of a query run's clauses: by key, visited column-major, or row-major."""

from __future__ import annotations

from typing import Any

import numpy as np

from tureen.matching.tuning import Tuning
from tureen.queries import QueryRun
from tureen.queries.lineage import lineage_bytes


def row_major_limit(run: QueryRun, tuning: Tuning) -> float:
    """The number of a block's rows up to which the visited clauses are matched row-major."""
    return tuning.row_major_limit(len(run.access.visited), len(run.names) + len(run.derived_texts))


def describe(run: QueryRun, tuning: Tuning = Tuning()) -> dict[str, Any]:  # noqa: B008  (it is frozen)
    """The numbers of clauses by access path.

    `by_key` has an entry for each access column: its name, its numbers of keys and of clauses, and the column of the
    interval by which a key's clauses are sorted, or None. `visited` clauses are matched column-major, except in blocks
    of at most `by_row_up_to` rows, where they are matched row-major; that is 0 if their bitmaps would be too large.
    """
    access = run.access
    by_key = []
    for number, column in enumerate(access.column.tolist()):
        first, last = access.column_start[number : number + 2].tolist()
        residual = int(access.residual[number])
        by_key.append(
            {
                "column": run.names[column],
                "keys": last - first,
                "clauses": int(access.bucket_start[2 * last] - access.bucket_start[2 * first]),
                "residual": run.names[residual] if residual >= 0 else None,
            }
        )
    fits = lineage_bytes(access, len(run.derived_texts)) is not None
    limit = row_major_limit(run, tuning) if fits and len(access.visited) else 0
    return {"by_key": by_key, "visited": len(access.visited), "by_row_up_to": int(min(limit, 65_536))}


def access_column(run: QueryRun, position: int) -> str | None:
    """The column whose key reaches the clause at that position, or None if the clause is visited."""
    access = run.access
    index = int(np.searchsorted(access.visited, position))
    if index < len(access.visited) and access.visited[index] == position:
        return None
    member = int(np.flatnonzero((access.member == position) | (access.member == ~position))[0])
    bucket = int(np.searchsorted(access.bucket_start[::2], member, side="right")) - 1
    number = int(np.searchsorted(access.column_start, bucket, side="right")) - 1
    return run.names[int(access.column[number])]
