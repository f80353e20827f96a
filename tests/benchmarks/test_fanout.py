"""Followers over many connections at a small size: each gets every row once, also after it did not read for a while."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import tureen
from benchmarks import fanout
from benchmarks.fanout_followers import FEED_ROWS
from benchmarks.fanout_peer import handle_of
from tests.service.running import run_server


def test_followers_that_stop_reading_and_a_feed(spark: SparkSession, tmp_path: Path) -> None:
    assert spark
    with tureen.open(tmp_path / "pot", mode="write") as soup, run_server(soup, max_followers=30) as server:
        token = server.tokens["admin"]
        with tureen.connect(server.url, token) as client:
            for name in ("s", "t"):
                client.create_stream(name, fanout.SCHEMA, time="ts")
            texts = [f"SELECT q, n, filler FROM s WHERE q = {q}" for q in range(4)]
            handles = [client.register(text, materialize=False).id for text in texts]
            for q in range(FEED_ROWS):
                client.register(f"SELECT q, n, filler FROM t WHERE q = {q}", materialize=False)
            client.register_many("SELECT q, n, filler FROM t WHERE q = :q", [{"q": q} for q in range(FEED_ROWS)])
        request: dict[str, Any] = {"url": server.url, "token": token, "handles": handles, "rounds": 2}
        request |= {"server": os.getpid()}
        stalled = {"stalled": 4, "bulk": True, "stalled_rows": 400, "stalled_bytes": 10_000}
        results = fanout._run({**request, **stalled, "followers": 20}, None)
        assert results["caught_up"] == 4 * (100 + 3)
        assert len(results["last"]) == 2
        assert len(fanout._run({**request, "feed": True, "followers": 2}, None)["last"]) == 2


def test_the_plain_server_sends_the_same_rows() -> None:
    with fanout.plain_server() as (process, url):
        handles = [handle_of(number) for number in range(3)]
        request: dict[str, Any] = {"url": url, "token": "", "handles": handles, "rounds": 2, "server": process.pid}
        results = fanout._run({**request, "followers": 7}, process.pid)
        assert len(results["last"]) == 2
