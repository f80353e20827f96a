"""The twin of followed groups: a follower's answer, to which changes are applied, and the difference of two answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tureen.keys import canonical_float

Row = Mapping[str, Any]
RowKey = tuple[Any, ...]


class AppliedChange(NamedTuple):
    """A change: its kind, the row (if it is gone, as it was), and the row before."""

    kind: str
    row: Row
    before: Row | None


class AppliedAnswer:
    """The rows of an answer by their keys, kept up to date by changes."""

    def __init__(self, keys: Sequence[str], rows: Iterable[Row] = ()) -> None:
        """Start with the rows of an answer; each has other values in the columns `keys`."""
        self._keys = keys
        self.rows: dict[RowKey, Row] = {}
        for row in rows:
            assert self.key(row) not in self.rows
            self.rows[self.key(row)] = row

    def key(self, row: Row) -> RowKey:
        """The values of a row's keys."""
        return tuple(_comparable(row[name]) for name in self._keys)

    def apply(self, change: AppliedChange) -> None:
        """Apply a change, which must fit: a row that joins is new, and one that changes or leaves is as it was."""
        if change.kind == "reset":
            assert change.before is None
            self.rows.clear()
            return
        key = self.key(change.row)
        if change.kind == "insert":
            assert change.before is None
            assert key not in self.rows, change
        else:
            assert change.before is not None
            assert same_row(self.rows[key], change.before), (change, self.rows[key])
        if change.kind == "delete":
            del self.rows[key]
        else:
            assert change.kind == "insert" or not same_row(self.rows[key], change.row), change
            self.rows[key] = change.row

    def differences(self, rows: Iterable[Row]) -> list[tuple[Row | None, Row | None]]:
        """The rows that differ from those of another answer: what it has here, and there."""
        others = {self.key(row): row for row in rows}
        pairs = [(self.rows.get(key), others.get(key)) for key in {**self.rows, **others}]
        return [(own, other) for own, other in pairs if own is None or other is None or not close_row(own, other)]


def _comparable(value: Any) -> Any:
    """A value that equals itself."""
    return canonical_float(value) if isinstance(value, float) else value


def same_row(row: Row, other: Row) -> bool:
    """Whether two rows have the same values; NaN is the same as NaN."""
    return row.keys() == other.keys() and all(_same(value, other[name]) for name, value in row.items())


def close_row(row: Row, other: Row) -> bool:
    """Whether two rows have the same values, up to the rounding of sums of doubles."""
    return row.keys() == other.keys() and all(_close(value, other[name]) for name, value in row.items())


def _close(value: Any, other: Any) -> bool:
    if isinstance(value, float) and isinstance(other, float) and math.isfinite(value - other):
        return abs(value - other) <= 1e-9 * max(abs(value), abs(other))
    return _same(value, other)


def _same(value: Any, other: Any) -> bool:
    return bool(_comparable(value) == _comparable(other)) or repr(value) == repr(other) == "nan"
