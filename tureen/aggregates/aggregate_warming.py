"""Loading all compiled loops of aggregates in advance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.panes import merged, pane_entries, panes_at, step_entries
from tureen.aggregates.plan import plan_of
from tureen.aggregates.selected_kernels import combine_selected
from tureen.aggregates.strip import SMALLEST_CHUNK, make_strip, scratch_for
from tureen.query import Aggregate, Expression, Grouping
from tureen.schema import Kind, Type


def warm_up() -> None:
    """Run every compiled loop once, so that the first invocation of an aggregate does not wait for compilation."""
    kind = Type(Kind.DOUBLE)
    value = Expression("value", kind, ("value",), "value")
    plan = plan_of(Grouping((), (Aggregate("avg", (value,), kind),)))
    rows = kernels.FAN * SMALLEST_CHUNK
    strip = make_strip(plan, None, np.zeros(rows, np.int32), [pa.nulls(rows, pa.float64())] * len(plan.measures), 1)
    scratch = scratch_for(plan, 1)
    bounds = np.array([0], np.int64), np.array([rows], np.int64)
    table = np.stack([strip.entry])
    kernels.combine(plan.program, table, *bounds, scratch)
    scratch.mark[0] = 0
    combine_selected(plan.program, table, *bounds, np.ones(1, np.uint8), scratch)
    scratch.mark[0] = 0
    panes = panes_at(strip, strip.by_row, strip.hit_rows, (rows, 0), scratch)
    entries = merged(plan, [pane_entries(strip, panes, 0, rows, scratch)], scratch)
    step_entries(plan, entries, np.zeros(1, np.int64), 2, 1, scratch)
