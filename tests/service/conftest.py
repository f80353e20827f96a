"""A server on real Spark, shared by all tests of the service."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import httpx
import pytest
from pyspark.sql import SparkSession

import tureen
from tests.service.running import RunningServer, run_server


@pytest.fixture(scope="session")
def served(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose engine is ready."""
    assert spark
    with tureen.open(tmp_path_factory.mktemp("service") / "pot", mode="write") as soup:
        soup.start(wait=120)
        with run_server(soup, heartbeat=0.2) as server:
            yield server


@pytest.fixture
def http(served: RunningServer) -> Iterator[httpx.Client]:
    """An HTTP client with an admin token."""
    with served.client() as client:
        yield client


_numbers = itertools.count()


@pytest.fixture
def stream(http: httpx.Client) -> str:
    """A new stream."""
    name = f"s{next(_numbers)}"
    body = {"name": name, "schema": "id BIGINT, sym STRING, price DOUBLE, ts TIMESTAMP", "time": "ts"}
    assert http.post("/v1/streams", json=body).status_code == 201
    return name


@pytest.fixture
def push(http: httpx.Client, stream: str) -> Callable[..., str]:
    """A function that pushes rows (id, sym, price) to the stream and returns their position."""

    def push_rows(*rows: tuple[int, str | None, float | None]) -> str:
        body = [{"id": number, "sym": sym, "price": price, "ts": "2026-01-01T00:00:00Z"} for number, sym, price in rows]
        response = http.post(f"/v1/streams/{stream}/rows", json=body)
        assert response.status_code == 202, response.text
        return str(response.json()["position"])

    return push_rows
