"""Sets of tuple ids against sets of Python, around the ends of chunks."""

from __future__ import annotations

from itertools import count

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.joining.tuple_id_set import TupleIdSet

CHUNK = 65_536
IDS = st.one_of(st.integers(0, 12), st.integers(CHUNK - 6, CHUNK + 6), st.integers(2 * CHUNK - 6, 2 * CHUNK + 6))


@example_settings(60)
@given(added=st.lists(IDS), has_full_chunk=st.booleans(), asked=st.lists(IDS, min_size=1))
def test_like_a_set(added: list[int], has_full_chunk: bool, asked: list[int]) -> None:
    ids, expected = TupleIdSet(), set(added)
    assert ids.add(np.array(added, np.int64)) == len(expected)
    if has_full_chunk:
        expected |= {*range(CHUNK, 2 * CHUNK)}
        ids.add(np.arange(CHUNK, 2 * CHUNK))
    assert len(ids) == len(expected)
    assert ids.contains(np.array(asked)).tolist() == [each in expected for each in asked]
    first, end = min(asked), max(asked)
    assert ids.count_between(first, end) == sum(first <= each < end for each in expected)
    assert ids.first_absent(first) == next(each for each in count(first) if each not in expected)
