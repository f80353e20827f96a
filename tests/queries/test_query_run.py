"""Compiling clauses into query runs, and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tureen.predicate import AnyOf, Clause, Interval, IsNull, Like, Within
from tureen.queries import QueryRun, compile_clauses
from tureen.schema import ARRIVAL, Schema

SCHEMA = Schema.parse("a INT, b DOUBLE, s STRING, w DECIMAL(38,0)")


def test_shared_factors_are_stored_once() -> None:
    big, like = Within("a", (Interval(low=5),)), Like("s", "x%y")
    run = compile_clauses([1, 5, 9], [(big, like), (big,), (like, big, IsNull("b"))], SCHEMA)
    assert run.factors == 2
    assert run.derived == (like,)
    assert run.users == ((0, 2),)
    assert run.ids.tolist() == [1, 5, 9]
    assert len(run) == 3
    assert run.clause(2) == (like, big, IsNull("b"))


def test_equivalent_ends_are_one_cut_point() -> None:
    clauses: list[Clause] = [
        (Within("a", (Interval(high=4),)),),
        (Within("a", (Interval(high=5, high_open=True),)),),
        (Within("a", (Interval(low=5),)),),
    ]
    run = compile_clauses(range(3), clauses, SCHEMA)
    assert run.arrays.high.tolist() == [0, 5, 0, 0]


def test_saved_run_loads_unchanged(tmp_path: Path) -> None:
    clauses: list[Clause] = [
        (Within("a", (Interval(-3, 2**31 - 1), Interval(low=2**40))), Within("s", (Interval("", "é"),))),
        (Within("w", (Interval(-(10**37), 10**37),)), Within("b", (Interval(low=float("nan")),))),
        (AnyOf((IsNull("a"), Like("s", "%"))),),
        (),
        (Within("b", ()),),
    ]
    run = compile_clauses([2, 3, 5, 7, 11], clauses, SCHEMA)
    with open(tmp_path / "run", "wb") as file:
        run.write(file, "run")
    loaded = QueryRun.load(tmp_path / "run")
    assert (loaded.names, loaded.encodings, loaded.derived) == (run.names, run.encodings, run.derived)
    for name, array in vars(run.arrays).items():
        loaded_array = getattr(loaded.arrays, name)
        assert loaded_array.dtype == array.dtype
        assert np.array_equal(loaded_array, array)
        assert not loaded_array.flags.writeable
        assert not array.flags.writeable
    assert repr(loaded.clause(1)) == repr(run.clause(1))


def test_keys_beyond_the_column_range_become_edges() -> None:
    run = compile_clauses([1], [(Within("a", (Interval(-(2**70), 2**70),)),)], SCHEMA)
    assert run.clause(0) == (Within("a", (Interval(),)),)


def test_ids_must_ascend_and_match_clauses() -> None:
    with pytest.raises(ValueError, match="must ascend"):
        compile_clauses([2, 1], [(), ()], SCHEMA)
    with pytest.raises(ValueError, match="1 ids for 2 clauses"):
        compile_clauses([1], [(), ()], SCHEMA)


def test_hidden_time_column_can_be_used() -> None:
    assert compile_clauses([1], [(Within(ARRIVAL, (Interval(low=0),)),)], SCHEMA).names == (ARRIVAL,)
