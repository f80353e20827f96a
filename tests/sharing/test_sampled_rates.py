"""Rates of selections, from a sample of a stream."""

from __future__ import annotations

import pytest

from tureen.sharing.measured_rates import StreamSample
from tureen.sharing.photon_sample import PHOTONS, photon_sample
from tureen.sharing.properties import Properties
from tureen.sharing.sampled_rates import SampledRates
from tureen.sharing.simulation import bind


def rows(condition: str) -> Properties:
    return bind("q", f"SELECT en FROM photons WHERE {condition}", "A", {"photons": PHOTONS}).properties


def test_rates_follow_the_sample() -> None:
    sample = photon_sample(999, 3)
    rates = SampledRates(sample, 50.0)
    whole = rates.rate(Properties("photons", (), frozenset(PHOTONS.names)))
    half = rates.rate(rows("ra < 180"))
    assert whole.frequency == pytest.approx(50.0)
    assert half.frequency == pytest.approx(50.0 * sample.selected(rows("ra < 180").clause).mean(), rel=0.01)
    assert half.size < whole.size
    assert rates.rate(rows("ra < 180")) is half


@pytest.mark.parametrize("count", [0, 100])
def test_nothing_is_taken_for_empty(count: int) -> None:
    sample = StreamSample(PHOTONS, photon_sample(100, 3).rows.slice(0, count))
    rates = SampledRates(sample, 10.0)
    never, less = rates.rate(rows("ra > 999")), rates.rate(rows("ra > 999 AND dec > 999"))
    assert 0 < less.frequency < never.frequency < rates.rate(Properties("photons", (), frozenset())).frequency
