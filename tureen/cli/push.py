"""`tureen push`: the rows of a file into a stream, in chunks that can be retried."""

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
from tureen.cli.progress import Progress, wait_for_position
from tureen.cli.target import AnySoup, Output, on_soup
from tureen.errors import Forbidden, ServiceError, StorageFailed, TureenError, UnknownStream, Unreachable, nearest

if TYPE_CHECKING:
    from tureen.schema import Schema

CHUNK_ROWS = 50_000
"""The default number of rows per push."""

WAIT_SECONDS = 300.0
"""The longest wait of `--wait`."""


@on_soup
def push(
    soup: AnySoup,
    stream: Annotated[str, typer.Argument(help="The stream.")],
    file: Annotated[str, typer.Argument(help="The file, or - for standard input.")],
    kind: Annotated[
        FileKind | None, typer.Option("--format", help="The format, if the file's suffix does not tell it.")
    ] = None,
    chunk: Annotated[int, typer.Option("--chunk", min=1, help="The number of rows per push.")] = CHUNK_ROWS,
    key: Annotated[str | None, typer.Option("--key", help="The prefix of the chunks' idempotency keys.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Add the rows even if this file was pushed before.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until answers reflect the rows.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Push the rows of a file.

    Each chunk is added as a whole or not at all, under a key derived from the file's path, the chunk's offset and its
    content: after a failure, fix the file if necessary and repeat the command, and rows that were added before are not
    added again. Keys are kept for at least 24 hours; standard input gets new keys each time.
    """
    # It imports Arrow, which help does not need.
    from tureen.cli.row_files import read_chunks  # noqa: PLC0415

    kind = kind_of(file, kind)
    schema, item = _schema(soup, stream, kind) if kind in (FileKind.CSV, FileKind.XML) else (None, None)
    prefix = key or (uuid.uuid4().hex if again or file == STDIN else file_key(file))
    size = Path(file).stat().st_size if Path(file).is_file() else None
    sent = _Sent(repeatable=key is not None or not (again or file == STDIN))
    began = time.perf_counter()
    with Progress(f"pushing to {stream}", size) as progress:
        with sent.in_errors():
            for part in read_chunks(file, kind, schema, chunk, item):
                sent.begin(part.count)
                # The user's key names the rows at that offset. A path does not: its file may have changed.
                chunk_key = f"{prefix}/{sent.offset}" if key else f"{prefix}/{sent.offset}/{part.digest}"
                position = soup.push(stream, part.rows, key=chunk_key)
                sent.end(position, position.added, position.rejected, part.punctuations)
                progress.at(part.read, f"{sent.rows:,} rows")
        if wait and sent.position is not None:
            wait_for_position(soup, sent.position, WAIT_SECONDS, progress)
    _print_result(stream, file, sent, time.perf_counter() - began, output)


@dataclass
class _Sent:
    """The progress of a push."""

    repeatable: bool
    rows: int = 0
    added: int = 0
    rejected: int = 0
    punctuations: int = 0
    position: str | None = None
    pending: int = 0
    """The number of rows in the chunk that is being sent."""

    def begin(self, rows: int) -> None:
        """Start sending a chunk."""
        self.pending = rows

    @property
    def offset(self) -> int:
        """The number of rows and punctuations before the next chunk."""
        return self.rows + self.punctuations

    def end(self, position: str, added: int, rejected: int = 0, punctuations: int = 0) -> None:
        """Count the chunk as accepted; `added` of its rows are new, and `rejected` were closed by punctuations."""
        self.rows, self.added, self.pending, self.position = self.rows + self.pending, self.added + added, 0, position
        self.rejected, self.punctuations = self.rejected + rejected, self.punctuations + punctuations

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Add to errors raised inside the block which rows were added and which were not."""
        try:
            yield
        except TureenError as error:
            unknown = isinstance(error, Unreachable | StorageFailed) or type(error) is ServiceError
            lines = self.summary(known=not (unknown and self.pending))
            error.detail = "\n".join([error.detail, *lines] if error.detail else lines)
            raise
        except KeyboardInterrupt:
            print("\n".join(["", *self.summary(known=not self.pending)]), file=sys.stderr)
            raise

    def summary(self, *, known: bool) -> list[str]:
        """Which rows were added, and what to do next; `known` says whether the outcome of the last chunk is known.

        >>> _Sent(repeatable=True, rows=4, pending=2).summary(known=False)[0]
        'rows 1 to 4 of the file were added; the outcome of rows 5 to 6 is unknown'
        """
        added = f"rows 1 to {self.rows:,} of the file were added" if self.rows else "no rows of the file were added"
        if not known:
            pending = f"rows {self.rows + 1:,} to {self.rows + self.pending:,}"
            return [f"{added}; the outcome of {pending} is unknown", self._next_step()]
        return [f"{added}, and none from row {self.rows + 1:,} on", self._next_step()] if self.rows else [added]

    def _next_step(self) -> str:
        if self.repeatable:
            return "fix the file if necessary and repeat the command: rows that were added are not added again"
        return "repeating the command would add the rows again; use --key to make it repeatable"


def file_key(file: str) -> str:
    """The key prefix of a file."""
    try:
        path = Path(file).resolve(strict=True)
    except OSError as error:
        raise TureenError(f"'{file}' cannot be read", detail=error.strerror) from None
    return "file-" + hashlib.sha256(str(path).encode()).hexdigest()[:32]


def _schema(soup: AnySoup, stream: str, kind: FileKind) -> tuple[Schema | None, str | None]:
    """The stream's schema and item path, as CSV and XML have no types; None if the token may push but not read."""
    from tureen.schema import Schema  # noqa: PLC0415

    try:
        entries = soup.streams()
    except Forbidden:
        if kind is FileKind.XML:
            raise
        return None, None
    for entry in entries:
        if entry["name"].lower() == stream.lower():
            return Schema.parse(entry["schema"], entry["time"]), entry["item"]
    names = [entry["name"] for entry in entries]
    raise UnknownStream(f"there is no stream named '{stream}'", hint=nearest(stream, names))


def _print_result(stream: str, file: str, sent: _Sent, seconds: float, output: Format) -> None:
    if output is not Format.TABLE:
        counts = {"rows": sent.rows, "added": sent.added, "rejected": sent.rejected}
        show_object({"stream": stream, **counts, "position": sent.position}, output)
        return
    skipped = sent.rows - sent.added - sent.rejected
    if skipped and not sent.added and not sent.rejected:
        message = f"no rows added: {_rows(skipped)} of {file} were pushed to {stream} before; use --again to add them"
    else:
        message = f"{_rows(sent.added)} pushed to {stream} in {seconds:.1f} s"
        message += f"; {_rows(skipped)} were pushed before" if skipped else ""
        message += f"; {_rows(sent.rejected)} rejected: see tureen stream rejected {stream}" if sent.rejected else ""
    print(message, file=sys.stderr)
    if sent.position is not None:
        print(sent.position)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
