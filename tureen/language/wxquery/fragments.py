"""Pieces of SQL that remember which part of a query in WXQuery they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Fragment:
    """SQL, with pairs of an offset in it and the offset in the query that the text from there on comes from."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    aggregated: bool = False
    """Whether it has a call of an aggregate."""

    def origin(self, offset: int) -> int | None:
        """The offset in the query of an offset in the SQL; None before the first mark."""
        return next((at for start, at in reversed(self.marks) if start <= offset), None)


def fragment(*pieces: str | Fragment, at: int | None = None) -> Fragment:
    """Pieces after one another; `at` is the origin of text that has none."""
    text, marks = "", list[tuple[int, int]]() if at is None else [(0, at)]
    aggregated = False
    for piece in pieces:
        if isinstance(piece, Fragment):
            marks += [(len(text) + offset, origin) for offset, origin in piece.marks]
            text += piece.text
            aggregated |= piece.aggregated
        else:
            text += piece
    return Fragment(text, tuple(marks), aggregated)


def joined(separator: str, pieces: Iterable[Fragment]) -> Fragment:
    """Pieces with a separator between them."""
    parts: list[str | Fragment] = []
    for piece in pieces:
        parts += [separator, piece] if parts else [piece]
    return fragment(*parts)


def aggregated(piece: Fragment) -> Fragment:
    """A call of an aggregate."""
    return replace(piece, aggregated=True)


def quoted(name: str) -> str:
    """A name in backticks."""
    return f"`{name}`"


def constant_sql(value: Decimal | float | str) -> str:
    r"""A constant: a DECIMAL, a DOUBLE or a text.

    >>> constant_sql(Decimal("1.50")), constant_sql(1000.0), constant_sql("it's")
    ('1.50', '1000.0e0', "'it\\'s'")
    """
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, float):
        text = repr(value)
        return text if "e" in text else text + "e0"
    return f"{value:f}"
