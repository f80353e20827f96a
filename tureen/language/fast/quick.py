"""Binding a query of a known frame: its clause follows from its comparisons, without parsing.

A text with a plain condition is a *frame*, which is everything but the WHERE clause, and comparisons of columns with
constants. What a query means but for its clause, its frame says; what a comparison means, its column's type. So when a
text was bound in full, and its clause was the one that its comparisons say, any other text of the same frame and of
comparisons of the same forms, in whatever order and number, need not be parsed. All others are bound in full.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from tureen.language.binding.passes import bind_query
from tureen.language.binding.scope import Lookup
from tureen.language.fast.plain import Plain, plain_where
from tureen.language.predicates.comparisons import intervals_of
from tureen.language.predicates.normal_form import clause_of
from tureen.language.text.shapes import shape_of
from tureen.predicate import AllOf, Clause, Within
from tureen.query import Query
from tureen.schema import INTEGRAL, Kind, Schema

KNOWN_FRAMES = 1024
"""How many frames a process remembers."""

KNOWN_FORMS = 1024
"""How many forms of comparisons are remembered of a frame."""

_COMPARED = {
    Kind.STRING: (Kind.STRING,),
    Kind.INT: (*INTEGRAL, Kind.DOUBLE),
    Kind.DECIMAL: (Kind.DOUBLE,),
}
"""With columns of which kinds a constant is compared as the column's own kind."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """What is known of the queries of one frame."""

    table: str
    schema: Schema
    query: Query
    """One of them."""
    forms: set[tuple[str, str, Kind]] = field(default_factory=set)
    """The comparisons that were bound in full in it, but for their constants."""

    def means_the_same(self, other: _Frame) -> bool:
        same_query = self.query.with_clause("", ()) == other.query.with_clause("", ())
        return same_query and (self.table, self.schema) == (other.table, other.schema)


class QuickBinder:
    """Binds queries, those of known frames without parsing them."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._frames: OrderedDict[tuple[str, str], _Frame] = OrderedDict()
        self._lock = threading.Lock()

    def bind(self, text: str, lookup: Lookup) -> tuple[Query, str]:
        """A query and its shape; raises as binding it in full does."""
        shape = shape_of(text)
        plain = plain_where(text, shape)
        frame = None if plain is None else self._frames.get((plain.head, plain.tail))
        if plain is not None and frame is not None and all(one.form in frame.forms for one in plain.comparisons):
            clause = _clause(plain, frame.schema)
            if clause is not None and lookup(frame.table) == (frame.query.stream.relation, frame.schema):
                return frame.query.with_clause(text, clause), shape.text
        met: list[tuple[str, Schema]] = []

        def noted(name: str) -> tuple[str, Schema]:
            stream, schema = lookup(name)
            met.append((name, schema))
            return stream, schema

        query = bind_query(text, noted)
        if plain is not None and len(met) == 1 and _clause(plain, met[0][1]) == query.stream.clause:
            self._learn(plain, _Frame(*met[0], query))
        return query, shape.text

    def _learn(self, plain: Plain, found: _Frame) -> None:
        key = plain.head, plain.tail
        with self._lock:
            known = self._frames.pop(key, found)
            frame = known if known.means_the_same(found) and len(known.forms) < KNOWN_FORMS else found
            frame.forms.update(one.form for one in plain.comparisons)
            # It is the youngest again.
            self._frames[key] = frame
            if len(self._frames) > KNOWN_FRAMES:
                self._frames.popitem(last=False)


def _clause(plain: Plain, schema: Schema) -> Clause | None:
    """The clause that comparisons say; None where one of them does not say it by its column's type alone."""
    parts = []
    for one in plain.comparisons:
        column = schema.find(one.column)
        if column is None or column.type.kind not in _COMPARED[one.kind]:
            return None
        parts.append(Within(column.name, intervals_of(one.op, column.type, one.value)))
    return clause_of(schema, AllOf(tuple(parts)))
