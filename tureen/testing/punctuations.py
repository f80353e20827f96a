"""The plain twin of closed sets: all punctuations in a list, each compared with each row in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tureen.punctuation import Punctuation, Range


class PunctuatedStream:
    """The rows of a stream that its punctuations, its unique key and its lateness accept."""

    def __init__(self, unique: Sequence[str] = (), time: str | None = None, lateness: timedelta | None = None) -> None:
        """Nothing was pushed yet."""
        self._unique, self._time, self.lateness = tuple(unique), time, lateness
        self._punctuations: list[Punctuation] = []
        self._keys: list[tuple[Any, ...]] = []
        self._highest: datetime | None = None
        self.accepted: list[dict[str, Any]] = []
        self.rejected: list[dict[str, Any]] = []

    def push(self, items: Sequence[Mapping[str, Any] | Punctuation]) -> None:
        """Add rows and punctuations in order."""
        for item in items:
            if isinstance(item, Punctuation):
                self._punctuations.append(item)
            elif self._accepts(item):
                self.accepted.append(dict(item))
            else:
                self.rejected.append(dict(item))

    def closes(self, known: Mapping[str, Any]) -> bool:
        """Whether no later row can have these values in some columns."""
        if any(
            set(punctuation.where) <= known.keys() and matches(punctuation, known) for punctuation in self._punctuations
        ):
            return True
        is_known = bool(self._unique) and set(self._unique) <= known.keys()
        if is_known and tuple(known[name] for name in self._unique) in self._keys:
            return True
        bound = self.earliest() if self.lateness is not None else None
        time = known.get(self._time or "")
        return bound is not None and time is not None and time < bound

    def earliest(self) -> datetime | None:
        """A time before which no later row can be; None if there is none."""
        bounds = []
        if self._time is not None and self.lateness is not None and self._highest is not None:
            bounds.append(self._highest - self.lateness)
        for punctuation in self._punctuations:
            pattern = punctuation.where.get(self._time or "")
            if len(punctuation.where) == 1 and isinstance(pattern, Range) and pattern.low is None:
                bounds.append(pattern.high if pattern.high_open else pattern.high + timedelta(microseconds=1))
        return max(bounds, default=None)

    def would_accept(self, row: Mapping[str, Any]) -> bool:
        """Whether a row would be accepted if it came next."""
        if any(matches(punctuation, row) for punctuation in self._punctuations):
            return False
        time = None if self._time is None else row[self._time]
        if time is not None and self.lateness is not None and time < (self._highest or time) - self.lateness:
            return False
        key = tuple(row[name] for name in self._unique)
        return not self._unique or None in key or key not in self._keys

    def _accepts(self, row: Mapping[str, Any]) -> bool:
        if not self.would_accept(row):
            return False
        time = None if self._time is None else row[self._time]
        key = tuple(row[name] for name in self._unique)
        if self._unique and None not in key:
            self._keys.append(key)
        if time is not None:
            self._highest = time if self._highest is None else max(self._highest, time)
        return True


def matches(punctuation: Punctuation, row: Mapping[str, Any]) -> bool:
    """Whether a row matches a punctuation."""
    return all(_matches(pattern, row[name]) for name, pattern in punctuation.where.items())


def _matches(pattern: Any, value: Any) -> bool:
    if value is None:
        return False
    if isinstance(pattern, Range):
        low = pattern.low is None or value > pattern.low or (value == pattern.low and not pattern.low_open)
        high = pattern.high is None or value < pattern.high or (value == pattern.high and not pattern.high_open)
        return low and high
    return value in pattern if isinstance(pattern, list) else bool(value == pattern)
