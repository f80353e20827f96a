"""Parameters in the select list of a template: a query that fails there does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soup.template_pot import TemplatePot, make_row, numbered_rows
from tureen.errors import QueryFailed
from tureen.results.templates import pairing

SQL = "SELECT sym, qty DIV :p AS share FROM s WHERE price > :p"


@pytest.fixture
def pot(tmp_path: Path) -> Iterator[TemplatePot]:
    """A pot with a stream."""
    pot = TemplatePot(tmp_path)
    yield pot
    pot.engine.close()


def test_a_query_that_fails_does_not_stop_the_others(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"p": p} for p in (1, 0, 2, 0, 4)], "shares")
    since = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(0, price=3.0, qty=100), make_row(1, price=9.0, qty=100)])
    matches = pot.matches(handle, since)
    shares = [(number, row["share"]) for number, row in numbered_rows(matches)]
    assert shares == [(0, 100), (2, 50), (0, 100), (2, 50), (4, 25)]
    assert len(pot.matches(handle, matches.position())) == 0, "followers get past it"
    with pytest.raises(QueryFailed):
        pot.engine.invoke(f"{handle}.1")
    assert len(pot.engine.invoke(f"{handle}.0")) == 2


def test_too_many_failing_queries_fail_the_template(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"p": 0}] * (pairing.MOST_RAISING + 1), None)
    since = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(0, price=3.0, qty=100)])
    with pytest.raises(QueryFailed):
        pot.matches(handle, since)
