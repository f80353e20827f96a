"""The plain twin of joins over punctuated streams: all tuples in lists, every combination examined.

It knows the purge rule (PWJoin §3.1, for n inputs as in `tureen.joining.purging`), the propagation rule (Theorem 3.1)
and the rule of early propagation (Theorem 4.1), each written down tuple by tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from typing import Any

from tureen.testing.punctuations import PunctuatedStream

Row = Mapping[str, Any]
Column = tuple[int, str]
"""The number of an input, and a column of it."""


@dataclass
class TwinInput:
    """An input: a punctuated stream, or the rows of a table."""

    source: PunctuatedStream | Sequence[Row]
    window: timedelta | None = None

    @property
    def is_table(self) -> bool:
        """Whether it never grows."""
        return not isinstance(self.source, PunctuatedStream)

    @property
    def rows(self) -> Sequence[Row]:
        """What has arrived."""
        return self.source.accepted if isinstance(self.source, PunctuatedStream) else self.source


@dataclass
class JoinTwin:
    """A join by equalities of columns with one type."""

    inputs: Sequence[TwinInput]
    equalities: Sequence[tuple[Column, Column]]
    classes: list[set[Column]] = field(default_factory=list)
    """The columns that are equal in every joined tuple."""

    def __post_init__(self) -> None:
        """Find the columns that are equal in every joined tuple."""
        for pair in self.equalities:
            touched = [members for members in self.classes if members & set(pair)]
            self.classes = [members for members in self.classes if members not in touched] + [set(pair).union(*touched)]

    def joined(self, *, in_windows: bool = True) -> Iterator[tuple[int, ...]]:
        """All combinations of row numbers; in windows at the time of the latest tuple."""
        for numbers in product(*(range(len(entry.rows)) for entry in self.inputs)):
            rows = [entry.rows[number] for entry, number in zip(self.inputs, numbers, strict=True)]
            equal = all(_equal(rows[a][left], rows[b][right]) for (a, left), (b, right) in self.equalities)
            if equal and (not in_windows or self._is_in_windows(rows)):
                yield numbers

    def _is_in_windows(self, rows: Sequence[Row]) -> bool:
        latest = max(row["ts"] for row, entry in zip(rows, self.inputs, strict=True) if not entry.is_table)
        return all(
            entry.window is None or entry.is_table or row["ts"] >= latest - entry.window
            for row, entry in zip(rows, self.inputs, strict=True)
        )

    def is_closed(self, number: int, known: Mapping[str, Any]) -> bool:
        """Whether no tuple with these values in some columns can arrive in an input."""
        source = self.inputs[number].source
        if not isinstance(source, PunctuatedStream):
            return True
        return source.closes(known)

    def dead(self, combination: Mapping[int, Row]) -> bool:
        """Whether no later result contains a combination of tuples of some inputs."""
        others = [number for number in range(len(self.inputs)) if number not in combination]
        closed = [number for number in others if self.is_closed(number, self._determined(number, combination))]
        if len(closed) == len(others):
            return True
        return any(
            all(
                self.dead({**combination, number: row})
                for row in self.inputs[number].rows
                if self._is_comparable({**combination, number: row})
            )
            for number in closed
            if self._is_connected(number, combination)
        )

    def dead_rows(self, number: int) -> set[int]:
        """The numbers of the tuples of an input that can be purged."""
        return {index for index, row in enumerate(self.inputs[number].rows) if self.dead({number: row})}

    def is_exhausted(self, number: int, known: Mapping[str, Any]) -> bool:
        """Whether an input is closed for values, and its tuples with them have left the window for good."""
        window = self.inputs[number].window
        others = [entry.source for other, entry in enumerate(self.inputs) if other != number]
        streams = [stream for stream in others if isinstance(stream, PunctuatedStream)]
        bounds = [stream.earliest() for stream in streams]
        known_bounds = [bound for bound in bounds if bound is not None]
        if window is None or not streams or len(known_bounds) < len(bounds) or not self.is_closed(number, known):
            return False
        rows = (row for row in self.inputs[number].rows if all(_equal(row[name], known[name]) for name in known))
        return all(row["ts"] < min(known_bounds) - window for row in rows)

    def holds(self, key: Any) -> bool:
        """Whether a punctuation on the only equality class holds for the output."""
        (columns,) = self.classes
        known = [{column: key for number, column in columns if number == index} for index in range(len(self.inputs))]
        closed = [self.is_closed(number, values) for number, values in enumerate(known)]
        return all(closed) or any(
            self.is_exhausted(number, values) for number, values in enumerate(known) if not self.inputs[number].is_table
        )

    def _determined(self, number: int, combination: Mapping[int, Row]) -> dict[str, Any]:
        """The columns of an input whose values a combination determines."""
        values: dict[str, Any] = {}
        for fields in self.classes:
            known = [combination[other][column] for other, column in fields if other in combination]
            if known:
                values |= {column: known[0] for other, column in fields if other == number}
        return values

    def _is_comparable(self, combination: Mapping[int, Row]) -> bool:
        return all(
            _equal(combination[a][left], combination[b][right])
            for (a, left), (b, right) in self.equalities
            if a in combination and b in combination
        )

    def _is_connected(self, number: int, combination: Mapping[int, Row]) -> bool:
        return any(
            {a, b} <= {number, *combination} and number in (a, b) and a != b for (a, _), (b, _) in self.equalities
        )


def _equal(left: Any, right: Any) -> bool:
    return left is not None and right is not None and bool(left == right)
