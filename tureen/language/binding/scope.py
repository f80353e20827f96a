"""What names mean in a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from tureen.errors import SqlError, UnknownColumn, nearest
from tureen.language.binding.now import now
from tureen.language.source import Source, offset_of
from tureen.language.tree import Expr, Ref
from tureen.schema import Schema, name_key

Lookup = Callable[[str], tuple[str, Schema]]
"""A stream's name as it was created, and its schema, by the name in a query."""


@dataclass(frozen=True)
class Scope:
    """What names mean in one clause: the stream's columns, and the names that may stand before their dot.

    `known` are other names that mean something here, in lower case: aliases of the select list, a step's start
    and end. `aggregate` says what an aggregate means here, and `over` what a window function does; where it is
    None, there can be none.
    """

    source: Source
    schema: Schema
    names: tuple[str, ...]
    clause: str = "WHERE"
    known: Mapping[str, Expr] = field(default_factory=dict)
    aggregate: Callable[[exp.Expression], Expr] | None = None
    over: Callable[[exp.Window], Expr] | None = None
    ambiguous: frozenset[str] = frozenset()
    """Names, in lower case, that mean a column and another item of the select list as well."""

    def column(self, node: exp.Column) -> Expr:
        """What a name means."""
        place = self.source.node(node)
        found = self.known.get(f"{node.table}.{node.name}".lstrip(".").lower())
        if found is not None:
            return found
        if not node.table and node.name.lower() in self.ambiguous:
            raise SqlError(
                f"'{node.name}' is a column and a name of the select list",
                hint=f"write {self.names[0]}.{node.name}, or give the item another name",
                place=place,
            )
        if node.args.get("db") or node.args.get("catalog"):
            raise UnknownColumn(f"'{node.sql('spark')}' has too many parts", place=place)
        if isinstance(node.this, exp.Star):
            raise SqlError("* cannot stand here", hint="name a column", place=place)
        self.check_table(node)
        column = self.schema.find(node.name)
        if column is None and node.name.lower() == "now" and not (node.table or node.this.quoted):
            return now(offset_of(node))
        if column is None:
            raise UnknownColumn(
                f"no column '{node.name}'",
                hint=nearest(node.name, self.schema.names) or f"columns are {', '.join(self.schema.names)}",
                place=place,
            )
        return Ref(column, offset_of(node))

    def check_table(self, node: exp.Column) -> None:
        """Raise where what stands before the dot is not this query's stream."""
        if node.table and name_key(node.table) not in {name_key(name) for name in self.names}:
            raise UnknownColumn(
                f"'{node.table}' is not the stream of this query",
                hint=nearest(node.table, self.names) or f"write {self.names[0]}.{node.name}",
                place=self.source.node(node),
            )
