"""The arrays of a query run: its distinct cut points, factors and clauses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]


class Typed:
    """A dataclass of arrays, each of 32-bit integers or of the type given in `types`."""

    types: ClassVar[dict[str, Any]] = {}


T = TypeVar("T", bound=Typed)


def typed(kind: type[T], parts: Mapping[str, Any]) -> T:
    """A dataclass of these arrays, converted to their types and read-only.

    Loops are compiled per array type; for both writable and read-only arrays they would be compiled twice.
    """
    arrays = {}
    for field in fields(kind):  # type: ignore[arg-type]
        arrays[field.name] = read_only(np.ascontiguousarray(parts[field.name], kind.types.get(field.name, np.int32)))
    return kind(**arrays)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Arrays(Typed):
    """The arrays of a query run, all read-only.

    Column `c` has the cut points `cut_start[c]` to `cut_start[c + 1]`: bottom, its keys ascending, top and end. A key
    is `high` if it is a 64-bit integer, `high` and `low` (lower word) for a wide DECIMAL, or for a text the bytes of
    `text` from `text_start[cut]` to the next start. Factor `f` is over column `factor_column[f]`, and the union of the
    ranges `factor_start[f]` to `factor_start[f + 1]`, each from cut point `range_low` to cut point `range_high`. Clause
    `q` has the factors `clause_factor[clause_start[q] : clause_start[q + 1]]`, where numbers past the last range factor
    are those of derived factors.
    """

    ids: npt.NDArray[np.int64]
    cut_start: Ints
    high: npt.NDArray[np.int64]
    low: npt.NDArray[np.uint64]
    text_start: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]
    factor_column: Ints
    factor_start: Ints
    range_low: Ints
    range_high: Ints
    clause_start: Ints
    clause_factor: Ints

    types: ClassVar[dict[str, Any]] = {
        "ids": np.int64,
        "high": np.int64,
        "low": np.uint64,
        "text_start": np.int64,
        "text": np.uint8,
    }

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Arrays:
        """The arrays, converted to their types and read-only."""
        return typed(cls, parts)


def spread(start: npt.NDArray[Any], chosen: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The indices of all elements of the chosen groups, where group `i` has those from `start[i]` to `start[i + 1]`.

    >>> spread(np.array([0, 2, 2, 5]), np.array([2, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    first = start[chosen].astype(np.int64)
    sizes = start[chosen + 1] - first
    total = int(sizes.sum())
    return np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(total)
