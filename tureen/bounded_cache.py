"""A bounded cache that threads share: the least recently used values are dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """At most `size` values, by key; or values with that size together, where `size_of` measures each of them.

    >>> cache = BoundedCache[int, str](2)
    >>> [cache.get(key, lambda key=key: str(key)) for key in (1, 2, 1, 3)], cache.keys()
    (['1', '2', '1', '3'], [1, 3])
    >>> cache.put(4, "4")
    >>> cache.find(1), cache.find(4)
    (None, '4')
    >>> by_length = BoundedCache[int, str](5, len)
    >>> [by_length.get(key, lambda key=key: key * "x") for key in (1, 2, 3, 9)], by_length.keys(), by_length.size
    (['x', 'xx', 'xxx', 'xxxxxxxxx'], [2, 3], 5)
    """

    def __init__(self, size: int, size_of: Callable[[Value], int] | None = None) -> None:
        """Start empty."""
        self._most, self._size_of = size, size_of
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._size = 0
        self._computing: dict[Key, Future[Value]] = {}
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The size of all values together."""
        with self._lock:
            return self._size

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is missing; two threads may compute it at the same time."""
        with self._lock:
            known: Any = self._values.get(key, _MISSING)
            if known is not _MISSING:
                self._values.move_to_end(key)
                return known  # type: ignore[no-any-return]
        value = compute()
        self.put(key, value)
        return value

    def get_once(self, key: Key, compute: Callable[[], Value]) -> Value:
        """As `get`, but of threads that miss it at the same time, one computes it; all get its value or error."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            known = self._computing.get(key)
            future = known or self._computing.setdefault(key, Future())
        if known is not None:
            return known.result()
        try:
            value = compute()
            self.put(key, value)
            future.set_result(value)
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._computing[key]
        return value

    def find(self, key: Key) -> Value | None:
        """The value of a key, or None."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        """Add or replace a value; one that is larger than the cache is not kept."""
        size = 1 if self._size_of is None else self._size_of(value)
        with self._lock:
            self._remove(key)
            if size > self._most:
                return
            while self._size + size > self._most:
                self._remove(next(iter(self._values)))
            self._values[key], self._sizes[key] = value, size
            self._size += size

    def _remove(self, key: Key) -> None:
        if key in self._values:
            del self._values[key]
            self._size -= self._sizes.pop(key)

    def keys(self) -> list[Key]:
        """The keys of all values."""
        with self._lock:
            return list(self._values)

    def drop(self, is_stale: Callable[[Key], bool]) -> None:
        """Remove the values of stale keys."""
        with self._lock:
            for key in list(self._values):
                if is_stale(key):
                    self._remove(key)


_MISSING = object()
