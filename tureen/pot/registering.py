"""Registering and unregistering queries in groups: a commit costs nearly the same for one query as for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tureen.errors import TureenError, UnknownStream
from tureen.faults import crash_point
from tureen.handle import parse_member
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.clauses import release_clauses
from tureen.pot.functions import check_functions
from tureen.pot.members import drop_member
from tureen.pot.queries import add_queries, name_taken, names_taken, remove_queries, unknown
from tureen.pot.registered import NewInput, RegisteredInput, Registration, Unregistration
from tureen.pot.streams import stream_by_id
from tureen.pot.tables import dimension_by_id
from tureen.pot.transaction import Transaction
from tureen.schema import name_key

Outcomes = dict[int, str | Exception]
"""A handle or an error for each change, by its index in the group."""


def change_together(catalog: Catalog, changes: Sequence[Registration | Unregistration]) -> list[str | Exception]:
    """Register and unregister queries in one transaction, and return their handles.

    They happen at one moment: none depends on another, except that the name of a removed query is free. One that is
    refused does not stop the others.
    """
    coming = {index: change for index, change in enumerate(changes) if isinstance(change, Registration)}
    leaving = {index: change for index, change in enumerate(changes) if isinstance(change, Unregistration)}
    members = {index: change for index, change in leaving.items() if parse_member(change.handle) is not None}
    singles = {index: change for index, change in leaving.items() if index not in members}
    crash_point("register.before_commit")
    with catalog.write() as tx:
        seq = take_seq(tx)
        removed = remove_queries(tx, singles)
        outcomes = _refused(tx, coming)
        accepted = [index for index in coming if index not in outcomes]
        outcomes |= zip(accepted, add_queries(tx, seq, [coming[index] for index in accepted]), strict=True)
        # Afterwards, so that a clause whose last query leaves while another comes is not compiled again.
        release_clauses(tx, [hold for holds in removed.values() for hold in holds])
        outcomes |= {
            index: change.handle if index in removed else unknown(change.handle) for index, change in singles.items()
        }
        outcomes |= {index: _drop_member(tx, catalog.root, change) for index, change in members.items()}
        crash_point("register.in_commit")
    crash_point("register.after_commit")
    return [outcomes[index] for index in range(len(changes))]


def _refused(tx: Transaction, coming: Mapping[int, Registration]) -> Outcomes:
    """Which queries cannot be registered: a stream or table was dropped, or the name is taken."""
    dropped = {
        (entry.stream_id, entry.table_id)
        for entry in {entry for registration in coming.values() for entry in registration.inputs}
        if _is_dropped(tx, entry)
    }
    refused: Outcomes = {
        index: UnknownStream("a stream or table of this query was dropped")
        for index, registration in coming.items()
        if any((entry.stream_id, entry.table_id) in dropped for entry in registration.inputs)
    }
    for index, registration in coming.items():
        if registration.functions and index not in refused:
            try:
                check_functions(tx, registration.functions)
            except TureenError as error:
                refused[index] = error
    named = [
        (index, registration.owner, registration.name)
        for index, registration in coming.items()
        if registration.name is not None and index not in refused
    ]
    taken = names_taken(tx, [(owner, name) for _, owner, name in named])
    earlier: set[tuple[str, str]] = set()
    for number, (index, owner, name) in enumerate(named):
        if number in taken or (owner, name_key(name)) in earlier:
            refused[index] = name_taken(taken.get(number, "query"), name)
        earlier.add((owner, name_key(name)))
    return refused


def check_inputs(tx: Transaction, inputs: Sequence[RegisteredInput]) -> None:
    """Raise if a stream or table was dropped since a query was bound to it."""
    if any(_is_dropped(tx, entry) for entry in inputs):
        raise UnknownStream("a stream or table of this query was dropped")


def _is_dropped(tx: Transaction, entry: NewInput | RegisteredInput) -> bool:
    if entry.stream_id is not None:
        return stream_by_id(tx, entry.stream_id) is None
    return entry.table_id is None or dimension_by_id(tx, entry.table_id) is None


def _drop_member(tx: Transaction, root: Path, change: Unregistration) -> str | Exception:
    """Unregister a query of a template."""
    try:
        drop_member(tx, root, change.handle, change.owner)
    except TureenError as error:
        return error
    return change.handle
