"""After `warm_up` nothing is compiled any more."""

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
from tureen.matching import clause_kernels as clauses
from tureen.queries import QueryRun, compile_clauses
from tureen.queries.access_predicates import AccessIndex
from tureen.stems import sort_kernels as kernels
from tureen.stems.index import Block, index_block

loops = {
    one
    for module in (access, bitmaps, buckets, decoding, clauses, prefixes, reading, rowmajor, scanning, kernels)
    for one in vars(module).values()
    if isinstance(one, Dispatcher)
}
assert len(loops) > 20
matching.warming()
known = {one: list(one.signatures) for one in loops}
from matching.test_access import WAYS
buffers = [matching.Buffers(tuning) for tuning in WAYS.values()]
for seed in range(30):
    rng = random.Random(seed)
    rows = random_rows(rng, rng.choice([0, 1, 70]))
    batch = batch_of(rows)
    some = [random_clause(rng, rows) for _ in range(20)]
    some += random_rules(rng, rows or random_rows(rng, 30), rng.choice([0, 40]))
    run = compile_clauses(range(len(some)), some, SCHEMA)
    run = replace(run, known_access=AccessIndex.of(run.arrays, run.encodings, rng.choice([1, 1000])))
    for block in (Block(batch, index_block(batch, SCHEMA.names)), Block(batch)):
        for one in (run, QueryRun.from_buffer(run.to_buffer())):
            cell = matching.match_block(block, one, buffers[seed % len(buffers)])
        reader = matching.CellReader(cell.batch, block.rows)
        for number, clause in enumerate(some):
            reader.rows_of(run.ids[number], 1, 5)
            reader.count_of(number)
            if number not in cell.failures:
                matching.select(block, clause, 1, 5)
new = {one.__name__: one.signatures for one in loops if list(one.signatures) != known[one]}
assert not new, new
"""


def test_after_warm_up_nothing_is_compiled() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'tests')\n{SCRIPT}"],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
