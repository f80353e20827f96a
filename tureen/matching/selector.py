"""Selecting one clause's rows from one block, for lazy clauses, owed cells, and tails."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.matching.evaluate import narrow
from tureen.matching.scanning import program_of, select_rows, select_rows_of_blocks
from tureen.predicate import Clause, IsNull, Within, calls_functions
from tureen.queries import compile_clauses
from tureen.schema import Schema
from tureen.stems.index import Block, address_of
from tureen.stems.run import OpenRun


class Selector:
    """One clause, prepared for selecting rows from many blocks of its stream."""

    def __init__(self, clause: Clause, schema: Schema | pa.Schema) -> None:
        """Prepare everything that does not depend on the block."""
        self.clause = clause
        self.derived = tuple(factor for factor in clause if not isinstance(factor, Within | IsNull))
        self._ranges = tuple(factor for factor in clause if isinstance(factor, Within | IsNull))
        self._names = tuple(dict.fromkeys(factor.column for factor in self._ranges))
        self._schema = schema
        self.calls_functions = any(map(calls_functions, clause))

    def of_clause(self, clause: Clause) -> Selector:
        """A selector of another clause over the same columns."""
        return Selector(clause, self._schema)

    @cached_property
    def _program(self) -> tuple[int, object]:
        """The address of the compiled ranges, and the objects that own that memory.

        Compiled for the first indexed block: scanning a tail does not need it.
        """
        run = compile_clauses([0], [self._ranges], self._schema)
        program = program_of(run.arrays)
        return address_of(program), (run.arrays, program)

    def rows(self, block: Block, first: int = 0, last: int | None = None) -> npt.NDArray[np.uint16]:
        """The block's rows in [first, last) that satisfy the clause, ascending.

        Raises QueryFailed if a factor raises on a row of that interval that passes the other factors.
        """
        first, end = int(first), block.rows if last is None else int(last)
        table = block.indexed_table(self._names)
        if table is None:
            begin, end = max(first, 0), min(end, block.rows)
            return narrow(self.clause, block, np.arange(begin, max(begin, end), dtype=np.uint16))
        address, _owner = self._program
        rows = select_rows(table.address, address, block.rows, first, end)
        return narrow(self.derived, block, rows) if self.derived else rows

    def rows_of_run(self, run: OpenRun, first: int, last: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
        """The rows of a run in [first, last), numbered within their blocks, and the number of rows before each block.

        The latter has the total at its end.
        """
        starts = np.zeros(len(run.blocks) + 1, np.int64)
        tables = None if self.derived else run.index_tables(self._names, first, last)
        if tables is not None:
            return select_rows_of_blocks(tables.lines, self._program[0], first, last, starts), starts
        rows = [_NONE] * len(run.blocks)
        for number, low, high in run.parts(first, last):
            rows[number] = self.rows(run.blocks[number], low, high)
        np.cumsum([len(of_block) for of_block in rows], out=starts[1:])
        return np.concatenate([_NONE, *rows]), starts


def select(block: Block, clause: Clause, first: int = 0, last: int | None = None) -> npt.NDArray[np.uint16]:
    """The block's rows in [first, last) that satisfy a clause, ascending; a `Selector` used once."""
    return Selector(clause, block.columns.schema).rows(block, first, last)


_NONE: npt.NDArray[np.uint16] = np.empty(0, np.uint16)
