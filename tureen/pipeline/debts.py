"""New queries × old data: the cells that runs owe to clauses that became eager after they were matched.

A run's payments are files of cells, each for an interval of commits. A payment absorbs the newest files that are not
larger than itself, so that a run has few files, however often clauses become eager.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tureen.errors import DamagedFile
from tureen.faults import crash_point
from tureen.pipeline.arrival import matcher
from tureen.pipeline.compiling import compile_eager, write_query_run
from tureen.pipeline.visibility import check_files_visible
from tureen.pot.catalog import Catalog, check_attempt, current_seq, take_seq
from tureen.pot.clauses import eager_clauses, last_eager_seq
from tureen.pot.damage import lost_files, note_lost
from tureen.pot.files import durable_file, new_attempt
from tureen.pot.runs import CellFile, NewCells, Run, live_runs, publish_cells
from tureen.pot.streams import Stream
from tureen.queries import QueryRun
from tureen.schema import Schema
from tureen.stems.run import open_run, write_cells

match_lock = threading.Lock()
"""Serialises matching in this process: it uses a whole core, and there is one set of buffers."""


@dataclass(frozen=True, slots=True)
class Debt:
    """A run, the clauses that it has not been matched with, and the commit up to which it will be matched."""

    root: str
    schema: Schema
    run: Run
    queries: str
    """The file of the compiled clauses that are owed, relative to the pot."""
    clauses: int
    since: int
    """The clauses are those that became eager after this commit."""
    absorbed: tuple[CellFile, ...]
    """Files with some of these clauses, which the payment replaces."""
    seq: int
    attempt: str


@dataclass(frozen=True, slots=True)
class Payment:
    """The cells of a debt, written but not yet committed."""

    debt: Debt
    cells: NewCells


Payer = Callable[[list[Debt]], list[Payment]]


def find_debts(catalog: Catalog, stream: Stream) -> tuple[list[Debt], int]:
    """The debts of a stream's runs, and their size in tuples × clauses."""
    with catalog.read() as tx:
        newest = last_eager_seq(tx, stream.id)
        if not newest:
            return [], 0
        lost = lost_files(tx)
        owing = [
            run for run in live_runs(tx, stream.id) if run.indexed and run.matched_seq < newest and run.path not in lost
        ]
        if not owing:
            return [], 0
        earliest = min(run.cells[-1].since if run.cells else run.matched_seq for run in owing)
        clauses = eager_clauses(tx, stream.id, after=earliest)
        seq = current_seq(tx)
    seqs = [clause.seq for clause in clauses]
    attempt = new_attempt()
    compiled: dict[int, str] = {}
    debts, size = [], 0
    for run in owing:
        absorbed = choose_absorbed(run, len(seqs) - bisect_right(seqs, run.matched_seq))
        since = absorbed[-1].since if absorbed else run.matched_seq
        owed = clauses[bisect_right(seqs, since) :]
        if since not in compiled:
            compiled[since] = f"queries/{attempt}-{stream.id}-{len(compiled)}.owed"
            write_query_run(catalog.root / compiled[since], compile_eager(stream.schema, owed))
        size += run.rows * len(owed)
        debts.append(
            Debt(str(catalog.root), stream.schema, run, compiled[since], len(owed), since, absorbed, seq, attempt)
        )
    return debts, size


def choose_absorbed(run: Run, owed: int) -> tuple[CellFile, ...]:
    """The newest files of a run that a payment of `owed` clauses absorbs: those that are not larger."""
    size, count = owed, 0
    while count < len(run.cells) and run.cells[count].clauses <= size:
        size += run.cells[count].clauses
        count += 1
    return run.cells[:count]


def pay(debt: Debt) -> Payment:
    """Write the owed cells of one run."""
    root = Path(debt.root)
    queries = QueryRun.load(root / debt.queries)
    failures: dict[int, str] = {}
    name = f"streams/{debt.run.stream_id}/{debt.attempt}-{debt.run.id}.cells"
    blocks = open_run(root / debt.run.path, debt.schema).blocks
    crash_point("debt.before_write")
    with match_lock, durable_file(root / name) as file:
        checksum = write_cells(file, Path(name).name, blocks, matcher([queries], failures))
        size = file.tell()
    crash_point("debt.after_write")
    return Payment(debt, NewCells(name, size, checksum, debt.since, debt.seq, debt.clauses, debt.absorbed, failures))


def pay_debts(catalog: Catalog, stream: Stream, pay_large: Payer, large: int) -> int:
    """Pay the debts of a stream's runs, from size `large` on with `pay_large`; return the number of runs paid."""
    debts, size = find_debts(catalog, stream)
    if not debts:
        return 0
    try:
        payments = [pay(debt) for debt in debts] if size < large else pay_large(debts)
    except FileNotFoundError:
        return 0  # a run was merged in the meantime, and its debts with it
    except DamagedFile as damage:
        note_lost(catalog, damage)
        return 0
    check_files_visible(catalog.root, [payment.cells for payment in payments])
    with catalog.write() as tx:
        check_attempt(tx, debts[0].attempt)
        take_seq(tx)
        for payment in payments:
            publish_cells(tx, payment.debt.run, payment.cells)
        crash_point("debt.before_commit")
    crash_point("debt.after_commit")
    _remove(catalog.root, {debt.queries for debt in debts})
    return len(payments)


def _remove(root: Path, paths: Sequence[str] | set[str]) -> None:
    for path in paths:
        (root / path).unlink(missing_ok=True)
