"""`tureen template …`: many queries of one shape, from a file of parameters."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from tureen.cli.error_output import pointing_into
from tureen.cli.file_formats import FileKind, kind_of
from tureen.cli.following import Count, FromBeginning, Since, Timeout, beginning, follow_changes
from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.progress import Progress
from tureen.cli.queries import Stop, sql_text
from tureen.cli.target import AnySoup, Output, Owner, on_soup

templates = typer.Typer(no_args_is_help=True, help="Templates: a query for each row of parameters.")

Handle = Annotated[str, typer.Argument(metavar="TEMPLATE", help="The template's name or handle.")]


@templates.command("register")
@on_soup
def register(
    soup: AnySoup,
    sql: Annotated[
        str, typer.Argument(help="The SELECT, with parameters such as :sym for its values; - for standard input.")
    ],
    params: Annotated[str, typer.Argument(help="A file with the parameters, a row for each query.")],
    name: Annotated[str | None, typer.Option(help="A name for it.")] = None,
    kind: Annotated[FileKind | None, typer.Option("--format", help="How the parameters are written.")] = None,
    schema: Annotated[
        str | None,
        typer.Option(help='Their types, as in "sym STRING, least DOUBLE"; those of CSV are guessed if not said.'),
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column that comes with each change.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Let a query stand for each row of parameters; the template's handle is printed."""
    # They bring Arrow, which help does without.
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
        print(f"{rows.num_rows:,} queries stand after {time.perf_counter() - began:.1f} s", file=sys.stderr)
        print(template.id)
    else:
        told = {"id": template.id, "name": template.name, "sql": template.sql, "queries": rows.num_rows}
        show_object(told, output)


@templates.command("list")
@on_soup
def list_templates(soup: AnySoup, owner: Owner = None, output: Output = Format.TABLE) -> None:
    """List the templates: your own, and those that others share."""
    columns = ("id", "name", "sql", "queries", "owner", "shared", "registered_at")
    found = soup.templates(owner=owner)
    show_rows([{name: one[name] for name in columns} for one in found], output, columns=columns)


@templates.command("show")
@on_soup
def show(soup: AnySoup, template: Handle, output: Output = Format.TABLE) -> None:
    """Show a template and how its queries are matched with new rows."""
    found = soup.template(template)
    show_object({**found.explain(), **soup.describe_template(found.id)}, output)


@templates.command("share")
@on_soup
def share(soup: AnySoup, template: Handle, stop: Stop = False) -> None:
    """Let others invoke and follow a template's queries by their handles; the template's is printed."""
    handle = soup.template(template).id
    soup.share(handle, not stop)
    print(handle)


@templates.command("drop")
@on_soup
def drop(soup: AnySoup, template: Handle) -> None:
    """Let all queries of a template stand no longer."""
    soup.template(template).unregister()
    print(f"the queries of template {template} stand no longer", file=sys.stderr)


@templates.command("add")
@on_soup
def add(
    soup: AnySoup,
    template: Handle,
    params: Annotated[str, typer.Argument(help="A file with more parameters, a row for each query.")],
    kind: Annotated[FileKind | None, typer.Option("--format", help="How the parameters are written.")] = None,
    schema: Annotated[str | None, typer.Option(help="Their types; those of CSV are guessed if not said.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Let a query stand for each of some more rows; their numbers are printed."""
    # They bring Arrow, which help does without.
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
        list[str] | None, typer.Option(help="column=value: those whose row has that value; may be given again.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Let some queries of a template stand no longer, by their numbers or by their values."""
    values: dict[str, list[str]] = {}
    for one in where or ():
        column, sign, value = one.partition("=")
        if not sign:
            raise typer.BadParameter(f"--where must be column=value, got '{one}'")
        values.setdefault(column, []).append(value)
    removed = soup.template(template).remove(numbers or None, where=values or None)
    if output is Format.TABLE:
        print(f"{removed:,} queries removed", file=sys.stderr)
    else:
        show_object({"removed": removed}, output)


@templates.command("follow")
@on_soup
def follow(
    soup: AnySoup,
    template: Handle,
    since: Since = None,
    from_beginning: FromBeginning = False,
    timeout: Timeout = None,
    count: Count = None,
    output: Output = Format.TABLE,
) -> None:
    """Print every row that joins the answer of one of the queries, as it comes; Ctrl-C ends it."""
    start = beginning(since, from_beginning)
    follow_changes(soup.template(template).changes(since=start, timeout=timeout), output, count)
