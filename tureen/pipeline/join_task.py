"""A join task: new tuples of one stream are joined with tuples of the others, in this process or in a task of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tureen.errors import DamagedFile
from tureen.faults import crash_point
from tureen.joining.join_limits import JoinLimits
from tureen.matching import Selector
from tureen.pot.files import durable_file
from tureen.pot.kept_joins import NewJoinRun
from tureen.pot.key_files import KeyFile
from tureen.pot.registered import RegisteredInput
from tureen.pot.runs import Run
from tureen.results.joins.join_inputs import Ids, StreamInput, matches_within
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.new_joined_tuples import join_new
from tureen.results.snapshot.segment import Hits, Segment
from tureen.schema import Schema
from tureen.stems.join_run import JoinedTuples, write_join_run
from tureen.stems.run import log_damage, open_run
from tureen.stems.stored_keys import StoredKeys, open_key_index
from tureen.stream_join import StreamJoin

SegmentsOf = Callable[[Schema, Sequence[Run]], Sequence[Segment]]
"""The tuples of runs as segments."""


@dataclass(frozen=True)
class StoredTuples:
    """The tuples of a stream that a join reads."""

    schema: Schema
    runs: tuple[Run, ...]
    next_id: int


@dataclass(frozen=True)
class JoinTask:
    """New tuples of one stream, and the tuples of all others that they are joined with."""

    root: str
    join: StreamJoin
    streams: tuple[StoredTuples, ...]
    new: int
    """The index of the stream with new tuples."""
    limits: tuple[Ids, ...]
    reach: int | None
    max_rows: int
    path: str = ""
    """The file that a task of Spark writes, relative to the pot."""


TaskResult = tuple[NewJoinRun | None, int]
"""The file that a task wrote, if there are any joined tuples, and their number."""


def joined_tuples(task: JoinTask, segments_of: SegmentsOf, indexes: KeyIndexes) -> JoinedTuples:
    """The joined tuples of a task; those whose times differ by more than the reach are left out."""
    segments = [segments_of(stream.schema, stream.runs) for stream in task.streams]

    def input_within(index: int, ids: Ids, new: StreamInput | None) -> StreamInput:
        stream = task.streams[index]
        near = None
        if new is not None and task.reach is not None:
            near = int(new.times.min()) - task.reach, int(new.times.max()) + task.reach
        all_tuples = Selector((), stream.schema)

        def select(number: int) -> Hits | None:
            segment = segments[index][number]
            first = 0 if near is None else segment.rows_before(near[0], inclusive=False)
            last = segment.rows if near is None else segment.rows_before(near[1], inclusive=True)
            return segment.hits(RegisteredInput(), all_tuples, first, last) if last > first else None

        return StreamInput(matches_within(stream.schema, segments[index], stream.next_id, ids, select), indexes)

    return join_new(task.join, task.new, task.limits, input_within, JoinLimits(rows=task.max_rows), task.reach)


def run_join_task(task: JoinTask) -> TaskResult:
    """Write the joined tuples of a task to a file of its own."""
    root = Path(task.root)

    def segments_of(schema: Schema, runs: Sequence[Run]) -> list[Segment]:
        return [_segment(root, schema, run) for run in runs]

    tuples = joined_tuples(task, segments_of, KeyIndexes())
    return (write_joined(root, task.path, tuples), len(tuples)) if len(tuples) else (None, 0)


def write_joined(root: Path, path: str, tuples: JoinedTuples) -> NewJoinRun:
    """Write joined tuples to a durable file."""
    crash_point("join.before_write")
    ordered = tuples.in_order_of(range(len(tuples.ids)))
    with durable_file(root / path) as file:
        write_join_run(file, Path(path).name, ordered)
        size = file.tell()
    crash_point("join.after_write")
    return NewJoinRun(path, len(ordered), size, tuple(int(ids.max()) for ids in ordered.ids))


def _segment(root: Path, schema: Schema, run: Run) -> Segment:
    return Segment(
        (run.id,),
        run.first_id,
        run.rows,
        run.min_time,
        run.max_time,
        lambda: open_run(root / run.path, schema),
        list,
        run.matched_seq if run.indexed else None,
        log_damage,
        {file.columns: partial(_key_file, root, run, file) for file in run.key_files},
    )


def _key_file(root: Path, run: Run, file: KeyFile) -> StoredKeys | None:
    try:
        return open_key_index(root / file.path, file.columns, run.rows, log_damage)
    except (DamagedFile, FileNotFoundError):
        return None


def alive(tuples: JoinedTuples, first_ids: Sequence[int]) -> JoinedTuples:
    """The joined tuples of which no tuple has an id before the first one that exists in its stream."""
    exists = np.logical_and.reduce([ids >= first for ids, first in zip(tuples.ids, first_ids, strict=True)])
    return tuples if exists.all() else tuples.take(exists)
