"""Cells at full size: containers, files, buffers that are used again, and what happens when a clause raises."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tureen.errors import QueryFailed
from tureen.matching import Buffers, CellReader, RunCells, Tuning, match_block, select
from tureen.predicate import Clause, Compare, Interval, Opaque, Within
from tureen.queries import compile_clauses
from tureen.schema import Schema
from tureen.stems.cells.bitmaps import list_limit
from tureen.stems.index import BLOCK_ROWS, Block, index_block
from tureen.stems.stored import CELL_SCHEMA

SCHEMA = Schema.parse("a INT, b DOUBLE")


def make_block(rows: int, seed: int = 1) -> Block:
    rng = np.random.default_rng(seed)
    columns = [pa.array(rng.integers(0, 100, rows).astype(np.int32)), pa.array(rng.random(rows))]
    batch = pa.RecordBatch.from_arrays(columns, names=["a", "b"])
    return Block(batch, index_block(batch, ["a", "b"]))


def under(share: float) -> Clause:
    return (Within("b", (Interval(high=share, high_open=True),)),)


def test_a_full_block_has_lists_and_bitmaps_and_grows_its_output() -> None:
    block = make_block(BLOCK_ROWS)
    values = np.asarray(block.column("b"))
    shares = [0.0, 0.001, 0.01, 0.03, 0.04, *np.linspace(0.1, 1.0, 400)]
    run = compile_clauses(range(len(shares)), [under(share) for share in shares], SCHEMA)
    buffers = Buffers()
    for _ in range(2):
        cell = match_block(block, run, buffers)
        reader = CellReader(cell.batch, BLOCK_ROWS)
        assert cell.batch.nbytes > 2_000_000
        for number, share in enumerate(shares):
            expected = np.flatnonzero(values < share)
            assert np.array_equal(reader.rows_of(number), expected)
            assert np.array_equal(reader.rows_of(number, 1000, 60_001), expected[_between(expected)])
            assert np.array_equal(select(block, under(share)), expected)
            assert np.array_equal(select(block, under(share), last=60_001), expected[expected < 60_001])
            assert np.array_equal(select(block, under(share), first=1000), expected[expected >= 1000])


def _between(rows: np.ndarray) -> np.ndarray:
    return (rows >= 1000) & (rows < 60_001)


@pytest.mark.parametrize("rows", [1, 64, 1000, BLOCK_ROWS])
def test_the_container_follows_from_the_numbers_of_rows(rows: int) -> None:
    block = make_block(rows)
    values = np.sort(np.asarray(block.column("b")))
    limit = min(list_limit(rows), rows - 1)
    run = compile_clauses([1, 2], [under(values[limit - 1] if limit else 0.0), under(2.0)], SCHEMA)
    batch = match_block(block, run, Buffers()).batch
    for entry in batch.to_pylist():
        listed = entry["rows"] <= list_limit(rows)
        size = 2 * entry["rows"] if listed else -(-rows // 8)
        assert len(entry["ids"]) == -(-size // 8) * 8


def test_a_cell_is_written_from_the_buffers_and_read_from_the_file(tmp_path: Path) -> None:
    buffers = Buffers()
    blocks = [make_block(3000, seed) for seed in (1, 2)]
    run = compile_clauses([3, 5, 8], [under(0.5), under(0.0), under(0.01)], SCHEMA)
    with pa.OSFile(str(tmp_path / "cells"), "wb") as sink, pa.ipc.new_file(sink, CELL_SCHEMA) as writer:
        for block in blocks:
            writer.write_batch(match_block(block, run, buffers).batch)
    with pa.memory_map(str(tmp_path / "cells")) as source:
        opened = pa.ipc.open_file(source)
        for number, block in enumerate(blocks):
            reader = CellReader(opened.get_batch(number), block.rows)
            assert reader.clauses.tolist() == [3, 8]
            assert reader.count_of(5) == reader.count_of(99) == 0
            assert np.array_equal(reader.rows_of(3), np.flatnonzero(np.asarray(block.column("b")) < 0.5))
            sliced = CellReader(opened.get_batch(number).slice(1), block.rows)
            assert np.array_equal(sliced.rows_of(8), reader.rows_of(8))
            assert sliced.count_of(3) == 0


def test_a_clause_fails_only_if_it_raises_on_rows_that_it_asks_about() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([0, 1, 2, 2**31 - 1], pa.int32()), pa.array([1.0, 2.0, 3.0, 4.0])], names=["a", "b"]
    )
    division, overflow = Opaque("10 // a > 4", ("a",)), Compare("a", "<", "a", 1, "int", 32)
    clauses: list[Clause] = [
        (division,),
        (Within("a", (Interval(low=1),)), division),
        (overflow,),
        (overflow, Within("b", (Interval(high=3.0),))),
        (division, overflow, Within("a", (Interval(1, 2),))),
        under(2.5),
    ]
    for index in (index_block(batch, ["a", "b"]), None):
        block = Block(batch, index)
        cell = match_block(block, compile_clauses(range(6), clauses, SCHEMA), Buffers())
        reader = CellReader(cell.batch, 4)
        assert set(cell.failures) == {0, 2}
        assert "Division by zero" in cell.failures[0]
        assert "a + 1 does not fit in 32 bits" in cell.failures[2]
        assert [reader.rows_of(number).tolist() for number in range(6)] == [[], [1, 2], [], [0, 1, 2], [1, 2], [0, 1]]
        with pytest.raises(QueryFailed):
            select(block, clauses[0])
        assert select(block, clauses[0], first=1).tolist() == [1, 2]


def test_threads_match_at_the_same_time() -> None:
    blocks = [make_block(5000, seed) for seed in range(4)]
    clauses = [*(under(share) for share in np.linspace(0, 1, 50)), (Opaque("a % 7 = 0", ("a",)),)]
    run = compile_clauses(range(51), clauses, SCHEMA)
    found: dict[int, list[list[int]]] = {}

    def work(number: int) -> None:
        reader = CellReader(match_block(blocks[number], run, Buffers()).batch, 5000)
        found[number] = [reader.rows_of(clause).tolist() for clause in range(51)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, block in enumerate(blocks):
        assert found[number] == [select(block, clause).tolist() for clause in clauses]


def test_nothing_to_match_gives_an_empty_cell() -> None:
    empty = compile_clauses([], [], SCHEMA)
    assert match_block(make_block(10), empty, Buffers()).batch.num_rows == 0
    some = compile_clauses([1], [()], SCHEMA)
    assert match_block(make_block(0), some, Buffers()).batch.num_rows == 0
    assert CellReader(match_block(make_block(0), some, Buffers()).batch, 0).rows_of(1).tolist() == []


def test_a_block_is_not_longer_than_its_row_ids_reach() -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(BLOCK_ROWS + 1, pa.int32())], names=["a"])
    with pytest.raises(ValueError, match="65537 rows"):
        index_block(batch, ["a"])


@pytest.mark.parametrize("bounds", [(0, 150_000), (10, 70_000), (65_536, 65_537), (5, 5), (140_000, 150_000)])
def test_a_runs_cells_are_read_as_its_blocks_are(bounds: tuple[int, int]) -> None:
    """Over blocks of unequal size, and with later files that have some of the clauses."""
    sizes = [65_536, 65_536, 9_000]
    blocks = [make_block(size, seed) for seed, size in enumerate(sizes)]
    clauses = [under(0.5), under(0.001), under(0.0)]
    both = compile_clauses([1, 2, 3], clauses, SCHEMA)
    late = compile_clauses([2], clauses[1:2], SCHEMA)
    first_file = [match_block(block, both, Buffers()).batch for block in blocks]
    later_file = [match_block(block, late, Buffers()).batch for block in blocks]
    for files in ([first_file], [later_file, first_file]):
        cells = RunCells(files, sizes)
        for number, clause in enumerate(clauses, 1):
            found = cells.rows_of(number, *bounds)
            assert found is not None
            rows, starts = found
            begin = 0
            for place, block in enumerate(blocks):
                wanted = select(block, clause, bounds[0] - begin, bounds[1] - begin)
                assert rows[starts[place] : starts[place + 1]].tolist() == wanted.tolist()
                begin += sizes[place]


def test_of_dense_clauses_of_ranges_only_the_number_of_rows_is_written() -> None:
    sizes = [65_536, 9_000]
    blocks = [make_block(size, seed) for seed, size in enumerate(sizes)]
    high = Within("a", (Interval(high=50),))
    odd = Opaque("a % 2 = 1", ("a",))
    clauses = [under(0.5), under(0.1), (*under(0.9), high), (*under(0.1), high), (*under(0.9), odd), ()]
    numbers = list(range(1, 1 + len(clauses)))
    run = compile_clauses(numbers, clauses, SCHEMA)
    files = [match_block(block, run, Buffers(Tuning(dense_share=8))).batch for block in blocks]
    whole = [match_block(block, run, Buffers()).batch for block in blocks]
    for block, batch, other in zip(blocks, files, whole, strict=True):
        ours, theirs = CellReader(batch, block.rows), CellReader(other, block.rows)
        assert ours.clauses.tolist() == theirs.clauses.tolist() == numbers
        counts = [theirs.count_of(number) for number in numbers]
        assert [ours.count_of(number) for number in numbers] == counts
        assert [count > block.rows // 8 for count in counts] == [True, False, True, False, True, True]
        # What is computed is written, however dense: computing it again takes longer.
        assert [ours.is_left_out(number) for number in numbers] == [True, False, True, False, False, False]
        for number in numbers:
            if ours.is_left_out(number):
                with pytest.raises(LookupError):
                    ours.rows_of(number)
            else:
                assert ours.rows_of(number).tolist() == theirs.rows_of(number).tolist()
    cells, plain = RunCells([files], sizes), RunCells([whole], sizes)
    for number in numbers:
        found, other = cells.rows_of(number, 10, 70_000), plain.rows_of(number, 10, 70_000)
        assert other is not None
        assert (found is None) == (number in (1, 3))
        if found is not None:
            assert [part.tolist() for part in found] == [part.tolist() for part in other]
