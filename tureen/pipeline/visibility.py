"""Checks that Spark's driver and workers see the same pot directory."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from tureen.errors import DamagedFile, PotError
from tureen.pot.catalog import exists
from tureen.pot.parts import Parts
from tureen.pot.runs import NewCells, NewRun

_HINT = "put the pot on a file system that all of Spark's workers share, or use a local master"


def check_pot_visible(root: Path) -> None:
    """Raise if the machine of this task does not see the pot."""
    if not exists(root):
        raise PotError(f"Spark's worker on '{socket.gethostname()}' does not see the pot '{root}'", hint=_HINT)


def check_files_visible(root: Path, files: Iterable[NewRun | NewCells]) -> None:
    """Raise if a file that is about to be committed is missing or differs from what was written."""
    for file in files:
        try:
            parts = Parts(root / file.path)
        except FileNotFoundError:
            raise PotError(f"file '{file.path}' was written by a worker, but is not in the pot", hint=_HINT) from None
        if parts.checksum != file.checksum:
            raise DamagedFile.of(root / file.path, "its checksum is not that of the file that was written")
