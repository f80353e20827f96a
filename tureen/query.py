"""A bound query: the output of the language, and the input of everything else.

```
inputs: the rows of each relation that lie in its window and satisfy its clause
    → joins: combinations of them that satisfy the join factors
    → at_now: the part of WHERE that depends on NOW
    → without a grouping, each row once for every step that contains it, if there are steps
    → grouping: one row per group (and per step), if there is one
    → overs: a column for each window function, and qualify
    → outputs, distinct, order, offset and limit
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from tureen.predicate import Clause, Key
from tureen.schema import Type
from tureen.window import WHOLE, Steps, Window

_QUALIFIED = re.compile(r"_([0-9]+)_(.*)", re.DOTALL)

STEP_START, STEP_END = "window_start", "window_end"
"""The columns of a query with steps, in addition to its keys and aggregates."""

GROUPING_ID = "_grouping"
"""The column with a bit for each key that a row is not grouped by, in queries with several groupings."""

NOW = "_now"
"""The column with the NOW of the invocation, in all rows that expressions are computed from."""


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


VALUES_INPUT = 1
"""The number of a template's input of VALUES; its stream is input 0."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of one of a query's inputs."""

    input: int
    column: str


def field_name(field: Field) -> str:
    """The name of a field in the rows that expressions are computed from.

    A column of the first input keeps its name. No column of a stream or table begins with an underscore.

    >>> field_name(Field(0, "price")), field_name(Field(1, "price"))
    ('price', '_1_price')
    """
    return f"_{field.input}_{field.column}" if field.input else field.column


def parse_field(name: str) -> Field:
    """The field of a name that `field_name` returned.

    >>> parse_field("price"), parse_field("_1_price")
    (Field(input=0, column='price'), Field(input=1, column='price'))
    """
    match = _QUALIFIED.fullmatch(name)
    return Field(0, name) if match is None else Field(int(match.group(1)), match.group(2))


@dataclass(frozen=True, slots=True)
class Input:
    """A relation of FROM: its window, and the factors of WHERE over this relation only."""

    relation: str
    clause: Clause = ()
    window: Window = WHOLE
    kind: RelationKind = RelationKind.STREAM


@dataclass(frozen=True, slots=True)
class JoinCompare:
    """Columns of two inputs: `left op right + offset`; see `tureen.predicate.Compare`."""

    left: Field
    op: str
    right: Field
    offset: int | float = 0
    domain: str = "int"
    limit: int = 64


@dataclass(frozen=True, slots=True)
class JoinOpaque:
    """Any other condition over several inputs: DuckDB SQL over joined rows."""

    sql: str
    fields: tuple[Field, ...]


JoinFactor = JoinCompare | JoinOpaque


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


@dataclass(frozen=True, slots=True)
class Output:
    """An item of the select list, and its name in the answer."""

    name: str
    value: Expression


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
    joins: tuple[JoinFactor, ...] = ()
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

    @property
    def stream(self) -> Input:
        """The first input; the only stream of a query without a join."""
        return self.inputs[0]

    def with_clause(self, sql: str, clause: Clause) -> Query:
        """The same query with another text and another clause of its stream."""
        return replace(self, sql=sql, inputs=(replace(self.stream, clause=clause), *self.inputs[1:]))

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
