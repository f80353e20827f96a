"""Matches of a template: which new rows satisfy which of its queries, for all queries at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import LimitExceeded, QueryFailed
from tureen.position import QueryKey
from tureen.pot.members import Members
from tureen.results.changes.changes import NewRows
from tureen.results.changes.join_changes import NewJoinedRows
from tureen.results.templates.pairing import MOST_RAISING, Numbers, Pairing
from tureen.results.templates.template_rule import TemplateRule


@dataclass(frozen=True)
class TemplateMatches:
    """New rows with the numbers of the queries they satisfy, in order of arrival and then of the number."""

    template: str
    new: NewRows | NewJoinedRows
    """The new rows, whether they satisfy a query or not."""
    rows: pa.Table
    """The row of each match."""
    indexes: npt.NDArray[np.int64]
    """Its index in `new`."""
    numbers: npt.NDArray[np.int64]
    labels: Sequence[Any] = field(default=())
    """The label of each of these queries."""

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.numbers)

    def position(self, index: int | None = None) -> str:
        """The position after the match of that index, or after all of them."""
        if index is None:
            return self.new.position()
        row = int(self.indexes[index])
        if index + 1 == len(self) or self.indexes[index + 1] != row:
            return self.new.position(row)
        return self.new.position_within(row, QueryKey(self.template, int(self.numbers[index])))


def match_template(new: NewRows | NewJoinedRows, pairing: Pairing, members: Members) -> TemplateMatches:
    """The queries that each new row satisfies, without those that are unregistered; a row appears once for each.

    A query that was added is matched with the rows that are new since then: a slow follower sees the same as a fast
    one.
    """
    template = members.template
    rows, numbers = pairing.pairs(new.rows)
    remaining = members.added_before(numbers, [new.tuple_ids(stream_id)[rows] for stream_id in template.stream_ids])
    if len(members.gone):
        remaining &= ~np.isin(numbers, members.gone)
    for row, after in new.read_before.items():
        if after.number >= 0 and after.handle in ("", template.id):
            remaining &= (rows != row) | (numbers > after.number)
    rows, numbers = rows[remaining], numbers[remaining]
    return TemplateMatches(template.id, new, new.rows.take(pa.array(rows)), rows, numbers, members.labels(numbers))


def finish_matches(rule: TemplateRule, matches: TemplateMatches, members: Members) -> TemplateMatches:
    """Matches with the columns of the select list; a query that raises there has none, and does not stop the others."""
    rows = rule.with_values(matches.rows, members, matches.numbers)
    try:
        finished = rule.finish.each(rows)
    except LimitExceeded:
        raise
    except QueryFailed:
        raising = _raising(rule, rows, matches.numbers, np.unique(matches.numbers), [MOST_RAISING])
        remaining = ~np.isin(matches.numbers, raising)
        finished = rule.finish.each(rows.filter(pa.array(remaining)))
        numbers, indexes = matches.numbers[remaining], matches.indexes[remaining]
        matches = replace(matches, indexes=indexes, numbers=numbers, labels=members.labels(numbers))
    return replace(matches, rows=finished)


def _raising(rule: TemplateRule, rows: pa.Table, numbers: Numbers, suspects: Numbers, patience: list[int]) -> Numbers:
    """The queries among the suspects that raise on one of their rows, found by bisection."""
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
