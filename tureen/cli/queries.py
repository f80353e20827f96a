"""`tureen query …`: let queries stand, ask and follow them."""

from __future__ import annotations

import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tureen.cli.error_output import pointing_into
from tureen.cli.following import Count, FromBeginning, Since, Timeout, beginning, follow_changes
from tureen.cli.output import Format, show_answer, show_object, show_rows
from tureen.cli.progress import Progress, wait_until_in
from tureen.cli.target import AnySoup, Output, Owner, on_soup
from tureen.errors import TureenError

queries = typer.Typer(
    no_args_is_help=True, help="Standing queries: register, list, invoke, explain, share, follow, drop."
)

WAIT_SECONDS = 60.0
"""For how long a position is waited for unless told otherwise."""

Handle = Annotated[str, typer.Argument(metavar="QUERY", help="The query's name or handle.")]
Sql = Annotated[str | None, typer.Argument(help="The SELECT; - reads it from standard input.")]
Stop = Annotated[bool, typer.Option("--stop", help="Share it no longer.")]
SqlFile = Annotated[Path | None, typer.Option("--file", "-f", help="A file with the SELECT.")]

COLUMNS = ("id", "name", "sql", "state", "owner", "shared", "registered_at")


class Materialize(StrEnum):
    """Whether results are kept ready."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


MATERIALIZE: dict[Materialize, bool | str] = {
    Materialize.AUTO: "auto",
    Materialize.YES: True,
    Materialize.NO: False,
}


def moment(text: str) -> datetime:
    """A time as commands print it, or as people write it.

    >>> moment("2026-01-01 00:00:05.25Z") == moment("2026-01-01T01:00:05.250+01:00")
    True
    """
    try:
        return datetime.fromisoformat(text.strip().upper())
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a time such as 2026-01-01T12:00:00Z") from None


def sql_text(sql: str | None, file: Path | None) -> str:
    """The SQL that was given, or that a file or standard input holds."""
    if (sql is None) == (file is None):
        raise typer.BadParameter("give the SQL, or a file with it", param_hint="SQL")
    if file is not None:
        try:
            return file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise TureenError(f"'{file}' cannot be read", detail=str(error)) from None
    return sys.stdin.read() if sql == "-" else str(sql)


@queries.command("register")
@on_soup
def register(
    soup: AnySoup,
    sql: Sql = None,
    name: Annotated[str | None, typer.Option(help="A name for it.")] = None,
    file: SqlFile = None,
    materialize: Annotated[
        Materialize,
        typer.Option(help="Keep its results ready as rows arrive: yes, no, or as it costs less (auto)."),
    ] = Materialize.AUTO,
    output: Output = Format.TABLE,
) -> None:
    """Let a query stand; its handle is printed."""
    text = sql_text(sql, file)
    with pointing_into(text):
        query = soup.register(text, name=name, materialize=MATERIALIZE[materialize])
    if output is Format.TABLE:
        print(query.id)
    else:
        show_object({"id": query.id, "name": query.name, "sql": query.sql}, output)


@queries.command("list")
@on_soup
def list_queries(soup: AnySoup, owner: Owner = None, output: Output = Format.TABLE) -> None:
    """List the standing queries that were registered one by one: your own, and those that others share."""
    found = soup.describe_queries(owner=owner)
    show_rows([{name: one[name] for name in COLUMNS} for one in found], output, columns=COLUMNS)


@queries.command("invoke")
@on_soup
def invoke(
    soup: AnySoup,
    query: Handle,
    now: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="The moment that NOW is, in UTC unless it has a zone."),
    ] = None,
    wait_for: Annotated[str | None, typer.Option(help="Answer when this position is in.")] = None,
    timeout: Annotated[float | None, typer.Option(help="For how many seconds to wait for it.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Answer a query over its window as it is now."""
    standing = soup.query(query)
    if wait_for is not None:
        with Progress("waiting", None) as progress:
            wait_until_in(soup, wait_for, WAIT_SECONDS if timeout is None else timeout, progress)
    show_answer(standing.invoke(now=now), output)


@queries.command("explain")
@on_soup
def explain(soup: AnySoup, query: Handle, output: Output = Format.TABLE) -> None:
    """Tell how a query is answered."""
    show_object(soup.query(query).explain(), output)


@queries.command("share")
@on_soup
def share(soup: AnySoup, query: Handle, stop: Stop = False) -> None:
    """Let others invoke and follow a query by its handle, which is printed."""
    handle = soup.query(query).id
    soup.share(handle, not stop)
    print(handle)


@queries.command("drop")
@on_soup
def drop(
    soup: AnySoup, query: Annotated[list[str], typer.Argument(metavar="QUERY…", help="Names or handles.")]
) -> None:
    """Let queries stand no longer."""
    for one in query:
        soup.query(one).unregister()
        print(f"query {one} stands no longer", file=sys.stderr)


@queries.command("follow")
@on_soup
def follow(
    soup: AnySoup,
    query: Handle,
    since: Since = None,
    from_beginning: FromBeginning = False,
    timeout: Timeout = None,
    count: Count = None,
    output: Output = Format.TABLE,
) -> None:
    """Print every row that joins a query's answer, as it comes; Ctrl-C ends it."""
    start = beginning(since, from_beginning)
    follow_changes(soup.query(query).changes(since=start, timeout=timeout), output, count)
