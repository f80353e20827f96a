"""The command `follow`: changes printed as they arrive, one line each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tureen.cli.output import Format, csv_fields, text_of
from tureen.cli.target import AnySoup, Output, on_soup
from tureen.handle import parse_member
from tureen.position import BEGINNING

if TYPE_CHECKING:
    from tureen.results.answer import Change
    from tureen.soup.standing import QueryTemplate, StandingQuery

Since = Annotated[str | None, typer.Option(help="Start after this position of an answer or a change.")]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="Start with the oldest row that the stream retains.")
]
Timeout = Annotated[float | None, typer.Option(help="Exit after this number of seconds without a change.")]
Count = Annotated[int | None, typer.Option("--count", "-n", min=1, help="Exit after this number of changes.")]


def add_follow_command(
    group: typer.Typer, argument: Any, find: Callable[[AnySoup, str], StandingQuery | QueryTemplate], description: str
) -> None:
    """Add the command to a group; `find` looks up what is followed, by the handle or name in the argument."""

    @group.command("follow", help=description)
    @on_soup
    def follow(
        soup: AnySoup,
        handle_or_name: str = argument,
        since: Since = None,
        from_beginning: FromBeginning = False,
        timeout: Timeout = None,
        count: Count = None,
        output: Output = Format.TABLE,
    ) -> None:
        start = start_position(since, from_beginning)
        follow_changes(find(soup, handle_or_name).changes(since=start, timeout=timeout), output, count)


def start_position(since: str | None, from_beginning: bool) -> str | None:
    """The position after which to start."""
    if from_beginning and since is not None:
        raise typer.BadParameter("the options exclude each other", param_hint="--since, --from-beginning")
    return BEGINNING if from_beginning else since


def follow_changes(changes: Iterator[Change], output: Format, count: int | None) -> None:
    """Print changes as they arrive, and on stderr the position from which to continue."""
    last = None
    try:
        for number, change in enumerate(islice(changes, count)):
            last = change
            _print_change(change, output, first=number == 0)
    except KeyboardInterrupt:
        # The usual way to stop.
        print(file=sys.stderr)
    finally:
        if last is not None and output is not Format.JSON:
            print(f"continue with --since {last.position}", file=sys.stderr)


def _print_change(change: Change, output: Format, *, first: bool) -> None:
    # It imports Arrow, which `tureen --help` does not need.
    from tureen.client.json_values import json_text  # noqa: PLC0415

    match output:
        case Format.JSON:
            label = {} if change.label is None else {"label": change.label}
            line = json_text({"query": change.query, **label, "row": change.row, "position": change.position})
        case Format.CSV:
            if first:
                print(csv_fields(["query", *change.row]))
            line = csv_fields([change.query, *change.row.values()])
        case Format.TABLE:
            # A query of a template is named by its label, or by the number of its row of parameters.
            member = parse_member(change.query)
            values = [f"{name}={'NULL' if value is None else text_of(value)}" for name, value in change.row.items()]
            if member is not None:
                values.insert(0, f"#{member.number}" if change.label is None else str(change.label))
            line = "  ".join(values)
    print(line, flush=True)
