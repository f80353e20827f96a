"""A stream whose time is a number of seconds answers as one whose time is the instant that many seconds after 1970."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.abstract_clock import EARLIEST, LATEST, instants
from tureen.closed.rules import Rules
from tureen.errors import InvalidRows, InvalidSchema
from tureen.schema import Schema
from tureen.stems.intake import to_batch
from tureen.testing import Oracle
from tureen.testing.manual_engine import ManualEngine
from tureen.window import EPOCH

QUERIES = (
    "SELECT id, x FROM s BEGIN NOW - 20 END NOW",
    "SELECT id FROM s WHERE x > 2 BEGIN NOW - 5 SECONDS END NOW - 1",
    "SELECT count(*) AS n, sum(x) AS total FROM s BEGIN NOW - 3 ROWS END NOW",
    "SELECT window_start, sum(x) AS total FROM s [HOP 10 SECONDS SLIDE 5 SECONDS] WHERE x > 1",
    "SELECT window_start, count(*) AS n FROM s [TUMBLE 7 SECONDS]",
    "SELECT a.id AS i, b.id AS j FROM s a JOIN s b ON a.x = b.x AND a.id < b.id BEGIN NOW - 15 END NOW",
    "SELECT id, row_number() OVER (ORDER BY x) AS r FROM s",
)

Rows = list[tuple[int, int, int]]
"""For each row its number of quarters of a second, `x`, and to which push it belongs."""


@pytest.mark.parametrize("kind", ["DOUBLE", "BIGINT"])
@given(
    rows=st.lists(st.tuples(st.integers(-40, 400), st.integers(0, 5), st.integers(0, 3)), max_size=25),
    retain=st.sampled_from([None, "30 seconds"]),
    in_runs=st.booleans(),
)
@example_settings(5)
def test_equals_a_stream_of_timestamps(kind: str, rows: Rows, retain: str | None, in_runs: bool) -> None:
    seconds = [quarters / 4 if kind == "DOUBLE" else quarters for quarters, _, _ in rows]
    oracle = Oracle()
    oracle.create_stream("s", "id INT, x INT, t TIMESTAMP", time="t", clock="stream", retain=retain)
    with TemporaryDirectory() as directory:
        engine = ManualEngine(Path(directory))
        engine.create_stream("s", f"id INT, x INT, t {kind}", time="t", clock="stream", retain=retain)
        handles = [(engine.register(sql), oracle.register(sql)) for sql in QUERIES]
        for push in range(4):
            numbers = [number for number, row in enumerate(rows) if row[2] == push]
            pushed = [{"id": number, "x": rows[number][1], "t": seconds[number]} for number in numbers]
            oracle.push("s", [{**row, "t": EPOCH + timedelta(seconds=row["t"])} for row in pushed])
            (engine.push if in_runs else engine.append)("s", pushed)
            for handle, expected in handles:
                assert list(engine.invoke(handle)) == expected.invoke()
        engine.close()


def test_derived_stream_has_the_clock(engine: ManualEngine) -> None:
    engine.create_stream("s", "x INT, t DOUBLE", time="t", clock="stream")
    engine.derive_stream("big", "SELECT t, x FROM s WHERE x > 1")
    engine.append("s", [{"x": number, "t": float(number)} for number in range(5)])
    engine.derive()
    handle = engine.register("SELECT x FROM big BEGIN NOW - 1 END NOW")
    assert [row["x"] for row in engine.invoke(handle)] == [3, 4]


def test_late_rows_are_rejected_by_seconds(engine: ManualEngine) -> None:
    engine.create_stream("s", "x INT, t DOUBLE", time="t", clock="stream", rules=Rules((), 2_000_000))
    pushed = engine.append("s", [{"x": 1, "t": 10.0}, {"x": 2, "t": 7.5}, {"x": 3, "t": 8.0}])
    assert (pushed.added, pushed.rejected) == (2, 1)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), EARLIEST - 1.0, LATEST + 1.0])
def test_values_that_are_no_times(value: Any) -> None:
    schema = Schema.parse("t DOUBLE", "t")
    with pytest.raises(InvalidRows, match="row 1: the time column 't' is"):
        to_batch(schema, [{"t": 0.0}, {"t": value}])
    assert to_batch(schema, [{"t": EARLIEST}, {"t": LATEST}]).num_rows == 2


def test_instants_are_rounded_to_microseconds() -> None:
    values = pa.array([0.1, 1e-7, -0.25, 1234567.891011])
    assert instants(values).cast(pa.int64()).to_pylist() == [100_000, 0, -250_000, 1_234_567_891_011]


def test_other_types_are_no_clock() -> None:
    with pytest.raises(InvalidSchema, match="must be TIMESTAMP, got DECIMAL"):
        Schema.parse("t DECIMAL(9,3)", "t")
