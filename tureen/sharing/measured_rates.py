"""Rates of streams, measured by evaluating selections on a sample of the input stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.abstract_clock import instants
from tureen.matching import holds
from tureen.predicate import AllOf, Clause
from tureen.schema import Schema
from tureen.sharing.network_cost import Rate
from tureen.sharing.properties import Aggregation, Properties
from tureen.stems.index import BLOCK_ROWS, Block

ROW_BYTES = 2
"""Bytes of a JSON row without its values: the braces."""

MEMBER_BYTES = 4
"""Bytes of a JSON member without its name and its value: two quotation marks, a colon and a comma."""

COMPUTED_BYTES = 24
"""Bytes of a member with a computed value."""


@dataclass(frozen=True)
class StreamSample:
    """Rows of a stream, in order of time."""

    schema: Schema
    rows: pa.Table

    @cached_property
    def blocks(self) -> list[Block]:
        """The rows as blocks."""
        return [Block(batch) for batch in self.rows.combine_chunks().to_batches(max_chunksize=BLOCK_ROWS)]

    @cached_property
    def times(self) -> npt.NDArray[np.int64]:
        """The time of each row, in microseconds."""
        if self.schema.has_abstract_clock:
            column = instants(self.rows[self.schema.time].combine_chunks())
        else:
            column = self.rows[self.schema.time_column].combine_chunks()
        times: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return times

    @cached_property
    def seconds(self) -> float:
        """The time that the sample covers."""
        return float(max(self.times[-1] - self.times[0], 1)) / 1e6 if len(self.times) else 1.0

    @cached_property
    def member_bytes(self) -> dict[str, float]:
        """The average size of each column's member in a JSON row."""
        return {
            name: len(name) + MEMBER_BYTES + (pc.mean(pc.binary_length(_texts(self.rows[name]))).as_py() or 0.0)
            for name in self.schema.names
        }

    def selected(self, clause: Clause) -> npt.NDArray[np.bool_]:
        """Which rows satisfy a clause."""
        if not clause:
            return np.ones(self.rows.num_rows, np.bool_)
        return np.concatenate([np.empty(0, np.bool_), *(holds(AllOf(clause), block) for block in self.blocks)])

    def groups(self, properties: Properties) -> npt.NDArray[np.int64]:
        """A number for each row, equal for rows of the same group; a key that is an expression makes each row one."""
        names = [key.strip('"') for key in (properties.aggregation.keys if properties.aggregation else ())]
        if not set(names) <= set(self.schema.names):
            return np.arange(self.rows.num_rows)
        codes = np.zeros(self.rows.num_rows, np.int64)
        for name in names:
            encoded = self.rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
            codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy(zero_copy_only=False)
        return np.unique(codes, return_inverse=True)[1]


class MeasuredRates:
    """The rates of streams whose inputs have samples."""

    def __init__(self, samples: Mapping[str, StreamSample]) -> None:
        self._samples = samples
        self._rates: dict[Properties, Rate] = {}

    def rate(self, properties: Properties) -> Rate:
        """The rate of a stream: its rows and bytes in the sample, per second."""
        rate = self._rates.get(properties)
        if rate is None:
            rate = self._rates[properties] = self._measure(properties)
        return rate

    def _measure(self, properties: Properties) -> Rate:
        sample = self._samples[properties.stream]
        selected = sample.selected(properties.clause)
        if properties.aggregation is None:
            size = ROW_BYTES + sum(sample.member_bytes[name] for name in properties.columns)
            return Rate(int(selected.sum()) / sample.seconds, size)
        windows = window_count(sample.times[selected], properties.aggregation, sample.groups(properties)[selected])
        return Rate(windows / sample.seconds, ROW_BYTES + COMPUTED_BYTES * properties.aggregation.width)


def window_count(
    times: npt.NDArray[np.int64], aggregation: Aggregation, groups: npt.NDArray[np.int64] | None = None
) -> int:
    """How many windows and groups have a row.

    >>> from tureen.window import Steps
    >>> hops = Aggregation(Steps(20, 10), (), frozenset())
    >>> window_count(np.array([0, 5, 42]), hops), window_count(np.array([0, 5, 42]), hops, np.array([0, 1, 0]))
    (4, 6)
    """
    steps = aggregation.steps
    members = np.zeros(len(times), np.int64) if groups is None else groups
    last = (times - steps.origin) // steps.slide
    pairs = [np.empty((0, 2), np.int64)]
    for back in range(-(-steps.width // steps.slide)):
        starts = last - back
        inside = times < starts * steps.slide + steps.origin + steps.width
        pairs.append(np.column_stack([starts[inside], members[inside]]))
    return len(np.unique(np.concatenate(pairs), axis=0))


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())
