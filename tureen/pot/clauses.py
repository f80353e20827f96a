"""Clauses in the catalog: the WHERE conditions of standing queries, each once, counted by references.

A clause is *eager* while it has a number: some query wants its results ready, or the engine chose to keep them. It
takes a new number each time that it becomes so, so numbers ascend with the commits, and the cells of an earlier time,
which may lack some runs, are never taken for those of a later one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from tureen.pot.bulk_statements import BulkStatement
from tureen.pot.catalog_tables import clauses, query_runs
from tureen.predicate import Clause, load_clause


@dataclass(frozen=True, slots=True)
class Eager:
    """An eager clause: its number, the commit by which it became eager, and what it says."""

    number: int
    seq: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class Reference:
    """A query's hold on a clause; `eager` is None where the engine may choose."""

    stream_id: int
    text: str
    eager: bool | None


def hold_clauses(tx: Connection, seq: int, wanted: Sequence[Reference]) -> None:
    """Count one more reference for each, and make the clauses that are not there."""
    first = _take_numbers(tx, sum(one.eager is True for one in wanted))
    counts: dict[tuple[int, str], list[int]] = {}
    for one in wanted:
        count = counts.setdefault((one.stream_id, one.text), [0, 0, 0])
        _add(count, one.eager)
    numbers = itertools.count(first)
    _HOLD.run(
        tx,
        [
            (stream_id, text, *count, next(numbers) if count[1] else None, seq)
            for (stream_id, text), count in counts.items()
        ],
    )


def release_clauses(tx: Connection, gone: Sequence[tuple[int, bool | None]]) -> None:
    """Take one reference away for each clause id, of a query that had it eager or not; with its last, a clause goes."""
    counts: dict[int, list[int]] = {}
    for clause_id, eager in gone:
        _add(counts.setdefault(clause_id, [0, 0, 0]), eager)
    _LET_GO.run(tx, [(clause_id, *count) for clause_id, count in counts.items()])
    _stop(tx, counts)


def _stop(tx: Connection, some: Collection[int]) -> None:
    """Of some clauses, end those that no query has, and make those lazy that are eager for nobody's sake."""
    stopped = _STOPPED.read(tx, [(clause_id,) for clause_id in some])
    _END.run(tx, [(clause_id,) for clause_id, _, _, refs in stopped if refs == 0])
    _BECOME_LAZY.run(tx, [(clause_id,) for clause_id, _, _, refs in stopped if refs])
    _DEAD.run(tx, [(stream_id, number) for _, stream_id, number, _ in stopped if number is not None])


def _add(count: list[int], eager: bool | None) -> None:
    """One more reference: of all, of those that want results ready, of those that leave it to the engine."""
    count[0] += 1
    count[1] += eager is True
    count[2] += eager is None


_HOLD = BulkStatement(
    """
    INSERT INTO clauses (stream_id, text, refs, eager_refs, auto_refs, number, seq, chosen, raised)
    SELECT *, FALSE, FALSE FROM (VALUES {rows}) WHERE TRUE
    ON CONFLICT (stream_id, text) DO UPDATE SET
        refs = refs + excluded.refs,
        eager_refs = eager_refs + excluded.eager_refs,
        auto_refs = auto_refs + excluded.auto_refs,
        number = iif(number IS NULL AND error IS NULL, excluded.number, number),
        seq = iif(number IS NULL AND error IS NULL AND excluded.number IS NOT NULL, excluded.seq, seq)
    """,
    width=7,
)
_TAKE = BulkStatement(
    "UPDATE counter SET next_number = next_number + (VALUES {rows}) RETURNING json_array(next_number)", width=1
)
_LET_GO = BulkStatement(
    """
    WITH less (id, refs, eager_refs, auto_refs) AS (VALUES {rows})
    UPDATE clauses SET
        refs = clauses.refs - less.refs,
        eager_refs = clauses.eager_refs - less.eager_refs,
        auto_refs = clauses.auto_refs - less.auto_refs
    FROM less WHERE clauses.id = less.id
    """,
    width=4,
)
_CHOOSE = BulkStatement(
    """
    WITH wanted (id, number, seq) AS (VALUES {rows})
    UPDATE clauses SET
        chosen = TRUE,
        number = ifnull(clauses.number, wanted.number),
        seq = iif(clauses.number IS NULL, wanted.seq, clauses.seq)
    FROM wanted WHERE clauses.id = wanted.id AND auto_refs > 0 AND NOT raised
    """,
    width=3,
)
_CHOOSABLE = BulkStatement(
    """
    SELECT json_group_array(id) FROM clauses WHERE id IN (VALUES {rows})
    AND auto_refs > 0 AND eager_refs = 0 AND NOT raised
    """,
    width=1,
)
_LEAVE = BulkStatement("UPDATE clauses SET chosen = FALSE WHERE id IN (VALUES {rows})", width=1)
_STOPPED = BulkStatement(
    """
    SELECT json_group_array(json_array(id, stream_id, number, refs)) FROM clauses WHERE id IN (VALUES {rows})
    AND (refs = 0 OR number IS NOT NULL AND eager_refs = 0 AND NOT (chosen AND auto_refs > 0))
    """,
    width=1,
)
_END = BulkStatement("DELETE FROM clauses WHERE id IN (VALUES {rows})", width=1)
_BECOME_LAZY = BulkStatement("UPDATE clauses SET number = NULL, chosen = FALSE WHERE id IN (VALUES {rows})", width=1)
# The query run that has a number knows how many of its numbers are in vain.
_DEAD = BulkStatement(
    """
    WITH gone (stream_id, number) AS (VALUES {rows}), held AS (
        SELECT id, count(*) AS numbers FROM gone JOIN query_runs USING (stream_id)
        WHERE number BETWEEN first AND last GROUP BY id
    )
    UPDATE query_runs SET dead = dead + held.numbers FROM held WHERE query_runs.id = held.id
    """,
    width=2,
)


def choose_clauses(tx: Connection, seq: int, eager: Collection[int], lazy: Collection[int]) -> None:
    """Do what the engine chose for clauses whose queries leave it the choice; those that changed meanwhile stay."""
    first = _take_numbers(tx, len(eager))
    _CHOOSE.run(tx, [(clause_id, number, seq) for number, clause_id in enumerate(eager, first)])
    _LEAVE.run(tx, [(clause_id,) for clause_id in lazy])
    _stop(tx, lazy)


def fail_clauses(tx: Connection, failures: Mapping[int, str]) -> None:
    """Stop the clauses of these numbers, which raised.

    Where some query asked for results at arrival, the error is kept: such queries have failed. Where the engine chose,
    its choice must not change an answer: the clause is lazy again, for good, and raises only if the window holds the
    tuple.
    """
    for number, error in failures.items():
        row = tx.execute(select(clauses).where(clauses.c.number == number)).first()
        if row is None:
            continue
        stopped = {"number": None, "chosen": False, "raised": True, "error": error if row.eager_refs else None}
        tx.execute(update(clauses).where(clauses.c.id == row.id).values(stopped))
        # It would raise again with every batch, so what holds it is compiled anew at once.
        tx.execute(update(query_runs).where(_holds(row.stream_id, number)).values(dead=query_runs.c.clauses))


def eager_clauses(tx: Connection, stream_id: int, *, after: int = -1) -> list[Eager]:
    """A stream's eager clauses by number, or those that became eager after a commit."""
    eager = (clauses.c.stream_id == stream_id, clauses.c.number.is_not(None), clauses.c.seq > after)
    found = tx.execute(select(clauses.c.number, clauses.c.seq, clauses.c.text).where(*eager).order_by(clauses.c.number))
    return [Eager(row.number, row.seq, load_clause(row.text)) for row in found]


def eager_numbers(tx: Connection, stream_id: int, first: int) -> list[int]:
    """The numbers of a stream's eager clauses from one on."""
    eager = (clauses.c.stream_id == stream_id, clauses.c.number >= first)
    return list(tx.execute(select(clauses.c.number).where(*eager)).scalars())


def last_eager_seq(tx: Connection, stream_id: int) -> int:
    """The commit by which the stream's newest eager clause became one; 0 where there is none."""
    eager = (clauses.c.stream_id == stream_id, clauses.c.number.is_not(None))
    return int(tx.execute(select(func.max(clauses.c.seq)).where(*eager)).scalar() or 0)


def chosen_clauses(tx: Connection, stream_id: int) -> set[int]:
    """The clauses whose results the engine chose to keep ready."""
    kept = (clauses.c.stream_id == stream_id, clauses.c.chosen, clauses.c.number.is_not(None))
    return set(tx.execute(select(clauses.c.id).where(*kept)).scalars())


def choosable(tx: Connection, wanted: Collection[int]) -> set[int]:
    """Those of some clauses whose queries leave the choice to the engine, and that never raised."""
    return set(_CHOOSABLE.read(tx, [(clause_id,) for clause_id in wanted]))


def _holds(stream_id: int, number: int) -> ColumnElement[bool]:
    """The query run that has a number."""
    return and_(query_runs.c.stream_id == stream_id, query_runs.c.first <= number, query_runs.c.last >= number)


def _take_numbers(tx: Connection, how_many: int) -> int:
    """The first of so many numbers that are now taken; those that turn out not to be needed are never used."""
    return int(_TAKE.read(tx, [(how_many,)])[0]) - how_many if how_many else 0
