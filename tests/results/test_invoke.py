"""Which invocations are light: a server answers them without a thread."""

from __future__ import annotations

import pytest

from tureen.errors import UnknownQuery
from tureen.results import invoke
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture
def engine(engine: ManualEngine) -> ManualEngine:
    engine.create_stream("s", "a INT, t STRING, ts TIMESTAMP", time="ts")
    return engine


@pytest.mark.parametrize(
    ("sql", "light"),
    [
        ("SELECT a, ts FROM s WHERE a > 5 AND t = 'x' LIMIT 3", True),
        ("SELECT * FROM s BEGIN NOW - 5 END NOW", True),
        ("SELECT a + 1 AS b FROM s", False),
        ("SELECT a FROM s ORDER BY a", False),
        ("SELECT DISTINCT a FROM s", False),
        ("SELECT count(*) AS n FROM s", False),
        ("SELECT a FROM s WHERE t LIKE '%x%'", False),
        ("SELECT a FROM s WHERE a % 2 = 0", False),
        (f"SELECT a FROM s WHERE a IN ({', '.join(map(str, range(1000)))})", False),
    ],
)
def test_light_queries(engine: ManualEngine, sql: str, light: bool) -> None:
    assert engine.invoker.is_light(engine.register(sql, materialize=False)) == light


def test_many_rows_are_not_light(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = engine.register("SELECT a FROM s", materialize=False)
    engine.push("s", [{"a": 1, "t": "x", "ts": "2026-01-01T00:00:00Z"}] * 3)
    assert engine.invoker.is_light(handle)
    monkeypatch.setattr(invoke, "LIGHT_ROWS", 2)
    assert not engine.invoker.is_light(handle)


def test_the_error_for_an_unknown_handle_suggests_no_names(engine: ManualEngine) -> None:
    engine.register("SELECT a FROM s", materialize=False, name="0" * 31 + "x")
    with pytest.raises(UnknownQuery) as caught:
        engine.invoker.is_light("0" * 32)
    assert caught.value.hint == "it may have been unregistered"
