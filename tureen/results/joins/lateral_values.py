"""The values of lateral subqueries: aggregates of the partners of each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tureen.aggregates.expression_values import with_now
from tureen.join import Field
from tureen.joining.join_input import Flags, Numbers, take_or_null
from tureen.keys import KeyColumns
from tureen.query import block_column, key_name
from tureen.results.joins.join_ready import OF_ROW, ReadyLateral, several_rows
from tureen.results.rows.grouped import groups_of_rows


class LateralValues:
    """An input of a join: see `tureen.joining.join_input.LateralInput`."""

    times = None

    def __init__(self, ready: ReadyLateral, now: int) -> None:
        """No rows yet; `now` is the NOW of the invocation."""
        self._ready, self._now = ready, now
        self._values: pa.Array = pa.nulls(0)

    @property
    def fields(self) -> Sequence[Field]:
        """The columns of the partners that values are computed from."""
        return self._ready.fields

    @property
    def depends_on_order(self) -> bool:
        """Whether a value depends on the order of partners."""
        return self._ready.depends_on_order

    def compute(self, partners: pa.Table, of_rows: Numbers, rows: int) -> None:
        """Compute the value of each row from its partners."""
        if self._ready.is_scalar and len(of_rows) and (most := int(np.bincount(of_rows).max())) > 1:
            raise several_rows(most)
        partners = self._with_now(partners.append_column(OF_ROW, pa.array(of_rows)))
        groups = groups_of_rows(self._ready.by_row, partners, np.zeros(len(of_rows), np.int64), None)
        nothing = groups_of_rows(self._ready.of_none, partners.slice(0, 0), np.empty(0, np.int64), None)
        computed, of_none = (self._ready.finish(self._with_now(table)).column(0) for table in (groups, nothing))
        # A row without partners has the last value.
        indexes = np.full(rows, len(computed))
        indexes[groups.column(key_name(0)).to_numpy()] = np.arange(len(computed))
        values = pa.concat_arrays([*computed.chunks, *of_none.chunks])
        self._values = values.take(pa.array(indexes))

    def _with_now(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        return with_now(rows, self._now) if self._ready.uses_now else rows

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._values)

    def column(self, name: str) -> pa.Array:
        """The values."""
        assert name == block_column(0)
        return self._values

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """The values of some rows."""
        return [take_or_null(self.column(name), rows) for name in names]

    @property
    def ids(self) -> Numbers:
        """Values are no tuples: they do not affect the order of joined rows."""
        return np.zeros(len(self), np.int64)

    def times_at(self, rows: Numbers) -> None:
        """None: they have no time."""

    def ids_at(self, rows: Numbers) -> Numbers:
        """See `ids`."""
        return np.zeros(len(rows), np.int64)

    def may_probe(self, keys: int) -> bool:  # noqa: ARG002
        """No."""
        return False

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> None:
        """None: there is no index."""
