"""Repair: damaged data that is derived from tuples or clauses is rewritten.

A run whose index or cells are damaged is rewritten by a merge of this run alone. Damaged tuples stay as they are until
a user gives them up (`give_up_lost`).
"""

from __future__ import annotations

import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.pipeline.arrival import write_tuples
from tureen.pipeline.pinning import pin
from tureen.pipeline.upkeep import merge
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.damage import forget_damage, log, lost_files, noted_damage
from tureen.pot.files import new_attempt
from tureen.pot.kept_joins import damaged_joins, restart_join
from tureen.pot.key_files import drop_key_files
from tureen.pot.query_runs import forget_query_runs, live_query_runs
from tureen.pot.runs import Rejected, Run, drop_runs, live_runs, reject, replace_runs
from tureen.pot.streams import Stream
from tureen.stems.run import open_run
from tureen.stems.stored import NTH
from tureen.window import from_micros


def repair(catalog: Catalog, stream: Stream) -> int:
    """Rewrite the stream's files that are noted as damaged and can be repaired; return their number."""
    with catalog.read() as tx:
        noted = {damage.path for damage in noted_damage(tx) if not damage.lost}
        if not noted:
            return 0
        live = live_runs(tx, stream.id)
        runs = [run for run in live if noted & _files(run)]
        key_files = [file.path for run in live for file in run.key_files if file.path in noted]
        queries = [run.path for run in live_query_runs(tx, stream.id) if run.path in noted]
        pinned = pin(tx, catalog.root, stream)
    repaired: set[str] = set()
    for run in runs:
        if merge(catalog, stream, [run], pinned):
            repaired |= noted & _files(run)
    repaired.update(queries, key_files)
    with catalog.write() as tx:
        if queries:
            forget_query_runs(tx, stream.id)
        # Written again by the next search for missing indexes.
        drop_key_files(tx, key_files)
        forget_damage(tx, repaired)
    for path in sorted(repaired):
        log.warning("repaired: the content of file '%s' was rewritten", path)
    return len(repaired)


def repair_joins(catalog: Catalog) -> int:
    """Drop the results of joins with damaged runs, which the engine computes again; return the number of these runs."""
    with catalog.read() as tx:
        noted = {damage.path for damage in noted_damage(tx)}
        damaged = damaged_joins(tx, noted)
    if not damaged:
        return 0
    repaired = [run.path for join in damaged for run in join.runs if run.path in noted]
    with catalog.write() as tx:
        take_seq(tx)
        for join in damaged:
            restart_join(tx, join, join.reach)
        forget_damage(tx, repaired)
    for path in repaired:
        log.warning("repaired: file '%s' was dropped, and the results of its join are computed again", path)
    return len(repaired)


def give_up_lost(catalog: Catalog, stream: Stream) -> int:
    """Rewrite the stream's runs without the blocks whose tuples are damaged; return the number of tuples lost.

    They are reported among the stream's rejected rows.
    """
    with catalog.read() as tx:
        lost = lost_files(tx)
        runs = [run for run in live_runs(tx, stream.id) if run.path in lost]
    return sum(_give_up(catalog, stream, run) for run in runs)


def _give_up(catalog: Catalog, stream: Stream, run: Run) -> int:
    with catalog.read() as tx:
        pinned = pin(tx, catalog.root, stream)
    tables = _readable(catalog, stream, run)
    attempt = new_attempt()
    merged = None
    if tables:
        name = f"streams/{stream.id}/{attempt}-salvaged.run"
        merged = write_tuples(pinned, name, pa.concat_tables(tables))
    missing = run.rows - sum(len(table) for table in tables)
    reason = (
        f"{missing} rows between {from_micros(run.min_time)} and {from_micros(run.max_time)} were lost: "
        f"file '{run.path}' was damaged"
    )
    with catalog.write() as tx:
        check_attempt(tx, attempt)
        seq = take_seq(tx)
        if merged is None:
            drop_runs(tx, [run])
        else:
            replace_runs(tx, seq, [run], merged)
        reject(tx, stream.id, [Rejected({"rows": missing}, reason)])
        forget_damage(tx, _files(run))
    log.error("stream '%s': %s", stream.name, reason)
    return missing


def _readable(catalog: Catalog, stream: Stream, run: Run) -> list[pa.Table]:
    """The tuples of the intact blocks, with their numbers in order of arrival."""
    try:
        opened = open_run(catalog.root / run.path, stream.schema)
    except (DamagedFile, FileNotFoundError):
        return []
    tables = []
    for number, block in enumerate(opened.blocks):
        try:
            columns = pa.Table.from_batches([block.columns], stream.schema.stored)
        except DamagedFile:
            continue
        tables.append(columns.append_column(NTH, pa.array(opened.nth(number).astype("uint32"))))
    return tables


def _files(run: Run) -> set[str]:
    return {run.path, *(file.path for file in run.cells)}
