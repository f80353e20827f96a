"""Lazy queries that are answered from the cells of a wider, eager clause.

Ranges of columns are looked up in indexes, as fast as what is kept. What pays is a factor that no index answers: if it
follows from a wider clause that is eager, it need not be evaluated again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tureen.fast_paths import FastPath, is_enabled
from tureen.matching.kept_selector import KeptSelector
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.clauses import EagerClause, eager_clauses
from tureen.pot.queries import standing_version
from tureen.pot.registered import Registered
from tureen.predicate import Clause, IsNull, Predicate, Within, may_raise
from tureen.results.rows.ready import Ready
from tureen.results.snapshot.stream_state import Snapshot
from tureen.schema import Schema
from tureen.sharing.covering import residual
from tureen.sharing.implication import Implication, implies

KNOWN_QUERIES = 4096
"""The number of queries of which a process remembers which eager clauses cover them."""


@dataclass(frozen=True)
class CostlyClauses:
    """The eager clauses of a stream that have factors which no index answers, as of a commit."""

    version: int = -1
    seq: int = -1
    by_factor: dict[Predicate, list[EagerClause]] = field(default_factory=dict)
    """By their first such factor."""
    selectors: dict[str, KeptSelector | None] = field(default_factory=dict)
    """For queries that were asked for."""

    def read_on(self, catalog: Catalog, stream_id: int) -> CostlyClauses:
        """The clauses as of the current commit."""
        with catalog.read() as tx:
            version, seq = standing_version(tx), current_seq(tx)
            is_same = version == self.version
            new = eager_clauses(tx, stream_id, after=self.seq if is_same else -1)
        costly = [(factors[0], known) for known in new if (factors := costly_factors(known.clause))]
        if is_same and not costly:
            return replace(self, seq=seq)
        by_factor = {factor: list(listed) for factor, listed in self.by_factor.items()} if is_same else {}
        for factor, known in costly:
            by_factor.setdefault(factor, []).append(known)
        return CostlyClauses(version, seq, by_factor)


class KeptCovers:
    """Finds the eager clauses from whose cells lazy queries are answered."""

    def __init__(self, catalog: Catalog) -> None:
        """Look in that catalog."""
        self._catalog = catalog
        self._is_enabled = is_enabled(FastPath.REUSE)
        self._streams: dict[int, CostlyClauses] = {}
        self._lock = threading.Lock()

    def find(self, registered: Registered, snapshot: Snapshot, ready: Ready) -> Ready | None:
        """A query with a selector that reads what is kept for a wider clause; None if there is none."""
        selector = ready.selector
        if not self._is_enabled or registered.stream.number is not None or not selector.derived:
            return None  # what is kept for its own clause is looked up, and ranges are as well
        stream_id = registered.stream_ids[0]
        clauses = self._clauses(stream_id, snapshot.seq)
        candidates = [known for factor in selector.derived for known in clauses.by_factor.get(factor, ())]
        if not candidates:
            return None
        if registered.id and registered.id in clauses.selectors:
            kept = clauses.selectors[registered.id]
        else:
            kept = kept_selector(snapshot.streams[stream_id].stream.schema, selector.clause, candidates)
            if registered.id and len(clauses.selectors) < KNOWN_QUERIES:
                clauses.selectors[registered.id] = kept
        return None if kept is None else replace(ready, selector=kept)

    def _clauses(self, stream_id: int, at_least: int) -> CostlyClauses:
        """The eager clauses of a stream, not older than a commit: an older one could be missing in newer cells."""
        with self._lock:
            known = self._streams.get(stream_id, CostlyClauses())
            if known.seq < at_least:
                known = self._streams[stream_id] = known.read_on(self._catalog, stream_id)
            return known


def kept_selector(schema: Schema, clause: Clause, eager: Sequence[EagerClause]) -> KeptSelector | None:
    """The selector with the fewest factors to evaluate; None if no eager clause follows from a clause."""
    selectors = []
    for known in eager:
        # A factor that raises for a tuple must raise; one that the eager clause has, too, has not.
        safe = tuple(factor for factor in clause if not may_raise(factor) or factor in known.clause)
        if implies(schema, safe, known.clause) is Implication.YES:
            rest = residual(schema, known.clause, clause)
            selectors.append(KeptSelector(clause, schema, known.number, known.seq, rest))
    return min(selectors, key=lambda selector: len(selector.rest), default=None)


def costly_factors(clause: Clause) -> list[Predicate]:
    """The factors of a clause that no index answers."""
    return [factor for factor in clause if not isinstance(factor, Within | IsNull)]
