"""A bound query: the output of the language, and the input of everything else.

```
inputs: the rows of each relation that lie in its window and satisfy its clause
    → source: how these rows are joined
    → at_now: the part of WHERE that depends on NOW
    → without a grouping, each row once for every step that contains it, if there are steps
    → grouping: one row per group (and per step), if there is one; with EMIT FINAL, only those that cannot change
    → overs: a column for each window function, and qualify
    → outputs, distinct, order, offset and limit
```
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from tureen.join import JoinTree, parse_field
from tureen.predicate import Clause, Key
from tureen.schema import Schema, Type
from tureen.window import WHOLE, Steps, Window
from tureen.xml_template import Part

STEP_START, STEP_END = "window_start", "window_end"
"""The columns of a query with steps, in addition to its keys and aggregates."""

GROUPING_ID = "_grouping"
"""The column with a bit for each key that a row is not grouped by, in queries with several groupings."""

NOW = "_now"
"""The column with the NOW of the invocation, in all rows that expressions are computed from."""


def block_column(number: int) -> str:
    """The name of a block's output in the rows that expressions are computed from: an output may have any name."""
    return f"out{number}"


def key_name(number: int) -> str:
    """The column of a grouping's key."""
    return f"_key{number}"


def aggregate_name(number: int) -> str:
    """The column of a grouping's aggregate."""
    return f"_agg{number}"


def over_name(number: int) -> str:
    """The column of a window function."""
    return f"_over{number}"


class RelationKind(Enum):
    """What an input of a query reads."""

    STREAM = "stream"
    TABLE = "table"
    VALUES = "values"
    """The parameters of a template: one row for each of its queries."""
    BLOCK = "block"
    """The answer of a query in parentheses or of WITH; see `QueryBlock`."""


class NamedRelation(NamedTuple):
    """A stream or a table: its name as it was created, and its columns."""

    name: str
    schema: Schema
    kind: RelationKind = RelationKind.STREAM
    item: str | None = None
    """The path of a stream's items in XML, if it declares one."""


@dataclass(frozen=True, slots=True)
class Input:
    """A relation of FROM: its window, and the factors over this relation only."""

    relation: str
    clause: Clause = ()
    window: Window = WHOLE
    kind: RelationKind = RelationKind.STREAM
    block: QueryBlock | None = None
    """The query whose answer it is; its columns are named by `block_column`."""
    is_scalar: bool = False
    """Whether it must not have more than one row, because it is used as a value."""
    is_lateral: bool = False
    """Whether `block` is computed from the partners of each row of a lateral join, whose columns it reads."""
    names: tuple[str, ...] = ()
    """The names that may precede the dot of its columns: its alias, or the name of its relation."""

    @property
    def alias(self) -> str | None:
        """The name that the query gives to it, if it is another than that of its relation."""
        return self.names[0] if self.names and self.names[0] != self.relation else None

    @property
    def shown_name(self) -> str:
        """Its name in texts for people."""
        return self.names[0] if self.names else self.relation or "query"


@dataclass(frozen=True, slots=True)
class Expression:
    """A value computed from one row, in DuckDB SQL with the semantics of Spark.

    The row is a row of the input, of the join or, after a grouping, of keys and aggregates.
    """

    sql: str
    type: Type
    columns: tuple[str, ...]
    """The columns that it reads."""
    column: str | None = None
    """The column, if the expression is a plain column reference."""
    text: str = field(default="", compare=False, repr=False)
    """How it was written, for people, with the names of `columns` in double quotes."""


@dataclass(frozen=True, slots=True)
class Output:
    """An item of the select list, and its name in the answer."""

    name: str
    value: Expression
    is_untyped: bool = False
    """Whether it is a NULL that takes its type from the other side of a set operation."""


class Direction(NamedTuple):
    """How an aggregate orders its rows by one of its arguments."""

    descending: bool
    nulls_first: bool

    @property
    def sql(self) -> str:
        """The SQL after the argument."""
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function over the rows of a group.

    COUNT(*) has no argument; `parameters` are constants, such as the percentage of a quantile. The rows are ordered
    by the last arguments, one for each item of `order`.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: Type
    distinct: bool = False
    parameters: tuple[float, ...] = ()
    order: tuple[Direction, ...] = ()
    separator: str = ""
    """The separator of listagg."""
    is_weighted: bool = False
    """Whether its last argument is the number of values that each row stands for; see `tureen.sharing.partial_rows`."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUP BY keys HAVING …: its rows have the columns `_key0`, …, `_agg0`, …, and those of the step.

    With `sets` there are several groupings, and the column `_grouping`.
    """

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expression | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    """The groupings of ROLLUP, CUBE or GROUPING SETS, as the numbers of their keys; other keys are NULL."""

    @property
    def each(self) -> tuple[tuple[int, ...], ...]:
        """The keys of each grouping, by their numbers."""
        return (tuple(range(len(self.keys))),) if self.sets is None else self.sets

    @property
    def always(self) -> bool:
        """Whether an answer without groups has a row: there is one grouping, and it has no keys."""
        return self.each == ((),)

    def grouping_id(self, keys: tuple[int, ...]) -> int:
        """A bit for each key that a grouping does not have; the first key has the highest bit."""
        return sum(1 << bit for bit, key in enumerate(reversed(range(len(self.keys)))) if key not in keys)

    @property
    def over_rows(self) -> tuple[Expression, ...]:
        """The expressions over rows: the keys, and the arguments of the aggregates."""
        return (*self.keys, *(argument for aggregate in self.aggregates for argument in aggregate.arguments))


@dataclass(frozen=True, slots=True)
class Order:
    """One item of ORDER BY."""

    value: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that a window function reads, as offsets from the current one; None is unbounded.

    With `rows` the offsets count rows. Otherwise they are added to the key of the single ORDER BY value, and 0 means
    all peers: the rows with an equal value.
    """

    rows: bool
    start: Key | None
    end: Key | None


@dataclass(frozen=True, slots=True)
class Over:
    """A window function: a value for each row, from the rows around it; its column is `_over0`, ….

    `call` is an aggregate, or a function without a frame: a rank, LAG or LEAD.
    """

    call: Aggregate
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: Frame | None

    @property
    def over_rows(self) -> tuple[Expression, ...]:
        """The expressions over rows."""
        return (*self.call.arguments, *self.partition, *(item.value for item in self.order))


@dataclass(frozen=True)
class Query:
    """SELECT outputs FROM inputs WHERE …, perhaps grouped and ordered."""

    sql: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    source: JoinTree = 0
    """How the rows of the inputs are combined."""
    steps: Steps | None = None
    grouping: Grouping | None = None
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    at_now: Expression | None = None
    """The part of WHERE that depends on NOW, so it cannot be evaluated when a tuple arrives."""
    overs: tuple[Over, ...] = ()
    qualify: Expression | None = None
    """QUALIFY: a condition over the values of window functions."""
    final: bool = False
    """Whether the answer has only groups that cannot change any more: EMIT FINAL."""
    template: Part | None = None
    """How its rows become XML, of a query in WXQuery."""
    translation: str | None = None
    """The SQL that a query in another language means."""

    @property
    def stream(self) -> Input:
        """The first input; the only stream of a query without a join."""
        return self.inputs[0]

    @property
    def joins(self) -> bool:
        """Whether rows are combined from several inputs, or computed by another query."""
        relations = [entry for entry in self.inputs if entry.kind is not RelationKind.VALUES]
        return len(relations) > 1 or self.stream.kind is not RelationKind.STREAM

    @cached_property
    def leaves(self) -> tuple[Input, ...]:
        """The streams and tables that it reads, in the order of their inputs, with those of its blocks."""
        return tuple(leaf for entry in self.inputs for leaf in _leaves(entry))

    @cached_property
    def leaf_numbers(self) -> tuple[int | None, ...]:
        """For each input its index in `leaves`; None for a block."""
        numbers: list[int | None] = []
        begin = 0
        for entry in self.inputs:
            numbers.append(begin if entry.block is None else None)
            begin += len(_leaves(entry))
        return tuple(numbers)

    def with_clause(self, sql: str, clause: Clause) -> Query:
        """The same query with another text and another clause of its stream."""
        return replace(self, sql=sql, inputs=(replace(self.stream, clause=clause), *self.inputs[1:]))

    @property
    def values_input(self) -> int:
        """The number of a template's input of VALUES, which is its last one."""
        assert self.inputs[-1].kind is RelationKind.VALUES
        return len(self.inputs) - 1

    def columns_of(self, number: int) -> tuple[str, ...]:
        """The columns of an input that the answer is computed from."""
        fields = map(parse_field, self.columns)
        return tuple(field.column for field in fields if field.input == number)

    @cached_property
    def uses_now(self) -> bool:
        """Whether the answer depends on NOW outside its window."""
        having = None if self.grouping is None else self.grouping.having
        expressions = [*self._over_rows(), *self._finished, *([] if having is None else [having])]
        return any(NOW in value.columns for value in expressions)

    @cached_property
    def finishes(self) -> bool:
        """Whether the query has DISTINCT, ORDER BY, OFFSET or LIMIT."""
        return self.distinct or bool(self.order) or self.limit is not None or self.offset > 0

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the inputs that the answer is computed from, each once, in alphabetical order."""
        computed = {NOW, *map(over_name, range(len(self.overs)))}
        if self.steps is not None:
            computed |= {STEP_START, STEP_END}
        return tuple(sorted({name for value in self._over_rows() for name in value.columns} - computed))

    def _over_rows(self) -> list[Expression]:
        filters = [] if self.at_now is None else [self.at_now]
        if self.grouping is not None:
            return [*filters, *self.grouping.over_rows]
        return [*filters, *self._finished]

    @property
    def _finished(self) -> list[Expression]:
        """The expressions over the rows of the window or, with a grouping, over the groups."""
        values = [*(output.value for output in self.outputs), *(item.value for item in self.order)]
        qualify = [] if self.qualify is None else [self.qualify]
        return [*values, *qualify, *(value for over in self.overs for value in over.over_rows)]


class SetOperator(Enum):
    """How the rows of two blocks are combined into one answer."""

    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(frozen=True)
class SetOperation:
    """Two blocks with outputs of the same types; with `keep_duplicates`, ALL."""

    operator: SetOperator
    keep_duplicates: bool
    left: QueryBlock
    right: QueryBlock

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs of the left block."""
        both = zip(self.left.outputs, self.right.outputs, strict=True)
        return tuple(replace(left, is_untyped=left.is_untyped and right.is_untyped) for left, right in both)


@dataclass(frozen=True)
class ConstantRows:
    """VALUES: rows of constants. A SELECT without FROM reads a single one."""

    outputs: tuple[Output, ...]
    """The names and types of its columns, with the values of the first row."""
    rows: tuple[tuple[Expression, ...], ...]


QueryBlock = Query | SetOperation | ConstantRows
"""A query, several combined, or rows of constants: what another query can have as an input."""


def _leaves(entry: Input) -> tuple[Input, ...]:
    if entry.block is None:
        return () if entry.kind is RelationKind.VALUES else (entry,)
    return block_leaves(entry.block)


def block_leaves(block: QueryBlock) -> tuple[Input, ...]:
    """The streams and tables that a block reads."""
    if isinstance(block, ConstantRows):
        return ()
    if isinstance(block, SetOperation):
        return (*block_leaves(block.left), *block_leaves(block.right))
    return block.leaves
