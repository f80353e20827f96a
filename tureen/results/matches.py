"""Matches of a template: which new tuples satisfy which of its queries, all queries at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.pot.position import Position
from tureen.results.changes import News
from tureen.results.pairing import Pairing


@dataclass(frozen=True)
class Matches:
    """New rows with the numbers of the queries they satisfy, in order of arrival and then of the number."""

    news: News
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """How many."""
        return len(self.numbers)

    def position(self, place: int | None = None) -> str:
        """Where to go on after the match at that place, or after all of them."""
        if place is None or place + 1 == len(self) or self.news.ids[place] != self.news.ids[place + 1]:
            return self.news.position(place)
        return self.news.position_at(int(self.news.ids[place]), int(self.numbers[place]) + 1)


def matches(news: News, pairing: Pairing, gone: npt.NDArray[np.int64], since: Position | None) -> Matches:
    """The queries that each new row satisfies, but for those that are gone; a row appears once for each of them."""
    at, numbers = pairing.pairs(news.rows)
    if len(gone):
        left = ~np.isin(numbers, gone)
        at, numbers = at[left], numbers[left]
    if since is not None and since.member:
        # The first tuple was given to some of the queries already.
        left = (news.ids[at] != since.ids) | (numbers >= since.member)
        at, numbers = at[left], numbers[left]
    return Matches(replace(news, rows=news.rows.take(pa.array(at)), ids=news.ids[at]), numbers)
