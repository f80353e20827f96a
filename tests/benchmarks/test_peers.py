"""The peers return correct answers, so that comparisons with them are valid."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks.outside import PeerFailed, parse_lines, run_program
from benchmarks.peers_flink import JobOutput
from benchmarks.peers_inprocess import PEERS, Peer, bounds_of, rate_of, verify
from benchmarks.peers_spark import many_streams
from benchmarks.spark_job import run
from benchmarks.workload import COLUMNS, conditions, truth, tuples


@pytest.mark.parametrize("kind", PEERS, ids=lambda kind: kind.name)
def test_a_peer_agrees_with_numpy(kind: type[Peer]) -> None:
    wheres, table = conditions(40), tuples(300, 1)
    peer = kind(wheres)
    verify(peer, wheres, table)
    peer.run(table)
    with pytest.raises(AssertionError, match="wrong answers"):
        verify(peer, conditions(40, seed=8), table)


def test_bounds_are_equivalent_to_the_condition() -> None:
    table = tuples(500, 2)
    columns = [table.column(name).to_numpy() for name in COLUMNS]
    for where in conditions(100):
        pairs = zip(columns, bounds_of(where), strict=True)
        matches = np.all([(low <= values) & (values <= high) for values, (low, high) in pairs], axis=0)
        assert np.array_equal(matches, truth(table, where)), where


def test_rate_of_adds_rows_until_the_run_is_long_enough() -> None:
    now, sizes = 0.0, []

    def work(rows: int) -> None:
        nonlocal now
        sizes.append(rows)
        now += rows / 10_000

    assert rate_of(work, 1_024, 100_000, 1.0, clock=lambda: now) == pytest.approx(10_000)
    assert sizes == [1_024, 4_096, 16_384]
    sizes.clear()
    assert rate_of(work, 1_024, 2_000, 1.0, clock=lambda: now) == pytest.approx(10_000)
    assert sizes == [1_024, 2_000]


def test_spark_agrees_with_numpy(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(spark, tmp_path, 5, rows=40, few=20)
    results = parse_lines(capsys.readouterr().out)
    assert results[0] == {"checked": 5}
    assert {result["rows"] for result in results[1:]} == {40, 20}
    assert many_streams(spark, tmp_path, 2, 100) > 0


def test_output_of_a_killed_flink_job() -> None:
    output = JobOutput.of(parse_lines('{"version": "2"}\nWARNING\n{"counts": [1, 2]}\n{"planned": 3.5}\n{"runn'))
    assert output == JobOutput("2", (1, 2), (3.5,), ())


def test_output_until_the_timeout_is_returned() -> None:
    program = "import sys, threading; print(sys.stdin.read(), flush=True); threading.Event().wait()"
    assert run_program([sys.executable, "-c", program], {"a": 1}, 0.5) in ([{"a": 1}], [])


def test_a_failed_program_raises_its_last_line() -> None:
    with pytest.raises(PeerFailed, match="the job failed: ValueError: no"):
        run_program([sys.executable, "-c", "raise ValueError('no')"], {}, 60)
