"""A set of clauses that changes while blocks are matched with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tureen.matching.buffers import Buffers
from tureen.matching.match import match_block
from tureen.predicate import Clause, IsNull, Within
from tureen.queries import QueryRun, compile_clauses
from tureen.schema import Schema
from tureen.stems.cells.cell import Cell
from tureen.stems.index import Block


def simple_factors(clause: Clause) -> Clause:
    """The factors of a clause that compare a column with constants, which are matched for many clauses at once."""
    return tuple(factor for factor in clause if isinstance(factor, Within | IsNull))


class ClauseSet:
    """Clauses by number; numbers are not used again."""

    def __init__(self, schema: Schema | pa.Schema) -> None:
        """Start without clauses over tuples of that schema."""
        self._schema = schema
        self._clauses: dict[int, Clause] = {}
        self._most: QueryRun | None = None
        self._compiled: Sequence[QueryRun] | None = None
        self._buffers = Buffers()
        self._added = 0

    def __len__(self) -> int:
        """The number of clauses."""
        return len(self._clauses)

    def add(self, clause: Clause) -> int:
        """Add a clause; its number."""
        number = self._added
        self._clauses[number] = clause
        self._added += 1
        self._compiled = None
        return number

    def remove(self, number: int) -> None:
        """Remove a clause; blocks may be matched with it until others are added."""
        del self._clauses[number]

    @property
    def columns(self) -> list[str]:
        """The columns that a block must have to be matched, also those of removed clauses that are still compiled."""
        return sorted({name for run in self._runs() for name in run.names})

    def match(self, block: Block) -> Iterator[Cell]:
        """The cells of a block, with entries of clauses of the set and perhaps of removed ones.

        Read each before the next.
        """
        for run in self._runs():
            yield match_block(block, run, self._buffers)

    def _runs(self) -> Sequence[QueryRun]:
        """The clauses, compiled: most of them in one run, and the last ones in another, which is cheap to renew."""
        live = len(self._clauses)
        if not live:
            return ()
        if self._compiled is None or sum(map(len, self._compiled)) > 2 * live:
            if not self._most or abs(len(self._most) - live) > len(self._most) // 4:
                self._most = self._compile(0)
            last = int(self._most.ids[-1])
            self._compiled = (self._most,) if last + 1 == self._added else (self._most, self._compile(last + 1))
        return self._compiled

    def _compile(self, first: int) -> QueryRun:
        """The clauses from a number on, as a run."""
        clauses = {number: clause for number, clause in self._clauses.items() if number >= first}
        return compile_clauses(list(clauses), list(clauses.values()), self._schema)
