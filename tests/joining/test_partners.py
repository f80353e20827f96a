"""Partners against a loop over all pairs."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.joining import partners
from tureen.joining.join_keys import KeyColumn
from tureen.joining.partners import Compared, find_partners

OPERATORS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
VALUES = st.lists(st.none() | st.integers(-3, 3), max_size=12)


def keys(values: list[int | None]) -> KeyColumn:
    return KeyColumn(
        np.array([value or 0 for value in values], np.int64),
        np.array([value is not None for value in values], np.bool_),
    )


@example_settings(100)
@given(st.data(), st.integers(0, 2), st.lists(st.sampled_from(["<", "<=", ">", ">="]), max_size=2), st.booleans())
def test_partners_are_those_of_a_nested_loop(
    data: st.DataObject, equalities: int, ops: list[str], is_marked: bool
) -> None:
    left_size, right_size = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 8))

    def column(size: int) -> list[int | None]:
        return data.draw(st.lists(st.sampled_from([None, 0, 1, -2]), min_size=size, max_size=size))

    equal = [(column(left_size), column(right_size)) for _ in range(equalities)]
    bounded = column(right_size)
    ranges = [(op, column(left_size)) for op in ops]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partners, "MARKED_ROWS", 0 if is_marked else 100)
        partners_of_all = find_partners(
            left_size,
            right_size,
            [Compared("=", keys(left), keys(right)) for left, right in equal],
            [Compared(op, keys(left), keys(bounded)) for op, left in ranges],
        )
    expected = [
        (left, right)
        for left in range(left_size)
        for right in range(right_size)
        if all(_holds("=", lefts[left], rights[right]) for lefts, rights in equal)
        and all(_holds(op, lefts[left], bounded[right]) for op, lefts in ranges)
    ]
    pairs = [
        pair for part in partners_of_all.in_parts() for pair in zip(*(side.tolist() for side in part), strict=True)
    ]
    assert sorted(pairs) == expected
    assert partners_of_all.pairs == len(expected)
    assert [left for left, _ in pairs] == sorted(left for left, _ in pairs)


def _holds(op: str, left: int | None, right: int | None) -> bool:
    return left is not None and right is not None and OPERATORS[op](left, right)


def test_pairs_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partners, "PAIRS_AT_ONCE", 5)
    partners_of_all = find_partners(7, 3, [], [])
    parts = list(partners_of_all.in_parts())
    assert [len(left) for left, _ in parts] == [3] * 7
    assert sum(len(left) for left, _ in parts) == partners_of_all.pairs == 21


def test_first_and_last_partner() -> None:
    order = Compared(">=", keys([5, 0, 2]), keys([1, 3, 1, 4]))
    partners_of_all = find_partners(3, 4, [], [order])
    assert [(left.tolist(), right.tolist()) for left, right in partners_of_all.last().in_parts()] == [([0, 2], [3, 2])]
    assert [(left.tolist(), right.tolist()) for left, right in partners_of_all.first().in_parts()] == [([0, 2], [0, 0])]


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize(("left_size", "right_size", "different"), [(500, 700, 40), (900, 300, 5000), (5, 1, 1)])
def test_partners_of_many_keys(lines: int, left_size: int, right_size: int, different: int) -> None:
    random = np.random.default_rng(different)
    left, right = random.integers(0, different, (lines, left_size)), random.integers(0, different, (lines, right_size))
    left[1:], right[1:] = left[1:] % 2, right[1:] % 2
    valid = np.array(random.random(right_size) < 0.9)
    compared = [
        Compared("=", KeyColumn(of_left, np.ones(left_size, np.bool_)), KeyColumn(of_right, valid))
        for of_left, of_right in zip(left, right, strict=True)
    ]
    (pairs,) = find_partners(left_size, right_size, compared, []).in_parts()
    expected = np.argwhere((left[:, :, None] == right[:, None, :]).all(axis=0) & valid)
    assert np.stack(pairs, axis=1).tolist() == expected.tolist()
