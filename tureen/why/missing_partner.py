"""Why no joined row has a tuple: the side of the join in which it has no partner, and how near the nearest was.

A tuple's rows are followed through the join tree. The lowest join that loses all of them is the one that is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.expression_values import evaluate, with_now
from tureen.errors import LimitExceeded, QueryFailed
from tureen.join import (
    Field,
    InnerJoin,
    Join,
    JoinCompare,
    JoinFactor,
    JoinKind,
    JoinTree,
    LateralJoin,
    field_name,
    leaves,
)
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.row_conditions import inputs_of
from tureen.query import Expression
from tureen.schema import Kind, Type
from tureen.why.explanation import Reason, value_text
from tureen.why.one_input import truth_name
from tureen.why.shown_values import ShownQuery, duration_text, factor_sentence, failed_factor


@dataclass(frozen=True)
class _Failed:
    """A factor that is not true for one joined row."""

    factor: str
    truth: str
    values: dict[str, object]


class _Distance(NamedTuple):
    """The difference of two numbers, or of two times in seconds; and its text."""

    size: float
    text: str


@dataclass(frozen=True)
class PartnerSearch:
    """Explains why the joined rows of an evaluation do not have a row of one input."""

    evaluation: JoinEvaluation
    shown: ShownQuery
    input: int
    row: int
    """The number of the row among those of its input."""
    why_empty: Callable[[int], str]
    """Why an input has no rows."""

    def rows(self, tree: JoinTree) -> JoinedRows:
        """The joined rows of a tree that have the row."""
        joined = self.evaluation.rows(tree)
        return joined.take(np.flatnonzero(joined.rows[self.input] == self.row))

    def reasons(self, tree: JoinTree) -> list[Reason]:
        """Why no joined row of a tree has the row."""
        match tree:
            case InnerJoin(sides, factors):
                own = next(side for side in sides if self.input in leaves(side))
                others = [side for side in sides if side is not own]
                return self._below(own) or self._inner(self.rows(own), others, factors)
            case Join(_, left, right):
                is_left = self.input in leaves(left)
                below = self._below(left if is_left else right)
                return below or (self._of_left(tree) if is_left else self._of_right(tree))
            case LateralJoin(left):
                return self._below(left)
            case _:
                return []

    def _below(self, side: JoinTree) -> list[Reason]:
        return [] if len(self.rows(side)) else self.reasons(side)

    def _inner(self, own: JoinedRows, others: Sequence[JoinTree], factors: Sequence[JoinFactor]) -> list[Reason]:
        """Side by side; first each side alone, so that the reason concerns as few inputs as possible."""
        failed = self._own_factors(own, factors)
        if failed:
            return failed
        for other in others:
            right = self._side(other, factors)
            if not len(self.evaluation.pairs(own, right, _between(own, right, factors))):
                return [self._no_partner(own, other, right, _between(own, right, factors))]
        joined, done, remaining = own, set(_within(own, factors)), list(others)
        while remaining:
            # The side with the most conditions first, so that few combinations remain.
            other = max(remaining, key=lambda side: len(_between(joined, self.evaluation.rows(side), factors)))
            remaining.remove(other)
            right = self._side(other, factors)
            between = [factor for factor in _between(joined, right, factors) if factor not in done]
            done.update(between)
            pairs = self.evaluation.pairs(joined, right, between)
            if not len(pairs):
                return [self._no_partner(joined, other, right, between)]
            joined = pairs
        return self._own_factors(joined, [factor for factor in factors if factor not in done])

    def _side(self, tree: JoinTree, factors: Sequence[JoinFactor]) -> JoinedRows:
        rows = self.evaluation.rows(tree)
        return self.evaluation.where(rows, [factor for factor in _within(rows, factors) if inputs_of(factor)])

    def _own_factors(self, rows: JoinedRows, factors: Sequence[JoinFactor]) -> list[Reason]:
        """The factors over one side that exclude all of its rows."""
        own = _within(rows, factors)
        if not own or len(self.evaluation.where(rows, own)):
            return []
        return [failed_factor(failed.factor, failed.truth, failed.values) for failed in self._failed(rows, 0, own)]

    def _of_left(self, join: Join) -> list[Reason]:
        """Why a join has no row of its left side."""
        left, right = self.rows(join.left), self.evaluation.rows(join.right)
        factors = join.factors if join.latest is None else (*join.factors, join.latest)
        if join.kind is not JoinKind.ANTI:
            return self._own_factors(left, join.factors) or [
                self._no_partner(left, join.right, self._side(join.right, factors), _between(left, right, factors))
            ]
        pairs = self.evaluation.where(self.evaluation.pairs(left, right, _between(left, right, factors)), factors)
        name = self.shown.names(right.rows)
        partner = self._row_of(pairs, 0, right)
        shown = ", ".join(map(self.shown.join_factor, factors)) or "any row"
        text = f"it has a partner in {name}, which NOT EXISTS or NOT IN excludes: {shown}"
        return [Reason("partner", text, input=name, nearest=partner, values=self._values(pairs, 0, factors))]

    def _of_right(self, join: Join) -> list[Reason]:
        """Why a join has no row of its right side."""
        right = self.rows(join.right)
        factors = join.factors if join.latest is None else (*join.factors, join.latest)
        failed = self._own_factors(right, join.factors)
        if failed:
            return failed
        left = self._side(join.left, factors)
        between = _between(right, left, factors)
        pairs = self.evaluation.pairs(right, left, between)
        if not len(pairs) or join.latest is None:
            return [self._no_partner(right, join.left, left, between)]
        return [self._has_closer(join, join.latest, pairs)]

    def _has_closer(self, join: Join, latest: JoinCompare, pairs: JoinedRows) -> Reason:
        """The reason that each partner of a right row of an ASOF join has a closer one."""
        joined = self.evaluation.rows(join)
        same = np.logical_and.reduce(
            [joined.rows[number] == pairs.rows[number][0] for number in self.evaluation.rows(join.left).rows]
        )
        closer = joined.take(np.flatnonzero(same))
        name = self.shown.names(self.evaluation.rows(join.right).rows)
        value = value_text(self.evaluation.values(latest.right, closer)[0].as_py())
        return Reason(
            "closer partner",
            f"its partners in {self.shown.names(self.evaluation.rows(join.left).rows)} have a closer one in {name}, "
            f"such as {self.shown.label(latest.right)} = {value}",
            self.shown.join_factor(latest),
            values=self._values(pairs, 0, [latest]),
            input=name,
            nearest=self._row_of(closer, 0, self.evaluation.rows(join.right)),
        )

    def _no_partner(self, left: JoinedRows, tree: JoinTree, right: JoinedRows, factors: Sequence[JoinFactor]) -> Reason:
        """The reason that no row of `right` fits, with the nearest one for the first row of `left`."""
        name = self.shown.names(leaves(tree))
        if not len(right):
            because = "no row satisfies its conditions"
            if isinstance(tree, int) and not len(self.evaluation.inputs[tree]):
                because = self.why_empty(tree)
            return Reason("no partner", f"no partner in {name}: {because}", input=name)
        pairs = left.take(np.zeros(len(right), np.int64)).beside(right)
        factors = sorted(factors, key=_strictness)
        for factor in factors:
            kept = self._kept(pairs, factor)
            if kept is None or not len(kept):
                break
            pairs = kept
        index, distance = self._nearest(pairs, factor)
        failed = self._failed(pairs, index, factors)
        sentences = " and ".join(factor_sentence(entry.factor, entry.truth, entry.values) for entry in failed)
        away = "" if distance is None else f" {distance.text} away,"
        others = "" if len(left.rows) == 1 else f" for {self.shown.names(left.rows)}"
        return Reason(
            "no partner",
            f"no partner in {name}{others}: for the nearest of its {len(right):,} rows,{away} {sentences}",
            failed[0].factor,
            failed[0].truth,
            {label: value for entry in failed for label, value in entry.values.items()},
            name,
            self._row_of(pairs, index, right),
            None if distance is None else distance.size,
        )

    def _kept(self, pairs: JoinedRows, factor: JoinFactor) -> JoinedRows | None:
        """The pairs that satisfy a factor; None if it raises an error."""
        try:
            return self.evaluation.where(pairs, [factor])
        except LimitExceeded:
            raise
        except QueryFailed:
            return None

    def _nearest(self, pairs: JoinedRows, factor: JoinFactor) -> tuple[int, _Distance | None]:
        """The pair that comes nearest to satisfying a factor: for numbers and times by distance, else the last."""
        last = len(pairs) - 1
        if not isinstance(factor, JoinCompare) or factor.domain == "string":
            return last, None
        sides = [self.evaluation.values(column, pairs) for column in (factor.left, factor.right)]
        left, right = map(_numbers, sides)
        with np.errstate(invalid="ignore"):
            distances = np.abs(left - (right + float(factor.offset)))
        if np.isnan(distances).all():
            return last, None
        index = int(np.nanargmin(distances))
        size = float(distances[index])
        if pa.types.is_timestamp(sides[0].type):
            return index, _Distance(size / 1_000_000, duration_text(size))
        return index, _Distance(size, f"{size:g}")

    def _failed(self, rows: JoinedRows, index: int, factors: Sequence[JoinFactor]) -> list[_Failed]:
        """The factors that are not true for one joined row."""
        return list(self._failing(rows.take(np.array([index])), factors))

    def _failing(self, row: JoinedRows, factors: Sequence[JoinFactor]) -> Iterator[_Failed]:
        for factor in factors:
            try:
                truth = truth_name(self._truth(row, factor))
            except LimitExceeded:
                raise
            except QueryFailed:
                truth = "error"
            if truth != "true":
                yield _Failed(self.shown.join_factor(factor), truth, self._values(row, 0, [factor]))

    def _truth(self, row: JoinedRows, factor: JoinFactor) -> bool | None:
        if isinstance(factor, JoinCompare):
            if any(self.evaluation.values(column, row).null_count for column in factor.fields):
                return None
            return bool(len(self.evaluation.where(row, [factor])))
        columns = {field_name(column): self.evaluation.values(column, row) for column in dict.fromkeys(factor.fields)}
        table = with_now(pa.table(columns or {"_none": pa.nulls(1)}), self.evaluation.now)
        condition = Expression(factor.sql, Type(Kind.BOOLEAN), tuple(table.column_names))
        truth: bool | None = evaluate([condition], table)[0][0].as_py()
        return truth

    def _values(self, rows: JoinedRows, index: int, factors: Sequence[JoinFactor]) -> dict[str, object]:
        """The values that factors read from one joined row."""
        columns = dict.fromkeys(column for factor in factors for column in factor.fields)
        row = rows.take(np.array([index]))
        return {self.shown.label(column): self.evaluation.values(column, row)[0].as_py() for column in columns}

    def _row_of(self, rows: JoinedRows, index: int, side: JoinedRows) -> dict[str, object]:
        """All columns of one side of one joined row."""
        columns = [Field(number, name) for number in sorted(side.rows) for name in self.shown.inputs[number].labels]
        row = rows.take(np.array([index]))
        return {self.shown.label(column): self.evaluation.values(column, row)[0].as_py() for column in columns}


def _within(rows: JoinedRows, factors: Sequence[JoinFactor]) -> list[JoinFactor]:
    """The factors that concern one side alone."""
    return [factor for factor in factors if inputs_of(factor) <= rows.rows.keys()]


def _between(left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]) -> list[JoinFactor]:
    """The factors that concern two sides and no other."""
    own = [*_within(left, factors), *_within(right, factors)]
    known = left.rows.keys() | right.rows.keys()
    return [factor for factor in factors if inputs_of(factor) <= known and factor not in own]


def _strictness(factor: JoinFactor) -> int:
    """The order in which factors narrow the candidates: what has no distance first, conditions in SQL last."""
    if not isinstance(factor, JoinCompare):
        return 4
    if factor.op == "=":
        return 0 if factor.domain == "string" else 1
    return 3 if factor.op == "<>" else 2


def _numbers(column: pa.Array) -> npt.NDArray[np.float64]:
    """Numbers, dates and times as floats; NULL is NaN."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    numbers: npt.NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers
