"""Backup: a consistent copy of a pot that may be in use.

The order of copying makes the copy consistent: first the logs of the inbox and Spark's checkpoints, then the catalog,
then the files that this copy of the catalog names. A row that leaves a log in between is in a run of the copy, and a
batch that Spark repeats is known to the copy's catalog. If a file is replaced and removed before it is copied, the
catalog is copied again, with the files that are new.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path

from tureen.errors import PotError
from tureen.pot.catalog import CATALOG_FILE, Catalog
from tureen.pot.connecting import connect
from tureen.pot.damage import named_files
from tureen.pot.digest import Digest
from tureen.pot.files import storage_failed, sync_directory
from tureen.pot.heads import Heads, acknowledged_ends
from tureen.pot.sweep import FOLDERS

Progress = Callable[[int, int], None]
"""Called with the number of files copied so far, and of all files."""

_MAX_ATTEMPTS = 20


def backup_pot(catalog: Catalog, target: Path, progress: Progress) -> int:
    """Copy a pot into an empty or new directory, and return the size of the copy in bytes."""
    if target.exists() and any(target.iterdir()):
        raise PotError(f"the directory '{target}' is not empty", hint="use a directory that does not exist yet")
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        ends = acknowledged_ends(catalog.root)
        _copy_tree(catalog.root, target, _logs_and_checkpoints(catalog.root))
        _write_heads(target, ends)
        for _ in range(_MAX_ATTEMPTS):
            _copy_catalog(catalog.root, target)
            if _copy_named(catalog, target, progress):
                break
        else:
            raise PotError("files were replaced faster than they could be copied", hint="try again, or close the pot")
        Digest(target / CATALOG_FILE).write()
        return _finish(target)
    except BaseException as error:
        # An incomplete copy is useless, and would make the next attempt fail.
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            raise storage_failed(target, error) from error
        if isinstance(error, sqlite3.Error):
            raise PotError(f"the catalog of '{catalog.root}' cannot be copied", detail=str(error)) from error
        raise


def _logs_and_checkpoints(root: Path) -> Iterable[Path]:
    """The logs of the inbox, and the checkpoints of external sources; that of the inbox is recreated at every start."""
    yield from sorted((root / "inbox").glob("*/*.log"))
    for directory in sorted((root / "checkpoints").glob("[0-9]*")):
        # Sorted: "commits" before "offsets". Spark writes a batch's offsets first, so no commit lacks its offsets.
        yield from sorted(path for path in directory.rglob("*") if path.is_file())


def _write_heads(target: Path, ends: Mapping[int, int]) -> None:
    """Publish the ends that the logs had before they were copied, for readers of pending rows."""
    with closing(Heads(target / "inbox")) as heads:
        for stream, end in ends.items():
            heads.publish(stream, end)


def _copy_tree(root: Path, target: Path, paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            _copy(path, target / path.relative_to(root))
        except FileNotFoundError:
            # A segment that was trimmed: its rows are in runs, which are copied with the catalog.
            continue


def _copy_catalog(root: Path, target: Path) -> None:
    copy = target / CATALOG_FILE
    copy.unlink(missing_ok=True)
    with closing(connect(root / CATALOG_FILE)) as source, closing(sqlite3.connect(copy)) as destination:
        source.backup(destination)
        _make_another_pot(destination)


def _make_another_pot(copy: sqlite3.Connection) -> None:
    """Give a copy an identity of its own, and remove the tokens of peers, which it could use.

    Its streams go on from earlier tuple ids than those that other servers may have received from the pot, so they must
    not be taken for the same.
    """
    copy.execute("PRAGMA secure_delete = ON")
    with copy:
        copy.execute("UPDATE meta SET value = ? WHERE key = 'pot'", (uuid.uuid4().hex,))
        copy.execute("UPDATE peers SET token = NULL")


def _copy_named(catalog: Catalog, target: Path, progress: Progress) -> bool:
    """Copy the files that the copied catalog names; False if one was replaced before it was copied.

    The others are copied all the same, so that the next attempt has less to copy and is faster than the replacing.
    Files that the pot itself has lost are skipped; verifying the copy reports them.
    """
    root = catalog.root
    with Catalog(target) as copy, copy.read() as tx:
        named = sorted(named_files(tx))
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
    """Make the directory entries durable and the files private to their owner; return the total size."""
    size = 0
    for path in (target, *target.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        if path.is_dir():
            sync_directory(path)
        else:
            size += path.stat().st_size
    return size
