"""The text of a query, and where things are in it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token

from tureen.errors import Place


@dataclass(frozen=True, slots=True)
class Source:
    """A query's text; places are computed from offsets into it."""

    text: str

    def place(self, offset: int) -> Place:
        r"""The line and column of an offset.

        >>> Source("SELECT\n  a").place(9)
        Place(line=2, column=3)
        """
        offset = max(0, min(offset, len(self.text)))
        line_start = self.text.rfind("\n", 0, offset) + 1
        return Place(self.text.count("\n", 0, offset) + 1, offset - line_start + 1)

    def raw(self, node: exp.Expression) -> str | None:
        """What was written for a node that keeps its own position, such as a literal."""
        start, end = node.meta.get("start"), node.meta.get("end")
        return self.text[start : end + 1] if isinstance(start, int) and isinstance(end, int) else None

    def token(self, token: Token) -> Place:
        """Where a token starts."""
        return self.place(token.start)

    def node(self, node: exp.Expression) -> Place:
        """Where a node starts."""
        return self.place(offset_of(node))


def offset_of(node: exp.Expression) -> int:
    """Where a node starts: the least offset that it, something inside it, or else what it is in knows."""
    around: exp.Expression | None = node
    while around is not None:
        starts = [start for one in around.walk() if isinstance(start := one.meta.get("start"), int)]
        if starts:
            return min(starts)
        above = around.parent
        around = above if isinstance(above, exp.Expression) else None
    return 0
