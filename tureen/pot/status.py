"""The status of a pot: the numbers of its rows, files, debts and queries; and descriptions of its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import func, select

from tureen.closed.rules import Rules
from tureen.position import Position
from tureen.pot.catalog import current_seq
from tureen.pot.catalog_tables import clauses, queries, query_inputs
from tureen.pot.clauses import last_eager_seq
from tureen.pot.damage import noted_damage
from tureen.pot.kept_joins import join_status
from tureen.pot.queries import count_queries
from tureen.pot.query_runs import live_query_runs
from tureen.pot.registered import Registered
from tureen.pot.runs import count_rejected, live_runs
from tureen.pot.streams import Stream, visible_streams
from tureen.pot.tables import Dimension, list_dimensions
from tureen.pot.templates import Template, count_members
from tureen.pot.transaction import Transaction
from tureen.pot.window_needs import describe_begin, window_needs
from tureen.window import from_micros


class InboxEnd(NamedTuple):
    """The end of a stream's inbox, and the number of rows in it after an offset."""

    offset: int
    rows_after: Callable[[int], int]


def pot_status(
    tx: Transaction,
    inbox_ends: Mapping[int, InboxEnd],
    pushes: int = 0,
    errors: Mapping[int, str] | None = None,
    held: Mapping[int, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    """Rows, runs, tails, debts and queries.

    `inbox_ends` are the ends of the inboxes, and `errors` those of external sources, by the id of their stream;
    `pushes` is the count of pushes. `held` has, by stream, the number of runs that only readers of changes need.
    """
    handles, distinct = count_queries(tx)
    source_errors, held_runs = errors or {}, held or {}
    return {
        "streams": {
            stream.name: {
                **_stream_status(tx, stream, inbox_ends.get(stream.id, InboxEnd(stream.taken, lambda _: 0))),
                "error": source_errors.get(stream.id),
                "needed": _need_status(tx, stream, held_runs.get(stream.id, {})),
            }
            for stream in visible_streams(tx)
        },
        "tables": {table.name: _table_status(table) for table in list_dimensions(tx)},
        "queries": handles + count_members(tx),
        "clauses": distinct,
        "kept_joins": join_status(tx),
        "damaged": [damage.path for damage in noted_damage(tx)],
        "position": str(Position(current_seq(tx), pushes=pushes)),
    }


def count_failed(tx: Transaction, owner: str | None = None) -> int:
    """The number of queries, of an owner or of all, that raised on some tuple and were stopped."""
    joined = query_inputs.join(clauses, clauses.c.id == query_inputs.c.clause_id)
    if owner is not None:
        joined = joined.join(queries, (queries.c.id == query_inputs.c.query_id) & (queries.c.owner == owner))
    failed = select(func.count(query_inputs.c.query_id.distinct())).select_from(joined)
    return int(tx.execute(failed.where(clauses.c.error.is_not(None))).scalar_one())


def count_owned(tx: Transaction, owner: str) -> int:
    """The number of an owner's queries, including those of templates."""
    singles = tx.execute(select(func.count()).where(queries.c.owner == owner)).scalar_one()
    return int(singles) + count_members(tx, owner)


def describe_stream(
    stream: Stream, error: str | None = None, query: str | None = None, closed: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The definition of a stream, the SQL that it is derived from, and the error of its source or its query.

    `closed` is what its punctuations, its unique key and its lateness close, in numbers.
    """
    return {
        "name": stream.name,
        "schema": stream.schema.sql,
        "time": stream.schema.time,
        "clock": stream.clock,
        "retain_seconds": None if stream.retain is None else stream.retain / 1_000_000,
        "retain_needed": stream.keeps_needed,
        "freed_before": None if stream.freed_before is None else from_micros(stream.freed_before).isoformat(),
        "item": stream.item,
        "source": stream.source,
        "home": stream.home,
        "query": query,
        "unique": list(stream.rules.unique) or None,
        "lateness_seconds": None if stream.rules.lateness is None else stream.rules.lateness / 1_000_000,
        "punctuate": _describe_punctuating(stream.rules),
        "closed": closed,
        "error": error,
    }


def _describe_punctuating(rules: Rules) -> dict[str, Any] | None:
    """How rows punctuate their stream."""
    if rules.last_rows is not None:
        return {"column": rules.last_rows.column, "key": list(rules.last_rows.key)}
    if rules.pattern_rows is not None:
        return {"header" if rules.pattern_rows.is_header else "column": rules.pattern_rows.name}
    return None


def describe_template(template: Template, standing: int) -> dict[str, Any]:
    """The current state of a template."""
    return {
        "id": template.id,
        "name": template.name,
        "sql": template.sql,
        "queries": standing,
        "label": template.label,
        "owner": template.owner,
        "shared": template.shared,
        "registered_at": from_micros(template.registered_at),
    }


def describe_query(query: Registered) -> dict[str, Any]:
    """The current state of a standing query."""
    return {
        "id": query.id,
        "name": query.name,
        "sql": query.sql,
        "language": query.language,
        "state": query.state,
        "owner": query.owner,
        "shared": query.shared,
        "registered_at": from_micros(query.registered_at),
    }


def _need_status(tx: Transaction, stream: Stream, held: Mapping[str, int]) -> list[dict[str, Any]] | None:
    """Why tuples of a stream that keeps what is needed are not freed."""
    if not stream.keeps_needed:
        return None
    windows = [
        {"by": describe_begin(need.begin), "queries": need.queries, "runs": None}
        for need in window_needs(tx, stream.id)
    ]
    return [*windows, *({"by": reader, "queries": None, "runs": runs} for reader, runs in held.items())]


def _table_status(table: Dimension) -> dict[str, Any]:
    return {"rows": table.content.rows, "bytes": table.content.bytes}


_FRESH = {
    (True, True): "after its push",
    (True, False): "after a push to its inputs",
    (False, True): "after a micro-batch",
}
"""When a tuple is in answers; by whether its stream has no source, and is not derived."""


def _stream_status(tx: Transaction, stream: Stream, inbox_end: InboxEnd) -> dict[str, Any]:
    runs = live_runs(tx, stream.id)
    tail = [run for run in runs if not run.indexed]
    newest = last_eager_seq(tx, stream.id)
    compiled = live_query_runs(tx, stream.id)
    pending = inbox_end.rows_after(stream.taken)
    return {
        "rows": sum(run.rows for run in runs) + pending,
        "pending_rows": pending,
        "fresh": _FRESH[stream.source is None, stream.query_id is None],
        "bytes": sum(run.bytes + sum(file.bytes for file in run.key_files) for run in runs),
        "runs": len(runs) - len(tail),
        "tail_runs": len(tail),
        "tail_rows": sum(run.rows for run in tail),
        "query_runs": len(compiled),
        "eager_clauses": sum(run.clauses - min(run.dead, run.clauses) for run in compiled),
        "cell_files": sum(len(run.cells) for run in runs),
        "key_files": sum(len(run.key_files) for run in runs),
        "debts": sum(1 for run in runs if run.indexed and run.matched_seq < newest),
        "rejected": count_rejected(tx, stream.id),
        "lag_bytes": max(0, inbox_end.offset - stream.taken),
    }
