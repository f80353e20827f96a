"""Matches of a template: which new tuples satisfy which of its queries, all queries at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.language.template import PARAMETER
from tureen.pot.members import Members
from tureen.pot.position import Position
from tureen.query import Query
from tureen.results.changes import News
from tureen.results.finish import Finish
from tureen.results.pairing import Pairing


@dataclass(frozen=True)
class TemplateRule:
    """What all queries of a template are, with columns in the place of their parameters."""

    stream_id: int
    query: Query
    pairing: Callable[[Members], Pairing]

    @cached_property
    def finish(self) -> Finish:
        """The last step of the queries."""
        return Finish(self.query)

    @property
    def columns(self) -> list[str]:
        """The stream's columns that the rows are made of."""
        return [name for name in self.query.columns if not name.startswith(PARAMETER)]

    def with_values(self, rows: pa.Table, members: Members, numbers: npt.NDArray[np.int64]) -> pa.Table:
        """Rows with the values of the parameters that stand in the select list, each of its query."""
        used = [name for name in self.query.columns if name.startswith(PARAMETER)]
        if used:
            values = members.take([name.removeprefix(PARAMETER) for name in used], numbers)
            for name, column in zip(used, values.columns, strict=True):
                rows = rows.append_column(name, column)
        return rows


@dataclass(frozen=True)
class Matches:
    """New rows with the numbers of the queries they satisfy, in order of arrival and then of the number."""

    news: News
    numbers: npt.NDArray[np.int64]
    labels: Sequence[Any] = field(default=())
    """The label of each of these queries."""

    def __len__(self) -> int:
        """How many."""
        return len(self.numbers)

    def position(self, place: int | None = None) -> str:
        """Where to go on after the match at that place, or after all of them."""
        if place is None or place + 1 == len(self) or self.news.ids[place] != self.news.ids[place + 1]:
            return self.news.position(place)
        return self.news.position_at(int(self.news.ids[place]), int(self.numbers[place]) + 1)


def matches(news: News, pairing: Pairing, members: Members, since: Position | None) -> Matches:
    """The queries that each new row satisfies, but for those that are gone; a row appears once for each of them.

    A query that was added is matched with the tuples that came after it: whoever follows slowly is told the same as
    whoever follows at once.
    """
    at, numbers = pairing.pairs(news.rows)
    left = news.ids[at] >= members.first_ids(numbers)
    if len(members.gone):
        left &= ~np.isin(numbers, members.gone)
    if since is not None and since.member:
        # The first tuple was given to some of the queries already.
        left &= (news.ids[at] != since.ids) | (numbers >= since.member)
    at, numbers = at[left], numbers[left]
    found = replace(news, rows=news.rows.take(pa.array(at)), ids=news.ids[at])
    return Matches(found, numbers, members.labels(numbers))
