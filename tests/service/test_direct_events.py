"""Events that are written without a follower's task: every follower gets every change once, in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import pytest

from tests.fast_path_switch import without_fast_paths
from tureen.errors import TureenError, Unauthorized
from tureen.fast_paths import FastPath
from tureen.pot.pot_progress import PotProgress
from tureen.results.answer import Change
from tureen.service.connections import encode_chunk
from tureen.service.event_stream import Follower, encode_changes
from tureen.service.shared_reads import Result, SharedReads
from tureen.service.watcher import ProgressWatcher
from tureen.soup.change_batches import ChangeBatch
from tureen.testing.manual_engine import ManualEngine


@dataclass(frozen=True)
class Numbers:
    """Changes whose rows are numbers, from one to another; `due` as of a batch."""

    start: int
    end: int
    due: float | None = None

    def __len__(self) -> int:
        return self.end - self.start

    def __iter__(self) -> Iterator[Change]:
        return (Change("q", {"n": number}, str(number)) for number in range(self.start + 1, self.end + 1))

    def position(self) -> str:
        """The position after all of them."""
        return str(self.end)


class FollowedNumbers:
    """Numbers that are pushed one after the other, and connections that follow them."""

    def __init__(self, engine: ManualEngine) -> None:
        self.engine, self.count, self.reads = engine, 0, 0
        self.due: float | None = None
        self.watcher = ProgressWatcher(PotProgress(engine.catalog), lambda: None, lambda: {"q"})
        self.shared = SharedReads(self.run, encode_changes)
        self.failing = False
        self.pushes_during_reads = 0

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run a call after other tasks."""
        await asyncio.sleep(0)
        result = call()
        if self.pushes_during_reads:
            self.pushes_during_reads -= 1
            matches = self.watcher.matches
            self.push()
            await until(lambda: self.watcher.matches > matches)
        return result

    def push(self, count: int = 1) -> None:
        """Push the next numbers."""
        self.count += count
        self.engine.append("s", [{"n": self.count}])

    def read(self, position: str | None) -> ChangeBatch:
        """The numbers after a position."""
        if self.failing:
            raise TureenError("cannot be read")
        self.reads += 1
        return Numbers(self.count if position is None else int(position), self.count, self.due)


class Connection:
    """A connection that takes what is written to it, or not."""

    def __init__(self, numbers: FollowedNumbers, takes: Callable[[], bool] = lambda: True) -> None:
        self._numbers, self._takes = numbers, takes
        self.received = self.by_task = b""
        self.written = 0
        self.is_allowed = True
        self.is_following = asyncio.Event()

    def check_access(self) -> None:
        """Raise if access has ended."""
        if not self.is_allowed:
            raise Unauthorized("the token is not valid")

    def write(self, chunk: bytes) -> bool:
        """Take a chunk of an HTTP response."""
        if not self._takes():
            return False
        body = chunk.partition(b"\r\n")[2][:-2]
        assert encode_chunk(body) == chunk
        self.received += body
        self.written += 1
        return True

    async def follow(self, heartbeat: float) -> None:
        """Follow until the server stops."""
        numbers = self._numbers
        with numbers.watcher.following("q"):
            follower = await Follower(
                numbers.watcher,
                numbers.shared,
                numbers.read,
                None,
                self.check_access,
                clause="q",
                shared="q",
                write=self.write,
            ).begin()
            async for part in follower.events(
                heartbeat=heartbeat, timeout=None, request_id="-", on_sent=lambda _: None
            ):
                self.received += part
                self.by_task += part
                self.is_following.set()

    @property
    def rows(self) -> list[int]:
        """The numbers that came."""
        return [int(line.partition(b'"n":')[2].rstrip(b"}")) for line in self.received.split(b"\n") if b'"n"' in line]


@pytest.fixture
def numbers(engine: ManualEngine) -> FollowedNumbers:
    engine.create_stream("s", "n INT")
    return FollowedNumbers(engine)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


async def with_followers(
    numbers: FollowedNumbers,
    connections: Sequence[Connection],
    act: Callable[[], Awaitable[None]],
    heartbeat: float = 60.0,
) -> None:
    """Act while all connections follow, then stop the server."""
    numbers.watcher.start()
    tasks = [asyncio.create_task(connection.follow(heartbeat)) for connection in connections]
    for connection in connections:
        await connection.is_following.wait()
    await act()
    numbers.watcher.close()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("is_direct", [True, False])
def test_every_follower_gets_every_change_once_in_order(numbers: FollowedNumbers, is_direct: bool) -> None:
    draw = random.Random(5)

    async def check() -> None:
        connections = [Connection(numbers) for _ in range(40)]
        connections += [Connection(numbers, lambda: draw.random() < 0.5) for _ in range(40)]

        def count_current() -> int:
            return sum(connection.rows[-1:] == [numbers.count] for connection in connections)

        async def act() -> None:
            for _ in range(20):
                for _ in range(draw.randrange(1, 4)):
                    numbers.push()
                # The next push comes while some have got this one, and others have not.
                enough = draw.randrange(80)
                await until(lambda enough=enough: count_current() > enough)  # type: ignore[misc]
            await until(lambda: count_current() == 80)

        await with_followers(numbers, connections, act)
        assert all(connection.rows == list(range(1, numbers.count + 1)) for connection in connections)
        assert any(connection.written for connection in connections) == is_direct

    with nullcontext() if is_direct else without_fast_paths(FastPath.DIRECT_EVENTS):
        asyncio.run(check())


def test_the_task_of_a_follower_is_woken_where_it_is_needed(numbers: FollowedNumbers) -> None:
    async def check() -> None:
        direct, refusing, leaving = (
            Connection(numbers),
            Connection(numbers, lambda: False),
            Connection(numbers),
        )

        async def act() -> None:
            numbers.push()
            await until(lambda: all(connection.rows == [1] for connection in (direct, refusing, leaving)))
            leaving.is_allowed = False
            numbers.push()
            await until(lambda: direct.rows == refusing.rows == [1, 2])
            await until(lambda: b"event: error" in leaving.received)
            # What depends on the time is due before the next push.
            numbers.due = 1000.0
            numbers.push()
            await until(lambda: direct.rows == refusing.rows == [1, 2, 3])
            assert b'"n":3' in direct.by_task
            numbers.due, numbers.failing = None, True
            numbers.push()
            await until(lambda: all(b"cannot be read" in connection.received for connection in (direct, refusing)))

        await with_followers(numbers, [direct, refusing, leaving], act)
        assert leaving.rows == [1]
        assert b"the token is not valid" in leaving.received
        assert (direct.written, refusing.written) == (2, 0)

    asyncio.run(check())


def test_a_batch_of_several_parts_is_sent_by_the_task(
    numbers: FollowedNumbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, the buffer of a connection that is not read would get all of it at once."""
    monkeypatch.setattr("tureen.service.event_stream.MAX_EVENT_BYTES", 1)

    async def check() -> None:
        connection = Connection(numbers)

        async def act() -> None:
            numbers.push(3)
            await until(lambda: connection.rows == [1, 2, 3])
            assert (connection.written, connection.by_task.count(b'"n"')) == (0, 3)
            numbers.push()
            await until(lambda: connection.rows == [1, 2, 3, 4])
            assert (connection.written, connection.by_task.count(b'"n"')) == (1, 3)

        await with_followers(numbers, [connection], act)

    asyncio.run(check())


def test_heartbeats_come_between_events_that_were_written_directly(numbers: FollowedNumbers) -> None:
    async def check() -> None:
        connection = Connection(numbers)

        async def act() -> None:
            for number in range(1, 4):
                beats = connection.received.count(b": still here")
                numbers.push()
                await until(lambda number=number: connection.rows[-1:] == [number])  # type: ignore[misc]
                await until(lambda beats=beats: connection.received.count(b": still here") > beats)  # type: ignore[misc]

        await with_followers(numbers, [connection], act, heartbeat=0.02)
        assert connection.rows == [1, 2, 3]
        assert connection.written

    asyncio.run(check())


def test_a_push_during_a_read_is_sent_after_what_was_read(numbers: FollowedNumbers) -> None:
    async def check() -> None:
        connections = [Connection(numbers) for _ in range(3)]

        async def act() -> None:
            numbers.pushes_during_reads = 2
            numbers.push()
            await until(lambda: all(connection.rows == [1, 2, 3] for connection in connections))

        await with_followers(numbers, connections, act)
        assert [connection.written for connection in connections] == [3, 3, 3]

    asyncio.run(check())


def test_followers_share_reads(numbers: FollowedNumbers) -> None:
    async def check() -> None:
        connections = [Connection(numbers) for _ in range(50)]

        async def act() -> None:
            numbers.push()
            await until(lambda: all(connection.rows == [1] for connection in connections))

        await with_followers(numbers, connections, act)
        assert numbers.reads < 60, "each reads once when it begins; the push is read for all"

    asyncio.run(check())
