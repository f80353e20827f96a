"""The choice of eager clauses: counts of invocations become rates, the eddy decides by them, and this commits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tureen.eddy.join_demand import JoinDemand, worth_keeping
from tureen.eddy.materializing import Budget, Demand, Prices, eager_clauses, saved, spent
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.clauses import choosable_clauses, choose_clauses, chosen_clauses
from tureen.pot.kept_joins import choosable_joins, choose_joins, find_join
from tureen.pot.runs import live_runs
from tureen.pot.streams import Stream, list_streams
from tureen.pot.transaction import Transaction
from tureen.results.rows.watch import Pace, Watch
from tureen.stream_join import StreamJoin

HALF_LIFE = 30.0
"""The half-life of observations, in seconds."""

FORGET_BELOW = 1.0
"""A clause whose invocations read fewer tuples per second is no longer tracked."""

_PRIOR_TUPLES = 1e7
"""The weight of an assumed price: that of this many measured tuples."""


@dataclass
class _ClauseDemand:
    """The tuples that invocations of a clause read, and those that matched, decaying."""

    stream: int
    read: float = 0.0
    hits: float = 0.0
    functions: Pace = field(default_factory=Pace)
    """What calling its user functions took, of all invocations."""


@dataclass
class _Arrivals:
    """The tuples that arrived in a stream, decaying."""

    last_id: int
    tuples: float = 0.0


@dataclass
class _JoinLoad:
    """The invocations of queries with a join, decaying, and what evaluating it took."""

    invocations: float = 0.0
    evaluations: int = 0
    nanoseconds: int = 0


@dataclass
class Chooser:
    """Keeps rates between decisions; the caller passes the time."""

    catalog: Catalog
    watch: Watch
    budget: Budget = field(default_factory=Budget)
    _seconds: float = 0.0
    _prices: Prices = field(default_factory=Prices)
    _clauses: dict[int, _ClauseDemand] = field(default_factory=dict)
    _arrivals: dict[int, _Arrivals] = field(default_factory=dict)
    _joins: dict[int, _JoinLoad] = field(default_factory=dict)

    def choose(self, elapsed: float) -> bool:
        """Decide again after `elapsed` seconds; True if a clause became eager or lazy, or a join is kept or not."""
        self._decay(elapsed)
        self._count()
        clauses_changed = self._choose_clauses()
        return self._choose_joins() or clauses_changed

    def _choose_clauses(self) -> bool:
        with self.catalog.read() as tx:
            streams = list_streams(tx)
            chosen = {stream.id: chosen_clauses(tx, stream.id) for stream in streams}
            demands = [demand for stream in streams for demand in self._demands(tx, stream, chosen[stream.id])]
        before = frozenset().union(*chosen.values())
        if self._seconds < HALF_LIFE:
            # Clauses that were eager before a restart stay so until there are enough observations.
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

    def _decay(self, elapsed: float) -> None:
        factor = 0.5 ** (elapsed / HALF_LIFE)
        self._seconds = self._seconds * factor + elapsed
        for demand in self._clauses.values():
            demand.read *= factor
            demand.hits *= factor
        for arrivals in self._arrivals.values():
            arrivals.tuples *= factor
        for load in self._joins.values():
            load.invocations *= factor

    def _count(self) -> None:
        counts = self.watch.take()
        for clause, count in counts.clauses.items():
            demand = self._clauses.setdefault(clause, _ClauseDemand(count.stream))
            demand.read += count.tuples
            demand.hits += count.hits
            demand.functions.tuples += count.functions.tuples
            demand.functions.nanoseconds += count.functions.nanoseconds
        for join, joined in counts.joins.items():
            load = self._joins.setdefault(join, _JoinLoad())
            load.invocations += joined.invocations
            load.evaluations += joined.evaluations
            load.nanoseconds += joined.nanoseconds
        self._prices = replace(
            self._prices,
            evaluate=_updated_price(self._prices.evaluate, counts.evaluated),
            look_up=_updated_price(self._prices.look_up, counts.looked_up),
        )
        seconds = max(self._seconds, 1.0)
        self._clauses = {
            clause: demand for clause, demand in self._clauses.items() if demand.read / seconds >= FORGET_BELOW
        }

    def _demands(self, tx: Transaction, stream: Stream, chosen: set[int]) -> list[Demand]:
        arrivals = self._arrivals.setdefault(stream.id, _Arrivals(stream.next_id))
        arrivals.tuples += stream.next_id - arrivals.last_id
        arrivals.last_id = stream.next_id
        of_stream = {clause: demand for clause, demand in self._clauses.items() if demand.stream == stream.id}
        choosable = {clause: of_stream[clause] for clause in choosable_clauses(tx, of_stream.keys())}
        if not choosable and not chosen:
            return []
        retained = sum(run.rows for run in live_runs(tx, stream.id))
        seconds = max(self._seconds, 1.0)
        no_demand = _ClauseDemand(stream.id)
        return [
            Demand(
                clause,
                demand.read / seconds,
                demand.hits / demand.read if demand.read else 0.0,
                arrivals.tuples / seconds,
                retained,
                demand.functions.nanoseconds / demand.functions.tuples if demand.functions.tuples else 0.0,
            )
            for clause in choosable.keys() | chosen
            for demand in (choosable.get(clause, no_demand),)
        ]

    def _choose_joins(self) -> bool:
        with self.catalog.read() as tx:
            choosable = choosable_joins(tx)
            demands = [self._join_demand(tx, join) for join in choosable]
        before = frozenset(join for join, is_chosen in choosable.items() if is_chosen)
        after = worth_keeping(demands, before, self.budget.cpu)
        if self._seconds < HALF_LIFE:
            after |= before
        self._joins = {join: load for join, load in self._joins.items() if join in choosable}
        self.watch.join_reasons = {
            demand.join: f"{'kept' if demand.join in after else 'evaluated when asked for'}: keeping it takes "
            f"{demand.spent(kept=demand.join in after) / 1000:.3g} µs of a second and saves invocations "
            f"{demand.saved / 1000:.3g} µs"
            for demand in demands
        }
        if after == before:
            return False
        with self.catalog.write() as tx:
            take_seq(tx)
            choose_joins(tx, after - before, before - after)
        return True

    def _join_demand(self, tx: Transaction, join_id: int) -> JoinDemand:
        load = self._joins.get(join_id, _JoinLoad())
        join = find_join(tx, join_id)
        stream_ids = [] if join is None else StreamJoin.of_key(join.key).streams
        seconds = max(self._seconds, 1.0)
        arrivals = sum(self._arrivals[stream_id].tuples for stream_id in stream_ids if stream_id in self._arrivals)
        held = sum(run.rows for stream_id in stream_ids for run in live_runs(tx, stream_id))
        evaluation = load.nanoseconds / load.evaluations if load.evaluations else 0.0
        return JoinDemand(join_id, load.invocations / seconds, evaluation, arrivals / seconds, held)

    def _explain(self, demands: list[Demand], after: frozenset[int]) -> None:
        reasons = {}
        for demand in demands:
            gain, cost = saved(demand, self._prices), spent(demand, self._prices, eager=demand.clause in after)
            choice = "kept ready" if demand.clause in after else "evaluated when asked for"
            costs = f"takes {cost / 1000:.3g} µs of a second and saves invocations {gain / 1000:.3g} µs"
            reasons[demand.clause] = f"{choice}: keeping it {costs}"
        self.watch.reasons = reasons


def _updated_price(price: float, pace: Pace) -> float:
    """A price in nanoseconds per tuple, adjusted by a measurement."""
    if not pace.tuples:
        return price
    return (price * _PRIOR_TUPLES + pace.nanoseconds) / (_PRIOR_TUPLES + pace.tuples)
