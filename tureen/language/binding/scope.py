"""Scopes: what names mean in a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from tureen.errors import SqlError, UnknownColumn, nearest
from tureen.language.binding.now import now
from tureen.language.source import Source, offset_of
from tureen.language.tree import Expr, Ref
from tureen.query import Field, RelationKind, field_name
from tureen.schema import Column, Schema, name_key

Lookup = Callable[[str], tuple[str, Schema]]
"""A stream's name as it was created, and its schema, by the name in a query."""

PARAMETERS = ":"
"""The name of a template's relation of VALUES; no stream or table can have it."""


@dataclass(frozen=True)
class Relation:
    """An input of a query: the names that may precede a column's dot, and its columns."""

    names: tuple[str, ...]
    schema: Schema
    kind: RelationKind = RelationKind.STREAM
    relation: str = ""
    """Its name as it was created."""
    number: int = 0
    """Its number among the inputs."""

    def is_named(self, name: str) -> bool:
        """Whether a column may be qualified with that name."""
        return name_key(name) in {name_key(known) for known in self.names}

    def ref(self, column: Column, at: int) -> Ref:
        """A reference to one of its columns."""
        return Ref(Column(field_name(Field(self.number, column.name)), column.type), at)


@dataclass(frozen=True)
class Scope:
    """What names mean in one clause: columns of the relations of FROM, and other names.

    `known` are other names, in lower case: aliases of the select list, a step's start and end. `aggregate` binds an
    aggregate, and `over` a window function; where it is None, the clause cannot have any.
    """

    source: Source
    relations: tuple[Relation, ...]
    clause: str = "WHERE"
    known: Mapping[str, Expr] = field(default_factory=dict)
    aggregate: Callable[[exp.Expression], Expr] | None = None
    over: Callable[[exp.Window], Expr] | None = None
    ambiguous: frozenset[str] = frozenset()
    """Names, in lower case, of a column and of an item of the select list that differs from it."""

    @cached_property
    def visible(self) -> tuple[Relation, ...]:
        """The relations of FROM."""
        return tuple(relation for relation in self.relations if relation.kind is not RelationKind.VALUES)

    @cached_property
    def schema(self) -> Schema:
        """The columns that `*` means, under the names that expressions use."""
        first, *others = self.visible
        if not others:
            return first.schema
        columns = [relation.ref(column, 0).column for relation in self.visible for column in relation.schema.columns]
        return Schema(tuple(columns), first.schema.time)

    def column(self, node: exp.Column) -> Expr:
        """What a name means."""
        location = self.source.node(node)
        known = self.known.get(f"{node.table}.{node.name}".lstrip(".").lower())
        if known is not None:
            return known
        if not node.table and node.name.lower() in self.ambiguous:
            raise SqlError(
                f"'{node.name}' is a column and a name of the select list",
                hint=f"write {self.visible[0].names[0]}.{node.name}, or give the item another name",
                location=location,
            )
        if node.args.get("db") or node.args.get("catalog"):
            raise UnknownColumn(f"'{node.sql('spark')}' has too many parts", location=location)
        if isinstance(node.this, exp.Star):
            raise SqlError("* cannot stand here", hint="name a column", location=location)
        matches = [
            relation.ref(column, offset_of(node))
            for relation in self.relations_of(node)
            if (column := relation.schema.find(node.name)) is not None
        ]
        if len(matches) == 1:
            return matches[0]
        if not matches and node.name.lower() == "now" and not (node.table or node.this.quoted):
            return now(offset_of(node))
        raise self._ambiguous_column(node) if matches else self._unknown_column(node)

    def relations_of(self, node: exp.Column) -> tuple[Relation, ...]:
        """The relations that a column may belong to, by the name before its dot."""
        if not node.table:
            return self.visible
        named = tuple(relation for relation in self.relations if relation.is_named(node.table))
        if not named:
            names = [name for relation in self.visible for name in relation.names]
            raise UnknownColumn(
                f"'{node.table}' is not the stream of this query",
                hint=nearest(node.table, names) or f"write {names[0]}.{node.name}",
                location=self.source.node(node),
            )
        return named

    def _ambiguous_column(self, node: exp.Column) -> SqlError:
        qualified = [
            f"{relation.names[0]}.{node.name}"
            for relation in self.visible
            if relation.schema.find(node.name) is not None
        ]
        return SqlError(
            f"column '{node.name}' is ambiguous",
            hint=f"write {' or '.join(qualified)}",
            location=self.source.node(node),
        )

    def _unknown_column(self, node: exp.Column) -> UnknownColumn:
        names = [name for relation in self.relations_of(node) for name in relation.schema.names]
        return UnknownColumn(
            f"no column '{node.name}'",
            hint=nearest(node.name, names) or f"columns are {', '.join(names)}",
            location=self.source.node(node),
        )
