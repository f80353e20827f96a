"""A bounded cache that threads share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tureen.bounded_cache import BoundedCache


def test_threads_that_miss_a_value_compute_it_once() -> None:
    cache = BoundedCache[str, int](4)
    started, proceed = threading.Event(), threading.Event()
    computed: list[int] = []

    def compute() -> int:
        started.set()
        assert proceed.wait(100)
        computed.append(1)
        return 7

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(cache.get_once, "key", compute)
        assert started.wait(100)
        others = [threads.submit(cache.get_once, "key", compute) for _ in range(3)]
        assert cache.get_once("other", lambda: 8) == 8, "other keys do not wait"
        proceed.set()
        assert [future.result() for future in (first, *others)] == [7] * 4
    assert computed == [1]


def test_an_error_is_not_kept() -> None:
    cache = BoundedCache[str, int](4)

    def fail() -> int:
        raise FileNotFoundError("removed")

    with pytest.raises(FileNotFoundError):
        cache.get_once("key", fail)
    assert cache.get_once("key", lambda: 7) == 7


def test_a_value_larger_than_the_cache_is_not_kept() -> None:
    cache = BoundedCache[str, str](5, len)
    cache.put("key", "small")
    assert cache.get_once("other", lambda: "too large") == "too large"
    assert cache.keys() == ["key"]
    cache.put("key", "too large as well")
    assert (cache.keys(), cache.size) == ([], 0)
