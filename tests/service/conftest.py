"""One real server, on real Spark, for all tests of the service."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import httpx
import pytest
from pyspark.sql import SparkSession

import tureen
from tests.service.running import Running, running


@pytest.fixture(scope="session")
def served(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that is ready."""
    assert spark
    with tureen.open(tmp_path_factory.mktemp("service") / "pot", mode="write") as soup:
        soup.start(wait=120)
        with running(soup, heartbeat=0.2) as found:
            yield found


@pytest.fixture
def http(served: Running) -> Iterator[httpx.Client]:
    """An admin's client."""
    with served.client() as client:
        yield client


_numbers = itertools.count()


@pytest.fixture
def stream(http: httpx.Client) -> str:
    """A new stream of its own."""
    name = f"s{next(_numbers)}"
    body = {"name": name, "schema": "id BIGINT, sym STRING, price DOUBLE, ts TIMESTAMP", "time": "ts"}
    assert http.post("/v1/streams", json=body).status_code == 201
    return name


@pytest.fixture
def push(http: httpx.Client, stream: str) -> Callable[..., str]:
    """Push rows to the stream, given as (id, sym, price); returns their position."""

    def pushed(*rows: tuple[int, str | None, float | None]) -> str:
        body = [{"id": number, "sym": sym, "price": price, "ts": "2026-01-01T00:00:00Z"} for number, sym, price in rows]
        answer = http.post(f"/v1/streams/{stream}/rows", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["position"])

    return pushed
