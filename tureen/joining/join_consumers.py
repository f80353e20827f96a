"""The consumers of a continuous join: what the queries that follow it want, and their slots in lineages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tureen.joining.clause_lineages import ClauseLineages
from tureen.joining.shared_factor import SharedFactor
from tureen.predicate import Clause


@dataclass(frozen=True)
class JoinConsumer:
    """What a query wants of a join, input by input in the order of the join."""

    clauses: tuple[Clause, ...]
    """Simple factors, see `tureen.matching.clause_set`."""
    factors: tuple[SharedFactor, ...]
    columns: tuple[tuple[str, ...], ...]
    """The columns of each input that its rows are computed from."""
    reach: tuple[int | None, ...]
    """How long before the latest tuple those of each input may be, in microseconds; None if there is no limit."""
    has_windows: bool
    """Whether its rows depend on the times of tuples; otherwise no input has a reach."""


class JoinConsumers:
    """All consumers of one join. They come and go; those with the same clauses and conditions share a slot."""

    def __init__(self, schemas: Sequence[pa.Schema]) -> None:
        """Start without consumers; `schemas` has the columns of each input."""
        self.clauses = [ClauseLineages(schema) for schema in schemas]
        self.factors: dict[SharedFactor, set[int]] = {}
        """The slots of each condition."""
        self.capacity = 0
        """A number above all slots."""
        self.added = 0
        """How often a consumer got a slot of its own."""
        self._slots: dict[tuple[tuple[Clause, ...], tuple[SharedFactor, ...]], int] = {}
        self._sharing: Counter[int] = Counter()
        self._free: list[int] = []
        self._columns: list[Counter[str]] = [Counter() for _ in schemas]
        self._reach: list[Counter[int | None]] = [Counter() for _ in schemas]
        self._with_windows = 0

    def __len__(self) -> int:
        """The number of slots in use."""
        return len(self._slots)

    def add(self, consumer: JoinConsumer) -> int:
        """Add a consumer; its slot."""
        key = consumer.clauses, consumer.factors
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = self._free.pop() if self._free else self.capacity
            self.capacity = max(self.capacity, slot + 1)
            self.added += 1
            for clauses, clause in zip(self.clauses, consumer.clauses, strict=True):
                clauses.add(slot, clause)
            for factor in consumer.factors:
                self.factors.setdefault(factor, set()).add(slot)
        self._sharing[slot] += 1
        for names, columns in zip(self._columns, consumer.columns, strict=True):
            names.update(columns)
        for counts, reach in zip(self._reach, consumer.reach, strict=True):
            counts[reach] += 1
        self._with_windows += consumer.has_windows
        return slot

    def remove(self, consumer: JoinConsumer) -> None:
        """Remove a consumer."""
        self._with_windows -= consumer.has_windows
        for names, columns in zip(self._columns, consumer.columns, strict=True):
            names.subtract(columns)
        for counts, reach in zip(self._reach, consumer.reach, strict=True):
            counts[reach] -= 1
            if not counts[reach]:
                del counts[reach]
        key = consumer.clauses, consumer.factors
        slot = self._slots[key]
        self._sharing[slot] -= 1
        if self._sharing[slot]:
            return
        del self._sharing[slot], self._slots[key]
        self._free.append(slot)
        for clauses, clause in zip(self.clauses, consumer.clauses, strict=True):
            clauses.remove(slot, clause)
        for factor in consumer.factors:
            self.factors[factor].discard(slot)
            if not self.factors[factor]:
                del self.factors[factor]

    def columns(self, number: int) -> list[str]:
        """The columns of an input that some consumer needs."""
        return [name for name, count in self._columns[number].items() if count]

    @property
    def has_windows(self) -> bool:
        """Whether some consumer needs the times of tuples."""
        return self._with_windows > 0

    def reach(self, number: int) -> int | None:
        """How long before the latest tuple those of an input may be for some consumer; None if there is no limit."""
        reach = self._reach[number]
        return None if None in reach else max((limit for limit in reach if limit is not None), default=None)
