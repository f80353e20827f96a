"""The punctuations that a stream declares: its unique key, its lateness, and rows that punctuate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class LastRows(NamedTuple):
    """A BOOLEAN column that is true in the last row with certain values of the key columns."""

    column: str
    key: tuple[str, ...]


class PatternRows(NamedTuple):
    """A STRING column, or a header of an outside source, in which rows carry punctuations as JSON."""

    name: str
    is_header: bool = False

    @property
    def shown(self) -> str:
        """What it is, for errors."""
        return f"{'header' if self.is_header else 'column'} '{self.name}'"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a stream declares: the columns of its unique key, and how late a tuple may be, in microseconds."""

    unique: tuple[str, ...] = ()
    lateness: int | None = None
    last_rows: LastRows | None = None
    pattern_rows: PatternRows | None = None

    @property
    def header(self) -> str | None:
        """The header of its source in which rows carry punctuations."""
        rows = self.pattern_rows
        return rows.name if rows is not None and rows.is_header else None

    def __bool__(self) -> bool:
        """Whether anything is declared."""
        return self != NO_RULES


NO_RULES = Rules()
