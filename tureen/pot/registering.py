"""Queries that come and go, committed together: a commit costs the same for one as for many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from tureen.errors import TureenError
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.queries import Registration, register, unregister
from tureen.pot.templates import drop_member


@dataclass(frozen=True, slots=True)
class Gone:
    """A query that is to stand no longer: its handle, and whose it must be if that matters."""

    handle: str
    owner: str | None = None


def change_together(catalog: Catalog, changes: Sequence[Registration | Gone]) -> list[str | Exception]:
    """Register and unregister queries in one transaction, and return their handles.

    One that is refused, before anything was changed for it, does not stop the others.
    """
    outcomes: list[str | Exception] = []
    alive: set[int] = set()
    crash_point("register.before_commit")
    with catalog.write() as tx:
        seq = take_seq(tx)
        for one in changes:
            try:
                outcomes.append(_change(tx, seq, one, alive))
            except TureenError as error:
                outcomes.append(error)
        crash_point("register.in_commit")
    crash_point("register.after_commit")
    return outcomes


def _change(tx: Connection, seq: int, change: Registration | Gone, alive: set[int]) -> str:
    if isinstance(change, Registration):
        return register(tx, seq, change, alive)
    (drop_member if "." in change.handle else unregister)(tx, change.handle, change.owner)
    return change.handle
