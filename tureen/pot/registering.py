"""Queries that come and go, committed together: a commit costs nearly the same for one as for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import Connection

from tureen.errors import TureenError, UnknownStream
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.clauses import let_go_of_clauses
from tureen.pot.members import drop_member
from tureen.pot.queries import Gone, Registration, add_queries, name_taken, names_taken, remove_queries, unknown
from tureen.pot.streams import stream_by_id
from tureen.schema import name_key

Outcomes = dict[int, str | Exception]
"""A handle or an error for a change, by its place among those that came together."""


def change_together(catalog: Catalog, changes: Sequence[Registration | Gone]) -> list[str | Exception]:
    """Register and unregister queries in one transaction, and return their handles.

    They come at one moment: none depends on another, except that a name whose query goes is free. One that is refused
    does not stop the others.
    """
    coming = {place: one for place, one in enumerate(changes) if isinstance(one, Registration)}
    going = {place: one for place, one in enumerate(changes) if isinstance(one, Gone) and "." not in one.handle}
    members = {place: one for place, one in enumerate(changes) if isinstance(one, Gone) and "." in one.handle}
    crash_point("register.before_commit")
    with catalog.write() as tx:
        seq = take_seq(tx)
        removed = remove_queries(tx, going)
        outcomes = _refused(tx, coming)
        accepted = [place for place in coming if place not in outcomes]
        outcomes |= zip(accepted, add_queries(tx, seq, [coming[place] for place in accepted]), strict=True)
        # After that, so that a clause whose last query goes while another comes stays as it is.
        let_go_of_clauses(tx, list(removed.values()))
        outcomes |= {place: one.handle if place in removed else unknown(one.handle) for place, one in going.items()}
        outcomes |= {place: _drop(tx, catalog.root, one) for place, one in members.items()}
        crash_point("register.in_commit")
    crash_point("register.after_commit")
    return [outcomes[place] for place in range(len(changes))]


def _refused(tx: Connection, coming: Mapping[int, Registration]) -> Outcomes:
    """Which queries cannot be registered: their stream is gone, or their name is taken."""
    streams = {one.stream_id for one in coming.values()}
    alive = {stream_id for stream_id in streams if stream_by_id(tx, stream_id) is not None}
    refused: Outcomes = {
        place: UnknownStream("the stream of this query was dropped")
        for place, one in coming.items()
        if one.stream_id not in alive
    }
    named = [
        (place, one.owner, one.name) for place, one in coming.items() if one.name is not None and place not in refused
    ]
    taken = names_taken(tx, [(owner, name) for _, owner, name in named])
    first: set[tuple[str, str]] = set()
    for nth, (place, owner, name) in enumerate(named):
        if nth in taken or (owner, name_key(name)) in first:
            refused[place] = name_taken(taken.get(nth, "query"), name)
        first.add((owner, name_key(name)))
    return refused


def _drop(tx: Connection, root: Path, one: Gone) -> str | Exception:
    """Let a query of a template go."""
    try:
        drop_member(tx, root, one.handle, one.owner)
    except TureenError as error:
        return error
    return one.handle
