"""CACQ's comparison with NiagaraCQ (§4): stock quotes joined with news articles, for many queries over one join.

Each query wants the articles about the quotes in a range of prices. The ranges of all queries together contain every
quote, as in the paper; the numbers of quotes, articles and queries are ours. Three plans:

* *shared*: the operator of followed joins (CACQ's plan): the grouped filter on prices before the join, with lineages.
* *pulled up* (NiagaraCQ's best plan): one join for all, then the grouped filter over joined tuples, which are larger.
* *pushed down* (NiagaraCQ's other plan): the selection first, then a join for each query over one shared hash table.

The second experiment has selections that are expensive functions and 1 to 10 articles per quote: the shared plan calls
them for quotes, a plan with the join first for joined tuples. Every plan's rows are verified before it is timed. All
plans are built from Tureen's own parts, so they differ in what they share, not in how well it is written.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from benchmarks.plot import Curves, draw_curves
from benchmarks.report import Report
from benchmarks.routing import clauses_of
from tureen.functions import function_costs
from tureen.matching import Buffers, CellReader, match_block
from tureen.position import Position
from tureen.queries import compile_clauses
from tureen.results.following.followers import Follower
from tureen.stems.index import Block, index_block
from tureen.testing.manual_engine import ManualEngine

START = 1_700_000_000_000_000
QUOTES = 2_000
PRICES = 2_000
ARTICLE_BYTES = 200
COUNTS = (1, 10, 100, 500, 1_000, 2_000)
ARTICLES = (1, 2, 4, 7, 10)
FUNCTIONS = 4
ROUNDS = 5

JOIN = "SELECT s.symbol, s.price AS a, n.body FROM stocks s JOIN articles n ON s.symbol = n.symbol"

Rows = list[tuple[int, int]]
"""The symbol and the price of joined tuples, in order."""


@dataclass(frozen=True)
class JoinFindings:
    """Milliseconds for a block of quotes, by plan: by number of queries, and by number of articles per quote."""

    queries: Mapping[int, Mapping[str, float]]
    articles: Mapping[int, Mapping[str, float]]


def measure(report: Report, root: Path, *, quick: bool) -> JoinFindings:
    """Run both experiments."""
    counts, articles, rounds = (COUNTS[:3], ARTICLES[:2], 2) if quick else (COUNTS, ARTICLES, ROUNDS)
    return JoinFindings(
        {count: _selections(report, root, count, rounds) for count in counts},
        {count: _functions(report, root, count, rounds) for count in articles},
    )


def plot(findings: JoinFindings, report: Report) -> None:
    """Draw both experiments."""
    for name, title, x, times in (
        (
            "cacq-join-queries.svg",
            "Stocks and articles (the paper: shared and pulled up are close, pushed down is slower)",
            "queries",
            findings.queries,
        ),
        (
            "cacq-join-functions.svg",
            "Expensive selections (the paper: shared does not grow with the articles per quote)",
            "articles per quote",
            findings.articles,
        ),
    ):
        draw_curves(report.plot(name, title), title, _curves(times), x=x, y=f"ms for {QUOTES:,} quotes")


def _curves(times: Mapping[int, Mapping[str, float]]) -> Curves:
    plans = dict.fromkeys(plan for by_plan in times.values() for plan in by_plan)
    return {plan: [(count, by_plan[plan]) for count, by_plan in times.items()] for plan in plans}


@contextmanager
def _engine(root: Path, articles: int) -> Iterator[ManualEngine]:
    """An engine with articles about each symbol."""
    with TemporaryDirectory(dir=root) as folder:
        engine = ManualEngine(Path(folder))
        engine.create_stream("stocks", "symbol INT, price INT, ts TIMESTAMP", time="ts", clock="stream")
        engine.create_stream("articles", "symbol INT, body STRING, ts TIMESTAMP", time="ts", clock="stream")
        symbols = np.tile(np.arange(QUOTES, dtype=np.int32), articles)
        bodies = pa.array([f"{number:08d}" + "x" * (ARTICLE_BYTES - 8) for number in range(len(symbols))])
        engine.push("articles", pa.table({"symbol": symbols, "body": bodies, "ts": _times(len(symbols), 0)}))
        yield engine
        engine.close()


def _times(count: int, number: int) -> pa.Array:
    return pa.array(np.full(count, START + number)).cast(pa.timestamp("us", "UTC"))


def _quotes(number: int) -> pa.Table:
    """A quote of each symbol, with prices that are spread evenly."""
    chance = np.random.default_rng(number)
    prices = chance.permutation(np.arange(QUOTES) * PRICES // QUOTES).astype(np.int32)
    symbols = np.arange(QUOTES, dtype=np.int32)
    return pa.table({"symbol": symbols, "price": prices, "ts": _times(QUOTES, number)})


class JoinReader:
    """Reads the new rows of a query from where it stopped, alone or as one of the followers that share the operator."""

    def __init__(self, engine: ManualEngine, sql: str, *, shared: bool) -> None:
        """Register the query."""
        self._engine, self._handle = engine, engine.register(sql, materialize=False)
        self._position = Position.parse(engine.invoker.new_rows(self._handle, None).position())
        self.follower: Follower | None = engine.invoker.follow(self._handle) if shared else None

    def read(self) -> pa.Table:
        """The rows since the last call."""
        new = self._engine.invoker.new_rows(self._handle, self._position, self.follower)
        self._position = Position.parse(new.position())
        return new.rows


def _rows(table: pa.Table) -> Rows:
    return sorted(zip(table.column("symbol").to_pylist(), table.column("a").to_pylist(), strict=True))


def _ranges(count: int) -> list[str]:
    bounds = [number * PRICES // count for number in range(count + 1)]
    return [f"{low} AND {high - 1}" for low, high in pairwise(bounds)]


Plan = Callable[[], list[pa.Table]]
"""Computes the rows of all queries from the quotes that were pushed last."""


def _shared_plan(engine: ManualEngine, texts: Sequence[str]) -> Plan:
    readers = [JoinReader(engine, sql, shared=True) for sql in texts]
    by_query = {reader.follower.clause: reader for reader in readers if reader.follower is not None}
    assert len(by_query) == len(readers), "the queries do not share the operator"
    followers = engine.invoker.followers
    consumer = followers.consumer()
    followers.advance(consumer)

    def read() -> list[pa.Table]:
        matched = followers.advance(consumer)
        return [by_query[clause].read() for clause in (by_query if matched is None else matched)]  # type: ignore[index]

    return read


def _pulled_up_plan(engine: ManualEngine, conditions: Sequence[str]) -> Plan:
    reader = JoinReader(engine, JOIN, shared=True)
    clauses = clauses_of(conditions, "a")
    run = compile_clauses(range(len(clauses)), clauses, pa.schema([("a", pa.int32())]))
    buffers = Buffers()

    def read() -> list[pa.Table]:
        joined = reader.read()
        batch = joined.select(["a"]).combine_chunks().to_batches()[0]
        cells = match_block(Block(batch, index_block(batch, run.names)), run, buffers)
        wanted_rows = CellReader(cells.batch, batch.num_rows)
        return [joined.take(pa.array(wanted_rows.rows_of(number))) for number in range(len(clauses))]

    return read


def _pushed_down_plan(engine: ManualEngine, texts: Sequence[str]) -> Plan:
    readers = [JoinReader(engine, sql, shared=False) for sql in texts]
    return lambda: [reader.read() for reader in readers]


def _selections(report: Report, root: Path, count: int, rounds: int) -> dict[str, float]:
    """Milliseconds of each plan for a block of quotes, with that number of queries."""
    ranges = _ranges(count)
    texts = [f"{JOIN} WHERE s.price BETWEEN {bounds}" for bounds in ranges]
    with _engine(root, 1) as first, _engine(root, 1) as second, _engine(root, 1) as third:
        plans = {
            "shared": (first, _shared_plan(first, texts)),
            "pulled up": (second, _pulled_up_plan(second, [f"a BETWEEN {bounds}" for bounds in ranges])),
            "pushed down": (third, _pushed_down_plan(third, texts)),
        }
        times = _in_rounds(plans, rounds)
    for plan, milliseconds in times.items():
        report.add(f"stocks and articles, {count:,} queries, {plan}", milliseconds, "ms")
    return times


def is_interesting(price: int) -> bool:
    """A selection that takes 20 µs and selects half of the quotes."""
    from time import perf_counter  # noqa: PLC0415 - a stored function imports what it needs

    end = perf_counter() + 20e-6
    while perf_counter() < end:
        pass
    return price % 2 == 0


def _functions(report: Report, root: Path, articles: int, rounds: int) -> dict[str, float]:
    """Milliseconds of each plan for a block of quotes, with expensive selections and that number of articles."""
    with _engine(root, articles) as engine:
        texts, after = [], []
        for number in range(FUNCTIONS):
            engine.create_function(f"is_interesting_{number}", is_interesting, "BOOLEAN", arguments="INT")
            texts.append(f"{JOIN} WHERE is_interesting_{number}(s.price)")
            after.append(f"{JOIN} WHERE is_interesting_{number}(s.price + n.symbol - n.symbol)")
        first, last = (_pushed_down_plan(engine, sqls) for sqls in (texts, after))
        before = function_costs.costs.total().calls
        engine.append("stocks", _quotes(1 << 20))
        expected = [_rows(table) for table in first()]
        calls = function_costs.costs.total().calls - before
        assert [_rows(table) for table in last()] == expected, "the plans give different rows"
        times = _in_rounds({"selections first": (engine, first), "join first": (engine, last)}, rounds)
    report.add(
        f"expensive selections, {articles} articles per quote, calls per quote and query",
        calls / QUOTES / FUNCTIONS,
        "",
    )
    for plan, milliseconds in times.items():
        report.add(f"expensive selections, {articles} articles per quote, {plan}", milliseconds, "ms")
    return times


def _in_rounds(plans: Mapping[str, tuple[ManualEngine, Plan]], rounds: int) -> dict[str, float]:
    """The median milliseconds of each plan; the first block of quotes verifies that all plans give the same rows."""
    seconds: dict[str, list[float]] = {plan: [] for plan in plans}
    for number in range(rounds + 1):
        for engine in {id(engine): engine for engine, _ in plans.values()}.values():
            engine.append("stocks", _quotes(number + 1))
        results = []
        for plan, (_, read) in plans.items():
            began = time.perf_counter()
            tables = read()
            seconds[plan].append(time.perf_counter() - began)
            results.append(sorted(row for table in tables for row in _rows(table)) if number == 0 else [])
        assert all(rows == results[0] for rows in results), "the plans give different rows"
        assert number or results[0], "there are no rows"
    return {plan: 1000 * statistics.median(times[1:]) for plan, times in seconds.items()}
