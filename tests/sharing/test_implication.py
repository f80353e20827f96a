"""Implication, against enumeration of all rows of small domains."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.sharing.predicates import SCHEMA, clauses, columns_in, comparisons, points, predicates, ranges, rows
from tureen.language import bind_query
from tureen.predicate import EVERYTHING, AllOf, AnyOf, Clause, Compare, Interval, IsNull, Like, Opaque, Within
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.sharing.conjunction import Satisfiability
from tureen.sharing.implication import Implication, implies, minimal_clause, satisfiable
from tureen.testing.truth import holds


def counterexample(premise: Clause, conclusion: Clause) -> object:
    """A row that satisfies the premise and not the conclusion; None if the enumeration has none."""
    for row in rows(columns_in(premise, conclusion)):
        if holds(AllOf(premise), row, SCHEMA) and not holds(AllOf(conclusion), row, SCHEMA):
            return row
    return None


@given(clauses(predicates(), 3), clauses(predicates(), 2))
@example_settings(250)
def test_implication_is_never_wrong(premise: Clause, conclusion: Clause) -> None:
    assume(len(columns_in(premise, conclusion)) <= 4)
    if implies(SCHEMA, premise, conclusion) is Implication.YES:
        assert counterexample(premise, conclusion) is None
    if satisfiable(SCHEMA, premise) is Satisfiability.NEVER:
        assert counterexample(premise, (AnyOf(),)) is None


_EXACT = st.one_of(
    ranges(("a", "b", "c")), comparisons((("a", "b", "int"), ("b", "c", "int"), ("a", "c", "int"), ("c", "c", "int")))
)


@given(clauses(_EXACT, 4), clauses(_EXACT, 2))
@example_settings(150)
def test_implication_is_complete_for_differences_of_integers(premise: Clause, conclusion: Clause) -> None:
    """With all columns confined to the enumerated values, the verdict is that of the enumeration."""
    bounded = (*premise, *map(points, "abc"))
    is_implied = counterexample(bounded, conclusion) is None
    assert implies(SCHEMA, bounded, conclusion) is (Implication.YES if is_implied else Implication.NO)


@given(clauses(st.one_of(ranges(("x", "y")), comparisons((("x", "y", "double"),))), 3), clauses(ranges(("x", "y")), 2))
@example_settings(100)
def test_a_no_has_a_counterexample(premise: Clause, conclusion: Clause) -> None:
    """Of doubles too, if each has one of the enumerated values."""
    bounded = (*premise, points("x"), points("y"))
    verdict = implies(SCHEMA, bounded, conclusion)
    if verdict is not Implication.UNKNOWN:
        assert (counterexample(bounded, conclusion) is None) is (verdict is Implication.YES)


@given(clauses(predicates(1), 4))
@example_settings(60)
def test_a_minimal_clause_has_the_same_rows(clause: Clause) -> None:
    assume(len(columns_in(clause)) <= 3)
    minimal = minimal_clause(SCHEMA, clause)
    assert set(minimal) <= set(clause)
    assert counterexample(minimal, clause) is None


PHOTONS = Schema.parse("ra DOUBLE, dec DOUBLE, phc INT, en DOUBLE, at TIMESTAMP, sym STRING, m DECIMAL(8,2)", time="at")


def clause(condition: str) -> Clause:
    sql = f"SELECT * FROM photons WHERE {condition}"
    return bind_query(sql, lambda name: NamedRelation(name, PHOTONS)).stream.clause


VELA = "ra >= 120.0 AND ra <= 138.0 AND dec >= -49.0 AND dec <= -40.0"
RXJ = "en >= 1.3 AND ra BETWEEN 130.5 AND 135.5 AND dec BETWEEN -48.0 AND -45.0"


@pytest.mark.parametrize(
    ("premise", "conclusion", "verdict"),
    [
        (RXJ, VELA, Implication.YES),
        (VELA, RXJ, Implication.NO),
        ("sym LIKE 'abc%d'", "sym LIKE 'ab%'", Implication.YES),
        ("sym = 'abd'", "sym LIKE 'a_d'", Implication.YES),
        ("sym IN ('a', 'b')", "sym IN ('b', 'a', 'c')", Implication.YES),
        ("sym IN ('a', 'b')", "sym NOT IN ('c', 'd')", Implication.YES),
        ("sym LIKE '%x'", "sym LIKE '%y'", Implication.UNKNOWN),
        ("phc > 3 OR ra < 2.0", "phc > 1 OR ra < 5.0", Implication.YES),
        ("phc > 3", "phc >= 4", Implication.YES),
        ("m > 3.10 AND m < 3.12", "m = 3.11", Implication.YES),
        ("ra < dec AND dec < en", "ra < en", Implication.YES),
        ("ra < dec + 0.5 AND dec <= 1.0", "ra < 1.5", Implication.YES),
        ("ra > 5", "ra = ra", Implication.YES),
        ("ra > 5", "dec IS NOT NULL", Implication.NO),
        ("ra IS NULL", "ra IS NULL OR dec > 3", Implication.YES),
        ("abs(ra) > 3 AND phc = 1", "abs(ra) > 3", Implication.YES),
        ("abs(ra) > 4", "abs(ra) > 3", Implication.UNKNOWN),
        ("phc > 5 AND phc < 5", "en = 99", Implication.YES),
        ("ra > 1", "ra <> CAST('NaN' AS DOUBLE)", Implication.NO),
        ("at > TIMESTAMP '2026-01-01 00:00:00'", "at >= TIMESTAMP '2026-01-01 00:00:00.000001'", Implication.YES),
    ],
)
def test_conditions_in_sql(premise: str, conclusion: str, verdict: Implication) -> None:
    assert implies(PHOTONS, clause(premise), clause(conclusion)) is verdict


def test_a_sum_that_may_raise_is_not_assumed_to_fit() -> None:
    schema = Schema.parse("a INT, b INT")
    sums = Compare("a", "<=", "b", 10, "int", 32)
    smaller = Compare("a", "<=", "b", 5, "int", 32)
    assert implies(schema, (smaller,), (sums,)) is Implication.YES
    # A tuple for which the comparison holds has a sum that fits.
    assert implies(schema, (sums,), (Within("b", (Interval(None, 2**31 - 11),)),)) is Implication.YES
    assert implies(schema, (sums,), (Within("b", (Interval(None, 2**31 - 12),)),)) is Implication.NO


def test_a_rounded_sum_is_not_a_difference() -> None:
    """0.1 + 0.2 is not 0.3: offsets of doubles are not added."""
    schema = Schema.parse("x DOUBLE, y DOUBLE, z DOUBLE")
    chain = (Compare("x", "<=", "y", 0.1, "double"), Compare("y", "<=", "z", 0.2, "double"))
    assert implies(schema, chain, (Compare("x", "<=", "z", 0.3, "double"),)) is Implication.UNKNOWN
    assert implies(schema, (chain[0],), (Compare("x", "<=", "y", 0.2, "double"),)) is Implication.YES
    between = (Compare("x", ">", "y", 0.1, "double"), Compare("x", "<", "y", 0.2, "double"))
    assert satisfiable(schema, between) is Satisfiability.UNKNOWN
    assert satisfiable(schema, tuple(reversed([replace(between[0], offset=0.2), between[1]]))) is Satisfiability.NEVER


def test_nan_is_the_largest_double() -> None:
    schema = Schema.parse("x DOUBLE, y DOUBLE")
    nan = Within("x", (Interval(math.nan, math.nan),))
    assert implies(schema, (nan,), (Within("x", (Interval(math.inf, None, True),)),)) is Implication.YES
    assert (
        implies(schema, (nan, Compare("x", "<=", "y", 0, "double")), (Within("y", (Interval(5.0),)),))
        is Implication.YES
    )


def test_a_factor_excludes_null() -> None:
    schema = Schema.parse("a INT, b INT, s STRING")
    present = Within("a", (EVERYTHING,))
    for factor in (Compare("a", "<", "b"), Within("a", (Interval(3),))):
        assert implies(schema, (factor,), (present,)) is Implication.YES
    assert implies(schema, (Like("s", "%a%"),), (Within("s", (EVERYTHING,)),)) is Implication.YES
    assert implies(schema, (Opaque("coalesce(a, 1) = 1", ("a",)),), (present,)) is Implication.UNKNOWN
    assert satisfiable(schema, (present, IsNull("a"))) is Satisfiability.NEVER


def test_too_many_cases_are_not_decided() -> None:
    schema = Schema.parse(", ".join(f"a{number} INT, b{number} INT" for number in range(10)))
    premise = tuple(Compare(f"a{number}", "<>", f"b{number}") for number in range(10))
    assert implies(schema, premise, (Compare("a0", "<", "b0"),)) is not Implication.YES
    assert implies(schema, premise, (Opaque("a0 > b1", ("a0", "b1")),)) is Implication.UNKNOWN


def test_long_lists_are_decided() -> None:
    schema = Schema.parse("a BIGINT")
    few = Within("a", tuple(Interval(key, key) for key in range(0, 20_000, 4)))
    many = Within("a", tuple(Interval(key, key) for key in range(0, 20_000, 2)))
    assert implies(schema, (few,), (many,)) is Implication.YES
    assert implies(schema, (many,), (few,)) is Implication.NO
