"""How long servers wait for each other."""

from __future__ import annotations

import pytest

from tureen.errors import Unreachable
from tureen.federation.askers import Askers


def test_each_call_gets_a_part_of_the_time_that_is_left() -> None:
    seconds = Askers.waiting(100.0, "A").seconds()
    assert seconds is not None
    assert 0 < seconds <= 50


def test_nobody_is_asked_when_no_time_is_left() -> None:
    with pytest.raises(Unreachable, match="did not answer in time"):
        Askers.waiting(0.0).seconds()


def test_without_a_limit_calls_take_as_long_as_they_take() -> None:
    assert Askers(("A",)).seconds() is None


def test_askers_are_a_collection_of_names() -> None:
    askers = Askers(("A", "B"))
    assert (list(askers), len(askers), "A" in askers, "C" in askers) == (["A", "B"], 2, True, False)
    assert Askers(), "also those of a question that nobody has passed on"
