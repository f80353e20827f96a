"""Binding calls of user functions: types, casts, errors with a location, names that are taken."""

from __future__ import annotations

import pytest

from tureen.errors import DuplicateName, Location, SqlError, TypeMismatch, Unsupported
from tureen.functions.function_lookup import NamedFunctions
from tureen.functions.function_source import defined_function
from tureen.functions.user_function import shown_sql
from tureen.language import bind_query
from tureen.language.binding.calls import NAMES
from tureen.language.binding.user_functions import check_free_name
from tureen.language.fast.quick import QuickBinder
from tureen.language.text.called_functions import calls_function
from tureen.predicate import Opaque, dump_clause, load_clause
from tureen.query import NamedRelation, Query
from tureen.schema import Schema

SCHEMA = Schema.parse("i INT, b BIGINT, x DOUBLE, d DECIMAL(10,2), s STRING, t TIMESTAMP, day DATE, ok BOOLEAN", "t")
TYPES = {
    "f_int": "INT",
    "f_tiny": "TINYINT",
    "f_double": "DOUBLE",
    "f_decimal": "DECIMAL(12,4)",
    "f_string": "STRING",
    "f_time": "TIMESTAMP",
    "f_bool": "BOOLEAN",
}
FUNCTIONS = {
    name: defined_function(name, f"def {name}(a):\n    return a\n", None, kind, kind) for name, kind in TYPES.items()
}


def bound(sql: str) -> Query:
    return bind_query(sql, lambda name: NamedRelation(name, SCHEMA), functions=NamedFunctions(FUNCTIONS))


@pytest.mark.parametrize(
    ("call", "sql"),
    [
        ("f_int(i)", 'f_int("i")'),
        ("F_INT(5)", "f_int(CAST(5 AS INTEGER))"),
        ("f_tiny(5)", "f_tiny(CAST(5 AS TINYINT))"),
        ("f_double(i)", 'f_double(CAST("i" AS DOUBLE))'),
        ("f_int(2.0)", "f_int(CAST(2 AS INTEGER))"),
        ("f_decimal(-1.5)", "f_decimal(CAST('-1.5000' AS DECIMAL(12,4)))"),
        ("f_double(1.5)", "f_double(CAST('1.5' AS DOUBLE))"),
        ("f_decimal(d)", 'f_decimal(CAST("d" AS DECIMAL(12,4)))'),
        ("f_string(s)", 'f_string("s")'),
        ("f_string(i)", 'f_string(CAST("i" AS VARCHAR))'),
        ("f_string(NULL)", "f_string(CAST(NULL AS VARCHAR))"),
        ("f_time(day)", 'f_time(CAST("day" AS TIMESTAMP))'),
        ("f_time('2026-01-01')", "f_time(TIMESTAMP '2026-01-01 00:00:00.000000')"),
        ("f_int(f_int(i) + 1)", 'f_int((f_int("i") + CAST(1 AS INTEGER)))'),
    ],
)
def test_arguments_are_cast(call: str, sql: str) -> None:
    (output,) = bound(f"SELECT {call} AS value FROM s").outputs
    assert shown_sql(output.value.sql) == sql


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("f_int(b)", "f_int does not accept a BIGINT here"),
        ("f_int(x)", "f_int does not accept a DOUBLE here"),
        ("f_int(s)", "f_int does not accept a STRING here"),
        ("f_double(s)", "f_double does not accept a STRING here"),
        ("f_bool(i)", "f_bool does not accept an INT here"),
        ("f_time(i)", "f_time does not accept an INT here"),
        ("f_int(1.5)", r"f_int does not accept a DECIMAL\(2,1\) here"),
        ("f_int(-0.5)", r"f_int does not accept a DECIMAL\(1,1\) here"),
        ("f_int(1.5D)", "f_int does not accept a DOUBLE here"),
        ("f_decimal(1.00001)", r"f_decimal does not accept a DECIMAL\(6,5\) here"),
        ("f_int('1.5')", "'1.5' is not an INT"),
        ("f_int('x')", "'x' is not an INT"),
        ("f_tiny(500)", "is not a TINYINT"),
        ("f_int(INTERVAL '1' DAY)", "f_int does not accept an INTERVAL here"),
    ],
)
def test_arguments_that_do_not_fit(call: str, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message) as raised:
        bound(f"SELECT {call} FROM s")
    assert raised.value.location is not None
    assert raised.value.location.line == 1
    assert raised.value.hint is not None or "is not a" in message


def test_wrong_numbers_of_arguments_and_unknown_names() -> None:
    with pytest.raises(SqlError, match="f_int takes 1 argument, got 2") as raised:
        bound("SELECT i,\n f_int(i, i) FROM s")
    assert raised.value.location == Location(2, 2)
    assert raised.value.hint == "it is f_int(INT) RETURNS INT"
    with pytest.raises(Unsupported, match="the function g is not supported"):
        bound("SELECT g(i) FROM s")
    for text, hint in (("f_dobule(i)", "f_double"), ("F_BOOLE(ok)", "f_bool"), ("uper(s)", "upper")):
        with pytest.raises(Unsupported, match="is not supported") as raised:
            bound(f"SELECT {text} FROM s")
        assert raised.value.hint == f"did you mean '{hint}'?"
    with pytest.raises(TypeMismatch, match="WHERE requires a condition, got an INT"):
        bound("SELECT i FROM s WHERE f_int(i)")


@pytest.mark.parametrize(
    "name",
    ["upper", "UPPER", "sum", "levenshtein", "left", "if", "cast", "coalesce", "tumble", "window", "now", "select"],
)
def test_names_of_the_language_are_refused(name: str) -> None:
    with pytest.raises(DuplicateName, match="built-in function"):
        check_free_name(name, frozenset(NAMES))


def test_factors_carry_definitions_and_come_last() -> None:
    clause = bound("SELECT i FROM s WHERE f_bool(ok) AND upper(s) = 'A' AND i > 3").stream.clause
    assert [isinstance(factor, Opaque) for factor in clause] == [False, True, True]
    last = clause[-1]
    assert isinstance(last, Opaque)
    assert last.functions == (FUNCTIONS["f_bool"].text,)
    assert load_clause(dump_clause(clause)) == clause
    (negated,) = bound("SELECT i FROM s WHERE (NOT f_bool(ok)) IS NOT TRUE").stream.clause
    assert isinstance(negated, Opaque)
    assert negated.functions == last.functions


def test_frames_with_functions_are_bound_again() -> None:
    binder = QuickBinder()
    functions = {"g": FUNCTIONS["f_int"]}

    def bind(text: str) -> str:
        query, _ = binder.bind(text, lambda name: NamedRelation(name, SCHEMA), NamedFunctions(functions))
        return query.outputs[0].value.sql

    first = [bind(f"SELECT g(i) AS x FROM s WHERE i > {number}") for number in range(3)]
    functions["g"] = FUNCTIONS["f_double"]
    assert bind("SELECT g(i) AS x FROM s WHERE i > 9") not in first


def test_calls_are_found_in_texts() -> None:
    for text in ("SELECT f(a) FROM s", "SELECT a FROM s WHERE F (a) > 1", "SELECT `f`(a) FROM s"):
        assert calls_function(text, "f")
    for text in ("SELECT f FROM s", "SELECT 'f(a)' FROM s", "SELECT ff(a) FROM s -- f(a)", "SELECT a FROM s WHERE 'x"):
        assert not calls_function(text, "f")
