"""Deadlines of many waiting tasks: each ends when it is due or its future is done, and none is forgotten."""

from __future__ import annotations

import asyncio
import time

import pytest
import uvloop

from tureen.service.deadlines import Deadlines


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def test_tasks_wait_until_their_deadlines() -> None:
    ended: list[float] = []

    async def wait(deadlines: Deadlines, seconds: float) -> None:
        began = time.monotonic()
        await deadlines.wait(_future(), seconds)
        assert time.monotonic() - began >= seconds - 0.001
        ended.append(seconds)

    async def run() -> None:
        deadlines = Deadlines()
        # The last to begin has the first deadline, so that the timer is set again.
        await asyncio.gather(*(wait(deadlines, seconds) for seconds in (0.12, 0.06, 0.03, 0.0, -1.0)))
        assert not deadlines._waiting
        assert deadlines._timer is None

    uvloop.run(run())
    assert sorted(ended) == [-1.0, 0.0, 0.03, 0.06, 0.12]


def test_futures_that_are_done_and_tasks_that_are_cancelled_leave_nothing() -> None:
    async def run() -> None:
        deadlines, futures = Deadlines(), [_future() for _ in range(100)]
        tasks = [asyncio.create_task(deadlines.wait(future, 3600)) for future in futures]
        await asyncio.sleep(0)
        assert len(deadlines._waiting) <= 2, "tasks with one deadline have one timer"
        for future in futures[:50]:
            future.set_result(None)
        for task in tasks[50:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not deadlines._waiting
        # The timer that is left finds nothing to do, and another wait does not depend on it.
        await deadlines.wait(_future(), 0.01)

    asyncio.run(run())


@pytest.mark.parametrize("seconds", [float("inf"), 1e300])
def test_distant_deadlines_do_not_overflow(seconds: float) -> None:
    async def run() -> None:
        deadlines, future = Deadlines(), _future()
        task = asyncio.create_task(deadlines.wait(future, seconds))
        await asyncio.sleep(0)
        future.set_result(None)
        await task

    asyncio.run(run())
