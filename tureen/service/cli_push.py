"""`tureen push`: the rows of a file into a stream, in chunks that may be sent again."""

from __future__ import annotations

import hashlib
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tureen.errors import TureenError, UnknownStream, nearest
from tureen.service.cli_kinds import STDIN, FileKind, kind_of
from tureen.service.cli_output import Format, show_object
from tureen.service.cli_progress import Progress
from tureen.service.cli_target import AnySoup, Output, on_soup

if TYPE_CHECKING:
    from tureen.schema import Schema

CHUNK_ROWS = 50_000
"""How many rows are pushed at a time, unless the caller says otherwise."""


@on_soup
def push(
    soup: AnySoup,
    stream: Annotated[str, typer.Argument(help="The stream.")],
    file: Annotated[str, typer.Argument(help="The file, or - for standard input.")],
    kind: Annotated[
        FileKind | None, typer.Option("--format", help="How the rows are written, where the file's name does not say.")
    ] = None,
    chunk: Annotated[int, typer.Option("--chunk", min=1, help="How many rows to push at a time.")] = CHUNK_ROWS,
    key: Annotated[
        str | None, typer.Option("--key", help="What the idempotency keys of the chunks begin with.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Add the rows also where this file was pushed before.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Come back when the rows are in answers.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Push the rows of a file.

    Each chunk is taken as a whole or not at all, under a key of its own: a push that was interrupted can be repeated,
    and what is there already is not added again. The key of a file comes from its path, size and time of change, and
    holds for at least 24 hours; standard input gets a new one each time.
    """
    # It brings Arrow, which help does without.
    from tureen.service.cli_files import read_chunks  # noqa: PLC0415

    found = kind_of(file, kind)
    # CSV has no types of its own, so that those of the stream are needed.
    schema = _schema(soup, stream) if found is FileKind.CSV else None
    prefix = key or (uuid.uuid4().hex if again or file == STDIN else file_key(file))
    size = Path(file).stat().st_size if Path(file).is_file() else None
    rows, position, began = 0, None, time.perf_counter()
    with Progress(f"pushing to {stream}", size) as progress:
        chunks = read_chunks(file, found, schema, chunk)
        for number, some in enumerate(chunks):
            position = soup.push(stream, some.rows, key=f"{prefix}/{chunk}/{number}")
            rows += len(some)
            progress.at(some.read, f"{rows:,} rows")
        if wait and position is not None:
            progress.note("waiting until they are in")
            soup.wait(position, timeout=300)
    _say(stream, rows, position, time.perf_counter() - began, output)


def file_key(file: str) -> str:
    """What tells one file from another, and from itself after a change."""
    try:
        path = Path(file).resolve()
        state = path.stat()
    except OSError as error:
        raise TureenError(f"'{file}' cannot be read", detail=error.strerror) from None
    return "file-" + hashlib.sha256(f"{path}\0{state.st_size}\0{state.st_mtime_ns}".encode()).hexdigest()[:32]


def _schema(soup: AnySoup, stream: str) -> Schema:
    from tureen.schema import Schema  # noqa: PLC0415

    listed = soup.streams()
    for one in listed:
        if one["name"].lower() == stream.lower():
            return Schema.parse(one["schema"], one["time"])
    raise UnknownStream(f"there is no stream '{stream}'", hint=nearest(stream, [one["name"] for one in listed]))


def _say(stream: str, rows: int, position: str | None, seconds: float, output: Format) -> None:
    if output is Format.TABLE:
        print(f"{rows:,} row{'' if rows == 1 else 's'} pushed to {stream} in {seconds:.1f} s", file=sys.stderr)
        if position is not None:
            print(position)
    else:
        show_object({"stream": stream, "rows": rows, "position": position}, output)
