"""Micro-batches of outside sources that are pushed to the inbox: those of streams whose rows are checked.

The key of a push is the streaming query's id and the batch's number, so a batch that Spark runs again changes nothing.
A push is one record: it is there completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tureen.errors import KeyConflict
from tureen.pot.gates import Submission
from tureen.pot.inbox import Inbox
from tureen.pot.record import Entry
from tureen.pot.streams import Stream
from tureen.stems.intake import content_digest, to_batch
from tureen.stems.pattern_rows import with_carried

HEADERS = "$headers"
"""The column with the texts of a row's headers of a certain name, which is not one of the stream."""


class SourcePushing:
    """Pushes the micro-batches of one stream's source."""

    def __init__(self, inbox: Inbox, stream: Stream, checkpoint: Path, clock: Callable[[], int]) -> None:
        """Push to the inbox of a stream; the checkpoint has the id of the streaming query."""
        self._inbox, self._stream, self._checkpoint, self._clock = inbox, stream, checkpoint, clock

    def push(self, rows: pa.Table, batch_id: int) -> None:
        """Push the rows of a batch, unless they were pushed before."""
        if not rows.num_rows:
            return
        stream, headers = self._stream, None
        if HEADERS in rows.column_names:
            headers, rows = rows.column(HEADERS), rows.drop_columns([HEADERS])
        batch = to_batch(stream.schema, rows)
        carried = with_carried(stream.schema, stream.rules.pattern_rows, batch, headers=headers)
        key = f"source/{self._query_id()}/{batch_id}"
        entry = Entry(batch.serialize().to_pybytes(), batch.num_rows, self._clock(), content_digest(batch), key)
        try:
            self._inbox.push(stream.id, entry, Submission(stream.schema, stream.rules, *carried))
        except KeyConflict:
            # Spark may read a batch again in another order. It was pushed as a whole.
            return

    def _query_id(self) -> str:
        return str(json.loads((self._checkpoint / "metadata").read_text())["id"])
