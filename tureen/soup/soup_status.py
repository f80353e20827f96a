"""The status of an open pot: its streams, its engine, and how far both are."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from tureen.deferred_import import DeferredModule
from tureen.functions.function_costs import costs
from tureen.position import BEGINNING
from tureen.pot.derived_streams import texts_of_queries
from tureen.pot.gates import closed_summary
from tureen.pot.pending_rejections import pending_rejected
from tureen.pot.status import InboxEnd, describe_stream, pot_status
from tureen.pot.streams import Stream, visible_streams
from tureen.results.snapshot.stream_state import Snapshot
from tureen.soup.open_pot import OpenPot

if TYPE_CHECKING:
    from importlib import metadata

    from tureen.federation import listing
else:
    metadata = DeferredModule("importlib.metadata")
    listing = DeferredModule("tureen.federation.listing")


def described_streams(pot: OpenPot) -> list[dict[str, Any]]:
    """The streams of a pot that exists."""
    errors = pot.source_errors()
    with pot.catalog.read() as tx:
        texts = texts_of_queries(tx)
        streams = visible_streams(tx)
    return [
        describe_stream(stream, errors.get(stream.id), texts.get(stream.query_id or ""), _closed(pot, stream))
        for stream in streams
    ]


def soup_status(pot: OpenPot) -> dict[str, Any]:
    """The status of a pot that exists."""
    snapshot = pot.components.invoker.snapshot()
    ends = {stream: InboxEnd(state.pending.end, state.pending.rows_after) for stream, state in snapshot.streams.items()}
    with pot.catalog.read() as tx:
        status = pot_status(tx, ends, snapshot.pushes, pot.source_errors(), pot.held_runs())
        streams = visible_streams(tx)
    for stream in streams:
        status["streams"][stream.name]["closed"] = _closed(pot, stream)
        status["streams"][stream.name]["rejected"] += len(pending_rejected(pot.catalog, stream))
    _add_derived_progress(status["streams"], pot, snapshot)
    return {
        **status,
        **({} if pot.federation is None else listing.federation_status(pot.federation)),
        "functions": asdict(costs.total()),
        "engine": pot.state(),
        "error": pot.engine_error(),
        "version": _version(),
    }


def empty_status() -> dict[str, Any]:
    """The status of a pot that does not exist yet."""
    return {
        "streams": {},
        "tables": {},
        "queries": 0,
        "clauses": 0,
        "damaged": [],
        "position": BEGINNING,
        "functions": asdict(costs.total()),
        "engine": "none",
        "error": None,
        "version": _version(),
    }


def _add_derived_progress(entries: dict[str, Any], pot: OpenPot, snapshot: Snapshot) -> None:
    """Add to the entries of derived streams the rate of their rows, and the number of tuples that they have to read."""
    for stream_id, progress in pot.derived_progress().items():
        state = snapshot.streams.get(stream_id)
        # It may have been dropped since the snapshot.
        entry = None if state is None else entries.get(state.stream.name)
        if entry is not None:
            entry["rows_per_second"] = progress.rows_per_second
            if progress.next_ids is not None:
                inputs = [(snapshot.streams[number], next_id) for number, next_id in progress.next_ids.items()]
                entry["unread_tuples"] = sum(max(0, source.stream.next_id - next_id) for source, next_id in inputs)


def _closed(pot: OpenPot, stream: Stream) -> dict[str, Any] | None:
    """What is closed in a stream, in numbers; None if nothing can be."""
    if not (stream.checked_rules or stream.punctuated):
        return None
    running = pot.running
    known = None if running is None else running.inbox.closed(stream.id)
    return known or closed_summary(pot.catalog, stream)


@cache
def _version() -> str:
    """The installed version; reading it takes a fifth of the time of a status."""
    return metadata.version("tureen")
