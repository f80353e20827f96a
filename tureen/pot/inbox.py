"""The inbox: pushed rows, durable before they are acknowledged, until Spark has taken them up.

An idempotency key makes a retried push safe: within its stream, for `KEY_LIFETIME`, a key that comes
again with the same rows changes nothing, and with other rows is refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from tureen.errors import KeyConflict, TureenError
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.catalog_tables import push_keys
from tureen.pot.group_commit import GroupCommit
from tureen.pot.heads import Heads, log_directory
from tureen.pot.log import LogWriter, scan, segments
from tureen.pot.record import Entry, Located
from tureen.pot.streams import list_streams

TRIM_BYTES = 1 << 20
"""A segment of so many bytes is ended when the inbox is trimmed, so that it can go the next time."""

KEY_LIFETIME = 24 * 3600 * 1_000_000
"""How long an idempotency key is remembered, in microseconds."""

_Known = tuple[str, int]
"""What is known of a key: the digest of its rows, and where in the log they end."""


class Stored(NamedTuple):
    """A push that is durable: where in the log it ends, and whether this call added it or an earlier one had."""

    end: int
    added: bool


class Inbox:
    """The writer of all streams' logs; there is one per pot, held by the engine."""

    def __init__(self, root: Path, catalog: Catalog) -> None:
        """Recover every stream's log and publish where it ends."""
        self._root = root
        self._catalog = catalog
        self._heads = Heads(root / "inbox")
        acknowledged = self._heads.ends()
        self._logs: dict[int, LogWriter] = {}
        self._keys: dict[tuple[int, str], _Known] = {}
        self._closed = False
        self._commit: GroupCommit[tuple[int, Entry], Stored] = GroupCommit(self._append)
        with catalog.read() as tx:
            known = list_streams(tx)
        for stream in known:
            end = self._open(stream.id, stream.taken, acknowledged.pop(stream.id, 0)).end
            # Checked, and not what a crash has torn: a push whose key is known is not stored when it comes again.
            self._remember(stream.id, scan(log_directory(root, stream.id), None, end, check=True))
        for dropped in acknowledged:
            self._heads.publish(dropped, 0)
        self._remove_dropped()

    def push(self, stream: int, entry: Entry) -> Stored:
        """Make a push durable."""
        return self._commit.submit((stream, entry))

    def end(self, stream: int) -> int:
        """Where a stream's log ends."""
        log = self._logs.get(stream)
        return 0 if log is None else log.end

    def trim(self) -> None:
        """Remove segments that the pot has taken whole, after noting their keys in the catalog."""
        with self._catalog.read() as tx:
            taken = {stream.id: stream.taken for stream in list_streams(tx)}
        for stream, place in taken.items():
            log = self._logs.get(stream)
            if log is not None:
                log.end_segment(TRIM_BYTES)
            directory = log_directory(self._root, stream)
            found = segments(directory)
            for (base, path), (after, _) in pairwise(found):
                if after <= place:
                    self._note_keys(stream, list(scan(directory, base, after)))
                    crash_point("trim.before_delete")
                    path.unlink()
        self._remove_dropped()

    def close(self) -> None:
        """Let go of all files, after the group that is being written."""
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

    def _append(self, items: list[tuple[int, Entry]]) -> Sequence[Stored | Exception]:
        """Commit one group: one write and one fsync for each stream in it."""
        if self._closed:
            raise TureenError("this pot is closed")
        outcomes: list[Stored | Exception] = [Stored(0, added=False)] * len(items)
        by_stream: dict[int, list[int]] = {}
        for number, (stream, _) in enumerate(items):
            by_stream.setdefault(stream, []).append(number)
        for stream, numbers in by_stream.items():
            try:
                self._append_to(stream, numbers, items, outcomes)
            except Exception as error:
                for number in numbers:
                    outcomes[number] = error
        return outcomes

    def _append_to(
        self, stream: int, numbers: list[int], items: list[tuple[int, Entry]], outcomes: list[Stored | Exception]
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
                    _same_rows(entry, items[first][1].digest.hex())
                    repeats.append((number, first))
                elif known is not None:
                    outcomes[number] = Stored(known, added=False)
                else:
                    fresh.append(number)
                    if entry.key:
                        group[entry.key] = number
            except KeyConflict as conflict:
                outcomes[number] = conflict
        if fresh:
            log = self._logs.get(stream) or self._open(stream, 0)
            ends = log.append([items[number][1] for number in fresh])
            for number, end in zip(fresh, ends, strict=True):
                outcomes[number] = Stored(end, added=True)
                entry = items[number][1]
                if entry.key:
                    self._keys[stream, entry.key] = (entry.digest.hex(), end)
            self._heads.publish(stream, log.end)
        for number, first in repeats:
            stored = outcomes[first]
            outcomes[number] = stored._replace(added=False) if isinstance(stored, Stored) else stored

    def _known(self, stream: int, entry: Entry) -> int | None:
        """Where a push with this key is already, or None; raises if its rows were others."""
        if not entry.key:
            return None
        known = self._keys.get((stream, entry.key))
        if known is None:
            with self._catalog.read() as tx:
                row = tx.execute(
                    select(push_keys.c.digest, push_keys.c.end).where(
                        push_keys.c.stream_id == stream,
                        push_keys.c.key == entry.key,
                        push_keys.c.pushed_at > micros_now() - KEY_LIFETIME,
                    )
                ).first()
            if row is None:
                return None
            known = (row.digest, row.end)
        _same_rows(entry, known[0])
        return known[1]

    def _remember(self, stream: int, records: Iterable[Located]) -> None:
        for record in records:
            if record.entry is not None and record.entry.key:
                self._keys[stream, record.entry.key] = (record.entry.digest.hex(), record.end)

    def _note_keys(self, stream: int, records: Sequence[Located]) -> None:
        keyed = [one for one in records if one.entry is not None and one.entry.key]
        if not keyed:
            return
        with self._catalog.write() as tx:
            for one in keyed:
                assert one.entry is not None
                values = {
                    "stream_id": stream,
                    "key": one.entry.key,
                    "digest": one.entry.digest.hex(),
                    "end": one.end,
                    "pushed_at": one.entry.arrival,
                }
                tx.execute(
                    insert(push_keys)
                    .values(values)
                    .on_conflict_do_update(index_elements=["stream_id", "key"], set_=values)
                )
        for one in keyed:
            assert one.entry is not None
            self._keys.pop((stream, one.entry.key), None)

    def forget_old_keys(self) -> None:
        """Forget the idempotency keys that are past their lifetime."""
        with self._catalog.read() as tx:
            old = tx.execute(
                select(push_keys.c.key).where(push_keys.c.pushed_at < micros_now() - KEY_LIFETIME).limit(1)
            ).first()
        if old is not None:
            with self._catalog.write() as tx:
                tx.execute(delete(push_keys).where(push_keys.c.pushed_at < micros_now() - KEY_LIFETIME))

    def _remove_dropped(self) -> None:
        # Listed before the catalog is read: a stream that is created meanwhile is not mistaken for a dropped one.
        present = [path for path in (self._root / "inbox").iterdir() if path.is_dir() and path.name.isdecimal()]
        with self._catalog.read() as tx:
            live = {stream.id for stream in list_streams(tx)}
        for directory in present:
            stream = int(directory.name)
            if stream not in live:
                log = self._logs.pop(stream, None)
                if log is not None:
                    log.close()
                shutil.rmtree(directory, ignore_errors=True)


def _same_rows(entry: Entry, digest: str) -> None:
    if entry.digest.hex() != digest:
        raise KeyConflict(
            f"the idempotency key '{entry.key}' was used with other rows",
            hint="a key stands for one push: give a new push a new key",
        )
