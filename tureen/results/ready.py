"""Queries that are ready to be asked: bound, with all done that does not depend on the tuples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from tureen.language.templates.member import MemberBinder, MemberValues
from tureen.matching import Selector
from tureen.query import Query
from tureen.results.finish import Finish
from tureen.results.gather import fields_of
from tureen.results.grouped import Plans
from tureen.schema import Schema


@dataclass(frozen=True)
class Ready:
    """A query that is bound to its stream and ready to be looked for in blocks."""

    query: Query
    selector: Selector
    fields: pa.Schema
    """The stored columns that its rows are made of."""
    finish: Finish
    plans: tuple[Plans, ...]
    """One for each grouping; none where there are no groups."""
    light: bool
    """Whether its rows are looked up and no more: no grouping, no expression, no order."""

    @classmethod
    def of(cls, query: Query, schema: Schema) -> Ready:
        """Do once what does not depend on the tuples."""
        plans = Plans.of(query)
        finish, selector = Finish(query), Selector(query.stream.clause, schema)
        gathers = _gathers(query)
        # In the order of the select list, so that the rows of most answers need not be arranged again.
        time = () if (gathers and query.columns) or schema.time_column in query.columns else (schema.time_column,)
        fields = fields_of(schema, (*query.columns, *time))
        light = gathers and finish.sql is None and not selector.derived
        return cls(query, selector, fields, finish, plans, light)

    def with_clause(self, query: Query, schema: Schema) -> Ready:
        """The same for a query that differs from this one in its clause only."""
        selector = Selector(query.stream.clause, schema)
        plans = tuple(plan.with_clause(query.stream.clause) for plan in self.plans)
        light = _gathers(query) and self.finish.sql is None and not selector.derived
        return replace(self, query=query, selector=selector, plans=plans, light=light)


def _gathers(query: Query) -> bool:
    """Whether a query's rows are tuples as they were stored, and nothing is computed from several of them."""
    return query.grouping is None and query.steps is None and not query.overs and not query.uses_now


class BoundTemplate:
    """A template whose queries are bound one after the other."""

    def __init__(self, values: MemberValues, schema: Schema) -> None:
        """Bind the queries of the template that some values are of."""
        self._schema = schema
        self._binder = MemberBinder(values.sql, values.columns, schema)
        self._first: Ready | None = None

    def ready(self, text: str, values: MemberValues) -> Ready:
        """The query of some values, whose text is given."""
        query, first = self._binder.bind(text, values.row)
        if first is None:
            return Ready.of(query, self._schema)
        if self._first is None:
            self._first = Ready.of(first, self._schema)
        return self._first.with_clause(query, self._schema)
