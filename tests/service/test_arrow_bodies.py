"""Arrow bodies that are small when sent and large when decompressed are refused before decompression."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from tests.service.running import RunningServer, run_server
from tureen.errors import InvalidRows, TooLarge
from tureen.service.arrow_bodies import read_arrow

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def arrow_stream(table: pa.Table, codec: str | None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=100_000)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def dictionary_table(rows: int, text: str) -> pa.Table:
    indices = pa.repeat(pa.scalar(0, pa.int8()), rows)
    return pa.table({"id": np.arange(rows), "text": pa.DictionaryArray.from_arrays(indices, pa.array([text]))})


@cache
def zeros() -> pa.Table:
    return pa.table({"id": pa.repeat(0, 40_000_000)})


# Functions, because every process of the tests imports this module.
BOMBS = {
    "zstd": lambda: arrow_stream(zeros(), "zstd"),
    "lz4": lambda: arrow_stream(zeros(), "lz4"),
    "dictionary": lambda: arrow_stream(dictionary_table(100_000, "x" * 100_000), None),
    "compressed dictionary": lambda: arrow_stream(dictionary_table(2_000_000, "x" * 100_000), "zstd"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_decompression_bomb_is_refused(served: RunningServer, name: str) -> None:
    body = BOMBS[name]()
    limits = {"max_unpacked_bytes": 100_000_000, "max_body_bytes": 10_000_000}
    with run_server(served.soup, **limits) as server, server.client() as http, server.client("other") as other:
        http.post("/v1/streams", json={"name": "unpacked", "schema": "id BIGINT, text STRING"})
        refused = http.post("/v1/streams/unpacked/rows", content=body, headers=ARROW)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large"), refused.text
        assert "more than 100,000,000 bytes" in refused.json()["error"]["message"]
        assert other.get("/v1/streams").status_code == 200


@pytest.mark.parametrize("codec", ["zstd", "lz4", None])
def test_bodies_within_the_limit_are_read(codec: str | None) -> None:
    table = pa.table({"id": range(250_000), "text": [f"text {number}" for number in range(250_000)]})
    assert read_arrow(arrow_stream(table, codec), 100_000_000).equals(table)
    with pytest.raises(TooLarge):
        read_arrow(arrow_stream(table, codec), 1_000_000)
    short = dictionary_table(1_000, "some text")
    assert read_arrow(arrow_stream(short, codec), 1_000_000).equals(short)
    empty = table.slice(0, 0)
    assert read_arrow(arrow_stream(empty, codec), 1_000).num_rows == 0


def test_nulls_in_dictionaries_are_read() -> None:
    indices = pa.array([0, None, 1], pa.int8())
    table = pa.table({"text": pa.DictionaryArray.from_arrays(indices, pa.array(["a", None]))})
    assert read_arrow(arrow_stream(table, "zstd"), 1_000).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("codec", ["zstd", None])
def test_damaged_bodies_raise_only_documented_errors(codec: str | None) -> None:
    table = pa.table({"id": range(100), "text": ["some text"] * 100})
    body = bytearray(arrow_stream(table, codec))
    for offset in range(0, len(body), 3):
        damaged = bytes(body[:offset]) + bytes([body[offset] ^ 0xFF]) + bytes(body[offset + 1 :])
        try:
            read_arrow(damaged, 1_000_000)
        except (InvalidRows, TooLarge):
            continue
    for end in range(0, len(body), 7):
        try:
            read_arrow(bytes(body[:end]), 1_000_000)
        except (InvalidRows, TooLarge):
            continue
