"""Binding a query of a known frame: its clause is computed from its comparisons, without parsing.

A text with a plain condition consists of a *frame*, which is everything but the WHERE clause, and of comparisons of
columns with constants. The frame determines the query except for its clause; the type of its column determines what
a comparison means. After a text was bound in full, and its clause equalled that of its comparisons, any other text with
the same frame and comparisons of the same forms, in any order and number, need not be parsed. All others are bound in
full. Binding takes 0.17 ms instead of 0.5 ms (docs/decisions/0025). Without quick binding (`tureen/fast_paths.py`),
every text is bound in full.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.bounded_cache import BoundedCache
from tureen.fast_paths import FastPath, is_enabled
from tureen.functions.function_lookup import FunctionLookup, RecordedFunctions, no_functions
from tureen.language.binding.scope import Lookup
from tureen.language.fast.plain import PlainQuery, plain_where
from tureen.language.languages import bind_text
from tureen.language.predicates.comparisons import intervals_of
from tureen.language.predicates.normal_form import clause_of
from tureen.language.text.shapes import shape_of
from tureen.predicate import AllOf, Clause, Within
from tureen.query import NamedRelation, Query, RelationKind
from tureen.schema import INTEGRAL, Kind, Schema

KNOWN_FRAMES = 1024
"""The maximum number of frames that a process remembers."""

KNOWN_FORMS = 1024
"""The maximum number of forms of comparisons that are remembered per frame."""

_COMPARED = {
    Kind.STRING: (Kind.STRING,),
    Kind.INT: (*INTEGRAL, Kind.DOUBLE),
    Kind.DECIMAL: (Kind.DOUBLE,),
}
"""For each kind of constant, the kinds of columns with which it is compared as the column's own kind."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """What the queries of one frame have in common."""

    table: str
    schema: Schema
    query: Query
    """Any query of the frame."""
    forms: set[tuple[str, str, Kind]] = field(default_factory=set)
    """The forms of comparisons that were bound in full with this frame."""

    def is_equivalent(self, other: _Frame) -> bool:
        same_query = self.query.with_clause("", ()) == other.query.with_clause("", ())
        return same_query and (self.table, self.schema) == (other.table, other.schema)


class QuickBinder:
    """Binds queries, those of known frames without parsing them."""

    def __init__(self) -> None:
        """Start without known frames."""
        self._enabled = is_enabled(FastPath.QUICK_BINDING)
        self._frames: BoundedCache[tuple[str, str], _Frame] = BoundedCache(KNOWN_FRAMES)

    def bind(
        self, text: str, lookup: Lookup, functions: FunctionLookup = no_functions, language: str = "sql"
    ) -> tuple[Query, str]:
        """Bind a query; return it with its shape. Raises as `bind_text` does."""
        if language != "sql":
            query = bind_text(text, language, lookup, functions)
            # Queries of one shape have one language.
            return query, f"{language}: {shape_of(query.translation or '').text}"
        shape = shape_of(text)
        plain = plain_where(text, shape) if self._enabled else None
        frame = None if plain is None else self._frames.find((plain.head, plain.tail))
        if (
            plain is not None
            and frame is not None
            and all(comparison.form in frame.forms for comparison in plain.comparisons)
        ):
            clause = _clause(plain, frame.schema)
            if clause is not None and _is_same(lookup(frame.table), frame):
                return frame.query.with_clause(text, clause), shape.text
        looked_up: list[tuple[str, Schema]] = []

        def recording_lookup(name: str) -> NamedRelation:
            relation = lookup(name)
            looked_up.append((name, relation.schema))
            return relation

        recorded = RecordedFunctions(functions)
        query = bind_text(text, "sql", recording_lookup, recorded)
        # A frame with a user function would outlive the function.
        is_plain = plain is not None and len(looked_up) == 1 and not query.joins and not recorded.called
        if plain is not None and is_plain and _clause(plain, looked_up[0][1]) == query.stream.clause:
            self._remember(plain, _Frame(*looked_up[0], query))
        return query, shape.text

    def _remember(self, plain: PlainQuery, new: _Frame) -> None:
        key = plain.head, plain.tail
        known = self._frames.find(key)
        if known is None or not known.is_equivalent(new) or len(known.forms) >= KNOWN_FORMS:
            known = new
        known.forms.update(comparison.form for comparison in plain.comparisons)
        # If another thread replaced the frame in the meantime, forms are forgotten, and learned again.
        self._frames.put(key, known)


def _is_same(relation: NamedRelation, frame: _Frame) -> bool:
    """Whether a relation is the stream of a frame."""
    stream = frame.query.stream.relation, frame.schema, RelationKind.STREAM
    return (relation.name, relation.schema, relation.kind) == stream


def _clause(plain: PlainQuery, schema: Schema) -> Clause | None:
    """The clause of the comparisons; None if a comparison's meaning does not follow from its column's type."""
    parts = []
    for comparison in plain.comparisons:
        column = schema.find(comparison.column)
        if column is None or column.type.kind not in _COMPARED[comparison.kind]:
            return None
        parts.append(Within(column.name, intervals_of(comparison.op, column.type, comparison.value)))
    return clause_of(schema, AllOf(tuple(parts)))
