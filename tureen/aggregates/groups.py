"""Groups: the combinations of key values that were met, each under a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.evaluation.duck import run
from tureen.keys import canonical_float
from tureen.query import key_name
from tureen.schema import FRACTIONAL, Type

Codes = npt.NDArray[np.int32]


class Groups:
    """Numbers for combinations of key values, in order of their first appearance.

    NULL is a value like any other here, NaN equals itself, and -0.0 is 0.0.
    """

    def __init__(self, types: Sequence[Type]) -> None:
        """Start with none; without keys there is one group from the start, that of all rows."""
        self._types = types
        self._numbers: dict[tuple[Any, ...], int] = {} if types else {(): 0}
        self._columns: list[pa.Array] = [pa.nulls(0, kind.arrow) for kind in types]
        self._ranks: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._described = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._numbers)

    def codes(self, keys: Sequence[pa.Array], rows: int) -> Codes:
        """The group of each row, given its key values; new combinations get the next numbers."""
        if not self._types:
            return np.zeros(rows, np.int32)
        local, firsts = _local_codes([_plain(key, one) for key, one in zip(keys, self._types, strict=True)])
        picked = pa.array(firsts)
        columns = [_values(key.take(picked)) for key in keys]
        numbers = self._numbers
        found = [numbers.setdefault(values, len(numbers)) for values in zip(*columns, strict=True)]
        return np.array(found, np.int32)[local]

    def columns(self, codes: Codes) -> list[pa.Array]:
        """The key values of some groups."""
        if not self._types:
            return []
        self._describe()
        picked = pa.array(codes)
        return [column.take(picked) for column in self._columns]

    def ranks(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Numbers that sort groups as their keys sort: ascending, NULL first, NaN last."""
        if not self._types:
            return np.zeros(len(codes), np.int64)
        self._describe()
        return self._ranks[codes]

    def _describe(self) -> None:
        """Put the values of all groups into columns, and find out their order."""
        if self._described == len(self._numbers):
            return
        values = list(self._numbers)
        self._columns = [pa.array([one[place] for one in values], kind.arrow) for place, kind in enumerate(self._types)]
        names = [key_name(place) for place in range(len(self._types))]
        table = pa.table([*self._columns, pa.array(np.arange(len(values)))], names=[*names, "number"])
        wanted = ", ".join(f'"{name}" ASC NULLS FIRST' for name in names)
        order = run(f"SELECT number FROM groups ORDER BY {wanted}", {"groups": table}, "sorting groups")
        self._ranks = np.empty(len(values), np.int64)
        self._ranks[order.column(0).to_numpy()] = np.arange(len(values))
        self._described = len(values)


def _plain(key: pa.Array, one: Type) -> pa.Array:
    """A key column with one NaN and one zero."""
    return pc.add(key, pa.scalar(0.0, key.type)) if one.kind in FRACTIONAL else key


def _values(column: pa.Array) -> list[Any]:
    """Values as Python has them; NaN is always the same object, by which it is found again."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if value is None else canonical_float(value) for value in values]
    return values


def _local_codes(keys: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each row, equal where all keys are, and the first row of each number."""
    combined = _indices(keys[0])
    for key in keys[1:]:
        following = _indices(key)
        width = int(following.max(initial=0)) + 1
        combined = _dense(combined * width + following)
    size = int(combined.max(initial=-1)) + 1
    firsts = np.empty(size, np.int64)
    # Assigned backwards, so that the first row of each number is what stays.
    firsts[combined[::-1]] = np.arange(len(combined) - 1, -1, -1)
    return combined, firsts


def _indices(key: pa.Array) -> npt.NDArray[np.int64]:
    encoded = key.dictionary_encode(null_encoding="encode")
    indices: npt.NDArray[np.int64] = encoded.indices.to_numpy().astype(np.int64)
    return indices


def _dense(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same numbers without gaps."""
    span = int(numbers.max(initial=-1)) + 1
    if span <= 4 * len(numbers) + 1024:
        seen = np.zeros(span, np.bool_)
        seen[numbers] = True
        return (np.cumsum(seen) - 1)[numbers]
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
