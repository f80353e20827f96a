"""What all queries of a template have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.join import Field, InnerJoin, JoinCompare, JoinFactor, divided, field_name, parse_field
from tureen.matching import Selector
from tureen.pot.members import Members
from tureen.pot.templates import Template
from tureen.query import Query
from tureen.results.joins.join_ready import ReadyJoin, SchemaOf, prepare, stored_fields
from tureen.results.rows.finish import Finish
from tureen.results.templates.group_templates import TemplateGroups
from tureen.results.templates.pairing import Pairing


@dataclass(frozen=True)
class TemplateRule:
    """What all queries of a template have in common: a join of streams and tables with VALUES."""

    template: Template
    query: Query
    pairing: Callable[[Members], Pairing]
    schema_of: SchemaOf

    @cached_property
    def selector(self) -> Selector:
        """Selects the tuples of the first stream on the conditions that all queries have."""
        return Selector(self.query.stream.clause, self.schema_of(self.query.stream.relation))

    @cached_property
    def finish(self) -> Finish:
        """The last step of the queries."""
        return Finish(self.query)

    @cached_property
    def groups(self) -> TemplateGroups:
        """What is common to the groups of the queries."""
        return TemplateGroups(self.template, self.query, self.schema_of)

    @cached_property
    def columns(self) -> Sequence[str]:
        """The columns that the rows are computed from, without those of VALUES."""
        return [name for name in self.query.columns if parse_field(name).input != self.query.values_input]

    def fields(self, columns: Sequence[str]) -> pa.Schema:
        """Columns of the rows that queries are matched with, as they are stored."""
        return stored_fields(self.query, columns, self.schema_of)

    def join(self, columns: Sequence[str]) -> ReadyJoin:
        """The join without VALUES, whose rows have these columns: each of them is new for all queries at once."""
        return replace(self._join, fields=self.fields(columns))

    @cached_property
    def _join(self) -> ReadyJoin:
        common = without_values(self.query)
        return prepare(common, self.schema_of, [None] * len(common.inputs))

    def with_values(self, rows: pa.Table, members: Members, numbers: npt.NDArray[np.int64]) -> pa.Table:
        """Rows with the parameters of their queries that the select list uses."""
        values_input = self.query.values_input
        parameters = self.query.columns_of(values_input)
        if parameters:
            values = members.take(parameters, numbers)
            for parameter, column in zip(parameters, values.columns, strict=True):
                rows = rows.append_column(field_name(Field(values_input, parameter)), column)
        return rows


def without_values(query: Query) -> Query:
    """The join of a template's streams and tables, on the conditions that all its queries have; without outputs."""
    source = query.source
    assert isinstance(source, InnerJoin)
    factors, with_values = divided(source.factors, query.values_input)
    sides = tuple(side for side in source.sides if side != query.values_input)
    written = {frozenset(factor.fields) for factor in _equalities(factors)}
    implied = tuple(factor for factor in _implied(with_values) if frozenset(factor.fields) not in written)
    return replace(query, inputs=query.inputs[:-1], source=InnerJoin(sides, (*factors, *implied)), outputs=())


def _implied(with_values: Sequence[JoinFactor]) -> Iterator[JoinCompare]:
    """The equalities of two inputs whose columns equal the same parameter: without them, all rows would be combined."""
    first_columns: dict[tuple[str, str], Field] = {}
    for factor in _equalities(with_values):
        column, parameter = sorted(factor.fields, key=lambda field: field.input)
        first = first_columns.setdefault((parameter.column, factor.domain), column)
        if first.input != column.input:
            yield JoinCompare(first, "=", column, domain=factor.domain)


def _equalities(factors: Sequence[JoinFactor]) -> list[JoinCompare]:
    return [factor for factor in factors if isinstance(factor, JoinCompare) and factor.op == "=" and not factor.offset]
