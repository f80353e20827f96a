"""Streams in the catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, delete, insert, or_, select, update

from tureen.closed.rules import NO_RULES, LastRows, PatternRows, Rules
from tureen.errors import DuplicateName, UnknownStream, nearest
from tureen.pot.catalog import take_seq
from tureen.pot.catalog_tables import (
    cells,
    clauses,
    closed_files,
    dimensions,
    expiring,
    push_keys,
    query_inputs,
    query_runs,
    rejected,
    reserved_ids,
    runs,
    sinks,
    streams,
    taken_punctuations,
)
from tureen.pot.dropping import check_underived, discard, drop_queries
from tureen.pot.home_progress import home_time, latest
from tureen.pot.join_tables import key_files, needed_keys
from tureen.pot.peer_tables import held_flows, links, shares
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction
from tureen.retention import NEEDED, Retain
from tureen.schema import Column, Schema, name_key


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as the catalog has it at one moment."""

    id: int
    name: str
    schema: Schema
    clock: str
    retain: int | None
    source: dict[str, Any] | None
    next_id: int
    last_time: int | None
    taken: int
    query_id: str | None = None
    """The query whose changes are its tuples, if it is a derived stream."""
    rules: Rules = NO_RULES
    """Its unique key and its lateness."""
    punctuated: bool = False
    """Whether it has had punctuations."""
    punctuation_count: int = 0
    """The number of punctuations in records that are in runs."""
    item: str | None = None
    """The path of its items in XML documents; None for `tureen.item_path.DEFAULT_ITEM`."""
    home: str | None = None
    """The server where it lives, if that is another one. Its tuples are in replicas."""
    origin: str | None = None
    """Its identity in the network, if it is a stream of another server."""
    keeps_needed: bool = False
    """Whether tuples that nothing needs any more are freed."""
    freed_before: int | None = None
    """The time before which tuples were freed for that reason."""
    replica_of: int | None = None
    """The stream of another server of which it has tuples, if it is a replica, which users do not see."""

    @property
    def visible(self) -> Schema:
        """The columns that queries see: those of a replica without the ids at its home, and partial aggregates."""
        return self.schema if self.replica_of is None else self.schema.without_hidden

    @property
    def checked_rules(self) -> Rules:
        """The rules by which its gate decides; those of a stream of another server were decided by at its home."""
        return self.rules if self.home is None and self.replica_of is None else NO_RULES

    def horizon(self, now: int) -> int | None:
        """The time before which tuples are no longer retained, or None if all are.

        It follows the highest time seen, so that a replay of old data does not expire on arrival, but never the future.
        """
        if self.retain is None or self.last_time is None:
            return self.freed_before
        return min(now, self.last_time) - self.retain


_LIVE = streams.c.name_key.is_not(None)
_ALL = Prepared(select(streams).where(_LIVE).order_by(streams.c.id))
_TAKEN = Prepared(select(streams.c.id, streams.c.taken).where(_LIVE).order_by(streams.c.id))
_BY_NAME = Prepared(select(streams).where(streams.c.name_key == bindparam("name"), streams.c.replica_of.is_(None)))
_BY_ID = Prepared(select(streams).where(streams.c.id == bindparam("stream"), _LIVE))
_NAMED = Prepared(select(streams.c.id).where(streams.c.name_key == bindparam("name")))
_TABLE_NAMED = Prepared(select(dimensions.c.name).where(dimensions.c.name_key == bindparam("name")))
_ADD = Prepared(insert(streams).returning(streams))


def create_stream(
    tx: Transaction,
    name: str,
    schema: Schema,
    *,
    clock: str,
    retain: Retain,
    source: dict[str, Any] | None,
    query_id: str | None = None,
    rules: Rules = NO_RULES,
    item: str | None = None,
    home: str | None = None,
    origin: str | None = None,
) -> Stream:
    """Add a stream."""
    take_seq(tx)
    check_new_name(tx, name)
    values = {
        "name": name,
        "name_key": name_key(name),
        "home": home,
        "origin": origin,
        "columns": schema.sql,
        "time": schema.time,
        "clock": clock,
        "retain": None if retain == NEEDED else retain,
        "keeps_needed": retain == NEEDED,
        "source": None if source is None else json.dumps(source),
        "next_id": 0,
        "taken": 0,
        "query_id": query_id,
        "unique_key": _unique_text(rules),
        "lateness": rules.lateness,
        "punctuate": _punctuate_text(rules),
        "item": item,
    }
    return _stream(tx.execute(_ADD, values).one())


def check_new_name(tx: Transaction, name: str) -> None:
    """Raise if a stream or table has that name."""
    if _table_named(tx, name) is not None:
        raise DuplicateName(
            f"there is a table named '{name}' already", hint="streams and tables share one namespace: use another name"
        )
    if tx.execute(_NAMED, {"name": name_key(name)}).first() is not None:
        raise DuplicateName(
            f"there is a stream named '{name}' already",
            hint="use another name, drop it first, or keep it with IF NOT EXISTS (if_not_exists=True)",
        )


def drop_stream(tx: Transaction, stream: Stream) -> None:
    """Remove a stream, its runs, and the queries and templates over it; raises if streams are derived from it."""
    take_seq(tx)
    check_underived(tx, f"stream '{stream.name}'", query_inputs.c.stream_id == stream.id)
    for replica in list_streams(tx) if stream.home is not None else ():
        if replica.replica_of == stream.id:
            drop_stream(tx, replica)
    if stream.query_id is not None:
        drop_queries(tx, query_inputs.c.query_id == stream.query_id)
    drop_queries(tx, query_inputs.c.stream_id == stream.id, query_inputs.c.stream_id != stream.id)
    run_ids = select(runs.c.id).where(runs.c.stream_id == stream.id)
    for table in (cells, key_files):
        discard(tx, select(table.c.path).where(table.c.run_id.in_(run_ids)))
        tx.execute(delete(table).where(table.c.run_id.in_(run_ids)))
    for table in (runs, query_runs, closed_files):
        discard(tx, select(table.c.path).where(table.c.stream_id == stream.id))
    for table in (runs, reserved_ids, expiring, query_runs, clauses, sinks, push_keys, rejected):
        tx.execute(delete(table).where(table.c.stream_id == stream.id))
    for table in (closed_files, taken_punctuations, needed_keys, shares, links, held_flows):
        tx.execute(delete(table).where(table.c.stream_id == stream.id))
    tx.execute(update(streams).where(streams.c.id == stream.id).values(name_key=None))


def advance_derived(tx: Transaction, stream_id: int, end: str) -> None:
    """Store that the changes of a derived stream's query are in its inbox or its runs up to a position."""
    earlier = or_(streams.c.derived_to.is_(None), streams.c.derived_to < end)
    tx.execute(update(streams).where(streams.c.id == stream_id, earlier).values(derived_to=end))


def create_replica(tx: Transaction, stream: Stream, hidden: Sequence[Column] = ()) -> Stream:
    """Add a replica of a stream of another server, perhaps with columns of its own that users do not see.

    It has the stream's name, by which nobody finds it.
    """
    seq = take_seq(tx)
    values = {
        "name": stream.name,
        # Names are printable.
        "name_key": f"{name_key(stream.name)}\0{seq}",
        "columns": Schema((*stream.schema.columns, *hidden)).sql,
        "time": stream.schema.time,
        "clock": stream.clock,
        "retain": stream.retain,
        "next_id": 0,
        "taken": 0,
        "unique_key": _unique_text(stream.rules),
        "lateness": stream.rules.lateness,
        "item": stream.item,
        "replica_of": stream.id,
    }
    return _stream(tx.execute(_ADD, values).one())


def note_declared(tx: Transaction, stream: Stream, rules: Rules) -> None:
    """Store the unique key and the lateness that the home of a stream declares, also in its replicas."""
    is_part = or_(streams.c.id == stream.id, streams.c.replica_of == stream.id)
    take_seq(tx)
    tx.execute(update(streams).where(is_part).values(unique_key=_unique_text(rules), lateness=rules.lateness))


def note_freed(tx: Transaction, stream_id: int, before: int) -> None:
    """Store that tuples before a time were freed."""
    tx.execute(update(streams).where(streams.c.id == stream_id).values(freed_before=before))


def list_streams(tx: Transaction) -> list[Stream]:
    """All streams, in order of creation, with replicas."""
    return [_stream(row) for row in tx.execute(_ALL)]


def taken_offsets(tx: Transaction) -> dict[int, int]:
    """The ids of all streams, each with the offset up to which its inbox is in runs: far cheaper than the streams."""
    return {row.id: row.taken for row in tx.execute(_TAKEN)}


def visible_streams(tx: Transaction) -> list[Stream]:
    """The streams that users see, in order of creation."""
    return [stream for stream in list_streams(tx) if stream.replica_of is None]


def find_stream(tx: Transaction, name: str) -> Stream:
    """The stream of that name."""
    row = tx.execute(_BY_NAME, {"name": name_key(name)}).first()
    if row is None:
        table = _table_named(tx, name)
        if table is not None:
            raise UnknownStream(
                f"'{table}' is a table, not a stream",
                hint="only streams can be pushed to; replace a table's rows with replace_table",
            )
        names = tx.execute(select(streams.c.name).where(_LIVE)).scalars()
        raise UnknownStream(f"there is no stream named '{name}'", hint=nearest(name, names))
    return _stream(row)


def stream_by_id(tx: Transaction, stream_id: int) -> Stream | None:
    """The live stream of that id, or None."""
    row = tx.execute(_BY_ID, {"stream": stream_id}).first()
    return None if row is None else _stream(row)


def _table_named(tx: Transaction, name: str) -> str | None:
    """The name of the table of that name, as it was created, or None."""
    table: str | None = tx.execute(_TABLE_NAMED, {"name": name_key(name)}).scalar()
    return table


def _stream(row: Any) -> Stream:
    return Stream(
        id=row.id,
        name=row.name,
        schema=_schema(row.columns, row.time) if row.replica_of is None else _replica_schema(row.columns, row.time),
        clock=row.clock,
        retain=row.retain,
        source=None if row.source is None else json.loads(row.source),
        next_id=row.next_id,
        last_time=row.last_time if row.replica_of is None else latest(row.last_time, home_time(row.derived_to)),
        taken=row.taken,
        query_id=row.query_id,
        rules=_rules(row.unique_key, row.lateness, row.punctuate),
        punctuated=row.punctuated,
        punctuation_count=row.punctuation_count,
        item=row.item,
        home=row.home,
        origin=row.origin,
        replica_of=row.replica_of,
        keeps_needed=row.keeps_needed,
        freed_before=row.freed_before,
    )


@lru_cache(maxsize=1024)
def _rules(unique: str | None, lateness: int | None, punctuate: str | None) -> Rules:
    last_rows, pattern_rows = None, None
    match json.loads(punctuate or "null"):
        case [column, [*key]]:
            last_rows = LastRows(column, tuple(key))
        case [name, bool(is_header)]:
            pattern_rows = PatternRows(name, is_header)
    return Rules(tuple(json.loads(unique or "[]")), lateness, last_rows, pattern_rows)


def _unique_text(rules: Rules) -> str | None:
    return json.dumps(rules.unique) if rules.unique else None


def _punctuate_text(rules: Rules) -> str | None:
    rows = rules.last_rows or rules.pattern_rows
    return None if rows is None else json.dumps(rows)


@lru_cache(maxsize=1024)
def _schema(columns: str, time: str | None) -> Schema:
    """A parsed schema; it never changes, and parsing it takes longer than reading it from the catalog."""
    return Schema.parse(columns, time)


@lru_cache(maxsize=1024)
def _replica_schema(columns: str, time: str | None) -> Schema:
    return Schema.parse(columns, time, hidden=True).with_home_ids()
