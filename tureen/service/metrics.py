"""Prometheus metrics: sums over all streams, queries and principals, without labels that name any of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from tureen.position import PushPosition, parse_position
from tureen.pot.catalog import Catalog
from tureen.pot.status import count_failed
from tureen.pot.streams import taken_offsets

# Creation times of counters are of no use here and double the size of the response.
disable_created_metrics()  # type: ignore[no-untyped-call]

_INVOCATION_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_FRESHNESS_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5, 10, 30)

SAMPLE_INTERVAL = 0.05
"""The seconds between two pushes of a stream that are sampled for freshness."""

GAUGES: dict[str, tuple[str, str]] = {
    "tureen_tuples": ("rows", "Tuples in all streams."),
    "tureen_stored_bytes": ("bytes", "Bytes of all data runs."),
    "tureen_runs": ("runs", "Indexed runs."),
    "tureen_tail_runs": ("tail_runs", "Runs that are not indexed yet."),
    "tureen_tail_rows": ("tail_rows", "Tuples in runs that are not indexed yet."),
    "tureen_debts": ("debts", "Runs that owe cells of newer queries."),
    "tureen_rejected_rows": ("rejected", "Rejected rows that are kept."),
    "tureen_inbox_lag_bytes": ("lag_bytes", "Bytes of pushed rows that Spark has not read yet."),
}
"""The gauges that are sums over streams: the key of a stream's status, and the help text."""


class Metrics:
    """The counters and histograms of one server."""

    def __init__(self) -> None:
        """Start at zero, in a registry of their own."""
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "tureen_http_requests",
            "Requests, by method, route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.rows = Counter("tureen_pushed_rows", "Rows of acknowledged pushes.", registry=self.registry)
        self.rejected = Counter(
            "tureen_pushed_rows_rejected", "Rows of pushes that punctuations closed.", registry=self.registry
        )
        self.bytes = Counter("tureen_pushed_bytes", "Bytes of acknowledged pushes.", registry=self.registry)
        self.answered = Counter("tureen_answer_rows", "Rows of answers.", registry=self.registry)
        self.changes = Counter("tureen_changes", "Rows sent to followers.", registry=self.registry)
        self.invocations = Histogram(
            "tureen_invocation_seconds",
            "Seconds from a request to its answer.",
            buckets=_INVOCATION_BUCKETS,
            registry=self.registry,
        )
        self.freshness = Histogram(
            "tureen_freshness_seconds",
            "Seconds from a push to its commit.",
            buckets=_FRESHNESS_BUCKETS,
            registry=self.registry,
        )

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class StatusCollector(Collector):
    """Metrics that are computed from the pot's status at each scrape."""

    def __init__(
        self,
        status: Callable[[], Mapping[str, Any]],
        batches: Callable[[], list[dict[str, float]]],
        catalog: Catalog,
        counts: Callable[[], Mapping[str, float]],
        punctuations: Callable[[], int],
    ) -> None:
        """Compute the gauges from these functions and this catalog."""
        self._status, self._batches, self._catalog, self._counts = status, batches, catalog, counts
        self._punctuations = punctuations

    def describe(self) -> Iterator[Metric]:
        """No metrics, so that registering the collector does not read the status."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        status = self._status()
        streams = status["streams"].values()
        for name, (key, help_text) in GAUGES.items():
            yield _gauge(name, help_text, sum(stream[key] for stream in streams))
        yield _gauge("tureen_streams", "Streams.", len(streams))
        yield _gauge("tureen_tables", "Tables.", len(status["tables"]))
        for key, help_text in FUNCTION_GAUGES.items():
            yield _gauge(f"tureen_function_{key}", help_text, status["functions"][key])
        with self._catalog.read() as tx:
            failed = count_failed(tx)
        queries = GaugeMetricFamily("tureen_queries", "Standing queries, by state.", labels=["state"])
        queries.add_metric(["standing"], status["queries"] - failed)
        queries.add_metric(["failed"], failed)
        yield queries
        yield _gauge("tureen_clauses", "Distinct clauses of queries.", status["clauses"])
        up = status["engine"] == "running" and status["error"] is None
        yield _gauge("tureen_ready", "1 if rows are read and queries are answered, otherwise 0.", float(up))
        batches = self._batches()
        longest = max((batch["seconds"] for batch in batches), default=0.0)
        yield _gauge("tureen_spark_batch_seconds", "Seconds of the longest recent micro-batch.", longest)
        rows = sum(batch["rows"] for batch in batches)
        yield _gauge("tureen_spark_batch_rows", "Rows of the recent micro-batches.", rows)
        for name, value in self._counts().items():
            yield _gauge(name, COUNTS[name], value)
        yield CounterMetricFamily("tureen_punctuations", "Punctuations of streams.", value=self._punctuations())


FUNCTION_GAUGES = {
    "calls": "Calls of user functions by this process.",
    "seconds": "Seconds of the calls of user functions.",
    "errors": "Evaluations that user functions stopped.",
}

COUNTS = {
    "tureen_followers": "Connections that follow changes or wait for a position.",
    "tureen_invocations_running": "Invocations in progress.",
    "tureen_oldest_push_seconds": "Seconds since the oldest sampled push that is not committed yet.",
    "tureen_links": "Links over which tuples of other servers are received.",
    "tureen_links_aggregated": "Links over which partial aggregates are received instead of tuples.",
    "tureen_links_away": "Links whose peers are away or refuse to send.",
    "tureen_link_rows": "Rows that were received from other servers.",
    "tureen_link_bytes": "Bytes that were received from other servers.",
    "tureen_flows_sent": "Flows that other servers receive now.",
    "tureen_flow_rows": "Rows that were sent to other servers.",
    "tureen_flow_bytes": "Bytes that were sent to other servers.",
    "tureen_flows_refused": "Flows that were refused because a peer may not have more.",
    "tureen_flows_kept": "Flows of other servers' streams that are received for peers.",
    "tureen_join_operators": "Joins whose new tuples are joined once for all followers.",
    "tureen_join_routed_tuples": "New tuples that these have routed.",
    "tureen_join_visits": "Visits of a tuple to the tuples or a condition of another input.",
    "tureen_join_matches": "Tuples that these visits returned.",
    "tureen_join_order_changes": "Changes of the order of visits.",
    "tureen_join_state_tuples": "Tuples in the state of joins whose streams have punctuations.",
    "tureen_join_state_purged": "Tuples that punctuations removed from the state.",
    "tureen_join_state_discarded": "New tuples that were joined and not kept, because their keys were closed.",
    "tureen_join_state_invalidated": "Tuples that are in no window any more.",
    "tureen_join_state_dropped": "New tuples that were not joined, because no result can contain them.",
    "tureen_join_state_punctuations": "Punctuations that these joins have read.",
    "tureen_join_propagated_punctuations": "Punctuations that followers of joins have got.",
    "tureen_join_trees": "Joins whose plan has intermediate results.",
    "tureen_join_plan_tuples": "Tuples and intermediate results that these hold.",
    "tureen_join_intermediate_results": "Intermediate results that they have made.",
    "tureen_join_shared_nodes": "Sub-joins of these that several joins have in common.",
    "tureen_join_suspended": "New tuples that they have suspended because these had no partners.",
    "tureen_join_resumed": "Suspended tuples that a partner has resumed.",
    "tureen_join_blacklisted": "Tuples that are suspended now.",
    "tureen_join_plan_purged": "Tuples that these have forgotten because of punctuations.",
    "tureen_join_blacklist_purged": "Suspended ones among them: nothing can resume them.",
}


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, value=value)


class FreshnessSampler:
    """Measures the time from a push to its commit for a sample of pushes."""

    def __init__(self, catalog: Catalog, histogram: Histogram) -> None:
        """Read commits from a catalog and observe times in a histogram."""
        self._catalog, self._histogram = catalog, histogram
        self._pending: dict[int, deque[tuple[int, float]]] = {}

    def record_push(self, position: str) -> None:
        """Record when a push was acknowledged."""
        pushed, now = parse_position(position), time.monotonic()
        if isinstance(pushed, PushPosition):
            pending = self._pending.setdefault(pushed.stream, deque(maxlen=10_000))
            if not pending or now - pending[-1][1] >= SAMPLE_INTERVAL:
                pending.append((pushed.end, now))

    def observe_commits(self) -> None:
        """Observe the pushes that are committed now."""
        now = time.monotonic()
        with self._catalog.read() as tx:
            taken = taken_offsets(tx)
        for stream, pending in list(self._pending.items()):
            if stream not in taken:
                del self._pending[stream]
            while pending and pending[0][0] <= taken.get(stream, 0):
                self._histogram.observe(now - pending.popleft()[1])

    @property
    def has_pending(self) -> bool:
        """Whether any sampled push is not committed yet."""
        return any(self._pending.values())

    @property
    def oldest_seconds(self) -> float:
        """The seconds since the oldest pending push."""
        now = time.monotonic()
        return max((now - pending[0][1] for pending in self._pending.values() if pending), default=0.0)
