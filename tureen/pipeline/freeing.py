"""Freeing runs that nothing needs any more, of streams that keep what is needed (docs/decisions/0054).

A run is needed if a window of a standing query reaches one of its tuples now or later, or if the changes of a derived
stream's query, or of a join that is followed in this process, may still read one of them.

Which windows there are is read again in the transaction that frees runs, so a query that was registered before it gets
complete answers. The progress of derived streams is that which is stored: after a crash, they continue from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tureen.errors import PotError, TureenError
from tureen.faults import crash_point
from tureen.pipeline.upkeep import EXPIRED_GRACE
from tureen.position import Mark, Position
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.derived_streams import DerivedStream, streams_derived_from
from tureen.pot.inbox import Inbox
from tureen.pot.runs import Run, drop_runs, expiring_since, live_runs, note_expiring
from tureen.pot.streams import Stream, note_freed, stream_by_id
from tureen.pot.transaction import Transaction
from tureen.pot.window_needs import needed_from, window_needs
from tureen.results.groups.followed_groups import PreparedGroups
from tureen.results.invoke import Invoker
from tureen.results.needed_tuples import needed_by_changes
from tureen.results.snapshot.unread_places import unread_places

Result = TypeVar("Result")


class ReadQuery(NamedTuple):
    """A query whose changes are read: its handle, how far they were read, and who reads them."""

    handle: str
    progress: str
    reader: str


class StoredRun(NamedTuple):
    """A run, and the tuple ids in it: from that of its first tuple to before the next run."""

    run: Run
    end: int

    @property
    def ids(self) -> tuple[int, int]:
        """The interval."""
        return self.run.first_id, self.end


@dataclass
class Freeing:
    """Frees runs of the streams of a pot, and remembers why others are not freed."""

    catalog: Catalog
    inbox: Inbox
    invoker: Invoker
    held: dict[int, dict[str, int]] = field(default_factory=dict)
    """By stream, for each reader of changes the number of runs that no window needs, but the reader does."""

    def free(self, stream: Stream, now: int, *, grace: int = EXPIRED_GRACE) -> int:
        """Drop the runs that nothing has needed for the grace; return their number."""
        if not stream.keeps_needed:
            return 0
        with self.catalog.read() as tx:
            known = _Needs.read(tx, stream.id, now)
            before = expiring_since(tx, stream.id)
        readers = list(self._readers(known))
        try:
            unneeded = self._unneeded(known, readers)
        except TureenError:
            return 0  # a query or a stream was dropped meanwhile, or a file is damaged
        # A stored time is in the future if the clock was set back.
        since = {run.id: min(before.get(run.id, now), now) for run in unneeded}
        due = [run for run in unneeded if now - since[run.id] >= min(grace, known.reach(now))]
        dropped = {run.id for run in due}
        after = {run_id: time for run_id, time in since.items() if run_id not in dropped}
        if due:
            crash_point("free.before_commit")
        try:
            if due or after != before:
                self._commit(known, now, due, before, after)
        except PotError:
            return 0  # a run was merged, or is needed by a new query
        if due:
            crash_point("free.after_commit")
        return len(due)

    def _commit(
        self, known: _Needs, now: int, due: Sequence[Run], before: dict[int, int], after: dict[int, int]
    ) -> None:
        with self.catalog.write() as tx:
            note_expiring(tx, known.stream.id, before, after)
            if due:
                _check_same(_Needs.read(tx, known.stream.id, now), known, due)
                take_seq(tx)
                drop_runs(tx, due)
                note_freed(tx, known.stream.id, _freed_before(known.stream, due))
                crash_point("free.in_commit")

    def _readers(self, known: _Needs) -> Iterator[ReadQuery]:
        """The queries over a stream whose changes are read."""
        for entry in known.derived:
            # Both compare by age.
            progress = max(entry.derived_to or "", self.inbox.derived_to(entry.stream.id) or "")
            yield ReadQuery(entry.query_id, progress, f"stream {entry.stream.name}")
        derived = {entry.query_id for entry in known.derived}
        for operator in self.invoker.followers.joins.operators():
            with operator.lock:
                handles, ends = [*operator.queries], dict(operator.ends)
            if known.stream.id in ends:
                for handle in handles:
                    if handle not in derived:
                        yield ReadQuery(handle, self._position(handle, ends), "followed joins")

    def _position(self, handle: str, ends: dict[int, int]) -> str:
        """The position of a followed join: what its operator has read, with the punctuations among it."""

        def read(prepared: PreparedGroups) -> str:
            states = prepared.snapshot.streams
            marks = {
                stream_id: Mark(
                    end, punctuations=unread_places(self.catalog, states[stream_id], Mark(end), end).end or 0
                )
                for stream_id, end in ends.items()
            }
            return str(Position(0, marks))

        return self._with_query(handle, read)

    def _unneeded(self, known: _Needs, readers: Sequence[ReadQuery]) -> list[Run]:
        """The runs that nothing needs."""
        left = [stored for stored in known.runs if known.is_before_windows(stored.run)]
        held = self.held[known.stream.id] = {}
        for reader in readers:
            if not left:
                break

            rest = self._not_needed(left, known, reader)
            if len(rest) < len(left):
                held[reader.reader] = held.get(reader.reader, 0) + len(left) - len(rest)
            left = rest
        return [stored.run for stored in left]

    def _not_needed(self, runs: Sequence[StoredRun], known: _Needs, reader: ReadQuery) -> list[StoredRun]:
        """The runs that a reader of changes does not need."""
        invoker, latest = self.invoker, _latest_read(known, reader)

        def select(prepared: PreparedGroups) -> list[StoredRun]:
            stream_id, joins = known.stream.id, invoker.followers.joins
            is_needed = needed_by_changes(prepared, reader.progress, stream_id, invoker.answers, joins)
            return [
                stored for stored in runs if stored.run.id != latest and not is_needed(stored.ids, stored.run.max_time)
            ]

        return self._with_query(reader.handle, select)

    def _with_query(self, handle: str, use: Callable[[PreparedGroups], Result]) -> Result:
        return self.invoker.with_prepared(
            handle, lambda registered, snapshot, ready: use(PreparedGroups(registered, snapshot, ready))
        )


@dataclass(frozen=True)
class _Needs:
    """What the catalog tells about the needs of a stream at one moment."""

    stream: Stream
    runs: Sequence[StoredRun]
    begin: int | None
    """The earliest time that a window needs; None if one needs everything."""
    has_windows: bool
    derived: Sequence[DerivedStream]

    @classmethod
    def read(cls, tx: Transaction, stream_id: int, now: int) -> _Needs:
        stream = stream_by_id(tx, stream_id)
        if stream is None:
            raise PotError(f"stream {stream_id} was dropped meanwhile")
        runs = live_runs(tx, stream_id)
        ends = [*(run.first_id for run in runs), stream.next_id][1:]
        moment = _least_now(stream, now)
        begins = [needed_from(need.begin, moment, runs) for need in window_needs(tx, stream_id)]
        known = [begin for begin in begins if begin is not None]
        begin = min(known) if known and len(known) == len(begins) else None
        stored = [StoredRun(run, end) for run, end in zip(runs, ends, strict=True)]
        return cls(stream, stored, begin, bool(begins), streams_derived_from(tx, stream_id))

    def is_before_windows(self, run: Run) -> bool:
        """Whether no window reaches a run, at this moment or later."""
        return not self.has_windows or (self.begin is not None and run.max_time < self.begin)

    def reach(self, now: int) -> int:
        """How far windows reach back, in microseconds."""
        return EXPIRED_GRACE if self.begin is None else max(0, _least_now(self.stream, now) - self.begin)


def _least_now(stream: Stream, now: int) -> int:
    """A time before or at the NOW of every query over a stream: with other streams, it may be the wall clock."""
    return min(now, stream.last_time) if stream.clock == "stream" and stream.last_time is not None else now


def _latest_read(known: _Needs, reader: ReadQuery) -> int | None:
    """The run with the latest tuple that was read, if the stream has a lateness: it tells how late the next may be."""
    if known.stream.rules.lateness is None or not reader.progress.startswith(tuple("0123456789")):
        return None
    mark = Position.parse(reader.progress).marks.get(known.stream.id)
    read = [stored.run for stored in known.runs if mark is not None and stored.end <= mark.next_id]
    return max(read, key=lambda run: run.max_time).id if read else None


def _check_same(current: _Needs, known: _Needs, due: Sequence[Run]) -> None:
    """Raise, and so roll back, if a run is needed by a query or a derived stream that is new."""
    is_new = {entry.query_id for entry in current.derived} - {entry.query_id for entry in known.derived}
    if is_new or not all(map(current.is_before_windows, due)):
        raise PotError("a run that was about to be freed is needed by a new query")


def _freed_before(stream: Stream, due: Sequence[Run]) -> int:
    latest = max(run.max_time for run in due) + 1
    return latest if stream.freed_before is None else max(stream.freed_before, latest)
