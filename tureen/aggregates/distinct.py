"""Aggregates of DISTINCT values: groups by key and value, combined by key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.aggregates.finals import column_of
from tureen.aggregates.groups import GroupNumbers
from tureen.aggregates.panes import changes
from tureen.aggregates.plan import Distinct, Plan
from tureen.aggregates.strip import Columns, Entries, fold_entries, fold_hits, scratch_for


def combine_distinct(
    plan: Plan, distinct: Distinct, groups: GroupNumbers, entries: Entries
) -> tuple[GroupNumbers, Entries, list[pa.Array]]:
    """Combine groups by the query's keys only: their states, and the aggregates of their DISTINCT values.

    Within a key every entry has a different value, so an aggregate over entries is one over DISTINCT values.
    """
    entries = entries.take(np.argsort(entries.intervals, kind="stable"))
    columns = groups.columns(entries.codes)
    outer = len(columns) - len(distinct.values)
    outer_groups = GroupNumbers([key.type for key in plan.keys[:outer]])
    codes = outer_groups.codes(columns[:outer], len(entries.codes))
    starts = changes(entries.intervals)
    intervals = entries.intervals[starts[:-1]]
    size = max(len(outer_groups), 1)
    _, states = fold_entries(plan, entries._replace(codes=codes), starts, intervals, scratch_for(plan, size))
    measured = Columns(distinct.plan.measures, [_value(columns[outer:])] * len(distinct.plan.measures))
    _, values = fold_hits(distinct.plan, measured, codes, starts, intervals, scratch_for(distinct.plan, size))
    recipes = [recipe for recipe in distinct.plan.recipes if recipe is not None]
    return outer_groups, states, [column_of(recipe, values.ints, values.floats) for recipe in recipes]


def _value(columns: list[pa.Array]) -> pa.Array:
    """The value to aggregate; of several values, only whether any of them is NULL."""
    if len(columns) == 1:
        return columns[0]
    present = columns[0].is_valid()
    for column in columns[1:]:
        present = pc.and_(present, column.is_valid())
    return pc.if_else(present, True, pa.scalar(None, pa.bool_()))
