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
from tureen.position import BEGINNING, Position

if TYPE_CHECKING:
    from tureen.results.answer import Change
    from tureen.soup.standing import QueryTemplate, StandingQuery

Since = Annotated[str | None, typer.Option(help="Start after this position of an answer or a change.")]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="Start with the oldest row that the stream retains.")
]
Timeout = Annotated[float | None, typer.Option(help="Exit after this number of seconds without a change.")]
OnlyTurns = Annotated[bool, typer.Option("--only-turns", help="Of groups, print only those that come and go.")]
Hold = Annotated[
    str | None,
    typer.Option(help='With --only-turns: print a group once it came or went this long ago, as in "30 seconds".'),
]
Punctuations = Annotated[
    bool, typer.Option("--punctuations", help="Print the punctuations of the answer too; not with -o csv.")
]
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
        only_turns: OnlyTurns = False,
        hold: Hold = None,
        punctuations: Punctuations = False,
        output: Output = Format.TABLE,
    ) -> None:
        if punctuations and output is Format.CSV:
            raise typer.BadParameter("a punctuation is not a row of a CSV file", param_hint="--punctuations")
        start, on = start_position(since, from_beginning), "turn" if only_turns else None
        changes = find(soup, handle_or_name).changes(
            since=start, timeout=timeout, on=on, hold=hold, punctuations=punctuations
        )
        follow_changes(changes, output, count)


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

    # Only rows of groups also change and leave. The positions of their changes have a NOW.
    kinds = [] if Position.parse(change.position).now is None else [change.kind]
    match output:
        case Format.JSON if change.punctuation is not None:
            promise = {"punctuation": change.punctuation.as_json(), "position": change.position}
            line = json_text({"query": change.query, "kind": change.kind, **promise})
        case _ if change.punctuation is not None:
            line = f"punctuation  {json_text(change.punctuation.as_json())}"
        case Format.JSON:
            label = {} if change.label is None else {"label": change.label}
            before = {} if change.before is None else {"before": change.before}
            fields = {"query": change.query, **label, "kind": change.kind, "row": change.row, **before}
            line = json_text({**fields, "position": change.position})
        case Format.CSV:
            if first:
                print(csv_fields(["query", *(["kind"] if kinds else []), *change.row]))
            line = csv_fields([change.query, *kinds, *change.row.values()])
        case Format.TABLE:
            # A query of a template is named by its label, or by the number of its row of parameters.
            member = parse_member(change.query)
            values = [f"{name}={'NULL' if value is None else text_of(value)}" for name, value in change.row.items()]
            if member is not None:
                values.insert(0, f"#{member.number}" if change.label is None else str(change.label))
            line = "  ".join([*kinds, *values])
    print(line, flush=True)
