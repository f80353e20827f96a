"""Commits, noticed once for all who wait: no follower and no waiting request has a thread of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import orjson

from tureen.errors import EngineFailed, TureenError, WaitTimeout
from tureen.position import Position, PushPosition, parse_position
from tureen.pot.catalog import Catalog
from tureen.pot.status import is_reached
from tureen.service.error_responses import body_of
from tureen.service.rendering import plain_row
from tureen.soup.feed import ChangeBatch
from tureen.soup.waiting import WAIT_SECONDS

LOOK_EVERY = 0.01
"""How often the catalog is asked whether it changed, in seconds; asking takes microseconds."""

SOON = 0.005
"""So many seconds before its time, something is due: the loop's clock is not finer."""

EVENTS_AT_A_TIME = 512
"""How many events are written before others get a turn."""

BYTES_AT_A_TIME = 262_144
"""Of how many bytes; what waits for a follower that does not read is no more than this and what one event adds."""


class Watcher:
    """Sees commits and wakes whoever waits for one."""

    def __init__(self, catalog: Catalog, on_commit: Callable[[], None]) -> None:
        """Watch that catalog; call `on_commit`, in the loop, after each change."""
        self._catalog, self._on_commit = catalog, on_commit
        self.version = 0
        self.closing = False
        self._sleepers: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        token = self._catalog.token()
        while not self.closing:
            await asyncio.sleep(LOOK_EVERY)
            found = self._catalog.token()
            if found != token:
                token = found
                self.version += 1
                self._on_commit()
                self._wake()

    def _wake(self) -> None:
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)
        self._sleepers = set()

    async def moves(self, version: int, seconds: float) -> bool:
        """Wait until there was a commit after that version; False if there was none in time, or the server stops."""
        if self.version == version and not self.closing:
            sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sleepers.add(sleeper)
            with suppress(TimeoutError):
                await asyncio.wait_for(sleeper, seconds)
            self._sleepers.discard(sleeper)
        return self.version != version and not self.closing

    def close(self) -> None:
        """Let all who wait go; the server stops."""
        self.closing = True
        self._wake()


async def arrived(
    watcher: Watcher,
    catalog: Catalog,
    positions: Sequence[str],
    timeout: float | None,
    trouble: Callable[[], str | None],
) -> None:
    """Wait until all of the positions have come, or raise WaitTimeout."""
    left = [parse_position(one) for one in positions]
    deadline = time.monotonic() + (WAIT_SECONDS if timeout is None else timeout)

    def missing() -> list[Position | PushPosition]:
        with catalog.read() as tx:
            return [one for one in left if not is_reached(tx, one)]

    while left:
        version = watcher.version
        left = await asyncio.to_thread(missing)
        remaining = deadline - time.monotonic()
        if left and watcher.closing:
            raise EngineFailed("the server stops", hint="ask again in a while; what was pushed is safe")
        if left and remaining <= 0:
            raise WaitTimeout(
                "what was waited for is not in yet",
                detail=trouble(),
                hint="give a longer timeout; /v1/status tells how far the pipeline is",
            )
        if left:
            await watcher.moves(version, remaining)


class Following:
    """One follower: the first look, by which what is wrong is known before anything is sent, and all after it."""

    def __init__(
        self,
        watcher: Watcher,
        look: Callable[[str | None], ChangeBatch],
        since: str | None,
        allowed: Callable[[], None],
    ) -> None:
        """Follow what looking gives from a position on, for as long as `allowed` does not raise."""
        self._watcher, self._look, self._since, self._allowed = watcher, look, since, allowed
        # Before the look: a commit that comes while looking must not go unnoticed.
        self._version = watcher.version
        self._found: ChangeBatch | None = None

    async def begin(self) -> Following:
        """Look for the first time."""
        self._found = await asyncio.to_thread(self._look, self._since)
        return self

    async def events(
        self, *, heartbeat: float, timeout: float | None, request_id: str, told: Callable[[int], None]
    ) -> AsyncIterator[bytes]:
        """Server-sent events, for ever or until nothing came for a while; `told` hears how many changes they were."""
        found, quiet = self._found, time.monotonic()
        assert found is not None
        yield _event("position", found.position() if self._since is None else self._since, b"{}")
        try:
            while not self._watcher.closing:
                # A token may have been revoked, or have expired, since the connection was made.
                self._allowed()
                if len(found):
                    async for part in _written(found):
                        yield part
                    told(len(found))
                    quiet = time.monotonic()
                else:
                    left = heartbeat if timeout is None else min(heartbeat, quiet + timeout - time.monotonic())
                    if left <= SOON:
                        return
                    if not await self._watcher.moves(self._version, left):
                        if left == heartbeat:
                            yield b": still here\n\n"
                        continue
                self._version = self._watcher.version
                found = await asyncio.to_thread(self._look, found.position())
        except TureenError as error:
            yield _event("error", None, orjson.dumps(body_of(error, request_id)))


async def _written(found: ChangeBatch) -> AsyncIterator[bytes]:
    changes = iter(found)

    def some() -> bytes:
        parts, size = [], 0
        for change in changes:
            told: dict[str, object] = {"query": change.query, "row": plain_row(change.row)}
            if change.label is not None:
                told["label"] = change.label
            data = orjson.dumps(told, default=str)
            parts.append(_event("change", change.position, data))
            size += len(parts[-1])
            if len(parts) == EVENTS_AT_A_TIME or size >= BYTES_AT_A_TIME:
                break
        return b"".join(parts)

    while part := await asyncio.to_thread(some):
        yield part


def _event(kind: str, position: str | None, data: bytes) -> bytes:
    head = f"event: {kind}\n" if position is None else f"id: {position}\nevent: {kind}\n"
    return head.encode() + b"data: " + data + b"\n\n"
