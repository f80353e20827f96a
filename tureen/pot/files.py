"""Files of the pot: written once, durable before they are named in the catalog.

A file's name starts with its *attempt*, which is unique to one try of one commit. Nothing is
rewritten in place, and a failed fsync is fatal to the attempt.
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
"""The modes of what is in a pot: for its owner alone, whatever the umask allows."""


def private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `os.open` does; one that is made is its owner's alone."""
    return os.open(path, flags, PRIVATE_FILE)


def make_private(directory: Path) -> list[Path]:
    """Make a directory and those above it that are missing, its owner's alone; return what was made."""
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    return missing


def new_attempt() -> str:
    """A name that no other try of any commit has."""
    return uuid.uuid4().hex


def attempt_of(path: Path) -> str:
    """The attempt that wrote a file."""
    return path.name.partition("-")[0]


@contextmanager
def durable_file(path: Path) -> Iterator[BinaryIO]:
    """A new file that is on the disk, with its name, where the block ends without an error."""
    try:
        _make_directory(path.parent)
        with open(path, "xb", opener=private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        sync_directory(path.parent)
    except FileExistsError as error:
        raise storage_failed(path, error) from error
    except BaseException as error:
        # Half a file helps nobody, least of all on a full disk.
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_failed(path, error) from error
        raise


def _make_directory(directory: Path) -> None:
    """Make a directory whose own name is on the disk too, as a file in it would be lost without it."""
    for one in make_private(directory):
        sync_directory(one.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_failed(path: Path, error: OSError) -> StorageFailed:
    """The error for a write that did not become durable."""
    return StorageFailed(
        f"could not write '{path.name}'",
        detail=error.strerror or str(error),
        hint="free some space on the disk of the pot and try again",
    )
