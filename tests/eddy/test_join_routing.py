"""Routing of followed joins: policies by name, settled orders, and counters."""

from __future__ import annotations

import pytest

from tureen.eddy.join_routing import SETTLED_BLOCKS, JoinRouter, routing_policy
from tureen.eddy.operators import Operator
from tureen.eddy.policies import Fixed
from tureen.eddy.statistics import Observation
from tureen.errors import TureenError
from tureen.routing_policies import ROUTING_POLICIES, check_routing

A, B = Operator("a", frozenset()), Operator("b", frozenset())


def test_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown routing policy 'best'"):
        routing_policy("best", [])
    with pytest.raises(TureenError, match="routing must be one of tickets, random, fixed, got 'best'"):
        check_routing("best")
    assert [type(routing_policy(name, [])).__name__ for name in ROUTING_POLICIES] == ["Tickets", "Random", "Fixed"]


def test_tickets_prefer_the_smaller_fan_out_also_above_one() -> None:
    router = JoinRouter(routing_policy("tickets", []))
    for _ in range(20):
        router.admit("s", 100)
        router.observe("s", Observation(A, 100, 900, cost=1.0))
        router.observe("s", Observation(B, 100, 200, cost=1.0))
    chosen = [router.choose("s", [A, B]).name for _ in range(200)]
    assert chosen.count("b") > 180


def test_tickets_prefer_the_cheaper_operator() -> None:
    router = JoinRouter(routing_policy("tickets", []))
    router.admit("s", 100)
    router.observe("s", Observation(A, 100, 50, cost=20.0))
    router.observe("s", Observation(B, 100, 50, cost=1.0))
    chosen = [router.choose("s", [A, B]).name for _ in range(200)]
    assert chosen.count("b") > 180


def test_order_changes_when_several_blocks_in_a_row_have_the_new_one() -> None:
    router = JoinRouter(Fixed([]))
    assert router.finish("s", ["a", "b"], "ab") is None
    assert [router.finish("s", ["b", "a"], "ab") for _ in range(SETTLED_BLOCKS - 1)] == [None] * (SETTLED_BLOCKS - 1)
    assert router.finish("s", ["a", "b"], "ab") is None
    changes = [router.finish("s", ["b", "a"], "ab") for _ in range(SETTLED_BLOCKS)]
    assert changes[-1] == (("a", "b"), ("b", "a"))
    assert router.order_changes == 1


def test_blocks_that_end_early_count_for_the_order_of_their_visits() -> None:
    router = JoinRouter(Fixed([]))
    router.finish("s", ["a", "b"], "abc")
    changes = [router.finish("s", ["c"], "abc") for _ in range(SETTLED_BLOCKS)]
    assert changes[-1] == (("a", "b", "c"), ("c", "a", "b"))
