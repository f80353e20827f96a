"""The punctuations that a stream declares: its unique key, its lateness, and rows that are the last with their key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class LastRows(NamedTuple):
    """A BOOLEAN column that is true in the last row with certain values of the key columns."""

    column: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a stream declares: the columns of its unique key, and how late a tuple may be, in microseconds."""

    unique: tuple[str, ...] = ()
    lateness: int | None = None
    last_rows: LastRows | None = None

    def __bool__(self) -> bool:
        """Whether anything is declared."""
        return bool(self.unique) or self.lateness is not None or self.last_rows is not None


NO_RULES = Rules()
