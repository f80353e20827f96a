"""A bounded cache that threads share: the least recently used values are dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """At most `size` values, by key.

    >>> cache = BoundedCache[int, str](2)
    >>> [cache.get(key, lambda key=key: str(key)) for key in (1, 2, 1, 3)], cache.keys()
    (['1', '2', '1', '3'], [1, 3])
    >>> cache.put(4, "4")
    >>> cache.find(1), cache.find(4)
    (None, '4')
    """

    def __init__(self, size: int) -> None:
        """Start empty."""
        self._values: LRUCache[Key, Value] = LRUCache(size)
        self._lock = threading.Lock()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is missing; two threads may compute it at the same time."""
        with self._lock:
            try:
                return self._values[key]
            except KeyError:
                pass
        value = compute()
        self.put(key, value)
        return value

    def find(self, key: Key) -> Value | None:
        """The value of a key, or None."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Add or replace a value."""
        with self._lock:
            self._values[key] = value

    def keys(self) -> list[Key]:
        """The keys of all values."""
        with self._lock:
            return list(self._values)

    def drop(self, is_stale: Callable[[Key], bool]) -> None:
        """Remove the values of stale keys."""
        with self._lock:
            for key in list(self._values):
                if is_stale(key):
                    del self._values[key]
