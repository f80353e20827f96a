"""The rate at which tuples may arrive, by number of queries (§5.2.4, §5.5.2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.psoup_response import Curves
from benchmarks.psoup_variants import KEPT, NOMAT, WRITTEN, Variant
from benchmarks.psoup_workload import Workload

NAMES = (NOMAT, *WRITTEN, *KEPT)


@dataclass(frozen=True)
class Feed:
    """How tuples arrive: the size of a batch, and in how many rounds each variant takes one."""

    batch: int
    rounds: int

    @property
    def rows(self) -> int:
        """How many tuples arrive in all: one batch more, which is verified before anything is timed."""
        return self.batch * (self.rounds + 1)


@dataclass(frozen=True)
class Rates:
    """What was found, by variant and number of queries."""

    rates: Curves
    """Tuples per second."""
    by_processor: Curves
    """Tuples per second of processor time: without the disk, and whatever else the machine does."""
    bytes: Curves
    """The size of a batch's results, or of those that are kept."""


def arrival_rates(root: Path, workload: Workload, window: int, counts: Sequence[int], feed: Feed) -> Rates:
    """Feed every variant the same batches as fast as it takes them; the best of the rounds, taken in turns."""
    clauses = workload.clauses()
    found = Rates(_none(), _none(), _none())
    for count in counts:
        variants = [
            Variant(name, root / f"{count}-{place}", workload, clauses[:count], window)
            for place, name in enumerate(NAMES)
        ]
        for number in range(feed.rounds + 1):
            part = workload.table.slice(number * feed.batch, feed.batch).combine_chunks()
            for variant in variants:
                taken = _timed(variant, part)
                if number:
                    _note(found, variant.name, count, feed.batch, taken)
            if number in (0, feed.rounds):
                verify(workload, window, variants, count, number * feed.batch, (number + 1) * feed.batch)
                _weigh(variants, count, found.bytes)
            for variant in variants:
                variant.forget()
    return found


def _none() -> Curves:
    return {name: {} for name in NAMES}


def _timed(variant: Variant, part: pa.Table) -> tuple[float, float]:
    """How long a batch takes by the clock, and by the processor."""
    began, used = time.perf_counter(), time.process_time()
    variant.take(part)
    return time.perf_counter() - began, time.process_time() - used


def _note(found: Rates, name: str, count: int, rows: int, taken: tuple[float, float]) -> None:
    for curves, seconds in zip((found.rates, found.by_processor), taken, strict=True):
        curves[name][count] = max(curves[name].get(count, 0.0), rows / seconds)


def verify(workload: Workload, window: int, variants: Sequence[Variant], count: int, first: int, last: int) -> None:
    """Every variant that keeps results has numpy's, of the last batch (PSoup-P) or of the window (PSoup-C)."""
    written = {variant.name: variant.written() for variant in variants if variant.name in WRITTEN}
    kept = {variant.name: variant.kept for variant in variants if variant.kept is not None}
    assert written
    assert kept
    begin = workload.begin(window, last)
    for query, condition in enumerate(workload.conditions[:count]):
        true = workload.truth(condition, min(first, begin), last)
        batch = true[np.searchsorted(true, first) :] - first
        for name, cells in written.items():
            assert np.array_equal(cells(query), batch), f"{name} gives wrong results for {condition}"
        held = true[np.searchsorted(true, begin) :]
        for name, results in kept.items():
            assert np.array_equal(results.ids(query), held), f"{name} keeps wrong results for {condition}"


def _weigh(variants: Sequence[Variant], count: int, sizes: Curves) -> None:
    """The bytes of results: cells beyond the bare run's size, or four for each tuple that is kept."""
    bare = next(variant.bytes for variant in variants if variant.name == NOMAT)
    for variant in variants:
        kept = variant.kept
        sizes[variant.name][count] = variant.bytes - bare if kept is None else 4 * kept.results
