"""The arrays of a query run: cut points, factors and clauses, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]


class Typed:
    """A dataclass of arrays, each of 32-bit integers or of the type that is named here."""

    types: ClassVar[dict[str, Any]] = {}


T = TypeVar("T", bound=Typed)


def typed(kind: type[T], parts: Mapping[str, Any]) -> T:
    """Take each array in its type, and let nobody write to it.

    Compiled code is made per kind of array; were some of them writable it would be made twice.
    """
    arrays = {}
    for one in fields(kind):  # type: ignore[arg-type]
        arrays[one.name] = read_only(np.ascontiguousarray(parts[one.name], kind.types.get(one.name, np.int32)))
    return kind(**arrays)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers, not to be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Arrays(Typed):
    """The arrays of a query run, all read-only.

    Column `c` has the cut points `cut_start[c]` to `cut_start[c + 1]`: bottom, then its keys ascending, then
    top and end. A key is `high` where it fits in 64 bits, `high` and `low` (lower word) for a wide DECIMAL,
    or the bytes of `text` from `text_start[cut]` to the next. Factor `f` looks at column `factor_column[f]`
    and is the union of the ranges `factor_start[f]` to `factor_start[f + 1]`, each from cut point `range_low`
    to cut point `range_high`. Clause `q` has the factors `clause_factor[clause_start[q] : clause_start[q + 1]]`,
    where numbers past the last factor are those of the derived ones.
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
        """Take each array in its type, not to be written to."""
        return typed(cls, parts)


def spread(start: npt.NDArray[Any], chosen: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The places that belong to the chosen ones, where one's places are those from its start to the next start.

    >>> spread(np.array([0, 2, 2, 5]), np.array([2, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    first = start[chosen].astype(np.int64)
    sizes = start[chosen + 1] - first
    total = int(sizes.sum())
    return np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(total)
