"""The text of a query, and the locations of tokens and nodes in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import Token

from tureen.errors import Location
from tureen.functions.function_lookup import FunctionLookup, no_functions


@dataclass(frozen=True, slots=True)
class Source:
    """A query's text; locations are computed from offsets into it."""

    text: str
    functions: FunctionLookup = field(default=no_functions, compare=False)
    """The user functions that it can call."""

    def location(self, offset: int) -> Location:
        r"""The line and column of an offset.

        >>> Source("SELECT\n  a").location(9)
        Location(line=2, column=3)
        """
        offset = max(0, min(offset, len(self.text)))
        line_start = self.text.rfind("\n", 0, offset) + 1
        return Location(self.text.count("\n", 0, offset) + 1, offset - line_start + 1)

    def offset(self, location: Location) -> int:
        r"""The offset of a line and column.

        >>> Source("SELECT\n  a").offset(Location(2, 3))
        9
        """
        lines = self.text.split("\n")[: location.line - 1]
        return sum(len(line) + 1 for line in lines) + location.column - 1

    def raw(self, node: exp.Expression) -> str | None:
        """The text of a node that keeps its offsets, such as a literal."""
        start, end = node.meta.get("start"), node.meta.get("end")
        return self.text[start : end + 1] if isinstance(start, int) and isinstance(end, int) else None

    def token(self, token: Token) -> Location:
        """The location of a token."""
        return self.location(token.start)

    def node(self, node: exp.Expression) -> Location:
        """The location of a node."""
        return self.location(offset_of(node))


def offset_of(node: exp.Expression) -> int:
    """The offset of a node: the least offset within it, or else within its nearest ancestor that has one."""
    ancestor: exp.Expression | None = node
    while ancestor is not None:
        starts = [start for child in ancestor.walk() if isinstance(start := child.meta.get("start"), int)]
        if starts:
            return min(starts)
        parent = ancestor.parent
        ancestor = parent if isinstance(parent, exp.Expression) else None
    return 0
