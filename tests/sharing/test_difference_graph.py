"""Difference constraints, against enumeration of small integers."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.sharing.difference_graph import ORIGIN, Difference, DifferenceGraph

NAMES = ("a", "b", "c")
VALUES = range(-4, 5)

variables = st.sampled_from([*NAMES, ORIGIN])
differences = st.builds(Difference, variables, variables, st.integers(-4, 4))


def solutions(constraints: list[Difference]) -> list[dict[str | None, int]]:
    """All values within the bounds that `graph_of` adds, by trying each."""
    assignments = (dict(zip((*NAMES, ORIGIN), (*values, 0), strict=True)) for values in product(VALUES, repeat=3))
    return [
        values
        for values in assignments
        if all(values[item.left] - values[item.right] <= item.bound for item in constraints)  # type: ignore[index]
    ]


def graph_of(constraints: list[Difference]) -> DifferenceGraph:
    graph = DifferenceGraph()
    for name in NAMES:
        graph.require(name, ORIGIN, VALUES[-1])
        graph.require(ORIGIN, name, -VALUES[0])
    for constraint in constraints:
        graph.require(*constraint)
    return graph


@given(st.lists(differences, max_size=5), differences)
@example_settings(100)
def test_satisfiability_and_implication_are_exact(constraints: list[Difference], asked: Difference) -> None:
    graph, rows = graph_of(constraints), solutions(constraints)
    assert graph.is_satisfiable() is bool(rows)
    expected = all(row[asked.left] - row[asked.right] <= asked.bound for row in rows)  # type: ignore[index]
    assert graph.implies(*asked) is expected


@given(st.lists(differences, max_size=6))
@example_settings(50)
def test_minimal_form_has_the_same_solutions_and_no_redundant_constraint(constraints: list[Difference]) -> None:
    graph = graph_of(constraints)
    if not graph.is_satisfiable():
        return
    minimal = graph.minimal()
    assert solutions(minimal) == solutions(list(graph))
    for constraint in minimal:
        rest = DifferenceGraph()
        for other in minimal:
            if other != constraint:
                rest.require(*other)
        assert not rest.implies(*constraint)


def test_bounds_are_rounded_to_units() -> None:
    graph = DifferenceGraph({"tens": 10, "ones": 1})
    graph.require("tens", "ones", 5)
    graph.require("ones", ORIGIN, 7)
    assert graph.bound("tens", ORIGIN) == 10
    assert not graph.is_exact
    graph.require(ORIGIN, "tens", -11)
    assert not graph.is_satisfiable()
