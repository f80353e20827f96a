"""The queries of NEXMark: the engine equals DuckDB after each of several pushes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.nexmark import QUERIES, connect, run, verify
from benchmarks.nexmark_workload import SCHEMAS, SIDE, SIDE_SCHEMA, nexmark_events
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

EVENTS = 6_000
SECONDS = 60.0
PUSHES = 3


def test_events_depend_on_the_seed_only() -> None:
    first, same, other = (nexmark_events(500, 10, seed).rows for seed in (1, 1, 2))
    assert first == same
    assert first["bid"] != other["bid"]
    assert [len(first[name]) for name in ("person", "auction", "bid")] == [10, 30, 460]


def test_bids_refer_to_auctions_and_persons_that_exist() -> None:
    rows = nexmark_events(EVENTS, SECONDS).rows
    with connect(rows) as duck:
        judged = run(
            duck,
            "SELECT count(*) AS n FROM bid b JOIN auction a ON b.auction = a.id AND a.ts < b.ts "
            "JOIN person p ON p.id = b.bidder AND p.ts < b.ts JOIN person s ON s.id = a.seller AND s.ts < a.ts",
        )
    assert judged.to_pylist() == [{"n": len(rows["bid"])}]


@pytest.mark.parametrize("materialize", [True, False])
def test_answers_equal_duckdb_after_each_push(tmp_path: Path, materialize: bool) -> None:
    engine = ManualEngine(tmp_path)
    for name, schema in SCHEMAS.items():
        engine.create_stream(name, schema, time="ts", clock="stream")
    Dimensions(engine.catalog).create("side", SIDE_SCHEMA, SIDE)
    handles = {name: engine.register(query.sql, materialize=materialize) for name, query in QUERIES.items()}
    engine.compile()
    seen: dict[str, pa.Table] = {}
    for number, part in enumerate(nexmark_events(EVENTS, SECONDS).pushes(PUSHES)):
        for name, table in part.items():
            (engine.append if number == PUSHES - 1 else engine.push)(name, table)
            seen[name] = pa.concat_tables([seen[name], table]) if name in seen else table
        if number == 1:
            engine.keep_joins()
        with connect({**seen, "side": SIDE}) as duck:
            for name, query in QUERIES.items():
                answer = engine.invoke(handles[name])
                judged = run(duck, query.judge_sql(to_micros(seen["bid"]["ts"][-1].as_py())))
                assert len(judged) > 0, name
                verify(name, answer.table, judged)
    engine.close()


def test_wrong_answers_are_detected() -> None:
    with connect(nexmark_events(EVENTS, SECONDS).rows) as duck:
        judged = run(duck, QUERIES["q2"].sql)
    with pytest.raises(AssertionError, match="wrong answer of q2"):
        verify("q2", judged.slice(1), judged)
