"""Finds the derived streams of steps of which the steps of queries are composed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tureen.bounded_cache import BoundedCache
from tureen.errors import TureenError, UnknownStream
from tureen.pot.registered import Registered
from tureen.results.covers.composed_steps import Composition
from tureen.results.covers.step_ledger import Recompute, StepLedger, StepReads
from tureen.results.covers.step_streams import StepCover, StepStream, step_cover
from tureen.results.rows.ready import Ready
from tureen.results.snapshot.view import View

KNOWN_QUERIES = 4096
"""The number of queries of which a process remembers which steps cover them."""


class SharedSteps:
    """The streams of steps of one process, and which of their steps are exact."""

    def __init__(self, view: View, recompute: Recompute) -> None:
        """Look in that view; `recompute` compares steps with their base streams."""
        self._view, self._recompute = view, recompute
        self._by_base: Mapping[int, Sequence[StepStream]] = {}
        self._covers: BoundedCache[str, list[StepCover]] = BoundedCache(KNOWN_QUERIES)
        self._ledgers: dict[int, StepLedger] = {}
        self._uses: dict[str, int] = {}
        self._lock = threading.Lock()

    def learn(self, by_base: Mapping[int, Sequence[StepStream]]) -> None:
        """Use these streams from now on, by the id of the stream that they are derived from."""
        with self._lock:
            self._by_base, self._covers, self._ledgers = by_base, BoundedCache(KNOWN_QUERIES), {}
            self._uses = {}

    def note(self, query_id: str, *, is_composed: bool) -> None:
        """Count an answer of a query: composed of steps, or aggregated from tuples."""
        with self._lock:
            uses = self._uses.pop(query_id, 0)
            if query_id and is_composed and len(self._uses) < KNOWN_QUERIES:
                self._uses[query_id] = uses + 1

    def find(
        self, registered: Registered, ready: Ready, reads_of: Callable[[int], StepReads | None]
    ) -> Composition | None:
        """What the steps of a query can be composed of: the coarsest steps that were read; None if there are none."""
        listed = self._by_base.get(registered.stream_ids[0])
        if not listed or ready.query.steps is None or ready.query.grouping is None:
            return None

        def covers_of_query() -> list[StepCover]:
            return [cover for source in listed if (cover := step_cover(source, ready)) is not None]

        covers = self._covers.get(registered.id, covers_of_query) if registered.id else covers_of_query()
        for cover in sorted(covers, key=lambda candidate: -candidate.source.steps.width):
            reads = reads_of(cover.source.stream.id)
            with suppress(UnknownStream):  # it was dropped
                composition = None if reads is None else self._composition(cover, reads)
                if composition is not None:
                    return replace(composition, uses=self._uses.get(registered.id, 0))
        return None

    def _composition(self, cover: StepCover, reads: StepReads) -> Composition | None:
        source = cover.source
        snapshot = self._view.snapshot((source.stream.id, source.base.id))
        with self._lock:
            ledger = self._ledgers.setdefault(source.stream.id, StepLedger(source, self._recompute))
        with ledger.lock:
            try:
                base, state = snapshot.streams[source.base.id], snapshot.streams[source.stream.id]
                inexact = ledger.inexact(reads, base, state)
            except TureenError:
                # Its selection raises, or a part of the base stream is damaged that this query may not need.
                return None
        return None if inexact is None else Composition(cover, snapshot, reads.reads[-1].last, inexact)
