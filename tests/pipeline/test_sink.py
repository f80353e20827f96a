"""The public sink of Spark, in streams and in batches, and the reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import tureen


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
