"""Whether a registered query can be read: its relations exist, and it was not stopped."""

from __future__ import annotations

from tureen.errors import QueryFailed, UnknownStream
from tureen.pot.registered import Registered
from tureen.pot.relations import StoredRelation
from tureen.results.snapshot.stream_state import Snapshot
from tureen.schema import name_key


def relation_of(snapshot: Snapshot, name: str) -> StoredRelation:
    """A relation of a standing query. Its name was unique when the query was registered, and still is."""
    relations: list[StoredRelation] = [state.stream for state in snapshot.streams.values()]
    relations += snapshot.tables.values()
    relation = next((candidate for candidate in relations if name_key(candidate.name) == name_key(name)), None)
    if relation is None:
        raise UnknownStream(f"there is no stream or table named '{name}'")
    return relation


def check_standing(registered: Registered) -> None:
    """Raise if a query was stopped."""
    if registered.error is not None:
        raise QueryFailed(
            f"query '{registered.name or registered.id}' was stopped",
            detail=registered.error,
            hint="unregister it, and register it again with a corrected expression",
        )
