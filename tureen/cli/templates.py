"""`tureen template …`: queries of one shape, one for each row of a file of parameters."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from tureen.cli.error_output import pointing_into
from tureen.cli.file_formats import FileKind, kind_of
from tureen.cli.following import add_follow_command
from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.progress import Progress
from tureen.cli.queries import Stop, sql_text
from tureen.cli.target import AnySoup, Output, Owner, on_soup

templates = typer.Typer(no_args_is_help=True, help="Templates: a query for each row of parameters.")

HANDLE = typer.Argument(metavar="TEMPLATE", help="The template's name or handle.")
Handle = Annotated[str, HANDLE]


@templates.command("register")
@on_soup
def register(
    soup: AnySoup,
    sql: Annotated[
        str, typer.Argument(help="The SELECT with parameters such as :sym, or - to read it from standard input.")
    ],
    params: Annotated[str, typer.Argument(help="A file of parameters, with a row for each query.")],
    name: Annotated[str | None, typer.Option(help="The name of the template.")] = None,
    kind: Annotated[FileKind | None, typer.Option("--format", help="The format of the file.")] = None,
    schema: Annotated[
        str | None,
        typer.Option(help='Their types, for example "sym STRING, least DOUBLE"; inferred from CSV by default.'),
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column that is reported with each change.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Register a query for each row of parameters and print the template's handle."""
    # They import Arrow, which help does not need.
    from tureen.cli.row_files import read_table  # noqa: PLC0415
    from tureen.schema import Schema  # noqa: PLC0415

    text = sql_text(sql, None)
    began = time.perf_counter()
    with Progress("reading the parameters", None) as progress:
        rows = read_table(params, kind_of(params, kind), None if schema is None else Schema.parse(schema))
        progress.note(f"registering {rows.num_rows:,} queries")
        with pointing_into(text):
            template = soup.register_many(text, rows, name=name, label=label)
    if output is Format.TABLE:
        print(f"{rows.num_rows:,} queries registered in {time.perf_counter() - began:.1f} s", file=sys.stderr)
        print(template.id)
    else:
        entry = {"id": template.id, "name": template.name, "sql": template.sql, "queries": rows.num_rows}
        show_object(entry, output)


@templates.command("list")
@on_soup
def list_templates(soup: AnySoup, owner: Owner = None, output: Output = Format.TABLE) -> None:
    """List your own templates and those that others share."""
    columns = ("id", "name", "sql", "queries", "owner", "shared", "registered_at")
    entries = soup.templates(owner=owner)
    show_rows([{name: entry[name] for name in columns} for entry in entries], output, columns=columns)


@templates.command("show")
@on_soup
def show(soup: AnySoup, template: Handle, output: Output = Format.TABLE) -> None:
    """Show a template and how its queries are matched with new rows."""
    handle = soup.template(template)
    show_object({**handle.explain(), **soup.describe_template(handle.id)}, output)


@templates.command("share")
@on_soup
def share(soup: AnySoup, template: Handle, stop: Stop = False) -> None:
    """Allow other principals to invoke and follow a template's queries, and print the template's handle."""
    handle = soup.template(template).id
    soup.share(handle, not stop)
    print(handle)


@templates.command("drop")
@on_soup
def drop(soup: AnySoup, template: Handle) -> None:
    """Unregister a template and all of its queries."""
    soup.template(template).unregister()
    print(f"template {template} unregistered", file=sys.stderr)


@templates.command("add")
@on_soup
def add(
    soup: AnySoup,
    template: Handle,
    params: Annotated[str, typer.Argument(help="A file of parameters, with a row for each new query.")],
    kind: Annotated[FileKind | None, typer.Option("--format", help="The format of the file.")] = None,
    schema: Annotated[str | None, typer.Option(help="Their types; inferred from CSV by default.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Register a query for each additional row of parameters and print their numbers."""
    # They import Arrow, which help does not need.
    from tureen.cli.row_files import read_table  # noqa: PLC0415
    from tureen.schema import Schema  # noqa: PLC0415

    rows = read_table(params, kind_of(params, kind), None if schema is None else Schema.parse(schema))
    numbers = soup.template(template).add(rows)
    if output is Format.TABLE:
        print(f"{numbers[0]} to {numbers[-1]}")
    else:
        show_object({"first": numbers[0], "rows": len(numbers)}, output)


@templates.command("remove")
@on_soup
def remove(
    soup: AnySoup,
    template: Handle,
    numbers: Annotated[list[int] | None, typer.Argument(help="The numbers of the queries.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="column=value: the queries whose row has that value; may be repeated.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Unregister queries of a template, by their numbers or by their values."""
    values: dict[str, list[str]] = {}
    for condition in where or ():
        column, separator, value = condition.partition("=")
        if not separator:
            raise typer.BadParameter(f"--where must be column=value, got '{condition}'")
        values.setdefault(column, []).append(value)
    removed = soup.template(template).remove(numbers or None, where=values or None)
    if output is Format.TABLE:
        print(f"{removed:,} queries unregistered", file=sys.stderr)
    else:
        show_object({"removed": removed}, output)


add_follow_command(
    templates,
    HANDLE,
    lambda soup, handle_or_name: soup.template(handle_or_name),
    "Print each row that joins the answer of one of the queries as it arrives, until Ctrl-C.",
)
