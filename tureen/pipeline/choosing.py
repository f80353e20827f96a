"""Which clauses are kept ready: what invocations asked for, turned into rates, decided by the eddy, and committed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from tureen.eddy.materializing import Budget, Demand, Prices, eager_clauses, saved, spent
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.clauses import choosable_clauses, choose_clauses, chosen_clauses
from tureen.pot.runs import live_runs
from tureen.pot.streams import Stream, list_streams
from tureen.results.watch import Pace, Watch

HALF_LIFE = 30.0
"""Seconds after which what was observed counts half."""

FORGET_BELOW = 1.0
"""A clause that is asked about fewer tuples in a second is no longer watched."""

_SURE_OF_A_PACE = 1e7
"""So many tuples of an invocation weigh as much as the price that was assumed."""


@dataclass
class _Rate:
    """A clause's tuples, fading."""

    stream: int
    asked: float = 0.0
    hits: float = 0.0


@dataclass
class _Tide:
    """A stream's arrivals, fading."""

    last_id: int
    arrived: float = 0.0


@dataclass
class Chooser:
    """Remembers rates from look to look; the clock is whoever calls it."""

    catalog: Catalog
    watch: Watch
    budget: Budget = field(default_factory=Budget)
    _seconds: float = 0.0
    _prices: Prices = field(default_factory=Prices)
    _rates: dict[int, _Rate] = field(default_factory=dict)
    _tides: dict[int, _Tide] = field(default_factory=dict)

    def choose(self, passed: float) -> bool:
        """Decide again after so many seconds; True if some clause changed sides."""
        self._fade(passed)
        self._count()
        with self.catalog.read() as tx:
            streams = list_streams(tx)
            kept = {stream.id: chosen_clauses(tx, stream.id) for stream in streams}
            demands = [one for stream in streams for one in self._demands(tx, stream, kept[stream.id])]
        before = frozenset().union(*kept.values())
        if self._seconds < HALF_LIFE:
            # What was kept before a restart stays until there is something to judge it by.
            after = eager_clauses(demands, before, self._prices, self.budget) | before
        else:
            after = eager_clauses(demands, before, self._prices, self.budget)
        self._explain(demands, after)
        if after == before:
            return False
        crash_point("choose.before_commit")
        with self.catalog.write() as tx:
            choose_clauses(tx, take_seq(tx), after - before, before - after)
        return True

    def _fade(self, passed: float) -> None:
        left = 0.5 ** (passed / HALF_LIFE)
        self._seconds = self._seconds * left + passed
        for rate in self._rates.values():
            rate.asked *= left
            rate.hits *= left
        for tide in self._tides.values():
            tide.arrived *= left

    def _count(self) -> None:
        counts = self.watch.take()
        for clause, count in counts.clauses.items():
            rate = self._rates.setdefault(clause, _Rate(count.stream))
            rate.asked += count.tuples
            rate.hits += count.hits
        self._prices = replace(
            self._prices,
            evaluate=_learnt(self._prices.evaluate, counts.evaluated),
            look_up=_learnt(self._prices.look_up, counts.looked_up),
        )
        seconds = max(self._seconds, 1.0)
        self._rates = {clause: rate for clause, rate in self._rates.items() if rate.asked / seconds >= FORGET_BELOW}

    def _demands(self, tx: Connection, stream: Stream, kept: set[int]) -> list[Demand]:
        tide = self._tides.setdefault(stream.id, _Tide(stream.next_id))
        tide.arrived += stream.next_id - tide.last_id
        tide.last_id = stream.next_id
        asked = {clause: rate for clause, rate in self._rates.items() if rate.stream == stream.id}
        mine = {clause: asked[clause] for clause in choosable_clauses(tx, asked.keys())}
        if not mine and not kept:
            return []
        held = sum(run.rows for run in live_runs(tx, stream.id))
        seconds = max(self._seconds, 1.0)
        nothing = _Rate(stream.id)
        return [
            Demand(
                clause,
                rate.asked / seconds,
                rate.hits / rate.asked if rate.asked else 0.0,
                tide.arrived / seconds,
                held,
            )
            for clause in mine.keys() | kept
            for rate in (mine.get(clause, nothing),)
        ]

    def _explain(self, demands: list[Demand], after: frozenset[int]) -> None:
        reasons = {}
        for demand in demands:
            gain, cost = saved(demand, self._prices), spent(demand, self._prices, eager=demand.clause in after)
            how = "kept ready" if demand.clause in after else "evaluated when asked for"
            sums = f"takes {cost / 1000:.3g} µs of a second and saves invocations {gain / 1000:.3g} µs"
            reasons[demand.clause] = f"{how}: keeping it {sums}"
        self.watch.reasons = reasons


def _learnt(price: float, pace: Pace) -> float:
    """A price in nanoseconds per tuple, moved towards what was measured."""
    if not pace.tuples:
        return price
    return (price * _SURE_OF_A_PACE + pace.nanoseconds) / (_SURE_OF_A_PACE + pace.tuples)
