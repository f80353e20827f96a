"""The plain twin of EMIT FINAL: tries every tuple that might still arrive, and sees whether it would join a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from tureen.testing.punctuations import PunctuatedStream

Row = Mapping[str, Any]
Group = tuple[Any, ...]
"""The keys of a group; with steps, followed by the start of its step."""


@dataclass(frozen=True)
class FinalQuery:
    """A query over one stream, or over two that are joined, in terms of Python."""

    sql: str
    key: Callable[..., tuple[Any, ...]]
    """The keys of a row, or of two joined rows."""
    condition: Callable[..., bool] = lambda *_: True
    """WHERE, and the condition of the join."""
    begin: datetime | None = None
    end: datetime | None = None
    sliding: timedelta | None = None
    """The length of the window of the first stream, if it ends at NOW."""
    steps: timedelta | None = None
    """The length of adjacent steps."""
    streams: int = 1

    def contains(self, rows: Sequence[Row], now: datetime | None = None) -> bool:
        """Whether rows are in the window: at NOW, or else at the time of the latest of them."""
        first = rows[0]["ts"]
        moment = now or max(row["ts"] for row in rows)
        if self.sliding is not None and not moment - self.sliding <= first <= moment:
            return False
        is_late = self.end is not None and first > self.end
        return not is_late and (self.begin is None or first >= self.begin)


class FinalTwin:
    """What a query with EMIT FINAL must return and report, over streams with punctuations."""

    def __init__(
        self, query: FinalQuery, streams: Sequence[PunctuatedStream], candidates: Sequence[Sequence[Row]]
    ) -> None:
        """`candidates` has for each stream all tuples that might arrive, or those that stand for all others."""
        self._query, self._streams, self._candidates = query, streams[: query.streams], candidates
        self._reported: set[Group] = set()
        self._read_at: datetime | None = None

    def answer(self, now: datetime | None) -> dict[Group, tuple[int, int]]:
        """For each group of the answer at NOW, the number of its rows, and the sum of `v` of their last tuple."""
        if now is None:
            return {}
        query = self._query
        joined = [rows for rows in self._joined() if query.contains(rows, now if query.sliding else None)]
        possible = self._possible_groups()
        return {
            group: values
            for group, values in self._groups(joined).items()
            if self._is_over(group, now) or group not in possible
        }

    def changes(self, now: datetime | None) -> dict[Group, tuple[int, int]]:
        """The groups that became final since the last call."""
        if now is None:
            return {}
        joined = [rows for rows in self._joined() if self._query.contains(rows)]
        possible = self._possible_groups()
        groups = {
            group: values
            for group, values in self._groups(joined).items()
            if group not in self._reported
            and (self._is_over(group, now) or group not in possible)
            and not self._is_over(group, self._read_at)
        }
        self._reported |= groups.keys()
        self._read_at = now
        return groups

    def _is_over(self, group: Group, now: datetime | None) -> bool:
        """Whether the step of a group is over, also for tuples as late as declared."""
        steps, lateness = self._query.steps, self._streams[0].lateness or timedelta(0)
        return steps is not None and now is not None and bool(group[-1] + steps + lateness <= now)

    def _possible_groups(self) -> Set[Group]:
        """The groups that later tuples may join."""
        return self._groups([rows for rows in self._possible() if self._query.contains(rows)]).keys()

    def _joined(self) -> Iterator[Sequence[Row]]:
        """All rows so far."""
        for rows in product(*(stream.accepted for stream in self._streams)):
            if self._query.condition(*rows):
                yield rows

    def _possible(self) -> Iterator[Sequence[Row]]:
        """All rows that later tuples might make, with each other and with those so far."""
        sides = [
            [
                *((row, False) for row in stream.accepted),
                *((row, True) for row in candidates if stream.would_accept(row)),
            ]
            for stream, candidates in zip(self._streams, self._candidates, strict=False)
        ]
        for chosen in product(*sides):
            rows = [row for row, _ in chosen]
            if any(is_later for _, is_later in chosen) and self._query.condition(*rows):
                yield rows

    def _groups(self, joined: Sequence[Sequence[Row]]) -> dict[Group, tuple[int, int]]:
        groups: dict[Group, tuple[int, int]] = {}
        for rows in joined:
            group = self._query.key(*rows)
            if self._query.steps is not None:
                start = _start(rows[0]["ts"], self._query.steps)
                if not self._has_step(start, self._query.steps):
                    continue
                group = (*group, start)
            count, total = groups.get(group, (0, 0))
            groups[group] = count + 1, total + rows[-1]["v"]
        return groups

    def _has_step(self, start: datetime, length: timedelta) -> bool:
        query = self._query
        is_late = query.end is not None and start + length > query.end + timedelta(microseconds=1)
        return not is_late and (query.begin is None or start >= query.begin)


def _start(moment: datetime, length: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return epoch + (moment - epoch) // length * length
