"""A derived stream that is kept up to date: the changes of its query are pushed to its inbox.

The key of such a push is the position up to which it contains the query's changes. A push is stored completely or not
at all, so after a crash the key of the last one tells where to continue: no change is missing, and none is there twice.
From its inbox, a derived stream is taken, indexed, matched, merged and expired like any other.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.abstract_clock import has_time
from tureen.closed.section import PlacedPattern
from tureen.errors import QueryFailed, TureenError, UnknownQuery, UnknownStream
from tureen.faults import crash_point
from tureen.position import BEGINNING, Mark, Position
from tureen.pot.catalog import Catalog
from tureen.pot.derived_streams import DerivedStream
from tureen.pot.gates import Submission
from tureen.pot.home_progress import DERIVED_KEY
from tureen.pot.inbox import Inbox
from tureen.pot.record import Entry
from tureen.pot.runs import Rejected, reject
from tureen.pot.streams import advance_derived
from tureen.results.changes.closed_steps import is_step_progress, last_step_of, step_progress
from tureen.results.covers.reuse import SyncPoint
from tureen.results.covers.step_ledger import StepRead, StepReads
from tureen.results.following.followers import Follower
from tureen.results.invoke import Invoker
from tureen.results.rows.window_edges import last_step_before
from tureen.stems.intake import to_batch
from tureen.window import Steps

log = logging.getLogger("tureen")

STEPS_EVERY = 0.02
"""Seconds between searches for steps that are over."""

RETRY_AFTER = 5.0
"""Seconds after which the query of a derived stream is tried again after it has failed."""

PUSH_ROWS = 65_536
"""The maximum number of rows of a push."""

READ_TUPLES = 1 << 20
"""The number of tuples after which the changes of a query over one stream are read in another step."""

KEPT_READS = 4_096
"""The number of reads of steps that are remembered: readers learn from them which tuples were late."""

RATE_SECONDS = 10.0
"""The seconds over which the rate of a derived stream is an average."""

MAX_REJECTED = 100
"""The most rows without a time that are stored for each push."""


class Changes(NamedTuple):
    """Some changes of a query, and the position after them."""

    rows: pa.Table
    end: str
    patterns: Sequence[PlacedPattern] = ()
    """The punctuations among the rows."""
    read: StepRead | None = None
    """Of steps: the last one, and from which tuples they were computed."""


class DerivedProgress(NamedTuple):
    """How a derived stream keeps up with its inputs."""

    next_ids: Mapping[int, int] | None
    """For each input, the id of the next tuple that is not read yet; None for a query with steps."""
    rows_per_second: float


class Derivation:
    """A derived stream that is kept up to date."""

    def __init__(
        self, entry: DerivedStream, catalog: Catalog, inbox: Inbox, invoker: Invoker, clock: Callable[[], int]
    ) -> None:
        """Continue after the changes that are in the stream's inbox."""
        self._catalog = catalog
        self.stream, self._handle = entry.stream, entry.query_id
        self._inbox, self._invoker, self._clock = inbox, invoker, clock
        # Both compare by age.
        self.end = max(entry.derived_to or "", inbox.derived_to(entry.stream.id) or "")
        self._at_most = READ_TUPLES
        if not is_step_progress(self.end):
            self._check_end()
        self._has_steps: bool | None = None
        self._steps: Steps | None = None
        self._is_final = False
        self._follower: Follower | None = None
        self._searched = 0.0
        self.is_current = False
        """Whether the last call of `catch_up` has read everything."""
        self.error: str | None = None
        self._failed = 0.0
        self._pushed: deque[tuple[float, int]] = deque()
        # Odd while rows are pushed.
        self._version = 0
        self._reads: deque[StepRead] = deque(maxlen=KEPT_READS)
        self._generation = 0

    def sync_point(self) -> SyncPoint | None:
        """The tuples of the inputs from which the rows of this stream follow; None while rows are pushed."""
        version, end = self._version, self.end
        if version % 2 or version != self._version or not end or is_step_progress(end):
            return None
        marks = Position.parse(end).marks
        return SyncPoint(version, {stream_id: mark.next_id for stream_id, mark in marks.items()})

    def step_reads(self) -> StepReads | None:
        """What was read of the steps of its query, if there is any; rows of these steps are pushed."""
        reads = list(self._reads)
        return StepReads(self._generation, reads) if reads else None

    @property
    def progress(self) -> DerivedProgress:
        """How far the inputs are read, and the rows of the last seconds."""
        since = time.monotonic() - RATE_SECONDS
        rows = sum(count for pushed_at, count in list(self._pushed) if pushed_at >= since)
        if is_step_progress(self.end):
            return DerivedProgress(None, rows / RATE_SECONDS)
        marks = Position.parse(self.end or BEGINNING).marks
        return DerivedProgress({number: mark.next_id for number, mark in marks.items()}, rows / RATE_SECONDS)

    @property
    def may_change_by_itself(self) -> bool:
        """Whether there may be changes without a push or a commit: a step ends, or a failed query is tried again."""
        return self._has_steps is not False or self.error is not None

    def catch_up(self) -> bool:
        """Push all changes since the last call; True if there are some."""
        now, before = time.monotonic(), self.end
        self.is_current = True
        if self.error is not None and now - self._failed < RETRY_AFTER:
            return False  # nobody waits for a stream whose query fails
        try:
            if self._has_steps is None:
                query = self._invoker.query_of(self._handle)
                self._is_final, self._has_steps, self._steps = query.final, query.steps is not None, query.steps
                self._note_earlier_steps()
                self._follower = None if self._has_steps or self._is_final else self._invoker.follow(self._handle)
            for changes in self._changes():
                self._push(changes)
                if changes.read is not None:
                    self._reads.append(changes.read)
            self.error = None
        except (UnknownQuery, UnknownStream):
            return False  # the stream was dropped
        except TureenError as error:
            if self.error is None:
                log.warning("stream '%s' gets no new rows, because its query fails: %s", self.stream.name, error)
            self.error, self._failed = str(error), now
        return self.end != before

    def _note_earlier_steps(self) -> None:
        """Note the steps that were read before this process."""
        if is_step_progress(self.end):
            self._reads.append(StepRead(0, last_step_of(self.end) or 0))
        elif self._steps is not None and self.end:
            end = Position.parse(self.end)
            if end.now is not None:
                self._reads.append(StepRead(0, last_step_before(self._steps, end.now)))

    def _changes(self) -> Iterator[Changes]:
        if self._is_final:
            return self._new_groups()
        return self._new_steps() if self._has_steps else self._new_rows()

    def _new_groups(self) -> Iterator[Changes]:
        """The groups that became final."""
        if self._has_steps and not self._is_time_to_search():
            return
        since = Position.parse(self.end or BEGINNING)
        new = self._invoker.group_changes(self._handle, since)
        if any(change.kind == "reset" for change in new.changed):
            raise QueryFailed(
                "it is not known any more which groups were final before",
                detail="there were too many punctuations since the stream was last derived",
                hint="drop the stream and create it again",
            )
        # One push: positions between groups that are read together do not compare by age.
        rows = [change.row for change in new.changed]
        end = Position.parse(str(new.position()))
        read = None
        if self._steps is not None and end.now is not None:
            (mark,) = end.marks.values()
            read = StepRead(mark.next_id, last_step_before(self._steps, end.now))
        yield Changes(pa.Table.from_pylist(rows, self.stream.schema.arrow), str(end), read=read)

    def _new_rows(self) -> Iterator[Changes]:
        while True:
            since = Position.parse(self.end or BEGINNING)
            try:
                new = self._invoker.new_rows(self._handle, since, self._follower, self._at_most, punctuations=True)
            except QueryFailed:
                # Too many joined rows at once, or a tuple on which the query fails: those before it are read.
                if self._at_most == 1:
                    raise
                self._at_most = max(1, self._at_most // 8)
                continue
            end = new.position()
            for start in range(0, max(len(new), 1 if new.punctuations else 0), PUSH_ROWS):
                last = min(start + PUSH_ROWS, len(new)) - 1
                is_end = last + 1 == len(new)
                patterns = [
                    PlacedPattern(placed.at - start, placed.pattern)
                    for placed in new.punctuations
                    # One after the last row of a part comes with the next part.
                    if start <= placed.at and (is_end or placed.at <= last)
                ]
                yield Changes(new.rows.slice(start, PUSH_ROWS), end if is_end else new.position(last), patterns)
            if Position.parse(end).marks == since.marks:
                self._at_most = READ_TUPLES
                return
            self.end = end
            self._at_most = min(READ_TUPLES, 2 * self._at_most)

    def _check_end(self) -> None:
        """Go back to the end of inputs that are shorter than before: copies of a pot in use lack the last tuples."""
        position = Position.parse(self.end or BEGINNING)
        next_ids = dict(zip(position.marks, self._invoker.next_ids(list(position.marks)), strict=True))
        if any(mark.next_id > next_ids[stream_id] for stream_id, mark in position.marks.items()):
            marks = {
                stream_id: mark if mark.next_id <= next_ids[stream_id] else Mark(next_ids[stream_id])
                for stream_id, mark in position.marks.items()
            }
            self.end = str(Position(position.seq, marks, position.pushes))

    def _new_steps(self) -> Iterator[Changes]:
        if not self._is_time_to_search():
            return
        while True:
            after = last_step_of(self.end)
            closed = self._invoker.closed_steps(self._handle, after)
            if closed.last is None or closed.last == after:
                return
            # One push: a step is there completely or not at all.
            yield Changes(closed.rows, step_progress(closed.last), read=StepRead(closed.next_id, closed.last))

    def _is_time_to_search(self) -> bool:
        """Whether to search for steps that are over, which is done at intervals."""
        now = time.monotonic()
        if now - self._searched < STEPS_EVERY:
            self.is_current = False
            return False
        self._searched = now
        return True

    def _push(self, changes: Changes) -> None:
        rows, patterns, schema = changes.rows, tuple(changes.patterns), self.stream.schema
        if schema.time is not None and len(rows):
            valid = has_time(schema, rows.column(schema.time))
            if not pc.all(valid).as_py():
                before = np.concatenate([[0], np.cumsum(valid.to_numpy())])
                patterns = tuple(PlacedPattern(int(before[at]), pattern) for at, pattern in patterns)
                without, rows = rows.filter(pc.invert(valid)).slice(0, MAX_REJECTED), rows.filter(valid)
                self._reject(without, None if len(rows) or patterns else changes.end)
        if len(rows) or patterns:
            payload = to_batch(schema, rows).serialize().to_pybytes()
            submission = Submission(schema, self.stream.rules, patterns) if patterns else None
            crash_point("derive.before_push")
            entry = Entry(payload, len(rows), self._clock(), bytes(16), DERIVED_KEY + changes.end)
            # It stays odd after a push that failed, of which nobody knows whether it is in the log.
            if self._version % 2:
                self._generation += 1
            self._version += 2 if self._version % 2 else 1
            self._inbox.push(self.stream.id, entry, submission)
            crash_point("derive.after_push")
            self._count(len(rows))
        self.end = changes.end
        self._version += self._version % 2

    def _count(self, rows: int) -> None:
        now = time.monotonic()
        self._pushed.append((now, rows))
        while self._pushed[0][0] < now - RATE_SECONDS:
            self._pushed.popleft()

    def _reject(self, rows: pa.Table, end: str | None) -> None:
        """Store rows without a time, before others are pushed; with the end of the changes, if there are no others."""
        with self._catalog.write() as tx:
            reject(tx, self.stream.id, [Rejected(row, "the time is NULL") for row in rows.to_pylist()])
            if end is not None:
                advance_derived(tx, self.stream.id, end)

    def close(self) -> None:
        """Stop following the query."""
        follower, self._follower = self._follower, None
        if follower is not None:
            self._invoker.followers.remove(follower)
