"""The section of a record of the log: the punctuations of a push with their places, and its rejected rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from tureen.closed.pattern import Pattern


class PlacedPattern(NamedTuple):
    """A punctuation of a push: it stands after the first `at` rows."""

    at: int
    pattern: Pattern


class ClosedRow(NamedTuple):
    """A row of a push that an earlier punctuation closes, as JSON values."""

    row: dict[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class Section:
    """What a push has besides its accepted rows."""

    patterns: tuple[PlacedPattern, ...] = ()
    """Their places count accepted rows."""
    rejected: tuple[ClosedRow, ...] = ()
    rejected_rows: int = 0
    """The number of rejected rows, of which `rejected` has the first ones."""


NOTHING = Section()


def encode_section(section: Section) -> bytes:
    """The section as bytes; none if there is nothing in it."""
    if section == NOTHING:
        return b""
    content = {
        "punctuations": [[placed.at, placed.pattern.as_json()] for placed in section.patterns],
        "rejected": section.rejected,
        "rejected_rows": section.rejected_rows,
    }
    return json.dumps(content, default=json_text, separators=(",", ":")).encode()


def json_text(value: Any) -> str:
    """A value of a rejected row that JSON does not have, as a text: times as in ISO 8601.

    >>> from datetime import datetime
    >>> json_text(datetime(2026, 1, 31, 12)), json_text(date(2026, 1, 31)), json_text(b"x")
    ('2026-01-31T12:00:00', '2026-01-31', "b'x'")
    """
    return value.isoformat() if isinstance(value, date) else str(value)


def stored_patterns(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    """The punctuations of a section as they are stored (`Pattern.as_json`), each with the number of rows before it."""
    return json.loads(data)["punctuations"] if data else []


def decode_section(data: bytes | memoryview) -> Section:
    """Read what `encode_section` returns.

    >>> decode_section(b"") == NOTHING
    True
    """
    if not data:
        return NOTHING
    content = json.loads(bytes(data))
    patterns = (PlacedPattern(at, Pattern.from_json(stored)) for at, stored in content["punctuations"])
    rejected = (ClosedRow(row, reason) for row, reason in content["rejected"])
    return Section(tuple(patterns), tuple(rejected), content["rejected_rows"])
