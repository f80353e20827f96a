"""The Spark sink of the pushed streams: references in, runs out, exactly once.

Exactly-once does not depend on Spark's checkpoint: the catalog has the offset up to which each stream's inbox is in
runs, and the commit is a compare-and-swap on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from tureen.faults import crash_point
from tureen.pipeline.heap import freeze
from tureen.pipeline.pinning import Pin, pin
from tureen.pipeline.visibility import check_files_visible, check_pot_visible
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.files import new_attempt
from tureen.pot.heads import Heads
from tureen.pot.log import Reference
from tureen.pot.reserved_ids import TakenRuns, append_taken, reservations
from tureen.pot.runs import Rejected, advance_inbox, reject
from tureen.pot.streams import advance_derived, stream_by_id, taken_offsets


@dataclass
class StreamIntake:
    """The rows of one stream that one task has read from the inbox."""

    start: int
    """The offset up to which the stream's rows were in runs when the batch began."""
    end: int
    groups: list[TakenRuns] = field(default_factory=list)
    """In the order of the log."""
    rejected: list[Rejected] = field(default_factory=list)
    progress: str | None = None
    """Of a replica: how far it is with these rows, see `tureen.pot.home_progress`."""


@dataclass
class InboxMessage(WriterCommitMessage):
    """What a task sends to the commit."""

    attempt: str
    taken: dict[int, StreamIntake]


class InboxSink(DataSourceStreamArrowWriter):
    """Writes the rows of references; created once per batch, and sent to its tasks."""

    def __init__(self, root: Path) -> None:
        """Pin the Query SteM of each stream with rows to read, and the offset up to which its inbox is in runs."""
        self._root = root
        self._attempt = new_attempt()
        self._pins: dict[int, Pin] = {}
        self._starts: dict[int, int] = {}
        self._reserved_ends: dict[int, list[int]] = {}
        # Read before the catalog, so that rows of the batch that are not in runs yet are before these ends.
        with closing(Heads(root / "inbox")) as heads, heads.held():
            ends = heads.ends()
        with Catalog(root) as catalog, catalog.read() as tx:
            for stream_id, taken in taken_offsets(tx).items():
                stream = stream_by_id(tx, stream_id) if ends.get(stream_id, 0) > taken else None
                if stream is None:
                    continue
                self._pins[stream.id] = pin(tx, root, stream)
                self._starts[stream.id] = stream.taken
                self._reserved_ends[stream.id] = [reservation.end for reservation in reservations(tx, stream.id)]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> InboxMessage:
        """Turn this task's references into runs."""
        from tureen.pipeline.inbox_task import StreamTask  # noqa: PLC0415 - tasks need the kernels, planners do not

        crash_point("sink.task")
        check_pot_visible(self._root)
        context = TaskContext.get()
        part = "0.0" if context is None else f"{context.partitionId()}.{context.attemptNumber()}"
        tasks: dict[int, StreamTask] = {}
        for batch in iterator:
            for row in batch.to_pylist():
                reference = Reference(**row)
                stream = reference.stream
                if stream not in self._pins:
                    continue  # its rows are all in runs, or were dropped with the stream
                if stream not in tasks:
                    tasks[stream] = StreamTask(
                        self._pins[stream], self._starts[stream], self._reserved_ends[stream], self._attempt, part
                    )
                tasks[stream].read(reference)
        return InboxMessage(self._attempt, {stream: task.finish() for stream, task in tasks.items()})

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
    groups = {stream: [group for part in parts for group in part.groups] for stream, parts in by_stream.items()}
    check_files_visible(root, [run for taken in groups.values() for group in taken for run in group.runs])
    with Catalog(root) as catalog:
        crash_point("sink.before_commit")
        with catalog.write() as tx:
            for message in messages:
                check_attempt(tx, message.attempt)
            seq = take_seq(tx)
            for stream, parts in by_stream.items():
                if stream_by_id(tx, stream) is None:
                    continue
                end = max(part.end for part in parts)
                advance_inbox(tx, stream, parts[0].start, end)
                append_taken(tx, seq, stream, groups[stream], end)
                # The time at the home of a replica must not be lost when the records are.
                for part in parts:
                    if part.progress is not None:
                        advance_derived(tx, stream, part.progress)
                reject(tx, stream, [rejection for part in parts for rejection in part.rejected])
            crash_point("sink.in_commit")
        crash_point("sink.after_commit")
