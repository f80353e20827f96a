r"""Tables as text: a header with the name and type of each column, and rows of unambiguous values.

```
sym STRING | `a b` INT | price DOUBLE | ts TIMESTAMP
'AA'       | 5         | 1.5          | 2026-03-01 12:00:00
''         | NULL      | NaN          | 2026-03-01 12:00:00.000001
```

Strings are always quoted, with `\n`, `\t`, `\'` and `\\` as in SQL; numbers are written so that they round-trip; times
are in UTC. Names that are not plain words are in backticks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tureen.schema import Column, Kind, Type, array_of, type_of_arrow

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_ESCAPED = {text[1]: char for char, text in _ESCAPES.items()}
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True)
class Table:
    """Typed columns and rows of plain Python values."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def read(cls, lines: Sequence[str]) -> Table:
        """A table from its lines, the header first."""
        columns = tuple(map(read_column, split_cells(lines[0])))
        return cls(columns, tuple(read_row(columns, line) for line in lines[1:]))

    @classmethod
    def of(cls, table: pa.Table) -> Table:
        """A table from an answer of the engine or of Spark."""
        columns = tuple(Column(field.name, type_of(field.type)) for field in table.schema)
        values = [column.to_pylist() for column in table.columns]
        return cls(columns, tuple(zip(*values, strict=True)) if values else ())

    def lines(self) -> list[str]:
        """The text, with its columns aligned."""
        cells = [[column_text(column) for column in self.columns], *self.texts()]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        padded = (" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
        return [line.rstrip() for line in padded]

    def texts(self) -> Iterator[list[str]]:
        """The rows, each value as its text."""
        for row in self.rows:
            yield [value_text(value, column.type) for value, column in zip(row, self.columns, strict=True)]


def type_of(arrow: pa.DataType) -> Type:
    """The type of an Arrow type; raises KeyError for one that streams do not support."""
    type_ = type_of_arrow(arrow)
    if type_ is None:
        raise KeyError(str(arrow))
    return type_


def split_cells(line: str, bar: str = "|") -> list[str]:
    """The cells of a line, split at bars outside quotes and backticks.

    >>> split_cells("'a|b' | `x | y` INT")
    ["'a|b'", '`x | y` INT']
    """
    cells, start, quote, i = [], 0, "", 0
    while i < len(line):
        if quote == "'" and line[i] == "\\":
            i += 1
        elif quote:
            quote = "" if line[i] == quote else quote
        elif line[i] in "'`":
            quote = line[i]
        elif line[i] == bar:
            cells.append(line[start:i].strip())
            start = i + 1
        i += 1
    return [*cells, line[start:].strip()]


def read_column(cell: str) -> Column:
    """A header's cell: a name and a type."""
    name, _, kind = cell.rpartition(" ")
    name = name.strip()
    return Column(name[1:-1].replace("``", "`") if name.startswith("`") else name, read_type(kind))


def read_type(text: str) -> Type:
    """A type of a header; `ARRAY<…>` occurs in answers only."""
    inner = re.fullmatch(r"ARRAY<(.*)>", text)
    return Type.parse(text) if inner is None else array_of(Type.parse(inner.group(1)))


def column_text(column: Column) -> str:
    """A column as a header's cell."""
    plain = _PLAIN.fullmatch(column.name)
    return f"{column.name if plain else '`' + column.name.replace('`', '``') + '`'} {column.type.sql}"


def read_row(columns: Sequence[Column], line: str) -> tuple[Any, ...]:
    """The values of one line."""
    cells = split_cells(line)
    if len(cells) != len(columns):
        raise ValueError(f"{len(cells)} values for {len(columns)} columns: {line}")
    return tuple(read_value(cell, column.type) for cell, column in zip(cells, columns, strict=True))


def read_value(cell: str, type_: Type) -> Any:
    """The value of a cell of a type."""
    if cell == "NULL":
        return None
    if type_.element is not None:
        inner = cell[1:-1].strip()
        return [read_value(item, type_.element) for item in split_cells(inner, ",")] if inner else []
    match type_.kind:
        case Kind.STRING:
            if len(cell) < 2 or cell[0] != "'" or cell[-1] != "'":
                raise ValueError(f"an unquoted string: {cell}")
            return re.sub(r"\\(.)", lambda match: _ESCAPED[match.group(1)], cell[1:-1])
        case Kind.BOOLEAN:
            return {"true": True, "false": False}[cell]
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return int(cell)
        case Kind.DECIMAL:
            return Decimal(cell).quantize(Decimal(1).scaleb(-type_.scale), context=Context(prec=100))
        case Kind.DATE:
            return date.fromisoformat(cell)
        case Kind.TIMESTAMP:
            return read_time(cell)
    number = _SPECIAL[cell] if cell in _SPECIAL else float(cell)
    return float(np.float32(number)) if type_.kind is Kind.FLOAT else number


def read_time(text: str) -> datetime:
    """A timestamp; in UTC unless it has a time zone."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def value_text(value: Any, type_: Type) -> str:
    """A value as the text of a cell; the inverse of `read_value`."""
    if value is None:
        return "NULL"
    if type_.element is not None:
        return "[" + ", ".join(value_text(item, type_.element) for item in value) + "]"
    match type_.kind:
        case Kind.STRING:
            return "'" + "".join(_ESCAPES.get(char, char) for char in value) + "'"
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DECIMAL:
            return format(value, "f")
        case Kind.DATE:
            return str(value.isoformat())
        case Kind.TIMESTAMP:
            return str(value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" "))
        case Kind.FLOAT | Kind.DOUBLE if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Kind.FLOAT:
            return str(np.float32(value))
    return repr(value)


def differences(actual: Table, expected: Table, *, tolerance: float = 0.0) -> list[str]:
    """The differing values, row by row; DOUBLE may differ by a relative tolerance. Names are not compared."""
    actual_types, expected_types = ([column.type for column in table.columns] for table in (actual, expected))
    sizes = [f"{len(table.rows)} rows of {len(table.columns)} columns" for table in (actual, expected)]
    if sizes[0] != sizes[1]:
        return [f"{sizes[0]}, not {sizes[1]}"]
    wrong = []
    for number, (row, expected_row) in enumerate(zip(actual.rows, expected.rows, strict=True)):
        for value, other, type_, other_type in zip(row, expected_row, actual_types, expected_types, strict=True):
            texts = value_text(value, type_), value_text(other, other_type)
            if texts[0] != texts[1] and not _is_close(value, other, tolerance):
                wrong.append(f"row {number}: {texts[0]}, not {texts[1]}")
    return wrong


def _is_close(value: Any, other: Any, tolerance: float) -> bool:
    if tolerance and isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
    return False


def in_any_order(table: Table) -> Table:
    """The table with its rows sorted, numbers by their leading digits."""
    return Table(table.columns, tuple(sorted(table.rows, key=lambda row: list(_sort_keys(table.columns, row)))))


def _sort_keys(columns: Iterable[Column], row: Iterable[Any]) -> Iterator[str]:
    # Values equal up to the tolerance should have the same key, so that their last digits do not affect the order.
    for column, value in zip(columns, row, strict=True):
        is_number = isinstance(value, float) and math.isfinite(value)
        yield f"{value:.6e}" if is_number else value_text(value, column.type)
