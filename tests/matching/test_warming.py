"""After `warm_up` no loop of matching is compiled."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import random
from dataclasses import replace
from matching.material import SCHEMA, batch_of, random_clause, random_rows
from matching.rules import random_rules
from numba.core.dispatcher import Dispatcher
import tureen.matching as matching
from tureen.matching import buckets, prefixes, rowmajor, scanning
from tureen.matching import access_kernels as access
from tureen.stems.cells import bitmaps
from tureen.stems.cells import decoding
from tureen.stems.cells import container_kernels as reading
from tureen.matching import clause_kernels
from tureen.queries import QueryRun, compile_clauses
from tureen.queries.access_predicates import AccessIndex
from tureen.stems import sort_kernels as kernels
from tureen.stems.index import Block, index_block

loops = {
    loop
    for module in (access, bitmaps, buckets, decoding, clause_kernels, prefixes, reading, rowmajor, scanning, kernels)
    for loop in vars(module).values()
    if isinstance(loop, Dispatcher)
}
assert len(loops) > 20
matching.warm_up()
warm = {loop: list(loop.signatures) for loop in loops}
from matching.test_access_paths import PATHS
buffers = [matching.Buffers(tuning) for tuning in PATHS.values()]
for seed in range(30):
    rng = random.Random(seed)
    rows = random_rows(rng, rng.choice([0, 1, 70]))
    batch = batch_of(rows)
    clauses = [random_clause(rng, rows) for _ in range(20)]
    clauses += random_rules(rng, rows or random_rows(rng, 30), rng.choice([0, 40]))
    run = compile_clauses(range(len(clauses)), clauses, SCHEMA)
    run = replace(run, known_access=AccessIndex.of(run.arrays, run.encodings, rng.choice([1, 1000])))
    for block in (Block(batch, index_block(batch, SCHEMA.names)), Block(batch)):
        for loaded in (run, QueryRun.from_buffer(run.to_buffer())):
            cell = matching.match_block(block, loaded, buffers[seed % len(buffers)])
        reader = matching.CellReader(cell.batch, block.rows)
        for number, clause in enumerate(clauses):
            reader.rows_of(run.ids[number], 1, 5)
            reader.count_of(number)
            if number not in cell.failures:
                matching.select(block, clause, 1, 5)
new = {loop.__name__: loop.signatures for loop in loops if list(loop.signatures) != warm[loop]}
assert not new, new
"""


def test_nothing_is_compiled_after_warm_up() -> None:
    process = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'tests')\n{SCRIPT}"],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert process.returncode == 0, process.stderr
