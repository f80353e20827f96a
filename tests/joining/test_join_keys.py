"""Keys of two columns compare as their values do."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tureen.errors import QueryFailed
from tureen.join import Field, JoinCompare
from tureen.joining.join_keys import keys_of

NAN = math.nan


@pytest.mark.parametrize(
    ("domain", "left", "right"),
    [
        ("int", pa.array([1, 2, None, -5], pa.int32()), pa.array([2, 2**40, None, -5], pa.int64())),
        ("int", pa.array([True, False, None]), pa.array([False, True, True])),
        ("int", pa.array([date(2026, 1, 1), None]), pa.array([date(1969, 12, 31), date(2026, 1, 1)])),
        (
            "int",
            pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            pa.array([datetime(2026, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        ),
        ("double", pa.array([0.0, -0.0, NAN, None, 1.5]), pa.array([NAN, 0.0, 2.0, -1.0], pa.float32())),
        ("double", pa.array([1, 2, None], pa.int32()), pa.array([1.0, 2.5, NAN])),
        (
            "double",
            pa.array([Decimal("1.50"), Decimal("-2.00"), None], pa.decimal128(6, 2)),
            pa.array([1.5, -2.0, NAN]),
        ),
        (
            "decimal",
            pa.array([Decimal("1.5"), Decimal("-1.0"), None], pa.decimal128(5, 1)),
            pa.array([Decimal("1.500"), Decimal("2.000")], pa.decimal128(9, 3)),
        ),
        (
            "decimal",
            pa.array([Decimal("1.5"), Decimal(10) ** 30], pa.decimal128(38, 1)),
            pa.array([Decimal("1.500000"), Decimal("-1.000001")], pa.decimal128(30, 6)),
        ),
        (
            "decimal",
            pa.array([1, 2, None], pa.int64()),
            pa.array([Decimal("2.0"), Decimal("1.5")], pa.decimal128(4, 1)),
        ),
        ("string", pa.array(["a", "", None, "é", "z"]), pa.array(["é", "a", "\U0001f600", None])),
    ],
)
def test_keys_compare_as_values(domain: str, left: pa.Array, right: pa.Array) -> None:
    first, second = keys_of(JoinCompare(Field(0, "a"), "=", Field(1, "b"), domain=domain), left, right)
    for i, value in enumerate(left.to_pylist()):
        assert bool(first.valid[i]) is (value is not None)
        for j, other in enumerate(right.to_pylist()):
            if value is not None and other is not None:
                sign = int(first.values[i] > second.values[j]) - int(first.values[i] < second.values[j])
                assert sign == _sign(value, other), (value, other)


def _sign(left: Any, right: Any) -> int:
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    sides = [(True, 0) if value != value else (False, value) for value in (left, right)]
    return (sides[0] > sides[1]) - (sides[0] < sides[1])


def test_offset_is_added_to_the_right_side() -> None:
    factor = JoinCompare(Field(0, "a"), "=", Field(1, "b"), 3, "int", 32)
    first, second = keys_of(factor, pa.array([4], pa.int32()), pa.array([1, None], pa.int32()))
    assert first.values[0] == second.values[0]


def test_sum_that_does_not_fit_fails_unless_the_left_side_is_null() -> None:
    factor = JoinCompare(Field(0, "a"), "=", Field(1, "b"), 1, "int", 32)
    largest = pa.array([2**31 - 1], pa.int32())
    with pytest.raises(QueryFailed, match="does not fit in 32 bits"):
        keys_of(factor, pa.array([0], pa.int32()), largest)
    keys_of(factor, pa.array([None], pa.int32()), largest)
