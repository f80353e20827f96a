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
        with open(path, "xb") as file:
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
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for one in missing:
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
