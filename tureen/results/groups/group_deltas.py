"""What changed between two moments in the groups of an answer, before HAVING and the select list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.aggregates.groups import GroupNumbers
from tureen.query import GROUPING_ID, STEP_END, STEP_START, Query, key_name
from tureen.schema import Kind, Type

ROUNDING = 1e-14
"""The relative difference up to which doubles are equal: the order of additions changes when runs are merged."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberedGroups:
    """Rows of groups, and the number of each group."""

    numbers: Numbers
    rows: pa.Table

    def take(self, selected: npt.NDArray[Any]) -> NumberedGroups:
        """The selected rows, by a mask or by their indexes."""
        indexes = np.flatnonzero(selected) if selected.dtype == np.bool_ else selected
        return NumberedGroups(self.numbers[indexes], self.rows.take(pa.array(indexes)))

    def contains(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """For each of some numbers, whether there is a row."""
        return np.isin(numbers, self.numbers)

    def at(self, numbers: Numbers) -> pa.Table:
        """The rows of numbers, in their order; NULLs where there is none."""
        order = np.argsort(self.numbers)
        places = np.searchsorted(self.numbers, numbers, sorter=order)
        present = self.contains(numbers)
        indexes = (
            np.where(present, order[np.where(present, places, 0)], 0)
            if len(order)
            else np.zeros(len(numbers), np.int64)
        )
        return self.rows.take(pa.array(indexes, mask=~present))

    def plus(self, others: NumberedGroups) -> NumberedGroups:
        """These rows and others."""
        if not len(others.numbers):
            return self
        if not len(self.numbers):
            return others
        return NumberedGroups(
            np.concatenate([self.numbers, others.numbers]), pa.concat_tables([self.rows, others.rows])
        )


@dataclass(frozen=True, eq=False)
class GroupDelta:
    """The groups that differ between two moments: as they were, if there were any tuples in them, and as they are."""

    before: NumberedGroups
    after: NumberedGroups

    @property
    def is_empty(self) -> bool:
        """Whether no group differs."""
        return not len(self.before.numbers) and not len(self.after.numbers)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.before.numbers) + len(self.after.numbers)

    def followed_by(self, later: GroupDelta) -> GroupDelta:
        """The difference between the first moment and the one of a later delta."""
        own = np.concatenate([self.before.numbers, self.after.numbers])
        others = np.concatenate([later.before.numbers, later.after.numbers])
        return GroupDelta(
            self.before.plus(later.before.take(~np.isin(later.before.numbers, own))),
            later.after.plus(self.after.take(~np.isin(self.after.numbers, others))),
        )


def composed(deltas: Sequence[GroupDelta]) -> GroupDelta:
    """Consecutive deltas as one."""
    first, *others = deltas
    for delta in others:
        first = first.followed_by(delta)
    return first


class GroupIdentity:
    """Numbers the groups of a query: by their keys, their step and their grouping set."""

    def __init__(self, query: Query) -> None:
        """Number the groups of that query."""
        grouping = query.grouping
        assert grouping is not None
        self.columns = [key_name(number) for number in range(len(grouping.keys))]
        types = [key.type for key in grouping.keys]
        if grouping.sets is not None:
            self.columns.append(GROUPING_ID)
            types.append(Type(Kind.BIGINT))
        if query.steps is not None:
            self.columns += [STEP_START, STEP_END]
            types += [Type(Kind.TIMESTAMP)] * 2
        self._types = types
        self._groups = GroupNumbers(types)

    def clear(self) -> None:
        """Start again without groups."""
        self._groups = GroupNumbers(self._types)

    def __len__(self) -> int:
        """The number of groups so far."""
        return len(self._groups)

    def numbered(self, rows: pa.Table) -> NumberedGroups:
        """Rows of groups with their numbers."""
        keys = [rows.column(name).combine_chunks() for name in self.columns]
        return NumberedGroups(self._groups.codes(keys, rows.num_rows).astype(np.int64), rows)


def difference(before: NumberedGroups, after: NumberedGroups) -> GroupDelta:
    """The groups that are in one of two answers only, or whose values differ by more than rounding."""
    is_same_before, is_same_after = same_rows(before, after, ROUNDING)
    return GroupDelta(before.take(~is_same_before), after.take(~is_same_after))


def same_rows(
    before: NumberedGroups, after: NumberedGroups, rounding: float = 0.0
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """For each row of two answers, whether the other answer has a row of this number with the same values."""
    in_before, in_after = np.zeros(len(before.numbers), np.bool_), np.zeros(len(after.numbers), np.bool_)
    _, first, second = np.intersect1d(before.numbers, after.numbers, assume_unique=True, return_indices=True)
    if len(first):
        left, right = before.rows.take(pa.array(first)), after.rows.take(pa.array(second))
        same = np.ones(len(first), np.bool_)
        for name in left.schema.names:
            same &= _same_values(left.column(name).combine_chunks(), right.column(name).combine_chunks(), rounding)
        in_before[first], in_after[second] = same, same
    return in_before, in_after


def _same_values(left: pa.Array, right: pa.Array, rounding: float) -> npt.NDArray[np.bool_]:
    """Where two columns have the same values; NULL is the same as NULL, and NaN as NaN."""
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([repr(first) == repr(second) for first, second in pairs], np.bool_)
    same: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(left, right), False).to_numpy(zero_copy_only=False)
    same = same | (_mask(left.is_null()) & _mask(right.is_null()))
    if pa.types.is_floating(left.type):
        first, second = (side.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) for side in (left, right))
        present = _mask(left.is_valid()) & _mask(right.is_valid())
        with np.errstate(invalid="ignore"):
            close = np.abs(first - second) <= rounding * np.maximum(np.abs(first), np.abs(second))
            close &= np.isfinite(first) & np.isfinite(second)
        same = same | (present & (close | (np.isnan(first) & np.isnan(second))))
    return same


def _mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return mask
