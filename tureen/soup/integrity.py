"""Verify, repair and back up a pot. Needs no Spark, and the lease for repairs only."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tureen.arguments import check_path
from tureen.errors import PotLocked
from tureen.pipeline.verifying import repair_pot, verify_pot
from tureen.pot.backup import backup_pot
from tureen.pot.catalog import Catalog, accept_catalog, exists, no_pot
from tureen.pot.damage import Damage
from tureen.pot.lease import Lease

Progress = Callable[[int, int], None]
"""Called with the number of files done and the total number of files."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`."""

    files: int
    bytes: int
    damaged: tuple[Damage, ...]
    """The damage; where it is `lost`, the file contained rows or values that are stored nowhere else."""
    repaired: int = 0
    """The number of files that were rewritten."""
    given_up: int = 0
    """The number of rows in blocks that were given up; `rejected` lists the times of these blocks."""


def verify(
    path: str | os.PathLike[str], *, repair: bool = False, progress: Progress = lambda _done, _total: None
) -> Verification:
    """Check every checksum of a pot, which may be in use.

    With `repair`, data that is derived from tuples or queries is rewritten, and damaged blocks of tuples are given up,
    so that the rest of their runs can be used. Then no other process may have the pot open for writing.
    """
    root = _pot(path)
    if not repair:
        with Catalog(root) as catalog:
            result = verify_pot(catalog, progress)
            # Recording damage changes the catalog, so its signature must be renewed.
            catalog.write_digest()
            return Verification(result.files, result.bytes, result.damaged)
    try:
        lease = Lease(root)
    except PotLocked as error:
        error.hint = "close it first; the process that has it open repairs by itself what 'verify' reports"
        raise
    try:
        accept_catalog(root)
        with Catalog(root) as catalog:
            result = verify_pot(catalog, progress)
            repaired = repair_pot(catalog)
            catalog.write_digest()
    finally:
        lease.release()
    return Verification(result.files, result.bytes, result.damaged, repaired.files, repaired.tuples)


def backup(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    progress: Progress = lambda _done, _total: None,
) -> int:
    """Copy a pot, which may be in use, into a new directory; return the number of bytes.

    The copy contains everything that was acknowledged before the call, and can be opened like any pot.
    """
    with Catalog(_pot(path)) as catalog:
        return backup_pot(catalog, check_path(target), progress)


def _pot(path: str | os.PathLike[str]) -> Path:
    root = check_path(path)
    if not exists(root):
        raise no_pot(root)
    return root
