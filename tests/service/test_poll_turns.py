"""Polls yield to other requests, but not for ever."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.service.running import RunningServer
from tureen.service.poll_turns import IDLE_SECONDS, MAX_WAIT, PollTurns


class BusyLoop:
    """Tasks that each take some time of a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.handled: list[str] = []
        self.polls = PollTurns(lambda: self.now)

    async def request(self, name: str, turns: int, seconds: float) -> None:
        """Handle a request in some turns of the event loop."""
        for _ in range(turns):
            self.now += seconds
            await asyncio.sleep(0)
        self.handled.append(name)

    async def poll(self, seconds: float = 0.001) -> None:
        """Handle a poll."""
        await self.polls.wait()
        self.now += seconds
        self.handled.append("poll")


def test_a_poll_is_handled_after_the_requests_that_are_ready() -> None:
    loop = BusyLoop()

    async def run() -> None:
        await asyncio.gather(loop.poll(), loop.request("a", 1, 0.001), loop.request("b", 5, 0.001))

    asyncio.run(run())
    assert loop.handled == ["a", "b", "poll"]


def test_a_poll_does_not_wait_for_tasks_that_take_no_time() -> None:
    loop = BusyLoop()

    async def run() -> None:
        await asyncio.gather(loop.poll(), loop.request("idle", 9, IDLE_SECONDS / 10))

    asyncio.run(run())
    assert loop.handled == ["poll", "idle"]


def test_a_poll_is_handled_after_a_while_in_a_busy_loop() -> None:
    loop = BusyLoop()

    async def run() -> None:
        await asyncio.gather(loop.poll(), loop.request("busy", 1_000, 0.001))

    asyncio.run(run())
    assert loop.handled == ["poll", "busy"]
    assert loop.now >= 1.0 > MAX_WAIT


def test_many_polls_are_handled_without_waiting_for_each_other() -> None:
    loop = BusyLoop()

    async def run() -> None:
        await asyncio.gather(*(loop.poll(0.0) for _ in range(500)))
        cancelled = asyncio.create_task(loop.poll())
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, loop.poll(), return_exceptions=True)

    asyncio.run(run())
    assert loop.handled == ["poll"] * 501


def test_polls_that_have_waited_enough_are_handled_together() -> None:
    loop = BusyLoop()

    async def run() -> None:
        polls = [asyncio.create_task(loop.poll(0.0)) for _ in range(100)]
        await loop.request("busy", 60, 0.001)
        assert loop.handled == [*["poll"] * 100, "busy"]
        await asyncio.gather(*polls)

    asyncio.run(run())


def test_requests_that_accept_an_age_yield(
    http: httpx.Client, served: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    yielded: list[str] = []
    wait = served.service.polls.wait

    async def note_and_wait() -> None:
        yielded.append("yielded")
        await wait()

    monkeypatch.setattr(served.service.polls, "wait", note_and_wait)
    poll = {"Cache-Control": "max-age=1"}
    assert http.get("/v1/status").status_code == 200
    assert http.post("/v1/sql", json={"sql": "SHOW STREAMS"}, headers=poll).status_code < 500
    assert not yielded
    assert http.get("/v1/status", headers=poll).status_code == 200
    assert yielded == ["yielded"]
