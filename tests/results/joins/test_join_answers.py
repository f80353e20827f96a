"""Joins through the catalog: explaining, unregistering and dropping, and queries that must be refused when bound."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tureen.errors import QueryFailed, SqlError, TureenError, UnknownQuery, Unsupported
from tureen.joining.join_limits import JoinLimits
from tureen.pot.streams import drop_stream, find_stream
from tureen.results.invoke import Invoker
from tureen.results.joins import joined
from tureen.results.joins.join_answers import JoinAnswer
from tureen.results.joins.join_ready import ReadyBlock
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    engine = ManualEngine(tmp_path)
    for name in ("a", "b", "c"):
        engine.create_stream(name, "k INT, x BIGINT, s STRING, ts TIMESTAMP", time="ts", clock="stream")
        engine.push(name, [{"k": n, "x": n, "s": str(n), "ts": START + timedelta(seconds=n)} for n in range(6)])
    Dimensions(engine.catalog).create("dim", "k INT, w STRING", [{"k": 1, "w": "one"}])
    return engine


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x FROM a JOIN dim ON a.k = dim.k",
        "SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k LEFT JOIN dim ON dim.k = a.k",
        "SELECT a.x FROM a LEFT JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b.k = c.k WHERE b.k = a.k)",
        "SELECT x FROM a WHERE k NOT IN (SELECT k FROM b) AND x > (SELECT min(x) FROM b)",
        "SELECT x FROM a WHERE (SELECT max(x) FROM b) IN (SELECT x FROM b)",
        "SELECT x, (SELECT count(*) FROM b WHERE b.x < a.x) AS n FROM a",
        "SELECT x FROM a WHERE x > 3 OR EXISTS (SELECT 1 FROM b, dim WHERE b.x = a.x AND dim.k = b.k)",
        "SELECT x FROM a WHERE x = 0 OR k NOT IN (SELECT b.k FROM b WHERE b.x <> a.x)",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b.k = c.k AND c.x = a.x)",
        "WITH q AS (SELECT k FROM a UNION SELECT k FROM dim) SELECT l.k FROM q l, q r WHERE l.k = r.k",
        "SELECT count(*) AS n FROM dim",
    ],
)
def test_joins_are_explained_and_unregistered(engine: ManualEngine, sql: str) -> None:
    handle, other = engine.register(sql, materialize=None), engine.register("SELECT a.k FROM a, dim")
    answer = list(engine.invoke(handle))
    explained = engine.invoker.explain(handle)
    assert json.loads(json.dumps(explained))["sql"] == sql
    assert len(explained["inputs"]) >= 1
    engine.unregister(handle)
    with pytest.raises(UnknownQuery):
        engine.invoke(handle)
    assert list(engine.invoker.answer_once(sql)) == answer
    assert len(engine.invoke(other)) == 6


@pytest.mark.parametrize(
    ("sql", "shared", "alone"),
    [
        ("WITH q AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT l.k FROM q l, q m, q r WHERE l.k = m.k", 1, 3),
        ("WITH q AS (SELECT k FROM a), p AS (SELECT k FROM q) SELECT p.k FROM p, q WHERE p.k = q.k", 2, 3),
        ("WITH q AS (SELECT k FROM a) SELECT k FROM q WHERE k > 1 UNION ALL SELECT k FROM q", 4, 5),
        ("WITH q AS (SELECT k FROM a) SELECT l.k FROM q l, q [ROWS 2] r", 2, 2),
        ("SELECT k FROM a WHERE x > (SELECT avg(x) FROM b) OR x + 1 > (SELECT avg(x) FROM b)", 1, 2),
        ("SELECT k FROM a WHERE x > (SELECT min(x) FROM b) AND x < (SELECT max(x) FROM b)", 2, 2),
    ],
)
def test_equal_blocks_are_answered_once(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, sql: str, shared: int, alone: int
) -> None:
    answered: list[ReadyBlock] = []
    block_answer = JoinAnswer.block_answer

    def counted(self: JoinAnswer, block: ReadyBlock) -> pa.Table:
        answered.append(block)
        return block_answer(self, block)

    handle = engine.register(sql)
    monkeypatch.setattr(JoinAnswer, "block_answer", counted)
    rows = list(engine.invoke(handle))
    assert len(answered) == shared
    monkeypatch.setattr(JoinAnswer, "_answered", lambda self, _, block: self.block_answer(block))
    assert list(engine.invoke(handle)) == rows
    assert len(answered) == shared + alone


def test_explain_says_how_the_rows_of_an_input_are_found(engine: ManualEngine) -> None:
    large = [{"k": n, "x": n, "s": str(n), "ts": START + timedelta(seconds=n)} for n in range(2000)]
    engine.push("b", large)

    def ways(sql: str, *, materialize: bool = False) -> list[str]:
        handle = engine.register(sql, materialize=materialize)
        engine.keep_joins()
        return [entry["joined_by"] for entry in engine.invoker.explain(handle)["inputs"]]

    assert ways("SELECT a.x FROM a JOIN b ON a.k = b.k") == ["scan", "key index"]
    assert ways("SELECT a.x FROM b RIGHT JOIN a ON a.s = b.s") == ["key index", "scan"]
    assert ways("SELECT a.x FROM a JOIN c ON a.k = c.k") == ["scan", "scan"]
    assert ways("SELECT a.x FROM a JOIN b ON a.k < b.k") == ["scan", "scan"]
    assert ways("SELECT q.k FROM dim, (SELECT b.k FROM a JOIN b ON a.k = b.k) q") == ["scan", "scan", "key index"]
    sql = "SELECT a.x FROM a JOIN b ON a.k = b.k JOIN dim ON dim.k = a.k"
    assert ways(sql, materialize=True) == ["kept results", "kept results", "scan"]


def test_explain_says_why_a_join_fails(engine: ManualEngine) -> None:
    handle = engine.register("SELECT a.x FROM a JOIN b ON a.k = b.k", materialize=False)
    assert engine.invoker.explain(handle)["join_error"] is None
    engine.invoker.answers.limits = JoinLimits(rows=1)
    with pytest.raises(QueryFailed, match="more than 1"):
        engine.invoke(handle)
    explained = engine.invoker.explain(handle)
    assert "more than 1" in explained["join_error"]
    assert len(explained["join_order"]) == 1, "the side that it begins with"
    assert [entry["stream"] for entry in explained["inputs"]] == ["a", "b"]


def test_explain_does_not_compute_the_answer(engine: ManualEngine) -> None:
    failing = engine.register("SELECT CAST(a.s || 'x' AS INT) AS n FROM a JOIN b ON a.k = b.k", materialize=None)
    with pytest.raises(QueryFailed):
        engine.invoke(failing)
    engine.invoker.watch.take()
    assert engine.invoker.explain(failing)["join_order"][1]["joined_rows"] == 6
    assert not engine.invoker.watch.take().joins, "an explanation is not an invocation"


def test_dropping_a_relation_unregisters_the_queries_over_it(engine: ManualEngine) -> None:
    sqls = ["SELECT a.x FROM a, b", "SELECT b.x FROM b LEFT JOIN dim ON b.k = dim.k", "SELECT w FROM dim"]
    of_streams, of_table, alone = (engine.register(sql) for sql in sqls)
    kept = engine.register("SELECT x FROM a WHERE x > 2")
    Dimensions(engine.catalog).drop("dim")
    for handle in (of_table, alone):
        with pytest.raises(UnknownQuery):
            engine.invoke(handle)
    assert len(engine.invoke(of_streams)) == 36
    with engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "b"))
    with pytest.raises(UnknownQuery):
        engine.invoke(of_streams)
    assert len(engine.invoke(kept)) == 3


def test_replaced_table_is_in_the_next_answer(engine: ManualEngine) -> None:
    handle = engine.register("SELECT dim.w FROM a JOIN dim ON a.k = dim.k")
    before = engine.invoke(handle)
    Dimensions(engine.catalog).replace("dim", [{"k": 2, "w": "two"}, {"k": 3, "w": "three"}])
    after = engine.invoke(handle)
    assert ([*before], [*after]) == ([{"w": "one"}], [{"w": "two"}, {"w": "three"}])
    assert before.position < after.position


def test_steps_of_a_query_within_a_query_depend_on_its_own_windows(engine: ManualEngine) -> None:
    steps = "SELECT window_start AS w, count(*) AS n FROM a x [TUMBLE 2 SECONDS] JOIN b y ON x.k = y.k"
    alone = [(row["w"], row["n"]) for row in engine.invoke(engine.register(steps))]
    assert len(alone) == 2
    within = engine.register(f"SELECT z.w, z.n FROM a t [ROWS 1], c [RANGE 0 SECONDS], ({steps}) z")
    assert [(row["w"], row["n"]) for row in engine.invoke(within)] == alone
    around = engine.register(f"{steps} JOIN (SELECT max(k) AS m FROM c [RANGE 0 SECONDS]) z ON z.m > 0")
    assert [(row["w"], row["n"]) for row in engine.invoke(around)] == alone


def test_a_lateral_value_has_one_row(engine: ManualEngine) -> None:
    """A query that is used as a value must not have several rows, for any row of the query around it."""
    query = engine.register("SELECT x, (SELECT b.s FROM b WHERE b.k = a.k AND b.x > 1) AS s FROM a")
    assert [row["s"] for row in engine.invoke(query)] == [None, None, "2", "3", "4", "5"]
    engine.push("b", [{"k": 4, "x": 9, "s": "other", "ts": START}])
    with pytest.raises(QueryFailed, match="used as a value returned 2 rows"):
        engine.invoke(query)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x IN (SELECT max(x) FROM b)", [5]),
        ("x = 0 OR x IN (SELECT max(x) FROM b)", [0, 5]),
        ("x = 0 OR x IN (SELECT x FROM b ORDER BY x LIMIT 2)", [0, 1]),
        ("x = 0 OR x NOT IN (SELECT x FROM b WHERE x > 1 UNION SELECT k FROM dim)", [0]),
        ("x = 0 OR EXISTS (SELECT k FROM b GROUP BY k HAVING count(*) > 1)", [0]),
        # Only whole steps count, and the last one is not.
        ("x IN (SELECT x FROM b [TUMBLE 4 SECONDS])", [0, 1, 2, 3]),
        ("x = 5 OR x IN (SELECT x FROM b [TUMBLE 4 SECONDS])", [0, 1, 2, 3, 5]),
    ],
)
def test_subqueries_with_rows_of_their_own(engine: ManualEngine, condition: str, expected: list[int]) -> None:
    query = engine.register(f"SELECT x FROM a WHERE {condition}")
    assert [row["x"] for row in engine.invoke(query)] == expected


def test_exists_under_or_needs_one_partner_only(engine: ManualEngine) -> None:
    engine.push("b", [{"k": 1, "x": n, "s": "", "ts": START} for n in range(50)])
    for condition in ("EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "k IN (SELECT k FROM b)"):
        query = engine.register(f"SELECT x FROM a WHERE x = 9 OR {condition}")
        limited = Invoker(engine.catalog, limits=JoinLimits(rows=20))
        assert len(limited.invoke(query)) == 6


def test_lateral_values_of_now(engine: ManualEngine) -> None:
    query = engine.register("SELECT x, (SELECT count(*) FROM b WHERE b.k >= a.k AND b.ts < NOW) AS n FROM a")
    assert [row["n"] for row in engine.invoke(query)] == [5, 4, 3, 2, 1, 0]
    latest = engine.register("SELECT x, (SELECT max(NOW) FROM b WHERE b.k = a.k) AS n FROM a WHERE x = 1")
    assert [row["n"] for row in engine.invoke(latest)] == [START + timedelta(seconds=5)]


def test_values_of_queries_beside_groups(engine: ManualEngine) -> None:
    query = engine.register(
        "SELECT k % 2 AS odd, sum(x) + (SELECT min(x) FROM b WHERE x > 2) AS s FROM a GROUP BY k % 2 "
        "HAVING sum(x) > (SELECT max(x) FROM b) ORDER BY (SELECT max(k) FROM dim)"
    )
    assert list(engine.invoke(query)) == [{"odd": 0, "s": 9}, {"odd": 1, "s": 12}]
    engine.push("b", [{"k": 0, "x": 7, "s": "", "ts": START}])
    assert list(engine.invoke(query)) == [{"odd": 1, "s": 12}]


def test_steps_are_whole_if_all_inputs_retain_them(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    for name, retain in (("kept", None), ("short", "5 seconds")):
        engine.create_stream(name, "k INT, ts TIMESTAMP", time="ts", clock="stream", retain=retain)
        engine.push(name, [{"k": n, "ts": START + timedelta(seconds=n)} for n in range(20)])
    answer = engine.invoker.answer_once(
        "SELECT window_start, count(*) AS n FROM kept [TUMBLE 2 SECONDS] LEFT JOIN short ON kept.k = short.k"
    )
    assert [(row["window_start"] - START).seconds for row in answer] == [14, 16]


CHAIN = "WITH q0 AS (SELECT x FROM a)" + "".join(
    f", q{n} AS (SELECT l.x FROM q{n - 1} l, q{n - 1} r WHERE l.x = r.x)" for n in range(1, 20)
)


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT a.x FROM a JOIN b ON", SqlError, "JOIN requires a condition"),
        ("SELECT a.x FROM a LEFT JOIN b ON WHERE a.x > 1", SqlError, "JOIN requires a condition"),
        ("SELECT a.x FROM a NATURAL JOIN b USING (k)", SqlError, "NATURAL JOIN has no condition"),
        ("WITH q AS (SELECT x FROM a), Q AS (SELECT x FROM b) SELECT x FROM q", SqlError, "duplicate name 'Q'"),
        ("SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b", SqlError, "not closed"),
        ("SELECT x FROM a WHERE k IN (SELECT k FROM b -- )", SqlError, "not closed"),
        ("(SELECT x FROM a) t", SqlError, "got '('"),
        (f"{CHAIN} SELECT x FROM q19", SqlError, "at most 256 inputs"),
        ("SELECT x FROM " + "(SELECT x FROM " * 90 + "a" + ")" * 90, SqlError, "nested too deeply"),
        (" UNION ".join(["SELECT x FROM a"] * 100), SqlError, "set operations in a row"),
        (
            "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k IN (SELECT k FROM c WHERE c.x = a.x))",
            Unsupported,
            "directly around it",
        ),
        (
            "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b LEFT JOIN c ON c.x = a.x WHERE b.k = a.k)",
            Unsupported,
            "ON of an outer join",
        ),
        ("SELECT x FROM a WHERE x > (SELECT max(x) FROM b WHERE b.k = a.k GROUP BY s)", Unsupported, "plain SELECT"),
        (
            "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > (SELECT max(x) FROM b WHERE b.k = a.x)",
            SqlError,
            "uses column 'x', which is not in GROUP BY",
        ),
        ("SELECT (SELECT max(x) FROM b) AS v, count(*) AS n FROM a", Unsupported, "parentheses"),
        ("SELECT (SELECT max(x) FROM b [TUMBLE 2 SECONDS] WHERE b.k = a.k) AS v FROM a", Unsupported, "plain SELECT"),
        ("SELECT count(*) AS n FROM (SELECT collect_list(x) AS l FROM a) t GROUP BY l", Unsupported, "ARRAY"),
        ("SELECT max(l) AS m FROM (SELECT collect_list(x) AS l FROM a) t", Unsupported, "ARRAY"),
        ("SELECT a.x FROM a [ROWS 2 SLIDE 1] JOIN b ON a.k = b.k", Unsupported, "steps of rows over a join"),
        ("SELECT x FROM a [ROWS 2 SLIDE 1] WHERE k IN (SELECT k FROM b)", Unsupported, "nor with a subquery"),
        ("SELECT max(x) FROM a [ROWS 2 SLIDE 1] WHERE x > (SELECT min(x) FROM b)", Unsupported, "nor with a subquery"),
        (
            "SELECT count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY TUMBLE(a.ts, INTERVAL 1 MINUTE)",
            Unsupported,
            "join",
        ),
    ],
)
def test_queries_are_refused_when_they_are_bound(
    engine: ManualEngine, sql: str, kind: type[TureenError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        engine.register(sql)
    assert message in caught.value.message


def test_windows_of_a_stream_with_several_blocks(engine: ManualEngine) -> None:
    """Without a condition, the rows of full blocks are not computed."""
    size = 70_000
    numbers = np.arange(size)
    times = pa.array(to_micros(START) + numbers * 1_000_000).cast(pa.timestamp("us", "UTC"))
    engine.create_stream("long", "x BIGINT, ts TIMESTAMP", time="ts", clock="stream")
    engine.push("long", pa.table({"x": pa.array(numbers), "ts": times}))
    for end, back in ((0, 69_000), (3_000, 66_000), (1, 5), (69_000, 69_900)):
        sql = f"SELECT l.x FROM long l JOIN long r ON l.x = r.x BEGIN NOW - {back} END NOW - {end}"
        answer = engine.invoker.answer_once(sql).table.column("x").to_pylist()
        assert answer == list(range(max(size - 1 - back, 0), size - end))


JOINED = "FROM a JOIN b ON a.k >= b.k - 10 WHERE b.k < 3"


@pytest.mark.parametrize(
    ("aggregates", "is_sorted"),
    [
        ("count(*) AS n, max(a.x) AS m, sum(b.x) AS s", False),
        ("collect_list(a.x) AS n, collect_list(b.x) AS m", True),
        ("first(a.s) AS n, last(b.s) AS m", True),
        ("avg(a.x) AS n, stddev(b.x) AS m", True),
        ("count(DISTINCT a.x) AS n", True),
    ],
)
def test_rows_are_sorted_for_groups_that_depend_on_it(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, aggregates: str, is_sorted: bool
) -> None:
    handle = engine.register(f"SELECT a.x % 2 AS g, {aggregates} {JOINED} GROUP BY a.x % 2", materialize=False)
    # In order of their earliest tuple, and then of the ids of both.
    pairs = sorted((min(a, b), a, b) for a in range(6) for b in range(3))
    rows = engine.invoke(handle).table.to_pylist()
    of_group = [[(a, b) for _, a, b in pairs if a % 2 == group] for group in (0, 1)]
    assert [row["g"] for row in rows] == [0, 1]
    if aggregates.startswith("collect"):
        assert [list(zip(row["n"], row["m"], strict=True)) for row in rows] == of_group
    if aggregates.startswith("first"):
        assert [(row["n"], row["m"]) for row in rows] == [(str(g[0][0]), str(g[-1][1])) for g in of_group]
    if aggregates.startswith("count(*)"):
        expected = [(9, max(a for a, _ in g), sum(b for _, b in g)) for g in of_group]
        assert [(row["n"], row["m"], row["s"]) for row in rows] == expected

    def refuse(*_: object) -> None:
        raise AssertionError("sorted")

    monkeypatch.setattr(joined, "order_of", refuse)
    if is_sorted:
        with pytest.raises(AssertionError, match="sorted"):
            engine.invoke(handle)
    else:
        assert engine.invoke(handle).table.to_pylist() == rows
