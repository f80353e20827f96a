"""`tureen push`: the rows of a file into a stream, in chunks that may be sent again."""

from __future__ import annotations

import hashlib
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tureen.cli.file_formats import STDIN, FileKind, kind_of
from tureen.cli.output import Format, show_object
from tureen.cli.progress import Progress, wait_until_in
from tureen.cli.target import AnySoup, Output, on_soup
from tureen.errors import Forbidden, ServiceError, StorageFailed, TureenError, UnknownStream, Unreachable, nearest

if TYPE_CHECKING:
    from tureen.schema import Schema

CHUNK_ROWS = 50_000
"""How many rows are pushed at a time, unless the caller says otherwise."""

WAIT_SECONDS = 300.0
"""For how long `--wait` waits."""


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

    Each chunk is taken as a whole or not at all, under a key that is made of the file's path, the chunk's place and its
    content: a push that failed can be repeated, after mending the file where that is needed, and rows that were taken
    are not added again. Keys hold for at least 24 hours; standard input gets new ones each time.
    """
    # It brings Arrow, which help does without.
    from tureen.cli.row_files import read_chunks  # noqa: PLC0415

    found = kind_of(file, kind)
    schema = _schema(soup, stream) if found is FileKind.CSV else None
    prefix = key or (uuid.uuid4().hex if again or file == STDIN else file_key(file))
    size = Path(file).stat().st_size if Path(file).is_file() else None
    sent = _Sent(repeatable=key is not None or not (again or file == STDIN))
    began = time.perf_counter()
    with Progress(f"pushing to {stream}", size) as progress:
        with sent.told():
            for some in read_chunks(file, found, schema, chunk):
                sent.begin(some.count)
                # A key that was given stands for the rows at that place. Another file may come under the same path.
                own = f"{prefix}/{sent.rows}" if key else f"{prefix}/{sent.rows}/{some.digest}"
                at = soup.push(stream, some.rows, key=own)
                sent.end(at, at.added)
                progress.at(some.read, f"{sent.rows:,} rows")
        if wait and sent.position is not None:
            wait_until_in(soup, sent.position, WAIT_SECONDS, progress)
    _say(stream, file, sent, time.perf_counter() - began, output)


@dataclass
class _Sent:
    """How far a push is."""

    repeatable: bool
    rows: int = 0
    added: int = 0
    position: str | None = None
    pending: int = 0
    """How many rows are on their way."""

    def begin(self, rows: int) -> None:
        """So many rows are sent now."""
        self.pending = rows

    def end(self, position: str, added: int) -> None:
        """They were taken; so many of them are new."""
        self.rows, self.added, self.pending, self.position = self.rows + self.pending, self.added + added, 0, position

    @contextmanager
    def told(self) -> Iterator[None]:
        """What ends the push is told with what was taken and what was not."""
        try:
            yield
        except TureenError as error:
            doubtful = isinstance(error, Unreachable | StorageFailed) or type(error) is ServiceError
            told = self.account(sure=not (doubtful and self.pending))
            error.detail = "\n".join([error.detail, *told] if error.detail else told)
            raise
        except KeyboardInterrupt:
            print("\n".join(["", *self.account(sure=not self.pending)]), file=sys.stderr)
            raise

    def account(self, *, sure: bool) -> list[str]:
        """What was taken and what was not, in sentences.

        >>> _Sent(repeatable=True, rows=4, pending=2).account(sure=False)[0]
        'rows 1 to 4 of the file were taken; whether rows 5 to 6 were is not known'
        """
        taken = f"rows 1 to {self.rows:,} of the file were taken" if self.rows else "no row of the file was taken"
        if not sure:
            doubtful = f"rows {self.rows + 1:,} to {self.rows + self.pending:,}"
            return [f"{taken}; whether {doubtful} were is not known", *self._next()]
        return [f"{taken}, and none from row {self.rows + 1:,} on", *self._next()] if self.rows else [taken]

    def _next(self) -> list[str]:
        if self.repeatable:
            return [
                "repeat the command, with the file mended where it must be: rows that were taken are not added again"
            ]
        return ["a repeated command would add them once more; --key makes it repeatable"]


def file_key(file: str) -> str:
    """What tells one file from another."""
    try:
        path = Path(file).resolve(strict=True)
    except OSError as error:
        raise TureenError(f"'{file}' cannot be read", detail=error.strerror) from None
    return "file-" + hashlib.sha256(str(path).encode()).hexdigest()[:32]


def _schema(soup: AnySoup, stream: str) -> Schema | None:
    """The stream's columns, as CSV has no types of its own; None where the token may push and see nothing."""
    from tureen.schema import Schema  # noqa: PLC0415

    try:
        listed = soup.streams()
    except Forbidden:
        return None
    for one in listed:
        if one["name"].lower() == stream.lower():
            return Schema.parse(one["schema"], one["time"])
    raise UnknownStream(f"there is no stream named '{stream}'", hint=nearest(stream, [one["name"] for one in listed]))


def _say(stream: str, file: str, sent: _Sent, seconds: float, output: Format) -> None:
    if output is not Format.TABLE:
        told = {"stream": stream, "rows": sent.rows, "added": sent.added, "position": sent.position}
        show_object(told, output)
        return
    before = sent.rows - sent.added
    if before and not sent.added:
        said = (
            f"nothing was added: {_rows(sent.rows)} of {file} were pushed to {stream} before; --again adds them again"
        )
    else:
        said = f"{_rows(sent.added)} pushed to {stream} in {seconds:.1f} s"
        said += f"; {_rows(before)} had been pushed before" if before else ""
    print(said, file=sys.stderr)
    if sent.position is not None:
        print(sent.position)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
