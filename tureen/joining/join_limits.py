"""Limits of joins: how many rows one answer may join, and how many pairs it may examine."""

from __future__ import annotations

from dataclasses import dataclass

from tureen.errors import QueryFailed


@dataclass(frozen=True)
class JoinLimits:
    """What one answer may cost."""

    rows: int = 20_000_000
    """Joined rows that are held at once."""
    candidates: int = 2_000_000_000
    """Pairs of rows that are examined."""

    def check_rows(self, rows: int) -> None:
        """Raise if there are more rows."""
        if rows > self.rows:
            raise QueryFailed(
                f"the join would have {rows:,} rows, more than {self.rows:,}",
                hint="add a condition, or narrow its windows",
            )


DEFAULT_LIMITS = JoinLimits()
