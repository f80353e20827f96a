"""The sinks of the public Spark format "tureen", for streaming DataFrames and for batches.

Spark creates the writer once per micro-batch in a planning process and sends it to the tasks, so it pins what they
need; `commit` runs in another process, so the messages contain what it needs. The exactly-once key is
(streaming query id, batch id).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tureen.abstract_clock import has_time, with_instants
from tureen.errors import InvalidSchema, TureenError, nearest
from tureen.faults import crash_point
from tureen.pipeline.heap import freeze
from tureen.pipeline.pinning import Pin, pin
from tureen.pipeline.visibility import check_files_visible, check_pot_visible
from tureen.pot.catalog import Catalog, check_attempt, micros_now, take_seq
from tureen.pot.files import new_attempt
from tureen.pot.heads import pushes_held
from tureen.pot.reserved_ids import reserve_pending
from tureen.pot.runs import NewRun, Rejected, insert_runs, reject, take_batch
from tureen.pot.streams import Stream, find_stream, stream_by_id
from tureen.schema import ARRIVAL, Schema
from tureen.stems.casts import NOT_STORABLE, cast_column, storable

GATHERED_ROWS = 65_536
"""The number of rows at which batches of Spark are checked together."""

GATHERED_BYTES = 1 << 26
"""The size at which they are, whatever their rows."""


@dataclass
class SinkMessage(WriterCommitMessage):
    """What a task sends to the commit."""

    attempt: str
    stream_id: int
    sink_id: str | None
    """The writer whose batches are counted; None for a batch write, which has only one."""
    runs: list[NewRun]
    rejected: list[Rejected] = field(default_factory=list)


class _Sink:
    """The common part of the streaming and the batch writer."""

    def __init__(self, root: Path, stream: str, names: Sequence[str], sink_id: str | None) -> None:
        """Pin the stream and its Query SteM, and check the DataFrame's columns against it."""
        self._root = root
        self._sink_id = sink_id
        self._attempt = new_attempt()
        with Catalog(root) as catalog, catalog.read() as tx:
            target = find_stream(tx, stream)
            check_unpunctuated(target)
            self._pin: Pin = pin(tx, root, target)
        self._sources = _match_names(self._pin.schema, names)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkMessage:
        """Turn this task's rows into runs."""
        from tureen.pipeline.arrival import Arrivals  # noqa: PLC0415 - tasks need the kernels, planners do not

        crash_point("sink.task")
        check_pot_visible(self._root)
        context = TaskContext.get()
        part = f"{context.partitionId()}.{context.attemptNumber()}" if context else "0.0"
        arrivals = Arrivals(self._pin, self._attempt, part)
        message = SinkMessage(self._attempt, self._pin.stream_id, self._sink_of(context), [])
        for table in gathered(iterator):
            arrivals.add(_accept(self._pin.schema, self._sources, table, message.rejected))
        message.runs = arrivals.finish()
        return message

    def _sink_of(self, context: TaskContext | None) -> str | None:
        """The writer whose batches are counted, or None."""
        raise NotImplementedError

    def _commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        freeze()
        received = [message for message in messages if isinstance(message, SinkMessage)]
        if not received:
            return
        check_files_visible(self._root, [run for message in received for run in message.runs])
        with Catalog(self._root) as catalog:
            crash_point("sink.before_commit")
            # The rows come after those of all pushes that have returned.
            with pushes_held(self._root) as ends, catalog.write() as tx:
                for attempt in {message.attempt for message in received}:
                    check_attempt(tx, attempt)
                stream = stream_by_id(tx, received[0].stream_id)
                if stream is None:
                    raise TureenError("the stream was dropped while rows were being written to it")
                check_unpunctuated(stream)
                sink_id = received[0].sink_id
                if sink_id is not None and not take_batch(tx, sink_id, stream.id, batch_id):
                    return
                runs = [run for message in received for run in message.runs]
                rejected = [rejection for message in received for rejection in message.rejected]
                if runs or rejected:
                    reserve_pending(tx, self._root, stream, ends.get(stream.id, 0))
                    insert_runs(tx, take_seq(tx), stream.id, runs)
                    reject(tx, stream.id, rejected)
                crash_point("sink.in_commit")
            crash_point("sink.after_commit")


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """Writes micro-batches, each exactly once."""

    def _sink_of(self, context: TaskContext | None) -> str | None:
        query_id = context and context.getLocalProperty("sql.streaming.queryId")
        return self._sink_id or query_id or uuid.uuid4().hex

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit a micro-batch."""
        self._commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: Spark also calls this after a commit that succeeded; the sweeper removes abandoned files."""


class BatchSink(_Sink, DataSourceArrowWriter):
    """Appends a DataFrame in one commit."""

    def _sink_of(self, context: TaskContext | None) -> str | None:  # noqa: ARG002
        # Within foreachBatch there is a streaming query id, but no batch id that identifies a repeated batch.
        return None

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the rows."""
        self._commit(messages, 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing; the sweeper removes abandoned files."""


def check_unpunctuated(stream: Stream) -> None:
    """Raise for a stream whose rows are checked as they are pushed: a sink's tasks cannot see concurrent pushes."""
    if stream.rules or stream.punctuated:
        declared = "a unique key or a lateness" if stream.rules else "punctuations"
        raise TureenError(
            f"stream '{stream.name}' has {declared}: rows can only be pushed to it",
            hint="push the rows, or write them to another stream",
        )


def _match_names(schema: Schema, names: Sequence[str]) -> dict[str, str]:
    """The DataFrame's column for each of the stream's columns."""
    sources: dict[str, str] = {}
    for name in names:
        column = schema.find(name)
        if column is None:
            raise InvalidSchema(
                f"the stream has no column '{name}'",
                hint=nearest(name, schema.names) or "select the stream's columns before writing",
            )
        sources[column.name] = name
    missing = [name for name in schema.names if name not in sources]
    if missing:
        raise InvalidSchema(f"the DataFrame lacks the column '{missing[0]}' of the stream")
    return sources


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of batches in larger tables: small ones take longer to check than to copy."""
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        gathered.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GATHERED_ROWS or size >= GATHERED_BYTES:
            yield pa.Table.from_batches(gathered).combine_chunks()
            gathered, rows, size = [], 0, 0
    if gathered:
        yield pa.Table.from_batches(gathered).combine_chunks()


def _accept(schema: Schema, sources: dict[str, str], table: pa.Table, rejected: list[Rejected]) -> pa.Table:
    """A batch of the DataFrame as stored tuples; rows without a time are rejected."""
    arrays = [cast_column(column, table.column(sources[column.name])) for column in schema.columns]
    stored = pa.Table.from_arrays(arrays, schema=schema.arrow)
    for column in schema.columns:
        if column.type.kind not in NOT_STORABLE:
            continue
        valid = storable(column, stored.column(column.name).combine_chunks())
        if not bool(pc.all(valid, min_count=0).as_py()):
            reason = f"column '{column.name}' holds {NOT_STORABLE[column.type.kind]}"
            rejected += [Rejected({"column": column.name}, reason)] * pc.sum(pc.invert(valid)).as_py()
            stored = stored.filter(valid)
    if schema.time is None:
        arrival = pa.scalar(micros_now(), pa.timestamp("us", tz="UTC"))
        return stored.append_column(ARRIVAL, pa.repeat(arrival, len(stored)))
    valid = has_time(schema, stored.column(schema.time))
    if not pc.all(valid, min_count=0).as_py():
        for row in stored.filter(pc.invert(valid)).to_pylist():
            value = "NULL" if row[schema.time] is None else row[schema.time]
            rejected.append(Rejected(row, f"the time column '{schema.time}' is {value}"))
        stored = stored.filter(valid)
    return with_instants(schema, stored)
