"""The questions of `questions.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

FILE = Path(__file__).with_name("questions.txt")


@dataclass(frozen=True)
class Question:
    """What Tureen is asked, what DuckDB is asked, and at which moments; None is the stream's own NOW."""

    name: str
    ours: str
    theirs: str
    moments: tuple[datetime | None, ...]


def read_questions() -> list[Question]:
    """All questions, in the order of the file."""
    # What comes first says how the file is to be read.
    _, _, *parts = FILE.read_text().split("\n== ")
    return [_question(part) for part in parts]


def _question(part: str) -> Question:
    name, _, rest = part.partition("\n")
    moments: tuple[datetime | None, ...] = (None,)
    if rest.startswith("now: "):
        line, _, rest = rest.partition("\n")
        moments = tuple(datetime.fromisoformat(f"{text}Z") for text in line.removeprefix("now: ").split(", "))
    ours, theirs = rest.split("\n----\n")
    return Question(name, ours, theirs, moments)
