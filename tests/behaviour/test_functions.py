"""User functions, in an open pot and behind a server: the same answers and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tureen
from tests.behaviour.conftest import AnySoup, rows
from tests.service.running import RunningServer
from tureen.errors import (
    DuplicateName,
    Forbidden,
    FunctionInUse,
    InvalidFunction,
    LimitExceeded,
    QueryFailed,
    TypeMismatch,
    UnknownFunction,
)
from tureen.position import BEGINNING

Names = Callable[[str], str]


def is_cheap(price: float | None) -> bool:
    return price is not None and price < 10


def label(sym: str, qty: int) -> str:
    return f"{sym}-{qty}"


def test_functions_in_every_clause(soup: AnySoup, trades: str, fresh: Names) -> None:
    cheap, labelled, copy = fresh("cheap"), fresh("labelled"), fresh("copy")
    soup.create_function(cheap, is_cheap, "BOOLEAN", arguments="DOUBLE")
    soup.create_function(labelled, label, "STRING", arguments="STRING, INT")
    soup.push(trades, rows(("A", 1.0, 1), ("B", 20.0, 2), ("A", 3.0, 3)))
    query = soup.register(f"SELECT {labelled}(sym, qty) AS label FROM {trades} WHERE {cheap}(price)", name=fresh("q"))
    assert list(query.invoke()) == [{"label": "A-1"}, {"label": "A-3"}]
    assert list(soup.answer_once(f"SELECT {cheap}(price) AS c, count(*) AS n FROM {trades} GROUP BY 1 ORDER BY n")) == [
        {"c": False, "n": 1},
        {"c": True, "n": 2},
    ]
    members = soup.register_many(f"SELECT qty FROM {trades} WHERE {cheap}(price) AND sym = :sym", [{"sym": "A"}])
    assert [row["qty"] for row in members[0].invoke()] == [1, 3]
    soup.create_stream(copy, query=f"SELECT {labelled}(sym, qty) AS label, ts FROM {trades} WHERE NOT {cheap}(price)")
    followed = query.changes(since=BEGINNING, timeout=30)
    assert [next(followed).row["label"] for _ in range(2)] == ["A-1", "A-3"]
    at = soup.push(trades, rows(("C", 5.0, 4), ("D", 50.0, 5), start=10))
    assert next(followed).row == {"label": "C-4"}
    soup.wait(at, timeout=30)
    assert [row["label"] for row in soup.answer_once(f"SELECT label FROM {copy}")] == ["B-2", "D-5"]
    assert f"{cheap}(price) is false" in str(query.why("sym = 'D'"))
    described = {function["name"]: function for function in soup.functions()}
    assert (described[cheap]["arguments"], described[cheap]["returns"], described[cheap]["path"]) == (
        "DOUBLE",
        "BOOLEAN",
        None,
    )
    assert described[cheap]["source"].startswith("def is_cheap(price")
    assert described[cheap]["calls"] > 0
    with pytest.raises(
        FunctionInUse, match=f"'{labelled}' cannot be dropped: it is called by query '{query.name}', stream"
    ):
        soup.drop_function(labelled)
    with pytest.raises(FunctionInUse, match="cannot be replaced"):
        soup.create_function(cheap, label, "STRING", arguments="STRING, INT", replace=True)
    soup.drop_stream(copy)
    for handle in (query, members):
        handle.unregister()
    for name in (cheap, labelled):
        soup.drop_function(name)
    with pytest.raises(UnknownFunction):
        soup.drop_function(cheap)
    with pytest.raises(tureen.errors.Unsupported, match=f"the function {cheap} is not supported"):
        soup.answer_once(f"SELECT {cheap}(price) FROM {trades}")


def test_statements(soup: AnySoup, trades: str, fresh: Names) -> None:
    base = fresh("base")
    soup.push(trades, rows(("/x/y", 1.0, 1)))
    soup.sql(f"CREATE FUNCTION {base}(STRING) RETURNS STRING AS 'posixpath:basename'")
    soup.sql(f"CREATE OR REPLACE FUNCTION {base}(STRING) RETURNS STRING AS 'posixpath:dirname'")
    assert list(soup.answer_once(f"SELECT {base.upper()}(sym) AS x FROM {trades}")) == [{"x": "/x"}]
    listed = soup.sql("SHOW FUNCTIONS")
    assert isinstance(listed, list)
    assert [entry["path"] for entry in listed if entry["name"] == base] == ["posixpath:dirname"]
    soup.sql(f"DROP FUNCTION {base}")
    soup.sql(f"DROP FUNCTION IF EXISTS {base}")


def test_errors(soup: AnySoup, trades: str, fresh: Names) -> None:
    name = fresh("f")
    for text, error, message in (
        ("CREATE FUNCTION upper(STRING) RETURNS STRING AS 'posixpath:basename'", DuplicateName, "built-in function"),
        (
            f"CREATE FUNCTION {name}(STRING) RETURNS STRING AS 'not_here:f'",
            InvalidFunction,
            "No module named 'not_here'",
        ),
        (f"CREATE FUNCTION {name}(STRING) RETURNS STRING AS 'posixpath'", InvalidFunction, "not an import path"),
    ):
        with pytest.raises(error, match=message) as raised:
            soup.sql(text)
        assert raised.value.location == tureen.errors.Location(1, 17)
    with pytest.raises(InvalidFunction, match="a lambda"):
        soup.create_function(name, lambda number: number, "INT", arguments="INT")
    soup.create_function(name, label, "STRING", arguments="STRING, INT")
    with pytest.raises(DuplicateName, match="exists already"):
        soup.create_function(name, label, "STRING", arguments="STRING, INT")
    with pytest.raises(TypeMismatch, match=f"{name} does not accept a DOUBLE here") as mismatch:
        soup.register(f"SELECT {name}(sym, price) FROM {trades}")
    assert mismatch.value.location == tureen.errors.Location(1, len(f"SELECT {name}(sym, ") + 1)


def divide(number: int) -> int:
    return 10 // number


def test_a_function_that_raises_stops_only_its_query(soup: AnySoup, trades: str, fresh: Names) -> None:
    name = fresh("divide")
    soup.create_function(name, divide, "INT", arguments="INT")
    soup.push(trades, rows(("A", 1.0, 0), ("B", 2.0, 5)))
    failing = soup.register(f"SELECT sym FROM {trades} WHERE {name}(qty) = 2")
    other = soup.register(f"SELECT sym FROM {trades} WHERE qty > 0 AND {name}(qty) = 2")
    with pytest.raises(QueryFailed, match=rf"{name}\(0\) raised ZeroDivisionError"):
        failing.invoke()
    assert list(other.invoke()) == [{"sym": "B"}]


def wait_for_ever(number: int) -> int:
    import time  # noqa: PLC0415 - its source must not need its module

    if number == 7:
        time.sleep(3600)
    return number


def test_a_function_that_never_ends_stops_only_its_query(
    soup: AnySoup, trades: str, fresh: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUREEN_FUNCTION_SECONDS", "0.5")
    name = fresh("wait_for_ever")
    soup.create_function(name, wait_for_ever, "INT", arguments="INT")
    soup.push(trades, rows(("A", 1.0, 7), ("B", 2.0, 5)))
    failing = soup.register(f"SELECT sym FROM {trades} WHERE {name}(qty) > 0")
    with pytest.raises(LimitExceeded, match=rf"the call was {name}\(7\)"):
        failing.invoke()
    assert list(soup.answer_once(f"SELECT sym FROM {trades} WHERE qty < 7 AND {name}(qty) = 5")) == [{"sym": "B"}]


def test_only_admins_create_functions(served_pot: RunningServer, fresh: Names) -> None:
    name = fresh("f")
    served_pot.soup.create_function(name, label, "STRING", arguments="STRING, INT")
    for scope in ("read", "write"):
        with tureen.connect(served_pot.url, served_pot.tokens[scope]) as client:
            with pytest.raises(Forbidden, match="scope 'admin' is required"):
                client.create_function(fresh("f"), label, "STRING", arguments="STRING, INT")
            with pytest.raises(Forbidden, match="scope 'admin' is required"):
                client.sql(f"CREATE FUNCTION {fresh('f')}(STRING) RETURNS STRING AS 'posixpath:basename'")
            with pytest.raises(Forbidden, match="scope 'admin' is required"):
                client.drop_function(name)
    with tureen.connect(served_pot.url, served_pot.tokens["read"]) as client:
        (visible,) = [function for function in client.functions() if function["name"] == name]
        assert visible["source"] is visible["path"] is None
        listed = client.sql("SHOW FUNCTIONS")
        assert isinstance(listed, list)
        assert all(function["source"] is None for function in listed)


def test_two_pots_with_functions_of_one_name(tmp_path: Path) -> None:
    sources = (is_cheap, wait_for_ever)
    pots = [tureen.open(tmp_path / str(number)) for number in range(2)]
    for pot, function, kind in zip(pots, sources, ("BOOLEAN", "INT"), strict=True):
        pot.create_table("t", "n INT", [{"n": 3}])
        pot.create_function("same", function, kind, arguments="DOUBLE" if kind == "BOOLEAN" else "INT")
    assert [list(pot.answer_once("SELECT same(n) AS x FROM t")) for pot in pots] == [[{"x": True}], [{"x": 3}]]
    for pot in pots:
        pot.close()
