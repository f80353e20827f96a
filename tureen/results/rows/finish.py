"""The last step of an answer: computes outputs, DISTINCT, ORDER BY and LIMIT from the rows or groups."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from tureen.aggregates.expression_values import ROW, numbered, rows_where
from tureen.evaluation.duck import arrow_column, run
from tureen.query import Order, Output, Query
from tureen.results.rows.over_columns import with_over_columns
from tureen.schema import FRACTIONAL
from tureen.xml_template import METADATA_KEY, encode_template


class Finish:
    """The last step of a query, prepared once."""

    def __init__(self, query: Query) -> None:
        """Generate its SQL, if it needs DuckDB."""
        self._query = query
        metadata = None if query.template is None else {METADATA_KEY: encode_template(query.template)}
        self.fields = pa.schema([(output.name, output.value.type.arrow) for output in query.outputs], metadata)
        """The schema of answers."""
        plain_columns = all(output.value.column is not None for output in query.outputs)
        self._own_names = all(output.name == output.value.column for output in query.outputs)
        having = None if query.grouping is None else query.grouping.having
        # HAVING applies before window functions.
        self._before, self._after = (having, query.qualify) if query.overs else (None, having)
        # LIMIT and OFFSET alone are slices.
        needs_sql = not plain_columns or self._after is not None or bool(query.order) or query.distinct
        self.sql = self._write() if needs_sql else None
        self.selects_columns = self.sql is None and not query.overs
        """Whether it selects columns and a slice, and computes nothing."""

    @property
    def columns(self) -> list[str]:
        """The columns of rows that answers consist of, if it only selects columns."""
        return [output.value.column for output in self._query.outputs if output.value.column is not None]

    def __call__(self, rows: pa.Table | pa.RecordBatch) -> pa.Table:
        """The table of the answer, from rows in the order of an answer without ORDER BY."""
        query = self._query
        if query.overs:
            rows = self._with_overs(pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows)
        if self.sql is None:
            if not rows.num_rows:
                return self._nothing
            rows = self._sliced(rows)
            is_finished = self._own_names and query.template is None
            if is_finished and isinstance(rows, pa.Table) and rows.schema.equals(self.fields):
                return rows
            columns = [rows.column(output.value.column) for output in query.outputs]
            return pa.Table.from_arrays(columns, schema=self.fields)
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        result = run(self.sql, {"rows": numbered(rows)}, "an expression")
        columns = [arrow_column(result.column(index), field.type) for index, field in enumerate(self.fields)]
        return pa.Table.from_arrays(columns, schema=self.fields)

    def of_selected(self, rows: pa.Table) -> pa.Table:
        """The table of the answer, from rows of which the columns were selected already if it only selects columns."""
        if not self.selects_columns:
            return self(rows)
        return self._sliced(rows) if rows.num_rows else self._nothing

    def each(self, rows: pa.Table) -> pa.Table:
        """The outputs of rows that joined an answer, which do not depend on each other; evaluates nothing for none."""
        return self(rows) if rows.num_rows else self._nothing

    @cached_property
    def _nothing(self) -> pa.Table:
        return self.fields.empty_table()

    def _sliced(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        query = self._query
        limit = rows.num_rows if query.limit is None else query.limit
        return rows.slice(query.offset, limit) if query.offset or limit < rows.num_rows else rows

    def _with_overs(self, rows: pa.Table) -> pa.Table:
        if self._before is not None:
            rows = rows.take(pa.array(rows_where(self._before, rows)))
        return with_over_columns(self._query.overs, rows)

    def _write(self) -> str:
        return _sql(self._query, "" if self._after is None else f" WHERE {self._after.sql}")


def _sql(query: Query, where: str) -> str:
    items = [f"({_plain(query, output)}) AS out{number}" for number, output in enumerate(query.outputs)]
    names = ", ".join(f"out{number}" for number in range(len(items)))
    if query.distinct:
        # Of equal rows the first one remains, at its position.
        sort = [_ordered(f"out{_output_of(query, order)}", order) for order in query.order]
        after = f" GROUP BY {names} ORDER BY {', '.join([*sort, f'min({ROW})'])}"
    else:
        items += [f"({order.value.sql}) AS sort{number}" for number, order in enumerate(query.order)]
        sort = [_ordered(f"sort{number}", order) for number, order in enumerate(query.order)]
        after = f" ORDER BY {', '.join([*sort, ROW])}"
    limit = "" if query.limit is None else f" LIMIT {query.limit}"
    offset = f" OFFSET {query.offset}" if query.offset else ""
    return f"SELECT {names} FROM (SELECT {', '.join(items)}, {ROW} FROM rows{where}){after}{limit}{offset}"


def _plain(query: Query, output: Output) -> str:
    """The SQL of an output; for DISTINCT, -0.0 becomes 0.0."""
    if query.distinct and output.value.type.kind in FRACTIONAL:
        return f"{output.value.sql} + 0"
    return output.value.sql


def _output_of(query: Query, order: Order) -> int:
    return next(number for number, output in enumerate(query.outputs) if output.value == order.value)


def _ordered(name: str, order: Order) -> str:
    return f"{name} {'DESC' if order.descending else 'ASC'} NULLS {'FIRST' if order.nulls_first else 'LAST'}"
