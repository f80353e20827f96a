"""CSV files as typed rows: a header line names the columns, and errors name the line of an invalid value.

An empty field is NULL; an empty field in quotes is the empty text.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow import csv as arrow_csv

from tureen.errors import InvalidRows, nearest
from tureen.schema import Column, Schema
from tureen.stems.text_values import typed_array

_BLOCK_LIMIT = (1 << 31) - 1


def read_csv(schema: Schema, path: Path) -> pa.Table:
    """The rows of a CSV file in the types of a schema, without the columns that the file lacks."""
    return read_csv_bytes(schema, path.read_bytes(), path.name)


def read_csv_bytes(schema: Schema, data: bytes, name: str) -> pa.Table:
    """The rows of a CSV text, as `read_csv` returns them; `name` is the file name for error messages."""
    return _File(name, data).table(schema)


class _File:
    """A CSV file in memory, so that error messages refer to the lines that were read."""

    def __init__(self, name: str, data: bytes) -> None:
        data = data.removeprefix(b"\xef\xbb\xbf")
        self.name = name
        self.data = data if data.endswith(b"\n") else data + b"\n"
        if self.data.count(b'"') % 2:
            raise InvalidRows(f"'{self.name}': a quote is not closed", hint='inside quotes, write a quote twice: ""')
        try:
            reader = csv.reader(io.StringIO(self.data.decode(), newline=""))
            self.header = [name.strip() for name in next((row for row in reader if row), [])]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidRows(f"'{self.name}' cannot be read as CSV in UTF-8", detail=str(error)) from None
        self.header_lines = reader.line_num
        if not self.header:
            raise InvalidRows(f"'{self.name}' is empty", hint="its first line names the columns")

    def table(self, schema: Schema) -> pa.Table:
        """All rows, typed."""
        columns = self._columns(schema)
        texts = self._texts()
        arrays = [self._typed(column, texts.column(number)) for number, column in enumerate(columns)]
        return pa.table(arrays, names=[column.name for column in columns])

    def _columns(self, schema: Schema) -> list[Column]:
        columns: list[Column] = []
        for name in self.header:
            column = schema.find(name)
            if column is None:
                raise InvalidRows(
                    f"'{self.name}' line {self.header_lines}: unknown column '{name}'",
                    hint=nearest(name, schema.names) or "the first line of a CSV file names the columns",
                )
            if column in columns:
                raise InvalidRows(f"'{self.name}' line {self.header_lines}: duplicate column '{name}'")
            columns.append(column)
        return columns

    def _texts(self) -> pa.Table:
        uneven_rows: list[Any] = []
        names = [str(number) for number in range(len(self.header))]

        def stop(row: Any) -> str:
            uneven_rows.append(row)
            return "error"

        try:
            return arrow_csv.read_csv(
                pa.BufferReader(self.data),
                # One thread: only then are rows numbered. One block: no value is cut in two.
                read_options=arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=min(len(self.data) + 1, _BLOCK_LIMIT),
                    column_names=names,
                    skip_rows=self.header_lines,
                ),
                parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=stop),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    null_values=[""],
                ),
            )
        except pa.ArrowException as error:
            if not uneven_rows:
                raise InvalidRows(f"'{self.name}' cannot be read as CSV", detail=str(error)) from None
            row = uneven_rows[0]
            raise InvalidRows(
                f"'{self.name}' line {self._line(row.number - self.header_lines - 1)}: {row.actual_columns} fields, "
                f"where the header has {row.expected_columns}",
                hint="put a text with a comma in quotes",
            ) from None

    def _typed(self, column: Column, texts: pa.ChunkedArray) -> pa.Array:
        return typed_array(column, texts.to_pylist(), lambda row, text: self._refuse(column, row, text))

    def _refuse(self, column: Column, row: int, text: str) -> NoReturn:
        raise InvalidRows(
            f"'{self.name}' line {self._line(row)}: column '{column.name}' is {column.type.sql}, not {text[:60]!r}"
        ) from None

    def _line(self, row_index: int) -> int:
        """The line where a row begins; searched only for error messages, as a row may span several lines."""
        reader = csv.reader(io.StringIO(self.data.decode(), newline=""))
        row, line = -2, 1
        try:
            for fields in reader:
                row += bool(fields)
                if row == row_index:
                    break
                line = reader.line_num + 1
        except csv.Error:
            # A field may be too long for this reader, though not for Arrow's: the line before it is near enough.
            pass
        return line
