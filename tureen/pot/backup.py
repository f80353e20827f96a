"""Backup: a consistent copy of a pot that may be in use.

What is copied first may be older than what is copied last, never younger: the logs of the inbox and Spark's
checkpoints, then the catalog, then the files that this copy of the catalog names. So a row that was taken out of a log
in between is in a run of the copy, and a batch that Spark repeats is known to the copy's catalog. A file that is
replaced before it was copied is gone some time later; then the catalog is copied again, and the few files that are new.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from tureen.errors import PotError
from tureen.pot.catalog import CATALOG_FILE, Catalog
from tureen.pot.connecting import connect
from tureen.pot.damage import named_files
from tureen.pot.digest import Digest
from tureen.pot.files import storage_failed, sync_directory
from tureen.pot.sweep import FOLDERS

Progress = Callable[[int, int], None]
"""Is told how many of how many files were copied."""

_TRIES = 20


def backup_pot(catalog: Catalog, target: Path, progress: Progress) -> int:
    """Copy a pot into a directory that is empty or not there; return how many bytes the copy has."""
    if target.exists() and any(target.iterdir()):
        raise PotError(f"the directory '{target}' is not empty", hint="give a directory that does not exist yet")
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        _copy_tree(catalog.root, target, _logs_and_checkpoints(catalog.root))
        for _ in range(_TRIES):
            _copy_catalog(catalog.root, target)
            if _copy_named(catalog, target, progress):
                break
        else:
            raise PotError("files were replaced faster than they could be copied", hint="try again, or close the pot")
        Digest(target / CATALOG_FILE).write()
        return _finish(target)
    except BaseException as error:
        # A part of a copy helps nobody, and would be in the way of the next try.
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            raise storage_failed(target, error) from error
        if isinstance(error, sqlite3.Error):
            raise PotError(f"the catalog of '{catalog.root}' cannot be copied", detail=str(error)) from error
        raise


def _logs_and_checkpoints(root: Path) -> Iterable[Path]:
    """The logs of the inbox, and the checkpoints of outside sources: those of the inbox are made anew."""
    yield from sorted((root / "inbox").glob("*/*.log"))
    for directory in sorted((root / "checkpoints").glob("[0-9]*")):
        # Spark writes a batch's offsets before its commit: what is copied later is not older.
        yield from sorted(path for path in directory.rglob("*") if path.is_file())


def _copy_tree(root: Path, target: Path, paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            _copy(path, target / path.relative_to(root))
        except FileNotFoundError:
            # A log that was taken whole: its rows are in runs, which come with the catalog.
            continue


def _copy_catalog(root: Path, target: Path) -> None:
    copy = target / CATALOG_FILE
    copy.unlink(missing_ok=True)
    with closing(connect(root / CATALOG_FILE)) as source, closing(sqlite3.connect(copy)) as destination:
        source.backup(destination)


def _copy_named(catalog: Catalog, target: Path, progress: Progress) -> bool:
    """Copy what the copied catalog names; False where some of it was replaced before it was copied.

    The rest is copied all the same, so that the next time there is little to copy and it is quicker than replacing.
    What the pot itself has lost is left out, for the verification of the copy to tell.
    """
    root, copy = catalog.root, Catalog(target)
    try:
        with copy.read() as tx:
            named = sorted(named_files(tx))
    finally:
        copy.close()
    missing = set()
    for number, path in enumerate(named):
        progress(number, len(named))
        if not (target / path).exists():
            try:
                _copy(root / path, target / path)
            except FileNotFoundError:
                missing.add(path)
    with catalog.read() as tx:
        if missing - named_files(tx):
            return False
    progress(len(named), len(named))
    for folder in FOLDERS:
        for copied in (target / folder).rglob("*"):
            if copied.is_file() and str(copied.relative_to(target)) not in named:
                copied.unlink()
    return True


def _copy(source: Path, target: Path) -> None:
    with open(source, "rb") as reader:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.partial")
        with open(partial, "wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())
    partial.rename(target)


def _finish(target: Path) -> int:
    """Make the names durable, and everything readable by its owner only; the size of it all."""
    size = 0
    for path in (target, *target.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        if path.is_dir():
            sync_directory(path)
        else:
            size += path.stat().st_size
    return size
