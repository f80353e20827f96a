"""Parameters as callers give them: rows of values, labels, and which of the rows are meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import InvalidRows, SqlError, TureenError, UnknownQuery, nearest
from tureen.language.templates.template import TemplateText
from tureen.pot.members import Members
from tureen.query import Query
from tureen.schema import INTEGRAL, NUMERIC, Column, Kind, Schema
from tureen.stems.table_content import content_of

LABELS = INTEGRAL | {Kind.STRING}
"""The types that a label may have."""


def check_outputs(bound: Query, *queries: Query) -> None:
    """Raise where an answer's columns would not be the same for all of the queries."""
    for query in queries:
        for output in query.outputs:
            same = [one for one in bound.outputs if one.name == output.name]
            if not same:
                raise SqlError(
                    f"the column '{output.name}' would have another name for each row of parameters",
                    hint="give it a name, as in :limit AS limit",
                )
            if same[0].value.type != output.value.type:
                raise SqlError(
                    f"the type of column '{output.name}' would depend on the values of parameters",
                    detail=f"{output.value.type.sql} for one value, {same[0].value.type.sql} for all of them",
                    hint="write CAST(… AS …) around the parameter",
                )


def label_of(columns: Schema, label: str) -> str:
    """The column of the parameters that is the label, as it is spelt there."""
    column = columns.find(label)
    if column is None:
        raise TureenError(f"no column '{label}' in the parameters", hint=nearest(label, columns.names))
    if column.type.kind not in LABELS:
        raise TureenError(
            f"a label must be STRING, INT or BIGINT, got {column.type.sql}", hint="CAST the column, or take another"
        )
    return column.name


def numbers_of(numbers: int | Iterable[int]) -> list[int]:
    """Numbers of queries, each once and ascending."""
    given: list[Any] = list(numbers) if isinstance(numbers, Iterable) else [numbers]
    for number in given:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TureenError(
                f"a number must be an integer, got {ascii(number)[:40]}", hint="give the ones that add returned"
            )
    return sorted({int(number) for number in given})


def standing(members: Members, numbers: Sequence[int]) -> list[int]:
    """Numbers of queries that all stand."""
    known = members.standing
    beyond = [number for number in numbers if not 0 <= number < members.template.next_number]
    given = np.array([] if beyond else numbers, np.int64)
    unknown = beyond or given[~np.isin(given, known)].tolist()
    if unknown:
        raise UnknownQuery(f"the template has no query {unknown[0]}", hint="it was removed before, or never was there")
    return list(numbers)


def satisfying(members: Members, where: Mapping[str, Any]) -> list[int]:
    """The numbers of the queries whose row has those values; one of them, where a list of values is given."""
    if not isinstance(where, Mapping) or not where:
        raise TureenError("where must be a dict of columns and values", hint="such as {'sym': 'IBM'}")
    columns, standing = members.template.columns, members.standing
    for name, given in where.items():
        column = columns.find(name) if isinstance(name, str) else None
        if column is None:
            raise TureenError(f"no column '{name}' in the parameters", hint=nearest(str(name), columns.names))
        values = list(given) if isinstance(given, list | tuple | set) else [given]
        _, batch = content_of(Schema((column,)), [{column.name: _read(column, value)} for value in values])
        found = pc.is_in(members.take([column.name], standing).column(0), value_set=batch.column(0))
        standing = standing[found.to_numpy()]
    numbers: list[int] = standing.tolist()
    return numbers


def _read(column: Column, value: Any) -> Any:
    """A value, read where it is a text and the column has numbers or truths: command lines have nothing but texts."""
    if not isinstance(value, str) or column.type.kind not in NUMERIC | {Kind.BOOLEAN}:
        return value
    try:
        return pa.scalar(value).cast(column.type.arrow).as_py()
    except pa.ArrowException:
        return value


def _no_row() -> InvalidRows:
    return InvalidRows("there is no row of parameters", hint="give one row for each query")


def _as_table(params: Any) -> Any:
    """Rows of dicts as a table, whose types they then say; all others as they are."""
    if isinstance(params, list | tuple) and all(isinstance(one, Mapping) for one in params):
        try:
            return pa.Table.from_pylist(list(params))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidRows("the parameters cannot be converted to Arrow", detail=str(error)) from None
    return params


def added_values(columns: Schema, rows: Any) -> pa.RecordBatch:
    """More rows of parameters, with the columns and types of those that are there."""
    given: Iterable[Any] = ()
    if isinstance(rows, list | tuple):
        given = {name for row in rows if isinstance(row, Mapping) for name in row}
    elif hasattr(rows, "column_names") or hasattr(rows, "columns"):
        given = getattr(rows, "column_names", None) or list(rows.columns)
    _, values = content_of(columns, rows)
    if not values.num_rows:
        raise _no_row()
    known = {str(name).lower() for name in given}
    missing = next((name for name in columns.names if name.lower() not in known), None)
    if missing is not None:
        raise TureenError(f"no values for :{missing}", hint="write None where a value is NULL")
    return values


def values_of(text: TemplateText, params: Any, label: str | None) -> tuple[Schema, pa.RecordBatch]:
    """The parameters as columns, in the template's own spelling."""
    if hasattr(params, "__len__") and not len(params):
        raise _no_row()
    schema, batch = content_of(None, _as_table(params))
    given = {column.name.lower() for column in schema.columns}
    missing = [name for name in text.parameters if name not in given]
    extra = sorted(given - set(text.parameters) - ({label.lower()} if label is not None else set()))
    if missing or extra:
        what = f"no values for :{missing[0]}" if missing else f"the query has no parameter :{extra[0]}"
        hint = f"the parameters of the query are :{', :'.join(text.parameters)}"
        raise TureenError(what, hint=hint if missing else f"{hint}; label='{extra[0]}' lets it come with each change")
    return schema, batch
