"""The streams that cover a query, out of thousands.

For each input stream, the selections of its derived streams are rows of arrays: the least and the greatest key of each
column as 64-bit integers, and which columns are not NULL and which are in the projection. One comparison of the arrays
with the bounds of a query leaves the candidates. A selection that is a single interval of each column is decided by
that comparison; the others are matched one by one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tureen.keys import GREATEST_KEY, LEAST_KEY
from tureen.predicate import Clause, Compare, Like, Within
from tureen.schema import Schema
from tureen.sharing.conjunction import hull_of
from tureen.sharing.covering import has_rows_of
from tureen.sharing.implication import Premise
from tureen.sharing.properties import Properties

Name = TypeVar("Name", bound=Hashable)

Keys = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_TEXT_BYTES = 7
"""How many bytes of a text are in its integer."""


class StreamIndex(Generic[Name]):
    """Streams by their properties."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table[Name]] = {}
        self._streams: dict[Name, Properties] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, name: Name, properties: Properties, schema: Schema) -> None:
        """Add a stream; `schema` is that of its input stream."""
        assert name not in self._streams
        self._tables.setdefault(properties.stream, _Table(schema)).add(name, properties)
        self._streams[name] = properties

    def remove(self, name: Name) -> None:
        """Remove a stream."""
        self._tables[self._streams.pop(name).stream].remove(name)

    def covering(self, query: Properties) -> list[Name]:
        """The streams from which a query can be computed."""
        table = self._tables.get(query.stream)
        return [] if table is None else table.covering(query)

    def overlapping(self, query: Properties) -> list[Name]:
        """The streams that may have rows in common with a query, and are not aggregated."""
        table = self._tables.get(query.stream)
        return [] if table is None else table.overlapping(query)


class _Table(Generic[Name]):
    """The derived streams of one input stream."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._numbers = {column.name: number for number, column in enumerate(schema.columns)}
        self._rows: dict[Name, int] = {}
        self._names: list[Name | None] = []
        self._free: list[int] = []
        self._properties: list[Properties | None] = []
        self._allocate(64)

    def _allocate(self, size: int) -> None:
        columns, used = len(self._numbers), len(self._names)
        grown = {
            "_low": np.full((size, columns), LEAST_KEY, np.int64),
            "_high": np.full((size, columns), GREATEST_KEY, np.int64),
            "_present": np.zeros((size, columns), np.bool_),
            "_has": np.zeros((size, columns), np.bool_),
            "_is_box": np.zeros(size, np.bool_),
            "_is_aggregated": np.zeros(size, np.bool_),
        }
        for name, array in grown.items():
            if used:
                array[:used] = getattr(self, name)[:used]
            setattr(self, name, array)

    _low: Keys
    _high: Keys
    _present: Flags
    _has: Flags
    _is_box: Flags
    _is_aggregated: Flags

    def add(self, name: Name, properties: Properties) -> None:
        if self._free:
            row = self._free.pop()
            self._names[row], self._properties[row] = name, properties
        else:
            row = len(self._names)
            if row == len(self._low):
                self._allocate(2 * row)
            self._names.append(name)
            self._properties.append(properties)
        self._rows[name] = row
        self._low[row], self._high[row], self._present[row] = LEAST_KEY, GREATEST_KEY, False
        self._has[row] = [column in properties.columns for column in self._numbers]
        self._is_aggregated[row] = properties.aggregation is not None
        self._is_box[row] = self._add_clause(row, properties.clause) and properties.aggregation is None
        if (
            properties.aggregation is not None
            and (bounds := self._bounds(Premise(self._schema, properties.clause))) is not None
        ):
            self._low[row], self._high[row], self._present[row] = bounds

    def _add_clause(self, row: int, clause: Clause) -> bool:
        """Write the bounds of a selection; whether they say all of it."""
        is_box = True
        for factor in clause:
            match factor:
                case Within(column, intervals):
                    number = self._numbers[column]
                    low, high = hull_of(self._schema.columns[number].type, intervals)
                    self._low[row, number], self._high[row, number] = _code(low, LEAST_KEY), _code(high, GREATEST_KEY)
                    self._present[row, number] = True
                    is_box = is_box and len(intervals) == 1 and _is_exact(low) and _is_exact(high)
                case Compare(left, _, right):
                    self._present[row, [self._numbers[left], self._numbers[right]]] = True
                    is_box = False
                case Like(column):
                    self._present[row, self._numbers[column]] = True
                    is_box = False
                case _:
                    is_box = False
        return is_box

    def remove(self, name: Name) -> None:
        row = self._rows.pop(name)
        self._names[row] = self._properties[row] = None
        # No query has bounds within these.
        self._low[row], self._high[row] = GREATEST_KEY, LEAST_KEY
        self._present[row] = True
        self._free.append(row)

    def covering(self, query: Properties) -> list[Name]:
        used = len(self._names)
        has, is_aggregated = self._has[:used], self._is_aggregated[:used]
        candidates = _all(has[:, self._numbers_of(query.columns)]) & ~is_aggregated
        certain = np.zeros(used, np.bool_)
        selection = Premise(self._schema, query.clause)
        bounds = self._bounds(selection)
        if bounds is not None:
            candidates &= self._contains(*bounds)
            read = self._numbers_of(query.columns | query.clause_columns)
            certain = candidates & self._is_box[:used] & _all(has[:, read])
        if query.aggregation is not None:
            candidates |= is_aggregated if bounds is None else is_aggregated & self._contains(*bounds)
        names = [self._names[row] for row in np.flatnonzero(certain)]
        for row in np.flatnonzero(candidates & ~certain):
            properties = self._properties[row]
            if properties is not None and has_rows_of(properties, query, selection):
                names.append(self._names[row])
        return [name for name in names if name is not None]

    def overlapping(self, query: Properties) -> list[Name]:
        used = len(self._names)
        rows = ~self._is_aggregated[:used]
        bounds = self._bounds(Premise(self._schema, query.clause))
        if bounds is not None:
            low, high, _ = bounds
            rows &= _all((self._low[:used] <= high) & (self._high[:used] >= low))
        return [name for name in (self._names[row] for row in np.flatnonzero(rows)) if name is not None]

    def _numbers_of(self, columns: frozenset[str]) -> list[int]:
        return [self._numbers[column] for column in columns]

    def _contains(self, low: Keys, high: Keys, present: Flags) -> Flags:
        """The streams whose bounds contain those of a query."""
        used = len(self._names)
        within = (self._low[:used] <= low) & (self._high[:used] >= high) & (~self._present[:used] | present)
        return _all(within)

    def _bounds(self, selection: Premise) -> tuple[Keys, Keys, Flags] | None:
        """The bounds of the tuples that satisfy a clause, and the columns that are not NULL; None if not known."""
        if selection.cases is None:
            return None
        size = len(self._numbers)
        low, high = np.full(size, GREATEST_KEY), np.full(size, LEAST_KEY)
        present = np.ones(size, np.bool_)
        for conjunction in selection.cases:
            hulls = conjunction.hulls()
            for name, number in self._numbers.items():
                least, greatest = hulls.get(name, (None, None))
                low[number] = min(low[number], _code(least, LEAST_KEY))
                high[number] = max(high[number], _code(greatest, GREATEST_KEY))
                present[number] &= name in conjunction.present
        return low, high, present


def _all(flags: Flags) -> Flags:
    """For each row whether all of its flags are set."""
    every: Flags = np.logical_and.reduce(flags, axis=1)
    return every


def _code(end: int | str | None, unbounded: int) -> int:
    """An end of an interval as an integer that sorts like it, or equals that of a near one."""
    if end is None:
        return unbounded
    if isinstance(end, str):
        return int.from_bytes(end.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), "big")
    return min(max(end, LEAST_KEY), GREATEST_KEY)


def _is_exact(end: int | str | None) -> bool:
    return end is None or (isinstance(end, int) and LEAST_KEY < end < GREATEST_KEY)
