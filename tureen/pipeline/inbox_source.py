"""The Spark source over the inbox: it hands out references, never the rows themselves.

Spark's offset is a map from stream id to the offset in that stream's log. The catalog has the offsets to start from, so
Spark's checkpoint is disposable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from tureen.pot.heads import Heads, log_directory
from tureen.pot.log import Reference, refer

WAIT_FOR_NEWS = 2.0
"""Seconds that the source waits for new rows before it reports that there are none: each report costs Spark a
millisecond of processor time or more."""

ROWS_PER_TRIGGER = 2_000_000
"""The maximum rows of a micro-batch, divided equally among the streams."""

ROWS_PER_TASK = 131_072
"""The minimum rows of a task, if a batch has several."""

SCHEMA = "stream INT, path STRING, base BIGINT, start BIGINT, end BIGINT, rows BIGINT"
_ARROW = pa.schema(
    [
        ("stream", pa.int32()),
        ("path", pa.string()),
        ("base", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("rows", pa.int64()),
    ]
)
_WARM = "warm"
"""An additional key of the offsets, whose only step creates the first, empty batch that warms up Spark."""


class References(InputPartition):
    """The references of one task."""

    def __init__(self, references: Sequence[Reference]) -> None:
        """Hold the references."""
        super().__init__(None)
        self.references = tuple(references)


class InboxReader(DataSourceStreamReader):
    """Determines the next batch; runs in a process of its own beside the driver."""

    def __init__(self, root: Path, tasks: int) -> None:
        """Read the inbox of that pot, in at most `tasks` tasks per batch."""
        self._root = root
        self._tasks = tasks
        self._heads_file: Heads | None = None
        self._seen = -1
        self._planned: dict[tuple[int, int, int], list[Reference]] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The offsets in the catalog, up to which rows are in runs."""
        from tureen.pot.catalog import Catalog  # noqa: PLC0415 - the tasks that this is sent to do not need it
        from tureen.pot.streams import taken_offsets  # noqa: PLC0415

        with Catalog(self._root) as catalog, catalog.read() as tx:
            taken = {str(stream): offset for stream, offset in taken_offsets(tx).items()}
        return {**taken, _WARM: 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Limit the batches, so that a backlog is read in steps."""
        return ReadMaxRows(ROWS_PER_TRIGGER)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch, after a short wait if there are no new rows."""
        if start.get(_WARM) == 0:
            return {**start, _WARM: 1}
        news = self._news(start)
        if not news:
            self._seen = self._heads.wait(self._seen, WAIT_FOR_NEWS)
            news = self._news(start)
        self._planned = {}
        budget = limit.max_rows // len(news) if isinstance(limit, ReadMaxRows) and news else None
        ends = {str(stream): self._plan(stream, begin, end, budget) for stream, (begin, end) in news.items()}
        return dict(sorted({**start, **ends}.items()))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Divide a batch among tasks, in order and without splitting pushes."""
        references: list[Reference] = []
        for key, limit in end.items():
            begin = start.get(key, 0)
            if key == _WARM or limit <= begin:
                continue
            stream = int(key)
            if (stream, begin, limit) not in self._planned:
                self._plan(stream, begin, limit, None)
            references += self._planned.get((stream, begin, limit), [])
        return [References(part) for part in _divide(references, self._tasks)] or [References(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The references of one task."""
        assert isinstance(partition, References)
        columns = zip(*(astuple(reference) for reference in partition.references), strict=True)
        if partition.references:
            yield pa.record_batch([pa.array(list(column)) for column in columns], names=_ARROW.names).cast(_ARROW)

    def stop(self) -> None:
        """Close the heads."""
        if self._heads_file is not None:
            self._heads_file.close()

    @property
    def _heads(self) -> Heads:
        # Opened on first use: Spark pickles the reader for the tasks, which do not use the heads.
        if self._heads_file is None:
            self._heads_file = Heads(self._root / "inbox")
        return self._heads_file

    def _news(self, start: dict[str, int]) -> dict[int, tuple[int, int]]:
        """The intervals of the logs with new rows, by stream."""
        ends = self._heads.ends()
        return {
            stream: (start.get(str(stream), 0), end) for stream, end in ends.items() if end > start.get(str(stream), 0)
        }

    def _plan(self, stream: int, start: int, end: int, budget: int | None) -> int:
        """Plan the references of one stream's next batch and return its end."""
        directory = log_directory(self._root, stream)
        references, end = refer(stream, directory, start, end, budget, ROWS_PER_TASK // 4)
        self._planned[stream, start, end] = references
        return end


def _divide(references: Sequence[Reference], tasks: int) -> list[list[Reference]]:
    """Divide the references, in order, into a few parts with about equal numbers of rows."""
    total = sum(reference.rows for reference in references)
    parts = max(1, min(tasks, total // ROWS_PER_TASK))
    divided: list[list[Reference]] = [[] for _ in range(parts)]
    before = 0
    for reference in references:
        divided[min(parts - 1, before * parts // max(total, 1))].append(reference)
        before += reference.rows
    return [part for part in divided if part]
