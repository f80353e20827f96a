"""The peers answer what is asked, so that comparing with them means something."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks.outside import GaveUp, converse, read
from benchmarks.peers_flink import Said
from benchmarks.peers_inprocess import PEERS, Peer, bounds_of, rate_of, verify
from benchmarks.peers_spark import many_streams
from benchmarks.spark_job import run
from benchmarks.workload import COLUMNS, conditions, truth, tuples


@pytest.mark.parametrize("kind", PEERS, ids=lambda kind: kind.name)
def test_a_peer_answers_as_numpy_does(kind: type[Peer]) -> None:
    wanted, table = conditions(40), tuples(300, 1)
    peer = kind(wanted)
    verify(peer, wanted, table)
    peer.run(table)
    with pytest.raises(AssertionError, match="wrong answers"):
        verify(peer, conditions(40, seed=8), table)


def test_bounds_say_the_same_as_the_condition() -> None:
    table = tuples(500, 2)
    columns = [table.column(name).to_numpy() for name in COLUMNS]
    for where in conditions(100):
        pairs = zip(columns, bounds_of(where), strict=True)
        held = np.all([(low <= values) & (values <= high) for values, (low, high) in pairs], axis=0)
        assert np.array_equal(held, truth(table, where)), where


def test_a_peer_gets_more_rows_until_it_takes_long_enough() -> None:
    now, given = 0.0, []

    def work(rows: int) -> None:
        nonlocal now
        given.append(rows)
        now += rows / 10_000

    assert rate_of(work, 1_024, 100_000, 1.0, clock=lambda: now) == pytest.approx(10_000)
    assert given == [1_024, 4_096, 16_384]
    given.clear()
    assert rate_of(work, 1_024, 2_000, 1.0, clock=lambda: now) == pytest.approx(10_000)
    assert given == [1_024, 2_000]


def test_spark_alone_answers_as_numpy_does(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(spark, tmp_path, 5, rows=40, few=20)
    said = read(capsys.readouterr().out)
    assert said[0] == {"checked": 5}
    assert {one["rows"] for one in said[1:]} == {40, 20}
    assert many_streams(spark, tmp_path, 2, 100) > 0


def test_what_flink_said_before_it_was_stopped() -> None:
    said = Said.of(read('{"version": "2"}\nWARNING\n{"counts": [1, 2]}\n{"planned": 3.5}\n{"runn'))
    assert said == Said("2", (1, 2), (3.5,), ())


def test_a_program_is_heard_until_its_time_is_up() -> None:
    said = "import sys, threading; print(sys.stdin.read(), flush=True); threading.Event().wait()"
    assert converse([sys.executable, "-c", said], {"a": 1}, 0.5) in ([{"a": 1}], [])


def test_a_program_that_fails_says_why() -> None:
    with pytest.raises(GaveUp, match="the job failed: ValueError: no"):
        converse([sys.executable, "-c", "raise ValueError('no')"], {}, 60)
