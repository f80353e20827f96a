"""Calls of many tasks share a few threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from tureen.service.shared_threads import SharedThreads


def test_calls_of_many_tasks_share_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    handovers: list[object] = []
    to_thread = asyncio.to_thread

    async def count(call: Callable[[], object]) -> object:
        handovers.append(call)
        return await to_thread(call)

    def call(number: int) -> int:
        if number % 10 == 3:
            raise ValueError(number)
        return number

    async def check() -> None:
        threads = SharedThreads()
        cancelled = asyncio.create_task(threads.run(partial(call, 0)))
        calls = [asyncio.create_task(threads.run(partial(call, number))) for number in range(100)]
        await asyncio.sleep(0)
        cancelled.cancel()
        for number, outcome in enumerate(await asyncio.gather(*calls, return_exceptions=True)):
            assert outcome == number or (isinstance(outcome, ValueError) and outcome.args == (number,))
        assert len(handovers) <= 8
        assert await threads.run(partial(call, 1)) == 1

    monkeypatch.setattr(asyncio, "to_thread", count)
    asyncio.run(check())


def test_a_slow_call_does_not_delay_those_that_come_later() -> None:
    began, ended = threading.Event(), threading.Event()

    def wait() -> bool:
        began.set()
        return ended.wait(60)

    async def check() -> None:
        threads = SharedThreads()
        slow = asyncio.create_task(threads.run(wait))
        assert await asyncio.to_thread(began.wait, 30)
        assert await asyncio.wait_for(threads.run(lambda: 5), 30) == 5
        assert not slow.done()
        ended.set()
        assert await slow

    asyncio.run(check())
