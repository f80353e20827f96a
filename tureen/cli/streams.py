"""`tureen stream …` and `tureen table …`: create, list and drop streams and tables."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from tureen.cli.file_formats import FileKind, kind_of
from tureen.cli.output import Format, show_rows
from tureen.cli.target import AnySoup, Output, on_any_soup, on_soup

streams = typer.Typer(no_args_is_help=True, help="Streams: create, list, drop.")
tables = typer.Typer(
    no_args_is_help=True, help="Tables, which are dimension data without time: create, replace, show, drop."
)

Name = Annotated[str, typer.Argument(help="The name.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation; required without a terminal.")]
IfNotExists = Annotated[bool, typer.Option("--if-not-exists", help="Do nothing if the name exists.")]


@streams.command("create")
@on_any_soup
def create_stream(
    soup: AnySoup,
    name: Name,
    schema: Annotated[
        str | None, typer.Argument(help='The columns, for example "sym STRING, price DOUBLE, ts TIMESTAMP".')
    ] = None,
    time: Annotated[str | None, typer.Option(help="The time column; the default is the time of arrival.")] = None,
    retain: Annotated[
        str | None,
        typer.Option(help='How long rows are kept: a duration such as "1 day", or "needed"; default: for ever.'),
    ] = None,
    clock: Annotated[
        str | None, typer.Option(help="The clock of NOW: wall, or stream for replays; default: wall.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="The query that the stream is derived from, instead of columns.")
    ] = None,
    unique: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the unique key; may be repeated."),
    ] = None,
    lateness: Annotated[
        str | None, typer.Option(help='How late a row may be, for example "10 seconds"; later ones are rejected.')
    ] = None,
    punctuate: Annotated[
        str | None,
        typer.Option(
            help="A BOOLEAN column that is true in the last row with its key, or a column or header with patterns."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the key of --punctuate; may be repeated."),
    ] = None,
    item: Annotated[
        str | None, typer.Option(help='The path of its items in XML documents, for example "photons/photon".')
    ] = None,
    source: Annotated[str | None, typer.Option(help="The format of a Spark source that feeds the stream.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the source; may be repeated."),
    ] = None,
    if_not_exists: IfNotExists = False,
) -> None:
    """Create a stream: from columns, or derived from a query."""
    if schema is None and query is None:
        raise typer.BadParameter(
            'name the columns, such as "sym STRING, price DOUBLE", or write --query', param_hint="SCHEMA"
        )
    feed: dict[str, Any] | None = None
    if source is not None:
        feed = {"format": source, "options": dict(map(_key_and_value, option or []))}
    elif option:
        raise typer.BadParameter("--option requires --source", param_hint="--option")
    soup.create_stream(
        name,
        schema,
        time=time,
        retain=retain,
        clock=clock,
        source=feed,
        query=query,
        unique=unique or None,
        lateness=lateness,
        punctuate=punctuate,
        key=key or None,
        item=item,
        if_not_exists=if_not_exists,
    )
    print(f"stream {name} created", file=sys.stderr)


@streams.command("list")
@on_soup
def list_streams(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """List the streams."""
    columns = (
        "name",
        "schema",
        "time",
        "clock",
        "retain_seconds",
        "retain_needed",
        "source",
        "query",
        "unique",
        "lateness_seconds",
    )
    show_rows(soup.streams(), output, columns=(*columns, "item"))


@streams.command("rejected")
@on_soup
def rejected(soup: AnySoup, name: Name, output: Output = Format.TABLE) -> None:
    """Show the rejected rows with the reason."""
    show_rows(soup.rejected(name), output, columns=("rejected_at", "reason", "row"))


@streams.command("drop")
@on_soup
def drop_stream(soup: AnySoup, name: Name, yes: Yes = False) -> None:
    """Drop a stream, with its rows and the queries over it."""
    _confirm(f"Drop the stream {name}, all its rows and the queries over it?", yes)
    soup.drop_stream(name)
    print(f"stream {name} dropped", file=sys.stderr)


@tables.command("create")
@on_any_soup
def create_table(
    soup: AnySoup,
    name: Name,
    file: Annotated[str | None, typer.Argument(help="A file with its rows: CSV, Parquet, Arrow or JSON.")] = None,
    schema: Annotated[str | None, typer.Option(help="The columns, if the file has no types.")] = None,
    if_not_exists: IfNotExists = False,
) -> None:
    """Create a table, empty or with the rows of a file."""
    soup.create_table(name, schema, None if file is None else _rows(file, schema), if_not_exists=if_not_exists)
    print(f"table {name} created", file=sys.stderr)


@tables.command("replace")
@on_soup
def replace_table(
    soup: AnySoup, name: Name, file: Annotated[str, typer.Argument(help="The file with the new rows.")]
) -> None:
    """Replace all rows of a table with the rows of a file."""
    schema = next((table["schema"] for table in soup.tables() if table["name"].lower() == name.lower()), None)
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
    content = soup.table(name)
    show_rows(content.to_pylist(), output, columns=content.column_names)


@tables.command("drop")
@on_soup
def drop_table(soup: AnySoup, name: Name, yes: Yes = False) -> None:
    """Drop a table."""
    _confirm(f"Drop the table {name} and all its rows?", yes)
    soup.drop_table(name)
    print(f"table {name} dropped", file=sys.stderr)


def _rows(file: str, schema: str | None) -> Any:
    # They import Arrow, which help does not need.
    from tureen.cli.row_files import read_table  # noqa: PLC0415
    from tureen.schema import Schema  # noqa: PLC0415

    kind = kind_of(file)
    if kind is FileKind.CSV and schema is None:
        raise typer.BadParameter("CSV has no types: --schema is required", param_hint="FILE")
    return read_table(file, kind, None if schema is None else Schema.parse(schema))


def _key_and_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"expected KEY=VALUE, got '{text}'", param_hint="--option")
    return key, value


def _confirm(question: str, yes: bool) -> None:
    """Ask for confirmation at a terminal; without a terminal, require `-y`."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("without a terminal, -y is required", param_hint="-y")
    typer.confirm(question, abort=True)
