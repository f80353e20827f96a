"""Spark: external sources, the public sink, the reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import tureen
from tests.disk import modes
from tureen.errors import EngineFailed, TureenError
from tureen.pipeline import engine
from tureen.pipeline.debts import Debt, Payment
from tureen.pipeline.session import spark_session
from tureen.pipeline.streaming import Streaming
from tureen.position import Position


def until_rows(query: tureen.StandingQuery, soup: tureen.Soup, count: int) -> tureen.Answer:
    """Wait, commit by commit, until the query has `count` rows."""
    answer = query.invoke()
    while len(answer) < count:
        soup.wait(str(Position(Position.parse(answer.position).seq + 1)), timeout=60)
        answer = query.invoke()
    return answer


def test_rate(soup: tureen.Soup) -> None:
    source = {"format": "rate", "options": {"rowsPerSecond": 50}}
    soup.create_stream("ticks", "value BIGINT, timestamp TIMESTAMP", time="timestamp", source=source)
    query = soup.register("SELECT value FROM ticks WHERE value % 2 = 0")
    values = [row["value"] for row in until_rows(query, soup, 20)]
    assert values == list(range(0, 2 * len(values), 2))
    soup.drop_stream("ticks")


def write_json(path: Path) -> None:
    path.write_text(
        "\n".join(json.dumps({"id": n, "name": f"n{n}", "ts": f"2026-01-01T00:00:{n:02}Z"}) for n in range(9))
    )


def write_csv(path: Path) -> None:
    lines = ["id,name,ts", *(f"{n},n{n},2026-01-01T00:00:{n:02}Z" for n in range(9))]
    path.write_text("\n".join(lines))


def write_parquet(path: Path) -> None:
    times = [datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(9)]
    table = pa.table({"name": [f"n{n}" for n in range(9)], "id": list(range(9)), "ts": times})
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("kind", "write", "options"),
    [("json", write_json, {}), ("csv", write_csv, {"header": "true"}), ("parquet", write_parquet, {})],
)
def test_files(
    soup: tureen.Soup, tmp_path: Path, kind: str, write: Callable[[Path], None], options: dict[str, str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / f"one.{kind}")
    source = {"format": kind, "options": {"path": str(folder), **options}}
    soup.create_stream(f"files_{kind}", "id BIGINT, name STRING, ts TIMESTAMP", time="ts", source=source)
    query = soup.register(f"SELECT id, name FROM files_{kind} WHERE id >= 3")
    assert until_rows(query, soup, 6).table.to_pydict() == {
        "id": [3, 4, 5, 6, 7, 8],
        "name": [f"n{n}" for n in range(3, 9)],
    }
    soup.drop_stream(f"files_{kind}")


def test_rows_without_a_time_are_rejected(soup: tureen.Soup, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "one.json").write_text('{"id": 1, "ts": "2026-01-01T00:00:00Z"}\n{"id": 2}\n')
    source = {"format": "json", "options": {"path": str(folder)}}
    soup.create_stream("partly", "id INT, ts TIMESTAMP", time="ts", source=source)
    query = soup.register("SELECT id FROM partly")
    assert until_rows(query, soup, 1).table.to_pydict() == {"id": [1]}
    (rejected,) = soup.rejected("partly")
    assert rejected["row"] == {"id": 2, "ts": None}
    assert "NULL" in rejected["reason"]
    soup.drop_stream("partly")


def start_sink(spark: SparkSession, soup: tureen.Soup, folder: Path, checkpoint: Path) -> StreamingQuery:
    frame = spark.readStream.schema("a INT, b STRING").json(str(folder))
    return (
        frame.writeStream.format("tureen")
        .option("pot", str(soup.path))
        .option("stream", "sunk")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def test_the_sink_commits_each_batch_once(spark: SparkSession, soup: tureen.Soup, tmp_path: Path) -> None:
    soup.create_stream("sunk", "b STRING, a INT")
    query = soup.register("SELECT a, b FROM sunk WHERE a > 1")
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "one.json").write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
    assert start_sink(spark, soup, folder, checkpoint).awaitTermination(60)
    assert query.invoke().table.to_pydict() == {"a": [2], "b": ["y"]}
    # As after a crash between the pot's commit and Spark's: the batch is repeated.
    for commit in (checkpoint / "commits").iterdir():
        commit.unlink()
    (folder / "two.json").write_text('{"a": 3, "b": "z"}\n')
    assert start_sink(spark, soup, folder, checkpoint).awaitTermination(60)
    assert query.invoke().table.to_pydict() == {"a": [2, 3], "b": ["y", "z"]}


def test_the_sink_checks_the_schema(spark: SparkSession, soup: tureen.Soup) -> None:
    soup.create_stream("strict", "a INT, b STRING")
    for columns, text in (("1 AS a", "lacks the column 'b'"), ("1 AS a, 'x' AS b, 2 AS c", "no column 'c'")):
        frame = spark.sql(f"SELECT {columns}")
        with pytest.raises(Exception, match=text):
            frame.write.format("tureen").option("pot", str(soup.path)).option("stream", "strict").mode("append").save()
    with pytest.raises(Exception, match="is INT, not"):
        spark.sql("SELECT 1.5D AS a, 'x' AS b").write.format("tureen").option("pot", str(soup.path)).option(
            "stream", "strict"
        ).mode("append").save()
    assert soup.status()["streams"]["strict"]["rows"] == 0


def test_batch_write_and_read(spark: SparkSession, soup: tureen.Soup) -> None:
    soup.create_stream("batched", "id BIGINT, even BOOLEAN")
    query = soup.register("SELECT id AS number, even FROM batched WHERE id >= 9990", name="last_ten")
    frame = spark.range(10_000).selectExpr("id", "id % 2 = 0 AS even")
    frame.write.format("tureen").option("pot", str(soup.path)).option("stream", "batched").mode("append").save()
    answer = query.invoke()
    assert sorted(row["number"] for row in answer) == list(range(9990, 10_000))
    read = spark.read.format("tureen").option("pot", str(soup.path)).option("query", "last_ten").load()
    assert read.schema.simpleString() == "struct<number:bigint,even:boolean>"
    assert sorted((row.number, row.even) for row in read.collect()) == [
        (number, number % 2 == 0) for number in range(9990, 10_000)
    ]


def test_foreach_batch(spark: SparkSession, soup: tureen.Soup, tmp_path: Path) -> None:
    soup.create_stream("each", "a INT")
    query = soup.register("SELECT a FROM each")
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.json").write_text(f'{{"a": {number}}}\n')

    def append(frame: DataFrame, _: int) -> None:
        frame.write.format("tureen").option("pot", str(soup.path)).option("stream", "each").mode("append").save()

    frame = spark.readStream.schema("a INT").option("maxFilesPerTrigger", 1).json(str(folder))
    started = frame.writeStream.foreachBatch(append).trigger(availableNow=True)
    started.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(60)
    assert sorted(row["a"] for row in query.invoke()) == [0, 1, 2]


def test_large_debts_are_paid_by_a_spark_job(soup: tureen.Soup, monkeypatch: pytest.MonkeyPatch) -> None:
    soup.create_stream("owing", "a BIGINT")
    for part in range(3):
        at = soup.push("owing", pa.table({"a": pa.array(range(part * 5000, part * 5000 + 5000), pa.int64())}))
        soup.wait(at)
    paid: list[int] = []
    monkeypatch.setattr(engine, "LARGE_DEBT", 0)
    by_spark = Streaming.pay

    def counted(self: Streaming, debts: list[Debt]) -> list[Payment]:
        paid.append(len(debts))
        return by_spark(self, debts)

    monkeypatch.setattr(Streaming, "pay", counted)
    query = soup.register("SELECT a FROM owing WHERE a >= 4998 AND a < 5003", materialize=True)
    assert [row["a"] for row in query.invoke()] == list(range(4998, 5003))
    soup.settle()
    assert sum(paid) >= 1
    assert query.explain()["tuples_by_path"]["published"] == 15_000
    assert [row["a"] for row in query.invoke()] == list(range(4998, 5003))


def test_a_failed_source_is_reported_with_its_stream(soup: tureen.Soup, tmp_path: Path) -> None:
    soup.start(wait=120)
    source = {"format": "json", "options": {"path": str(tmp_path / "missing")}}
    soup.create_stream("failing", "a INT", source=source)
    soup.create_stream("healthy", "a INT")
    query = soup.register("SELECT a FROM healthy")
    while soup.status()["streams"]["failing"]["error"] is None:
        soup.wait(soup.push("healthy", [{"a": 1}]))
    assert "missing" in soup.status()["streams"]["failing"]["error"]
    assert {info["name"]: info["error"] for info in soup.streams()}["healthy"] is None
    assert "missing" in next(info["error"] for info in soup.streams() if info["name"] == "failing")
    assert (soup.status()["error"], soup.trouble()) == (None, None), "a failed source does not make the pot unready"
    assert len(query.invoke()) >= 1
    errors = soup._pot.source_errors
    assert errors()
    soup.drop_stream("failing")
    while errors():
        soup.wait(soup.push("healthy", [{"a": 1}]))
    assert all(info["error"] is None for info in soup.status()["streams"].values())


CODE = """
import sys, tureen
from pyspark.sql import SparkSession
settings = {"spark.sql.shuffle.partitions": 3, "spark.tureen.test": "a b", "spark.ui.enabled": False,
            "spark.driver.extraJavaOptions": "-Dtureen.test=yes"}
with tureen.open(sys.argv[1], master="local[1]", spark=settings) as soup:
    soup.start(wait=120)
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    print([session.conf.get(key) for key in list(settings)[:3]])
    print(session._jvm.System.getProperty("tureen.test"), session._jvm.System.getProperty("log4j2.configurationFile"))
"""


def test_spark_settings_reach_the_session(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "pot")], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert lines[:1] == ["['3', 'a b', 'false']"], done.stderr
    assert lines[1].startswith("yes file:"), "its own options of Java stay as well"


def test_spark_settings_that_a_running_session_lacks(spark: SparkSession) -> None:
    assert spark_session("local[2]", {"spark.ui.enabled": "false"}) is spark
    with pytest.raises(EngineFailed, match=r"without spark\.jars\.packages = x:y:1"):
        spark_session("local[2]", {"spark.jars.packages": "x:y:1"})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("spark.a=1", "must be a dict, got str"),
        ({"jars": "x"}, "must be named spark"),
        ({"spark.master": "local[1]"}, "must be given as master"),
        ({"spark.a": None}, "spark.a must be a text or a number, got NoneType"),
    ],
)
def test_invalid_spark_settings(tmp_path: Path, settings: Any, says: str) -> None:
    with pytest.raises(TureenError, match=says):
        tureen.open(tmp_path / "pot", spark=settings)


def test_files_of_spark_are_private(soup: tureen.Soup) -> None:
    before = os.umask(0)
    try:
        soup.create_stream("private", "a INT")
        soup.wait(soup.push("private", [{"a": n} for n in range(50_000)]))
    finally:
        os.umask(before)
    mode_by_path = modes(soup.path)
    assert (soup.path.stat().st_mode & 0o777, mode_by_path["checkpoints"]) == (0o700, 0o700)
    assert any(path.startswith("streams/") for path in mode_by_path)
    assert {
        path: mode for path, mode in mode_by_path.items() if mode & 0o077 and not path.startswith("checkpoints/")
    } == {}


OTHERS = """
import sys
from pyspark.sql import SparkSession
import tureen
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
with tureen.open(sys.argv[1]) as soup:
    soup.create_stream("s", "a INT")
    soup.create_stream("ticks", "value BIGINT", source={"format": "rate", "options": {"rowsPerSecond": 10}})
    query = soup.register("SELECT a FROM s")
    print(query.invoke(wait_for=soup.push("s", [{"a": 7}]), timeout=120).table.to_pylist())
    ticks = soup.register("SELECT value FROM ticks")
    while not len(answer := ticks.invoke()) and soup.status()["streams"]["ticks"]["error"] is None:
        soup.wait(soup.push("s", [{"a": 8}]), timeout=120)
    print(len(answer) > 0, soup.status()["streams"]["ticks"]["error"])
"""


def test_an_existing_session_without_python_setting(tmp_path: Path) -> None:
    """Spark uses the first `python3` of the path, which cannot start here."""
    wrong = tmp_path / "bin" / "python3"
    wrong.parent.mkdir()
    wrong.write_text("#!/bin/sh\nexit 3\n")
    wrong.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment |= {"PATH": f"{wrong.parent}:{os.environ['PATH']}", "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", OTHERS, str(tmp_path / "pot")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["[{'a': 7}]", "True None"], done.stderr[-3000:]
