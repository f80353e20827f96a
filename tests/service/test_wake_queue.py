"""Waiting tasks are woken in groups, between which other tasks run."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tureen.service.wake_queue import WOKEN_AT_A_TIME, WakeQueue, wake

COUNT = 3 * WOKEN_AT_A_TIME + 5


async def wait_in_order(waiters: list[asyncio.Future[None]], woken: list[int]) -> list[asyncio.Task[None]]:
    async def wait(number: int) -> None:
        await waiters[number]
        woken.append(number)

    tasks = [asyncio.create_task(wait(number)) for number in range(len(waiters))]
    await asyncio.sleep(0)
    return tasks


def test_other_tasks_run_between_two_groups() -> None:
    seen: list[int] = []

    async def check() -> None:
        queue, woken = WakeQueue(), list[int]()
        waiters = [asyncio.get_running_loop().create_future() for _ in range(COUNT)]
        tasks = await wait_in_order(waiters, woken)
        queue.add(partial(wake, waiter) for waiter in waiters[:-5])
        queue.add(partial(wake, waiter) for waiter in waiters[-5:])
        while len(woken) < COUNT:
            await asyncio.sleep(0)
            seen.append(len(woken))
        await asyncio.gather(*tasks)
        assert woken == list(range(COUNT))

    asyncio.run(check())
    steps = [later - earlier for earlier, later in zip([0, *seen], seen, strict=False)]
    assert max(steps) == WOKEN_AT_A_TIME


def test_those_that_were_cancelled_are_skipped() -> None:
    async def check() -> None:
        queue, woken = WakeQueue(), list[int]()
        waiters = [asyncio.get_running_loop().create_future() for _ in range(COUNT)]
        tasks = await wait_in_order(waiters, woken)
        queue.add(partial(wake, waiter) for waiter in waiters)
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert woken == list(range(COUNT - 1))
        # The queue is used again after it was empty.
        later = asyncio.get_running_loop().create_future()
        queue.add([partial(wake, later)])
        await asyncio.wait_for(later, 30)

    asyncio.run(check())


def test_first_calls_come_before_all_others() -> None:
    async def check() -> list[str]:
        queue, made = WakeQueue(), list[str]()
        queue.add(partial(made.append, f"later {number}") for number in range(COUNT))
        queue.add((partial(made.append, f"first {number}") for number in range(COUNT)), first=True)
        while len(made) < 2 * COUNT:
            await asyncio.sleep(0)
        return made

    made = asyncio.run(check())
    firsts = [f"first {number}" for number in range(COUNT)]
    assert made[:WOKEN_AT_A_TIME] == [f"later {number}" for number in range(WOKEN_AT_A_TIME)]
    assert made[WOKEN_AT_A_TIME : WOKEN_AT_A_TIME + COUNT] == firsts
    assert made[WOKEN_AT_A_TIME + COUNT :] == [f"later {number}" for number in range(WOKEN_AT_A_TIME, COUNT)]


def test_a_call_that_fails_stops_no_others(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> list[int]:
        queue, made = WakeQueue(), list[int]()
        queue.add([lambda: [].pop(), *(partial(made.append, number) for number in range(COUNT))])
        while len(made) < COUNT:
            await asyncio.sleep(0)
        return made

    assert asyncio.run(check()) == list(range(COUNT))
    assert "a follower could not be told of news" in caplog.text


def test_all_are_woken_at_once_when_the_server_stops() -> None:
    async def check() -> None:
        queue = WakeQueue()
        waiters = [asyncio.get_running_loop().create_future() for _ in range(COUNT)]
        queue.add(partial(wake, waiter) for waiter in waiters)
        queue.wake_all()
        assert all(waiter.done() for waiter in waiters)

    asyncio.run(check())
