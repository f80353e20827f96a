"""A text is bound once, as long as its names mean the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.fast_path_switch import without_fast_paths
from tureen.errors import TureenError, UnknownStream
from tureen.fast_paths import FastPath
from tureen.functions.function_lookup import FunctionLookup, NamedFunctions, no_functions
from tureen.functions.function_source import defined_function
from tureen.functions.user_function import function_key
from tureen.language.binding.passes import bind_query
from tureen.language.languages import bind_text
from tureen.query import NamedRelation, Query, RelationKind
from tureen.schema import Schema

AB = NamedRelation("s", Schema.parse("a INT, b STRING", None))


def bind(
    text: str, relations: Mapping[str, NamedRelation], functions: FunctionLookup = no_functions, language: str = "sql"
) -> Query:
    """Bind a text over relations by their names."""

    def look_up(name: str) -> NamedRelation:
        try:
            return relations[name]
        except KeyError:
            raise UnknownStream(f"there is no stream named '{name}'") from None

    return bind_text(text, language, look_up, functions)


def test_a_text_is_bound_once() -> None:
    text = "SELECT a + 1 AS only_in_this_test FROM s WHERE b LIKE 'x%'"
    first = bind(text, {"s": AB})
    assert bind(text, {"s": NamedRelation("s", Schema.parse("a INT, b STRING", None))}) is first
    assert bind_query(text, lambda _: AB) == first


@pytest.mark.parametrize(
    "other",
    [
        NamedRelation("s", Schema.parse("a BIGINT, b STRING", None)),
        NamedRelation("S", AB.schema),
        NamedRelation("s", Schema.parse("a INT, b STRING, c INT", None)),
        NamedRelation("s", AB.schema, RelationKind.TABLE),
        NamedRelation("s", AB.schema, item="/r/i"),
    ],
)
def test_a_text_over_another_relation_is_bound_again(other: NamedRelation) -> None:
    text = "SELECT * FROM s JOIN s AS t ON s.a = t.a"
    table = {"s": NamedRelation("u", AB.schema)}
    for relations in (table, {"s": other}, {"s": AB}, {"s": other}):
        try:
            expected: Query | str = bind_query(text, relations.__getitem__)
        except TureenError as error:
            expected = str(error)
        try:
            bound: Query | str = bind(text, relations)
        except TureenError as error:
            bound = str(error)
        assert bound == expected


def test_all_relations_are_looked_up_again() -> None:
    text = "SELECT s.a FROM s JOIN t ON s.a = t.a"
    names: list[str] = []

    def look_up(name: str) -> NamedRelation:
        names.append(name)
        return NamedRelation(name, AB.schema)

    bind_text(text, "sql", look_up)
    del names[:]
    bind_text(text, "sql", look_up)
    assert sorted(names) == ["s", "t"]


def test_a_dropped_relation_is_reported_where_it_is_named() -> None:
    text = "SELECT a FROM s WHERE a > 99"
    bind(text, {"s": AB})
    with pytest.raises(UnknownStream) as caught:
        bind(text, {})
    assert caught.value.message == "there is no stream named 's'"


def test_queries_with_user_functions_are_bound_each_time() -> None:
    def functions(returns: str) -> NamedFunctions:
        source = "def twice(a):\n    return 2 * a"
        function = defined_function("twice", source, None, returns, "INT", vectorized=False)
        return NamedFunctions({function_key("twice"): function})

    text = "SELECT twice(a) AS x FROM s"
    results = [bind(text, {"s": AB}, functions(returns)) for returns in ("BIGINT", "DOUBLE")]
    assert results[0] != results[1]
    with pytest.raises(TureenError, match="twice"):
        bind(text, {"s": AB})


def test_one_text_in_two_languages_is_not_confused() -> None:
    text = "SELECT a FROM s"
    bind(text, {"s": AB})
    with pytest.raises(TureenError):
        bind(text, {"s": AB}, language="wxquery")


def test_without_quick_binding_each_text_is_bound() -> None:
    text = "SELECT a + 2 AS only_in_this_test FROM s"
    with without_fast_paths(FastPath.QUICK_BINDING):
        first, second = bind(text, {"s": AB}), bind(text, {"s": AB})
    assert first == second
    assert first is not second
