"""The punctuations that a stream declares: its unique key and its lateness."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """What a stream declares: the columns of its unique key, and how late a tuple may be, in microseconds."""

    unique: tuple[str, ...] = ()
    lateness: int | None = None

    def __bool__(self) -> bool:
        """Whether anything is declared."""
        return bool(self.unique) or self.lateness is not None


NO_RULES = Rules()
