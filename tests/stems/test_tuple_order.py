"""The order of joined tuples equals that of sorting by all columns."""

from __future__ import annotations

import numpy as np
import pytest

from tureen.stems.tuple_order import order_by_time


@pytest.mark.parametrize("distinct", [1, 2, 5, 1000, 20_000])
@pytest.mark.parametrize("size", [0, 1, 2, 50, 3000])
def test_order_equals_a_sort_by_all_columns(size: int, distinct: int) -> None:
    random = np.random.default_rng(size + distinct)
    for columns in (1, 2, 3):
        times = random.integers(0, distinct, size)
        ids = [random.integers(0, 40, size) for _ in range(columns)]
        expected = np.lexsort((*reversed(ids), times))
        order = order_by_time(times, ids)
        rows = np.stack([times, *ids])
        assert np.array_equal(rows[:, np.arange(size) if order is None else order], rows[:, expected])
        in_order = rows[:, expected]
        assert order_by_time(in_order[0], list(in_order[1:])) is None
