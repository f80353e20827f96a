"""Pushing: rows and punctuations are appended to a stream's inbox."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from tureen.closed.section import PlacedPattern, Section, encode_section
from tureen.errors import InvalidRows, TureenError
from tureen.position import Pushed, PushPosition
from tureen.pot.gates import Submission
from tureen.pot.inbox import Inbox
from tureen.pot.record import Entry
from tureen.pot.stream_cache import CachedStream
from tureen.pot.streams import Stream
from tureen.punctuation import Punctuation
from tureen.schema import Schema
from tureen.stems.intake import content_digest, to_batch
from tureen.stems.pattern_rows import with_carried
from tureen.stems.punctuation_binding import bind_punctuation
from tureen.stems.row_items import PlacedPunctuation, split_items

MAX_BYTES = 1 << 30
"""The maximum size of a push in bytes."""


def push_rows(
    inbox: Inbox,
    target: CachedStream,
    rows: Any,
    key: str | None,
    arrival: int,
    punctuations: Iterable[Any] = (),
) -> Pushed:
    """Store all rows or none, and return their position; with a key, repeating the push changes nothing.

    Punctuations stand among the rows, or come after them in `punctuations`. All rows are stored that no earlier
    punctuation closes; the others are rejected one by one.
    """
    stream, seq = target.stream, target.seq
    check_pushable(stream)
    rows, placed = split_items(rows)
    batch = to_batch(stream.schema, rows)
    placed += [PlacedPunctuation(batch.num_rows, Punctuation.of(where)) for where in punctuations]
    if batch.num_rows == 0 and not placed and key is None:
        return Pushed(str(PushPosition(seq, stream.id, inbox.end(stream.id), inbox.pushes())))
    patterns = _patterns(stream.schema, placed)
    payload = batch.serialize().to_pybytes()
    if len(payload) > MAX_BYTES:
        raise InvalidRows(
            f"a push must be at most {MAX_BYTES:,} bytes, got {len(payload):,}", hint="push the rows in several parts"
        )
    digest = bytes(16)
    if key:
        digest = content_digest(batch)
        if patterns:
            digest = hashlib.blake2b(digest + encode_section(Section(patterns)), digest_size=16).digest()
    submission = None
    if patterns or stream.rules:
        carried = with_carried(stream.schema, stream.rules.pattern_rows, batch, patterns)
        submission = Submission(stream.schema, stream.rules, *carried)
    stored = inbox.push(stream.id, Entry(payload, batch.num_rows, arrival, digest, key or ""), submission)
    position = PushPosition(seq, stream.id, stored.end, stored.pushes)
    added = stored.rows if stored.added else 0
    return Pushed(str(position), added, stored.rejected, repeated=not stored.added)


def check_pushable(stream: Stream, verb: str = "push to") -> None:
    """Raise for streams that are fed by a source or a query; `verb` is what was to be done."""
    if stream.home is not None:
        raise TureenError(f"stream '{stream.name}' lives at server '{stream.home}'", hint=f"{verb} it there")
    if stream.source is not None:
        raise TureenError(f"stream '{stream.name}' is fed by its source", hint=f"{verb} another stream")
    if stream.query_id is not None:
        raise TureenError(f"stream '{stream.name}' is derived from a query", hint=f"{verb} the streams of its query")


def _patterns(schema: Schema, placed: Sequence[PlacedPunctuation]) -> tuple[PlacedPattern, ...]:
    return tuple(PlacedPattern(at, bind_punctuation(schema, punctuation)) for at, punctuation in placed)
