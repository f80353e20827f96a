"""The bytes of a document; also in clients, which may not have a parser for it."""

from __future__ import annotations

import os
from pathlib import Path

from tureen.errors import InvalidRows


def read_document(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidRows(f"'{os.fspath(path)}' cannot be read", detail=str(error)) from None
