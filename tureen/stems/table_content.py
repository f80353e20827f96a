"""The content of a table, read from rows in memory, a file, or a Spark DataFrame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tureen.deferred_import import DeferredModule
from tureen.errors import InvalidRows, InvalidSchema
from tureen.schema import Column, Kind, Schema, Type
from tureen.stems.csv_file import read_csv
from tureen.stems.intake import from_frame, to_batch

if TYPE_CHECKING:
    from pyarrow import parquet
else:
    parquet = DeferredModule("pyarrow.parquet")

_FORMATS = "a list of dicts, an Arrow table, a DataFrame, or the path of a .csv or .parquet file"


def content_of(schema: Schema | None, rows: Any) -> tuple[Schema, pa.RecordBatch]:
    """The schema and the rows of a table; without a schema, it is derived from the types of the rows."""
    if rows is None:
        rows = []
    if isinstance(rows, str | os.PathLike):
        rows = _from_file(schema, Path(rows))
    elif hasattr(rows, "toArrow"):
        rows = _from_spark(rows)
    elif hasattr(rows, "to_arrow") or hasattr(rows, "iloc"):
        rows = from_frame(rows) if schema is None else rows
    elif isinstance(rows, Mapping | bytes) or not isinstance(rows, Iterable | pa.Table | pa.RecordBatch):
        raise InvalidRows(f"rows must be {_FORMATS}, got {type(rows).__name__}")
    if schema is None:
        if not isinstance(rows, pa.Table | pa.RecordBatch):
            raise InvalidSchema("rows without types need a schema", hint='for example "sym STRING, id INT"')
        schema = _schema_of(rows.schema)
    return schema, to_batch(schema, rows)


def _from_file(schema: Schema | None, path: Path) -> pa.Table:
    try:
        match path.suffix.lower():
            case ".parquet":
                return parquet.read_table(path)
            case ".csv":
                if schema is None:
                    raise InvalidSchema(
                        f"'{path.name}' has no types and needs a schema", hint="give the columns and their types"
                    )
                return read_csv(schema, path)
            case _:
                raise InvalidRows(f"'{path}' must be a .csv or .parquet file", hint=f"rows can be {_FORMATS}")
    except FileNotFoundError:
        raise InvalidRows(f"file '{path}' not found", detail=f"relative to {Path.cwd()}") from None
    except (OSError, pa.ArrowException) as error:
        raise InvalidRows(f"'{path}' cannot be read", detail=str(error)) from error


def _from_spark(frame: Any) -> pa.Table:
    try:
        return frame.toArrow()
    except Exception as error:
        # Any error of its job: only the pipeline knows Spark's exceptions.
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


def _type_of(name: str, source: pa.DataType) -> Type:
    """The column type that can hold all values of an Arrow type."""
    if pa.types.is_dictionary(source):
        return _type_of(name, source.value_type)
    if pa.types.is_timestamp(source):
        return Type(Kind.TIMESTAMP)
    if pa.types.is_decimal128(source) and source.scale >= 0:
        return Type(Kind.DECIMAL, source.precision, source.scale)
    kind = _KINDS.get(str(source))
    if kind is None:
        raise InvalidSchema(f"column '{name}' has the unsupported type {source}", hint="give a schema")
    return Type(kind)
