"""Matches of a template: which new tuples satisfy which of its queries, for all queries at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import LimitExceeded, QueryFailed
from tureen.join import Field, field_name
from tureen.position import Mark, QueryKey
from tureen.pot.members import Members
from tureen.query import VALUES_INPUT, Query
from tureen.results.changes import NewRows
from tureen.results.finish import Finish
from tureen.results.pairing import MOST_RAISING, Numbers, Pairing


@dataclass(frozen=True)
class TemplateRule:
    """What all queries of a template have in common: a join of a stream with VALUES."""

    stream_id: int
    query: Query
    pairing: Callable[[Members], Pairing]

    @cached_property
    def finish(self) -> Finish:
        """The last step of the queries."""
        return Finish(self.query)

    @property
    def columns(self) -> Sequence[str]:
        """The stream's columns that the rows are computed from."""
        return self.query.columns_of(0)

    def with_values(self, rows: pa.Table, members: Members, numbers: npt.NDArray[np.int64]) -> pa.Table:
        """Rows with the parameters of their queries that the select list uses."""
        parameters = self.query.columns_of(VALUES_INPUT)
        if parameters:
            values = members.take(parameters, numbers)
            for parameter, column in zip(parameters, values.columns, strict=True):
                rows = rows.append_column(field_name(Field(VALUES_INPUT, parameter)), column)
        return rows


@dataclass(frozen=True)
class TemplateMatches:
    """New rows with the numbers of the queries they satisfy, in order of arrival and then of the number."""

    template: str
    new: NewRows
    numbers: npt.NDArray[np.int64]
    labels: Sequence[Any] = field(default=())
    """The label of each of these queries."""

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.numbers)

    def position(self, index: int | None = None) -> str:
        """The position after the match of that index, or after all of them."""
        ids = self.new.ids
        if index is None or index + 1 == len(self) or ids[index] != ids[index + 1]:
            return self.new.position(index)
        return self.new.position_at(Mark(int(ids[index]), QueryKey(self.template, int(self.numbers[index]))))


def match_template(new: NewRows, pairing: Pairing, members: Members, mark: Mark) -> TemplateMatches:
    """The queries that each new row satisfies, without those that are unregistered; a row appears once for each.

    A query that was added is matched with the tuples that came after it: a slow follower sees the same as a fast one.
    """
    rows, numbers = pairing.pairs(new.rows)
    remaining = new.ids[rows] >= members.first_ids(numbers)
    if len(members.gone):
        remaining &= ~np.isin(numbers, members.gone)
    if mark.after.number >= 0 and mark.after.handle in ("", members.template.id):
        # Changes of the first tuple were read for the queries up to that one.
        remaining &= (new.ids[rows] != mark.next_id) | (numbers > mark.after.number)
    rows, numbers = rows[remaining], numbers[remaining]
    matched = replace(new, rows=new.rows.take(pa.array(rows)), ids=new.ids[rows])
    return TemplateMatches(members.template.id, matched, numbers, members.labels(numbers))


def finish_matches(rule: TemplateRule, matches: TemplateMatches, members: Members) -> TemplateMatches:
    """Matches with the columns of the select list; a query that raises there has none, and does not stop the others."""
    rows = rule.with_values(matches.new.rows, members, matches.numbers)
    try:
        finished = rule.finish.each(rows)
    except LimitExceeded:
        raise
    except QueryFailed:
        raising = _raising(rule, rows, matches.numbers, np.unique(matches.numbers), [MOST_RAISING])
        remaining = ~np.isin(matches.numbers, raising)
        finished = rule.finish.each(rows.filter(pa.array(remaining)))
        numbers = matches.numbers[remaining]
        new = replace(matches.new, ids=matches.new.ids[remaining])
        matches = TemplateMatches(matches.template, new, numbers, members.labels(numbers))
    return replace(matches, new=replace(matches.new, rows=finished))


def _raising(rule: TemplateRule, rows: pa.Table, numbers: Numbers, suspects: Numbers, patience: list[int]) -> Numbers:
    """The suspect queries that raise on one of their rows, by bisection."""
    try:
        rule.finish.each(rows.filter(pa.array(np.isin(numbers, suspects))))
    except LimitExceeded:
        raise
    except QueryFailed:
        if len(suspects) > 1:
            halves = (suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :])
            return np.concatenate([_raising(rule, rows, numbers, half, patience) for half in halves])
        patience[0] -= 1
        if patience[0] < 0:
            raise
        return suspects
    return suspects[:0]
