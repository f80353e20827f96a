"""The key index against a loop over all rows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.stems.key_index import DECIMAL, EXACT, FLOAT, TEXT, KeyIndex, ProbeKeys, codes_of
from tureen.stems.key_kernels import AT_ONCE, combine_equal, sort_by_bucket

NAN = float("nan")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    EXACT: st.none() | st.integers(-2, 2),
    FLOAT: st.none() | st.sampled_from([0.0, -0.0, 1.5, NAN]),
    TEXT: st.none() | st.sampled_from(["", "a", "b", "ab", "ä"]),
    DECIMAL: st.none() | st.sampled_from([Decimal(text) for text in ("0", "1", "10", "0.1", "-0.01", "-1", "99.99")]),
}
TYPES = {EXACT: pa.int32(), FLOAT: pa.float64(), TEXT: pa.string(), DECIMAL: pa.decimal128(4, 2)}
PROBE_TYPES = {EXACT: pa.int64(), FLOAT: pa.float32(), TEXT: pa.large_string(), DECIMAL: pa.decimal128(38, 10)}


@example_settings(100)
@given(st.data(), st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3))
def test_index_finds_the_rows_of_equal_values(data: st.DataObject, domains: list[str]) -> None:
    row = st.tuples(*(VALUES[domain] for domain in domains))
    stored, probes = data.draw(st.lists(row, max_size=12)), data.draw(st.lists(row, max_size=6))
    index = KeyIndex.of(list(zip(_columns(stored, domains, TYPES), domains, strict=True)))
    columns = _columns(probes, domains, PROBE_TYPES)
    keys = np.stack([codes_of(column, domain) for column, domain in zip(columns, domains, strict=True)])
    valid = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns])
    probing, rows = index.find(ProbeKeys.of(np.ascontiguousarray(keys), valid))
    expected = [
        (probe, number)
        for probe, values in enumerate(probes)
        for number, others in enumerate(stored)
        if all(_equal(left, right) for left, right in zip(values, others, strict=True))
    ]
    assert list(zip(probing.tolist(), rows.tolist(), strict=True)) == expected


def _columns(rows: list[tuple[Any, ...]], domains: list[str], types: dict[str, pa.DataType]) -> list[pa.Array]:
    return [pa.array([row[line] for row in rows], types[domain]) for line, domain in enumerate(domains)]


def _equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    return bool(left == right or (left != left and right != right))


def test_sliced_columns_are_coded_from_their_start() -> None:
    column = pa.array(["x", "a", None, "a"])
    assert codes_of(column.slice(1), TEXT)[[0, 2]].tolist() == codes_of(pa.array(["a", "a"]), TEXT).tolist()


@example_settings(200)
@given(st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-1000, 1000), st.integers(0, 38))
def test_decimals_are_hashed_as_python_hashes_numbers(unscaled: int, scale: int) -> None:
    value = Decimal(f"{unscaled}e-{scale}")
    column = pa.array([None, value], pa.decimal128(38, scale))
    prime = 2**61 - 1
    assert codes_of(column.slice(1), DECIMAL).tolist() == [unscaled * pow(10, -scale, prime) % prime]
    assert hash(value) in (codes_of(column, DECIMAL)[1], codes_of(column, DECIMAL)[1] - prime)


def test_equal_numbers_of_different_types_have_equal_hashes() -> None:
    numbers = [0, 1, -1, 7, 10**9, -(10**9)]
    columns = [pa.array(numbers, kind) for kind in (pa.int32(), pa.int64())]
    scales = [(10, 0), (12, 2), (38, 20)]
    columns += [pa.array(map(Decimal, numbers), pa.decimal128(*precision_and_scale)) for precision_and_scale in scales]
    hashes = [codes_of(column, DECIMAL).tolist() for column in columns]
    assert hashes == [hashes[0]] * len(columns)
    assert len(set(hashes[0])) == len(numbers)


def test_numbers_of_all_types_are_coded_as_doubles() -> None:
    values = [Decimal("1.50"), Decimal("-3.00"), Decimal("0.00")]
    doubles = codes_of(pa.array([1.5, -3.0, 0.0]), FLOAT).tolist()
    assert codes_of(pa.array(values, pa.decimal128(5, 2)), FLOAT).tolist() == doubles
    assert codes_of(pa.array(values, pa.decimal128(30, 2)), FLOAT).tolist() == doubles
    assert codes_of(pa.array([-3, 0]), FLOAT).tolist() == doubles[1:]


def test_few_different_keys_take_little_memory() -> None:
    rows = 100_000
    few = KeyIndex.of([(pa.array(np.arange(rows) % 100), EXACT), (pa.array(np.arange(rows) % 3), EXACT)])
    assert few.bytes < 5 * rows
    probing, rows_of_key = few.find(ProbeKeys.of(np.array([[7, 8], [1, 5]]), np.array([True, True])))
    assert probing.tolist() == [0] * len(rows_of_key)
    assert rows_of_key.tolist() == [n for n in range(rows) if n % 100 == 7 and n % 3 == 1]


@pytest.mark.parametrize("columns", [1, 2])
def test_more_keys_than_are_read_at_once(columns: int) -> None:
    random = np.random.default_rng(columns)
    stored, probes = random.integers(0, 700, (columns, 2000)), random.integers(0, 900, (columns, 3 * AT_ONCE + 5))
    stored[1:] %= 3
    probes[1:] %= 3
    valid = np.array(random.random(probes.shape[1]) < 0.9)
    index = KeyIndex.of([(pa.array(line), "int") for line in stored])
    expected = sorted(
        (probe, row)
        for probe in np.flatnonzero(valid).tolist()
        for row in np.flatnonzero((stored == probes[:, probe : probe + 1]).all(axis=0)).tolist()
    )
    for prepare in (ProbeKeys.of, ProbeKeys.in_hash_order):
        keys_at, rows = index.find(prepare(probes, valid))
        assert sorted(zip(keys_at.tolist(), rows.tolist(), strict=True)) == expected


@pytest.mark.parametrize("columns", [1, 2])
def test_buckets_with_many_keys_are_sorted(columns: int) -> None:
    random = np.random.default_rng(columns)
    keys, valid = random.integers(-9, 9, (columns, 500)), np.array(random.random(500) < 0.9)
    ends, size = np.zeros(3, np.uint32), int(valid.sum())
    sorted_keys, rows = np.empty((columns, size), np.int64), np.empty(size, np.int32)
    sort_by_bucket(keys, valid, 1, ends, sorted_keys, rows)
    assert (sorted_keys == keys[:, rows]).all()
    assert sorted(rows.tolist()) == np.flatnonzero(valid).tolist()
    assert 0 < ends[0] < size
    assert ends[1] == size
    for entries in (slice(0, ends[0]), slice(ends[0], size)):
        in_bucket = rows[entries]
        assert in_bucket.tolist() == in_bucket[np.lexsort((in_bucket, *keys[::-1, in_bucket]))].tolist()
    starts = np.empty(size + 1, np.uint32)
    count = combine_equal(ends, sorted_keys, starts)
    assert count == len({tuple(key) for key in keys[:, valid].T.tolist()}) == ends[1]
    assert (np.repeat(sorted_keys[:, :count], np.diff(starts[: count + 1]), axis=1) == keys[:, rows]).all()


def test_most_absent_keys_fail_the_filter() -> None:
    numbers = np.arange(1 << 14)
    for values in (numbers, numbers << 40, 1_700_000_000_000_000 + numbers * 1_000_000, numbers.astype(np.float64)):
        domain = FLOAT if values.dtype == np.float64 else EXACT
        half, others = np.split(values, 2)
        index = KeyIndex.of([(pa.array(half), domain)])
        keys = codes_of(pa.array(others), domain).reshape(1, -1)
        assert len(index.candidates(ProbeKeys.of(keys, np.ones(len(others), np.bool_)))) < len(others) / 10
        assert np.diff(index.directory).max() < 16, "buckets are small"


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
def test_hash_order_contains_each_valid_key_once(size: int) -> None:
    keys, valid = np.arange(2 * size).reshape(2, size), np.arange(size) % 3 > 0
    plain, ordered = ProbeKeys.of(keys, valid), ProbeKeys.in_hash_order(keys, valid)
    assert sorted(ordered.numbers.tolist()) == plain.numbers.tolist() == np.flatnonzero(valid).tolist()
    assert (ordered.keys == keys[:, ordered.numbers]).all()
    assert ordered.hashes.tolist() == [plain.hashes[plain.numbers.tolist().index(n)] for n in ordered.numbers.tolist()]
    coarse = (ordered.hashes >> np.uint64(64 - 9)).tolist()
    assert coarse == sorted(coarse) or size < 1 << 9
