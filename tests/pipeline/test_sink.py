"""The public sink of Spark, in streams and in batches, and the reader."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import tureen
from tureen.pipeline import sink as sink_module


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


def test_the_sink_beside_pushes_to_the_same_stream(spark: SparkSession, soup: tureen.Soup, tmp_path: Path) -> None:
    soup.create_stream("both", "a INT")
    query = soup.register("SELECT a FROM both")
    folder = tmp_path / "in"
    folder.mkdir()
    batches = [[-10, -11, -12], [-20], [-30, -31]]
    for number, batch in enumerate(batches):
        file = folder / f"{number}.json"
        file.write_text("".join(f'{{"a": {a}}}\n' for a in batch))
        # Spark reads files in the order of their times.
        os.utime(file, (1_700_000_000 + number,) * 2)
    frame = spark.readStream.schema("a INT").option("maxFilesPerTrigger", 1).json(str(folder))
    writer = frame.writeStream.format("tureen").option("pot", str(soup.path)).option("stream", "both")
    followed: list[int] = []
    position = "0"
    pushes = 0

    def push_and_check() -> None:
        nonlocal position, pushes
        soup.push("both", [{"a": pushes}])
        pushes += 1
        for change in query.changes(since=position, timeout=0):
            followed.append(change.row["a"])
            position = change.position
        assert [a for a in followed if a >= 0] == list(range(pushes))
        assert len(followed) == len(set(followed))
        # Rows of a commit that came after the changes were read may be here too.
        assert set(followed) <= {row["a"] for row in query.invoke()}

    push_and_check()
    sink = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    while sink.isActive:
        push_and_check()
    assert sink.awaitTermination(60)
    push_and_check()
    assert [a for a in followed if a < 0] == [a for batch in batches for a in batch]
    before = [row["a"] for row in query.invoke()]
    assert sorted(before) == sorted(followed)
    soup.settle()
    assert soup.status()["streams"]["both"]["pending_rows"] == 0
    assert [row["a"] for row in query.invoke()] == before
    assert [change.row["a"] for change in query.changes(since="0", timeout=0)] == followed


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


def test_batches_are_checked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_module, "GATHERED_ROWS", 10)
    batches = [pa.record_batch({"a": list(range(first, first + 4))}) for first in range(0, 28, 4)]
    tables = list(sink_module.gathered(iter(batches)))
    assert [table.num_rows for table in tables] == [12, 12, 4]
    assert [table.column("a").num_chunks for table in tables] == [1, 1, 1]
    assert pa.concat_tables(tables).column("a").to_pylist() == list(range(28))
    monkeypatch.setattr(sink_module, "GATHERED_BYTES", 40)
    assert [table.num_rows for table in sink_module.gathered(iter(batches))] == [8, 8, 8, 4]
