"""The order of a clause's factors follows what they did."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tureen.eddy import Tally, order_factors
from tureen.predicate import Factor, Like, Opaque

CHEAP: Factor = Like("s", "%x%")
DEAR: Factor = Opaque("sqrt(a) > 2", ("a",))
NEW: Factor = Opaque("a % 2 = 0", ("a",))

TALLIES = st.integers(0, 10**6).flatmap(
    lambda tuples: st.builds(
        Tally, st.just(tuples), st.integers(0, tuples), st.just(0), st.floats(0, 1e6, allow_nan=False)
    )
)


def test_the_more_selective_goes_first_at_the_same_cost() -> None:
    seen = {CHEAP: Tally(100, 90, cost=100.0), DEAR: Tally(100, 10, cost=100.0)}
    assert order_factors((CHEAP, DEAR), seen) == (DEAR, CHEAP)


def test_the_cheaper_goes_first_at_the_same_selectivity() -> None:
    seen = {CHEAP: Tally(100, 50, cost=1.0), DEAR: Tally(100, 50, cost=100.0)}
    assert order_factors((DEAR, CHEAP), seen) == (CHEAP, DEAR)


def test_cost_can_outweigh_selectivity() -> None:
    seen = {CHEAP: Tally(1000, 800, cost=1000.0), DEAR: Tally(1000, 100, cost=50_000.0)}
    assert order_factors((DEAR, CHEAP), seen) == (CHEAP, DEAR)


def test_what_is_unknown_is_tried_before_what_is_known_to_be_useless() -> None:
    assert order_factors((CHEAP, NEW), {CHEAP: Tally(1000, 1000, cost=1000.0)}) == (NEW, CHEAP)


def test_nothing_known_changes_nothing() -> None:
    assert order_factors((DEAR, CHEAP, NEW), {}) == (DEAR, CHEAP, NEW)
    assert order_factors((), {}) == ()


@given(st.dictionaries(st.sampled_from("abcd"), TALLIES), st.floats(1e-6, 1e6))
def test_any_unit_of_cost_gives_an_order_of_all_factors(seen: dict[str, Tally], unit: float) -> None:
    order = order_factors("abcd", seen)
    assert sorted(order) == list("abcd")
    assert order_factors(order, seen) == order
    # Without ties the order does not depend on how the factors came.
    busy = {name: Tally(1000 + place, 100 * place, cost=unit * (1000 + place)) for place, name in enumerate("abcd")}
    assert {order_factors(way, busy) for way in permutations("abcd")} == {tuple("abcd")}
