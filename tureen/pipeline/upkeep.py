"""What happens in the background: compiling queries, paying debts, sealing, merging, letting go.

Each step is one function: it looks at the catalog, writes files, and commits. Any of them may be cut off at
any point and done again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tureen.errors import PotError
from tureen.faults import crash_point
from tureen.pipeline.arrival import MAX_RUN_BYTES, MAX_RUN_ROWS, TAIL_ROWS, matcher, write_tuples
from tureen.pipeline.pinning import pin
from tureen.pot.catalog import Catalog, check_attempt, current_seq, take_seq
from tureen.pot.files import durable_file, new_attempt
from tureen.pot.queries import (
    QueryRunRecord,
    compiled_queries,
    eager_clauses,
    last_eager_seq,
    publish_query_run,
)
from tureen.pot.runs import Run, drop_runs, live_runs, publish_cells, replace_runs
from tureen.pot.streams import Stream, stream_by_id
from tureen.predicate import Clause
from tureen.queries import QueryRun, compile_clauses
from tureen.schema import Schema
from tureen.stems.run import open_run, write_cells

FAN = 16
"""So many neighbours of one tier are merged into one run of the next."""

LONG_TAIL = 4 * TAIL_ROWS
"""A tail of so many rows is sealed, however few runs it is."""

_LAST_TIER = 4
"""Runs of larger tiers are as large as a run may be."""

MANY_CELL_FILES = 4
"""A run with so many cell files gets one with all cells instead of one more."""

_matching = threading.Lock()
"""Matching in this process goes one at a time: it uses all of a core and one set of buffers."""


def compile_queries(catalog: Catalog, stream: Stream) -> bool:
    """Compile the stream's eager clauses if they changed, for new data to be matched against."""
    with catalog.read() as tx:
        compiled = compiled_queries(tx, stream.id)
        clauses = eager_clauses(tx, stream.id)
        seq = current_seq(tx)
    newest = max((became for _, became, _ in clauses), default=0)
    if newest <= compiled.seq and len(clauses) == compiled.clauses:
        return False
    path, attempt = None, new_attempt()
    if clauses:
        path = f"queries/{attempt}-{stream.id}.queries"
        _write_query_run(catalog.root / path, stream.schema, clauses)
    with catalog.write() as tx:
        check_attempt(tx, attempt)
        if stream_by_id(tx, stream.id) is not None:
            publish_query_run(tx, stream.id, QueryRunRecord(seq, path, len(clauses)))
    return True


def _write_query_run(path: Path, schema: Schema, clauses: Sequence[tuple[int, int, Clause]]) -> None:
    compiled = compile_clauses([one[0] for one in clauses], [one[2] for one in clauses], schema)
    with durable_file(path) as file:
        file.write(compiled.to_buffer())


@dataclass(frozen=True, slots=True)
class Debt:
    """A run, the clauses that it has not been matched with, and the commit that pays up to."""

    root: str
    schema: Schema
    run: Run
    queries: str
    """The compiled clauses that are owed, from the root."""
    seq: int
    all_of_it: bool
    attempt: str


@dataclass(frozen=True, slots=True)
class Payment:
    """The cells of a debt, written and not yet committed."""

    debt: Debt
    path: str
    bytes: int
    failures: dict[int, str]


Payer = Callable[[list[Debt]], list[Payment]]


def find_debts(catalog: Catalog, stream: Stream) -> tuple[list[Debt], int]:
    """What the stream's runs owe, and how large it is in tuples × clauses."""
    with catalog.read() as tx:
        newest = last_eager_seq(tx, stream.id)
        owing = [run for run in live_runs(tx, stream.id) if run.indexed and run.matched_seq < newest]
        clauses = eager_clauses(tx, stream.id) if owing else []
        seq = current_seq(tx)
    attempt = new_attempt()
    compiled: dict[int, str] = {}
    debts, size = [], 0
    for run in owing:
        all_of_it = len(run.cells) >= MANY_CELL_FILES
        since = -1 if all_of_it else run.matched_seq
        owed = [one for one in clauses if one[1] > since]
        if since not in compiled:
            compiled[since] = f"queries/{attempt}-{stream.id}-{len(compiled)}.owed"
            _write_query_run(catalog.root / compiled[since], stream.schema, owed)
        size += run.rows * len(owed)
        debts.append(Debt(str(catalog.root), stream.schema, run, compiled[since], seq, all_of_it, attempt))
    return debts, size


def pay(debt: Debt) -> Payment:
    """New queries × old data: write the owed cells of one run."""
    root = Path(debt.root)
    queries = QueryRun.load(root / debt.queries)
    failures: dict[int, str] = {}
    name = f"streams/{debt.run.stream_id}/{debt.attempt}-{debt.run.id}.cells"
    blocks = open_run(root / debt.run.path, debt.schema).blocks
    crash_point("debt.before_write")
    with _matching, durable_file(root / name) as file:
        write_cells(file, blocks, matcher(queries, failures))
        size = file.tell()
    crash_point("debt.after_write")
    return Payment(debt, name, size, failures)


def pay_debts(catalog: Catalog, stream: Stream, pay_large: Payer, large: int) -> int:
    """Pay what the stream's runs owe, here or, from a size on, by `pay_large`; return how many runs."""
    debts, size = find_debts(catalog, stream)
    if not debts:
        return 0
    try:
        payments = [pay(debt) for debt in debts] if size < large else pay_large(debts)
    except FileNotFoundError:
        return 0  # a run was merged away meanwhile: what it owed went with it
    with catalog.write() as tx:
        check_attempt(tx, debts[0].attempt)
        take_seq(tx)
        for payment in payments:
            publish_cells(
                tx,
                payment.debt.run,
                payment.path,
                payment.bytes,
                payment.debt.seq,
                payment.failures,
                all_of_it=payment.debt.all_of_it,
            )
        crash_point("debt.before_commit")
    crash_point("debt.after_commit")
    for path in {debt.queries for debt in debts}:
        (catalog.root / path).unlink(missing_ok=True)
    return len(payments)


def seal(catalog: Catalog, stream: Stream, *, everything: bool = False) -> bool:
    """Merge neighbouring small runs into one of the next tier; True if something was merged.

    A trickle of rows becomes few files: the newest are scanned, and from some size on a merged run is indexed and
    matched, which pays its debts as well. `everything` seals what is there, whatever its size.
    """
    with catalog.read() as tx:
        runs = live_runs(tx, stream.id)
        pinned = pin(tx, catalog.root, stream)
    chosen = choose_merge(runs, everything=everything)
    if not chosen:
        return False
    try:
        tables = [
            open_run(catalog.root / run.path, stream.schema).table(stream.schema, run.first_id - chosen[0].first_id)
            for run in chosen
        ]
    except FileNotFoundError:
        return False
    attempt = new_attempt()
    name = f"streams/{stream.id}/{attempt}-merged.run"
    crash_point("seal.before_write")
    with _matching:
        merged = write_tuples(pinned, name, pa.concat_tables(tables))
    crash_point("seal.before_commit")
    try:
        with catalog.write() as tx:
            check_attempt(tx, attempt)
            replace_runs(tx, take_seq(tx), chosen, merged)
            crash_point("seal.in_commit")
    except PotError:
        return False  # one of them was merged or dropped meanwhile
    crash_point("seal.after_commit")
    return True


def choose_merge(runs: Sequence[Run], *, everything: bool = False) -> list[Run]:
    """The neighbours to merge next, or none.

    Runs in a row that are at most of one tier, once there are `FAN` of them, the smallest tier first; and a tail
    that has become too long to scan.
    """
    if everything:
        return max(_stretches(runs, _LAST_TIER), key=len, default=[])
    for tier in range(_LAST_TIER + 1):
        for stretch in _stretches(runs, tier):
            # The largest is not above half, so that a tuple is written again only into a run twice as large.
            if len(stretch) >= FAN and 2 * max(run.rows for run in stretch) <= sum(run.rows for run in stretch):
                return stretch
            if not any(run.indexed for run in stretch) and sum(run.rows for run in stretch) >= LONG_TAIL:
                return stretch
    return []


def _stretches(runs: Sequence[Run], tier: int) -> list[list[Run]]:
    """Two or more neighbours of at most a tier that fit into one run."""
    found: list[list[Run]] = []
    group: list[Run] = []
    for run in runs:
        small = _tier(run) <= tier
        full = sum(one.rows for one in group) + run.rows > MAX_RUN_ROWS
        if not small or full or sum(one.bytes for one in group) + run.bytes > MAX_RUN_BYTES:
            found.append(group)
            group = []
        if small:
            group.append(run)
    found.append(group)
    return [group for group in found if len(group) > 1]


def _tier(run: Run) -> int:
    tier, rows = 0, run.rows
    while rows >= FAN:
        rows //= FAN
        tier += 1
    return tier


def expire(catalog: Catalog, stream: Stream, now: int) -> int:
    """Let go of the runs that lie wholly before the stream's horizon at `now`; return how many."""
    horizon = stream.horizon(now)
    if horizon is None:
        return 0
    with catalog.read() as tx:
        old = [run for run in live_runs(tx, stream.id) if run.max_time < horizon]
    if old:
        with catalog.write() as tx:
            take_seq(tx)
            drop_runs(tx, old)
    return len(old)
