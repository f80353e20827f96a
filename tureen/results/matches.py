"""Matches of a template: which new tuples satisfy which of its queries, all queries at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import LimitExceeded, QueryFailed
from tureen.language.templates.template import PARAMETER
from tureen.pot.members import Members
from tureen.pot.position import Position
from tureen.query import Query
from tureen.results.changes import News
from tureen.results.finish import Finish
from tureen.results.pairing import MOST_RAISING, Numbers, Pairing


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


def finished(rule: TemplateRule, found: Matches, members: Members) -> Matches:
    """Matches with the columns of the select list; a query that raises there has none, and does not stop the others."""
    rows = rule.with_values(found.news.rows, members, found.numbers)
    try:
        done = rule.finish(rows)
    except LimitExceeded:
        raise
    except QueryFailed:
        raising = _raising(rule, rows, found.numbers, np.unique(found.numbers), [MOST_RAISING])
        left = ~np.isin(found.numbers, raising)
        done = rule.finish(rows.filter(pa.array(left)))
        numbers = found.numbers[left]
        found = Matches(replace(found.news, ids=found.news.ids[left]), numbers, members.labels(numbers))
    return replace(found, news=replace(found.news, rows=done))


def _raising(rule: TemplateRule, rows: pa.Table, numbers: Numbers, some: Numbers, patience: list[int]) -> Numbers:
    """Those of some queries that raise on one of their rows, found by halving."""
    try:
        rule.finish(rows.filter(pa.array(np.isin(numbers, some))))
    except LimitExceeded:
        raise
    except QueryFailed:
        if len(some) > 1:
            halves = (some[: len(some) // 2], some[len(some) // 2 :])
            return np.concatenate([_raising(rule, rows, numbers, half, patience) for half in halves])
        patience[0] -= 1
        if patience[0] < 0:
            raise
        return some
    return some[:0]
