"""Files of the pot: written once, and durable before the catalog names them.

A file's name starts with its *attempt*, which is unique to one try of one commit. Nothing is rewritten in place, and a
failed fsync fails the attempt.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tureen.errors import StorageFailed

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
"""The modes of the pot's files and directories: access for the owner only, whatever the umask allows."""


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `os.open` does; a created file is accessible to its owner only."""
    return os.open(path, flags, PRIVATE_FILE)


def make_private_directory(directory: Path) -> list[Path]:
    """Create a directory and its missing parents, accessible to the owner only; return those that were missing."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    return missing


def new_attempt() -> str:
    """A unique name for one try of one commit."""
    return uuid.uuid4().hex


def attempt_of(path: Path) -> str:
    """The attempt that wrote a file."""
    return path.name.partition("-")[0]


@contextmanager
def durable_file(path: Path) -> Iterator[BinaryIO]:
    """A new file that is durable, with its directory entry, if the block ends without an error."""
    try:
        _make_durable_directory(path.parent)
        with open(path, "xb", opener=open_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        sync_directory(path.parent)
    except FileExistsError as error:
        raise storage_failed(path, error) from error
    except BaseException as error:
        # An incomplete file is useless, and takes space on a full disk.
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_failed(path, error) from error
        raise


def _make_durable_directory(directory: Path) -> None:
    """Create a directory with a durable entry of its own: without it, the files in it would be lost."""
    for created in make_private_directory(directory):
        sync_directory(created.parent)


def sync_directory(directory: Path) -> None:
    """Make the entries of a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_failed(path: Path, error: OSError) -> StorageFailed:
    """The error for a write that failed."""
    return StorageFailed(
        f"could not write '{path.name}'",
        detail=error.strerror or str(error),
        hint="free some space on the disk of the pot and try again",
    )
