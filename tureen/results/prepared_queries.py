"""Prepared queries: a handle or a text → the bound query, and the snapshot that it is answered from."""

from __future__ import annotations

from collections.abc import Callable

from tureen.bounded_cache import BoundedCache
from tureen.errors import UnknownStream
from tureen.language.fast.quick import QuickBinder
from tureen.language.languages import bind_text
from tureen.pot.functions import StoredFunctions
from tureen.pot.links import replica_flow
from tureen.pot.registered import LOCAL, Registered, RegisteredInput
from tureen.pot.relations import Relations
from tureen.pot.streams import Stream
from tureen.query import Query
from tureen.results.joins.join_ready import ReadyJoin, SchemaOf, prepare
from tureen.results.rows.ready import BoundTemplate, Ready
from tureen.results.snapshot.standing_check import relation_of
from tureen.results.snapshot.stream_state import Snapshot
from tureen.results.snapshot.view import View
from tureen.sharing.partial_rows import has_partial_rows, over_partial_rows
from tureen.sharing.selection_text import parse_selection

BOUND_TEMPLATES = 256
"""The number of templates that a process caches as `BoundTemplate`."""

BOUND_QUERIES = 4096
"""The number of prepared queries that a process caches."""


class PreparedQueries:
    """The queries of one pot that a process has bound."""

    def __init__(self, view: View) -> None:
        """Look up queries, streams and tables in a view."""
        self._view = view
        self._ready: BoundedCache[str, Ready | ReadyJoin] = BoundedCache(BOUND_QUERIES)
        self._binder = QuickBinder()
        self._members: BoundedCache[str, BoundTemplate] = BoundedCache(BOUND_TEMPLATES)
        self.find_remote: Callable[[str], Stream | None] | None = None
        """Makes a stream known that a peer shares; set by what receives streams of other servers."""
        self.borrow_replica: Callable[[Stream, Query, int], int] | None = None
        """Finds a replica for an input of an unregistered query over a remote stream; set by what receives them."""

    def look_up(self, handle: str) -> tuple[Registered, Snapshot]:
        """A standing query, and a snapshot of what it reads."""
        registered = self._view.query(handle)
        join_ids = () if registered.join_id is None else (registered.join_id,)
        snapshot = self._view.snapshot(registered.stream_ids, registered.table_ids, join_ids)
        return self._view.query(handle, at_least=snapshot.seq), snapshot

    def find(self, registered: Registered, snapshot: Snapshot) -> Ready | ReadyJoin:
        """A standing query, bound and prepared once."""
        return self._ready.get(registered.id, lambda: self._prepare(registered, snapshot))

    def _prepare(self, registered: Registered, snapshot: Snapshot) -> Ready | ReadyJoin:
        relations = Relations(lambda name: relation_of(snapshot, name), StoredFunctions(self._view.catalog.read))
        values = registered.values
        if values is None or len(registered.inputs) > 1 or not registered.stream_ids:
            query, _ = self._binder.bind(registered.sql, relations.describe, relations.function, registered.language)
            return self._prepared(query, relations.schema, registered, snapshot)
        schema = snapshot.streams[registered.stream_ids[0]].stream.visible
        template = self._members.get(values.template, lambda: BoundTemplate(values, schema, relations.function))
        return template.ready(registered.sql, values)

    def unregistered(self, sql: str, language: str) -> tuple[Registered, Snapshot, Ready | ReadyJoin]:
        """An unregistered query, as if it were registered and lazy."""
        unknown: list[str] = []
        try:
            relations, query = self._bound_once(sql, language, unknown)
        except UnknownStream:
            if self.find_remote is None or not unknown or self.find_remote(unknown[0]) is None:
                raise
            return self.unregistered(sql, language)
        inputs = tuple(self._unregistered_input(relations, query, number) for number in range(len(query.leaves)))
        registered = Registered("", None, sql, "", inputs, seq=0, registered_at=0, owner=LOCAL, language=language)
        snapshot = self._view.snapshot(registered.stream_ids, registered.table_ids)
        return registered, snapshot, self._prepared(query, relations.schema, registered, snapshot)

    def _bound_once(self, sql: str, language: str, unknown: list[str]) -> tuple[Relations, Query]:
        """An unregistered query; names of relations that do not exist are added to `unknown`."""
        with self._view.catalog.read() as tx:
            relations = Relations.of(tx, unknown.append)
            return relations, bind_text(sql, language, relations.describe, relations.function)

    def _unregistered_input(self, relations: Relations, query: Query, number: int) -> RegisteredInput:
        """An input of an unregistered query; over a replica, if its stream lives at another server."""
        leaf = query.leaves[number]
        stream = relations.find(leaf.relation)
        if self.borrow_replica is None or not isinstance(stream, Stream) or stream.home is None:
            return relations.unregistered_input(leaf)
        return RegisteredInput(leaf.kind, self.borrow_replica(stream, query, number))

    def _prepared(
        self, query: Query, schema_of: SchemaOf, registered: Registered, snapshot: Snapshot
    ) -> Ready | ReadyJoin:
        if query.joins:
            return prepare(query, schema_of, [entry.stream_id for entry in registered.inputs])
        stream = snapshot.streams[registered.stream_ids[0]].stream
        if not has_partial_rows(stream.schema):
            return Ready.of(query, schema_of(query.stream.relation))
        with self._view.catalog.read() as tx:
            flow = replica_flow(tx, stream.id)
        if flow is None:
            raise UnknownStream(f"stream '{stream.name}' is not received any more")
        aggregation = parse_selection(flow, stream.name, stream.visible).aggregation
        assert aggregation is not None
        return Ready.of(over_partial_rows(query, stream.visible, aggregation), stream.schema)
