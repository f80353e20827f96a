"""Rates that are measured on a sample, against counting rows one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.sharing.measured_rates import MeasuredRates, window_count
from tureen.sharing.photon_sample import PHOTONS, photon_sample
from tureen.sharing.properties import Aggregation
from tureen.sharing.simulation import bind
from tureen.window import Steps

SAMPLE = photon_sample(500, 3)
RATES = MeasuredRates({"photons": SAMPLE})


@given(
    st.builds(Steps, st.integers(1, 12), st.integers(1, 12), st.integers(0, 5)),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), max_size=12),
)
@example_settings(80)
def test_windows_and_groups_are_counted(steps: Steps, rows: list[tuple[int, int]]) -> None:
    starts = [start for start in range(-40, 60) if (start - steps.origin) % steps.slide == 0]
    expected = {(start, group) for start in starts for time, group in rows if start <= time < start + steps.width}
    times, groups = (np.array([row[item] for row in rows], np.int64) for item in (0, 1))
    assert window_count(times, Aggregation(steps, (), frozenset()), groups) == len(expected)


def test_frequency_and_size_are_those_of_the_rows() -> None:
    query = bind("q", "SELECT ra, phc FROM photons WHERE en > 1 AND dx < dy", "p", {"photons": PHOTONS})
    rows = [row for row in SAMPLE.rows.to_pylist() if row["en"] > 1 and row["dx"] < row["dy"]]
    rate = RATES.rate(query.properties)
    assert rate.frequency == pytest.approx(len(rows) / SAMPLE.seconds)
    # All rows of the sample have about the size of their JSON.
    texts = [json.dumps({"ra": row["ra"], "phc": row["phc"], "det_time": str(row["det_time"])}) for row in rows]
    assert rate.size == pytest.approx(sum(map(len, texts)) / len(texts), rel=0.15)


def test_groups_of_columns_and_expressions() -> None:
    grouped = "SELECT {}, window_start, count(*) AS n FROM photons [TUMBLE 1 SECOND] GROUP BY {}"
    by_column = bind("a", grouped.format("dx % 2 AS odd, phc", "dx % 2, phc"), "p", {"photons": PHOTONS})
    rows = SAMPLE.rows.num_rows
    assert RATES.rate(by_column.properties).frequency == pytest.approx(rows / SAMPLE.seconds), "each row is a group"
    by_phc = bind("b", grouped.format("phc", "phc"), "p", {"photons": PHOTONS})
    steps = {(row["phc"], int(row["det_time"].timestamp())) for row in SAMPLE.rows.to_pylist()}
    assert RATES.rate(by_phc.properties).frequency == pytest.approx(len(steps) / SAMPLE.seconds)
