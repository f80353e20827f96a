"""Prepared joins and blocks: everything about them that does not depend on the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import pyarrow as pa

from tureen.aggregate_functions import COMPUTATIONS
from tureen.errors import QueryFailed
from tureen.join import Field, parse_field
from tureen.matching import Selector
from tureen.predicate import dump_clause
from tureen.query import (
    ConstantRows,
    Expression,
    Input,
    Query,
    QueryBlock,
    RelationKind,
    SetOperation,
    block_column,
)
from tureen.results.joins.constant_tables import constant_table
from tureen.results.joins.few_new_tuples import KeyJoin, key_join
from tureen.results.joins.remembered_part import order_of_from
from tureen.results.rows.finish import Finish
from tureen.results.rows.grouped import Plans
from tureen.results.rows.ready import Ready
from tureen.schema import Kind, Schema, Type
from tureen.stream_join import StreamJoinOfQuery, stream_join_of

SchemaOf = Callable[[str], Schema]
"""The schema of a stream or table, by its name."""


@dataclass(frozen=True)
class ReadyInput:
    """A prepared input of a join."""

    input: Input
    selector: Selector | None
    """Selects the rows that satisfy its clause; None where it has none."""
    leaf: int | None
    """Its number among the streams and tables of the whole query; None for a block."""
    block: ReadyBlock | None = None
    same_block: int | None = None
    """A number that equal blocks of a query share, because they have the same answer."""


@dataclass(frozen=True)
class ReadyJoin:
    """A prepared query over several inputs, or over one that is not a stream."""

    query: Query
    inputs: tuple[ReadyInput, ...]
    fields: pa.Schema
    """The columns that its answer is computed from, by the names of `tureen.join.field_name`."""
    finish: Finish
    plans: tuple[Plans, ...]
    stream_join: StreamJoinOfQuery | None = None
    """The part of it whose results can be kept."""
    light = False

    @cached_property
    def first_rows(self) -> int | None:
        """How many of the joined rows its answer is computed from, in their order; None for all of them."""
        query = self.query
        if query.limit is None or query.grouping is not None or query.steps is not None or query.at_now is not None:
            return None
        return query.offset + query.limit if self.finish.sql is None and not query.overs else None

    @cached_property
    def needs_order(self) -> bool:
        """Whether its answer is computed from joined rows in order: groups are mostly the same in any order."""
        return not self.plans or any(plans.rows.depends_on_order for plans in self.plans)

    @cached_property
    def calls_functions(self) -> bool:
        """Whether the clause of an input calls user functions."""
        return any(entry.selector is not None and entry.selector.calls_functions for entry in self.inputs)

    @cached_property
    def remembers_rows(self) -> bool:
        """Whether its joined rows can be remembered with their columns, and compared with any windows by their times.

        Windows of rows depend on other tuples than the joined ones. A clause that may raise is evaluated for tuples
        without a partner too.
        """
        part, query = self.stream_join, self.query
        if part is None or not part.is_whole or not self.fields.names:
            return False
        if query.grouping is not None or query.steps is not None or query.at_now is not None:
            return False
        if (
            query.uses_now
            or query.final
            or self.calls_functions
            or any(entry.selector is None or entry.selector.derived for entry in self.inputs)
        ):
            return False
        is_flat = all(entry.leaf == number for number, entry in enumerate(self.inputs))
        return is_flat and not any(entry.input.window.span(0).counts_rows for entry in self.inputs)

    @cached_property
    def key_join(self) -> KeyJoin | None:
        """Its stream join, prepared for few new tuples; None unless it is one of two streams by equal keys."""
        part = self.stream_join
        if part is None:
            return None
        selectors = [self.inputs[number].selector for number in part.inputs]
        return key_join(part.join, [selector for selector in selectors if selector is not None])

    @cached_property
    def stream_order(self) -> list[int]:
        """The streams of its stream join in the order of FROM."""
        assert self.stream_join is not None
        return order_of_from(self.stream_join.inputs)

    @cached_property
    def remembered_columns(self) -> list[tuple[int, str]]:
        """The columns of its remembered rows, by stream: those of the answer, or those that it is computed from."""
        assert self.stream_join is not None
        fields = map(parse_field, self.finish.columns if self.finish.selects_columns else self.fields.names)
        return [(self.stream_join.inputs.index(field.input), field.column) for field in fields]

    @property
    def remembered_schema(self) -> pa.Schema:
        """The names and types of these columns."""
        return self.finish.fields if self.finish.selects_columns else self.fields

    @cached_property
    def uses_kept_partials(self) -> bool:
        """Whether its groups can be computed from partial aggregates of join runs: not in steps or windows of rows."""
        part = self.stream_join
        if part is None or not part.is_whole or self.query.steps is not None or not self.plans:
            return False
        counts_rows = any(entry.input.window.span(0).counts_rows for entry in self.inputs)
        return not counts_rows and all(plans.uses_partials for plans in self.plans)


@dataclass(frozen=True)
class ReadySelection:
    """A prepared block over one stream."""

    ready: Ready
    leaf: int


@dataclass(frozen=True)
class ReadyLateral:
    """A prepared query that is computed from the partners of each row; see `tureen.join.LateralJoin`."""

    fields: tuple[Field, ...]
    """The columns of the partners that it reads."""
    finish: Finish
    by_row: Plans
    """Its aggregates, grouped by the number of the row that partners belong to."""
    of_none: Plans
    """Its aggregates of a row without partners."""
    uses_now: bool
    is_scalar: bool
    """Whether a row must not have more than one partner."""
    depends_on_order: bool
    """Whether its value depends on the order of partners."""


@dataclass(frozen=True)
class ReadySetOperation:
    """A prepared set operation."""

    operation: SetOperation
    left: ReadyBlock
    right: ReadyBlock


@dataclass(frozen=True)
class ReadyConstants:
    """Prepared rows of constants."""

    constants: ConstantRows

    @cached_property
    def table(self) -> pa.Table:
        """Their table, which is the same in every answer."""
        return constant_table(self.constants)


ReadyBlock = ReadyJoin | ReadySelection | ReadySetOperation | ReadyConstants | ReadyLateral

OF_ROW = "_of_row"
"""The column with the number of the row that a partner belongs to."""


def prepare(
    query: Query, schema_of: SchemaOf, stream_ids: Sequence[int | None] | None = None, first_leaf: int = 0
) -> ReadyJoin:
    """Prepare a query that joins; its streams and tables have the numbers from `first_leaf` on.

    With `stream_ids`, which has for each of its leaves the id of its stream if it is one, results may be kept.
    """
    ready = _join(query, schema_of, count(first_leaf), {})
    part = None if stream_ids is None else stream_join_of(query, stream_ids)
    if part is None:
        return ready
    # Queries with the same clauses, and with the inputs in the same order, share partial aggregates.
    clauses = " ".join(dump_clause(entry.clause) for entry in query.inputs)
    plans = tuple(replace(plan, shape=f"{part.inputs} {clauses} {plan.partial.shape}") for plan in ready.plans)
    return replace(ready, stream_join=part, plans=plans)


def _block(block: QueryBlock, schema_of: SchemaOf, leaves: Iterator[int], numbers: dict[QueryBlock, int]) -> ReadyBlock:
    if isinstance(block, ConstantRows):
        return ReadyConstants(block)
    if isinstance(block, SetOperation):
        left = _block(block.left, schema_of, leaves, numbers)
        return ReadySetOperation(block, left, _block(block.right, schema_of, leaves, numbers))
    if block.joins:
        return _join(block, schema_of, leaves, numbers)
    return ReadySelection(Ready.of(block, schema_of(block.stream.relation)), next(leaves))


def _join(query: Query, schema_of: SchemaOf, leaves: Iterator[int], numbers: dict[QueryBlock, int]) -> ReadyJoin:
    """Prepare a query; `numbers` has the blocks of the whole query that were met so far."""
    inputs = []
    for entry in query.inputs:
        schema = stored_schema(entry, schema_of)
        selector = Selector(entry.clause, schema) if entry.clause else None
        if entry.block is None:
            inputs.append(ReadyInput(entry, selector or _whole(entry, schema), next(leaves)))
        elif entry.is_lateral:
            assert isinstance(entry.block, Query)
            inputs.append(ReadyInput(entry, selector, None, _lateral(entry.block, is_scalar=entry.is_scalar)))
        else:
            block = _block(entry.block, schema_of, leaves, numbers)
            same_block = numbers.setdefault(entry.block, len(numbers))
            inputs.append(ReadyInput(entry, selector, None, block, same_block))
    fields = stored_fields(query, query.columns, schema_of)
    return ReadyJoin(query, tuple(inputs), fields, Finish(query), Plans.of(query, ()))


def _lateral(query: Query, *, is_scalar: bool) -> ReadyLateral:
    grouping = query.grouping
    assert grouping is not None
    of_row = Expression(OF_ROW, Type(Kind.BIGINT), (OF_ROW,), OF_ROW)
    (by_row,) = Plans.of(replace(query, grouping=replace(grouping, keys=(of_row,))), ())
    (of_none,) = Plans.of(query, ())
    fields = tuple(parse_field(name) for name in query.columns)
    # Aggregates that are combined from partial states do not depend on the order of rows.
    in_order = any(COMPUTATIONS[aggregate.function].state is None for aggregate in grouping.aggregates)
    return ReadyLateral(fields, Finish(query), by_row, of_none, query.uses_now, is_scalar, in_order and not is_scalar)


def _whole(entry: Input, schema: pa.Schema) -> Selector | None:
    """Tuples of a stream are always selected, which is how their window is applied."""
    return Selector((), schema) if entry.kind is RelationKind.STREAM else None


def stored_fields(query: Query, names: Sequence[str], schema_of: SchemaOf) -> pa.Schema:
    """Columns of joined rows, by the names of `tureen.join.field_name`, as they are stored."""
    fields = [parse_field(name) for name in names]
    schemas = {number: stored_schema(query.inputs[number], schema_of) for number in {field.input for field in fields}}
    types = [schemas[field.input].field(field.column).type for field in fields]
    return pa.schema(list(zip(names, types, strict=True)))


def several_rows(rows: int) -> QueryFailed:
    """The error for a query that is used as a value and has several rows."""
    return QueryFailed(
        f"a query that is used as a value returned {rows:,} rows", hint="aggregate it, such as by max(…)"
    )


def stored_schema(entry: Input, schema_of: SchemaOf) -> pa.Schema:
    """The columns of an input as they are stored."""
    if entry.block is None:
        schema = schema_of(entry.relation)
        return schema.stored if entry.kind is RelationKind.STREAM else schema.arrow
    return pa.schema(
        [(block_column(number), output.value.type.arrow) for number, output in enumerate(entry.block.outputs)]
    )
