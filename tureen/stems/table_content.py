"""The whole content of a table: from rows in memory, a file, or a Spark DataFrame; and as a file of the pot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tureen.errors import InvalidRows, InvalidSchema
from tureen.faults import crash_point
from tureen.pot.tablefile import read_table, write_table
from tureen.pot.tables import Content
from tureen.schema import Column, Kind, Schema, Type
from tureen.stems.csv_file import read_csv
from tureen.stems.intake import from_frame, to_batch

_TAKEN = "a list of dicts, an Arrow table, a DataFrame, or the path of a .csv or .parquet file"


def content_of(schema: Schema | None, rows: Any) -> tuple[Schema, pa.RecordBatch]:
    """The schema and the rows of a table; without a schema, the rows' own types make one."""
    if rows is None:
        rows = []
    if isinstance(rows, str | os.PathLike):
        rows = _from_file(schema, Path(rows))
    elif hasattr(rows, "toArrow"):
        rows = _from_spark(rows)
    elif hasattr(rows, "to_arrow") or hasattr(rows, "iloc"):
        rows = from_frame(rows) if schema is None else rows
    elif isinstance(rows, Mapping | bytes) or not isinstance(rows, Iterable | pa.Table | pa.RecordBatch):
        raise InvalidRows(f"rows came as {type(rows).__name__}", hint=f"give {_TAKEN}")
    if schema is None:
        if not isinstance(rows, pa.Table | pa.RecordBatch):
            raise InvalidSchema("these rows do not say their types", hint='give a schema, as in "sym STRING, id INT"')
        schema = _schema_of(rows.schema)
    return schema, to_batch(schema, rows)


def write_content(root: Path, table_id: str, attempt: str, batch: pa.RecordBatch) -> Content:
    """Write a table's rows as a new file; it is real when a commit names it."""
    name = f"tables/{table_id}/{attempt}-0.arrow"
    crash_point("table.before_write")
    write_table(root / name, batch)
    return Content(name, batch.num_rows, (root / name).stat().st_size)


def read_content(root: Path, content: Content) -> pa.Table:
    """A table's rows, mapped and not copied."""
    return read_table(root / content.path)


def _from_file(schema: Schema | None, path: Path) -> pa.Table:
    try:
        match path.suffix.lower():
            case ".parquet":
                return parquet.read_table(path)
            case ".csv":
                if schema is None:
                    raise InvalidSchema(
                        f"'{path.name}' does not say its types", hint="give the columns and their types"
                    )
                return read_csv(schema, path)
            case _:
                raise InvalidRows(f"'{path}' is neither a .csv nor a .parquet file", hint=f"give {_TAKEN}")
    except FileNotFoundError:
        raise InvalidRows(f"there is no file '{path}'", detail=f"looked for in {Path.cwd()}") from None
    except (OSError, pa.ArrowException) as error:
        raise InvalidRows(f"'{path}' cannot be read", detail=str(error)) from error


def _from_spark(frame: Any) -> pa.Table:
    try:
        return frame.toArrow()
    except Exception as error:
        # Whatever its job raises; Spark's own exceptions are known to the pipeline alone.
        raise InvalidRows("the Spark DataFrame could not be read", detail=str(error)) from error


def _schema_of(arrow: pa.Schema) -> Schema:
    if not len(arrow):
        raise InvalidSchema("a table needs at least one column")
    return Schema(tuple(Column(field.name, _type_of(field.name, field.type)) for field in arrow)).checked()


_KINDS = {
    "int8": Kind.TINYINT,
    "uint8": Kind.SMALLINT,
    "int16": Kind.SMALLINT,
    "uint16": Kind.INT,
    "int32": Kind.INT,
    "uint32": Kind.BIGINT,
    "int64": Kind.BIGINT,
    "bool": Kind.BOOLEAN,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "large_string": Kind.STRING,
    "string_view": Kind.STRING,
    "date32[day]": Kind.DATE,
    "date64[ms]": Kind.DATE,
}


def _type_of(name: str, found: pa.DataType) -> Type:
    """The type that holds all values of an Arrow type."""
    if pa.types.is_dictionary(found):
        return _type_of(name, found.value_type)
    if pa.types.is_timestamp(found):
        return Type(Kind.TIMESTAMP)
    if pa.types.is_decimal128(found) and found.scale >= 0:
        return Type(Kind.DECIMAL, found.precision, found.scale)
    kind = _KINDS.get(str(found))
    if kind is None:
        raise InvalidSchema(f"column '{name}' is {found}, and a table has no such type", hint="give a schema")
    return Type(kind)
