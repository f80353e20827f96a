"""Bounds checks of a query run's arrays, since compiled loops do not check bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tureen.queries.access_predicates import AccessIndex
from tureen.queries.arrays import Arrays


def check_bounds(arrays: Arrays, access: AccessIndex, columns: int, derived: int) -> None:
    """Raise ValueError if an array refers to an element outside of another array."""
    clauses, factors, cuts = len(arrays.ids), len(arrays.factor_column), len(arrays.high)
    starts: dict[str, tuple[npt.NDArray[Any], int]] = {
        "cut_start": (arrays.cut_start, cuts),
        "factor_start": (arrays.factor_start, len(arrays.range_low)),
        "clause_start": (arrays.clause_start, len(arrays.clause_factor)),
        "text_start": (arrays.text_start, len(arrays.text)),
        "access column_start": (access.column_start, len(access.bucket_cut)),
        "access bucket_start": (access.bucket_start, len(access.member)),
        "access cut_start": (access.cut_start, len(access.cut)),
    }
    numbers: dict[str, tuple[npt.NDArray[Any], int]] = {
        "range_low": (arrays.range_low, cuts),
        "range_high": (arrays.range_high, cuts),
        "factor_column": (arrays.factor_column, columns),
        "clause_factor": (arrays.clause_factor, factors + derived),
        "access column": (access.column, columns),
        "access residual": (np.maximum(access.residual, 0), columns),
        "access bucket_cut": (access.bucket_cut, cuts),
        "access member": (np.maximum(access.member, ~access.member), clauses),
        "access visited": (access.visited, clauses),
        "access factor": (access.factor, factors),
        "access cut": (access.cut, cuts),
    }
    for name, (start, end) in starts.items():
        if not len(start) or start[0] != 0 or start[-1] != end or np.any(np.diff(start) < 0):
            raise ValueError(f"'{name}' points outside of its array")
    for name, (values, end) in numbers.items():
        if not _below(values, end):
            raise ValueError(f"'{name}' points outside of its array")


def _below(values: npt.NDArray[Any], end: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < end)
