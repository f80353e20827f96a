"""Binding a query of known parts: its clause follows from the constants alone, without parsing.

A text is a *frame*, which is everything but the WHERE clause, and the factors of that clause. What is learnt of a
factor comes from binding it once, in its frame, with columns in the place of its constants: where every constant is
compared with one column of its own kind, as in `sym = 'IBM'` or `price BETWEEN 10 AND 20`, the clause of any other
constants is those comparisons with the new ones. A text of a known frame and known factors, in whatever order and
number, is never parsed; others are bound in full.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from sqlglot.tokens import TokenType

from tureen.errors import TureenError
from tureen.language.compare import intervals_of
from tureen.language.conjuncts import cut_at_ands
from tureen.language.normal import clause_of
from tureen.language.query import bind_clause, bind_query
from tureen.language.shapes import Literal, Shape, shape_of
from tureen.language.slots import slots_of
from tureen.language.template import PARAMETER, Lookup, with_parameters
from tureen.language.types import integer_range
from tureen.predicate import AllOf, Clause, Factor, Key, Within
from tureen.query import Query
from tureen.schema import Column, Kind, Schema, Type

KNOWN_FRAMES = 1024
KNOWN_FACTORS = 8192
"""How many of each a process remembers."""

_DIGITS = frozenset("0123456789")
_MET = "met"
"""What is known of a factor that came once; False is known of one that does not follow from its constants."""

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class _Frame:
    """A query without its clause."""

    table: str
    schema: Schema
    query: Query
    """One that has this frame."""


@dataclass(frozen=True, slots=True)
class _Filled:
    """A comparison of a column with the constant of some place."""

    column: Column
    op: str
    place: int


@dataclass(frozen=True, slots=True)
class _Known:
    """A factor that follows from its constants."""

    schema: Schema
    fixed: Clause
    slots: tuple[_Filled, ...]

    def parts(self, values: Sequence[Key]) -> list[Factor]:
        filled = [
            Within(slot.column.name, intervals_of(slot.op, slot.column.type, values[slot.place])) for slot in self.slots
        ]
        return [*self.fixed, *filled]


@dataclass(frozen=True, slots=True)
class _Written:
    """A factor as it is written: the text around its constants, and these."""

    around: tuple[str, ...]
    values: tuple[tuple[Kind, Key] | None, ...]

    @property
    def key(self) -> tuple[object, ...]:
        # As it is written, and not as the shape has it: the names of the answer's columns have large letters.
        return (*self.around, *(None if value is None else value[0] for value in self.values))


class QuickBinder:
    """Binds queries, those of parts that were seen before without parsing them."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._frames: _Memory[_Frame] = _Memory(KNOWN_FRAMES)
        self._factors: _Memory[_Known | str | bool] = _Memory(KNOWN_FACTORS)

    def bind(self, text: str, lookup: Lookup) -> tuple[Query, str]:
        """A query and its shape; raises as binding it in full does."""
        shape = shape_of(text)
        cut = cut_at_ands(text, shape.tokens)
        frame_key = text[: cut.head], text[cut.tail :]
        factors = [_written(text, shape, *span) for span in cut.factors]
        frame = self._frames.get(frame_key)
        if frame is not None and lookup(frame.table) == (frame.query.stream, frame.schema):
            known = [self._factors.get((frame_key, factor.key)) for factor in factors]
            parts: list[Factor] = []
            for one, factor in zip(known, factors, strict=True):
                if not isinstance(one, _Known) or one.schema != frame.schema:
                    break
                parts += one.parts([value[1] for value in factor.values if value])
            else:
                return replace(frame.query, sql=text, clause=clause_of(frame.schema, AllOf(tuple(parts)))), shape.text
        tables: list[str] = []

        def noted(name: str) -> tuple[str, Schema]:
            tables.append(name)
            return lookup(name)

        query = bind_query(text, noted)
        self._learn(frame_key, factors, _Frame(tables[-1], lookup(tables[-1])[1], query), lookup)
        return query, shape.text

    def _learn(self, key: tuple[str, str], factors: Sequence[_Written], frame: _Frame, lookup: Lookup) -> None:
        self._frames.keep(key, frame)
        for factor in factors:
            met = self._factors.get((key, factor.key))
            if met is None:
                # Nothing is learnt of it yet: most of those that come once come once only.
                self._factors.keep((key, factor.key), _MET)
            elif met is _MET or (isinstance(met, _Known) and met.schema != frame.schema):
                self._factors.keep((key, factor.key), _learnt(key, factor, frame.schema, lookup) or False)


class _Memory(Generic[Kept]):
    """So many things by their keys; the oldest is forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[object, ...], Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> Kept | None:
        return self._kept.get(key)

    def keep(self, key: tuple[object, ...], thing: Kept) -> None:
        with self._lock:
            self._kept[key] = thing
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)


def _written(text: str, shape: Shape, start: int, end: int) -> _Written:
    """The factor in a stretch of the text."""
    literals = [literal for literal in shape.literals if start <= literal.start < end]
    starts = [*(literal.start for literal in literals), end]
    ends = [start, *(literal.end for literal in literals)]
    around = tuple(text[after:before] for after, before in zip(ends, starts, strict=True))
    return _Written(around, tuple(_value(literal) for literal in literals))


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


def _learnt(frame: tuple[str, str], factor: _Written, schema: Schema, lookup: Lookup) -> _Known | None:
    """What a factor is made of, or None where it does not follow from its constants."""
    kinds = [value[0] for value in factor.values if value]
    if len(kinds) < len(factor.values):
        return None
    names = [f"c{place}" for place in range(len(kinds))]
    columns = Schema(tuple(Column(name, _TYPES[kind]) for name, kind in zip(names, kinds, strict=True)))
    first, *others = factor.around
    written = [f"`{PARAMETER}{name}`{after}" for name, after in zip(names, others, strict=True)]
    try:
        clause = bind_clause(" ".join([frame[0], first, *written, frame[1]]), with_parameters(lookup, columns))
    except TureenError:
        return None
    places = {f"{PARAMETER}{name}": place for place, name in enumerate(names)}
    found = slots_of(clause, places)
    if found is None:
        return None
    slots = []
    for slot in found[0]:
        column, kind = schema.find(slot.column), kinds[places[slot.values]]
        if column is None or column.type.kind not in _COMPARED[kind]:
            return None
        slots.append(_Filled(column, slot.op, places[slot.values]))
    return _Known(schema, found[1], tuple(slots))
