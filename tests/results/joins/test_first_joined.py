"""The first rows of a join with LIMIT are those of the whole answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tureen.results.joins import first_joined, join_answers
from tureen.results.joins.joined import JoinedMatches
from tureen.testing.manual_engine import ManualEngine

JOINS = {
    "two streams": "SELECT a.n AS x, a.s, b.n AS y FROM a JOIN b ON a.k = b.k",
    "with clauses": "SELECT a.n AS x, b.n AS y, b.s FROM a JOIN b ON a.k = b.k WHERE a.n % 3 > 0 AND b.n > 50",
    "with windows": "SELECT a.n AS x, b.n AS y FROM a [RANGE 60 SECONDS] JOIN b [ROWS 200] ON a.k = b.k",
    "a self-join": "SELECT l.n AS x, r.n AS y FROM a l JOIN a r ON l.k = r.k AND l.n < r.n",
    "an inequality": "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.k < b.k AND a.n > b.n",
    "three streams": "SELECT a.n AS x, b.n AS y, c.n AS z FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.n <> c.n",
    "an outer join": "SELECT a.n AS x, b.n AS y FROM a LEFT JOIN b ON a.k = b.k AND b.n > 150",
    "one without partners": "SELECT a.n AS x FROM a JOIN b ON a.k = b.k AND a.n > b.n + 10000",
}


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    """Streams of which runs overlap in time, times are equal, and the last tuples are pending."""
    engine = ManualEngine(tmp_path)
    random = np.random.default_rng(5)
    for name in ("a", "b", "c"):
        engine.create_stream(name, "k INT, n INT, s STRING, ts TIMESTAMP", time="ts", clock="stream")
        for part in range(3):
            size = 100
            numbers = np.arange(size, dtype=np.int32) + part * size
            table = pa.table(
                {
                    "k": pa.array(random.integers(0, 12, size).astype(np.int32), mask=random.random(size) < 0.1),
                    "n": numbers,
                    "s": [f"{name}{number % 4}" for number in numbers.tolist()],
                    "ts": pa.array(1_000_000 * random.integers(0, 90, size)).cast(pa.timestamp("us", "UTC")),
                }
            )
            (engine.append if part == 2 else engine.push)(name, table)
    return engine


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("is_kept", [False, True])
def test_first_rows_are_those_of_the_whole_answer(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, name: str, is_kept: bool
) -> None:
    monkeypatch.setattr(first_joined, "MANY_TUPLES", 1)
    monkeypatch.setattr(first_joined, "PARTS", (16, 2))
    whole = engine.invoke(engine.register(JOINS[name], materialize=False)).table
    limits = [(0, 0), (1, 0), (7, 2), (60, 0), (3, 40), (len(whole), 0), (len(whole) + 5, 1)]
    handles = [
        engine.register(f"{JOINS[name]} LIMIT {limit} OFFSET {offset}", materialize=is_kept) for limit, offset in limits
    ]
    if is_kept:
        engine.keep_joins()
    for handle, (limit, offset) in zip(handles, limits, strict=True):
        assert engine.invoke(handle).table.equals(whole.slice(offset, limit)), (limit, offset)


def test_few_rows_are_found_without_joining_all_tuples(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_joined, "MANY_TUPLES", 1)
    outcomes: list[JoinedMatches | None] = []
    evaluate = first_joined.first_joined

    def noting_evaluate(*arguments: object) -> JoinedMatches | None:
        outcomes.append(evaluate(*arguments))  # type: ignore[arg-type]
        return outcomes[-1]

    monkeypatch.setattr(join_answers, "first_joined", noting_evaluate)
    for limit in (5, 10**6):
        engine.invoker.answer_once(f"{JOINS['two streams']} LIMIT {limit}")
    engine.invoker.answer_once(f"{JOINS['two streams']} ORDER BY y LIMIT 5")
    engine.invoker.answer_once(f"SELECT count(*) AS n FROM ({JOINS['two streams']}) q LIMIT 5")
    assert [outcome is not None for outcome in outcomes] == [True, False]
