"""Spark's stream-stream joins of streams that arrive in increments, one micro-batch each.

The streams are Parquet files. State is in memory, with as many partitions as cores; progress and the changes of the
state are written to the checkpoint, and results are dropped.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from benchmarks.join_increments import Pace
from benchmarks.join_workload import JoinWorkload, check_sums
from benchmarks.machine import family_processor_seconds


class SparkJoin:
    """The streaming query of a join over files, with an increment of each stream in each file."""

    def __init__(self, spark: SparkSession, workload: JoinWorkload, folder: Path, first: Path) -> None:
        """Read a folder of files for each stream; `first` has the first increment alone."""
        self._spark, self._workload, self._folder, self._first = spark, workload, folder, first
        self.state_bytes = 0.0
        """The size of the state after the last run."""

    def verify(self, expected: tuple[float, ...]) -> None:
        """Compare the result with the expected one: also the warm-up."""
        self._run(self._folder, "memory")
        (row,) = self._spark.sql(f"SELECT {self._workload.checked} FROM joined").collect()
        self._spark.catalog.dropTempView("joined")
        check_sums(tuple(row), expected, "Spark's join")

    def pace(self) -> Pace:
        """Run the query: what its micro-batches after the first take.

        Processor time is the difference to a run of the first increment alone, which leaves out the start of the query.
        """
        began = family_processor_seconds()
        self._run(self._first, "noop")
        middle = family_processor_seconds()
        batches = self._run(self._folder, "noop")[1:]
        ended = family_processor_seconds()
        rows, millis = (sum(numbers) for numbers in zip(*batches, strict=True))
        return Pace(rows, millis / 1000, (ended - middle) - (middle - began))

    def _run(self, folder: Path, sink: str) -> list[tuple[int, int]]:
        """The rows and the milliseconds of each micro-batch."""
        for name, columns in self._workload.streams.items():
            frame = self._spark.readStream.schema(f"{columns}, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
            frame.parquet(str(folder / name)).createOrReplaceTempView(name)
        with TemporaryDirectory(dir=folder) as checkpoint:
            writer = self._spark.sql(self._workload.sql).writeStream.format(sink).queryName("joined")
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
        for name in self._workload.streams:
            self._spark.catalog.dropTempView(name)
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
        self.state_bytes = float(sum(operator["memoryUsedBytes"] for operator in batches[-1]["stateOperators"]))
        return [(progress["numInputRows"], progress["durationMs"]["triggerExecution"]) for progress in batches]
