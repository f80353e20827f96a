"""Polls yield to other requests, but not for ever."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import httpx
import pytest

from tureen.service import middleware
from tureen.service.poll_turns import IDLE_SECONDS, MAX_WAIT, yield_to_others


@dataclass
class BusyLoop:
    """Tasks that each take some time of a clock."""

    now: float = 0.0
    handled: list[str] = field(default_factory=list)

    async def request(self, name: str, turns: int, seconds: float) -> None:
        """Handle a request in some turns of the event loop."""
        for _ in range(turns):
            self.now += seconds
            await asyncio.sleep(0)
        self.handled.append(name)

    async def poll(self) -> None:
        """Handle a poll."""
        await yield_to_others(lambda: self.now)
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


def test_requests_that_accept_an_age_yield(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    yielded: list[str] = []

    async def yield_and_note() -> None:
        yielded.append("yielded")
        await yield_to_others()

    monkeypatch.setattr(middleware, "yield_to_others", yield_and_note)
    poll = {"Cache-Control": "max-age=1"}
    assert http.get("/v1/status").status_code == 200
    assert http.post("/v1/sql", json={"sql": "SHOW STREAMS"}, headers=poll).status_code < 500
    assert not yielded
    assert http.get("/v1/status", headers=poll).status_code == 200
    assert yielded == ["yielded"]
