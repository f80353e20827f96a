"""Aggregates of DISTINCT values: groups by key and value, put together by key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.aggregates.finals import column_of
from tureen.aggregates.groups import Groups
from tureen.aggregates.panes import changes
from tureen.aggregates.plan import Distinct, Plan
from tureen.aggregates.strip import Columns, Entries, fold_entries, fold_hits, scratch_for


def put_together(
    plan: Plan, distinct: Distinct, groups: Groups, entries: Entries
) -> tuple[Groups, Entries, list[pa.Array]]:
    """Groups by the query's keys alone: their states, and the aggregates of the values that each had.

    Every entry is of another value within its key, so that an aggregate over entries is one of DISTINCT values.
    """
    entries = entries.take(np.argsort(entries.places, kind="stable"))
    columns = groups.columns(entries.codes)
    outer = len(columns) - len(distinct.values)
    together = Groups([key.type for key in plan.keys[:outer]])
    codes = together.codes(columns[:outer], len(entries.codes))
    starts = changes(entries.places)
    places = entries.places[starts[:-1]]
    size = max(len(together), 1)
    _, states = fold_entries(plan, entries._replace(codes=codes), starts, places, scratch_for(plan, size))
    measured = Columns(distinct.plan.measures, [_value(columns[outer:])] * len(distinct.plan.measures))
    _, found = fold_hits(distinct.plan, measured, codes, starts, places, scratch_for(distinct.plan, size))
    recipes = [recipe for recipe in distinct.plan.recipes if recipe is not None]
    return together, states, [column_of(recipe, found.ints, found.floats) for recipe in recipes]


def _value(columns: list[pa.Array]) -> pa.Array:
    """The value that aggregates look at; of several together all that counts is whether one is NULL."""
    if len(columns) == 1:
        return columns[0]
    present = columns[0].is_valid()
    for column in columns[1:]:
        present = pc.and_(present, column.is_valid())
    return pc.if_else(present, True, pa.scalar(None, pa.bool_()))
