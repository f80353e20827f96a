"""A pot with a stream and templates, without Spark, for the tests of templates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tureen.position import Position
from tureen.results.templates.template_matches import TemplateMatches
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "sym STRING, price DOUBLE, qty BIGINT, net DECIMAL(10,2), day DATE, ok BOOLEAN, ts TIMESTAMP"
SQL = "SELECT sym, price * 2 AS twice FROM s WHERE sym = :sym AND price > :p"


class TemplatePot:
    """A pot and its templates."""

    def __init__(self, root: Path) -> None:
        self.engine = ManualEngine(root)
        self.engine.create_stream("s", SCHEMA, time="ts")
        self.templates = Templates(self.engine.catalog, self.engine.invoker)

    def matches(self, handle: str, since: str | None) -> TemplateMatches:
        """The changes of a template's queries since a position."""
        return self.templates.matches(handle, None if since is None else Position.parse(since))


def make_row(number: int, **values: Any) -> dict[str, Any]:
    """A row at a number of seconds after `BASE`."""
    return {"sym": "a", "price": 1.0, "qty": 1, "ts": BASE + timedelta(seconds=number), **values}


def numbered_rows(matches: TemplateMatches) -> list[tuple[int, dict[str, Any]]]:
    """The matched rows with the numbers of their queries."""
    return list(zip(matches.numbers.tolist(), matches.rows.to_pylist(), strict=True))
