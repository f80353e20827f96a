"""Clauses in the catalog: the distinct WHERE conditions of standing queries, counted by references.

A clause is *eager* while it has a number: a query requires it, or the engine chose it. It gets a new number each time
it becomes eager. So numbers ascend with the commits, and cells of an earlier eager period, which may lack some runs,
are never mistaken for those of a later one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, bindparam, func, select, update

from tureen.pot.bulk_statements import BulkStatement
from tureen.pot.catalog_tables import clauses, query_runs
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction
from tureen.predicate import Clause, load_clause


@dataclass(frozen=True, slots=True)
class EagerClause:
    """An eager clause: its number, the commit by which it became eager, and its factors."""

    number: int
    seq: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class ClauseReference:
    """A query's reference to a clause; `eager` is None if the engine decides."""

    stream_id: int
    text: str
    eager: bool | None


def hold_clauses(tx: Transaction, seq: int, references: Sequence[ClauseReference]) -> None:
    """Add references, and the clauses that do not exist yet."""
    first = _take_numbers(tx, sum(reference.eager is True for reference in references))
    counts: dict[tuple[int, str], list[int]] = {}
    for reference in references:
        count = counts.setdefault((reference.stream_id, reference.text), [0, 0, 0])
        _add(count, reference.eager)
    numbers = itertools.count(first)
    _HOLD.run(
        tx,
        [
            (stream_id, text, *count, next(numbers) if count[1] else None, seq)
            for (stream_id, text), count in counts.items()
        ],
    )


def release_clauses(tx: Transaction, holds: Sequence[tuple[int, bool | None]]) -> None:
    """Remove references, each a clause id and the query's `eager`; a clause is deleted with its last reference."""
    counts: dict[int, list[int]] = {}
    for clause_id, eager in holds:
        _add(counts.setdefault(clause_id, [0, 0, 0]), eager)
    _RELEASE.run(tx, [(clause_id, *count) for clause_id, count in counts.items()])
    _stop_unneeded(tx, counts)


def _stop_unneeded(tx: Transaction, clause_ids: Collection[int]) -> None:
    """Of these clauses, delete those that no query has, and make those lazy that need not be eager any more."""
    stopped = _STOPPED.read(tx, [(clause_id,) for clause_id in clause_ids])
    _DELETE.run(tx, [(clause_id,) for clause_id, _, _, refs in stopped if refs == 0])
    _BECOME_LAZY.run(tx, [(clause_id,) for clause_id, _, _, refs in stopped if refs])
    _COUNT_DEAD.run(tx, [(stream_id, number) for _, stream_id, number, _ in stopped if number is not None])


def _add(count: list[int], eager: bool | None) -> None:
    """Count a reference: among all, among those that require eager, among those that leave it to the engine."""
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
_RELEASE = BulkStatement(
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
    WITH choice (id, number, seq) AS (VALUES {rows})
    UPDATE clauses SET
        chosen = TRUE,
        number = ifnull(clauses.number, choice.number),
        seq = iif(clauses.number IS NULL, choice.seq, clauses.seq)
    FROM choice WHERE clauses.id = choice.id AND auto_refs > 0 AND NOT raised
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
_UNCHOOSE = BulkStatement("UPDATE clauses SET chosen = FALSE WHERE id IN (VALUES {rows})", width=1)
_STOPPED = BulkStatement(
    """
    SELECT json_group_array(json_array(id, stream_id, number, refs)) FROM clauses WHERE id IN (VALUES {rows})
    AND (refs = 0 OR number IS NOT NULL AND eager_refs = 0 AND NOT (chosen AND auto_refs > 0))
    """,
    width=1,
)
_DELETE = BulkStatement("DELETE FROM clauses WHERE id IN (VALUES {rows})", width=1)
_BECOME_LAZY = BulkStatement("UPDATE clauses SET number = NULL, chosen = FALSE WHERE id IN (VALUES {rows})", width=1)
# A query run counts its numbers that are no longer eager.
_COUNT_DEAD = BulkStatement(
    """
    WITH gone (stream_id, number) AS (VALUES {rows}), held AS (
        SELECT id, count(*) AS numbers FROM gone JOIN query_runs USING (stream_id)
        WHERE number BETWEEN first AND last GROUP BY id
    )
    UPDATE query_runs SET dead = dead + held.numbers FROM held WHERE query_runs.id = held.id
    """,
    width=2,
)


def choose_clauses(tx: Transaction, seq: int, eager: Collection[int], lazy: Collection[int]) -> None:
    """Make clauses eager or lazy as the engine chose; those that it may no longer decide on are left as they are."""
    first = _take_numbers(tx, len(eager))
    _CHOOSE.run(tx, [(clause_id, number, seq) for number, clause_id in enumerate(eager, first)])
    _UNCHOOSE.run(tx, [(clause_id,) for clause_id in lazy])
    _stop_unneeded(tx, lazy)


def fail_clauses(tx: Transaction, failures: Mapping[int, str]) -> None:
    """Stop the clauses that raised, given the errors by clause number.

    If a query requires the clause to be eager, the error is stored: such queries have failed. If the engine chose it,
    the choice must not change an answer: the clause becomes lazy permanently, and raises only if the window contains
    the tuple.
    """
    for number, error in failures.items():
        row = tx.execute(select(clauses).where(clauses.c.number == number)).first()
        if row is None:
            continue
        stopped = {"number": None, "chosen": False, "raised": True, "error": error if row.eager_refs else None}
        tx.execute(update(clauses).where(clauses.c.id == row.id).values(stopped))
        # It would raise again with every batch, so its query run is marked dead and recompiled immediately.
        tx.execute(update(query_runs).where(_covers(row.stream_id, number)).values(dead=query_runs.c.clauses))


_EAGER = Prepared(
    select(clauses.c.number, clauses.c.seq, clauses.c.text)
    .where(
        clauses.c.stream_id == bindparam("stream"), clauses.c.number.is_not(None), clauses.c.seq > bindparam("after")
    )
    .order_by(clauses.c.number)
)


def eager_clauses(tx: Transaction, stream_id: int, *, after: int = -1) -> list[EagerClause]:
    """A stream's eager clauses that became eager after a commit, ordered by number."""
    rows = tx.execute(_EAGER, {"stream": stream_id, "after": after})
    return [EagerClause(row.number, row.seq, load_clause(row.text)) for row in rows]


def eager_numbers(tx: Transaction, stream_id: int, first: int) -> list[int]:
    """The numbers of a stream's eager clauses, from `first` on."""
    eager = (clauses.c.stream_id == stream_id, clauses.c.number >= first)
    return list(tx.execute(select(clauses.c.number).where(*eager)).scalars())


_LAST_EAGER = Prepared(
    select(func.max(clauses.c.seq)).where(clauses.c.stream_id == bindparam("stream"), clauses.c.number.is_not(None))
)


def last_eager_seq(tx: Transaction, stream_id: int) -> int:
    """The commit by which the stream's newest eager clause became eager; 0 if there is none."""
    return int(tx.execute(_LAST_EAGER, {"stream": stream_id}).scalar() or 0)


def chosen_clauses(tx: Transaction, stream_id: int) -> set[int]:
    """The clauses that are eager by the engine's choice."""
    chosen = (clauses.c.stream_id == stream_id, clauses.c.chosen, clauses.c.number.is_not(None))
    return set(tx.execute(select(clauses.c.id).where(*chosen)).scalars())


def choosable_clauses(tx: Transaction, clause_ids: Collection[int]) -> set[int]:
    """Those of these clauses whose queries leave the decision to the engine, and that never raised."""
    return set(_CHOOSABLE.read(tx, [(clause_id,) for clause_id in clause_ids]))


def _covers(stream_id: int, number: int) -> ColumnElement[bool]:
    """The condition for the query run that covers a number."""
    return and_(query_runs.c.stream_id == stream_id, query_runs.c.first <= number, query_runs.c.last >= number)


def _take_numbers(tx: Transaction, count: int) -> int:
    """Reserve consecutive numbers and return the first; those that are not needed are never used."""
    return int(_TAKE.read(tx, [(count,)])[0]) - count if count else 0
