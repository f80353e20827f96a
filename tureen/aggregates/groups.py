"""Group numbers: every combination of key values that occurs gets a number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
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


class GroupNumbers:
    """Numbers for combinations of key values, in order of their first appearance.

    NULL is a value like any other here, NaN equals itself, and -0.0 is 0.0.
    """

    def __init__(self, types: Sequence[Type]) -> None:
        """Start without groups; without keys, start with the single group of all rows."""
        self._types = types
        self._numbers: dict[tuple[Any, ...], int] = {} if types else {(): 0}
        self._columns: list[pa.Array] = [pa.nulls(0, kind.arrow) for kind in types]
        self._ranks: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._numbers)

    def codes(self, keys: Sequence[pa.Array], rows: int) -> Codes:
        """The group of each row, given its key values; new combinations get the next numbers."""
        if not self._types:
            return np.zeros(rows, np.int32)
        local, firsts = _local_codes([_plain(key, key_type) for key, key_type in zip(keys, self._types, strict=True)])
        picked = pa.array(firsts)
        columns = [_values(key.take(picked)) for key in keys]
        numbers = self._numbers
        group_numbers = [numbers.setdefault(values, len(numbers)) for values in zip(*columns, strict=True)]
        return np.array(group_numbers, np.int32)[local]

    def columns(self, codes: Codes) -> list[pa.Array]:
        """The key values of the given groups."""
        if not self._types:
            return []
        self._describe()
        picked = pa.array(codes)
        return [column.take(picked) for column in self._columns]

    def ranks(self, codes: Codes) -> npt.NDArray[np.int64]:
        """The ranks of groups by their keys: ascending, NULL first, NaN last."""
        if not self._types:
            return np.zeros(len(codes), np.int64)
        self._rank()
        return self._ranks[codes]

    def _describe(self) -> None:
        """Add the key values of new groups to the columns."""
        described = len(self._columns[0])
        if described == len(self._numbers):
            return
        values = list(islice(self._numbers, described, None))
        for position, kind in enumerate(self._types):
            new = pa.array([key[position] for key in values], kind.arrow)
            self._columns[position] = pa.concat_arrays([self._columns[position], new])

    def _rank(self) -> None:
        """Rank all groups."""
        self._describe()
        if len(self._ranks) == len(self._numbers):
            return
        names = [key_name(position) for position in range(len(self._types))]
        table = pa.table([*self._columns, pa.array(np.arange(len(self._numbers)))], names=[*names, "number"])
        order_by = ", ".join(f'"{name}" ASC NULLS FIRST' for name in names)
        order = run(f"SELECT number FROM groups ORDER BY {order_by}", {"groups": table}, "sorting groups")
        ranks = np.empty(len(self._numbers), np.int64)
        ranks[order.column(0).to_numpy()] = np.arange(len(ranks))
        self._ranks = ranks


def _plain(key: pa.Array, key_type: Type) -> pa.Array:
    """A key column with a single zero."""
    return pc.add(key, pa.scalar(0.0, key.type)) if key_type.kind in FRACTIONAL else key


def _values(column: pa.Array) -> list[Any]:
    """Python values; NaN is always the same object, so that a dict finds it."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if value is None else canonical_float(value) for value in values]
    return values


def _local_codes(keys: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each row, equal for rows of equal keys, and the first row of each number."""
    combined = _indices(keys[0])
    for key in keys[1:]:
        following = _indices(key)
        width = int(following.max(initial=0)) + 1
        combined = _dense(combined * width + following)
    size = int(combined.max(initial=-1)) + 1
    firsts = np.empty(size, np.int64)
    # Assigned in reverse, so that the first row of each number wins.
    firsts[combined[::-1]] = np.arange(len(combined) - 1, -1, -1)
    return combined, firsts


def _indices(key: pa.Array) -> npt.NDArray[np.int64]:
    encoded = key.dictionary_encode(null_encoding="encode")
    indices: npt.NDArray[np.int64] = encoded.indices.to_numpy().astype(np.int64)
    return indices


def _dense(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers without gaps, in the same order."""
    span = int(numbers.max(initial=-1)) + 1
    if span <= 4 * len(numbers) + 1024:
        occurs = np.zeros(span, np.bool_)
        occurs[numbers] = True
        return (np.cumsum(occurs) - 1)[numbers]
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
