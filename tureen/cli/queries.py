"""`tureen query …`: register, invoke and follow standing queries."""

from __future__ import annotations

import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tureen.cli.error_output import pointing_into
from tureen.cli.following import add_follow_command
from tureen.cli.output import Format, show_answer, show_explanation, show_object, show_rows
from tureen.cli.progress import Progress, wait_for_position
from tureen.cli.target import AnySoup, Language, Output, Owner, QueryLanguage, on_soup
from tureen.errors import TureenError
from tureen.why.explanation import DEFAULT_LIMIT, MAX_LIMIT

queries = typer.Typer(
    no_args_is_help=True, help="Standing queries: register, list, invoke, explain, why, share, follow, drop."
)

WAIT_SECONDS = 60.0
"""The default of `--timeout`."""

HANDLE = typer.Argument(metavar="QUERY", help="The query's name or handle.")
Handle = Annotated[str, HANDLE]
Sql = Annotated[str | None, typer.Argument(help="The SELECT, or - to read it from standard input.")]
Stop = Annotated[bool, typer.Option("--stop", help="Stop sharing.")]
SqlFile = Annotated[Path | None, typer.Option("--file", "-f", help="A file with the SELECT.")]

COLUMNS = ("id", "name", "sql", "language", "state", "owner", "shared", "registered_at")


class Materialize(StrEnum):
    """The values of `--materialize`."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


class JoinPlan(StrEnum):
    """The values of `--plan`."""

    EDDY = "eddy"
    LEFT_DEEP = "left-deep"
    BUSHY = "bushy"


MATERIALIZE: dict[Materialize, bool | str] = {
    Materialize.AUTO: "auto",
    Materialize.YES: True,
    Materialize.NO: False,
}


def parse_time(text: str) -> datetime:
    """Parse a time, such as those that commands print.

    >>> parse_time("2026-01-01 00:00:05.25Z") == parse_time("2026-01-01T01:00:05.250+01:00")
    True
    """
    try:
        return datetime.fromisoformat(text.strip().upper())
    except ValueError:
        raise typer.BadParameter(f"expected a time such as 2026-01-01T12:00:00Z, got '{text}'") from None


Now = Annotated[
    datetime | None,
    typer.Option(parser=parse_time, metavar="TIME", help="The value of NOW, in UTC unless it has a zone."),
]


def sql_text(sql: str | None, file: Path | None) -> str:
    """The SQL of the argument, of a file, or of standard input."""
    if (sql is None) == (file is None):
        raise typer.BadParameter("pass either the SQL or --file", param_hint="SQL")
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
    name: Annotated[str | None, typer.Option(help="The name of the query.")] = None,
    file: SqlFile = None,
    language: Language = QueryLanguage.SQL,
    materialize: Annotated[
        Materialize,
        typer.Option(help="Compute results as rows arrive: yes, no, or whichever costs less (auto)."),
    ] = Materialize.AUTO,
    plan: Annotated[
        JoinPlan | None,
        typer.Option(help="How a followed or kept join is computed; by default whichever costs less."),
    ] = None,
    jit: Annotated[
        bool | None,
        typer.Option(help="Whether a followed join suspends tuples that have no partners; by default where it helps."),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Register a query and print its handle."""
    text = sql_text(sql, file)
    with pointing_into(text):
        query = soup.register(
            text,
            name=name,
            materialize=MATERIALIZE[materialize],
            plan=None if plan is None else plan.value,
            jit=jit,
            language=language.value,
        )
    if output is Format.TABLE:
        print(query.id)
    else:
        show_object({"id": query.id, "name": query.name, "sql": query.sql}, output)


@queries.command("list")
@on_soup
def list_queries(soup: AnySoup, owner: Owner = None, output: Output = Format.TABLE) -> None:
    """List your own standing queries and those that others share, without the queries of templates."""
    entries = soup.describe_queries(owner=owner)
    show_rows([{name: entry[name] for name in COLUMNS} for entry in entries], output, columns=COLUMNS)


@queries.command("invoke")
@on_soup
def invoke(
    soup: AnySoup,
    query: Handle,
    now: Now = None,
    wait_for: Annotated[str | None, typer.Option(help="Wait until answers reflect this position.")] = None,
    timeout: Annotated[float | None, typer.Option(help="The longest wait, in seconds.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Print the answer of a query over its current window."""
    standing = soup.query(query)
    if wait_for is not None:
        with Progress("waiting", None) as progress:
            wait_for_position(soup, wait_for, WAIT_SECONDS if timeout is None else timeout, progress)
    show_answer(standing.invoke(now=now), output)


@queries.command("explain")
@on_soup
def explain(soup: AnySoup, query: Handle, output: Output = Format.TABLE) -> None:
    """Show how a query is answered."""
    show_object(soup.query(query).explain(), output)


@queries.command("why")
@on_soup
def why(
    soup: AnySoup,
    query: Handle,
    condition: Annotated[str, typer.Argument(help="A condition over one input, such as \"t.sym = 'IBM'\".")],
    now: Now = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="The most tuples to explain.")] = DEFAULT_LIMIT,
    output: Output = Format.TABLE,
) -> None:
    """Show whether the tuples that satisfy a condition are in a query's answer, and what kept them out."""
    standing = soup.query(query)
    with pointing_into(condition):
        explanation = standing.why(condition, now=now, limit=limit)
    show_explanation(explanation, output)


@queries.command("share")
@on_soup
def share(soup: AnySoup, query: Handle, stop: Stop = False) -> None:
    """Allow other principals to invoke and follow a query by its handle, and print the handle."""
    handle = soup.query(query).id
    soup.share(handle, not stop)
    print(handle)


@queries.command("drop")
@on_soup
def drop(
    soup: AnySoup, query: Annotated[list[str], typer.Argument(metavar="QUERY…", help="Names or handles.")]
) -> None:
    """Unregister queries."""
    for name in query:
        soup.query(name).unregister()
        print(f"query {name} unregistered", file=sys.stderr)


add_follow_command(
    queries,
    HANDLE,
    lambda soup, handle_or_name: soup.query(handle_or_name),
    "Print each row that joins a query's answer as it arrives, until Ctrl-C.",
)
