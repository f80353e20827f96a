"""Relations by name: streams and tables share one namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tureen.errors import UnknownStream, UnknownTable, Unsupported, nearest
from tureen.functions.function_lookup import FunctionLookup, RecordedFunctions
from tureen.functions.user_function import UserFunction
from tureen.pot.functions import StoredFunctions
from tureen.pot.registered import NewInput, RegisteredInput
from tureen.pot.streams import Stream, find_stream, list_streams
from tureen.pot.tables import Dimension, find_dimension, list_dimensions
from tureen.pot.transaction import Transaction
from tureen.pot.window_needs import dump_need
from tureen.query import Input, NamedRelation, RelationKind
from tureen.schema import Schema, name_key

StoredRelation = Stream | Dimension


def find_relation(tx: Transaction, name: str) -> StoredRelation:
    """The stream or the table of that name."""
    try:
        return find_stream(tx, name)
    except UnknownStream:
        pass
    try:
        return find_dimension(tx, name)
    except UnknownTable:
        names = [stream.name for stream in list_streams(tx)] + [table.name for table in list_dimensions(tx)]
        raise UnknownStream(f"there is no stream or table named '{name}'", hint=nearest(name, names)) from None


class Relations:
    """Looks up the streams and tables of a query while it is bound, and remembers them."""

    def __init__(self, find: Callable[[str], StoredRelation], functions: FunctionLookup) -> None:
        """Look up relations with `find`, and user functions with `functions`."""
        self._find = find
        self._relations: dict[str, StoredRelation] = {}
        self.function = RecordedFunctions(functions)
        """The user functions, for binding; it remembers those that the query calls."""

    @classmethod
    def of(cls, tx: Transaction, on_unknown: Callable[[str], None] | None = None) -> Relations:
        """Look up everything in a transaction; `on_unknown` is called with names that it does not find."""

        def find(name: str) -> StoredRelation:
            try:
                return find_relation(tx, name)
            except UnknownStream:
                if on_unknown is not None:
                    on_unknown(name)
                raise

        return cls(find, StoredFunctions.of(tx))

    @property
    def called(self) -> Mapping[str, UserFunction]:
        """The user functions that the query calls, by their digests."""
        return self.function.called

    def describe(self, name: str) -> NamedRelation:
        """A relation for binding."""
        relation = self._find(name)
        known = self._relations.setdefault(name_key(relation.name), relation)
        if known.id != relation.id:
            raise UnknownStream(f"'{relation.name}' was recreated while the query was bound")
        if isinstance(relation, Stream):
            return NamedRelation(relation.name, relation.visible, item=relation.item)
        return NamedRelation(relation.name, relation.schema, RelationKind.TABLE)

    def schema(self, name: str) -> Schema:
        """The schema of a relation of the query."""
        relation = self._relations[name_key(name)]
        return relation.visible if isinstance(relation, Stream) else relation.schema

    def find(self, name: str) -> StoredRelation:
        """A relation of the query."""
        return self._relations[name_key(name)]

    def new_input(self, entry: Input) -> NewInput:
        """An input of a query that is being registered; raises for a stream of another server, which has no tuples."""
        relation = self._relations[name_key(entry.relation)]
        if isinstance(relation, Stream):
            if relation.home is not None:
                raise Unsupported(
                    f"stream '{relation.name}' lives at server '{relation.home}'",
                    hint="only a running server receives it: register the query there, with tureen.connect or --url",
                )
            needs = dump_need(entry.window) if relation.keeps_needed else None
            return NewInput(relation.id, entry.clause, needs=needs)
        return NewInput(table_id=relation.id)

    def unregistered_input(self, entry: Input) -> RegisteredInput:
        """An input as if its query were registered and lazy."""
        new = self.new_input(entry)
        return RegisteredInput(entry.kind, new.stream_id, new.table_id, needs=new.needs)
