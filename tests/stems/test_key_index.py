"""The key index against a loop over all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.stems.key_index import EXACT, FLOAT, TEXT, KeyIndex, can_code, codes_of

NAN = float("nan")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    EXACT: st.none() | st.integers(-2, 2),
    FLOAT: st.none() | st.sampled_from([0.0, -0.0, 1.5, NAN]),
    TEXT: st.none() | st.sampled_from(["", "a", "b", "ab", "ä"]),
}
TYPES = {EXACT: pa.int32(), FLOAT: pa.float64(), TEXT: pa.string()}


@example_settings(100)
@given(st.data(), st.lists(st.sampled_from([EXACT, FLOAT, TEXT]), min_size=1, max_size=3))
def test_index_finds_the_rows_of_equal_values(data: st.DataObject, domains: list[str]) -> None:
    row = st.tuples(*(VALUES[domain] for domain in domains))
    stored, probes = data.draw(st.lists(row, max_size=12)), data.draw(st.lists(row, max_size=6))
    index = KeyIndex.of(list(zip(_columns(stored, domains), domains, strict=True)))
    columns = _columns(probes, domains)
    keys = np.stack([codes_of(column, domain) for column, domain in zip(columns, domains, strict=True)])
    valid = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns])
    probing, rows = index.find(np.ascontiguousarray(keys), valid)
    expected = [
        (probe, number)
        for probe, values in enumerate(probes)
        for number, others in enumerate(stored)
        if all(_equal(left, right) for left, right in zip(values, others, strict=True))
    ]
    assert list(zip(probing.tolist(), rows.tolist(), strict=True)) == expected


def _columns(rows: list[tuple[Any, ...]], domains: list[str]) -> list[pa.Array]:
    return [pa.array([row[line] for row in rows], TYPES[domain]) for line, domain in enumerate(domains)]


def _equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    return bool(left == right or (left != left and right != right))


def test_sliced_columns_are_coded_from_their_start() -> None:
    column = pa.array(["x", "a", None, "a"])
    assert codes_of(column.slice(1), TEXT)[[0, 2]].tolist() == codes_of(pa.array(["a", "a"]), TEXT).tolist()


@pytest.mark.parametrize(
    ("kind", "domain", "is_coded"),
    [(pa.int64(), EXACT, True), (pa.float32(), FLOAT, True), (pa.int64(), FLOAT, False), (pa.string(), TEXT, True)],
)
def test_values_that_would_be_converted_have_no_keys(kind: pa.DataType, domain: str, is_coded: bool) -> None:
    assert can_code(kind, domain) is is_coded
