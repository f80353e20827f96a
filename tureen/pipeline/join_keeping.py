"""Keeping joins: the joined tuples of new tuples are written as join runs.

A step joins some of the tuples that are owed, writes the results as one run, and commits it with the progress of the
join. The run absorbs the newest runs that are not larger than itself, so that a join has few runs. Large steps are
divided among the tasks of a Spark job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tureen.errors import DamagedFile, PotError, QueryFailed
from tureen.faults import crash_point
from tureen.joining.join_limits import JoinLimits
from tureen.pipeline.join_task import (
    JoinTask,
    StoredTuples,
    TaskResult,
    alive,
    joined_tuples,
    run_join_task,
    write_joined,
)
from tureen.pipeline.part_joining import KeptPart, PartStep, SubJoinIndexes, joined_parts, kept_parts
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.damage import forget_damage, noted_damage
from tureen.pot.files import new_attempt
from tureen.pot.kept_joins import (
    JoinRun,
    KeptJoin,
    NewJoinRun,
    PlannedJoins,
    add_sub_joins,
    drop_join_runs,
    drop_unused_joins,
    joins_no_longer_kept,
    joins_to_keep,
    needed_reach,
    planned_joins,
    publish_join_runs,
    restart_join,
    unused_joins,
)
from tureen.pot.reserved_ids import reservations
from tureen.pot.runs import live_runs
from tureen.pot.streams import Stream, stream_by_id
from tureen.pot.transaction import Transaction
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.new_joined_tuples import id_limits
from tureen.results.snapshot.pending import PendingRows
from tureen.results.snapshot.segment_cache import SegmentCache
from tureen.results.snapshot.stream_state import StreamState
from tureen.stems.join_run import JoinedTuples, OpenJoinRun, concatenated
from tureen.stream_join import StreamJoin, is_within

log = logging.getLogger("tureen")

STEP_TUPLES = 1 << 20
"""The maximum number of new tuples of a stream that one step in this process joins."""

LARGE_STEP = 4 * STEP_TUPLES
"""From that many new tuples on, a step is a Spark job, with a task for each `STEP_TUPLES`."""

MANY_OWED = 1 << 19
"""From that many new tuples on, a join is kept although other upkeep is not due yet: then little is left at the end."""

MAX_ROWS = 1 << 26
"""The maximum number of joined tuples that are kept for a join."""

MAX_FAN_OUT = 8
"""A join is not kept if new tuples have more partners than this on average."""

FAN_OUT_SAMPLE = 4096
"""The minimum number of joined tuples of a step for which that average is considered."""

MAX_ABSORBED = 1 << 23
"""A join run with more rows is not absorbed any more."""

RunTasks = Callable[[list[JoinTask]], list[TaskResult]]


@dataclass(frozen=True)
class Owing:
    """A stream of a join: its tuples from the id `begin` to before `end` are not joined yet."""

    stream: Stream
    tuples: StoredTuples
    first_id: int
    """The id of the first tuple that exists."""
    begin: int
    end: int

    def shortened(self) -> Owing:
        """The same for at most `STEP_TUPLES`."""
        return replace(self, end=min(self.end, self.begin + STEP_TUPLES))


def _owing(tx: Transaction, stream_id: int, done: int) -> Owing:
    stream = stream_by_id(tx, stream_id)
    if stream is None:
        raise PotError("a stream of this join was dropped")
    runs = live_runs(tx, stream_id)
    first_id = runs[0].first_id if runs else stream.next_id
    # Tuples with reserved ids are still to come between the others.
    end = min([stream.next_id, *(reserved.first_id for reserved in reservations(tx, stream_id))])
    tuples = StoredTuples(stream.schema, tuple(runs), stream.next_id)
    return Owing(stream, tuples, first_id, max(done, min(first_id, end)), end)


def part_ends(parts: Sequence[KeptPart], streams: Sequence[Owing]) -> list[int] | None:
    """Up to which tuples the parts of a join have the results of their sub-joins; None if one is behind the join."""
    ends = [stream.end for stream in streams]
    for part, sub_join in parts:
        for number, done in zip(part.inputs, () if sub_join is None else sub_join.progress, strict=False):
            if done < streams[number].begin:
                return None
            ends[number] = min(ends[number], done)
    has_new = any(end > stream.begin for end, stream in zip(ends, streams, strict=True))
    return ends if parts and has_new else None


def _is_expired(run: JoinRun, streams: Sequence[Owing]) -> bool:
    return any(last < stream.first_id for last, stream in zip(run.last_ids, streams, strict=True))


class JoinKeeper:
    """Keeps the joins of one pot, in the process that has its engine."""

    def __init__(self, catalog: Catalog, segments: SegmentCache, indexes: KeyIndexes) -> None:
        """Join tuples of that catalog's streams, with the segments and key indexes of the process."""
        self._catalog, self._segments, self._indexes = catalog, segments, indexes
        self._sub_joins = SubJoinIndexes()

    def keep(self, run_tasks: RunTasks | None = None, *, least: int = 1) -> bool:
        """One step for each join that owes `least` tuples or more; True if something changed.

        `run_tasks` runs the tasks of large steps.
        """
        with self._catalog.read() as tx:
            planned, dropped, unused = planned_joins(tx), joins_no_longer_kept(tx), unused_joins(tx)
            to_keep = joins_to_keep(tx)
            damaged = {damage.path for damage in noted_damage(tx)} if to_keep else set()
        known = {join.key for join in to_keep}
        changed = bool(unused or dropped)
        if changed or not planned.reaches.keys() <= known:
            with self._catalog.write() as tx:
                take_seq(tx)
                changed = add_sub_joins(tx, planned) or changed
                for join in dropped:
                    restart_join(tx, join, join.reach)
                drop_unused_joins(tx)
        for join in to_keep:
            try:
                changed = self._step(join, planned, damaged, run_tasks, least) or changed
            except DamagedFile as damage:
                self._segments.report(damage)
            except (FileNotFoundError, PotError):
                continue  # a run was merged, or the join was changed, in the meantime
            except QueryFailed as failure:
                self._refuse(join, failure.message)
                changed = True
        return changed

    def _step(
        self, join: KeptJoin, planned: PlannedJoins, damaged: set[str], run_tasks: RunTasks | None, least: int
    ) -> bool:
        stream_join = StreamJoin.of_key(join.key)
        with self._catalog.read() as tx:
            reach = needed_reach(tx, join, planned)
            parts = kept_parts(tx, join, planned)
            streams = [
                _owing(tx, stream_id, done) for stream_id, done in zip(stream_join.streams, join.progress, strict=True)
            ]
        broken = [run.path for run in join.runs if run.path in damaged or not (self._catalog.root / run.path).exists()]
        if broken or not is_within(reach, join.reach):
            self._restart(join, reach, broken)
            return True
        expired = [run for run in join.runs if _is_expired(run, streams)]
        if expired:
            with self._catalog.write() as tx:
                take_seq(tx)
                drop_join_runs(tx, expired)
            return True
        new = sum(stream.end - stream.begin for stream in streams)
        if new < least:
            return False
        stored = tuple(stream.tuples for stream in streams)
        base = JoinTask(str(self._catalog.root), stream_join, stored, 0, (), join.reach, MAX_ROWS)
        if new >= LARGE_STEP and run_tasks is not None:
            self._large_step(join, base, streams, run_tasks)
        else:
            self._small_step(join, base, [stream.shortened() for stream in streams], parts)
        return True

    def _joined(
        self, base: JoinTask, streams: Sequence[Owing], parts: Sequence[KeptPart]
    ) -> tuple[JoinedTuples, list[int]]:
        """The joined tuples of a step, and up to which tuples."""
        begins, ends = [stream.begin for stream in streams], part_ends(parts, streams)
        if ends is not None:
            states = [
                StreamState(0, source.stream, list(segments), [], PendingRows(0, 0))
                for source in streams
                for segments in [self._segments.segments(source.tuples.schema, source.tuples.runs)]
            ]
            step = PartStep(states, begins, ends, base.reach, JoinLimits(rows=base.max_rows))
            return joined_parts(self._catalog.root, base.join, parts, step, self._indexes, self._sub_joins), ends
        ends = [stream.end for stream in streams]
        joined = [
            joined_tuples(replace(base, new=new, limits=tuple(limits)), self._segments.segments, self._indexes)
            for new, limits in id_limits(begins, ends)
        ]
        return concatenated(len(ends), joined), ends

    def _small_step(self, join: KeptJoin, base: JoinTask, streams: Sequence[Owing], parts: Sequence[KeptPart]) -> None:
        begins = [stream.begin for stream in streams]
        joined, ends = self._joined(base, streams, parts)
        _check_size(join, len(joined), sum(ends) - sum(begins))
        absorbed = choose_absorbed(join.runs, len(joined))
        first_ids = [stream.first_id for stream in streams]
        old = [alive(OpenJoinRun(self._catalog.root / run.path).tuples, first_ids) for run in absorbed]
        tuples = concatenated(len(ends), [*old, joined])
        attempt = new_attempt()
        path = f"joins/{join.id}/{attempt}-joined.run"
        written = [write_joined(self._catalog.root, path, tuples)] if len(tuples) else []
        self._publish(join, attempt, ends, written, absorbed)

    def _large_step(self, join: KeptJoin, base: JoinTask, streams: Sequence[Owing], run_tasks: RunTasks) -> None:
        begins, ends = [stream.begin for stream in streams], [stream.end for stream in streams]
        attempt = new_attempt()
        tasks: list[JoinTask] = []
        for new, limits in id_limits(begins, ends):
            for first in range(begins[new], ends[new], STEP_TUPLES):
                part = (first, min(first + STEP_TUPLES, ends[new]))
                of_task = tuple(part if index == new else ids for index, ids in enumerate(limits))
                path = f"joins/{join.id}/{attempt}-{len(tasks)}.run"
                tasks.append(replace(base, new=new, limits=of_task, path=path))
        results = run_tasks(tasks)
        _check_size(join, sum(count for _, count in results), sum(ends) - sum(begins))
        self._publish(join, attempt, ends, [run for run, _ in results if run is not None], [])

    def _publish(
        self,
        join: KeptJoin,
        attempt: str,
        progress: Sequence[int],
        written: Sequence[NewJoinRun],
        absorbed: Sequence[JoinRun],
    ) -> None:
        crash_point("join.before_commit")
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            take_seq(tx)
            publish_join_runs(tx, join, tuple(progress), written, absorbed)
            crash_point("join.in_commit")
        crash_point("join.after_commit")

    def _restart(self, join: KeptJoin, reach: int | None, broken: Sequence[str]) -> None:
        with self._catalog.write() as tx:
            take_seq(tx)
            restart_join(tx, join, reach)
            forget_damage(tx, broken)
        for path in broken:
            log.warning("file '%s' is damaged or missing: the results of its join are computed again", path)

    def _refuse(self, join: KeptJoin, reason: str) -> None:
        log.info("the results of join %d are not kept: %s", join.id, reason)
        with self._catalog.write() as tx:
            take_seq(tx)
            restart_join(tx, join, join.reach, refused=reason)


def run_in_process(tasks: list[JoinTask]) -> list[TaskResult]:
    """Run the tasks of a large step one after the other."""
    return [run_join_task(task) for task in tasks]


def choose_absorbed(runs: Sequence[JoinRun], rows: int) -> list[JoinRun]:
    """The newest runs that a new run of that many rows absorbs: those that are not larger than what it has then."""
    absorbed: list[JoinRun] = []
    for run in reversed(runs):
        if run.rows > rows or rows + run.rows > MAX_ABSORBED:
            break
        absorbed.append(run)
        rows += run.rows
    return absorbed


def _check_size(join: KeptJoin, joined: int, new: int) -> None:
    """Raise if the results of a join are too many to be kept."""
    if joined >= FAN_OUT_SAMPLE and joined > MAX_FAN_OUT * new:
        raise QueryFailed(f"{new:,} new tuples have {joined:,} partners, more than {MAX_FAN_OUT} each")
    rows = joined + sum(run.rows for run in join.runs)
    if rows > MAX_ROWS:
        raise QueryFailed(f"{rows:,} joined tuples, more than {MAX_ROWS:,}")
