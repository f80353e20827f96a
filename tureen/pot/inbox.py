"""The inbox: pushed rows, durable before they are acknowledged, until they are in runs.

An idempotency key makes a retried push safe: within its stream, for `KEY_LIFETIME`, repeating a key with the same rows
changes nothing, and with other rows is an error.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from tureen.closed.section import decode_section
from tureen.errors import KeyConflict, TureenError
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.catalog_tables import push_keys
from tureen.pot.gates import Gates, Submission
from tureen.pot.group_commit import GroupCommit
from tureen.pot.heads import Heads, log_directory
from tureen.pot.home_progress import DERIVED_KEY
from tureen.pot.log import LogWriter, scan, segments
from tureen.pot.record import Entry, LogRecord
from tureen.pot.reserved_ids import clip_reservations, reservations
from tureen.pot.streams import advance_derived, list_streams, taken_offsets

TRIM_BYTES = 1 << 20
"""The size at which trimming the inbox ends a segment, so that it can be removed the next time."""

KEY_LIFETIME = 24 * 3600 * 1_000_000
"""How long an idempotency key is remembered, in microseconds."""

_Item = tuple[int, Entry, Submission | None]


class _KeyedPush(NamedTuple):
    """The digest of a push's rows, its end in the log, and the number of its rejected rows."""

    digest: str
    end: int
    rejected: int


class Stored(NamedTuple):
    """A durable push: its end in the log, whether this call added it or an earlier one, and the count of pushes.

    `rows` are the accepted ones and `rejected` those that earlier punctuations close; of a repeated push, only the
    latter are known.
    """

    end: int
    added: bool
    pushes: int = 0
    rows: int = 0
    rejected: int = 0


class Inbox:
    """The writer of all streams' logs; the engine has the only one of a pot."""

    def __init__(self, root: Path, catalog: Catalog) -> None:
        """Recover every stream's log and publish its end."""
        self._root = root
        self._catalog = catalog
        self._heads = Heads(root / "inbox")
        acknowledged = self._heads.ends()
        self._logs: dict[int, LogWriter] = {}
        self._keys: dict[tuple[int, str], _KeyedPush] = {}
        self._derived_to: dict[int, str] = {}
        self._closed = False
        self.punctuations = 0
        """The number of punctuations that were stored since this process has the inbox."""
        self.on_push: Callable[[], None] = lambda: None
        """Called by the thread that writes the logs, whenever the rows of pushes have become visible."""
        self._gates = Gates(catalog)
        self._commit: GroupCommit[_Item, Stored] = GroupCommit(self._append)
        with catalog.read() as tx:
            streams = list_streams(tx)
        for stream in streams:
            end = self._open(stream.id, stream.taken, acknowledged.pop(stream.id, 0)).end
            # With checksums, and without a torn tail: a push whose key is remembered is not stored when it is repeated.
            self._remember(stream.id, scan(log_directory(root, stream.id), None, end, check=True))
            self._gates.open(stream)
        self._clip_reservations()
        for dropped in acknowledged:
            self._heads.publish(dropped, 0)
        self._remove_dropped()

    def _clip_reservations(self) -> None:
        with self._catalog.read() as tx:
            beyond = [
                stream
                for stream, log in self._logs.items()
                if any(reservation.end > log.end for reservation in reservations(tx, stream))
            ]
        if beyond:
            with self._catalog.write() as tx:
                for stream in beyond:
                    clip_reservations(tx, stream, self._logs[stream].end)

    def push(self, stream: int, entry: Entry, submission: Submission | None = None) -> Stored:
        """Make a push durable; rows that earlier punctuations close are rejected."""
        return self._commit.submit((stream, entry, submission))

    def closed(self, stream: int) -> dict[str, Any] | None:
        """What is closed in a stream, in numbers; None if nothing can be."""
        summaries: list[dict[str, Any] | None] = []
        self._commit.finish(lambda: summaries.append(self._gates.summary(stream)))
        return summaries[0]

    def end(self, stream: int) -> int:
        """The end of a stream's log."""
        log = self._logs.get(stream)
        return 0 if log is None else log.end

    def pushes(self) -> int:
        """The count of pushes to all streams."""
        return self._heads.pushes()

    def derived_to(self, stream: int) -> str | None:
        """The position of the last push to a derived stream or a replica, without those of removed segments."""
        return self._derived_to.get(stream)

    def trim(self) -> None:
        """Remove segments whose rows are all in runs, after storing their keys and what they close."""
        with self._catalog.read() as tx:
            taken_ends = taken_offsets(tx)
        for stream, taken in taken_ends.items():
            log = self._logs.get(stream)
            if log is not None:
                log.end_segment(TRIM_BYTES)
            directory = log_directory(self._root, stream)
            ended = [pair for pair in pairwise(segments(directory)) if pair[1][0] <= taken]
            if not ended or not self._gates.store(stream, ended[-1][1][0]):
                continue
            for (base, path), (next_base, _) in ended:
                self._note_keys(stream, list(scan(directory, base, next_base)))
                crash_point("trim.before_delete")
                path.unlink()
        self._remove_dropped()

    def close(self) -> None:
        """Close all files, after the group that is being written."""
        self._commit.finish(self._close)

    def _close(self) -> None:
        self._closed = True
        for log in self._logs.values():
            log.close()
        self._heads.sync()
        self._heads.close()

    def _open(self, stream: int, taken: int, acknowledged: int = 0) -> LogWriter:
        log = LogWriter(log_directory(self._root, stream), taken, acknowledged)
        self._logs[stream] = log
        if log.end:
            self._heads.publish(stream, log.end)
        return log

    def _append(self, items: list[_Item]) -> Sequence[Stored | Exception]:
        """Commit a group: one write and one fsync for each of its streams."""
        if self._closed:
            raise TureenError("this pot is closed")
        outcomes: list[Stored | Exception] = [Stored(0, added=False)] * len(items)
        by_stream: dict[int, list[int]] = {}
        for number, (stream, *_) in enumerate(items):
            by_stream.setdefault(stream, []).append(number)
        for stream, numbers in by_stream.items():
            try:
                self._append_to(stream, numbers, items, outcomes)
            except Exception as error:
                self._gates.rebuild(stream)
                for number in numbers:
                    outcomes[number] = error
        return outcomes

    def _append_to(
        self, stream: int, numbers: list[int], items: list[_Item], outcomes: list[Stored | Exception]
    ) -> None:
        fresh: list[int] = []
        group: dict[str, int] = {}
        repeats: list[tuple[int, int]] = []
        for number in numbers:
            entry = items[number][1]
            try:
                known = self._known(stream, entry)
                if known is None and entry.key in group:
                    first = group[entry.key]
                    _check_same_rows(entry, items[first][1].digest.hex())
                    repeats.append((number, first))
                elif known is not None:
                    pushes = self._heads.pushes()
                    outcomes[number] = Stored(known.end, added=False, pushes=pushes, rejected=known.rejected)
                else:
                    fresh.append(number)
                    if entry.key:
                        group[entry.key] = number
            except KeyConflict as conflict:
                outcomes[number] = conflict
        admitted = self._admitted(stream, fresh, items, outcomes)
        if admitted:
            log = self._logs.get(stream) or self._open(stream, 0)
            ends = log.append([entry for _, entry, _ in admitted])
            pushes = self._heads.publish(stream, log.end)
            self.on_push()
            crash_point("push.after_publish")
            for (number, entry, rejected), end in zip(admitted, ends, strict=True):
                outcomes[number] = Stored(end, added=True, pushes=pushes, rows=entry.rows, rejected=rejected)
                self._remember_key(stream, entry, end, rejected)
                submission = items[number][2]
                self.punctuations += 0 if submission is None else len(submission.patterns)
        for number, first in repeats:
            stored = outcomes[first]
            outcomes[number] = stored._replace(added=False) if isinstance(stored, Stored) else stored

    def _admitted(
        self, stream: int, fresh: list[int], items: list[_Item], outcomes: list[Stored | Exception]
    ) -> list[tuple[int, Entry, int]]:
        """The records to append, each with its number and the number of its rejected rows."""
        if stream not in self._gates and not any(items[number][2] for number in fresh):
            return [(number, items[number][1], 0) for number in fresh]
        admitted = []
        for number in fresh:
            _, entry, submission = items[number]
            try:
                admitted.append((number, *self._gates.admit(stream, entry, submission)))
            except TureenError as error:
                outcomes[number] = error
        return admitted

    def _known(self, stream: int, entry: Entry) -> _KeyedPush | None:
        """An earlier push with this key, or None; raises KeyConflict if its rows were others."""
        if not entry.key or is_derived(entry):
            return None
        known = self._keys.get((stream, entry.key))
        if known is None:
            with self._catalog.read() as tx:
                row = tx.execute(
                    select(push_keys.c.digest, push_keys.c.end, push_keys.c.rejected).where(
                        push_keys.c.stream_id == stream,
                        push_keys.c.key == entry.key,
                        push_keys.c.pushed_at > micros_now() - KEY_LIFETIME,
                    )
                ).first()
            if row is None:
                return None
            known = _KeyedPush(row.digest, row.end, row.rejected)
        _check_same_rows(entry, known.digest)
        return known

    def _remember(self, stream: int, records: Iterable[LogRecord]) -> None:
        for record in records:
            if record.entry is not None:
                self._remember_key(stream, record.entry, record.end, _rejected_rows(record.entry))

    def _remember_key(self, stream: int, entry: Entry, end: int, rejected: int) -> None:
        if is_derived(entry):
            self._derived_to[stream] = entry.key.removeprefix(DERIVED_KEY)
        elif entry.key:
            self._keys[stream, entry.key] = _KeyedPush(entry.digest.hex(), end, rejected)

    def _note_keys(self, stream: int, records: Sequence[LogRecord]) -> None:
        keyed = [(record.entry, record.end) for record in records if record.entry is not None and record.entry.key]
        if not keyed:
            return
        last = keyed[-1][0]
        if is_derived(last):
            with self._catalog.write() as tx:
                advance_derived(tx, stream, last.key.removeprefix(DERIVED_KEY))
            return
        with self._catalog.write() as tx:
            for entry, end in keyed:
                values = {
                    "stream_id": stream,
                    "key": entry.key,
                    "digest": entry.digest.hex(),
                    "end": end,
                    "pushed_at": entry.arrival,
                    "rejected": _rejected_rows(entry),
                }
                tx.execute(
                    insert(push_keys)
                    .values(values)
                    .on_conflict_do_update(index_elements=["stream_id", "key"], set_=values)
                )
        for entry, _ in keyed:
            self._keys.pop((stream, entry.key), None)

    def forget_old_keys(self) -> None:
        """Delete the idempotency keys that are past their lifetime."""
        with self._catalog.read() as tx:
            old = tx.execute(
                select(push_keys.c.key).where(push_keys.c.pushed_at < micros_now() - KEY_LIFETIME).limit(1)
            ).first()
        if old is not None:
            with self._catalog.write() as tx:
                tx.execute(delete(push_keys).where(push_keys.c.pushed_at < micros_now() - KEY_LIFETIME))

    def _remove_dropped(self) -> None:
        # Listed before the catalog is read: a stream created in between is not mistaken for a dropped one.
        present = [path for path in (self._root / "inbox").iterdir() if path.is_dir() and path.name.isdecimal()]
        with self._catalog.read() as tx:
            live = taken_offsets(tx)
        for directory in present:
            stream = int(directory.name)
            if stream not in live:
                self._gates.forget(stream)
                log = self._logs.pop(stream, None)
                if log is not None:
                    log.close()
                shutil.rmtree(directory, ignore_errors=True)


def is_derived(entry: Entry) -> bool:
    """Whether a push was derived from a query: its key is a position, and only the last one is needed."""
    return entry.key.startswith(DERIVED_KEY)


def _rejected_rows(entry: Entry) -> int:
    return decode_section(entry.section).rejected_rows if entry.section and entry.key else 0


def _check_same_rows(entry: Entry, digest: str) -> None:
    if entry.digest.hex() != digest:
        raise KeyConflict(
            f"the idempotency key '{entry.key}' was used with other rows",
            hint="a key identifies one push: use a new key for a new push",
        )
