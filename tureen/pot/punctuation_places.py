"""Where the punctuations of a stream stand among its tuples, for readers that follow both in order.

A punctuation stands before the tuple of its `next_id`, and after all tuples with smaller ids. Punctuations of a stream
are numbered in the order of its log. The catalog has the newest ones of those whose records are in runs; the others are
pending, in the log. What older ones close is in the stream's closed set only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import delete, func, insert, select, update

from tureen.closed.pattern import Pattern
from tureen.pot.catalog_tables import streams, taken_punctuations
from tureen.pot.transaction import Transaction

KEEP_BYTES = 16 << 20
"""The size of the patterns that the catalog has of a stream; the oldest are removed first."""


class PunctuationPlace(NamedTuple):
    """A punctuation of a stream, and where it stands."""

    next_id: int
    """The id of the first tuple after it."""
    number: int
    """Its number in the stream."""
    pattern: Pattern


class StoredPlaces(NamedTuple):
    """Consecutive punctuations as they are stored."""

    first: int
    """The number of the first one."""
    places: list[tuple[int, dict[str, Any]]]
    """For each the id of the first tuple after it, and what `Pattern.as_json` returns."""

    def from_number(self, number: int) -> StoredPlaces:
        """Without those before a number."""
        skipped = max(0, number - self.first)
        return StoredPlaces(self.first + skipped, self.places[skipped:]) if skipped else self

    def decoded(self) -> list[PunctuationPlace]:
        """The punctuations one by one."""
        places = enumerate(self.places, self.first)
        return [PunctuationPlace(next_id, number, Pattern.from_json(stored)) for number, (next_id, stored) in places]


def note_places(tx: Transaction, stream_id: int, places: Sequence[tuple[int, Pattern]]) -> None:
    """Store punctuations whose records are now in runs, each with the id of the next tuple."""
    if not places:
        return
    count = tx.execute(select(streams.c.punctuation_count).where(streams.c.id == stream_id)).scalar_one()
    content = json.dumps([[next_id, pattern.as_json()] for next_id, pattern in places], separators=(",", ":"))
    values = {"stream_id": stream_id, "first_number": count, "bytes": len(content), "content": content}
    tx.execute(insert(taken_punctuations).values(values))
    tx.execute(update(streams).where(streams.c.id == stream_id).values(punctuation_count=count + len(places)))
    newer = func.sum(taken_punctuations.c.bytes).over(order_by=taken_punctuations.c.id.desc())
    sums = select(taken_punctuations.c.id, newer.label("newer")).where(taken_punctuations.c.stream_id == stream_id)
    summed = sums.subquery()
    tx.execute(
        delete(taken_punctuations).where(
            taken_punctuations.c.id.in_(select(summed.c.id).where(summed.c.newer > KEEP_BYTES)),
            # The newest ones stay, whatever their size.
            taken_punctuations.c.first_number < count,
        )
    )


def taken_places(tx: Transaction, stream_id: int, number: int) -> StoredPlaces:
    """The punctuations of a stream from a number on that the catalog has, in order."""
    of_stream = taken_punctuations.c.stream_id == stream_id
    columns = (taken_punctuations.c.first_number, taken_punctuations.c.content)
    rows = tx.execute(select(*columns).where(of_stream).order_by(taken_punctuations.c.first_number)).all()
    # Those before the last one that begins at the number or before it are not needed.
    skipped = max(0, sum(1 for row in rows if row.first_number <= number) - 1)
    places = [(next_id, stored) for row in rows[skipped:] for next_id, stored in json.loads(row.content)]
    return StoredPlaces(rows[skipped].first_number if places else number, places).from_number(number)
