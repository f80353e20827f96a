"""Event streams: the changes of queries as server-sent events, for each connection that follows them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from functools import partial

import orjson

from tureen.errors import TureenError
from tureen.fast_paths import FastPath, is_enabled
from tureen.results.answer import Change
from tureen.service.deadlines import CLOCK_RESOLUTION
from tureen.service.direct_events import DirectEvents, DirectWrite, FollowerState
from tureen.service.error_responses import error_body
from tureen.service.rendering import plain_pattern, plain_row
from tureen.service.shared_reads import SharedBatch, SharedReads
from tureen.service.wake_queue import wake
from tureen.service.watcher import ProgressWatcher
from tureen.soup.change_batches import ChangeBatch

MAX_EVENTS = 512
"""The most events that are encoded at a time, before other threads get a turn."""

MAX_EVENT_BYTES = 262_144
"""The most bytes that are encoded at a time, plus one event: the buffer of a follower that does not read."""


class Follower:
    """A connection that follows changes; errors of the first read are raised before the response starts."""

    def __init__(
        self,
        watcher: ProgressWatcher,
        reads: SharedReads,
        read_changes: Callable[[str | None], ChangeBatch],
        since: str | None,
        check_access: Callable[[], None],
        *,
        clause: Hashable = None,
        shared: Hashable = None,
        write: DirectWrite | None = None,
    ) -> None:
        """Follow the changes that `read_changes` returns from a position on, until `check_access` raises.

        With a clause, it is read only after pushes and commits with tuples that may satisfy it. Followers for which
        `shared` is equal and not None read the same changes, and may read them together. Their events may be written
        by `write`, between those of `events`.
        """
        self._watcher, self._reads, self._read_changes, self._since = watcher, reads, read_changes, since
        self._check_access, self._clause, self._shared, self._write = check_access, clause, shared, write
        # Before the first read, so that no push or commit during the read is missed.
        self._version, self._matches = watcher.version, watcher.matches
        self._first: SharedBatch | None = None

    async def begin(self) -> Follower:
        """Read the first changes."""
        self._first = await asyncio.to_thread(self._reads.batch, partial(self._read_changes, self._since))
        return self

    async def _read_on(self, state: FollowerState) -> int:
        """Read the changes after what was sent, up to the last push and commit; the number of changes."""
        position, state.version, state.matches = state.batch.position, self._watcher.version, self._watcher.matches
        key = None if self._shared is None else (self._shared, position, state.version, state.matches)
        state.batch = await self._reads.read(key, partial(self._read_changes, position))
        return len(state.batch.changes)

    def _on_news(self, state: FollowerState, on_sent: Callable[[int], None]) -> Callable[[asyncio.Future[None]], None]:
        """What is called for news while the task waits: it is woken, unless the events can be sent without it."""
        if self._write is None or self._shared is None or not is_enabled(FastPath.DIRECT_EVENTS):
            return wake
        return DirectEvents(
            self._watcher,
            self._reads,
            state,
            self._read_changes,
            self._check_access,
            self._write,
            on_sent,
            clause=self._clause,
            shared=self._shared,
        ).on_news

    async def events(
        self, *, heartbeat: float, timeout: float | None, request_id: str, on_sent: Callable[[int], None]
    ) -> AsyncIterator[bytes]:
        """Server-sent events, until `timeout` seconds without changes; `on_sent` is called with numbers of changes."""
        assert self._first is not None
        now = time.monotonic()
        state = FollowerState(self._first, self._version, self._matches, now, now)
        self._first = None
        on_news = self._on_news(state, on_sent)
        yield encode_event("position", state.batch.position if self._since is None else self._since, b"{}")
        unsent = len(state.batch.changes)
        try:
            while not self._watcher.closing:
                # The token may have been revoked or expired since the connection began.
                self._check_access()
                if unsent:
                    if state.batch.parts is None:
                        async for part in self._reads.encode_parts(state.batch):
                            yield part
                    else:
                        for part in state.batch.parts:
                            yield part
                    on_sent(unsent)
                    state.note_sent()
                    unsent = 0
                if state.batch.changes.due == 0.0:
                    # The rest of an interrupted read: what follows it may be there already.
                    unsent = await self._read_on(state)
                    continue
                now = time.monotonic()
                if timeout is not None and state.last_change_at + timeout - now <= CLOCK_RESOLUTION:
                    return
                if state.last_sent_at + heartbeat - now <= CLOCK_RESOLUTION:
                    yield b": still here\n\n"
                    state.last_sent_at = now
                end = state.last_sent_at + heartbeat
                end = end if timeout is None else min(end, state.last_change_at + timeout)
                due = state.batch.due
                end = end if due is None else min(end, max(due, now))
                # At once if there was a push or a commit since the last read began.
                await self._watcher.wait_for_news(state.version, end - now, self._clause, state.matches, on_news)
                is_due = due is not None and due - time.monotonic() <= CLOCK_RESOLUTION
                has_news = self._watcher.has_news(state.version, self._clause, state.matches)
                if (has_news or is_due) and not self._watcher.closing:
                    unsent = await self._read_on(state)
        except TureenError as error:
            yield encode_event("error", None, orjson.dumps(error_body(error, request_id)))


def encode_changes(changes: ChangeBatch) -> Iterator[bytes]:
    """The events of a batch, in parts."""
    parts, size = list[bytes](), 0
    for change in changes:
        event, data = _event_data(change)
        parts.append(encode_event(event, change.position, orjson.dumps(data, default=str)))
        size += len(parts[-1])
        if len(parts) == MAX_EVENTS or size >= MAX_EVENT_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def _event_data(change: Change) -> tuple[str, dict[str, object]]:
    """The type and the content of a change's event."""
    if change.punctuation is not None:
        return "punctuation", {"query": change.query, "punctuation": plain_pattern(change.punctuation)}
    data: dict[str, object] = {"query": change.query, "kind": change.kind, "row": plain_row(change.row)}
    if change.before is not None:
        data["before"] = plain_row(change.before)
    if change.label is not None:
        data["label"] = change.label
    return "change", data


def encode_event(event_type: str, position: str | None, data: bytes) -> bytes:
    """A server-sent event."""
    head = f"event: {event_type}\n" if position is None else f"id: {position}\nevent: {event_type}\n"
    return head.encode() + b"data: " + data + b"\n\n"
