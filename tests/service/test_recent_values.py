"""Recent values: computed once for those who accept their age, and never older than that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import httpx
import pytest

from tests.service.running import RunningServer, run_server
from tureen.service.recent_values import MAX_VALUES, RecentValues


class Computing:
    """Values that are computed when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.started: list[asyncio.Future[str]] = []
        self.recent = RecentValues(lambda: self.now)

    def ask(self, key: str = "key", max_age: float = 1.0) -> asyncio.Task[str]:
        """A caller that waits for a value."""
        return asyncio.ensure_future(self.recent.get(key, max_age, self._compute))

    def _compute(self) -> Awaitable[str]:
        self.started.append(asyncio.get_running_loop().create_future())
        return self.started[-1]


def run(test: Callable[[Computing], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop."""

    async def in_loop() -> None:
        await test(Computing())

    asyncio.run(in_loop())


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_callers_share_a_value_while_it_is_recent() -> None:
    async def test(computing: Computing) -> None:
        callers = [computing.ask() for _ in range(3)]
        await settle()
        assert len(computing.started) == 1
        computing.started[0].set_result("first")
        assert [await caller for caller in callers] == 3 * ["first"]
        computing.now = 0.9
        assert await computing.ask() == "first"
        computing.now = 1.0
        later = computing.ask()
        await settle()
        computing.started[1].set_result("second")
        assert await later == "second"
        # The age that counts is the caller's.
        computing.now = 2.5
        assert await computing.ask(max_age=2.0) == "second"

    run(test)


def test_age_counts_from_the_beginning() -> None:
    """What is acknowledged while a value is computed may not be in it."""

    async def test(computing: Computing) -> None:
        slow = computing.ask()
        await settle()
        computing.now = 1.5
        second = computing.ask()
        await settle()
        assert len(computing.started) == 2
        computing.started[1].set_result("second")
        computing.started[0].set_result("first")
        assert (await slow, await second) == ("first", "second")
        assert await computing.ask() == "second"

    run(test)


def test_callers_that_accept_no_age_share_nothing() -> None:
    async def test(computing: Computing) -> None:
        callers = [computing.ask(max_age=0.0), computing.ask(), computing.ask(max_age=0.0)]
        await settle()
        for number, future in enumerate(computing.started):
            future.set_result(str(number))
        assert sorted([await caller for caller in callers]) == ["0", "1", "2"]

    run(test)


def test_caller_that_leaves_does_not_disturb_others() -> None:
    async def test(computing: Computing) -> None:
        leaving, staying = computing.ask(), computing.ask()
        await settle()
        leaving.cancel()
        await settle()
        computing.started[0].set_result("value")
        assert await staying == "value"

    run(test)


def test_errors_are_not_kept() -> None:
    async def test(computing: Computing) -> None:
        callers = [computing.ask(), computing.ask()]
        await settle()
        computing.started[0].set_exception(ValueError("no value"))
        for caller in callers:
            with pytest.raises(ValueError, match="no value"):
                await caller
        again = computing.ask()
        await settle()
        computing.started[1].set_result("value")
        assert await again == "value"

    run(test)


def test_number_of_values_is_limited() -> None:
    async def test(computing: Computing) -> None:
        for number in range(MAX_VALUES + 1):
            caller = computing.ask(str(number))
            await settle()
            computing.started[-1].set_result(str(number))
            assert await caller == str(number)
        assert len(computing.recent._known) == MAX_VALUES

    run(test)


SHARED = {"Cache-Control": "max-age=2"}


@pytest.fixture
def stopped(served: RunningServer) -> Iterator[RunningServer]:
    """A server for which no time passes, and which samples no activity by itself."""
    with run_server(served.soup, page=False) as server:
        server.service.recent._clock = lambda: 0.0
        yield server


def count_rows(client: httpx.Client, stream: str, headers: dict[str, str]) -> int:
    return int(client.get("/v1/status", headers=headers).json()["streams"][stream]["rows"])


def test_status_is_shared_only_if_the_client_accepts_its_age(
    stopped: RunningServer, stream: str, push: Callable[..., str]
) -> None:
    with stopped.client() as admin, stopped.client("other") as other:
        before = admin.get("/v1/status", headers=SHARED).content
        push((1, "A", 1.0))
        assert admin.get("/v1/status", headers=SHARED).content == before
        for headers in ({}, {"Cache-Control": "no-cache"}, {"Cache-Control": "max-age=0"}):
            assert count_rows(admin, stream, headers) == 1
        # Such a response is that of one client alone.
        assert admin.get("/v1/status", headers=SHARED).content == before
        hidden = other.get("/v1/status", headers=SHARED).json()
        assert (hidden["streams"][stream]["rows"], "clauses" in hidden) == (0, False)


def test_list_of_streams_is_shared_by_those_who_see_the_same(stopped: RunningServer, http: httpx.Client) -> None:
    body = {"name": "sourced", "schema": "value BIGINT, timestamp TIMESTAMP", "time": "timestamp"}
    source = {"format": "rate", "options": {"rowsPerSecond": "1"}}
    assert http.post("/v1/streams", json={**body, "source": source}).status_code == 201

    def listed(client: httpx.Client, headers: dict[str, str], limit: int = 1_000) -> dict[str, Any]:
        listing = client.get("/v1/streams", params={"limit": limit}, headers=headers).json()
        return {stream["name"]: stream["source"] for stream in listing["streams"]}

    with stopped.client() as admin, stopped.client("read") as reader:
        assert listed(admin, SHARED)["sourced"] == source
        assert listed(reader, SHARED)["sourced"] == {"format": "rate"}
        assert len(listed(admin, SHARED, 1)) == 1
        assert http.delete("/v1/streams/sourced").status_code == 204
        assert "sourced" in listed(admin, SHARED)
        assert "sourced" not in listed(admin, {})


def test_overview_is_computed_once_for_pages_that_know_the_same(
    stopped: RunningServer, stream: str, push: Callable[..., str]
) -> None:
    with stopped.client() as admin, stopped.client("other") as other:
        first = admin.get("/v1/overview")
        push((1, "A", 1.0))
        assert admin.get("/v1/overview").content == first.content
        assert "memory_bytes" not in str(other.get("/v1/overview").json())
        stopped.service.activity.sample()
        second = admin.get("/v1/overview").json()
        assert (len(first.json()["samples"]), second["rows"]) == (0, first.json()["rows"])
        assert "memory_bytes" in second["samples"][0]
        assert "memory_bytes" not in str(other.get("/v1/overview").json())
        assert admin.get("/v1/overview", params={"after": second["samples"][-1]["at"]}).json()["samples"] == []
    assert stream
