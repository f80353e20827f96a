"""Answers as people see them at a prompt or in a notebook: the first rows, as text or as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from html import escape
from typing import Any

import pyarrow as pa

SHOWN_ROWS = 20
"""The number of rows that are shown."""

SHOWN_CHARACTERS = 40
"""The number of characters of a value that are shown."""


def text_table(table: pa.Table) -> str:
    """The first rows as aligned text.

    >>> print(text_table(pa.table({"sym": ["IBM", None], "price": [120.5, 99.0]})))
    sym   price
    IBM   120.5
    NULL   99.0
    """
    names, rows = _cut(table)
    lines = [names, *rows]
    numbers = [_is_number(field.type) for field in table.schema]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in lines
    )


def html_table(table: pa.Table) -> str:
    """The first rows as a table in HTML; all values are text.

    >>> html_table(pa.table({"a": ["<b>"]}))
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    names, rows = _cut(table)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def summary_text(rows: int, begin: datetime | None, end: datetime | None) -> str:
    """How many rows there are, how many of them are shown, and the window.

    >>> summary_text(1, None, None), summary_text(2000, None, None)
    ('1 row', '2,000 rows, the first 20 are shown')
    """
    shown = f", the first {SHOWN_ROWS} are shown" if rows > SHOWN_ROWS else ""
    window = "" if begin is None and end is None else f"; window from {_moment(begin)} to {_moment(end)}"
    return f"{rows:,} row{'s' * (rows != 1)}{shown}{window}"


def _cut(table: pa.Table) -> tuple[list[str], list[list[str]]]:
    first = table.slice(0, SHOWN_ROWS)
    columns = [[_text(value) for value in column.to_pylist()] for column in first.columns]
    return [_shortened(name) for name in table.column_names], [list(row) for row in _transposed(columns)]


def _transposed(columns: list[list[str]]) -> Iterator[tuple[str, ...]]:
    return zip(*columns, strict=True)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return _moment(value)
    return "NULL" if value is None else _shortened(str(value))


def _shortened(text: str) -> str:
    line = " ".join(text.splitlines()) if text.strip() else text
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def _moment(moment: datetime | None) -> str:
    return "…" if moment is None else moment.isoformat(sep=" ").removesuffix("+00:00")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
