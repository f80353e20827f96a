"""Groups are numbered, and ordered as Spark orders their keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tureen.aggregates.groups import GroupNumbers
from tureen.schema import Type


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("DOUBLE", [1.5, None, math.nan, -0.0, 0.0, -math.inf, math.nan, None]),
        ("STRING", ["b", None, "", "ä", "b", "a", None, "\U0001f600"]),
        ("BOOLEAN", [True, None, False, True, False, None, True, False]),
    ],
)
def test_groups_and_their_order(kind: str, values: list[Any]) -> None:
    key_type = Type.parse(kind)
    groups = GroupNumbers([key_type])
    codes = groups.codes([pa.array(values, key_type.arrow)], len(values))
    again = groups.codes([pa.array(values[::-1], key_type.arrow)], len(values))
    assert again[::-1].tolist() == codes.tolist()
    present = np.unique(codes)
    ordered = groups.columns(present[np.argsort(groups.ranks(present))])[0].to_pylist()
    expected: dict[str, list[Any]] = {
        "DOUBLE": [None, -math.inf, 0.0, 1.5, math.nan],
        "STRING": [None, "", "a", "b", "ä", "\U0001f600"],
        "BOOLEAN": [None, False, True],
    }
    assert [repr(value) for value in ordered] == [repr(value) for value in expected[kind]]


def test_groups_of_several_keys() -> None:
    groups = GroupNumbers([Type.parse("INT"), Type.parse("STRING")])
    keys = [pa.array([1, 1, None, 1, None], pa.int32()), pa.array(["a", None, "a", "a", "a"])]
    assert groups.codes(keys, 5).tolist() == [0, 1, 2, 0, 2]
    assert [column.to_pylist() for column in groups.columns(np.array([2, 0, 1], np.int32))] == [
        [None, 1, 1],
        ["a", "a", None],
    ]
