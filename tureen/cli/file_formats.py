"""The file formats of the command line; `row_files` reads them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

STDIN = "-"


class FileKind(StrEnum):
    """The format of a file of rows."""

    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    PARQUET = "parquet"
    ARROW = "arrow"
    XML = "xml"


_SUFFIXES = {
    ".csv": FileKind.CSV,
    ".json": FileKind.JSON,
    ".ndjson": FileKind.NDJSON,
    ".jsonl": FileKind.NDJSON,
    ".parquet": FileKind.PARQUET,
    ".arrow": FileKind.ARROW,
    ".arrows": FileKind.ARROW,
    ".feather": FileKind.ARROW,
    ".xml": FileKind.XML,
}


def kind_of(file: str, kind: FileKind | None = None) -> FileKind:
    """The given format, or the format of the file's suffix.

    >>> kind_of("trades.jsonl")
    <FileKind.NDJSON: 'ndjson'>
    """
    result = kind or _SUFFIXES.get(Path(file).suffix.lower())
    if result is None:
        source = "standard input" if file == STDIN else f"'{file}'"
        raise typer.BadParameter(f"unknown format of {source}", param_hint=f"--format {'|'.join(FileKind)}")
    return result
