"""Increments: the tuples of a frame as partial aggregates, one row for each pane and group that they reach.

The id of a row is the largest id of its tuples, so that ids ascend and no two rows have the same. Rows of different
frames stand for different tuples: a frame begins where the one before it ended.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.abstract_clock import instants
from tureen.evaluation.duck import run
from tureen.federation.flow import FlowSelection
from tureen.federation.frame import FlowFrame, flow_schema
from tureen.schema import HOME_ID, Kind, Schema
from tureen.sharing.partial_rows import FIRST_ID, SUM_DIGITS, column_sql, key_names, partial_name
from tureen.sharing.properties import Aggregation, PartialAggregate

EXACT_SUM = 1 << 53
"""Integers up to this magnitude are exact as doubles, also the sum of some that have it together."""

_PANE = "_pane"


class Increments:
    """Computes the partial aggregates of one flow."""

    def __init__(self, flow: FlowSelection, schema: Schema) -> None:
        """Compute them from tuples of a stream with that schema."""
        assert flow.aggregation is not None
        self._aggregation: Aggregation = flow.aggregation
        self._schema = schema
        self._rows = flow_schema(schema, flow.columns, flow.partials)
        self._keys = [_PANE, *flow.aggregation.keys]
        self._items = self._select_list(flow)
        self._limits = self._limit_list()

    def of(self, frame: FlowFrame, first: int) -> FlowFrame:
        """The frame with partial aggregates of its tuples, none of which has an id before `first`."""
        if frame.rows is None:
            return frame
        tuples = pa.Table.from_batches([frame.rows])
        tuples = tuples.append_column(_PANE, pa.array(self._panes(tuples)))
        keys = self._keys if self._fits(tuples) else [*self._keys, column_sql(HOME_ID)]
        sql = f"SELECT {self._items} FROM tuples GROUP BY {', '.join(keys)} ORDER BY max({column_sql(HOME_ID)})"
        rows = run(sql, {"tuples": tuples}, "partial aggregates")
        rows = rows.append_column(FIRST_ID, pa.array(np.full(len(rows), first)))
        rows = rows.select(self._rows.names).cast(self._rows).combine_chunks()
        return replace(frame, rows=rows.to_batches()[0])

    def _panes(self, tuples: pa.Table) -> npt.NDArray[np.int64]:
        """The number of each tuple's pane."""
        assert self._schema.time is not None
        times = tuples.column(self._schema.time)
        if self._schema.has_abstract_clock:
            times = instants(times)
        steps = self._aggregation.steps
        micros: npt.NDArray[np.int64] = times.cast(pa.int64()).to_numpy()
        return (micros - steps.origin) // steps.width

    def _select_list(self, flow: FlowSelection) -> str:
        items = {name: column_sql(name) for name in flow.columns}
        time = self._schema.time
        if time is not None and time not in key_names(self._aggregation):
            items[time] = f"min({column_sql(time)})"
        types = {column.name: column.type.sql for column in flow.partials}
        for partial in self._aggregation.partials:
            name = partial_name(partial)
            items[name] = f"CAST({_call(partial)} AS {types[name]})" if partial.function == "sum" else _call(partial)
        items[HOME_ID] = f"max({column_sql(HOME_ID)})"
        return ", ".join(f"{sql} AS {column_sql(name)}" for name, sql in items.items())

    def _limit_list(self) -> list[str]:
        """For each sum that may be too large for its column, whether that of a group is not."""
        limits = []
        for partial in sorted(self._aggregation.partials):
            column = self._schema.find(partial_name(partial).partition(":")[2]) if partial.function == "sum" else None
            if column is not None and column.type.kind is Kind.BIGINT:
                limits.append(f"coalesce(sum(abs(CAST({partial.argument} AS HUGEINT))), 0) <= {EXACT_SUM}")
            elif column is not None and column.type.kind is Kind.DECIMAL:
                limits.append(f"coalesce(abs(sum({partial.argument})), 0) < {10 ** (SUM_DIGITS - column.type.scale)}")
            # The tuples of a frame are too few for sums of other integers.
        return limits

    def _fits(self, tuples: pa.Table) -> bool:
        """Whether all sums are exact in their columns; otherwise tuples are sent one by one."""
        if not self._limits:
            return True
        sql = f"SELECT {' AND '.join(self._limits)} AS fits FROM tuples GROUP BY {', '.join(self._keys)}"
        fits = run(f"SELECT bool_and(fits) FROM ({sql})", {"tuples": tuples}, "partial aggregates")
        return bool(fits.column(0)[0].as_py())


def _call(partial: PartialAggregate) -> str:
    return f"{partial.function}({partial.argument or '*'})"
