"""Scopes: what names mean in a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from tureen.errors import SqlError, UnknownColumn, Unsupported, nearest
from tureen.join import Field, field_name
from tureen.language.binding.now import now
from tureen.language.source import Source, offset_of
from tureen.language.text.blocks import is_block_name
from tureen.language.tree import Expr, Ref
from tureen.query import NamedRelation, QueryBlock, RelationKind, block_column
from tureen.schema import Column, Schema, name_key
from tureen.window import WHOLE, Window

PARAMETERS = ":"
"""The name of a template's relation of VALUES; no stream or table can have it."""


class OuterColumn(Unsupported):
    """A query uses a column of the query around it, which it cannot."""


Lookup = Callable[[str], NamedRelation]
"""Looks up a stream or a table by its name in a query."""


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
    window: Window = WHOLE
    block: QueryBlock | None = None
    is_scalar: bool = False
    is_lateral: bool = False

    def is_named(self, name: str) -> bool:
        """Whether a column may be qualified with that name."""
        return name_key(name) in {name_key(known) for known in self.names}

    def ref(self, column: Column, at: int) -> Ref:
        """A reference to one of its columns."""
        name = column.name if self.block is None else block_column(self.schema.columns.index(column))
        return Ref(Column(field_name(Field(self.number, name)), column.type), at)

    @property
    def refs(self) -> list[Ref]:
        """References to all of its columns."""
        return [self.ref(column, 0) for column in self.schema.columns]


@dataclass(frozen=True)
class MergedColumn:
    """A column of USING: its value, and the inputs whose columns of that name it stands for."""

    expr: Expr
    inputs: frozenset[int]


@dataclass(frozen=True)
class Scope:
    """What names mean in one clause: columns of the relations of FROM, and other names.

    `known` are other names, in lower case: aliases of the select list, a step's start and end. `aggregate` binds an
    aggregate, `over` a window function, and `block` a query in parentheses that is used as a value; where it is None,
    the clause cannot have any.
    """

    source: Source
    relations: tuple[Relation, ...]
    clause: str = "WHERE"
    known: Mapping[str, Expr] = field(default_factory=dict)
    aggregate: Callable[[exp.Expression], Expr] | None = None
    over: Callable[[exp.Window], Expr] | None = None
    block: Callable[[exp.Column], Expr] | None = None
    subquery: Callable[[exp.Expression], Expr] | None = None
    """Binds EXISTS, or IN with a query, where it is used as a value; None where the clause cannot have it."""
    merged: Mapping[str, MergedColumn] = field(default_factory=dict)
    """The columns of USING, by name in lower case, those of the last join first: they belong to both of its sides."""
    outer: Scope | None = None
    """The scope of the query around this one, whose columns it may use too."""
    around: Scope | None = None
    """The scope of the query around this one, whose columns it cannot use."""
    ambiguous: frozenset[str] = frozenset()
    """Names, in lower case, of a column and of an item of the select list that differs from it."""

    @cached_property
    def visible(self) -> tuple[Relation, ...]:
        """The relations of FROM."""
        return tuple(relation for relation in self.relations if relation.kind is not RelationKind.VALUES)

    @property
    def time(self) -> str | None:
        """The name of the time column, of a query over one stream."""
        first, *others = self.visible
        return None if others else first.schema.time

    def has_column(self, name: str) -> bool:
        """Whether a relation of FROM has a column of that name."""
        return any(relation.schema.find(name) is not None for relation in self.visible)

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
        if is_block_name(node.name):
            return self._value_of_block(node)
        expr = self._own_column(node)
        if expr is not None:
            return expr
        if self.outer is not None:
            return self._outer_column(self.outer, node)
        if node.name.lower() == "now" and not (node.table or node.this.quoted):
            return now(offset_of(node))
        self._check_around(node)
        raise self._unknown_column(node)

    def _outer_column(self, outer: Scope, node: exp.Column) -> Expr:
        """A column of the query around this one; if that has none either, this query's columns are the hint."""
        try:
            return outer.column(node)
        except UnknownColumn:
            if not self._named(node):
                raise
            raise self._unknown_column(node) from None

    def _check_around(self, node: exp.Column) -> None:
        """Raise for a column of the query around this one, which this one cannot use."""
        if self.around is None or self.around._own_column(node) is None:
            return
        raise OuterColumn(
            f"this query cannot use '{node.sql('spark')}' of the query around it",
            hint="queries after EXISTS and IN and queries of one aggregate can; or join the relations instead",
            location=self.source.node(node),
        )

    def _own_column(self, node: exp.Column) -> Expr | None:
        """A column of the relations of FROM; None if they have none of that name."""
        merged = None if node.table else self.merged.get(node.name.lower())
        matches = [] if merged is None else [merged.expr]
        matches += [
            relation.ref(column, offset_of(node))
            for relation in self._named(node)
            if (merged is None or relation.number not in merged.inputs)
            and (column := relation.schema.find(node.name)) is not None
        ]
        if len(matches) > 1:
            raise self._ambiguous_column(node)
        return matches[0] if matches else None

    def _named(self, node: exp.Column) -> tuple[Relation, ...]:
        if not node.table:
            return self.visible
        return tuple(relation for relation in self.relations if relation.is_named(node.table))

    def relations_of(self, node: exp.Column) -> tuple[Relation, ...]:
        """The relations that a column may belong to, by the name before its dot."""
        named = self._named(node)
        if not named:
            names = [name for relation in self.visible for name in relation.names]
            what = "the stream" if len(self.visible) == 1 else "an input"
            raise UnknownColumn(
                f"'{node.table}' is not {what} of this query",
                hint=nearest(node.table, names) or self._hint_for(node),
                location=self.source.node(node),
            )
        return named

    def _hint_for(self, node: exp.Column) -> str | None:
        """The column of that name of another input, or the names of the inputs."""
        is_star = isinstance(node.this, exp.Star)
        for relation in self.visible:
            if relation.names and (is_star or relation.schema.find(node.name) is not None):
                return f"write {relation.names[0]}.{'*' if is_star else node.name}"
        inputs = [relation.names[0] for relation in self.visible if relation.names]
        return f"the query has {', '.join(inputs)}" if inputs else None

    def all_columns(self, at: int) -> list[tuple[str, Expr]]:
        """The columns that `*` means: those of USING, and then those of each relation that are not among them."""
        of_using = [
            (
                next(each.name for relation in self.visible if (each := relation.schema.find(name)) is not None),
                merged.expr,
            )
            for name, merged in self.merged.items()
        ]
        own = [
            (column.name, relation.ref(column, at))
            for relation in self.visible
            for column in relation.schema.columns
            if (merged := self.merged.get(column.name.lower())) is None or relation.number not in merged.inputs
        ]
        return [*of_using, *own]

    def columns_of(self, star: exp.Column, at: int) -> list[tuple[str, Expr]]:
        """The columns that `t.*` means."""
        relations = self.relations_of(star)
        return [(column.name, relation.ref(column, at)) for relation in relations for column in relation.schema.columns]

    def _value_of_block(self, node: exp.Column) -> Expr:
        if self.block is None:
            raise Unsupported(
                f"a query in parentheses is not supported in {self.clause}",
                hint="write it in WHERE, or join it: FROM (SELECT …) a, (SELECT …) b",
                location=self.source.node(node),
            )
        return self.block(node)

    def _ambiguous_column(self, node: exp.Column) -> SqlError:
        qualified = [
            f"{_name(relation)}.{node.name}" for relation in self.visible if relation.schema.find(node.name) is not None
        ]
        return SqlError(
            f"column '{node.name}' is ambiguous",
            hint=f"write {' or '.join(qualified)}",
            location=self.source.node(node),
        )

    def _unknown_column(self, node: exp.Column) -> UnknownColumn:
        relations = self.relations_of(node)
        names = [name for relation in relations for name in relation.schema.names]
        hint = nearest(node.name, names)
        if len(relations) > 1:
            qualified = [f"{_name(relation)}.{name}" for relation in relations for name in relation.schema.names]
            hint = _nearest_qualified(node.name, relations) or f"columns are {', '.join(qualified)}"
        return UnknownColumn(
            f"no column '{node.name}'",
            hint=hint or f"columns are {', '.join(names)}",
            location=self.source.node(node),
        )


def _name(relation: Relation) -> str:
    return relation.names[0] if relation.names else "query"


def _nearest_qualified(name: str, relations: Sequence[Relation]) -> str | None:
    """The hint for a misspelt column of several relations."""
    hint = nearest(name, [column for relation in relations for column in relation.schema.names])
    owners = [
        _name(relation) for relation in relations for column in relation.schema.names if f"'{column}'" in (hint or "")
    ]
    return None if hint is None else f"{hint.removesuffix('?')} of {' or '.join(owners)}?"
