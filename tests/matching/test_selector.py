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
from tureen.stems.index import AddressTable, Block, index_block
from tureen.stems.run import OpenRun

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
@pytest.mark.parametrize(("first", "last"), [(0, 600), (320, 480), (299, 301), (500, 600), (0, 1)])
def test_rows_of_a_run(condition: str, indexed: bool, first: int, last: int) -> None:
    query = bind_query(f"SELECT k FROM t WHERE {condition}", lambda _: NamedRelation("t", SCHEMA))
    selector = Selector(query.stream.clause, SCHEMA)
    blocks = [block(1, 300), block(2, 200, indexed=indexed), block(3, 100)]
    run = OpenRun(blocks, [299, 199, 99], SCHEMA.time_column)
    expected: list[list[int]] = [[], [], []]
    for number, low, high in run.parts(first, last):
        expected[number] = selector.rows(blocks[number], low, high).tolist()
    # The second time, the blocks' tables are known.
    for _ in range(2):
        rows, starts = selector.rows_of_run(run, first, last)
        assert [rows[low:high].tolist() for low, high in pairwise(starts)] == expected
        assert rows.dtype == np.uint16


def test_tables_of_a_run_are_of_the_blocks_that_were_asked_for() -> None:
    class Unread(Block):
        def indexed_table(self, names: tuple[str, ...]) -> AddressTable | None:
            assert self is not run.blocks[2], "a block outside of the interval was read"
            return super().indexed_table(names)

    blocks = [block(seed, 100) for seed in range(3)]
    run = OpenRun([Unread(each.columns, each.index) for each in blocks], [99, 99, 99], SCHEMA.time_column)
    first = run.index_tables(("k",), 20, 100)
    both = run.index_tables(("k",), 99, 200)
    assert first is not None
    assert both is not None
    assert [table is not None for table in first.owners] == [True, False, False]
    assert [table is not None for table in both.owners] == [True, True, False]
    assert both.lines[:, 1:].tolist() == [[0, 100], [100, 100], [200, 100]]
    assert both.owners[0] is first.owners[0]
    assert run.index_tables(("k",), 0, 200) is both
