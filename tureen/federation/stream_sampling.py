"""Samples of streams: the newest rows, from which peers estimate how much a selection transports."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import TureenError, Unreachable
from tureen.federation.askers import Askers
from tureen.federation.neighbour import SAMPLE_PATH
from tureen.federation.peer_messages import MAX_SAMPLE_BYTES, read_sample, sample_json
from tureen.pot.streams import Stream
from tureen.results.answer import Answer
from tureen.schema import Kind, Schema
from tureen.sharing.measured_rates import StreamSample
from tureen.sharing.sampled_rates import SampledRates

SAMPLE_ROWS = 512

SAMPLE_SECONDS = 300.0
"""How long a sample is used."""

UNKNOWN_RATE = 1.0
"""The assumed rows per second of a stream without a sample."""


class StreamSampling:
    """Samples of the streams of this server and of others, which are renewed at intervals."""

    def __init__(
        self,
        name: str,
        answer_once: Callable[[str], Answer],
        senders: Callable[[Stream], list[str]],
        ask: Callable[[str, str, Any, Askers], Any],
    ) -> None:
        """Read streams with `answer_once`, or ask the peers that share them; `name` is that of this server."""
        self._name, self._answer_once, self._senders, self._ask_peer = name, answer_once, senders, ask
        self._known: dict[int, tuple[float, dict[str, Any]]] = {}
        self._rates: dict[int, tuple[dict[str, Any], SampledRates]] = {}
        """What was measured on each sample: every plan asks for the rates of all flows."""
        self._lock = threading.Lock()

    def rates(self, stream: Stream, asked: Askers) -> SampledRates:
        """The rates of selections of a stream; those in `asked` wait for them."""
        try:
            sample = self.sample(stream, asked)
            known = self._rates.get(stream.id)
            if known is not None and known[0] is sample:
                return known[1]
            rows, rate = read_sample(sample, stream.visible)
        except TureenError:
            return SampledRates(StreamSample(stream.visible, stream.visible.arrow.empty_table()), UNKNOWN_RATE)
        rates = SampledRates(StreamSample(stream.visible, rows), rate)
        self._rates[stream.id] = sample, rates
        return rates

    def sample(self, stream: Stream, asked: Askers) -> dict[str, Any]:
        """The sample of a stream, as peers send it to each other."""
        with self._lock:
            known = self._known.get(stream.id)
        if known is not None and time.monotonic() - known[0] < SAMPLE_SECONDS:
            return known[1]
        sample = self._read(stream) if stream.home is None else self._ask(stream, asked)
        with self._lock:
            self._known[stream.id] = time.monotonic(), sample
        return sample

    def _read(self, stream: Stream) -> dict[str, Any]:
        name = stream.name.replace("`", "``")
        rows = self._answer_once(f"SELECT * FROM `{name}` [ROWS {SAMPLE_ROWS}]").table
        while rows.nbytes > MAX_SAMPLE_BYTES and len(rows) > 1:
            rows = rows.slice(len(rows) // 2)
        return sample_json(rows, _rows_per_second(stream.visible, rows))

    def _ask(self, stream: Stream, asked: Askers) -> dict[str, Any]:
        error: TureenError | None = None
        body = {"origin": stream.origin, "asked": [*asked, self._name]}
        for sender in self._senders(stream):
            if sender in asked:
                continue
            try:
                sample: dict[str, Any] = self._ask_peer(sender, SAMPLE_PATH, body, asked)
                read_sample(sample, stream.visible)
            except TureenError as failure:
                error = failure
            else:
                return sample
        raise error or Unreachable(f"no peer has a sample of stream '{stream.name}'")


def _rows_per_second(schema: Schema, rows: pa.Table) -> float:
    """How many rows arrive, by the times of a sample."""
    column = None if schema.time is None else schema.find(schema.time)
    if column is None or len(rows) < 2:
        return UNKNOWN_RATE
    times = rows[column.name]
    seconds = 1e-6 if column.type.kind is Kind.TIMESTAMP else 1.0
    numbers = pc.cast(times.cast(pa.int64()) if column.type.kind is Kind.TIMESTAMP else times, pa.float64())
    span = (pc.max(numbers).as_py() - pc.min(numbers).as_py()) * seconds
    return min(len(rows) / span, 1e9) if span > 0 else UNKNOWN_RATE
