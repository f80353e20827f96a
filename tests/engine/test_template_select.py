"""Parameters in the select list of a template: a query that raises there does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.test_templates import Pot, _row, _told
from tureen.errors import QueryFailed
from tureen.results import pairing

SQL = "SELECT sym, qty DIV :p AS share FROM s WHERE price > :p"


@pytest.fixture
def pot(tmp_path: Path) -> Iterator[Pot]:
    """A pot with one stream."""
    made = Pot(tmp_path)
    yield made
    made.hand.close()


def test_one_that_raises_does_not_stop_the_others(pot: Pot) -> None:
    handle = pot.templates.register(SQL, [{"p": p} for p in (1, 0, 2, 0, 4)], "shares")
    since = pot.matches(handle, None).position()
    pot.hand.push("s", [_row(0, price=3.0, qty=100), _row(1, price=9.0, qty=100)])
    found = pot.matches(handle, since)
    told = [(number, row["share"]) for number, row in _told(found)]
    assert told == [(0, 100), (2, 50), (0, 100), (2, 50), (4, 25)]
    assert len(pot.matches(handle, found.position())) == 0, "whoever follows gets past it"
    with pytest.raises(QueryFailed):
        pot.hand.invoke(f"{handle}.1")
    assert len(pot.hand.invoke(f"{handle}.0")) == 2


def test_too_many_that_raise_fail(pot: Pot) -> None:
    handle = pot.templates.register(SQL, [{"p": 0}] * (pairing.MOST_RAISING + 1), None)
    since = pot.matches(handle, None).position()
    pot.hand.push("s", [_row(0, price=3.0, qty=100)])
    with pytest.raises(QueryFailed):
        pot.matches(handle, since)
