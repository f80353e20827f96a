"""CACQ's experiment about the size of tuple state (§2.2, "Tuple Throughput vs. Tuple State").

A few queries run while the state of each tuple, the bits that say which queries still want it, is made larger than they
need. The paper has one such bitmap in every tuple. Here the state of joined tuples is coded in the ways that
`benchmarks/lineage_codings.py` compares: a bitmap for each tuple as in the paper, and what the engine does.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from benchmarks.lineage_codings import CODINGS, TUPLES, JoinedBlockClauses, SatisfiedClauses
from benchmarks.report import Report

QUERIES = 6
BITS = (64, 256, 1_024, 4_096, 16_384, 65_536)
METHODS = {"a bitmap for each tuple, as in the paper": "dense bitmaps", "as the engine codes it": "chosen"}
PASSED = 0.5
"""The share of tuples that satisfies a clause."""
ROUNDS = 9
SEED = 2002


def block_of(bits: int) -> JoinedBlockClauses:
    """Joined tuples whose state has a number of bits, of which queries have a few."""
    random = np.random.default_rng(SEED)
    slots = np.linspace(0, bits - 1, QUERIES).astype(np.int64)
    sides = []
    for _ in range(2):
        # No tuple satisfies the last clause, which all other bits have.
        of_bit = np.full(bits, QUERIES)
        of_bit[slots] = np.arange(QUERIES)
        rows, clauses = np.nonzero(random.random((TUPLES, QUERIES)) < PASSED)
        sides.append(SatisfiedClauses.of(rows, clauses, of_bit, QUERIES + 1))
    return JoinedBlockClauses(bits, *sides)


def tuple_state(report: Report) -> dict[int, dict[str, float]]:
    """Tuples per second of processor time by bits of state, and by coding."""
    rates: dict[int, dict[str, float]] = {}
    for bits in BITS:
        block, seconds = block_of(bits), dict[str, float]()
        rows = [
            [CODINGS[coding](block).rows_of(slot).tolist() for slot in (0, bits - 1)] for coding in METHODS.values()
        ]
        assert rows[0] == rows[1], "the codings have different rows"
        assert all(rows[0]), "a query has no rows"
        for method, coding in METHODS.items():
            seconds[method] = _median_seconds(coding, block)
        rates[bits] = {method: TUPLES / each for method, each in seconds.items()}
        for method, rate in rates[bits].items():
            report.add(f"tuples/s, {bits:,} bits of tuple state, {method}", rate, "tuples/s")
    return rates


def _median_seconds(coding: str, block: JoinedBlockClauses) -> float:
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        CODINGS[coding](block)
        seconds.append(time.process_time() - began)
    return statistics.median(seconds)
