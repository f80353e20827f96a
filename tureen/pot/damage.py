"""Damaged files in the catalog: noted by readers, repaired by the process that writes to the pot."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from tureen.errors import DamagedFile
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.catalog_tables import cells, closed_files, damage, dimensions, query_runs, runs
from tureen.pot.join_tables import join_runs, key_files
from tureen.pot.statements import Prepared
from tureen.pot.template_tables import template_parts, templates
from tureen.pot.transaction import Transaction

log = logging.getLogger("tureen")

_NOTED = Prepared(select(damage).order_by(damage.c.path))
_LOST = Prepared(select(damage.c.path).where(damage.c.lost))


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that differs from what was written; `lost` if it holds tuples or values that exist nowhere else."""

    path: str
    detail: str
    lost: bool = False


def note_damage(tx: Transaction, path: str, detail: str | None, *, lost: bool = False) -> None:
    """Note that a file is damaged; `lost` is never reset."""
    values = {"path": path, "detail": detail or "", "lost": lost, "noticed_at": micros_now()}
    changed = {"detail": values["detail"], "lost": True} if lost else {"detail": values["detail"]}
    tx.execute(insert(damage).values(values).on_conflict_do_update(index_elements=["path"], set_=changed))


def noted_damage(tx: Transaction) -> list[Damage]:
    """The files that are known to be damaged, by path, without those that the catalog no longer names."""
    rows = tx.execute(_NOTED).all()
    named = named_files(tx) if rows else set()
    return [Damage(row.path, row.detail, row.lost) for row in rows if row.path in named]


def note_lost(catalog: Catalog, error: DamagedFile) -> None:
    """Note that tuples of a run are damaged, which exist nowhere else: the run is no longer merged or matched."""
    log.error("%s: %s", error.message, error.detail)
    with catalog.write() as tx:
        note_damage(tx, error.file, error.detail, lost=True)


def lost_files(tx: Transaction) -> set[str]:
    """The files that are known to hold damaged tuples or values."""
    return set(tx.execute(_LOST).scalars())


def forget_damage(tx: Transaction, paths: Iterable[str]) -> None:
    """Forget damage that was repaired, or that of removed files."""
    tx.execute(delete(damage).where(damage.c.path.in_(list(paths))))


def named_files(tx: Transaction) -> set[str]:
    """The paths of all files that the catalog names, relative to the pot."""
    named: set[str] = set()
    for table in (runs, cells, key_files, query_runs, join_runs, dimensions, templates, template_parts, closed_files):
        named.update(tx.execute(select(table.c.path)).scalars())
    return named
