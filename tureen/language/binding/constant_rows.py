"""VALUES in FROM: rows of constants, whose columns have common types."""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.bind import bind
from tureen.language.binding.coerce import coerce, common
from tureen.language.binding.outputs import untyped_null
from tureen.language.binding.scope import Scope
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import Source
from tureen.language.tree import BOOLEAN, Const
from tureen.query import ConstantRows, Expression, Output

MAX_ROWS = 1_000
"""The maximum number of rows of VALUES; more belong into a table."""

_TRUE = Expression("TRUE", BOOLEAN, ())
ONE_ROW = ConstantRows((Output("row", _TRUE),), ((_TRUE,),))
"""What a SELECT without FROM reads; its column has no name in the query."""


def read_values(source: Source, node: exp.Values) -> ConstantRows:
    """The rows of VALUES, whose columns are `col1`, `col2` and so on unless an alias names them."""
    if len(node.expressions) > MAX_ROWS:
        raise Unsupported(
            f"VALUES can have at most {MAX_ROWS:,} rows", hint="create a table", location=source.node(node)
        )
    rows = [[_constant(source, value) for value in _fields(row)] for row in node.expressions]
    sizes = {len(row) for row in rows}
    if len(sizes) > 1:
        raise SqlError("the rows of VALUES must have the same number of values", location=source.node(node))
    columns = [_column(source, list(column)) for column in zip(*rows, strict=True)]
    outputs = tuple(Output(f"col{number}", column[0]) for number, column in enumerate(columns, start=1))
    return ConstantRows(outputs, tuple(zip(*columns, strict=True)))


def _fields(row: exp.Expression) -> list[exp.Expression]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _constant(source: Source, node: exp.Expression) -> Const:
    value = None if node.find(exp.Column) else bind(Scope(source, (), clause="VALUES"), node)
    if not isinstance(value, Const):
        raise Unsupported("VALUES takes constants only", hint="write a SELECT", location=source.node(node))
    return value


def _column(source: Source, values: list[Const]) -> list[Expression]:
    """The values of a column, cast to their common type."""
    target = common(source, [*values])
    if target is None:
        raise untyped_null(source.location(values[0].at))
    return [expression_of(source, coerce(source, value, target)) for value in values]
