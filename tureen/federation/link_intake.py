"""The intake of a link: received rows are stored in the replica with the progress of the flow, exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.closed.rules import NO_RULES
from tureen.closed.section import PlacedPattern
from tureen.errors import PeerFailed, TureenError
from tureen.faults import crash_point
from tureen.federation.flow import link_flow
from tureen.federation.frame import FlowFrame, flow_schema
from tureen.federation.neighbour import FlowRequest
from tureen.pot.gates import Submission
from tureen.pot.home_progress import DERIVED_KEY, HomeProgress, latest
from tureen.pot.inbox import Inbox
from tureen.pot.links import Link
from tureen.pot.record import Entry
from tureen.schema import ARRIVAL, HOME_ID
from tureen.sharing.partial_rows import FIRST_ID
from tureen.stems.intake import to_batch

NOTE_EVERY = 10_000_000
"""The microseconds after which progress without rows is stored: after a restart, less is asked for again."""


class LinkIntake:
    """The receiving end of one link."""

    def __init__(self, link: Link, inbox: Inbox, clock: Callable[[], int], progress: HomeProgress) -> None:
        """Continue after the stored rows."""
        self._inbox, self._clock, self.link = inbox, clock, link
        self.progress = progress
        """The progress of the replica; the stored one may be slightly behind if there were no rows since."""
        self._stored, self._stored_at = progress, clock()
        self._is_punctuated = link.replica.punctuated
        flow = link_flow(link)
        self._is_aggregated = flow.aggregation is not None
        self.schema = flow_schema(link.stream.visible, flow.columns, flow.partials)
        """The columns of the rows that it receives."""

    @property
    def request(self) -> FlowRequest:
        """The request that continues after the stored rows.

        A replica without punctuations gets all that are known: it may be older than those of its stream. Partial
        aggregates have no places for them.
        """
        after = self.progress.next_id
        origin = self.link.stream.origin or ""
        punctuations = after if self._is_punctuated else 0
        return FlowRequest(self.link.flow, origin, after, None if self._is_aggregated else punctuations)

    def take(self, frame: FlowFrame) -> int:
        """Store the new rows of a frame; return their number. Raises PeerFailed for what a peer must not send."""
        rows, known = 0, 0
        if frame.rows is not None:
            new = self._checked(frame)
            rows, known = new.num_rows, frame.rows.num_rows - new.num_rows
        placed = [PlacedPattern(max(0, at - known), pattern) for at, pattern in frame.punctuations]
        if rows:
            self._store(new, placed, frame)
        elif placed:
            self._store_punctuations(placed, frame)
        if frame.next_id >= self.progress.next_id:
            self.progress = HomeProgress(frame.next_id, latest(self.progress.last_time, frame.last_time))
        if self._must_note():
            self._push(self.link.replica.schema.arrow.empty_table(), self._clock(), self.progress)
        return rows

    def _checked(self, frame: FlowFrame) -> pa.RecordBatch:
        """The rows that are not stored yet."""
        rows = frame.rows
        assert rows is not None
        if rows.schema != self.schema:
            raise PeerFailed("the rows of a flow do not have the columns that were asked for")
        ids = rows.column(HOME_ID)
        if ids.null_count:
            raise PeerFailed("a row of a flow has no id")
        values = np.asarray(ids)
        if not np.all(values[1:] > values[:-1]) or values[0] < 0 or values[-1] >= frame.next_id:
            raise PeerFailed("the ids of a flow's rows are not in order")
        if ARRIVAL in rows.schema.names and rows.column(ARRIVAL).null_count:
            raise PeerFailed("a row of a flow has no time")
        new = rows.slice(int(np.searchsorted(values, self.progress.next_id)))
        if self._is_aggregated and new.num_rows:
            self._check_firsts(new, frame)
        return new

    def _check_firsts(self, rows: pa.RecordBatch, frame: FlowFrame) -> None:
        """Raise if new rows of partial aggregates stand for tuples that earlier ones stand for."""
        firsts, ids = np.asarray(rows.column(FIRST_ID)), np.asarray(rows.column(HOME_ID))
        is_valid = not frame.punctuations and not rows.column(FIRST_ID).null_count
        if not is_valid or firsts[0] < self.progress.next_id or (np.diff(firsts) < 0).any() or (firsts > ids).any():
            raise PeerFailed("partial aggregates of a flow stand for tuples that are stored, or for none")

    def _store(self, rows: pa.RecordBatch, placed: Sequence[PlacedPattern], frame: FlowFrame) -> None:
        parts = list(self._parts(rows))
        first = 0
        for number, (part, arrival) in enumerate(parts, 1):
            is_last, end = number == len(parts), first + part.num_rows
            next_id = frame.next_id if is_last else int(part.column(HOME_ID)[-1].as_py()) + 1
            last_time = latest(self.progress.last_time, frame.last_time if is_last else None)
            inside = [PlacedPattern(at - first, pattern) for at, pattern in placed if first <= at < end + is_last]
            self._push(part, arrival, HomeProgress(next_id, last_time), inside)
            first = end

    def _store_punctuations(self, placed: Sequence[PlacedPattern], frame: FlowFrame) -> None:
        """Store punctuations without rows; with the progress of a frame, unless its sender is behind this replica."""
        progress = self.progress
        if frame.next_id >= progress.next_id:
            progress = HomeProgress(frame.next_id, latest(progress.last_time, frame.last_time))
        self._push(self.link.replica.schema.arrow.empty_table(), self._clock(), progress, placed)

    def _parts(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.Table, int]]:
        """Rows with one time of arrival each: a record of the log has only one, and replicas have those of the home."""
        table = pa.Table.from_batches([rows])
        if ARRIVAL not in table.column_names:
            yield table, self._clock()
            return
        arrivals = np.asarray(pc.cast(rows.column(ARRIVAL), pa.int64()))
        starts = [0, *(np.flatnonzero(arrivals[1:] != arrivals[:-1]) + 1).tolist(), len(arrivals)]
        table = table.drop_columns([ARRIVAL])
        for first, end in pairwise(starts):
            yield table.slice(first, end - first), int(arrivals[first])

    def _push(self, rows: pa.Table, arrival: int, progress: HomeProgress, placed: Sequence[PlacedPattern] = ()) -> None:
        try:
            batch = to_batch(self.link.replica.schema, rows)
        except TureenError as error:
            raise PeerFailed("a row of a flow does not fit the stream", detail=error.message) from error
        key = DERIVED_KEY + str(progress)
        entry = Entry(batch.serialize().to_pybytes(), batch.num_rows, arrival, bytes(16), key)
        schema = self.link.replica.schema
        # After a lost connection, those that stand before the next tuple are sent again.
        submission = Submission(schema, NO_RULES, tuple(placed), only_new=True) if placed else None
        crash_point("link.before_push")
        self._inbox.push(self.link.id, entry, submission)
        crash_point("link.after_push")
        self.progress = self._stored = progress
        self._is_punctuated |= bool(placed)
        self._stored_at = self._clock()

    def _must_note(self) -> bool:
        """Whether progress without rows changes answers, or has not been stored for long."""
        replica, stored = self.link.replica, self._stored
        uses_time = replica.clock == "stream" or replica.retain is not None
        if uses_time and self.progress.last_time != stored.last_time:
            return True
        return self.progress != stored and self._clock() - self._stored_at > NOTE_EVERY
