"""The maximum arrival rate of tuples, by number of queries (§5.2.4, §5.5.2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.psoup_response import Curves
from benchmarks.psoup_variants import IN_MEMORY, NOMAT, WRITTEN, Variant
from benchmarks.psoup_workload import Workload

NAMES = (NOMAT, *WRITTEN, *IN_MEMORY)


@dataclass(frozen=True)
class BatchPlan:
    """The size of a batch, and the number of batches that each variant takes."""

    batch: int
    rounds: int

    @property
    def rows(self) -> int:
        """The number of tuples: one batch more, which is verified before anything is timed."""
        return self.batch * (self.rounds + 1)


@dataclass(frozen=True)
class Rates:
    """The measurements, by variant and number of queries."""

    rates: Curves
    """Tuples per second."""
    by_processor: Curves
    """Tuples per second of processor time: without waiting for the disk or for other processes."""
    bytes: Curves
    """The size of a batch's results on disk, or of the window's results in memory."""


def arrival_rates(root: Path, workload: Workload, window: int, counts: Sequence[int], plan: BatchPlan) -> Rates:
    """Feed every variant the same batches as fast as possible; the best of the rounds, taken in turns."""
    clauses = workload.clauses()
    arrival = Rates(_none(), _none(), _none())
    for count in counts:
        variants = [
            Variant(name, root / f"{count}-{index}", workload, clauses[:count], window)
            for index, name in enumerate(NAMES)
        ]
        for number in range(plan.rounds + 1):
            part = workload.table.slice(number * plan.batch, plan.batch).combine_chunks()
            for variant in variants:
                durations = _timed(variant, part)
                if number:
                    _note(arrival, variant.name, count, plan.batch, durations)
            if number in (0, plan.rounds):
                verify(workload, window, variants, count, number * plan.batch, (number + 1) * plan.batch)
                _weigh(variants, count, arrival.bytes)
            for variant in variants:
                variant.forget()
    return arrival


def _none() -> Curves:
    return {name: {} for name in NAMES}


def _timed(variant: Variant, part: pa.Table) -> tuple[float, float]:
    """The wall-clock and the processor time of a batch."""
    began, used = time.perf_counter(), time.process_time()
    variant.take(part)
    return time.perf_counter() - began, time.process_time() - used


def _note(arrival: Rates, name: str, count: int, rows: int, durations: tuple[float, float]) -> None:
    for curves, seconds in zip((arrival.rates, arrival.by_processor), durations, strict=True):
        curves[name][count] = max(curves[name].get(count, 0.0), rows / seconds)


def verify(workload: Workload, window: int, variants: Sequence[Variant], count: int, first: int, last: int) -> None:
    """Check results against numpy's: those of the last batch (PSoup-P) or of the window (PSoup-C)."""
    on_disk = {variant.name: variant.written() for variant in variants if variant.name in WRITTEN}
    in_memory = {variant.name: variant.window_results for variant in variants if variant.window_results is not None}
    assert on_disk
    assert in_memory
    begin = workload.begin(window, last)
    for query, condition in enumerate(workload.conditions[:count]):
        matches = workload.truth(condition, min(first, begin), last)
        batch = matches[np.searchsorted(matches, first) :] - first
        for name, cells in on_disk.items():
            assert np.array_equal(cells(query), batch), f"{name} gives wrong results for {condition}"
        window_matches = matches[np.searchsorted(matches, begin) :]
        for name, results in in_memory.items():
            assert np.array_equal(results.ids(query), window_matches), f"{name} keeps wrong results for {condition}"


def _weigh(variants: Sequence[Variant], count: int, sizes: Curves) -> None:
    """The bytes of results: cells beyond the size of a run without cells, or four for each tuple in memory."""
    run_bytes = next(variant.bytes for variant in variants if variant.name == NOMAT)
    for variant in variants:
        results = variant.window_results
        sizes[variant.name][count] = variant.bytes - run_bytes if results is None else 4 * results.count
