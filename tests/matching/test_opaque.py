"""An opaque factor is evaluated once for all clauses that contain it, on the rows that matter to one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tureen.evaluation import duck
from tureen.matching import match_block, opaque
from tureen.matching.buffers import Buffers
from tureen.predicate import Clause, Interval, Opaque, Within
from tureen.queries import compile_clauses
from tureen.stems.cells.cell import CellReader
from tureen.stems.index import Block

ROWS = 1000


def _between(low: int, high: int) -> Within:
    return Within("a", (Interval(low, high),))


def _match(monkeypatch: pytest.MonkeyPatch, clauses: list[Clause]) -> tuple[Any, list[int]]:
    evaluated: list[int] = []
    plain = duck.run

    def counting(sql: str, tables: dict[str, pa.Table], subject: str) -> pa.Table:
        evaluated.extend(table.num_rows for table in tables.values())
        return plain(sql, tables, subject)

    monkeypatch.setattr(opaque, "run", counting)
    batch = pa.record_batch({"a": pa.array(range(ROWS), pa.int32())})
    run = compile_clauses(list(range(len(clauses))), clauses, batch.schema)
    return match_block(Block(batch), run, Buffers()), evaluated


def _rows(cell: Any, clause: int) -> list[int]:
    rows: list[int] = CellReader(cell.batch, ROWS).rows_of(clause).tolist()
    return rows


def test_evaluated_once_on_rows_that_pass_its_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    even = Opaque('("a" % 2) = 0', ("a",))
    cell, evaluated = _match(
        monkeypatch, [(_between(10, 19), even), (_between(15, 24), even), (_between(700, 700), even)]
    )
    assert evaluated == [16]
    assert _rows(cell, 0) == [10, 12, 14, 16, 18]
    assert _rows(cell, 1) == [16, 18, 20, 22, 24]
    assert _rows(cell, 2) == [700]


def test_evaluated_on_all_rows_without_selective_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    even = Opaque('("a" % 2) = 0', ("a",))
    cell, evaluated = _match(monkeypatch, [(_between(10, 19), even), (even,)])
    assert evaluated == [ROWS]
    assert len(_rows(cell, 1)) == ROWS // 2
    _, evaluated = _match(monkeypatch, [(_between(0, 900), even)])
    assert evaluated == [ROWS]


def test_does_not_raise_on_rows_that_no_clause_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    raising = Opaque("CASE WHEN \"a\" = 500 THEN error('asked') ELSE TRUE END", ("a",))
    cell, evaluated = _match(monkeypatch, [(_between(10, 19), raising)])
    assert not cell.failures
    assert evaluated == [10]
    assert _rows(cell, 0) == list(range(10, 20))
    cell, _ = _match(monkeypatch, [(_between(10, 19), raising), (_between(490, 510), raising)])
    assert list(cell.failures) == [1]
    assert _rows(cell, 0) == list(range(10, 20))
