"""Rows of several blocks at once are those of one block after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from tureen.language import bind_query
from tureen.matching import Selector
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.stems.index import Block, index_block

SCHEMA = Schema.parse("k INT, s STRING, ts TIMESTAMP", "ts")


def block(seed: int, rows: int, *, indexed: bool = True) -> Block:
    """A block of random rows."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 50, rows).astype(np.int32)
    batch = pa.record_batch(
        [
            pa.array(numbers, mask=numbers % 11 == 0),
            pa.array([f"s{number % 4}" for number in numbers]),
            pa.array(np.arange(rows)).cast(pa.timestamp("us", "UTC")),
        ],
        schema=SCHEMA.stored,
    )
    return Block(batch, index_block(batch, SCHEMA.names) if indexed else None)


@pytest.mark.parametrize("condition", ["k < 3", "k < 3 AND s = 's1'", "k > 90", "k % 7 = 1 AND k < 40", "k IS NULL"])
@pytest.mark.parametrize("indexed", [True, False])
def test_rows_of_several_blocks(condition: str, indexed: bool) -> None:
    query = bind_query(f"SELECT k FROM t WHERE {condition}", lambda _: NamedRelation("t", SCHEMA))
    selector = Selector(query.stream.clause, SCHEMA)
    parts = [(block(1, 300), 0, 300), (block(2, 200, indexed=indexed), 20, 180), (block(3, 100), 100, 100)]
    rows, starts = selector.rows_of_blocks(parts)
    expected = [selector.rows(of_part, first, last).tolist() for of_part, first, last in parts]
    assert [rows[low:high].tolist() for low, high in pairwise(starts)] == expected
    assert rows.dtype == np.uint16
    nothing, only = selector.rows_of_blocks([])
    assert (len(nothing), only.tolist()) == (0, [0])
