"""Rows with equal values, against a dictionary."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tureen.joining.equal_rows import equal_rows

NAN = float("nan")


@pytest.mark.parametrize(
    ("columns", "sets"),
    [
        ([], [0, 0, 0, 0]),
        ([pa.array([1, 2, 1, None])], [0, 1, 0, 2]),
        ([pa.array(["a", None, None, "a"]), pa.array([1, 1, 1, 2])], [0, 1, 1, 2]),
        ([pa.array([0.0, -0.0, 0.0, NAN])], [0, 1, 0, 2]),
        ([pa.array([1.5, None, 1.5, None], pa.float32()), pa.array([True, False, True, None])], [0, 1, 0, 2]),
        ([pa.array([Decimal("1.5"), Decimal("1.5"), None, None])], [0, 0, 1, 1]),
    ],
)
def test_equal_rows_are_numbered(columns: list[pa.Array], sets: list[int]) -> None:
    chosen, numbers = equal_rows(columns, len(sets))
    assert len(chosen) == len(set(sets))
    pairs = set(zip(sets, numbers.tolist(), strict=True))
    assert len(pairs) == len(set(sets)) == len({number for _, number in pairs})
    assert [numbers[row] for row in chosen] == list(range(len(chosen)))


def test_no_rows_have_no_sets() -> None:
    chosen, numbers = equal_rows([pa.array([], pa.int64())], 0)
    assert (len(chosen), len(numbers)) == (0, 0)
