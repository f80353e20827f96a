"""The formats of files that the command line takes, apart from what reads them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

STDIN = "-"


class FileKind(StrEnum):
    """How the rows of a file are written."""

    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    PARQUET = "parquet"
    ARROW = "arrow"


_SUFFIXES = {
    ".csv": FileKind.CSV,
    ".json": FileKind.JSON,
    ".ndjson": FileKind.NDJSON,
    ".jsonl": FileKind.NDJSON,
    ".parquet": FileKind.PARQUET,
    ".arrow": FileKind.ARROW,
    ".arrows": FileKind.ARROW,
    ".feather": FileKind.ARROW,
}


def kind_of(file: str, said: FileKind | None = None) -> FileKind:
    """The format that was said, or that the file's name says.

    >>> kind_of("trades.jsonl")
    <FileKind.NDJSON: 'ndjson'>
    """
    found = said or _SUFFIXES.get(Path(file).suffix.lower())
    if found is None:
        where = "standard input" if file == STDIN else f"'{file}'"
        raise typer.BadParameter(f"{where} does not say its format", param_hint=f"--format {'|'.join(FileKind)}")
    return found
