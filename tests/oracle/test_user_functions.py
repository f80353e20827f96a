"""Queries that call user functions: the engine against the oracle, which calls the Python functions themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.oracle.judges import same_rows
from tureen.errors import QueryFailed
from tureen.pipeline import arrival, compiling, upkeep
from tureen.testing import Handle, Oracle
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)


def is_odd(number: int | None) -> bool | None:
    return None if number is None else number % 2 == 1


def is_missing(text: str | None) -> bool:
    return text is None


def tenth(number: int | None) -> int:
    return 10 // number if number is not None else -1


def spell(text: str | None, number: int | None) -> str | None:
    return None if number is None else f"{text}{number}"


def later(moment: datetime, number: int | None) -> datetime:
    from datetime import timedelta  # noqa: PLC0415 - its source must not need its module

    return moment + timedelta(seconds=number or 0)


FUNCTIONS = (
    ("is_odd", is_odd, "BOOLEAN", "INT"),
    ("is_missing", is_missing, "BOOLEAN", "STRING"),
    ("tenth", tenth, "INT", "INT"),
    ("spell", spell, "STRING", "STRING, INT"),
    ("later", later, "TIMESTAMP", "TIMESTAMP, INT"),
)

CONDITIONS = (
    "is_odd(n)",
    "NOT is_odd(n)",
    "is_odd(n) IS NULL",
    "is_missing(s) OR n > 1",
    "is_missing(s) AND is_odd(n)",
    "n > 0 AND tenth(n) > 3",
    "n = 0 OR tenth(n) > 3",
    "tenth(n) > 3",
    "spell(s, n) IN ('a1', 'b2', 'None1')",
    "spell(s, n) LIKE 'a%' OR n IS NULL",
    "n > 0 AND spell(s, tenth(n)) LIKE 'None%'",
    "n > 0 AND spell(s, tenth(n)) LIKE 'a%'",
    "CASE WHEN is_missing(s) THEN n = 1 ELSE is_odd(n + 1) END",
    "later(ts, n) > ts",
    "is_odd(1) AND n < 3",
    "tenth(0) = 1 AND n > 100",
)
SELECTS = (
    "SELECT s, n FROM t WHERE {}",
    "SELECT spell(s, n) AS x, is_odd(n) AS y FROM t WHERE {}",
    "SELECT is_odd(n) AS k, count(*) AS c, sum(length(spell(s, n))) AS l FROM t WHERE {} GROUP BY is_odd(n)",
    "SELECT is_odd(n) AS k, max(spell(s, n)) AS m FROM t WHERE {} GROUP BY is_odd(n) HAVING NOT is_missing(max(s))",
    "SELECT n FROM t WHERE {} ORDER BY spell(s, n) DESC, n, ts",
    "SELECT DISTINCT is_odd(n) AS k FROM t WHERE {}",
    "SELECT s, n, tenth(n) AS x FROM t WHERE n <> 0 AND ({})",
    "SELECT t.n, u.m FROM t JOIN u ON t.n = u.m WHERE {}",
    "SELECT t.n, u.m FROM t JOIN u ON spell('a', t.n) = spell('a', u.m) WHERE {}",
    "SELECT t.n, u.m FROM t LEFT JOIN u ON t.n = u.m AND is_odd(u.m) WHERE {}",
    "SELECT t.s, spell(t.s, u.m) AS x FROM t JOIN u ON t.n = u.m AND is_odd(t.n + u.m + 1) WHERE {}",
    "SELECT s, n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.m = t.n AND is_odd(u.m)) AND ({})",
)


class FunctionRun:
    """The engine and its twin, with the same streams, functions, rows and queries."""

    def __init__(self, root: Path) -> None:
        """Create both, and the functions in both."""
        self.engine, self.oracle = ManualEngine(root), Oracle()
        for each in (self.engine, self.oracle):
            each.create_stream("t", "s STRING, n INT, ts TIMESTAMP", time="ts", clock="stream")
            each.create_stream("u", "m INT, at TIMESTAMP", time="at", clock="stream")
            for name, function, returns, arguments in FUNCTIONS:
                each.create_function(name, function, returns, arguments=arguments)
        self.pairs: list[tuple[str, str, Handle]] = []
        self.rows = 0

    def push(self, action: str, stream: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Push rows to both."""
        time = "ts" if stream == "t" else "at"
        timed = [{**row, time: START + timedelta(seconds=self.rows + number)} for number, row in enumerate(rows)]
        self.rows += len(rows)
        (self.engine.push if action == "push" else self.engine.append)(stream, timed)
        self.oracle.push(stream, timed)

    def register(self, sql: str, materialize: bool | None) -> None:
        """Register a query with both."""
        self.pairs.append((sql, self.engine.register(sql, materialize=materialize), self.oracle.register(sql)))

    def check(self) -> None:
        """Compare all answers; an eager clause may have been stopped by a tuple that its window does not contain."""
        for sql, handle, twin in self.pairs:
            try:
                expected = twin.invoke()
            except QueryFailed:
                with pytest.raises(QueryFailed):
                    self.engine.invoke(handle)
                continue
            answer = list(self.engine.invoke(handle))
            assert same_rows(answer, expected, ordered=" ORDER BY " in sql), (sql, answer, expected)


@pytest.fixture
def script_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FunctionRun]:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)
    run = FunctionRun(tmp_path / "pot")
    yield run
    run.engine.close()


T_ROWS: list[dict[str, Any]] = [{"s": s, "n": n} for s in ("a", "b", None) for n in (None, 0, 1, 2, 3, -5)]
U_ROWS = [{"m": m} for m in (None, 1, 2, 2, 3)]


def test_every_form_of_query_equals_the_oracle(script_run: FunctionRun) -> None:
    script_run.push("push", "t", T_ROWS)
    script_run.push("append", "u", U_ROWS)
    script_run.push("append", "t", T_ROWS[:5])
    for number, select in enumerate(SELECTS):
        for condition in CONDITIONS[number % 2 :: 2]:
            script_run.register(select.format(condition), False)
    script_run.check()


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Pushes, queries and upkeep in any order."""
    t_rows = st.lists(st.sampled_from(T_ROWS), min_size=1, max_size=9)
    u_rows = st.lists(st.sampled_from(U_ROWS), min_size=1, max_size=5)
    ways = st.sampled_from(["push", "append"])
    push = st.one_of(st.tuples(ways, st.just("t"), t_rows), st.tuples(ways, st.just("u"), u_rows))
    text = st.builds(lambda select, condition: select.format(condition), *map(st.sampled_from, (SELECTS, CONDITIONS)))
    register = st.tuples(st.just("register"), text, st.sampled_from([True, True, False, None]))
    other = st.tuples(st.sampled_from(["compile", "pay", "seal", "take t", "take u"]))
    return draw(st.lists(st.one_of(push, register, register, other), min_size=6, max_size=14))


@example_settings(6, shrink=False)
@given(scripts())
def test_engine_equals_oracle_at_every_step(script: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "LONG_TAIL", 8)
        patch.setattr(compiling, "SMALL_RUN", 1)
        run = FunctionRun(Path(folder))
        try:
            for action, *arguments in script:
                if action == "register":
                    run.register(*arguments)
                elif action in ("push", "append"):
                    run.push(action, *arguments)
                elif action.startswith("take"):
                    run.engine.take(action.split()[1])
                else:
                    getattr(run.engine, action)()
                run.check()
        finally:
            run.engine.close()


def test_values_are_those_of_the_python_functions(script_run: FunctionRun) -> None:
    script_run.push("push", "t", T_ROWS)
    rows = [row for row in T_ROWS if row["n"] != 0]
    outputs = "spell(s, tenth(n)) AS x, is_odd(tenth(n)) AS y, is_missing(spell(s, n)) AS z"
    sql = f"SELECT {outputs} FROM t WHERE n <> 0 OR n IS NULL"
    assert list(script_run.engine.invoke(script_run.engine.register(sql, materialize=False))) == [
        {"x": spell(s, tenth(n)), "y": is_odd(tenth(n)), "z": is_missing(spell(s, n))}
        for s, n in ((row["s"], row["n"]) for row in rows)
    ]
    where = "SELECT s, n FROM t WHERE n > 0 AND is_odd(tenth(n)) AND NOT is_missing(s)"
    assert list(script_run.engine.invoke(script_run.engine.register(where))) == [
        row for row in rows if (row["n"] or 0) > 0 and is_odd(tenth(row["n"])) and not is_missing(row["s"])
    ]
