"""The SteM of a stream against loops over its tuples: pending tuples, several runs, tuples that came late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.pot.streams import find_stream
from tureen.results.stem_input import StreamStem
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = st.integers(0, 2)
ROWS = st.lists(st.tuples(KEYS, st.integers(0, 9)), min_size=2, max_size=6)
"""Tuples of a push: a key and a time."""


@example_settings(20)
@given(st.data(), ROWS, ROWS, st.lists(KEYS, min_size=1, max_size=8))
def test_partners_are_in_order_of_keys(
    data: st.DataObject, taken: list[tuple[int, int]], pending: list[tuple[int, int]], probes: list[int]
) -> None:
    tuples = taken + pending
    begin = data.draw(st.integers(0, len(tuples)))
    end = data.draw(st.integers(begin, len(tuples)))
    rows = [{"k": key, "n": number, "ts": START + timedelta(seconds=time)} for number, (key, time) in enumerate(tuples)]
    with TemporaryDirectory() as folder:
        engine = ManualEngine(Path(folder))
        engine.create_stream("a", "k BIGINT, n INT, ts TIMESTAMP", time="ts", clock="stream")
        engine.push("a", rows[: len(taken)])
        engine.append("a", rows[len(taken) :])
        with engine.catalog.read() as tx:
            stream = find_stream(tx, "a")
        state = engine.invoker.view.snapshot((stream.id,)).streams[stream.id]
        first_id = state.stream.next_id - len(tuples)
        stem = StreamStem(state, (first_id + begin, first_id + end), None, engine.invoker.key_indexes)
        within = stem.rows_within()
        assert sorted(stem.ids_at(within).tolist()) == list(range(first_id + begin, first_id + end))
        assert within.tolist() == sorted(within.tolist())
        codes = np.array(probes, np.int64).reshape(1, -1)
        keys_at, partners = stem.probe((("k", "int"),), codes, np.ones(len(probes), np.bool_))
        assert keys_at.tolist() == sorted(keys_at.tolist())
        numbers = stem.columns_at(["n"], partners)[0].to_pylist()
        pairs = [(at, n) for at, key in enumerate(probes) for n in range(begin, end) if tuples[n][0] == key]
        assert sorted(zip(keys_at.tolist(), numbers, strict=True)) == pairs
        engine.close()
