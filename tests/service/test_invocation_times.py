"""Where invocations are computed, by their time."""

from __future__ import annotations

import time

import pytest

from tureen.service import invocation_times
from tureen.service.invocation_times import InvocationTimes


class Clocks:
    """The wall clock and the processor time of a thread, moved by a test."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0
        self.processor_reads = 0

    def read_processor(self) -> float:
        """The processor time, as a system call would return it."""
        self.processor_reads += 1
        return self.processor

    def work(self, seconds: float, *, waiting: float = 0.0) -> None:
        """Compute for some seconds, and wait for others."""
        self.wall += seconds + waiting
        self.processor += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(time, "perf_counter", lambda: clocks.wall)
    monkeypatch.setattr(time, "thread_time", clocks.read_processor)
    return clocks


def test_short_invocations_are_quick_without_system_calls(clocks: Clocks) -> None:
    times = InvocationTimes()
    assert times.is_quick("q") is None
    for _ in range(10):
        times.timed("q", lambda: clocks.work(0.001))
    assert times.is_quick("q")
    assert clocks.processor_reads == 0


def test_waiting_for_other_threads_does_not_make_an_invocation_slow(clocks: Clocks) -> None:
    times = InvocationTimes()
    times.timed("q", lambda: clocks.work(0.001))
    for _ in range(5):
        times.timed("q", lambda: clocks.work(0.001, waiting=1.0))
        assert times.is_quick("q")
    times.timed("q", lambda: clocks.work(0.5))
    times.timed("q", lambda: clocks.work(0.5))
    assert times.is_quick("q") is False


def test_the_first_invocation_counts_even_if_it_waited(clocks: Clocks) -> None:
    times = InvocationTimes()
    times.timed("q", lambda: clocks.work(0.5))
    assert times.is_quick("q") is False
    for _ in range(20):
        times.timed("q", lambda: clocks.work(0.0001))
    assert times.is_quick("q")


def test_few_handles_are_remembered(clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation_times, "MAX_TIMED_HANDLES", 3)
    times = InvocationTimes()
    for handle in "abcd":
        times.timed(handle, lambda: clocks.work(0.001))
    assert times.is_quick("a") is None
    assert times.is_quick("d")
