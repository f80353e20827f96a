"""Nesting limits: they are those of the error message, independent of the stack."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pytest

from tureen.errors import SqlError
from tureen.evaluation import duck
from tureen.language.binding.passes import bind_query
from tureen.language.text.depth import MAX_DEPTH, MAX_OPERATORS
from tureen.query import NamedRelation, Query
from tureen.schema import Schema

SCHEMA = Schema.parse("qty INT, price DOUBLE, sym STRING, flag BOOLEAN")

PARENTHESES = f"at most {MAX_DEPTH} levels of parentheses and CASE"
OPERATORS = f"at most {MAX_OPERATORS} nested operators"

# A condition of n levels, the maximum, and the hint beyond it.
FORMS: dict[str, tuple[Callable[[int], str], int, str]] = {
    "parentheses": (lambda n: "(" * n + "flag" + ")" * n, MAX_DEPTH, PARENTHESES),
    "functions": (lambda n: "abs(" * n + "price" + ")" * n + " = 1", MAX_DEPTH, PARENTHESES),
    "case": (lambda n: "CASE WHEN flag THEN 1 ELSE " * n + "2" + " END" * n + " = 1", MAX_DEPTH, PARENTHESES),
    "not, in parentheses": (lambda n: "NOT NOT (" * n + "flag" + ")" * n, MAX_DEPTH, PARENTHESES),
    "and, or": (lambda n: "(flag OR (qty = 1 AND " * n + "flag" + "))" * n, MAX_DEPTH // 2, PARENTHESES),
    "sum": (lambda n: "price" + " + 1" * n + " > 2", MAX_OPERATORS - 1, OPERATORS),
    "texts": (lambda n: "sym" + " || 'a'" * n + " = 'x'", MAX_OPERATORS - 1, OPERATORS),
    "casts": (lambda n: "price" + "::double" * n + " = 1", MAX_OPERATORS - 1, OPERATORS),
    "not": (lambda n: "NOT " * n + "flag", MAX_OPERATORS, OPERATORS),
    "minus": (lambda n: "- " * n + "price = 1", MAX_OPERATORS - 1, OPERATORS),
    "comparisons": (lambda n: "flag" + " = flag" * n, MAX_OPERATORS, OPERATORS),
}


def bound(text: str) -> Query:
    return bind_query(f"SELECT qty FROM t WHERE {text}", lambda _: NamedRelation("t", SCHEMA))


def outcome(text: str) -> tuple[int, str | None]:
    """The number of factors of a condition, or its error."""
    try:
        return len(bound(text).stream.clause), None
    except SqlError as error:
        return 0, error.hint if "nested too deeply" in error.message else error.message


def outcomes(name: str) -> list[tuple[int, str | None]]:
    form, limit, _ = FORMS[name]
    return [outcome(form(levels)) for levels in (limit, limit + 1)]


@cache
def outcomes_of_main_thread(name: str) -> list[tuple[int, str | None]]:
    """The outcomes on the stack of a test, with which those on other stacks are compared."""
    return outcomes(name)


@pytest.mark.parametrize("name", FORMS)
def test_nesting_is_accepted_up_to_the_limit(name: str) -> None:
    at_limit, beyond_limit = outcomes_of_main_thread(name)
    assert at_limit[1] is None
    assert beyond_limit == outcome(FORMS[name][0](10_000)) == (0, FORMS[name][2])


@pytest.mark.parametrize("name", FORMS)
def test_limit_is_independent_of_the_callers_stack(name: str) -> None:
    def below(levels: int) -> list[tuple[int, str | None]]:
        return below(levels - 1) if levels else outcomes(name)

    assert below(900) == outcomes_of_main_thread(name)


@pytest.mark.parametrize("name", FORMS)
def test_limit_is_independent_of_the_threads_stack(name: str) -> None:
    results: list[list[tuple[int, str | None]]] = []
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=lambda: results.append(outcomes(name)))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert results == [outcomes_of_main_thread(name)]


@pytest.mark.parametrize("name", FORMS)
def test_nested_conditions_can_be_evaluated(name: str) -> None:
    form, limit, _ = FORMS[name]
    query = bind_query(f"SELECT {form(limit)} AS it FROM t", lambda _: NamedRelation("t", SCHEMA))
    rows = pa.table({"qty": [1], "price": [1.0], "sym": ["a"], "flag": [True]})
    assert duck.run(f"SELECT {query.outputs[0].value.sql} AS it FROM rows", {"rows": rows}, "it").num_rows == 1


def test_chains_of_and_and_or_are_not_nested() -> None:
    chain = " OR ".join(f"price = {number}" for number in range(2_000))
    assert len(bound(f"({chain}) AND " + " AND ".join(["flag"] * 2_000)).stream.clause) == 2


def test_recursion_limit_is_restored() -> None:
    """By the last of concurrent binders: C code such as the JSON decoder must not overflow a thread's stack."""
    before = sys.getrecursionlimit()
    form, limit, _ = FORMS["not"]
    threads = [threading.Thread(target=lambda: [bound(form(limit)) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrecursionlimit() == before
