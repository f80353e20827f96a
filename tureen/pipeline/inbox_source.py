"""The Spark source over the inbox: it hands out references, never the rows themselves.

An offset is a map from stream id to a place in that stream's log. The catalog says where to start, so
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

WAIT_FOR_NEWS = 0.2
"""Seconds that the source waits for new rows before it says that there are none."""

ROWS_PER_TRIGGER = 2_000_000
"""The most rows of one micro-batch, fairly divided among the streams."""

ROWS_PER_TASK = 131_072
"""A batch is not cut into tasks smaller than this."""

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
"""A key of the offsets beside the streams': its one step makes the first, empty batch that warms Spark up."""


class References(InputPartition):
    """The references of one task."""

    def __init__(self, references: Sequence[Reference]) -> None:
        """Hold them."""
        super().__init__(None)
        self.references = tuple(references)


class InboxReader(DataSourceStreamReader):
    """Decides what the next batch is; runs in a process of its own beside the driver."""

    def __init__(self, root: Path, tasks: int) -> None:
        """Read the inbox of that pot, in at most so many tasks at a time."""
        self._root = root
        self._tasks = tasks
        self._heads_file: Heads | None = None
        self._seen = -1
        self._planned: dict[tuple[int, int, int], list[Reference]] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Where the catalog says that the pot has come to."""
        from tureen.pot.catalog import Catalog  # noqa: PLC0415 - the tasks that this is sent to do without
        from tureen.pot.streams import list_streams  # noqa: PLC0415

        catalog = Catalog(self._root)
        try:
            with catalog.read() as tx:
                taken = {str(stream.id): stream.taken for stream in list_streams(tx)}
        finally:
            catalog.close()
        return {**taken, _WARM: 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Bound the batches, so that a backlog is taken in steps."""
        return ReadMaxRows(ROWS_PER_TRIGGER)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch, after a short wait where there is nothing new."""
        if start.get(_WARM) == 0:
            return {**start, _WARM: 1}
        news = self._news(start)
        if not news:
            self._seen = self._heads.wait(self._seen, WAIT_FOR_NEWS)
            news = self._news(start)
        self._planned = {}
        budget = limit.max_rows // len(news) if isinstance(limit, ReadMaxRows) and news else None
        moved = {str(stream): self._plan(stream, place, end, budget) for stream, (place, end) in news.items()}
        return dict(sorted({**start, **moved}.items()))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Divide a batch among tasks, whole pushes together and in order."""
        references: list[Reference] = []
        for key, place in end.items():
            begin = start.get(key, 0)
            if key == _WARM or place <= begin:
                continue
            stream = int(key)
            if (stream, begin, place) not in self._planned:
                self._plan(stream, begin, place, None)
            references += self._planned.get((stream, begin, place), [])
        return [References(part) for part in _divide(references, self._tasks)] or [References(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give a task its references."""
        assert isinstance(partition, References)
        columns = zip(*(astuple(one) for one in partition.references), strict=True)
        if partition.references:
            yield pa.record_batch([pa.array(list(one)) for one in columns], names=_ARROW.names).cast(_ARROW)

    def stop(self) -> None:
        """Let go of the heads."""
        if self._heads_file is not None:
            self._heads_file.close()

    @property
    def _heads(self) -> Heads:
        # Opened when first needed: Spark pickles the reader for the tasks, which do not look at them.
        if self._heads_file is None:
            self._heads_file = Heads(self._root / "inbox")
        return self._heads_file

    def _news(self, start: dict[str, int]) -> dict[int, tuple[int, int]]:
        found = self._heads.ends()
        return {
            stream: (start.get(str(stream), 0), end) for stream, end in found.items() if end > start.get(str(stream), 0)
        }

    def _plan(self, stream: int, start: int, end: int, budget: int | None) -> int:
        """Note the references of one stream's next batch and return where it ends."""
        directory = log_directory(self._root, stream)
        references, end = refer(stream, directory, start, end, budget, ROWS_PER_TASK // 4)
        self._planned[stream, start, end] = references
        return end


def _divide(references: Sequence[Reference], tasks: int) -> list[list[Reference]]:
    """Cut the references, in order, into few parts of about equal rows."""
    total = sum(reference.rows for reference in references)
    parts = max(1, min(tasks, total // ROWS_PER_TASK))
    divided: list[list[Reference]] = [[] for _ in range(parts)]
    before = 0
    for reference in references:
        divided[min(parts - 1, before * parts // max(total, 1))].append(reference)
        before += reference.rows
    return [part for part in divided if part]
