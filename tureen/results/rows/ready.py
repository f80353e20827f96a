"""Prepared queries: bound, with everything that does not depend on the tuples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from tureen.functions.function_lookup import FunctionLookup
from tureen.language.templates.member import MemberBinder
from tureen.matching import Selector
from tureen.pot.registered import MemberValues
from tureen.query import Query
from tureen.results.rows.finish import Finish
from tureen.results.rows.gather import fields_of
from tureen.results.rows.grouped import Plans
from tureen.schema import Schema


@dataclass(frozen=True)
class Ready:
    """A prepared query."""

    query: Query
    selector: Selector
    fields: pa.Schema
    """The stored columns of its rows."""
    finish: Finish
    plans: tuple[Plans, ...]
    """One for each grouping; empty without groups."""
    light: bool
    """Whether rows are only looked up: no grouping, no expression, no order."""

    @classmethod
    def of(cls, query: Query, schema: Schema) -> Ready:
        """Prepare a query."""
        plans = Plans.of(query, query.stream.clause)
        finish, selector = Finish(query), Selector(query.stream.clause, schema)
        gathers = _gathers(query)
        # In the order of the select list, so that the columns of most answers need not be rearranged.
        time = () if (gathers and query.columns) or schema.time_column in query.columns else (schema.time_column,)
        fields = fields_of(schema, (*query.columns, *time))
        light = gathers and finish.sql is None and not selector.derived
        return cls(query, selector, fields, finish, plans, light)

    def with_clause(self, query: Query, schema: Schema) -> Ready:
        """Prepare a query that differs from this one in its clause only."""
        selector = Selector(query.stream.clause, schema)
        plans = tuple(plan.with_clause(query.stream.clause) for plan in self.plans)
        light = _gathers(query) and self.finish.sql is None and not selector.derived
        return replace(self, query=query, selector=selector, plans=plans, light=light)


def _gathers(query: Query) -> bool:
    """Whether the rows of an answer are stored tuples, without groups, steps, window functions or NOW."""
    return query.grouping is None and query.steps is None and not query.overs and not query.uses_now


class BoundTemplate:
    """A template, which prepares its queries one by one."""

    def __init__(self, values: MemberValues, schema: Schema, functions: FunctionLookup) -> None:
        """Prepare queries of the template that the values belong to."""
        self._schema = schema
        self._binder = MemberBinder(values.sql, values.columns, schema, functions)
        self._first: Ready | None = None

    def ready(self, text: str, values: MemberValues) -> Ready:
        """The prepared query of a row of values; `text` is its SQL."""
        query, first = self._binder.bind(text, values.row)
        if first is None:
            return Ready.of(query, self._schema)
        if self._first is None:
            self._first = Ready.of(first, self._schema)
        return self._first.with_clause(query, self._schema)
