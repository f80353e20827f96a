"""The sweeper: removes files that no commit made real, and files that a commit made useless.

An attempt is first declared dead in the catalog, then its files are deleted; its commit, should it
still come, fails. Files that readers may have open go only after a grace.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.damage import named_files
from tureen.pot.files import attempt_of
from tureen.pot.tables import dead_attempts, garbage

ABANDONED_AFTER = 3600.0
"""Seconds after which a file that no commit named is taken for abandoned."""

GRACE = 600.0
"""Seconds for which a replaced file stays, for readers that are about to open it."""

FOLDERS = ("streams", "queries", "tables", "templates")


def sweep(catalog: Catalog, *, abandoned_after: float = ABANDONED_AFTER, grace: float = GRACE) -> int:
    """Remove what is not needed any more and return the number of files that went."""
    return _sweep_garbage(catalog, grace) + _sweep_abandoned(catalog, abandoned_after)


def _sweep_garbage(catalog: Catalog, grace: float) -> int:
    limit = micros_now() - int(grace * 1e6)
    with catalog.read() as tx:
        paths = tx.execute(select(garbage.c.path).where(garbage.c.since <= limit)).scalars().all()
    if not paths:
        return 0
    _unlink(catalog.root, paths)
    with catalog.write() as tx:
        for path in paths:
            tx.execute(delete(garbage).where(garbage.c.path == path))
    return len(paths)


def _sweep_abandoned(catalog: Catalog, abandoned_after: float) -> int:
    limit = time.time() - abandoned_after
    old = [path for path in _files(catalog.root) if _written(path) <= limit]
    if not old:
        return 0
    with catalog.write() as tx:
        real = named_files(tx) | set(tx.execute(select(garbage.c.path)).scalars())
        dead = [path for path in old if str(path.relative_to(catalog.root)) not in real]
        for attempt in {attempt_of(path) for path in dead}:
            tx.execute(insert(dead_attempts).values(attempt=attempt, marked_at=micros_now()).on_conflict_do_nothing())
    crash_point("sweep.before_delete")
    _unlink(catalog.root, [str(path.relative_to(catalog.root)) for path in dead])
    return len(dead)


def _written(path: Path) -> float:
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
