"""Patterns of a query's inputs, as patterns of its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tureen.closed.pattern import CodeRange, Pattern, ValueList
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
        self._names = {
            output.name: parse_field(output.value.column)
            for output in query.outputs
            if output.value.column is not None and names.count(output.name) == 1
        }

    def pattern(self, parts: Sequence[InputPart]) -> Pattern | None:
        """The pattern over all outputs that are these columns; None if a part has no output.

        Without one of its parts, a pattern would promise more.
        """
        columns: dict[str, Part] = {}
        for fields, part in parts:
            names = [name for name, field in self._names.items() if field in fields]
            if not names:
                return None
            columns |= dict.fromkeys(names, part)
        return Pattern(tuple((name, columns[name]) for name in self._names if name in columns))
