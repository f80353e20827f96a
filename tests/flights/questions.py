"""The questions of `questions.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

FILE = Path(__file__).with_name("questions.txt")


@dataclass(frozen=True)
class FlightQuestion:
    """A query for Tureen, its equivalent for DuckDB, and the moments to invoke at; None is the stream's NOW."""

    name: str
    tureen_sql: str
    duckdb_sql: str
    moments: tuple[datetime | None, ...]


def read_questions() -> list[FlightQuestion]:
    """All questions, in the order of the file."""
    # The first part describes the format of the file.
    _, _, *parts = FILE.read_text().split("\n== ")
    return [_question(part) for part in parts]


def _question(part: str) -> FlightQuestion:
    name, _, rest = part.partition("\n")
    moments: tuple[datetime | None, ...] = (None,)
    if rest.startswith("now: "):
        line, _, rest = rest.partition("\n")
        moments = tuple(datetime.fromisoformat(f"{text}Z") for text in line.removeprefix("now: ").split(", "))
    tureen_sql, duckdb_sql = rest.split("\n----\n")
    return FlightQuestion(name, tureen_sql, duckdb_sql, moments)
