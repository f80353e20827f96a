"""Rates of streams, estimated from a sample of their newest rows."""

from __future__ import annotations

from tureen.sharing.measured_rates import ROW_BYTES, StreamSample
from tureen.sharing.network_cost import Rate
from tureen.sharing.properties import Properties

ID_BYTES = 8
"""The size of the tuple id that travels with each row."""

GUESSED_SHARE = 0.1
"""The share of rows that satisfy a factor of which the sample tells nothing."""


class SampledRates:
    """The rates of selections of one stream.

    A selection without a row in the sample is not taken for empty: the sample counts as if it had one row more, of
    which each factor selects a part.
    """

    def __init__(self, sample: StreamSample, rows_per_second: float) -> None:
        """Measure on a sample of a stream that has that rate."""
        self._sample, self._rows_per_second = sample, rows_per_second
        self._rates: dict[Properties, Rate] = {}

    def rate(self, properties: Properties) -> Rate:
        """The rate of a stream that is not aggregated."""
        rate = self._rates.get(properties)
        if rate is None:
            rate = self._rates[properties] = self._measure(properties)
        return rate

    def _measure(self, properties: Properties) -> Rate:
        selected = int(self._sample.selected(properties.clause).sum())
        share = (selected + GUESSED_SHARE ** len(properties.clause)) / (self._sample.rows.num_rows + 1)
        size = ID_BYTES + ROW_BYTES + sum(self._sample.member_bytes[name] for name in properties.columns)
        return Rate(self._rows_per_second * share, size)
