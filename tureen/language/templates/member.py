"""Binding a query of a template: from what the template means, with the query's values put in, without parsing.

Queries of one template differ in their values only. Where these stand in the WHERE clause alone, and that is a
conjunction of comparisons of columns with values and of other factors without them, the clause of each follows from
its values: the comparisons are bound and brought to normal form by the same functions that bind a text. What else a
query means is the same for all of them, so the first one is bound in full, and the others take that from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tureen.functions.function_lookup import FunctionLookup, no_functions
from tureen.keys import canonical_float
from tureen.language.binding.bind import compare
from tureen.language.binding.passes import bind_query, bind_template_where
from tureen.language.binding.scope import Relation, Scope
from tureen.language.predicates.factors import holds
from tureen.language.predicates.normal_form import clause_of
from tureen.language.predicates.slots import Slot
from tureen.language.source import Source
from tureen.language.spelling import sql_literals
from tureen.language.templates.template import read_template, text_with_columns
from tureen.language.tree import Const, Ref
from tureen.predicate import AllOf, Clause, Key
from tureen.query import NamedRelation, Query
from tureen.schema import Kind, Schema, Type
from tureen.window import to_micros

_EPOCH = date(1970, 1, 1)


def member_text(sql: str, columns: Schema, row: Mapping[str, Any]) -> str:
    """The text of the query that a template is for a row of values."""
    return read_template(sql).fill(sql_literals(columns, row))


class MemberBinder:
    """Binds the queries of one template over one stream."""

    def __init__(self, sql: str, columns: Schema, schema: Schema, functions: FunctionLookup = no_functions) -> None:
        """Find out whether the clause of a query follows from its values."""
        self._columns, self._schema, self._functions = columns, schema, functions
        self._slots: tuple[Slot, ...] | None = None
        self._fixed: Clause = ()
        self._first: Query | None = None
        if read_template(sql).only_where:
            text = text_with_columns(sql, columns)
            where = bind_template_where(text, lambda name: NamedRelation(name, schema), columns, functions=functions)
            (self._fixed,), self._slots = where.clauses, where.slots

    def bind(self, text: str, row: Mapping[str, Any]) -> tuple[Query, Query | None]:
        """The query of some values, whose text is given; and the one that it differs from in its clause only."""
        clause = self._clause(row)
        if clause is not None and self._first is not None:
            return self._first.with_clause(text, clause), self._first
        query = bind_query(text, lambda name: NamedRelation(name, self._schema), functions=self._functions)
        if clause is not None and clause == query.stream.clause and query.at_now is None:
            self._first = query
        else:
            # It does not follow from the values after all.
            self._slots = None
        return query, None

    def _clause(self, row: Mapping[str, Any]) -> Clause | None:
        """The clause that values mean; None where it does not follow from them."""
        if self._slots is None:
            return None
        scope = Scope(Source(""), (Relation((), self._schema),))
        parts = []
        for slot in self._slots:
            column = self._schema.find(slot.column)
            parameter = self._columns.find(slot.parameter)
            assert column is not None
            assert parameter is not None
            constant = Const(key_of(row[parameter.name], parameter.type), parameter.type, 0)
            parts.append(holds(self._schema, compare(scope, slot.op, Ref(column, 0), constant)))
        return clause_of(self._schema, AllOf((*self._fixed, *parts)))


def key_of(value: Any, kind: Type) -> Key | None:
    """A value as the constant that its SQL means.

    >>> key_of(Decimal("1.50"), Type.parse("DECIMAL(5,2)")), key_of(date(1970, 1, 3), Type.parse("DATE"))
    (150, 2)
    """
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, date):
        return (value - _EPOCH).days
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        unscaled = int("".join(map(str, digits))) * int(10 ** (exponent + kind.scale))
        return -unscaled if sign else unscaled
    if kind.kind in (Kind.FLOAT, Kind.DOUBLE):
        return canonical_float(value)
    return int(value)
