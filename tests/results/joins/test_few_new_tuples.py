"""Joined tuples of a few new tuples, against the same query evaluated when it is invoked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fast_path_switch import without_fast_paths
from tureen.fast_paths import FastPath
from tureen.pipeline import arrival
from tureen.results.joins import few_new_tuples
from tureen.results.joins.kept_rows import KeptRows
from tureen.stems.join_run import JoinedTuples
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

COLUMNS = "n INT, k INT, d DOUBLE, f BOOLEAN, s STRING, ts TIMESTAMP"
START = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT a.n AS x, b.n AS y, b.s FROM a JOIN b ON a.k = b.k"


class Pot:
    """Two streams and a query that is kept, and also evaluated when it is invoked."""

    def __init__(self, root: Path, sql: str) -> None:
        self.engine = ManualEngine(root, lambda: to_micros(START))
        for name in "ab":
            self.engine.create_stream(name, COLUMNS, time="ts", clock="stream")
        self.kept = self.engine.register(sql)
        self.lazy = self.engine.register(sql, materialize=False)
        self.count = 0
        for name in "ab":
            self.push(name, 24)
        self.engine.take_everything()
        self.engine.keep_joins()
        assert self.check()

    def push(self, name: str, count: int, late: int = 0) -> None:
        """Push rows, which stay in the inbox."""
        rows = [self._row(self.count + number, late) for number in range(count)]
        self.count += count
        self.engine.append(name, rows)

    def _row(self, number: int, late: int) -> dict[str, Any]:
        key = None if number % 7 == 3 else number % 5
        halves, moment = None if key is None else key / 2, START + timedelta(seconds=number - late)
        return {"n": number, "k": key, "d": halves, "f": number % 2 > 0, "s": f"s{number % 3}", "ts": moment}

    def check(self) -> list[dict[str, Any]]:
        """The rows of the query, which must be the same either way."""
        rows = list(self.engine.invoke(self.lazy))
        assert list(self.engine.invoke(self.kept)) == rows
        return rows


@pytest.fixture(autouse=True)
def _small_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 10)


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The ids since which new tuples were joined by an evaluation of the join."""
    evaluated: list[tuple[int, ...]] = []
    original = KeptRows.joined_since

    def joined_since(rows: KeptRows, ids: tuple[int, ...]) -> list[JoinedTuples]:
        evaluated.append(ids)
        return original(rows, ids)

    monkeypatch.setattr(KeptRows, "joined_since", joined_since)
    return evaluated


@pytest.fixture(params=[1 << 14, 0], ids=["compared", "indexed"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find partners by comparing the keys of small segments and by index; evaluate clauses for slices and for rows."""
    monkeypatch.setattr(few_new_tuples, "SMALL_SEGMENT", request.param)
    monkeypatch.setattr(few_new_tuples, "DENSE_ROWS", request.param)


@pytest.mark.usefixtures("_each_way")
@pytest.mark.parametrize(
    "sql",
    [
        SQL,
        "SELECT b.s, a.s AS t FROM b JOIN a ON a.k = b.k WHERE a.n >= 3 AND b.n >= 30 AND b.s IN ('s0', 's2')",
        "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.k = b.k AND a.d = b.d",
        "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.d = b.d WHERE a.k > 1 AND b.k IS NOT NULL",
        "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.k = b.d",
        "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.f = b.f AND a.k = b.k",
        "SELECT x.n, y.n AS m FROM a x JOIN a y ON x.k = y.k WHERE x.n < 40 AND y.n > 2",
        "SELECT a.n AS x, b.n AS y FROM a [RANGE 45 SECONDS] JOIN b [RANGE 20 SECONDS] ON a.k = b.k",
        "SELECT a.n + b.n AS z FROM a JOIN b ON a.k = b.k ORDER BY z DESC LIMIT 7 OFFSET 2",
        "SELECT b.n, a.n AS y FROM a JOIN b ON a.k = b.k LIMIT 9 OFFSET 2",
    ],
)
def test_few_new_tuples_of_either_stream_are_not_evaluated(
    tmp_path: Path, evaluations: list[tuple[int, ...]], sql: str
) -> None:
    pot = Pot(tmp_path, sql)
    first = len(evaluations)
    for number, names in enumerate(["a", "b", "ab", "ba", "abab", "a", "b", "aab"]):
        for name in names:
            pot.push(name, 1 + number % 3, late=9 * (number % 4))
        pot.check()
        if number == 5:
            pot.engine.take_everything()
            pot.check()
            pot.engine.keep_joins()
    pot.engine.seal(everything=True)
    pot.push("a", 4)
    pot.push("b", 4)
    pot.check()
    assert len(evaluations) == first
    pot.engine.close()


def test_many_new_tuples_are_evaluated(tmp_path: Path, evaluations: list[tuple[int, ...]]) -> None:
    pot = Pot(tmp_path, SQL)
    first = len(evaluations)
    pot.push("a", few_new_tuples.FEW)
    pot.check()
    assert len(evaluations) == first
    pot.push("b", few_new_tuples.FEW + 1)
    pot.check()
    assert len(evaluations) == first + 1
    pot.engine.close()


def test_many_partners_are_evaluated(
    tmp_path: Path, evaluations: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pot = Pot(tmp_path, SQL)
    first = len(evaluations)
    monkeypatch.setattr(few_new_tuples, "MOST_PAIRS", 1)
    pot.push("a", 1)
    pot.check()
    assert len(evaluations) == first + 1
    pot.engine.close()


def test_few_new_tuples_are_evaluated_without_the_fast_path(tmp_path: Path, evaluations: list[tuple[int, ...]]) -> None:
    with without_fast_paths(FastPath.FEW_NEW_TUPLES):
        pot = Pot(tmp_path, SQL)
    first = len(evaluations)
    pot.push("a", 1)
    pot.check()
    assert len(evaluations) == first + 1
    pot.engine.close()


def test_new_tuples_in_several_segments_are_evaluated(tmp_path: Path, evaluations: list[tuple[int, ...]]) -> None:
    pot = Pot(tmp_path, SQL)
    first = len(evaluations)
    pot.push("a", 2)
    pot.engine.take("a")
    pot.push("a", 2)
    pot.check()
    assert len(evaluations) == first + 1
    pot.engine.close()


def test_new_tuples_that_were_freed(tmp_path: Path) -> None:
    """A stream that has had tuples has no segment."""
    now = to_micros(START)
    engine = ManualEngine(tmp_path, lambda: now)
    for name in "ab":
        engine.create_stream(name, "n INT, ts TIMESTAMP", time="ts", retain="needed")
    query = engine.register("SELECT a.n FROM a [RANGE 10 SECONDS] JOIN b [RANGE 10 SECONDS] ON a.n = b.n")
    for name, seconds in (("a", 0), ("b", 0), ("a", 5)):
        engine.append(name, [{"n": 1, "ts": START + timedelta(seconds=seconds)}])
        engine.take_everything()
        if name == "b":
            engine.keep_joins()
            assert len(engine.invoke(query)) == 1
    now += 60_000_000
    while engine.free():
        pass
    assert len(engine.invoke(query)) == 0
