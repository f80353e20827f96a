"""Pushing: rows of any supported type are appended to a stream's inbox."""

from __future__ import annotations

from typing import Any

from tureen.errors import InvalidRows, TureenError
from tureen.position import Pushed, PushPosition
from tureen.pot.inbox import Inbox
from tureen.pot.record import Entry
from tureen.pot.stream_cache import CachedStream
from tureen.stems.intake import content_digest, to_batch

MAX_BYTES = 1 << 30
"""The maximum size of a push in bytes."""


def push_rows(inbox: Inbox, target: CachedStream, rows: Any, key: str | None, arrival: int) -> Pushed:
    """Store all rows or none, and return their position; with a key, repeating the push changes nothing."""
    stream, seq = target.stream, target.seq
    if stream.source is not None:
        raise TureenError(f"stream '{stream.name}' is fed by its source", hint="push to another stream")
    if stream.query_id is not None:
        raise TureenError(f"stream '{stream.name}' is derived from a query", hint="push to the streams of its query")
    batch = to_batch(stream.schema, rows)
    if batch.num_rows == 0 and key is None:
        return Pushed(str(PushPosition(seq, stream.id, inbox.end(stream.id), inbox.pushes())))
    payload = batch.serialize().to_pybytes()
    if len(payload) > MAX_BYTES:
        raise InvalidRows(
            f"a push must be at most {MAX_BYTES:,} bytes, got {len(payload):,}", hint="push the rows in several parts"
        )
    digest = content_digest(batch) if key else bytes(16)
    stored = inbox.push(stream.id, Entry(payload, batch.num_rows, arrival, digest, key or ""))
    position = PushPosition(seq, stream.id, stored.end, stored.pushes)
    return Pushed(str(position), batch.num_rows if stored.added else 0)
