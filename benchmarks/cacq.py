"""CACQ's experiments: routing policies, adaptation, and the benefit of shared filters.

Streams of integer columns, uniform in one range, as in the paper. How each workload is built is the paper's; the number
of columns (five, a to e), their range [0, 100), the constants and the numbers of tuples and queries are ours.

* *Routing* (§3, "Routing Scheme vs. Filters per Tuple"): five queries, the n-th over the first n columns, the most
  selective column in all of them: 10 % of the tuples pass the filter on a, 30 % b, 50 % c, 70 % d and 90 % e. A
  tuple leaves when no query is undecided about it. The paper runs a server for a minute; here a fixed number of tuples
  is counted, one by one as there, and in blocks, and also by an eddy that skips filters no query is waiting for.
* *Adaptation* (§3, "Percentage of Tickets Routed to Filters over Time"): queries come one after another, time is
  counted in tuples, and tickets expire. Not in the paper: the columns swap their selectivities in the middle, against a
  static order.
* *Sharing* (§2.2, "Tuple Throughput vs. Number of Queries" and "… Number of Sources"): random range predicates, one on
  each column with some chance (here even), or a single one where there are several sources. Blocks are matched by the
  engine's kernels, not tuples by balanced trees. The baseline is not an eddy per query: each query alone is a mask of
  numpy comparisons over the same block, or one lookup in an index that all of them use (the cost of a lazy query).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.cacq_state import tuple_state
from benchmarks.report import Report
from benchmarks.routing import GroupedFilters, Probe, alone, clauses_of, route
from tureen.eddy import Eddy, Policy, Random, Tickets, Work, consumed, eliminated, optimal, weighted, worst
from tureen.matching import Buffers, CellReader, Selector, match_block
from tureen.predicate import Clause, Within
from tureen.queries import QueryRun, compile_clauses
from tureen.stems.index import Block, index_block

COLUMNS = "abcde"
NESTED = [" AND ".join(f"{name} >= {90 - 20 * index}" for index, name in enumerate(COLUMNS[:n])) for n in range(1, 6)]
"""10 % of the tuples pass a, which is in all five queries; 90 % pass e, which is in one."""
APART = [f"{name} >= {10 + 20 * index}" for index, name in enumerate(COLUMNS)]
"""One filter each: 90 % of the tuples pass a, 10 % pass e."""
EVEN = [" AND ".join(f"{name} >= 50" for name in COLUMNS[:n]) for n in range(1, 6)]
"""Every filter passes half of the tuples; a is in all five queries, e in one."""
CROSSED = [" AND ".join(f"{name} >= {10 + 20 * index}" for index, name in enumerate(COLUMNS[:n])) for n in range(1, 6)]
"""10 % of the tuples pass e, which is in one query; 90 % pass a, which is in all five."""
ALIKE = [" AND ".join(f"{name} >= {46 + 2 * n}" for name in COLUMNS) for n in range(5)]
"""Every query names every column."""

ROUTED = 8_192
BIN = 256
WINDOW = 512
BLOCK = 64
EVERY = 1_024
ROWS = 16_384
COUNTS = (1, 8, 64, 512, 4096)
SOURCES = (1, 2, 4, 8, 16)
SOURCE_QUERIES = 512
ROUNDS = 5
SEED = 2002


@dataclass(frozen=True)
class CacqFindings:
    """The measurements, for plotting."""

    filters: Mapping[str, Mapping[str, float]]
    """Filters that a tuple visits, by rule or block size and by policy."""
    over_time: Mapping[str, Sequence[float]]
    """The same for each BIN of tuples, by policy, with a swap of selectivities in the middle."""
    tickets: Mapping[str, Mapping[str, Sequence[float]]]
    """The share of each filter's tickets after each BIN of tuples, by workload; EVERY tuples a query is added."""
    queries: Mapping[int, Mapping[str, float]]
    """Tuples per second by number of queries and method of filtering."""
    sources: Mapping[int, Mapping[str, float]]
    """The same by number of sources."""
    state: Mapping[int, Mapping[str, float]]
    """The same by bits of tuple state, and by coding."""


def measure(report: Report) -> CacqFindings:
    """Run all experiments; each is verified before anything is counted or timed."""
    return CacqFindings(
        routing(report),
        adaptation(report),
        arrivals(report),
        many_queries(report),
        many_sources(report),
        tuple_state(report),
    )


def tuples(rows: int, seed: int) -> pa.RecordBatch:
    """Tuples of columns uniform in [0, 100)."""
    chance = np.random.default_rng(seed)
    return pa.record_batch({name: pa.array(chance.integers(0, 100, rows, dtype=np.int32)) for name in COLUMNS})


def swapping(rows: int, seed: int) -> pa.RecordBatch:
    """Tuples of which 10 % are high in a, …, 90 % in e; from the middle on, 90 % in a, …, 10 % in e."""
    chance = np.random.default_rng(seed)
    columns = {}
    for index, name in enumerate(COLUMNS):
        share = np.where(np.arange(rows) < rows // 2, 0.1 + 0.2 * index, 0.9 - 0.2 * index)
        high = chance.random(rows) < share
        columns[name] = pa.array((chance.integers(0, 50, rows) + 50 * high).astype(np.int32))
    return pa.record_batch(columns)


def schemes(filters: GroupedFilters, work: Work) -> dict[str, Policy]:
    """The policies to compare, each with its own random generator."""
    operators = filters.flow.operators
    return {
        "random": Random(random.Random(SEED)),
        "tickets, by tuples": Tickets(random.Random(SEED), consumed),
        "tickets, by tuples and predicates (CACQ's)": Tickets(random.Random(SEED), weighted),
        "tickets, by queries eliminated": Tickets(random.Random(SEED), eliminated),
        "optimal": optimal(operators, work),
        "worst": worst(operators, work),
    }


def routing(report: Report) -> dict[str, dict[str, float]]:
    """The number of filters that a tuple visits under each policy."""
    batch = tuples(ROUTED, SEED)
    clauses = clauses_of(NESTED, COLUMNS)
    filters = GroupedFilters(clauses, batch.schema)
    expected = alone(clauses, batch)
    visits: dict[str, dict[str, float]] = {}
    methods: list[tuple[str, Probe, int, bool]] = [
        ("tuple by tuple", filters.looking_up(batch), 1, False),
        ("tuple by tuple, sparing", filters.looking_up(batch), 1, True),
        (f"blocks of {BLOCK}", filters.matching(batch), BLOCK, False),
    ]
    for method, probe, size, sparing in methods:
        visits[method] = {}
        work = filters.work(batch, sparing=sparing)
        for name, policy in schemes(filters, work).items():
            eddy = Eddy(filters.flow, policy, sparing=sparing)
            answers = route(eddy, probe, np.arange(ROUTED), size)
            assert np.array_equal(answers, expected), f"{name} gives wrong answers"
            visits[method][name] = eddy.statistics.visits_per_tuple
            report.add(f"filters per tuple, {method}, {name}", visits[method][name], "")
    return visits


def adaptation(report: Report) -> dict[str, list[float]]:
    """The number of filters that a tuple visits, over time; the selectivities are swapped in the middle."""
    batch = swapping(ROUTED, SEED)
    clauses = clauses_of(ALIKE, COLUMNS)
    filters = GroupedFilters(clauses, batch.schema)
    expected, probe = alone(clauses, batch), filters.looking_up(batch)
    before, after = (filters.work(batch.slice(half * ROUTED // 2, ROUTED // 2), sparing=False) for half in (0, 1))
    operators = filters.flow.operators
    policies: dict[str, tuple[Policy, int | None]] = {
        "static, optimal at first": (optimal(operators, before), None),
        "static, optimal at last": (optimal(operators, after), None),
        "tickets": (Tickets(random.Random(SEED)), WINDOW),
        "tickets that never expire": (Tickets(random.Random(SEED)), None),
    }
    series_by_policy: dict[str, list[float]] = {}
    for name, (policy, window) in policies.items():
        eddy = Eddy(filters.flow, policy, window=window, sparing=False)
        series_by_policy[name], visits = [], 0
        for start in range(0, ROUTED, BIN):
            rows = np.arange(start, start + BIN)
            assert np.array_equal(route(eddy, probe, rows, 1), expected[rows]), f"{name} gives wrong answers"
            series_by_policy[name].append((eddy.statistics.visits - visits) / BIN)
            visits = eddy.statistics.visits
    half, quarter = ROUTED // BIN // 2, ROUTED // BIN // 4
    for name, series in series_by_policy.items():
        report.add(f"filters per tuple, {name}, before the swap", _mean(series[quarter:half]), "")
        report.add(f"filters per tuple, {name}, after it, at the end", _mean(series[-quarter:]), "")
    settled = 1.1 * _mean(series_by_policy["tickets"][-quarter:])
    bins = next(index for index, value in enumerate(series_by_policy["tickets"][half:]) if value <= settled)
    report.add("tuples until tickets are within 10 % of where they end", (bins + 1) * BIN, "tuples")
    return series_by_policy


def arrivals(report: Report) -> dict[str, dict[str, list[float]]]:
    """The share of each filter's tickets over time, while queries are added one after another."""
    shares_by_workload: dict[str, dict[str, list[float]]] = {}
    workloads = {
        "a filter for each query": (APART, Tickets(random.Random(SEED), eliminated)),
        "one selectivity, a in all queries": (EVEN, Tickets(random.Random(SEED), weighted)),
        "a in all queries, e the most selective": (CROSSED, Tickets(random.Random(SEED), weighted)),
    }
    for name, (conditions, policy) in workloads.items():
        shares_by_workload[name] = _shares(clauses_of(conditions, COLUMNS), policy)
        for column in (COLUMNS[0], COLUMNS[-1]):
            report.add(
                f"tickets of {column} at the end, {name}", 100 * _mean(shares_by_workload[name][column][-4:]), "%"
            )
    return shares_by_workload


def _shares(clauses: Sequence[Clause], policy: Tickets) -> dict[str, list[float]]:
    batch = tuples(EVERY * (len(clauses) + 1), SEED)
    shares: dict[str, list[float]] = {name: [] for name in COLUMNS}
    eddy: Eddy | None = None
    for registered in [*range(1, len(clauses) + 1), len(clauses)]:
        filters = GroupedFilters(clauses[:registered], batch.schema)
        if eddy is None:
            eddy = Eddy(filters.flow, policy, window=WINDOW, sparing=False)
        eddy.change(filters.flow)
        first = eddy.statistics.admitted
        probe, expected = filters.looking_up(batch), alone(clauses[:registered], batch)
        for start in range(first, first + EVERY, BIN):
            rows = np.arange(start, start + BIN)
            assert np.array_equal(route(eddy, probe, rows, 1), expected[rows]), "wrong answers"
            operators = filters.flow.operators
            tickets = dict(
                zip((operator.name for operator in operators), policy.holdings(operators, eddy.statistics), strict=True)
            )
            for name, series in shares.items():
                series.append(tickets.get(name, 0.0) / sum(tickets.values()))
    return shares


def random_conditions(count: int, chance: random.Random) -> list[str]:
    """Queries with a range predicate with a random constant on each column with probability 0.5."""
    conditions: list[str] = []
    while len(conditions) < count:
        columns = [name for name in COLUMNS if chance.random() < 0.5]
        if columns:
            conditions.append(" AND ".join(_predicate(name, chance) for name in columns))
    return conditions


def _predicate(column: str, chance: random.Random) -> str:
    return f"{column} {chance.choice(['<', '<=', '>', '>='])} {chance.randrange(100)}"


def many_queries(report: Report) -> dict[int, dict[str, float]]:
    """Tuples per second by number of queries."""
    batch = tuples(ROWS, SEED)
    clauses = clauses_of(random_conditions(max(COUNTS), random.Random(SEED)), COLUMNS)
    rates = {}
    for count in COUNTS:
        rates[count] = _rates(report, f"{count:,} queries", [(batch, clauses[:count])])
    return rates


def many_sources(report: Report) -> dict[int, dict[str, float]]:
    """Tuples per second by number of sources; SOURCE_QUERIES queries of one predicate are spread over them."""
    rates = {}
    for count in SOURCES:
        chance = random.Random(SEED)
        conditions: list[list[str]] = [[] for _ in range(count)]
        for _ in range(SOURCE_QUERIES):
            conditions[chance.randrange(count)].append(_predicate(chance.choice(COLUMNS), chance))
        sources = [
            (tuples(ROWS, SEED + number), clauses_of(source_conditions, COLUMNS))
            for number, source_conditions in enumerate(conditions)
        ]
        rates[count] = _rates(report, f"{SOURCE_QUERIES} queries over {count} sources", sources)
    return rates


def _rates(report: Report, label: str, sources: Sequence[tuple[pa.RecordBatch, Sequence[Clause]]]) -> dict[str, float]:
    methods: dict[str, list[Callable[[], object]]] = {"shared": [], "alone, by masks": [], "alone, by the index": []}
    for batch, clauses in sources:
        run = compile_clauses(range(len(clauses)), clauses, batch.schema)
        _verify(batch, run, clauses)
        methods["shared"].append(_shared(batch, run))
        methods["alone, by masks"].append(_masks(batch, clauses))
        methods["alone, by the index"].append(_index(batch, run.names, clauses))
    rows = sum(batch.num_rows for batch, _ in sources)
    rates = {name: rows / seconds for name, seconds in zip(methods, _in_turns(list(methods.values())), strict=True)}
    for name, rate in rates.items():
        report.add(f"tuples/s, {label}, {name}", rate, "tuples/s")
        if name != "shared":
            report.add(f"shared / {name}, {label}", rates["shared"] / rate, "x")
    return rates


def _shared(batch: pa.RecordBatch, run: QueryRun) -> Callable[[], object]:
    buffers = Buffers()
    return lambda: match_block(Block(batch, index_block(batch, run.names)), run, buffers)


def _index(batch: pa.RecordBatch, names: Sequence[str], clauses: Sequence[Clause]) -> Callable[[], object]:
    selectors = [Selector(clause, batch.schema) for clause in clauses]

    def ask() -> None:
        block = Block(batch, index_block(batch, names))
        for selector in selectors:
            selector.rows(block)

    return ask


def _masks(batch: pa.RecordBatch, clauses: Sequence[Clause]) -> Callable[[], object]:
    columns = {name: batch.column(name).to_numpy() for name in COLUMNS}
    return lambda: [rows_by_mask(clause, columns) for clause in clauses]


def rows_by_mask(clause: Clause, columns: Mapping[str, npt.NDArray[np.int32]]) -> npt.NDArray[np.int64]:
    """The rows of a clause whose factors are one interval each, with a mask for each bound."""
    mask: npt.NDArray[np.bool_] | None = None
    for factor in clause:
        assert isinstance(factor, Within)
        (interval,) = factor.intervals
        for end, limit, open_end in (
            (np.greater, interval.low, interval.low_open),
            (np.less, interval.high, interval.high_open),
        ):
            if limit is not None:
                compare = end if open_end else {np.greater: np.greater_equal, np.less: np.less_equal}[end]
                matches = compare(columns[factor.column], limit)
                mask = matches if mask is None else np.logical_and(mask, matches, out=mask)
    assert mask is not None
    return np.flatnonzero(mask)


def _verify(batch: pa.RecordBatch, run: QueryRun, clauses: Sequence[Clause]) -> None:
    """Check that shared filters, masks and the index return the same rows for every query."""
    reader = CellReader(match_block(Block(batch), run, Buffers()).batch, batch.num_rows)
    columns = {name: batch.column(name).to_numpy() for name in COLUMNS}
    indexed = Block(batch, index_block(batch, run.names))
    for number, clause in enumerate(clauses):
        expected = rows_by_mask(clause, columns)
        assert np.array_equal(reader.rows_of(number), expected), "the shared filters give wrong answers"
        assert np.array_equal(Selector(clause, batch.schema).rows(indexed), expected), "the index gives wrong answers"


def _in_turns(methods: Sequence[Sequence[Callable[[], object]]]) -> list[float]:
    """The best time of each method in seconds; methods take turns, so that other load affects all equally."""
    best = [float("inf")] * len(methods)
    for _ in range(ROUNDS):
        for index, parts in enumerate(methods):
            begin = time.perf_counter()
            for part in parts:
                part()
            best[index] = min(best[index], time.perf_counter() - begin)
    return best


def _mean(series: Sequence[float]) -> float:
    return sum(series) / len(series)


if __name__ == "__main__":
    measure(Report())
