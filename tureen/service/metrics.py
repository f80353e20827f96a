"""Prometheus metrics: sums over all streams, queries and principals, so that none of them shows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from tureen.position import PushPosition, parse_position
from tureen.pot.catalog import Catalog
from tureen.pot.status import count_failed
from tureen.pot.streams import list_streams

# When a counter began is of no use here, and doubles what is sent.
disable_created_metrics()  # type: ignore[no-untyped-call]

_QUICK = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_FRESH = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5, 10, 30)

SAMPLE_EVERY = 0.05
"""A stream's pushes are sampled for their freshness, this many seconds apart."""

GAUGES: dict[str, tuple[str, str]] = {
    "tureen_tuples": ("rows", "Tuples in all streams."),
    "tureen_stored_bytes": ("bytes", "Bytes of all data runs."),
    "tureen_runs": ("runs", "Indexed runs."),
    "tureen_tail_runs": ("tail_runs", "Runs that are not indexed yet."),
    "tureen_tail_rows": ("tail_rows", "Tuples in runs that are not indexed yet."),
    "tureen_debts": ("debts", "Runs that owe cells to newer queries."),
    "tureen_rejected_rows": ("rejected", "Rows that could not be taken and are kept to be read."),
    "tureen_inbox_lag_bytes": ("lag_bytes", "Bytes of pushed rows that are not taken up yet."),
}
"""The gauges that are sums over streams: the key of a stream's status, and what it means."""


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        """Begin at zero, in a registry of their own."""
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "tureen_http_requests",
            "Requests, by route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.rows = Counter("tureen_pushed_rows", "Rows that were pushed and acknowledged.", registry=self.registry)
        self.bytes = Counter("tureen_pushed_bytes", "Bytes of bodies with pushed rows.", registry=self.registry)
        self.answered = Counter("tureen_answer_rows", "Rows of answers.", registry=self.registry)
        self.changes = Counter("tureen_changes", "Rows told to followers.", registry=self.registry)
        self.invocations = Histogram(
            "tureen_invocation_seconds", "From a request to its answer.", buckets=_QUICK, registry=self.registry
        )
        self.freshness = Histogram(
            "tureen_freshness_seconds", "From a push to its commit.", buckets=_FRESH, registry=self.registry
        )

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)


class Gauges(Collector):
    """What is looked at when somebody asks: the pot's status, summed up."""

    def __init__(
        self,
        status: Callable[[], Mapping[str, Any]],
        batches: Callable[[], list[dict[str, float]]],
        catalog: Catalog,
        counts: Callable[[], Mapping[str, float]],
    ) -> None:
        """Ask these."""
        self._status, self._batches, self._catalog, self._counts = status, batches, catalog, counts

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering it does not ask the pot."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Sums over all streams."""
        status = self._status()
        streams = status["streams"].values()
        for name, (key, said) in GAUGES.items():
            yield _gauge(name, said, sum(stream[key] for stream in streams))
        yield _gauge("tureen_streams", "Streams.", len(streams))
        yield _gauge("tureen_tables", "Tables.", len(status["tables"]))
        with self._catalog.read() as tx:
            failed = count_failed(tx)
        queries = GaugeMetricFamily("tureen_queries", "Standing queries, by state.", labels=["state"])
        queries.add_metric(["standing"], status["queries"] - failed)
        queries.add_metric(["failed"], failed)
        yield queries
        yield _gauge("tureen_clauses", "Distinct conditions of queries.", status["clauses"])
        up = status["engine"] == "running" and status["error"] is None
        yield _gauge("tureen_ready", "1 where rows are taken up and answered.", float(up))
        batches = self._batches()
        longest = max((one["seconds"] for one in batches), default=0.0)
        yield _gauge("tureen_spark_batch_seconds", "The longest of the last micro-batches.", longest)
        rows = sum(one["rows"] for one in batches)
        yield _gauge("tureen_spark_batch_rows", "The rows of the last micro-batches.", rows)
        for name, value in self._counts().items():
            yield _gauge(name, COUNTS[name], value)


COUNTS = {
    "tureen_followers": "Connections that follow changes or wait.",
    "tureen_invocations_running": "Invocations that are being answered.",
    "tureen_oldest_push_seconds": "For how long the oldest sampled push has been waiting to be taken up.",
}


def _gauge(name: str, said: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, said, value=value)


class Freshness:
    """How long pushes take until they are in: a sample of them is watched."""

    def __init__(self, catalog: Catalog, histogram: Histogram) -> None:
        """Look at that catalog, and count into that histogram."""
        self._catalog, self._histogram = catalog, histogram
        self._waiting: dict[int, deque[tuple[int, float]]] = {}

    def pushed(self, position: str) -> None:
        """Note when a push was acknowledged."""
        at, now = parse_position(position), time.monotonic()
        if isinstance(at, PushPosition):
            waiting = self._waiting.setdefault(at.stream, deque(maxlen=10_000))
            if not waiting or now - waiting[-1][1] >= SAMPLE_EVERY:
                waiting.append((at.end, now))

    def committed(self) -> None:
        """See which of the noted pushes are in."""
        now = time.monotonic()
        with self._catalog.read() as tx:
            taken = {stream.id: stream.taken for stream in list_streams(tx)}
        for stream, waiting in list(self._waiting.items()):
            if stream not in taken:
                del self._waiting[stream]
            while waiting and waiting[0][0] <= taken.get(stream, 0):
                self._histogram.observe(now - waiting.popleft()[1])

    @property
    def waits(self) -> bool:
        """Whether any push is waited for."""
        return any(self._waiting.values())

    @property
    def oldest(self) -> float:
        """For how many seconds the oldest of them has been waiting."""
        now = time.monotonic()
        return max((now - waiting[0][1] for waiting in self._waiting.values() if waiting), default=0.0)
