"""The order of a clause's factors follows their statistics."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.eddy import Tally, order_factors
from tureen.predicate import Factor, Like, Opaque

CHEAP: Factor = Like("s", "%x%")
COSTLY: Factor = Opaque("sqrt(a) > 2", ("a",))
NEW: Factor = Opaque("a % 2 = 0", ("a",))

TALLIES = st.integers(0, 10**6).flatmap(
    lambda tuples: st.builds(
        Tally, st.just(tuples), st.integers(0, tuples), st.just(0), st.floats(0, 1e6, allow_nan=False)
    )
)


def test_more_selective_factor_goes_first_at_equal_cost() -> None:
    tallies = {CHEAP: Tally(100, 90, cost=100.0), COSTLY: Tally(100, 10, cost=100.0)}
    assert order_factors((CHEAP, COSTLY), tallies) == (COSTLY, CHEAP)


def test_cheaper_factor_goes_first_at_equal_selectivity() -> None:
    tallies = {CHEAP: Tally(100, 50, cost=1.0), COSTLY: Tally(100, 50, cost=100.0)}
    assert order_factors((COSTLY, CHEAP), tallies) == (CHEAP, COSTLY)


def test_cost_can_outweigh_selectivity() -> None:
    tallies = {CHEAP: Tally(1000, 800, cost=1000.0), COSTLY: Tally(1000, 100, cost=50_000.0)}
    assert order_factors((COSTLY, CHEAP), tallies) == (CHEAP, COSTLY)


def test_unknown_factor_goes_before_a_useless_one() -> None:
    assert order_factors((CHEAP, NEW), {CHEAP: Tally(1000, 1000, cost=1000.0)}) == (NEW, CHEAP)


def test_without_statistics_the_order_stays() -> None:
    assert order_factors((COSTLY, CHEAP, NEW), {}) == (COSTLY, CHEAP, NEW)
    assert order_factors((), {}) == ()


@example_settings(100)
@given(st.dictionaries(st.sampled_from("abcd"), TALLIES), st.floats(1e-6, 1e6))
def test_order_does_not_depend_on_unit_or_input_order(tallies: dict[str, Tally], unit: float) -> None:
    order = order_factors("abcd", tallies)
    assert sorted(order) == list("abcd")
    assert order_factors(order, tallies) == order
    # Without ties the order does not depend on the input order.
    busy = {
        name: Tally(1000 + position, 100 * position, cost=unit * (1000 + position))
        for position, name in enumerate("abcd")
    }
    assert {order_factors(permutation, busy) for permutation in permutations("abcd")} == {tuple("abcd")}
