"""Answers for Spark: the reader of `spark.read.format("tureen")`, which needs no engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from tureen.pot.catalog import Catalog
from tureen.results.invoke import Invoker
from tureen.window import to_micros


def answer_schema(root: Path, query: str) -> str:
    """The columns of a query's answer, as a Spark SQL schema."""
    with Catalog(root) as catalog:
        return Invoker(catalog).schema_of(query).sql


class AnswerReader(DataSourceReader):
    """Reads the answer of a standing query, as of the time of reading."""

    def __init__(self, root: Path, query: str, now: str | None) -> None:
        """Read the answer of a query of that pot; `now` is an ISO 8601 time, or None for the current time."""
        self._root, self._query, self._now = root, query, now

    def partitions(self) -> Sequence[InputPartition]:
        """One partition: an answer is one invocation."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Invoke the query."""
        with Catalog(self._root) as catalog:
            now = None if self._now is None else to_micros(datetime.fromisoformat(self._now))
            yield from Invoker(catalog).invoke(self._query, now=now).table.to_batches()
