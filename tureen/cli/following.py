"""Changes as they come, one line each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from tureen.cli.output import Format, csv_fields, text_of
from tureen.position import BEGINNING

if TYPE_CHECKING:
    from tureen.results.answer import Change

Since = Annotated[str | None, typer.Option(help="Begin after this position, which an answer or a change gave.")]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="Begin with the oldest row that the stream retains.")
]
Timeout = Annotated[float | None, typer.Option(help="End when nothing came for so many seconds.")]
Count = Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after so many changes.")]


def beginning(since: str | None, from_beginning: bool) -> str | None:
    """The position to begin after."""
    if from_beginning and since is not None:
        raise typer.BadParameter("give one of the two", param_hint="--since, --from-beginning")
    return BEGINNING if from_beginning else since


def follow_changes(changes: Iterator[Change], output: Format, count: int | None) -> None:
    """Write changes as they come; the position after the last one goes to stderr, to go on from."""
    last = None
    try:
        for number, change in enumerate(islice(changes, count)):
            last = change
            _write(change, output, first=number == 0)
    except KeyboardInterrupt:
        # The usual way to end it.
        print(file=sys.stderr)
    finally:
        if last is not None and output is not Format.JSON:
            print(f"go on with --since {last.position}", file=sys.stderr)


def _write(change: Change, output: Format, *, first: bool) -> None:
    # It knows Arrow, which `tureen --help` does without.
    from tureen.client.json_values import json_text  # noqa: PLC0415

    match output:
        case Format.JSON:
            label = {} if change.label is None else {"label": change.label}
            whole = {"query": change.query, **label, "row": change.row, "position": change.position}
            told = json.loads(json_text(whole))
            line = json.dumps(told, ensure_ascii=False)
        case Format.CSV:
            if first:
                print(csv_fields(["query", *change.row]))
            line = csv_fields([change.query, *change.row.values()])
        case Format.TABLE:
            # Of a template's queries, which one it is: the number of its row of parameters, or its label.
            _, dot, number = change.query.partition(".")
            called = f"#{number}" if change.label is None else str(change.label)
            line = (f"{called}  " if dot else "") + "  ".join(
                f"{name}={'NULL' if value is None else text_of(value)}" for name, value in change.row.items()
            )
    print(line, flush=True)
