"""Arguments of templates: rows of parameters, labels, and the numbers or values that select queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import InvalidRows, SqlError, TureenError, UnknownQuery, nearest, shown
from tureen.language.templates.template import TemplateText
from tureen.pot.members import Members
from tureen.query import Query
from tureen.schema import INTEGRAL, NUMERIC, Column, Kind, Schema
from tureen.stems.table_content import content_of

LABELS = INTEGRAL | {Kind.STRING}
"""The types that a label may have."""


def check_outputs(bound: Query, *queries: Query) -> None:
    """Raise if the columns of the answers would not be the same for all queries."""
    for query in queries:
        for output in query.outputs:
            same_name = [candidate for candidate in bound.outputs if candidate.name == output.name]
            if not same_name:
                raise SqlError(
                    f"the name of column '{output.name}' depends on the parameters",
                    hint="give it a name, as in :limit AS limit",
                )
            if same_name[0].value.type != output.value.type:
                raise SqlError(
                    f"the type of column '{output.name}' depends on the parameters",
                    detail=f"{output.value.type.sql} for one value, {same_name[0].value.type.sql} for all of them",
                    hint="write CAST(… AS …) around the parameter",
                )


def label_of(columns: Schema, label: str) -> str:
    """The label column, as spelt in the parameters."""
    column = columns.find(label)
    if column is None:
        raise TureenError(f"no column '{label}' in the parameters", hint=nearest(label, columns.names))
    if column.type.kind not in LABELS:
        raise TureenError(
            f"a label must be STRING, INT or BIGINT, got {column.type.sql}", hint="cast the column, or use another one"
        )
    return column.name


def numbers_of(numbers: int | Iterable[int]) -> list[int]:
    """Numbers of queries, without duplicates and ascending."""
    values: list[Any] = list(numbers) if isinstance(numbers, Iterable) else [numbers]
    for number in values:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TureenError(
                f"a number must be an integer, got {shown(number)}", hint="pass numbers that add returned"
            )
    return sorted({int(number) for number in values})


def check_standing(members: Members, numbers: Sequence[int]) -> list[int]:
    """The numbers; raise if one of them is not the number of a standing query."""
    out_of_range = [number for number in numbers if not 0 <= number < members.template.next_number]
    candidates = np.array([] if out_of_range else numbers, np.int64)
    unknown = out_of_range or candidates[~np.isin(candidates, members.standing)].tolist()
    if unknown:
        raise UnknownQuery(f"the template has no query {unknown[0]}", hint="it may have been removed")
    return list(numbers)


def satisfying(members: Members, where: Mapping[str, Any]) -> list[int]:
    """The numbers of the queries whose row has, in each column of `where`, its value or one of its values."""
    if not isinstance(where, Mapping) or not where:
        raise TureenError("where must be a dict of columns and values", hint="such as {'sym': 'IBM'}")
    columns, numbers = members.template.columns, members.standing
    for name, condition in where.items():
        column = columns.find(name) if isinstance(name, str) else None
        if column is None:
            raise TureenError(f"no column '{name}' in the parameters", hint=nearest(str(name), columns.names))
        values = list(condition) if isinstance(condition, list | tuple | set) else [condition]
        _, batch = content_of(Schema((column,)), [{column.name: _parse(column, value)} for value in values])
        matches = pc.is_in(members.take([column.name], numbers).column(0), value_set=batch.column(0))
        numbers = numbers[matches.to_numpy()]
    result: list[int] = numbers.tolist()
    return result


def _parse(column: Column, value: Any) -> Any:
    """Convert a string to the type of a numeric or BOOLEAN column: on command lines all values are strings."""
    if not isinstance(value, str) or column.type.kind not in NUMERIC | {Kind.BOOLEAN}:
        return value
    try:
        return pa.scalar(value).cast(column.type.arrow).as_py()
    except pa.ArrowException:
        return value


def _no_row() -> InvalidRows:
    return InvalidRows("parameters must have at least one row", hint="pass one row for each query")


def _as_table(params: Any) -> Any:
    """Convert a list of dicts to an Arrow table, which has types; return all else unchanged."""
    if isinstance(params, list | tuple) and all(isinstance(row, Mapping) for row in params):
        try:
            return pa.Table.from_pylist(list(params))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidRows("the parameters cannot be converted to Arrow", detail=str(error)) from None
    return params


def added_values(columns: Schema, rows: Any) -> pa.RecordBatch:
    """Rows of parameters for an existing template, with its columns and types."""
    names: Iterable[Any] = ()
    if isinstance(rows, list | tuple):
        names = {name for row in rows if isinstance(row, Mapping) for name in row}
    elif hasattr(rows, "column_names") or hasattr(rows, "columns"):
        names = getattr(rows, "column_names", None) or list(rows.columns)
    _, values = content_of(columns, rows)
    if not values.num_rows:
        raise _no_row()
    present = {str(name).lower() for name in names}
    missing = next((name for name in columns.names if name.lower() not in present), None)
    if missing is not None:
        raise TureenError(f"no values for :{missing}", hint="pass None for NULL")
    return values


def values_of(text: TemplateText, params: Any, label: str | None) -> tuple[Schema, pa.RecordBatch]:
    """The schema and the values of the parameters; raise unless they are those of the template's text."""
    if hasattr(params, "__len__") and not len(params):
        raise _no_row()
    schema, batch = content_of(None, _as_table(params))
    present = {column.name.lower() for column in schema.columns}
    missing = [name for name in text.parameters if name not in present]
    extra = sorted(present - set(text.parameters) - ({label.lower()} if label is not None else set()))
    if missing or extra:
        message = f"no values for :{missing[0]}" if missing else f"the query has no parameter :{extra[0]}"
        hint = f"the parameters of the query are :{', :'.join(text.parameters)}"
        raise TureenError(
            message, hint=hint if missing else f"{hint}; label='{extra[0]}' returns the column with each change"
        )
    return schema, batch
