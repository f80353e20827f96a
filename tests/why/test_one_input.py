"""Predicates in three-valued logic, for one row; errors count as in an invocation."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tureen.errors import QueryFailed
from tureen.predicate import AllOf, AnyOf, Compare, Interval, IsNull, Like, Opaque, Predicate, Within
from tureen.why.one_input import truth_of

ROW = pa.record_batch(
    {"a": pa.array([5], pa.int32()), "n": pa.array([None], pa.int32()), "s": pa.array(["x"], pa.string())}
)
TRUE, FALSE = Within("a", (Interval(5, 5),)), Within("a", (Interval(6, None),))
UNKNOWN = Within("n", (Interval(1, 2),))
RAISES = Opaque("1 % (\"a\" - 5) > error('raised')", ("a",))


@pytest.mark.parametrize(
    ("predicate", "truth"),
    [
        (TRUE, True),
        (FALSE, False),
        (UNKNOWN, None),
        (Within("n", (Interval(),)), False),
        (IsNull("n"), True),
        (IsNull("a"), False),
        (Like("s", "y%"), False),
        (Compare("a", "<", "n"), None),
        (Compare("a", "=", "a"), True),
        (Opaque('"n" + 1 = 2', ("n",)), None),
        (AllOf((TRUE, UNKNOWN)), None),
        (AllOf((UNKNOWN, FALSE)), False),
        (AllOf(()), True),
        (AnyOf((FALSE, UNKNOWN)), None),
        (AnyOf((UNKNOWN, TRUE)), True),
        (AnyOf(()), False),
        (AllOf((RAISES, FALSE)), False),
        (AllOf((RAISES, UNKNOWN)), None),
        (AnyOf((RAISES, TRUE)), True),
    ],
)
def test_truth(predicate: Predicate, truth: bool | None) -> None:
    assert truth_of(predicate, ROW) is truth


@pytest.mark.parametrize("predicate", [RAISES, AllOf((RAISES, TRUE)), AnyOf((RAISES, FALSE)), AnyOf((RAISES, UNKNOWN))])
def test_errors_that_count(predicate: Predicate) -> None:
    with pytest.raises(QueryFailed):
        truth_of(predicate, ROW)
