"""Patterns of a query's inputs, as patterns of its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tureen.closed.pattern import CodeRange, Pattern, ValueList
from tureen.closed.pattern_values import fitting
from tureen.join import Field, parse_field
from tureen.position import Mark, UnreadChanges
from tureen.query import Query

Part = ValueList | CodeRange


class InputPart(NamedTuple):
    """The part of a pattern for columns of a query's inputs that have the same value in all of its rows."""

    fields: Sequence[Field]
    part: Part


class PlacedOutput(NamedTuple):
    """A punctuation among the rows that joined an answer."""

    at: int
    """The number of rows before it."""
    pattern: Pattern
    """Over the names of the outputs."""
    marks: Mapping[int, Mark]
    """The marks after it."""
    unread: UnreadChanges | None = None
    """What was not read up to these marks."""


class OutputPatterns:
    """The outputs of a query that are columns of its inputs."""

    def __init__(self, query: Query) -> None:
        """Prepare a query whose answer has one row for each of its joined rows."""
        names = [output.name for output in query.outputs]
        # Of several outputs with the same name, a row as a dict has one.
        values = {output.name: output.value for output in query.outputs if names.count(output.name) == 1}
        self._names = {name: parse_field(value.column) for name, value in values.items() if value.column is not None}
        self._types = {name: value.type for name, value in values.items()}

    def pattern(self, parts: Sequence[InputPart]) -> Pattern | None:
        """The pattern over all outputs that are these columns; None if a part has no output, or no row can match it.

        Without one of its parts, a pattern would promise more.
        """
        columns: dict[str, Part] = {}
        for fields, whole in parts:
            names = [name for name, field in self._names.items() if field in fields]
            part: Part | None = whole
            for name in names:
                # A column that equals a wider one does not have all values of that.
                part = None if part is None else fitting(self._types[name], part)
            if not names or part is None:
                return None
            columns |= dict.fromkeys(names, part)
        return Pattern(tuple((name, columns[name]) for name in self._names if name in columns))
