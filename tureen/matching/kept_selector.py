"""A clause whose tuples are among those of a wider one, which are known where its cells are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.matching.evaluate import narrow
from tureen.matching.selector import Selector
from tureen.predicate import Clause
from tureen.schema import Schema
from tureen.stems.run import OpenRun


class KeptSelector(Selector):
    """Selects the rows of a clause from those of a wider one, by the factors that the wider one does not imply."""

    def __init__(self, clause: Clause, schema: Schema | pa.Schema, number: int, seq: int, rest: Clause) -> None:
        """`number` and `seq` are those of the wider clause, which is eager."""
        super().__init__(clause, schema)
        self.number, self.seq, self.rest = number, seq, rest

    def rows_among(
        self, run: OpenRun, rows: npt.NDArray[np.uint16], starts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
        """The rows of the clause among those of the wider one; see `rows_of_run`."""
        if not self.rest:
            return rows, starts
        parts: list[npt.NDArray[Any]] = [
            narrow(self.rest, block, rows[starts[number] : starts[number + 1]])
            for number, block in enumerate(run.blocks)
        ]
        ends = np.zeros(len(starts), np.int64)
        np.cumsum([len(part) for part in parts], out=ends[1:])
        return np.concatenate([np.empty(0, np.uint16), *parts]).astype(np.uint16), ends
