"""Loading all compiled loops of matching in advance."""

from __future__ import annotations

import pyarrow as pa

from tureen.matching.buffers import Buffers
from tureen.matching.evaluate import holds
from tureen.matching.match import match_block
from tureen.matching.selector import select
from tureen.matching.tuning import Costs, Tuning
from tureen.predicate import AnyOf, Clause, Interval, IsNull, Within
from tureen.queries import compile_clauses
from tureen.queries.access_predicates import LEAST_KEYS
from tureen.stems.cells.cell import CellReader, RunCells
from tureen.stems.index import Block, index_block


def warm_up() -> None:
    """Run every compiled loop once on a tiny block, so that later calls do not wait for compilation.

    The machine code is cached on disk, from where a new process loads it in a fraction of a second. Call this where a
    delay is harmless, such as at the start of a Spark worker.
    """
    # Columns of NULLs are sufficient, and `pa.array` would import pandas.
    kinds = {
        "flag": pa.bool_(),
        "number": pa.int32(),
        "double": pa.float64(),
        "wide": pa.decimal128(38, 0),
        "text": pa.string(),
    }
    columns = [pa.nulls(3, kind) for kind in kinds.values()]
    batch = pa.RecordBatch.from_arrays(columns, names=list(kinds))
    block = Block(batch, index_block(batch, batch.schema.names))
    # Enough keys for the column to become an access column.
    rules: list[Clause] = [(Within("number", (Interval(key, key),)),) for key in range(LEAST_KEYS)]
    clauses: list[Clause] = [
        *rules,
        (Within("number", (Interval(low=1),)), Within("text", (Interval("a", "b"),))),
        (Within("double", (Interval(0.5, 0.5), Interval(1.5, 1.5))), IsNull("flag")),
        (Within("wide", (Interval(high=2),)),),
        (AnyOf((IsNull("flag"), IsNull("text"))),),
        (),
    ]
    run = compile_clauses(range(len(clauses)), clauses, batch.schema)
    match_block(block, run, Buffers())
    cell = match_block(block, run, Buffers(Tuning(costs=Costs(lineage=10**9)))).batch
    reader = CellReader(cell, block.rows)
    RunCells([[cell]], [block.rows]).rows_of(0, 0, block.rows)
    for number, clause in enumerate(clauses):
        select(block, clause)
        for factor in clause:
            holds(factor, block)
        reader.rows_of(number)
        reader.count_of(number)
