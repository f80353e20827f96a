"""User functions in the catalog: in use, dropped while a query is registered, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

import tureen
from tureen.errors import DuplicateName, FunctionInUse, QueryFailed, UnknownFunction
from tureen.functions.function_lookup import RecordedFunctions
from tureen.functions.function_source import function_of
from tureen.language.text.called_functions import calls_function
from tureen.pot.catalog import take_seq
from tureen.pot.functions import add_function, find_function, list_functions, remove_function
from tureen.pot.registered import LOCAL
from tureen.testing.manual_engine import ManualEngine


def twice(number: int) -> int:
    return 2 * number


TWICE = function_of("twice", twice, "INT", "INT")
THRICE = function_of("Twice", "builtins:abs", "INT", "INT")


def test_functions_are_found_by_any_case_and_replaced(engine: ManualEngine) -> None:
    with engine.catalog.write() as tx:
        add_function(tx, TWICE, "anna", calls_function)
        assert find_function(tx, "TWICE") == TWICE
        with pytest.raises(DuplicateName):
            add_function(tx, THRICE, "anna", calls_function)
        add_function(tx, THRICE, "anna", calls_function, replace=True)
        assert [(stored.function, stored.owner) for stored in list_functions(tx)] == [(THRICE, "anna")]
        remove_function(tx, "tWICE", calls_function)
        assert find_function(tx, "twice") is None
        with pytest.raises(UnknownFunction, match="there is no function named 'twice'"):
            remove_function(tx, "twice", calls_function)


def test_users_are_named(engine: ManualEngine) -> None:
    engine.create_stream("s", "twice INT")
    engine.create_function("twice", twice, "INT", arguments="INT")
    engine.register("SELECT twice FROM s WHERE twice > 1", name="a column of that name")
    for number in range(7):
        engine.register(f"SELECT twice FROM s WHERE TWICE (twice) > {number}", name=f"q{number}")
    engine.derive_stream("d", "SELECT twice(twice) AS n FROM s")
    with engine.catalog.write() as tx, pytest.raises(FunctionInUse) as used:
        remove_function(tx, "twice", calls_function)
    assert "'q0', query 'q1'" in str(used.value)
    assert "and 3 more" in str(used.value)
    assert "a column" not in str(used.value)


def test_a_function_that_is_dropped_while_a_query_is_registered(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create_stream("s", "n INT")
    engine.create_function("twice", twice, "INT", arguments="INT")
    find = RecordedFunctions.__call__

    def found_and_dropped(self: RecordedFunctions, name: str) -> object:
        function = find(self, name)
        with engine.catalog.write() as tx:
            take_seq(tx)
            remove_function(tx, "twice", calls_function)
        return function

    with tureen.open(engine.catalog.root, mode="auto") as soup:
        registry = soup._pot.components.registry
        monkeypatch.setattr(RecordedFunctions, "__call__", found_and_dropped)
        with pytest.raises(UnknownFunction):
            registry.register("SELECT n FROM s WHERE twice(n) > 1", None, "auto", LOCAL)
        assert soup.queries() == []


def test_functions_after_a_restart_and_without_their_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "modules" / "rules_of_test.py"
    module.parent.mkdir()
    module.write_text("def keep_large(n):\n    return n > 1\n")
    monkeypatch.syspath_prepend(str(module.parent))
    with tureen.open(tmp_path / "pot") as soup:
        soup.create_table("t", "n INT", [{"n": 1}, {"n": 2}])
        soup.create_function("keep_large", "rules_of_test:keep_large", "BOOLEAN", arguments="INT")
        soup.create_function("twice", twice, "INT", arguments="INT")
    with tureen.open(tmp_path / "pot", mode="read") as soup:
        assert list(soup.answer_once("SELECT twice(n) AS x FROM t WHERE keep_large(n)")) == [{"x": 4}]
        assert [function["name"] for function in soup.functions()] == ["keep_large", "twice"]
    module.unlink()
    with tureen.open(tmp_path / "pot") as soup:
        # Creating a function ends the worker processes, which have imported the module.
        with pytest.raises(tureen.errors.InvalidFunction, match="No module named 'rules_of_test'"):
            soup.create_function("keep_large", "rules_of_test:keep_large", "BOOLEAN", arguments="BIGINT", replace=True)
        with pytest.raises(QueryFailed, match="function keep_large cannot be loaded: ModuleNotFoundError"):
            soup.answer_once("SELECT n FROM t WHERE keep_large(n)")
        assert list(soup.answer_once("SELECT twice(n) AS x FROM t")) == [{"x": 2}, {"x": 4}]
