"""The Query SteM grows and shrinks: eager clauses become compiled query runs, which are merged as they get many.

Query runs are stretches of clause numbers. New clauses become a run of their own, together with the newest runs that
are not larger, so that there are few runs and a clause is compiled again only into a run twice as large. A clause that
is no longer eager stays in its run, where it costs matching a little, until so many have gone that the run is compiled
anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, check_attempt, current_seq
from tureen.pot.clauses import Eager, eager_clauses
from tureen.pot.files import durable_file, new_attempt
from tureen.pot.query_runs import QueryRunRecord, compiled_seq, live_query_runs, publish_query_run
from tureen.pot.streams import Stream, stream_by_id
from tureen.queries import compile_clauses
from tureen.schema import Schema

SMALL_RUN = 1024
"""Query runs of so many clauses together are always one."""

DEAD_SHARE = 8
"""A query run is compiled anew when one in so many of its clauses has gone."""


def compile_queries(catalog: Catalog, stream: Stream) -> bool:
    """Compile what became eager since the last time, or a run of which much has gone; True if something was done."""
    with catalog.read() as tx:
        done, seq = compiled_seq(tx, stream.id), current_seq(tx)
        runs, new = live_query_runs(tx, stream.id), eager_clauses(tx, stream.id, after=done)
        old = choose_runs(runs, len(new))
        if not old and not new:
            return False
        wanted = new
        if old:
            last = new[-1].number if new else old[-1].last
            wanted = eager_clauses(tx, stream.id, numbers=(old[0].first, last))
    attempt, record = new_attempt(), None
    if wanted:
        path = f"queries/{attempt}-{stream.id}.queries"
        write_query_run(catalog.root / path, stream.schema, wanted)
        record = QueryRunRecord(path, wanted[0].number, wanted[-1].number, len(wanted))
    crash_point("compile.before_commit")
    with catalog.write() as tx:
        check_attempt(tx, attempt)
        if stream_by_id(tx, stream.id) is not None:
            publish_query_run(tx, stream.id, old, record, seq if new else done)
    return True


def choose_runs(runs: Sequence[QueryRunRecord], new: int) -> list[QueryRunRecord]:
    """The neighbouring runs to compile anew: with new clauses the newest that are not larger, else a worn one."""
    if not new:
        worn = [run for run in runs if run.dead and run.dead * DEAD_SHARE >= run.clauses]
        return worn[:1]
    size, first = new, len(runs)
    while first and runs[first - 1].clauses <= max(size, SMALL_RUN - size):
        first -= 1
        size += runs[first].clauses
    return list(runs[first:])


def write_query_run(path: Path, schema: Schema, clauses: Sequence[Eager]) -> None:
    """Compile clauses and write them as one durable file."""
    compiled = compile_clauses([one.number for one in clauses], [one.clause for one in clauses], schema)
    with durable_file(path) as file:
        file.write(compiled.to_buffer())
