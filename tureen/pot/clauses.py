"""Clauses in the catalog: the WHERE conditions of standing queries, each once, counted by references.

A clause is *eager* while it has a number: some query wants its results ready, or the engine chose to keep them. It
takes a new number each time that it becomes so, so numbers ascend with the commits, and the cells of an earlier time,
which may lack some runs, are never taken for those of a later one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, func, insert, select, update

from tureen.pot.prepared import Prepared
from tureen.pot.tables import clauses, counter, query_runs
from tureen.predicate import Clause, dump_clause, load_clause


@dataclass(frozen=True, slots=True)
class Eager:
    """An eager clause: its number, the commit by which it became eager, and what it says."""

    number: int
    seq: int
    clause: Clause


def hold_clause(tx: Connection, seq: int, stream_id: int, clause: Clause, eager: bool | None) -> int:
    """The id of a clause, made now or shared, with one more reference; `eager` is None where the engine may choose."""
    text = dump_clause(clause)
    row = _FIND.run(tx, stream=stream_id, wanted=text).fetchone()
    if row is None:
        made = _ADD.run(
            tx,
            stream_id=stream_id,
            text=text,
            refs=1,
            eager_refs=int(eager is True),
            auto_refs=int(eager is None),
            chosen=False,
            raised=False,
            number=_next_number(tx) if eager else None,
            seq=seq,
        )
        return int(made.fetchone()[0])
    clause_id, number, error = row
    _COUNT.run(tx, clause=clause_id, one=1, eager=int(eager is True), auto=int(eager is None)).fetchone()
    if eager and number is None and error is None:
        _become_eager(tx, seq, clause_id)
    return int(clause_id)


def let_go_of_clause(tx: Connection, clause_id: int, eager: bool | None) -> None:
    """Take one reference away; the clause goes with its last."""
    less = _COUNT.run(tx, clause=clause_id, one=-1, eager=-int(eager is True), auto=-int(eager is None))
    stream_id, number, refs, eager_refs, auto_refs, chosen = less.fetchone()
    if refs == 0:
        _count_dead(tx, stream_id, number)
        _REMOVE.run(tx, clause=clause_id)
    elif eager_refs == 0 and not (chosen and auto_refs):
        _become_lazy(tx, stream_id, clause_id, number)


_FIND = Prepared(
    select(clauses.c.id, clauses.c.number, clauses.c.error).where(
        clauses.c.stream_id == bindparam("stream"), clauses.c.text == bindparam("wanted")
    )
)
_ADD = Prepared(
    insert(clauses).returning(clauses.c.id),
    *("stream_id", "text", "refs", "eager_refs", "auto_refs", "chosen", "raised", "number", "seq"),
)
_REMOVE = Prepared(delete(clauses).where(clauses.c.id == bindparam("clause")))
_COUNT = Prepared(
    update(clauses)
    .where(clauses.c.id == bindparam("clause"))
    .values(
        refs=clauses.c.refs + bindparam("one"),
        eager_refs=clauses.c.eager_refs + bindparam("eager"),
        auto_refs=clauses.c.auto_refs + bindparam("auto"),
    )
    .returning(
        *(clauses.c.stream_id, clauses.c.number),
        *(clauses.c.refs, clauses.c.eager_refs, clauses.c.auto_refs, clauses.c.chosen),
    )
)
_NEXT = Prepared(update(counter).values(next_number=counter.c.next_number + 1).returning(counter.c.next_number))
_DEAD = Prepared(
    update(query_runs)
    .where(
        query_runs.c.stream_id == bindparam("stream"),
        query_runs.c.first <= bindparam("number"),
        query_runs.c.last >= bindparam("number"),
    )
    .values(dead=query_runs.c.dead + 1)
)


def choose_clauses(tx: Connection, seq: int, eager: Collection[int], lazy: Collection[int]) -> None:
    """Do what the engine chose for clauses whose queries leave it the choice; those that changed meanwhile stay."""
    for clause_id in eager:
        wanted = (clauses.c.id == clause_id, clauses.c.auto_refs > 0, ~clauses.c.raised)
        row = tx.execute(update(clauses).where(*wanted).values(chosen=True).returning(clauses)).first()
        if row is not None and row.number is None:
            _become_eager(tx, seq, row.id)
    for clause_id in lazy:
        row = tx.execute(
            update(clauses).where(clauses.c.id == clause_id).values(chosen=False).returning(clauses)
        ).first()
        if row is not None and row.eager_refs == 0:
            _become_lazy(tx, row.stream_id, row.id, row.number)


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
    found: set[int] = set()
    ids = sorted(wanted)
    for start in range(0, len(ids), _AT_A_TIME):
        some = clauses.c.id.in_(ids[start : start + _AT_A_TIME])
        free = (clauses.c.auto_refs > 0, clauses.c.eager_refs == 0, ~clauses.c.raised)
        found.update(tx.execute(select(clauses.c.id).where(some, *free)).scalars())
    return found


_AT_A_TIME = 10_000
"""How many values a statement may have, and some room."""


def _become_eager(tx: Connection, seq: int, clause_id: int) -> None:
    values = {"number": _next_number(tx), "seq": seq}
    tx.execute(update(clauses).where(clauses.c.id == clause_id).values(values))


def _become_lazy(tx: Connection, stream_id: int, clause_id: int, number: int | None) -> None:
    if number is not None:
        tx.execute(update(clauses).where(clauses.c.id == clause_id).values(number=None, chosen=False))
        _count_dead(tx, stream_id, number)


def _count_dead(tx: Connection, stream_id: int, number: int | None) -> None:
    """Let the query run that has a number know that it is in vain."""
    if number is not None:
        _DEAD.run(tx, stream=stream_id, number=number)


def _holds(stream_id: int, number: int) -> ColumnElement[bool]:
    """The query run that has a number."""
    return and_(query_runs.c.stream_id == stream_id, query_runs.c.first <= number, query_runs.c.last >= number)


def _next_number(tx: Connection) -> int:
    return int(_NEXT.run(tx).fetchone()[0]) - 1
