"""Punctuations of joins whose equal columns have different types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from tureen.position import BEGINNING, Position
from tureen.punctuation import Punctuation, Range
from tureen.soup.change_batches import QueryChanges
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
JOIN = "SELECT a.k AS ka, b.k AS kb, a.ts FROM a JOIN b ON a.k = b.k"
NEAR = float(np.float32(0.1))
"""The FLOAT that is nearest to 0.1, and greater."""


def row(k: Any) -> dict[str, Any]:
    return {"k": k, "ts": BASE}


def create(engine: ManualEngine, joined: str, **types: str) -> None:
    for name, kind in types.items():
        engine.create_stream(name, f"k {kind}, ts TIMESTAMP", time="ts", clock="stream")
    engine.derive_stream("d", joined, time="ts", clock="stream")


def test_values_that_an_output_cannot_have_are_left_out(engine: ManualEngine) -> None:
    create(engine, JOIN, a="TINYINT", b="BIGINT", c="TINYINT")
    handle = engine.register("SELECT d.ka, c.k FROM d JOIN c ON d.ka = c.k", materialize=False)
    follower = engine.invoker.follow(handle)
    engine.append("c", [row(5), row(6)])
    engine.append("a", [row(5), row(6), Punctuation(k=Range(low=0))])
    engine.append("b", [row(6), Punctuation(k=128), Punctuation(k=[6, 300])])
    engine.derive()
    joined = engine.register(JOIN, materialize=False)
    of_join = engine.invoker.new_rows(joined, Position.parse(BEGINNING), punctuations=True)
    assert [change.punctuation for change in QueryChanges(joined, of_join)][1:] == [Punctuation(ka=6, kb=6)]
    new = engine.invoker.new_rows(handle, Position.parse(BEGINNING), follower)
    assert new.rows.to_pylist() == [{"ka": 6, "k": 6}]


def test_the_nearest_float_of_a_double_is_not_closed(engine: ManualEngine) -> None:
    create(engine, JOIN.replace("b.k AS kb, ", ""), a="FLOAT", b="DOUBLE", c="FLOAT")
    handle = engine.register("SELECT d.ka, c.k FROM d JOIN c ON d.ka = c.k", materialize=False)
    follower = engine.invoker.follow(handle)
    engine.append("c", [row(0.1), Punctuation(k=7.0)])
    engine.invoker.new_rows(handle, Position.parse(BEGINNING), follower)
    engine.append("a", [Punctuation(k=Range(high=0.1, high_open=True))])
    engine.append("b", [Punctuation(k=0.1)])
    engine.derive()
    position = engine.invoker.new_rows(handle, Position.parse(BEGINNING), follower).position()
    engine.append("a", [row(0.1)])
    engine.append("b", [row(NEAR)])
    engine.derive()
    new = engine.invoker.new_rows(handle, Position.parse(position), follower)
    assert new.rows.to_pylist() == [{"ka": NEAR, "k": NEAR}]
