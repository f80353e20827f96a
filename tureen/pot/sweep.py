"""The sweeper: removes files that no commit named, and files that a commit replaced.

An attempt is first declared dead in the catalog, then its files are deleted; a later commit of the attempt fails.

A file that a commit replaced is needed only by readers that read the catalog before that commit and have not opened it
yet: a file that is open or mapped can be read after it is unlinked. So it stays for a short grace. A later reader
misses the file, reads the catalog again, and first opens the files that it names. Query runs stay longer: a batch pins
them when it is planned, and its tasks open them when they begin.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import bindparam, case, delete, select
from sqlalchemy.dialects.sqlite import insert

from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.catalog_tables import dead_attempts, garbage
from tureen.pot.damage import named_files
from tureen.pot.files import attempt_of

ABANDONED_AFTER = 3600.0
"""Seconds after which a file that no commit named is considered abandoned."""

GRACE = 10.0
"""Seconds that a replaced file stays, for readers that are about to open it."""

PINNED_GRACE = 600.0
"""Seconds that a replaced query run stays, for the tasks of a batch that was planned with it."""

_PINNED = garbage.c.path.startswith("queries/")

FOLDERS = ("streams", "queries", "joins", "tables", "templates", "closed")


def sweep(catalog: Catalog, *, abandoned_after: float = ABANDONED_AFTER, grace: float = GRACE) -> int:
    """Remove replaced and abandoned files and return their number."""
    return sweep_replaced(catalog, grace=grace) + sweep_abandoned(catalog, abandoned_after)


def sweep_replaced(catalog: Catalog, *, grace: float = GRACE, pinned_grace: float = PINNED_GRACE) -> int:
    """Remove the files that commits replaced or dropped, once their grace is over."""
    now = micros_now()
    limit = case((_PINNED, now - int(pinned_grace * 1e6)), else_=now - int(grace * 1e6))
    with catalog.read() as tx:
        paths = tx.execute(select(garbage.c.path).where(garbage.c.since <= limit)).scalars()
    if not paths:
        return 0
    _unlink(catalog.root, paths)
    with catalog.write() as tx:
        tx.execute(delete(garbage).where(garbage.c.path == bindparam("removed")), [{"removed": path} for path in paths])
    return len(paths)


def sweep_abandoned(catalog: Catalog, abandoned_after: float = ABANDONED_AFTER) -> int:
    """Remove the files that no commit named, after their attempts were declared dead."""
    limit = time.time() - abandoned_after
    old = [path for path in _files(catalog.root) if _modified_at(path) <= limit]
    if not old:
        return 0
    with catalog.write() as tx:
        known = named_files(tx) | set(tx.execute(select(garbage.c.path)).scalars())
        dead = [path for path in old if str(path.relative_to(catalog.root)) not in known]
        for attempt in {attempt_of(path) for path in dead}:
            tx.execute(insert(dead_attempts).values(attempt=attempt, marked_at=micros_now()).on_conflict_do_nothing())
    crash_point("sweep.before_delete")
    _unlink(catalog.root, [str(path.relative_to(catalog.root)) for path in dead])
    return len(dead)


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _files(root: Path) -> Iterable[Path]:
    for folder in FOLDERS:
        yield from (path for path in (root / folder).rglob("*") if path.is_file())


def _unlink(root: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (root / path).unlink(missing_ok=True)
