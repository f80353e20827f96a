"""Simulated pages send the requests of pages, or as many of the cheapest kind."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

import tureen
from benchmarks import pages
from benchmarks.page_polls import Polling
from tests.service.running import run_server


@pytest.mark.parametrize("is_plain", [False, True])
def test_pages_poll_a_server(spark: SparkSession, tmp_path: Path, is_plain: bool) -> None:
    assert spark
    with tureen.open(tmp_path / "pot", mode="write") as soup, run_server(soup) as server:
        token = server.tokens["admin"]
        with tureen.connect(server.url, token) as client:
            client.create_stream("s", "a INT, ts TIMESTAMP", time="ts")
            handle = client.register("SELECT a FROM s").id
        polling = Polling(server.url, token, [handle], pages=3, seconds=0.5, is_plain=is_plain)
        with pages._pages(polling) as process:
            assert process.stdout is not None
            # An overview, an answer, a list of streams and a status.
            assert int(process.stdout.readline()) >= 4
        text = metrics_of(server.url, token)
        assert ('route="/healthz"' in text) == is_plain
        assert ('route="/v1/overview"' in text) != is_plain


def metrics_of(url: str, token: str) -> str:
    return httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}).text
