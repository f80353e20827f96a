"""The order of the rows of followed joins against Python's sorting."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.results.following.row_shape import RowOrder, RowShape
from tureen.results.rows.finish import Finish

STREAMS = (4, None, 2, 4)
"""The streams of four inputs: one stream occurs twice, and one input is a table."""
SINCE = {2: 3, 4: 2}
SHAPE = RowShape((0, 1, 2, 3), STREAMS, (), (), (), pa.schema([]), cast("Finish", None))
IDS = st.tuples(*([st.integers(0, 5)] * len(STREAMS)))


def sort_key(ids: tuple[int, ...]) -> tuple[int, ...]:
    """By the last stream of which a row has a new tuple, by the latest of these, then by all ids."""
    latest = {stream: max(ids[number] for number, each in enumerate(STREAMS) if each == stream) for stream in (2, 4)}
    part = 1 if latest[4] >= SINCE[4] else 0
    return (part, latest[4 if part else 2], *ids)


@example_settings(100)
@given(st.lists(st.tuples(IDS, st.integers(0, 2)), min_size=1, max_size=12), st.booleans(), st.booleans())
def test_rows_are_in_order(rows: list[tuple[tuple[int, ...], int]], is_sorted: bool, has_slots: bool) -> None:
    def key(row: tuple[tuple[int, ...], int]) -> Any:
        return ((row[1],) if has_slots else ()) + sort_key(row[0])

    rows = sorted(rows, key=key) if is_sorted else rows
    expected = sorted(rows, key=key)
    slots = np.array([slot for _, slot in rows]) if has_slots else None
    ids = np.array([ids for ids, _ in rows]).T
    order = RowOrder.of(SHAPE, ids, SINCE, slots)
    assert (order.order is None) == (rows == expected)
    in_order = order.table(pa.table({"ids": [row[0] for row in rows]}))
    assert [tuple(row) for row in in_order["ids"].to_pylist()] == [row[0] for row in expected]
    assert order.part_of.tolist() == [sort_key(row[0])[0] for row in expected]
    assert order.latest[2].tolist() == [row[0][2] for row in expected]
    assert order.latest[4].tolist() == [max(row[0][0], row[0][3]) for row in expected]
