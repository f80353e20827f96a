"""Results of user functions as values of their types."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tureen.functions.function_worker import CallFailed, call, converted, converted_array, shown_call
from tureen.functions.user_function import UserFunction
from tureen.schema import Type

MOMENT = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        (None, "INT", None),
        (True, "BOOLEAN", True),
        (np.bool_(False), "BOOLEAN", False),
        (-(2**31), "INT", -(2**31)),
        (np.int64(5), "TINYINT", 5),
        (3, "DOUBLE", 3.0),
        (math.inf, "FLOAT", math.inf),
        (Decimal("1.50"), "DECIMAL(3,1)", Decimal("1.50")),
        (7, "DECIMAL(3,1)", Decimal(7)),
        (Decimal("9" * 38), "DECIMAL(38,0)", Decimal("9" * 38)),
        (Decimal("1E+3"), "DECIMAL(38,2)", Decimal(1000)),
        (-(2**100), "DOUBLE", -(2.0**100)),
        ("é", "STRING", "é"),
        (date(2026, 1, 1), "DATE", date(2026, 1, 1)),
        (MOMENT, "TIMESTAMP", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        (datetime(2026, 1, 1), "TIMESTAMP", datetime(2026, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
    ],
)
def test_results_that_fit(value: Any, kind: str, stored: Any) -> None:
    assert converted(value, Type.parse(kind)) == stored


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (1, "BOOLEAN", "1 of type int, which is not BOOLEAN"),
        (True, "INT", "True of type bool, which is not INT"),
        (1.0, "INT", "1.0 of type float, which is not INT"),
        (2**31, "INT", "2147483648, which does not fit in INT"),
        (128, "TINYINT", "128, which does not fit in TINYINT"),
        ("1", "DOUBLE", "'1' of type str, which is not DOUBLE"),
        (Decimal("1.25"), "DECIMAL(3,1)", "1.25, which does not fit"),
        (Decimal("123.4"), "DECIMAL(3,1)", "123.4, which does not fit"),
        (Decimal(f"{'1' * 37}.12"), "DECIMAL(38,1)", "which does not fit"),
        (Decimal("1E+999999"), "DECIMAL(38,0)", r"1E\+999999, which does not fit"),
        (1e39, "FLOAT", r"1e\+39, which does not fit in FLOAT"),
        (10**400, "DOUBLE", "which does not fit in DOUBLE"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), "TIMESTAMP", "which does not fit in TIMESTAMP"),
        (Decimal("NaN"), "DECIMAL(3,1)", "NaN, which is not"),
        (b"x", "STRING", "b'x' of type bytes, which is not STRING"),
        ("\ud800", "STRING", "not valid Unicode"),
        ("x" * (1 << 21), "STRING", "a text of 2,097,152 characters"),
        (datetime(2026, 1, 1, tzinfo=UTC), "DATE", "of type datetime, which is not DATE"),
        (date(2026, 1, 1), "TIMESTAMP", "of type date, which is not TIMESTAMP"),
        (iter(()), "INT", "of type tuple_iterator, which is not INT"),
    ],
)
def test_results_that_do_not_fit(value: Any, kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        converted(value, Type.parse(kind))


def test_calls_show_shortened_arguments() -> None:
    assert shown_call("f", [None, 1, "a'b"]) == """f(None, 1, "a'b")"""
    assert len(shown_call("f", ["x" * 10_000])) < 100


def test_vectorized_results_are_checked() -> None:
    function = UserFunction("v", (Type.parse("INT"),), Type.parse("INT"), source="", vectorized=True)
    rows = [pa.array([1, 2], pa.int32())]
    for result, message in (
        ([1, 2], "returned list, not a pyarrow.Array"),
        (pa.array([1], pa.int32()), "returned 1 values for 2 rows"),
        (pa.array(["a", "b"]), "returned an array of string, not INT"),
        (pa.array([1, 2**40]), "not INT"),
        (pa.array(["5", "6"]), "returned an array of string, not INT"),
        (pa.array([1.0, 2.0]), "returned an array of double, not INT"),
        (pa.array([True, False]), "returned an array of bool, not INT"),
    ):
        with pytest.raises(CallFailed, match=message):
            call(function, lambda _, result=result: result, rows, lambda _: None)
    results, _ = call(function, lambda column: pa.chunked_array([column]), rows, lambda _: None)
    assert results.to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("array", "kind", "values"),
    [
        (pa.array([1.5, math.inf, None, -math.inf]), "FLOAT", [1.5, math.inf, None, -math.inf]),
        (pa.array([3.4028234663852886e38, -0.0]), "FLOAT", [3.4028234663852886e38, -0.0]),
        (pa.array([1, None]), "FLOAT", [1.0, None]),
        (pa.array([], pa.float64()), "FLOAT", []),
        (pa.nulls(2), "STRING", [None, None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "STRING", ["a", "b", "a"]),
        (pa.array(["a"], pa.large_string()), "STRING", ["a"]),
        (pa.array([Decimal("1.50")]), "DECIMAL(3,1)", [Decimal("1.5")]),
        (pa.array([2], pa.int8()), "DECIMAL(12,1)", [Decimal(2)]),
        (pa.array([date(2026, 1, 1)], pa.date64()), "DATE", [date(2026, 1, 1)]),
    ],
)
def test_arrays_that_fit(array: pa.Array, kind: str, values: list[Any]) -> None:
    assert converted_array(array, Type.parse(kind)).to_pylist() == values


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1.0, 1e39]), "FLOAT"),
        (pa.array([-1e39, math.inf]), "FLOAT"),
        (pa.array(["1"]), "DOUBLE"),
        (pa.array(["true"]), "BOOLEAN"),
        (pa.array([1]), "BOOLEAN"),
        (pa.array([1]), "STRING"),
        (pa.array(["2026-01-01"]), "DATE"),
        (pa.array([1]), "TIMESTAMP"),
        (pa.array([date(2026, 1, 1)]), "TIMESTAMP"),
        (pa.array([Decimal("1.25")]), "DECIMAL(3,1)"),
    ],
)
def test_arrays_that_do_not_fit(array: pa.Array, kind: str) -> None:
    with pytest.raises((ValueError, pa.ArrowException)):
        converted_array(array, Type.parse(kind))
