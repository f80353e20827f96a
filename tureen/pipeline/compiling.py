"""Compiling the Query SteM: eager clauses become query runs, which are merged to keep them few.

A query run covers an interval of clause numbers. New clauses are compiled and merged with the newest runs that are not
larger, or with all runs as long as that is fast. A clause that is no longer eager stays in its run, at a small cost in
matching, until the run is merged, or rewritten because too many of its clauses are dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tureen.errors import DamagedFile
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, check_attempt, current_seq
from tureen.pot.clauses import EagerClause, eager_clauses, eager_numbers
from tureen.pot.damage import note_damage
from tureen.pot.files import durable_file, new_attempt
from tureen.pot.query_runs import QueryRunRecord, compiled_seq, live_query_runs, publish_query_run
from tureen.pot.streams import Stream, stream_by_id
from tureen.queries import QueryRun, compile_clauses
from tureen.queries.merging import merge_runs
from tureen.schema import Schema

SMALL_RUN = 65_536
"""Query runs with at most this many clauses together are merged into one, which takes some hundredths of a second."""

DEAD_SHARE = 8
"""A query run is rewritten when one in this number of its clauses is dead."""


def compile_queries(catalog: Catalog, stream: Stream) -> bool:
    """Compile clauses that became eager since the last call, or rewrite a run with many dead ones; True if it did."""
    with catalog.read() as tx:
        last_seq, seq = compiled_seq(tx, stream.id), current_seq(tx)
        new = eager_clauses(tx, stream.id, after=last_seq)
        old = choose_runs(live_query_runs(tx, stream.id), len(new))
        if not old and not new:
            return False
        live = eager_numbers(tx, stream.id, old[0].first) if any(run.dead for run in old) else None
    try:
        merged = _merge([catalog.root / run.path for run in old], stream.schema, new, live)
    except DamagedFile as damage:
        with catalog.write() as tx:
            note_damage(tx, damage.file, damage.detail)
        return False
    attempt, record = new_attempt(), None
    if len(merged):
        path = f"queries/{attempt}-{stream.id}.queries"
        write_query_run(catalog.root / path, merged)
        record = QueryRunRecord(path, int(merged.ids[0]), int(merged.ids[-1]), len(merged))
    crash_point("compile.before_commit")
    with catalog.write() as tx:
        check_attempt(tx, attempt)
        if stream_by_id(tx, stream.id) is not None:
            publish_query_run(tx, stream.id, old, record, seq if new else last_seq)
    return True


def _merge(old: Sequence[Path], schema: Schema, new: Sequence[EagerClause], live: Sequence[int] | None) -> QueryRun:
    compiled = compile_eager(schema, new)
    if not old:
        return compiled
    return merge_runs([*map(QueryRun.load, old), compiled], None if live is None else np.array(live, np.int64))


def choose_runs(runs: Sequence[QueryRunRecord], new: int) -> list[QueryRunRecord]:
    """The neighbouring runs to rewrite: with new clauses the newest that are not larger, else one with many dead."""
    if not new:
        mostly_dead = [run for run in runs if run.dead and run.dead * DEAD_SHARE >= run.clauses]
        return mostly_dead[:1]
    size, first = new, len(runs)
    while first and runs[first - 1].clauses <= max(size, SMALL_RUN - size):
        first -= 1
        size += runs[first].clauses
    return list(runs[first:])


def compile_eager(schema: Schema, clauses: Sequence[EagerClause]) -> QueryRun:
    """A query run of eager clauses, by their numbers."""
    return compile_clauses([eager.number for eager in clauses], [eager.clause for eager in clauses], schema)


def write_query_run(path: Path, run: QueryRun) -> None:
    """Write a query run as one durable file."""
    with durable_file(path) as file:
        run.write(file, path.name)
