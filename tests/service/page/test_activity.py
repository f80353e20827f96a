"""Activity: rates and quantiles between two samples, and what callers see of them."""

from __future__ import annotations

import pytest

from tests.service.running import RunningServer, run_server
from tureen.service.metrics import Metrics
from tureen.service.page.activity import KEPT_SAMPLES, ActivityHistory, quantile
from tureen.service.routes.page import ADMIN_ACTIVITY


def test_samples_have_the_rates_since_the_last_one() -> None:
    now, metrics = [100.0], Metrics()
    history = ActivityHistory(metrics, lambda: 3, lambda: now[0])
    metrics.rows.inc(50)
    metrics.changes.inc(5)
    for seconds in (0.0015, 0.0015, 0.03):
        metrics.invocations.observe(seconds)
    now[0] = 102.0
    history.sample()
    now[0] = 104.0
    history.sample()
    busy, idle = history.samples()
    assert (busy.at, busy.rows_per_second, busy.changes_per_second) == (102.0, 25.0, 2.5)
    assert busy.invocations_per_second == 1.5
    assert busy.invocation_p50 is not None
    assert busy.invocation_p99 is not None
    assert 0.001 < busy.invocation_p50 <= 0.002
    assert 0.02 < busy.invocation_p99 <= 0.05
    assert (busy.freshness_p50, busy.followers) == (None, 3)
    assert busy.memory_bytes > 1_000_000
    assert (idle.rows_per_second, idle.invocation_p99) == (0.0, None)
    assert [sample.at for sample in history.samples(after=102.0)] == [104.0]


def test_only_the_last_minutes_are_kept() -> None:
    now = [0.0]
    history = ActivityHistory(Metrics(), lambda: 0, lambda: now[0])
    for number in range(KEPT_SAMPLES + 10):
        now[0] = number + 1.0
        history.sample()
    kept = history.samples()
    assert (len(kept), kept[0].at) == (KEPT_SAMPLES, 11.0)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.25, 1.5), (0.5, 2.0), (0.9, 3.6), (1.0, 4.0)])
def test_quantiles_are_interpolated(share: float, expected: float) -> None:
    buckets = [(1.0, 0.0), (2.0, 5.0), (4.0, 10.0), (float("inf"), 10.0)]
    assert quantile(buckets, share) == pytest.approx(expected)


def test_quantiles_above_the_last_bound_are_the_bound() -> None:
    assert quantile([(1.0, 0.0), (float("inf"), 4.0)], 0.5) == 1.0
    assert quantile([(1.0, 0.0), (float("inf"), 0.0)], 0.5) is None


def test_readers_do_not_see_the_activity_of_others(served: RunningServer) -> None:
    served.service.activity.sample()
    with served.client("admin") as admin, served.client("read") as reader:
        full, own = (client.get("/v1/overview").json() for client in (admin, reader))
    assert full["samples"][-1].keys() >= ADMIN_ACTIVITY
    assert ADMIN_ACTIVITY.isdisjoint(own["samples"][-1])
    assert own["batches"] == []
    assert own["samples"][-1]["rows_per_second"] == full["samples"][-1]["rows_per_second"]


def test_problems_come_with_a_link(served: RunningServer) -> None:
    with served.client() as client:
        client.post("/v1/streams", json={"name": "troubled", "schema": "a INT, b INT", "unique": ["a"]})
        client.post("/v1/streams/troubled/rows", json=[{"a": 1, "b": 0}, {"a": 1, "b": 1}])
        query = client.post("/v1/queries", json={"sql": "SELECT a FROM troubled WHERE 1 / b > 0"}).json()
        client.get(f"/v1/queries/{query['id']}/result")
        with run_server(served.soup) as fresh, fresh.client() as other:
            # The other server may know a status of before.
            problems = other.get("/v1/overview").json()["problems"]
        client.delete("/v1/streams/troubled")
    assert {"text": "stream troubled: 1 row was rejected", "link": "#/streams/troubled"} in problems
