"""NOW in WHERE: evaluated at invocation, while the rest of the clause is matched as tuples arrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

BASE = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: int) -> int:
    return to_micros(BASE + timedelta(seconds=seconds))


def test_queries_that_differ_only_in_now_share_a_clause(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    plain = engine.register("SELECT n FROM s WHERE n > 1")
    old = engine.register("SELECT n FROM s WHERE ts < NOW - INTERVAL 5 SECONDS AND n > 1")
    young = engine.register("SELECT n FROM s WHERE n > 1 AND ts >= NOW - INTERVAL 5 SECONDS")
    engine.compile()
    engine.push("s", [{"n": n, "ts": BASE + timedelta(seconds=n)} for n in range(10)])
    plans = [engine.invoker.explain(handle) for handle in (plain, old, young)]
    assert len({plan["clause"] for plan in plans}) == 1
    assert [plan["at_now"] is None for plan in plans] == [True, False, False]
    assert {plan["materialized"] for plan in plans} == {True}
    for now in (0, 7, 10, 30):
        every = [row["n"] for row in engine.invoke(plain, at(now))]
        parts = [[row["n"] for row in engine.invoke(handle, at(now))] for handle in (old, young)]
        assert parts == [[n for n in every if n < now - 5], [n for n in every if n >= now - 5]]
    engine.close()


def test_now_in_having_does_not_prevent_partial_aggregates(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    engine.create_stream("s", "n INT, ts TIMESTAMP", time="ts")
    handles = [
        engine.register(f"SELECT n, max(ts) AS t FROM s {where} GROUP BY n HAVING max(ts) < NOW - INTERVAL 5 SECONDS")
        for where in ("", "WHERE ts < NOW")
    ]
    modes = [engine.invoker.explain(handle)["aggregates"]["kept"] for handle in handles]
    assert modes == ["partial aggregates of each run", "nothing: computed from the rows"]
    engine.push("s", [{"n": n % 2, "ts": BASE + timedelta(seconds=n)} for n in range(10)])
    for now, groups in ((10, []), (14, [0]), (15, [0, 1])):
        assert [[row["n"] for row in engine.invoke(handle, at(now))] for handle in handles] == [groups, groups]
    engine.close()
