"""Verifying, repairing and copying a pot as a whole; needs neither Spark nor, but for repairs, the lease."""

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
"""Is told how many of how many files are done."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found, and what it did about it."""

    files: int
    bytes: int
    damaged: tuple[Damage, ...]
    """What is damaged; of these, those that are `lost` hold rows or values that nothing else has."""
    repaired: int = 0
    """How many files were written anew."""
    given_up: int = 0
    """How many rows were lost with blocks that could not be read; `rejected` tells of which time."""


def verify(
    path: str | os.PathLike[str], *, repair: bool = False, progress: Progress = lambda _done, _total: None
) -> Verification:
    """Check every checksum of a pot, which may be in use.

    With `repair`, what follows from tuples or queries is written anew, and blocks of tuples that are damaged are given
    up, so that the rest of their runs can be used; no other process may have the pot open for writing then.
    """
    root = _pot(path)
    if not repair:
        catalog = Catalog(root)
        try:
            found = verify_pot(catalog, progress)
            # What was noted is written, and the catalog is to be verified again next time.
            catalog.write_digest()
            return Verification(found.files, found.bytes, found.damaged)
        finally:
            catalog.close()
    try:
        lease = Lease(root)
    except PotLocked as error:
        error.hint = "close it first; while it is open, it repairs by itself what 'verify' finds and can be repaired"
        raise
    try:
        accept_catalog(root)
        catalog = Catalog(root)
        try:
            found = verify_pot(catalog, progress)
            done = repair_pot(catalog)
            catalog.write_digest()
        finally:
            catalog.close()
    finally:
        lease.release()
    return Verification(found.files, found.bytes, found.damaged, done.files, done.tuples)


def backup(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    progress: Progress = lambda _done, _total: None,
) -> int:
    """Copy a pot, which may be in use, into a new directory; return the number of bytes.

    The copy holds everything that was acknowledged before the call, and is a pot like any other.
    """
    catalog = Catalog(_pot(path))
    try:
        return backup_pot(catalog, check_path(target), progress)
    finally:
        catalog.close()


def _pot(path: str | os.PathLike[str]) -> Path:
    root = check_path(path)
    if not exists(root):
        raise no_pot(root)
    return root
