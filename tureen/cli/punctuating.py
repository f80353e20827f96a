"""`tureen punctuate`: promise that no later row of a stream satisfies a condition."""

from __future__ import annotations

from typing import Annotated

import typer

from tureen.cli.output import Format, show_object
from tureen.cli.target import AnySoup, Output, on_soup
from tureen.errors import Location, TureenError


@on_soup
def punctuate(
    soup: AnySoup,
    stream: Annotated[str, typer.Argument(help="The stream.")],
    condition: Annotated[
        str, typer.Argument(help='For example "item = 180", "item IN (1, 2)" or "ts <= TIMESTAMP \'2026-01-31\'".')
    ],
    output: Output = Format.TABLE,
) -> None:
    """Promise that no later row of a stream satisfies a condition; later rows that do are rejected."""
    beginning = f"PUNCTUATE `{stream.replace('`', '``')}` WHERE "
    try:
        result = soup.sql(beginning + condition)
    except TureenError as error:
        if error.location is not None and error.location.line == 1:
            column = error.location.column - len(beginning)
            error.location = Location(1, column) if column > 0 else None
        raise
    assert isinstance(result, dict)
    if output is Format.TABLE:
        print(result["position"])
    else:
        show_object({"stream": stream, **result}, output)
