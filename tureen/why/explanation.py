"""What users get: the tuples that they asked about, each with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

DEFAULT_LIMIT = 10
"""The number of tuples that are explained unless the user asks for more or fewer."""

MAX_LIMIT = 1_000
"""The largest number of tuples that can be explained at once."""


@dataclass(frozen=True)
class Reason:
    """One thing that kept a tuple out of an answer, or, for a tuple in the answer, how it is in it."""

    kind: str
    """What it was: see docs/language.md."""
    text: str
    """The reason as a sentence."""
    factor: str | None = None
    """The condition that is not true."""
    truth: str | None = None
    """The value of that condition: "false", "unknown" or "error"."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The values that the condition reads, or those of a group's keys."""
    input: str | None = None
    """The input in which a partner was looked for."""
    nearest: Mapping[str, Any] | None = None
    """The tuple of that input that came nearest to being a partner."""
    distance: float | None = None
    """How far the tuple is from the window, or from a partner: in seconds, in tuples, or in the unit of a number."""


@dataclass(frozen=True)
class ExplainedTuple:
    """A tuple that satisfies the condition."""

    input: str
    """The alias of its input, or the name of its stream or table."""
    row: Mapping[str, Any]
    time: datetime | None
    """Its time; None for a row of a table or of a query in parentheses."""
    in_answer: bool
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        """Its values, and whether and why it is in the answer."""
        verdict = "in the answer" if self.in_answer else "not in the answer"
        values = ", ".join(self.shown_values())
        return "\n".join([f"{self.input} ({values}): {verdict}", *(f"  {reason.text}" for reason in self.reasons)])

    def shown_values(self) -> list[str]:
        """Its values, and its time if that is no column: the time of its arrival."""
        values = [f"{name} = {value_text(value)}" for name, value in self.row.items()]
        has_time = self.time is None or self.time in self.row.values()
        return values if has_time else [*values, f"arrived at {value_text(self.time)}"]


@dataclass(frozen=True)
class Explanation:
    """Why tuples are in the answer of a query or not: the latest that satisfy a condition, in order of time."""

    input: str
    """The input that the condition concerns."""
    tuples: tuple[ExplainedTuple, ...]
    total: int
    """The number of tuples that satisfy the condition, of which some may have been left out."""
    notes: tuple[str, ...]
    """What holds for all tuples, such as what could not be examined."""
    types: Mapping[str, str]
    """The SQL types of all names that occur in rows and reasons."""
    position: str
    """The position of the answer that is explained."""

    @property
    def has_more(self) -> bool:
        """Whether more tuples satisfy the condition than are explained."""
        return self.total > len(self.tuples)

    def __len__(self) -> int:
        """The number of explained tuples."""
        return len(self.tuples)

    def __iter__(self) -> Iterator[ExplainedTuple]:
        """The explained tuples."""
        return iter(self.tuples)

    def __str__(self) -> str:
        """All tuples with their reasons, and the notes."""
        return "\n".join([*map(str, self.tuples), *self.summary()])

    def summary(self) -> list[str]:
        """The lines after the tuples: how many there are, and the notes."""
        if not self.total:
            return [f"no tuple of {self.input} satisfies the condition", *self.notes]
        if not self.has_more:
            return list(self.notes)
        return [f"the latest {len(self.tuples):,} of {self.total:,} tuples that satisfy the condition", *self.notes]


def value_text(value: object) -> str:
    """A value as it is written in SQL, without its type.

    >>> value_text("IBM"), value_text(None), value_text(True), value_text(2.5)
    ("'IBM'", 'NULL', 'TRUE', '2.5')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
    return str(value)
