"""Many followers of one query: one read and one encoding for all of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from tureen.errors import QueryFailed
from tureen.results.answer import Change
from tureen.service import shared_reads
from tureen.service.deadlines import CLOCK_RESOLUTION
from tureen.service.shared_reads import Result, SharedBatch, SharedReads
from tureen.soup.change_batches import ChangeBatch


@dataclass
class Numbers:
    """Changes whose rows are numbers."""

    count: int
    due: float | None = None

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Change]:
        return iter([Change("q", {"n": number}, str(number)) for number in range(self.count)])

    def position(self) -> str:
        """The position after all of them."""
        return "after"


class Calls:
    """Counts reads and encodings."""

    def __init__(self) -> None:
        self.reads = self.encodings = 0
        self.now = 0.0
        self.shared = SharedReads(self.run, self.encode, lambda: self.now)

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run a call without a thread."""
        await asyncio.sleep(0)
        return call()

    def encode(self, changes: ChangeBatch) -> Iterator[bytes]:
        """Each change is a part."""
        self.encodings += 1
        for change in changes:
            yield change.position.encode()

    def read(self, due: float | None = None) -> ChangeBatch:
        """Read three changes."""
        self.reads += 1
        return Numbers(3, due)

    async def sent(self, batch: Awaitable[SharedBatch]) -> bytes:
        """What a follower sends of a batch."""
        shared = await batch
        if shared.parts is not None:
            return b"".join(shared.parts)
        return b"".join([part async for part in self.shared.encode_parts(shared)])


def test_followers_at_one_position_share_a_read_and_its_events() -> None:
    calls = Calls()

    async def follow() -> None:
        reads = [calls.shared.read(("q", "position", 1), calls.read) for _ in range(100)]
        assert set(await asyncio.gather(*map(calls.sent, reads))) == {b"012"}

    asyncio.run(follow())
    assert (calls.reads, calls.encodings) == (1, 1)


def test_a_follower_that_comes_later_shares_what_another_still_sends() -> None:
    calls = Calls()

    async def follow() -> None:
        batch = await calls.shared.read("key", calls.read)
        assert await calls.shared.read("key", calls.read) is batch
        del batch
        await asyncio.sleep(0)
        gc.collect()
        await calls.shared.read("key", calls.read)

    asyncio.run(follow())
    assert calls.reads == 2, "nothing is kept that nobody sends"


def test_what_time_changes_is_shared_until_it_is_due() -> None:
    calls = Calls()

    async def follow() -> None:
        read = partial(calls.read, 2.0)
        batch = await calls.shared.read("key", read)
        calls.now = 1.9
        assert await calls.shared.read("key", read) is batch
        assert batch.due == 2.0
        calls.now = 2.0 - CLOCK_RESOLUTION
        assert await calls.shared.read("key", read) is not batch

    asyncio.run(follow())
    assert calls.reads == 2


def test_other_keys_and_no_key_share_nothing() -> None:
    calls = Calls()

    async def follow() -> None:
        for key in ("a", "b", None, None):
            assert await calls.sent(calls.shared.read(key, calls.read)) == b"012"

    asyncio.run(follow())
    assert calls.reads == 4


def test_a_large_batch_is_encoded_for_each_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_reads, "MAX_SHARED_CHANGES", 2)
    calls = Calls()

    async def follow() -> None:
        reads = [calls.shared.read("key", calls.read) for _ in range(5)]
        assert set(await asyncio.gather(*map(calls.sent, reads))) == {b"012"}

    asyncio.run(follow())
    assert (calls.reads, calls.encodings) == (1, 5)


def test_a_cancelled_follower_does_not_cancel_the_others() -> None:
    calls = Calls()

    async def follow() -> None:
        first = asyncio.create_task(calls.sent(calls.shared.read("key", calls.read)))
        second = asyncio.create_task(calls.sent(calls.shared.read("key", calls.read)))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == b"012"
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(follow())


def test_all_followers_get_the_error_and_the_next_read_is_new() -> None:
    calls = Calls()

    def fail() -> ChangeBatch:
        raise QueryFailed("division by zero")

    async def follow() -> None:
        reads = (calls.shared.read("key", fail), calls.shared.read("key", fail))
        outcomes = await asyncio.gather(*map(calls.sent, reads), return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["division by zero"] * 2
        assert await calls.sent(calls.shared.read("key", calls.read)) == b"012"

    asyncio.run(follow())
