"""The SteM of a stream against loops over its tuples: pending tuples, several runs, tuples that came late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.joining.tuple_id_set import TupleIdSet
from tureen.pot.streams import find_stream
from tureen.results.joins import stem_input
from tureen.results.joins.stem_input import StreamStem
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = st.integers(0, 2)
ROWS = st.lists(st.tuples(KEYS, st.integers(0, 9)), min_size=2, max_size=6)
"""Tuples of a push: a key and a time."""


def state_of(engine: ManualEngine) -> StreamState:
    with engine.catalog.read() as tx:
        stream = find_stream(tx, "a")
    return engine.invoker.view.snapshot((stream.id,)).streams[stream.id]


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
        state = state_of(engine)
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


@pytest.mark.parametrize("least_rows", [0, 3])
@example_settings(10)
@given(st.data(), ROWS, ROWS)
def test_rows_by_key(
    least_rows: int, data: st.DataObject, taken: list[tuple[int, int]], pending: list[tuple[int, int]]
) -> None:
    tuples = [(data.draw(st.sampled_from([None, key])), time) for key, time in taken + pending]
    begin = data.draw(st.integers(0, len(tuples)))
    end = data.draw(st.integers(begin, len(tuples)))
    purged = TupleIdSet()
    rows = [{"k": key, "n": number, "ts": START + timedelta(seconds=time)} for number, (key, time) in enumerate(tuples)]
    columns = (("k", "int"),)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stem_input, "GROUPED_ROWS", least_rows)
        engine = ManualEngine(Path(folder))
        engine.create_stream("a", "k BIGINT, n INT, ts TIMESTAMP", time="ts", clock="stream")
        engine.push("a", rows[: len(taken)])
        engine.append("a", rows[len(taken) :])
        state = state_of(engine)
        first_id = state.stream.next_id - len(tuples)
        purged.add(first_id + np.array(data.draw(st.lists(st.integers(0, len(tuples) - 1))), np.int64))
        indexed = data.draw(st.lists(st.sampled_from(state.segments)))
        for segment in indexed:
            engine.invoker.key_indexes.of_segment(segment, columns)
        stem = StreamStem(state, (0, state.stream.next_id), None, engine.invoker.key_indexes, purged)
        interval = first_id + begin, first_id + end
        groups, others = stem.key_groups(columns, interval)
        for group in groups:
            (keys,) = stem.columns_at(["k"], group.first_rows())
            for number, key in enumerate(keys.to_pylist()):
                ids = group.ids_of(np.arange(len(group)) == number, interval)
                of_key = [
                    n for n in range(begin, end) if tuples[n][0] == key and _is_in(group.part.segment, first_id + n)
                ]
                assert sorted((ids - first_id).tolist()) == of_key
        grouped = [n for group in groups for n in range(begin, end) if _is_in(group.part.segment, first_id + n)]
        dropped = [n for n in range(begin, end) if first_id + n not in _ids(stem)]
        assert sorted([*(stem.ids_at(others) - first_id).tolist(), *grouped, *dropped]) == [*range(begin, end)]
        alive = [time for n, (_, time) in enumerate(tuples) if not purged.contains(np.array([first_id + n]))[0]]
        least = stem.least_time()
        assert least is None or least <= min(
            (to_micros(START + timedelta(seconds=time)) for time in alive), default=least
        )
        engine.close()


def _is_in(segment: Segment, tuple_id: int) -> bool:
    return bool(segment.positions_of(np.array([tuple_id]))[0] >= 0)


def _ids(stem: StreamStem) -> set[int]:
    return set(stem.ids.tolist())
