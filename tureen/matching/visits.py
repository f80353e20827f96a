"""The clauses to match column-major with a block, and the cut points and factors that this needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tureen.queries import QueryRun
from tureen.queries.access_predicates import cuts_of
from tureen.queries.arrays import read_only, spread


@dataclass(frozen=True, eq=False, slots=True)
class Visits:
    """The clauses to visit, in ascending order, the range factors they use, and the cut points of those.

    The cut points of column `c` are `cut[cut_start[c] : cut_start[c + 1]]`, ascending, with its edges.
    """

    clause: npt.NDArray[Any]
    factor: npt.NDArray[Any]
    cut: npt.NDArray[Any]
    cut_start: npt.NDArray[Any]


_NONE = read_only(np.empty(0, np.int32))
NO_VISITS = Visits(_NONE, _NONE, _NONE, _NONE)
"""No clauses to visit: all are matched by other access paths."""


def visits_of(run: QueryRun, reached: npt.NDArray[Any] | None) -> Visits:
    """The clauses that no key reaches, and the clauses of hot keys, `reached`."""
    access, arrays = run.access, run.arrays
    if reached is None:
        return Visits(access.visited, access.factor, access.cut, access.cut_start)
    used = arrays.clause_factor[spread(arrays.clause_start, reached)]
    marked = np.zeros(run.factors, np.bool_)
    marked[access.factor] = True
    marked[used[used < run.factors]] = True
    factor = np.flatnonzero(marked).astype(np.int32)
    cut = cuts_of(arrays, factor).astype(np.int32)
    start = np.searchsorted(cut, arrays.cut_start).astype(np.int32)
    return Visits(with_clauses(access.visited, reached), read_only(factor), read_only(cut), read_only(start))


def with_clauses(visited: npt.NDArray[Any], more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct clauses of both arrays, ascending."""
    return read_only(np.union1d(visited, more).astype(np.int32))
