"""Command output as a table, as JSON, as CSV or as XML."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tureen.xml_template import default_template, render_rows

if TYPE_CHECKING:
    from tureen.results.answer import Answer
    from tureen.why.explanation import Explanation


class Format(StrEnum):
    """An output format."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    XML = "xml"


Row = Mapping[str, Any]

WIDEST = 200
"""The width of tables if the output is not a terminal."""


def show_rows(rows: Sequence[Row], output: Format, *, columns: Sequence[str] = (), to: IO[str] | None = None) -> None:
    """Print rows; `columns` gives the columns if there may be no rows."""
    out = to or sys.stdout
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    match output:
        case Format.JSON:
            print(_json(list(rows)), file=out)
        case Format.CSV:
            out.writelines(csv_lines(names, rows))
        case Format.XML:
            _print_xml(names, rows, out)
        case Format.TABLE:
            _table(names, rows, out)
            print(f"({len(rows):,} row{'' if len(rows) == 1 else 's'})", file=out)


def show_object(fields: Row, output: Format, *, to: IO[str] | None = None) -> None:
    """Print the fields of one object; as a table, one field per line."""
    out = to or sys.stdout
    match output:
        case Format.JSON:
            print(_json(dict(fields)), file=out)
        case Format.CSV:
            out.writelines(csv_lines(list(fields), [fields]))
        case Format.XML:
            _print_xml(list(fields), [fields], out)
        case Format.TABLE:
            _table(["", " "], [{"": name, " ": value} for name, value in flat(fields)], out, header=False)


def flat(fields: Row, prefix: str = "") -> Iterator[tuple[str, str]]:
    r"""Flatten nested fields to names and texts; lists become lines, NULLs and empty lists are left out.

    >>> list(flat({"why": None, "access": {"way": "by key"}, "factors": ["a > 1", "b < 2"], "n": 0}))
    [('access.way', 'by key'), ('factors', 'a > 1\nb < 2'), ('n', '0')]
    """
    for name, value in fields.items():
        match value:
            case None | []:
                continue
            case Mapping():
                yield from flat(value, f"{prefix}{name}.")
            case list() | tuple():
                yield prefix + name, "\n".join(map(_line, value))
            case _:
                yield prefix + name, text_of(value)


def _line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text_of(part)}" for name, part in value.items() if part is not None)
    return text_of(value)


def show_answer(answer: Answer, output: Format, *, to: IO[str] | None = None) -> None:
    """Print an answer; as JSON, in the format of the server's responses."""
    out = to or sys.stdout
    if output is Format.XML:
        print(answer.xml, file=out)
        return
    rows = answer.table.to_pylist()
    if output is not Format.JSON:
        show_rows(rows, output, columns=answer.table.column_names, to=out)
        if output is Format.TABLE and answer.note is not None:
            print(f"Tuples may be missing: {answer.note}.", file=out)
        elif output is Format.TABLE and not answer.complete:
            print("The window begins before the stream's horizon: older tuples are no longer retained.", file=out)
        return
    # It imports Arrow, which `tureen --help` does not need.
    from tureen.client.json_values import type_name  # noqa: PLC0415

    begin, end = answer.window
    body = {
        "columns": [{"name": field.name, "type": type_name(field.type)} for field in answer.table.schema],
        "rows": rows,
        "window": {"begin": begin, "end": end},
        "position": answer.position,
        "complete": answer.complete,
        "note": answer.note,
    }
    print(_json(body), file=out)


def show_explanation(explanation: Explanation, output: Format, *, to: IO[str] | None = None) -> None:
    """Print why tuples are in an answer or not; as JSON, in the format of the server's responses."""
    out = to or sys.stdout
    if output is Format.JSON:
        # It imports Arrow, which `tureen --help` does not need.
        from tureen.why.explanation_json import to_json  # noqa: PLC0415

        print(_json(to_json(explanation)), file=out)
        return
    rows = [
        {
            "input": explained.input,
            "tuple": "\n".join(explained.shown_values()),
            "in_answer": explained.in_answer,
            "reasons": "\n".join(reason.text for reason in explained.reasons),
        }
        for explained in explanation
    ]
    show_rows(rows, output, columns=("input", "tuple", "in_answer", "reasons"), to=out)
    if output is Format.TABLE:
        for line in explanation.summary():
            print(line, file=out)


def _print_xml(names: Sequence[str], rows: Iterable[Row], out: IO[str]) -> None:
    """Print rows as XML; nested values are JSON."""
    texts = (
        {name: text_of(row[name]) if isinstance(row.get(name), Mapping | list) else row.get(name) for name in names}
        for row in rows
    )
    print("".join(render_rows(default_template(names), texts)), file=out)


def csv_lines(names: Sequence[str], rows: Iterable[Row]) -> Iterable[str]:
    r"""Rows as lines of CSV: NULL is an empty field, the empty string is `""`.

    >>> list(csv_lines(["a", "b"], [{"a": None, "b": ""}, {"a": "x,y", "b": 1.5}]))
    ['a,b\n', ',""\n', '"x,y",1.5\n']
    """
    yield csv_fields(names) + "\n"
    for row in rows:
        yield csv_fields([row.get(name) for name in names]) + "\n"


def csv_fields(values: Iterable[Any]) -> str:
    """Values as one line of CSV."""
    return ",".join(map(_csv_field, values))


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = text_of(value)
    return '"' + text.replace('"', '""') + '"' if not text or set(text) & set(',"\r\n') else text


def _json(value: Any) -> str:
    # It imports Arrow, which `tureen --help` does not need.
    from tureen.client.json_values import json_text  # noqa: PLC0415

    return json_text(value, indent=2)


def text_of(value: Any) -> str:
    """A value as text for tables and CSV."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return moment.isoformat(" ") + "Z"
        case Mapping() | list() | tuple():
            return " ".join(_json(value).split())
    return str(value)


def _table(names: Sequence[str], rows: Sequence[Row], out: IO[str], *, header: bool = True) -> None:
    width = shutil.get_terminal_size().columns if out.isatty() else WIDEST
    console = Console(file=out, width=width, highlight=False, soft_wrap=False)
    table = Table(box=box.ROUNDED if out.isatty() else box.ASCII2, show_header=header, header_style="bold")
    for name in names:
        numbers = header and any(_is_number(row.get(name)) for row in rows)
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        cells = (row.get(name) for name in names)
        table.add_row(*(Text("NULL", style="dim") if cell is None else Text(text_of(cell)) for cell in cells))
    console.print(table)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
