"""Sessions against a loop over the rows, whatever the order and the batches of arrival."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import Unsupported
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 3, 1, tzinfo=UTC)
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 60)), max_size=12)


def plain_sessions(rows: list[tuple[str | None, int]], gap: int, now: int | None) -> list[tuple[Any, ...]]:
    """The sessions of each key: start, end and number of rows; with `now`, those that end before it."""
    times: dict[str | None, list[int]] = defaultdict(list)
    for key, second in rows:
        times[key].append(second)
    sessions = []
    for key, seconds in times.items():
        begin: int | None = None
        last, count = 0, 0
        for time in [*sorted(seconds), None]:
            if begin is not None and (time is None or time > last + gap):
                if now is None or last + gap < now:
                    sessions.append((key, begin, last + gap, count))
                begin, count = None, 0
            if time is not None:
                begin, last, count = time if begin is None else begin, time, count + 1
    return sorted(sessions, key=repr)


@example_settings(8)
@given(batches=st.lists(ROWS, min_size=1, max_size=3), gap=st.integers(1, 12), partial=st.booleans())
def test_sessions_equal_a_loop(batches: list[list[tuple[str | None, int]]], gap: int, partial: bool) -> None:
    with TemporaryDirectory() as directory:
        engine = ManualEngine(Path(directory))
        engine.create_stream("s", "k STRING, ts TIMESTAMP", "ts", clock="stream")
        sql = (
            f"SELECT k, window_start, window_end, count(*) AS n FROM s GROUP BY k, session_window(ts, '{gap} seconds')"
        )
        query = engine.register(sql + (" EMIT PARTIAL" if partial else ""))
        arrived: list[tuple[str | None, int]] = []
        for number, batch in enumerate(batches):
            rows = [{"k": key, "ts": START + timedelta(seconds=second)} for key, second in batch]
            (engine.append if number % 2 else engine.push)("s", rows)
            arrived += batch
            now = max((second for _, second in arrived), default=None)
            answer = [
                (row["k"], _seconds(row["window_start"]), _seconds(row["window_end"]), row["n"])
                for row in engine.invoke(query).table.to_pylist()
            ]
            assert sorted(answer, key=repr) == plain_sessions(arrived, gap, None if partial else now)
        engine.close()


def _seconds(moment: datetime) -> int:
    return round((moment - START).total_seconds())


def test_queries_of_one_frame_keep_their_conditions(engine: ManualEngine) -> None:
    engine.create_stream("s", "k STRING, x INT, ts TIMESTAMP", "ts", clock="stream")
    engine.push("s", [{"k": "a", "x": x, "ts": START + timedelta(seconds=x)} for x in range(10)])
    sql = "SELECT k, count(*) AS n FROM s WHERE x > {} GROUP BY k, session_window(ts, '2 seconds') EMIT PARTIAL"
    queries = [engine.register(sql.format(least)) for least in (2, 5)]
    assert [engine.invoke(query).table.to_pylist() for query in queries] == [[{"k": "a", "n": 7}], [{"k": "a", "n": 4}]]


def test_sessions_have_no_changes(engine: ManualEngine) -> None:
    engine.create_stream("s", "k STRING, ts TIMESTAMP", "ts")
    sql = "SELECT k, window_start, count(*) AS n FROM s GROUP BY k, session_window(ts, '2 seconds')"
    with pytest.raises(Unsupported, match="cannot be derived"):
        engine.derive_stream("d", sql)
