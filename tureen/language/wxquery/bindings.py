"""What the variables of a query in WXQuery are bound to: elements, windows of elements, and values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tureen.errors import UnknownColumn, nearest
from tureen.language.wxquery.fragments import Fragment, fragment, joined, quoted
from tureen.language.wxquery.scanner import Scanner
from tureen.schema import Kind, Schema


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value below an element: its path from there, and the SQL of its column."""

    path: tuple[str, ...]
    sql: Fragment
    is_time: bool = False
    kind: Kind | None = None
    """The kind of a column of a stream; None for an expression."""


@dataclass(frozen=True, slots=True)
class ElementBinding:
    """An element of an item: its name, the values below it, and whether it is the whole item."""

    name: str
    leaves: tuple[Leaf, ...]
    is_item: bool = False

    @property
    def value(self) -> Leaf | None:
        """The value of an element without elements in it."""
        return self.leaves[0] if len(self.leaves) == 1 and not self.leaves[0].path else None

    @property
    def exists(self) -> Fragment:
        """SQL that is true if the element is there: one of its values is."""
        present = [fragment(leaf.sql, " IS NOT NULL") for leaf in self.leaves]
        return fragment("(", joined(" OR ", present), ")") if len(present) > 1 else present[0]

    def below(self, name: str, scanner: Scanner, at: int) -> ElementBinding:
        """An element in this one."""
        leaves = tuple(
            replace(leaf, path=leaf.path[1:], sql=fragment(leaf.sql, at=at))
            for leaf in self.leaves
            if leaf.path[:1] == (name,)
        )
        if not leaves:
            names = dict.fromkeys(leaf.path[0] for leaf in self.leaves if leaf.path)
            raise UnknownColumn(
                f"there is no element '{name}' in <{self.name}>",
                hint=nearest(name, list(names)) or (f"it has {', '.join(names)}" if names else "it is a value"),
                location=scanner.location(at),
            )
        return ElementBinding(name, leaves)


@dataclass(frozen=True, slots=True)
class WindowBinding:
    """A window: a sequence of items."""

    item: ElementBinding


@dataclass(frozen=True, slots=True)
class ValueBinding:
    """A value: the result of an aggregate."""

    name: str
    sql: Fragment


Binding = ElementBinding | WindowBinding | ValueBinding
Environment = dict[str, Binding]


def leaves_of(schema: Schema, alias: str) -> tuple[Leaf, ...]:
    """The values of a stream's columns, by their paths."""
    return tuple(
        Leaf(
            tuple(column.name.split("/")),
            Fragment(f"{alias}.{quoted(column.name)}"),
            column.name == schema.time,
            column.type.kind,
        )
        for column in schema.columns
    )
