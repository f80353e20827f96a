"""The Spark sink of the pushed streams: references in, runs out, exactly once.

Exactly-once does not depend on Spark's checkpoint: the catalog has the offset up to which each stream's inbox is in
runs, and the commit is a compare-and-swap on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from tureen.faults import crash_point
from tureen.pipeline.heap import freeze
from tureen.pipeline.pinning import Pin, pin
from tureen.pipeline.visibility import check_files_visible, check_pot_visible
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.files import new_attempt
from tureen.pot.log import Reference, scan_segment
from tureen.pot.record import Entry
from tureen.pot.runs import NewRun, Rejected, advance_inbox, append_runs, reject
from tureen.pot.streams import list_streams, stream_by_id
from tureen.schema import ARRIVAL, Schema

if TYPE_CHECKING:
    from tureen.pipeline.arrival import Arrivals


@dataclass
class StreamIntake:
    """The rows of one stream that one task has read from the inbox."""

    start: int
    """The offset up to which the stream's rows were in runs when the batch began."""
    end: int
    runs: list[NewRun] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


@dataclass
class InboxMessage(WriterCommitMessage):
    """What a task sends to the commit."""

    attempt: str
    taken: dict[int, StreamIntake]


class InboxSink(DataSourceStreamArrowWriter):
    """Writes the rows of references; created once per batch, and sent to its tasks."""

    def __init__(self, root: Path) -> None:
        """Pin every stream's Query SteM and the offset up to which its inbox is in runs."""
        self._root = root
        self._attempt = new_attempt()
        self._pins: dict[int, Pin] = {}
        self._starts: dict[int, int] = {}
        with Catalog(root) as catalog, catalog.read() as tx:
            for stream in list_streams(tx):
                self._pins[stream.id] = pin(tx, root, stream)
                self._starts[stream.id] = stream.taken

    def write(self, iterator: Iterator[pa.RecordBatch]) -> InboxMessage:
        """Turn this task's references into runs."""
        from tureen.pipeline.arrival import Arrivals  # noqa: PLC0415 - tasks need the kernels, planners do not

        crash_point("sink.task")
        check_pot_visible(self._root)
        context = TaskContext.get()
        part = "0.0" if context is None else f"{context.partitionId()}.{context.attemptNumber()}"
        message = InboxMessage(self._attempt, {})
        arrivals: dict[int, Arrivals] = {}
        for batch in iterator:
            for row in batch.to_pylist():
                reference = Reference(**row)
                pinned = self._pins.get(reference.stream)
                if pinned is None:
                    continue  # the stream was dropped, and its rows with it
                if reference.stream not in arrivals:
                    arrivals[reference.stream] = Arrivals(pinned, self._attempt, part)
                    start = self._starts[reference.stream]
                    message.taken[reference.stream] = StreamIntake(start, start)
                _read(reference, pinned.schema, message.taken[reference.stream], arrivals[reference.stream])
        for stream, stream_arrivals in arrivals.items():
            message.taken[stream].runs = stream_arrivals.finish()
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Commit the batch: one transaction for all its streams."""
        freeze()
        with_rows = [message for message in messages if isinstance(message, InboxMessage) and message.taken]
        if with_rows:
            commit_taken(self._root, with_rows)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: Spark also calls this after a commit that succeeded; the sweeper removes abandoned files."""


def commit_taken(root: Path, messages: list[InboxMessage]) -> None:
    """Commit the rows that tasks have read from the inbox, in the order of the tasks."""
    by_stream: dict[int, list[StreamIntake]] = {}
    for message in messages:
        for stream, taken in message.taken.items():
            by_stream.setdefault(stream, []).append(taken)
    check_files_visible(root, [run for parts in by_stream.values() for part in parts for run in part.runs])
    with Catalog(root) as catalog:
        crash_point("sink.before_commit")
        with catalog.write() as tx:
            for message in messages:
                check_attempt(tx, message.attempt)
            seq = take_seq(tx)
            for stream, parts in by_stream.items():
                if stream_by_id(tx, stream) is None:
                    continue
                advance_inbox(tx, stream, parts[0].start, max(part.end for part in parts))
                append_runs(tx, seq, stream, [run for part in parts for run in part.runs])
                reject(tx, stream, [rejection for part in parts for rejection in part.rejected])
            crash_point("sink.in_commit")
        crash_point("sink.after_commit")


def _read(reference: Reference, schema: Schema, taken: StreamIntake, arrivals: Arrivals) -> None:
    """Decode the records of a reference that are not in runs yet."""
    for record in scan_segment(reference.path, reference.base, reference.start, reference.end, check=True):
        taken.end = max(taken.end, record.end)
        if record.end <= taken.start:
            continue
        if record.entry is None:
            interval = {"bytes": record.end - record.start, "offset": record.start}
            taken.rejected.append(Rejected(interval, "this part of the inbox is damaged: its checksum does not match"))
            continue
        try:
            table = decode(schema, record.entry)
        except (pa.ArrowException, ValueError) as error:
            taken.rejected.append(Rejected({"rows": record.rows}, f"the record cannot be read: {error}"))
            continue
        arrivals.add(table)


def decode(schema: Schema, entry: Entry) -> pa.Table:
    """The stored tuples of one push."""
    batch = pa.ipc.read_record_batch(pa.py_buffer(entry.payload), schema.arrow)
    table = pa.Table.from_batches([batch])
    if schema.time is None:
        arrival = pa.scalar(entry.arrival, pa.timestamp("us", tz="UTC"))
        table = table.append_column(ARRIVAL, pa.repeat(arrival, len(table)))
    return table
