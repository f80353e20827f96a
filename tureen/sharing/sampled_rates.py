"""Rates of streams, estimated from a sample of their newest rows."""

from __future__ import annotations

from tureen.sharing.measured_rates import ROW_BYTES, StreamSample, window_count
from tureen.sharing.network_cost import Rate
from tureen.sharing.partial_rows import key_names
from tureen.sharing.properties import Properties

ID_BYTES = 8
"""The size of the tuple id that travels with each row."""

PARTIAL_BYTES = 12
"""The size of a partial aggregate, and of the time of its row."""

GUESSED_SHARE = 0.1
"""The share of rows that satisfy a factor of which the sample tells nothing, or that remain if they are aggregated."""


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
        """The rate of a stream. Of the rows of the sample, those of one pane and group are taken to arrive together."""
        rate = self._rates.get(properties)
        if rate is None:
            rate = self._rates[properties] = self._measure(properties)
        return rate

    def _measure(self, properties: Properties) -> Rate:
        sample, aggregation = self._sample, properties.aggregation
        selected = sample.selected(properties.clause)
        count = int(selected.sum())
        share = (count + GUESSED_SHARE ** len(properties.clause)) / (sample.rows.num_rows + 1)
        columns, computed = properties.columns, 0
        if aggregation is not None:
            rows = window_count(sample.times[selected], aggregation, sample.groups(properties)[selected])
            share *= rows / count if count else GUESSED_SHARE
            columns, computed = key_names(aggregation), 2 + len(aggregation.partials)
        size = ID_BYTES + ROW_BYTES + sum(sample.member_bytes[name] for name in columns) + PARTIAL_BYTES * computed
        return Rate(self._rows_per_second * share, size)
