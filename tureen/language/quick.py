"""Binding a query of a known shape: its clause follows from the constants alone, without parsing.

What is learnt of a shape comes from binding it once with columns in the place of its constants: where every constant is
compared with one column of its own kind, as in `sym = 'IBM' AND price > 100`, the clause of any other constants is
those comparisons with the new ones, and everything else of the query is as it was. Other shapes are bound in full each
time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from sqlglot.tokens import TokenType

from tureen.errors import TureenError
from tureen.language.compare import intervals_of
from tureen.language.normal import clause_of
from tureen.language.query import bind_clause, bind_query
from tureen.language.shapes import Literal, Shape, shape_of
from tureen.language.slots import slots_of
from tureen.language.template import PARAMETER, Lookup, with_parameters
from tureen.language.types import integer_range
from tureen.predicate import AllOf, Clause, Key, Within
from tureen.query import Query
from tureen.schema import Column, Kind, Schema, Type

KNOWN_SHAPES = 4096
"""How many shapes a process remembers."""

_DIGITS = frozenset("0123456789")
_MET = "met"
"""What is known of a shape that came once; None is known of one whose clause does not follow from its constants."""


@dataclass(frozen=True, slots=True)
class _Filled:
    """A comparison of a column with the constant of some place."""

    column: Column
    op: str
    place: int


@dataclass(frozen=True, slots=True)
class _Known:
    """A shape whose clause follows from its constants."""

    table: str
    schema: Schema
    query: Query
    """One of that shape."""
    fixed: Clause
    slots: tuple[_Filled, ...]

    def clause(self, values: tuple[Key, ...]) -> Clause:
        parts = [
            Within(slot.column.name, intervals_of(slot.op, slot.column.type, values[slot.place])) for slot in self.slots
        ]
        return clause_of(self.schema, AllOf((*self.fixed, *parts)))


class QuickBinder:
    """Binds queries, those of shapes that were seen before without parsing them."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: OrderedDict[tuple[object, ...], _Known | str | None] = OrderedDict()
        self._lock = threading.Lock()

    def bind(self, text: str, lookup: Lookup) -> tuple[Query, str]:
        """A query and its shape; raises as binding it in full does."""
        shape = shape_of(text)
        values = tuple(_value(literal) for literal in shape.literals)
        kinds = tuple(None if value is None else value[0] for value in values)
        # As it is written, and not the shape's own text: the names of the answer's columns have large letters.
        key = (*_around(text, shape), *kinds)
        known = self._known.get(key)
        if isinstance(known, _Known) and lookup(known.table) == (known.query.stream, known.schema):
            clause = known.clause(tuple(value[1] for value in values if value))
            return replace(known.query, sql=text, clause=clause), shape.text
        query = bind_query(text, lookup)
        if key not in self._known:
            # Nothing is learnt of it yet: most of those that come once come once only.
            self._keep(key, _MET)
        elif known is not None:
            self._keep(key, None if None in kinds else _learn(text, shape, query, kinds, lookup))
        return query, shape.text

    def _keep(self, key: tuple[object, ...], known: _Known | str | None) -> None:
        with self._lock:
            self._known[key] = known
            while len(self._known) > KNOWN_SHAPES:
                self._known.popitem(last=False)


def _around(text: str, shape: Shape) -> list[str]:
    """The text before, between and after the constants."""
    ends = [0, *(literal.end for literal in shape.literals)]
    starts = [*(literal.start for literal in shape.literals), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def _value(literal: Literal) -> tuple[Kind, Key] | None:
    """The kind and the key of a plain constant: a text, a small whole number or one with a point; None for others."""
    last = literal.tokens[-1]
    if last.token_type is TokenType.STRING:
        return (Kind.STRING, last.text) if len(literal.tokens) == 1 else None
    whole, point, rest = last.text.partition(".")
    if not set(whole + rest) <= _DIGITS or not whole:
        return None
    negative = len(literal.tokens) == 2
    if point:
        # A DECIMAL, which is compared with a DOUBLE as a DOUBLE; of that, zero has no sign.
        number = float(last.text)
        short = len(whole) + len(rest) <= 38 and number
        return (Kind.DECIMAL, -number if negative else number) if short and rest else None
    small = int(whole) if len(whole) <= 10 else 1 << 40
    value = -small if negative else small
    least, greatest = integer_range(Kind.INT)
    return (Kind.INT, value) if least <= value <= greatest else None


_TYPES = {Kind.STRING: Type(Kind.STRING), Kind.INT: Type(Kind.INT), Kind.DECIMAL: Type(Kind.DECIMAL, 10, 2)}
_COMPARED = {
    Kind.STRING: (Kind.STRING,),
    Kind.INT: (Kind.INT, Kind.BIGINT, Kind.DOUBLE),
    Kind.DECIMAL: (Kind.DOUBLE,),
}


def _learn(text: str, shape: Shape, query: Query, kinds: tuple[Kind | None, ...], lookup: Lookup) -> _Known | None:
    """What the clause is made of, or None where it does not follow from the constants."""
    names = [f"c{place}" for place in range(len(kinds))]
    columns = Schema(tuple(Column(name, _TYPES[kind]) for name, kind in zip(names, kinds, strict=True) if kind))
    first, *others = _around(text, shape)
    written = [f"`{PARAMETER}{name}`{after}" for name, after in zip(names, others, strict=True)]
    tables: list[str] = []

    def noted(name: str) -> tuple[str, Schema]:
        tables.append(name)
        return lookup(name)

    try:
        clause = bind_clause("".join([first, *written]), with_parameters(noted, columns))
    except TureenError:
        return None
    schema = lookup(tables[-1])[1]
    places = {f"{PARAMETER}{name}": place for place, name in enumerate(names)}
    found = slots_of(clause, places)
    if found is None:
        return None
    slots = []
    for slot in found[0]:
        column, kind = schema.find(slot.column), kinds[places[slot.values]]
        if column is None or kind is None or column.type.kind not in _COMPARED[kind]:
            return None
        slots.append(_Filled(column, slot.op, places[slot.values]))
    return _Known(tables[-1], schema, query, found[1], tuple(slots))
