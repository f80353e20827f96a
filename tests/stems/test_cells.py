"""Cells at full size: containers, files, reused buffers, and clauses that raise."""

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


def below(share: float) -> Clause:
    return (Within("b", (Interval(high=share, high_open=True),)),)


def test_full_block_has_lists_and_bitmaps() -> None:
    block = make_block(BLOCK_ROWS)
    values = np.asarray(block.column("b"))
    shares = [0.0, 0.001, 0.01, 0.03, 0.04, *np.linspace(0.1, 1.0, 400)]
    run = compile_clauses(range(len(shares)), [below(share) for share in shares], SCHEMA)
    buffers = Buffers()
    for _ in range(2):
        cell = match_block(block, run, buffers)
        reader = CellReader(cell.batch, BLOCK_ROWS)
        assert cell.batch.nbytes > 2_000_000
        for number, share in enumerate(shares):
            expected = np.flatnonzero(values < share)
            assert np.array_equal(reader.rows_of(number), expected)
            assert np.array_equal(reader.rows_of(number, 1000, 60_001), expected[_between(expected)])
            assert np.array_equal(select(block, below(share)), expected)
            assert np.array_equal(select(block, below(share), last=60_001), expected[expected < 60_001])
            assert np.array_equal(select(block, below(share), first=1000), expected[expected >= 1000])


def _between(rows: np.ndarray) -> np.ndarray:
    return (rows >= 1000) & (rows < 60_001)


@pytest.mark.parametrize("rows", [1, 64, 1000, BLOCK_ROWS])
def test_container_kind_follows_from_row_counts(rows: int) -> None:
    block = make_block(rows)
    values = np.sort(np.asarray(block.column("b")))
    limit = min(list_limit(rows), rows - 1)
    run = compile_clauses([1, 2], [below(values[limit - 1] if limit else 0.0), below(2.0)], SCHEMA)
    batch = match_block(block, run, Buffers()).batch
    for entry in batch.to_pylist():
        listed = entry["rows"] <= list_limit(rows)
        size = 2 * entry["rows"] if listed else -(-rows // 8)
        assert len(entry["ids"]) == -(-size // 8) * 8


def test_cells_are_written_from_buffers_and_read_from_files(tmp_path: Path) -> None:
    buffers = Buffers()
    blocks = [make_block(3000, seed) for seed in (1, 2)]
    run = compile_clauses([3, 5, 8], [below(0.5), below(0.0), below(0.01)], SCHEMA)
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


def test_clause_fails_only_on_rows_that_pass_its_other_factors() -> None:
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
        below(2.5),
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


def test_threads_match_concurrently() -> None:
    blocks = [make_block(5000, seed) for seed in range(4)]
    clauses = [*(below(share) for share in np.linspace(0, 1, 50)), (Opaque("a % 7 = 0", ("a",)),)]
    run = compile_clauses(range(51), clauses, SCHEMA)
    rows_by_block: dict[int, list[list[int]]] = {}

    def work(number: int) -> None:
        reader = CellReader(match_block(blocks[number], run, Buffers()).batch, 5000)
        rows_by_block[number] = [reader.rows_of(clause).tolist() for clause in range(51)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, block in enumerate(blocks):
        assert rows_by_block[number] == [select(block, clause).tolist() for clause in clauses]


def test_nothing_to_match_gives_an_empty_cell() -> None:
    empty = compile_clauses([], [], SCHEMA)
    assert match_block(make_block(10), empty, Buffers()).batch.num_rows == 0
    one_clause = compile_clauses([1], [()], SCHEMA)
    assert match_block(make_block(0), one_clause, Buffers()).batch.num_rows == 0
    assert CellReader(match_block(make_block(0), one_clause, Buffers()).batch, 0).rows_of(1).tolist() == []


def test_block_rows_are_limited() -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(BLOCK_ROWS + 1, pa.int32())], names=["a"])
    with pytest.raises(ValueError, match="got 65537"):
        index_block(batch, ["a"])


@pytest.mark.parametrize("bounds", [(0, 150_000), (10, 70_000), (65_536, 65_537), (5, 5), (140_000, 150_000)])
def test_run_cells_agree_with_select(bounds: tuple[int, int]) -> None:
    """Over blocks of different sizes, and with a later file that has one of the clauses."""
    sizes = [65_536, 65_536, 9_000]
    blocks = [make_block(size, seed) for seed, size in enumerate(sizes)]
    clauses = [below(0.5), below(0.001), below(0.0)]
    both = compile_clauses([1, 2, 3], clauses, SCHEMA)
    late = compile_clauses([2], clauses[1:2], SCHEMA)
    first_file = [match_block(block, both, Buffers()).batch for block in blocks]
    later_file = [match_block(block, late, Buffers()).batch for block in blocks]
    for files in ([first_file], [later_file, first_file]):
        cells = RunCells(files, sizes)
        for number, clause in enumerate(clauses, 1):
            result = cells.rows_of(number, *bounds)
            assert result is not None
            rows, starts = result
            begin = 0
            for block_number, block in enumerate(blocks):
                expected = select(block, clause, bounds[0] - begin, bounds[1] - begin)
                assert rows[starts[block_number] : starts[block_number + 1]].tolist() == expected.tolist()
                begin += sizes[block_number]


def test_dense_range_clauses_store_counts_only() -> None:
    sizes = [65_536, 9_000]
    blocks = [make_block(size, seed) for seed, size in enumerate(sizes)]
    high = Within("a", (Interval(high=50),))
    odd = Opaque("a % 2 = 1", ("a",))
    clauses = [below(0.5), below(0.1), (*below(0.9), high), (*below(0.1), high), (*below(0.9), odd), ()]
    numbers = list(range(1, 1 + len(clauses)))
    run = compile_clauses(numbers, clauses, SCHEMA)
    files = [match_block(block, run, Buffers(Tuning(dense_share=8))).batch for block in blocks]
    full_files = [match_block(block, run, Buffers()).batch for block in blocks]
    for block, batch, full_batch in zip(blocks, files, full_files, strict=True):
        reader, full_reader = CellReader(batch, block.rows), CellReader(full_batch, block.rows)
        assert reader.clauses.tolist() == full_reader.clauses.tolist() == numbers
        counts = [full_reader.count_of(number) for number in numbers]
        assert [reader.count_of(number) for number in numbers] == counts
        assert [count > block.rows // 8 for count in counts] == [True, False, True, False, True, True]
        # Clauses with a derived factor are written even if dense: computing them again takes longer.
        assert [reader.is_left_out(number) for number in numbers] == [True, False, True, False, False, False]
        for number in numbers:
            if reader.is_left_out(number):
                with pytest.raises(LookupError):
                    reader.rows_of(number)
            else:
                assert reader.rows_of(number).tolist() == full_reader.rows_of(number).tolist()
    cells, full_cells = RunCells([files], sizes), RunCells([full_files], sizes)
    for number in numbers:
        result, expected = cells.rows_of(number, 10, 70_000), full_cells.rows_of(number, 10, 70_000)
        assert expected is not None
        assert (result is None) == (number in (1, 3))
        if result is not None:
            assert [part.tolist() for part in result] == [part.tolist() for part in expected]
