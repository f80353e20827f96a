"""`tureen stream …` and `tureen table …`: make, list and drop what holds rows."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from tureen.cli.file_formats import FileKind, kind_of
from tureen.cli.output import Format, show_rows
from tureen.cli.target import AnySoup, Output, on_any_soup, on_soup

streams = typer.Typer(no_args_is_help=True, help="Streams: make, list, drop.")
tables = typer.Typer(
    no_args_is_help=True, help="Tables, which are dimension data without time: make, fill, show, drop."
)

Name = Annotated[str, typer.Argument(help="The name.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where there is no terminal to answer at.")]
IfNotExists = Annotated[bool, typer.Option("--if-not-exists", help="Leave one of that name as it is.")]


@streams.command("create")
@on_any_soup
def create_stream(
    soup: AnySoup,
    name: Name,
    schema: Annotated[str, typer.Argument(help='The columns, as in "sym STRING, price DOUBLE, ts TIMESTAMP".')],
    time: Annotated[str | None, typer.Option(help="The time column; without one, time is the arrival.")] = None,
    retain: Annotated[str | None, typer.Option(help='How long rows are kept, as in "1 day"; all if not said.')] = None,
    clock: Annotated[str, typer.Option(help="What NOW is: wall, or stream for replays.")] = "wall",
    source: Annotated[str | None, typer.Option(help="The format of a Spark source that feeds the stream.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the source; may be repeated."),
    ] = None,
    if_not_exists: IfNotExists = False,
) -> None:
    """Make a stream."""
    outside: dict[str, Any] | None = None
    if source is not None:
        outside = {"format": source, "options": dict(_pair(one) for one in option or [])}
    elif option:
        raise typer.BadParameter("options go with a source", param_hint="--option")
    soup.create_stream(name, schema, time=time, retain=retain, clock=clock, source=outside, if_not_exists=if_not_exists)
    print(f"stream {name} is there", file=sys.stderr)


@streams.command("list")
@on_soup
def list_streams(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """List the streams."""
    columns = ("name", "schema", "time", "clock", "retain_seconds", "source")
    show_rows(soup.streams(), output, columns=columns)


@streams.command("rejected")
@on_soup
def rejected(soup: AnySoup, name: Name, output: Output = Format.TABLE) -> None:
    """Show the rows that could not be taken, with the reason."""
    show_rows(soup.rejected(name), output, columns=("rejected_at", "reason", "row"))


@streams.command("drop")
@on_soup
def drop_stream(soup: AnySoup, name: Name, yes: Yes = False) -> None:
    """Drop a stream, with its rows and the queries over it."""
    _sure(f"Drop the stream {name}, all its rows and the queries over it?", yes)
    soup.drop_stream(name)
    print(f"stream {name} is gone", file=sys.stderr)


@tables.command("create")
@on_any_soup
def create_table(
    soup: AnySoup,
    name: Name,
    file: Annotated[str | None, typer.Argument(help="A file with its rows: CSV, Parquet, Arrow or JSON.")] = None,
    schema: Annotated[str | None, typer.Option(help="The columns, where the file does not say their types.")] = None,
    if_not_exists: IfNotExists = False,
) -> None:
    """Make a table, empty or with the rows of a file."""
    soup.create_table(name, schema, None if file is None else _rows(file, schema), if_not_exists=if_not_exists)
    print(f"table {name} is there", file=sys.stderr)


@tables.command("replace")
@on_soup
def replace_table(
    soup: AnySoup, name: Name, file: Annotated[str, typer.Argument(help="The file with the new rows.")]
) -> None:
    """Put the rows of a file in the place of all that a table holds."""
    schema = next((one["schema"] for one in soup.tables() if one["name"].lower() == name.lower()), None)
    soup.replace_table(name, _rows(file, schema))


@tables.command("list")
@on_soup
def list_tables(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """List the tables."""
    show_rows(soup.tables(), output, columns=("name", "schema", "rows", "bytes", "changed_at"))


@tables.command("show")
@on_soup
def show_table(soup: AnySoup, name: Name, output: Output = Format.TABLE) -> None:
    """Show the rows of a table."""
    found = soup.table(name)
    show_rows(found.to_pylist(), output, columns=found.column_names)


@tables.command("drop")
@on_soup
def drop_table(soup: AnySoup, name: Name, yes: Yes = False) -> None:
    """Drop a table."""
    _sure(f"Drop the table {name} and all its rows?", yes)
    soup.drop_table(name)
    print(f"table {name} is gone", file=sys.stderr)


def _rows(file: str, schema: str | None) -> Any:
    # They bring Arrow, which help does without.
    from tureen.cli.row_files import read_table  # noqa: PLC0415
    from tureen.schema import Schema  # noqa: PLC0415

    kind = kind_of(file)
    if kind is FileKind.CSV and schema is None:
        raise typer.BadParameter("CSV does not say its types: give --schema", param_hint="FILE")
    return read_table(file, kind, None if schema is None else Schema.parse(schema))


def _pair(text: str) -> tuple[str, str]:
    key, given, value = text.partition("=")
    if not given:
        raise typer.BadParameter(f"'{text}' is not KEY=VALUE", param_hint="--option")
    return key, value


def _sure(question: str, yes: bool) -> None:
    """Ask, where somebody is there to answer; elsewhere the answer must have been given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask at; give -y to drop it", param_hint="-y")
    typer.confirm(question, abort=True)
