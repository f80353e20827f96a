"""The performance goals: each is a figure of a run, with the part of the benchmark that measures it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A target; `goal` and `must` are conditions like ">= 0.8", `must` is the minimum that is acceptable."""

    key: str
    part: str
    what: str
    unit: str
    goal: str
    must: str = ""


@dataclass(frozen=True)
class GoalResult:
    """A goal with its measured value, or the reason why it was not measured."""

    goal: Goal
    value: float | None
    reason: str = ""

    @property
    def met(self) -> str:
        """Whether the goal is met, and if not, by how much it is missed."""
        if self.value is None:
            return f"not measured: {self.reason or 'no part of this run measures it'}"
        outcome = verdict(self.value, self.goal.goal)
        if self.goal.must and is_missed(outcome):
            return f"{outcome}; must be {self.goal.must}: {verdict(self.value, self.goal.must)}"
        return outcome


def is_missed(outcome: str) -> bool:
    """Whether a verdict is that of a missed goal."""
    return outcome.startswith("NOT met")


def verdict(value: float, goal: str) -> str:
    """Whether a value satisfies a condition like ">= 0.8" or "<= 2", and if not, by how much it is missed.

    >>> verdict(0.9, ">= 0.8"), verdict(0.6, ">= 0.8"), verdict(3, "<= 2"), verdict(1, "")
    ('met', 'NOT met, 25.0 % short', 'NOT met, 50.0 % over', '')
    >>> verdict(0, "<= 0"), verdict(3, "<= 0")
    ('met', 'NOT met, 3 over')
    """
    if not goal:
        return ""
    sign, limit = goal.split()[0], float(goal.split()[1].replace(",", ""))
    if value >= limit if sign == ">=" else value <= limit:
        return "met"
    if not limit:
        return f"NOT met, {value - limit:,.3g} over"
    return f"NOT met, {100 * abs(value - limit) / limit:,.1f} % {'short' if sign == '>=' else 'over'}"


GOALS = (
    Goal("materialised", "throughput", "4,096 selections materialised / no query", "", ">= 0.8", ">= 0.7"),
    Goal("lazy", "throughput", "4,096 selections lazy / no query", "", ">= 0.95", ">= 0.9"),
    Goal("auto", "throughput", "4,096 selections, materialize='auto' / no query", "", ">= 0.95", ">= 0.9"),
    Goal(
        "one job",
        "peers",
        "4,096 selections / one Spark job with all 4,096 filters, its first run",
        "times",
        ">= 1,000",
        ">= 500",
    ),
    Goal("warm job", "peers", "the same, once Java has compiled all of that job, for information", "times", ""),
    Goal("streams", "peers", "128 selections / a Spark streaming query for each", "times", ">= 150"),
    Goal("rules", "alerts", "alert rules held, 10,000 rows/s, fresh within 2 s", "rules", ">= 1,000,000"),
    Goal("dense materialised", "dense", "dense selections held so, materialised", "queries", ">= 65,536"),
    Goal("dense auto", "dense", "dense selections held so, materialize='auto'", "queries", ">= 65,536"),
    Goal("churn", "churn", "matching after thousands of queries came and went / compiled anew", "times", "<= 1.2"),
    Goal("growth auto", "throughput", "cost per tuple, 65,536 / 128 queries, materialize='auto'", "times", "<= 8"),
    Goal("growth materialised", "throughput", "the same, materialised, for information", "times", ""),
    Goal("invoke ratio", "invoke", "DuckDB from scratch / invocation, selective, a million rows", "times", ">= 100"),
    Goal("invoke", "invoke", "invocation in process, selective, a million rows, p50", "ms", "<= 0.1"),
    Goal("join", "joins", "invocation of a join, 0.1 % of each side, a million rows a side, lazy, p50", "ms", "<= 2"),
    Goal("join ratio", "joins", "DuckDB from scratch over Arrow / the same", "times", ">= 20"),
    Goal(
        "probe table",
        "joins",
        "DuckDB's hash join over its table / 16,384 probes of 6.3 million rows",
        "times",
        ">= 3",
    ),
    Goal("probe arrow", "joins", "the same, DuckDB over Arrow", "times", ">= 10"),
    Goal("join kept p50", "joins", "the same join, its results kept, p50", "ms", "<= 0.3"),
    Goal("join kept ratio", "joins", "DuckDB from scratch over Arrow / the same", "times", ">= 100"),
    Goal("joins auto", "join_throughput", "rows/s with 1,000 join queries, materialize='auto' / none", "", ">= 0.85"),
    Goal("join kept", "join_throughput", "rows/s with a join kept, one partner per tuple / none", "", ">= 0.4"),
    Goal("joins kept", "join_throughput", "rows/s with 1,000 queries of a kept join / one", "", ">= 0.8"),
    Goal("spark join", "join_throughput", "rows/s with a join kept / Spark's stream-stream join", "times", ">= 5"),
    Goal("spark joins", "join_throughput", "1,000 kept / Spark's, 32 streaming queries", "times", ">= 100"),
    Goal("xml elements", "xml", "XML elements pushed in a second of a core", "elements/s", ">= 100000"),
    Goal("closed memory", "closed_keys", "memory of ten million closed keys", "MB", "<= 200"),
    Goal("closed row", "closed_keys", "look-up of a row in them, in a block of 65,536", "µs", "<= 1"),
    Goal(
        "covered",
        "covering",
        "a lazy query with an expression, from its stream / from a derived stream of 1 %",
        "times",
        ">= 10",
    ),
    Goal("matching", "sharing", "a query matched with 10,000 derived streams, p50", "ms", "<= 10"),
    Goal(
        "shared query shipping",
        "sharing",
        "traffic of 100 queries in a 4×4 grid, shared / query shipping",
        "",
        "<= 0.5",
    ),
    Goal("shared data shipping", "sharing", "the same / data shipping", "", "<= 0.1"),
    Goal("planning", "sharing", "planning a query in the grid with 1,000 standing queries, p50", "ms", "<= 50"),
    Goal("federated", "federation", "bytes of four servers, shared flows / data shipping", "", "<= 0.5"),
    Goal(
        "planning servers",
        "federation",
        "planning a query in a grid of 16 servers from what they tell, p50",
        "ms",
        "<= 50",
    ),
    Goal("followed joins", "continuous_joins", "a push, 1,000 followed queries over one join / one", "times", "<= 3"),
    Goal(
        "adaptation",
        "continuous_joins",
        "work per tuple 2 s after the selectivities of two joins were exchanged / best order",
        "times",
        "<= 1.2",
    ),
    Goal(
        "derived join",
        "join_peers",
        "rows/s of a derived join / Spark's stream-stream join, 20,000 rows of each stream at a time",
        "times",
        ">= 5",
    ),
    Goal("derived join bulk", "join_peers", "the same, 131,072 rows at a time, for information", "times", ""),
    Goal("derived join flink", "join_peers", "the first / Flink's join, for information", "times", ""),
    Goal(
        "four spark",
        "join_peers",
        "rows/s of a derived join of four / Spark's joins in a row, 20,000 rows of each stream at a time",
        "times",
        ">= 5",
    ),
    Goal("four spark bulk", "join_peers", "the same, 65,536 rows at a time, for information", "times", ""),
    Goal("four flink", "join_peers", "the first / Flink's joins", "times", ">= 5"),
    Goal("fan-out", "fanout", "push to the last of 4,000 followers / a plain event server, p50", "times", "<= 2"),
    Goal("fan-out first", "fanout", "push to the first of them / the same", "times", "<= 1"),
    Goal("fan-out processor", "fanout", "processor time of the server for the push / the same", "times", "<= 2"),
    Goal("fan-out memory", "fanout", "memory of the server for each of them / the same", "times", "<= 2"),
    Goal("fan-out threads", "fanout", "threads for 4,000 followers, more than for 8: the pool's", "", "<= 64"),
    Goal("fan-out stalled", "fanout", "push to the last follower, 8 others do not read / none", "times", "<= 1.5"),
    Goal("feed", "fanout", "push to its changes in a feed of 10,000 queries and a template, p50", "ms", "<= 100"),
    Goal("pages", "pages", "invocation, p99, 50 pages open / none", "times", "<= 1.1"),
    Goal("jit", "jit", "clique join of 6, bushy: processor time without / with feedback", "times", ">= 10"),
    Goal("jit scanned", "jit", "the same with nested loops, as in the paper", "times", ">= 10"),
    Goal("jit state", "jit", "the same: tuples and intermediate results held, less with feedback", "%", ">= 60"),
    Goal("jit left-deep", "jit", "left-deep plans: worst processor time with / without feedback", "times", "<= 1.05"),
    Goal("jit overhead", "jit", "every tuple has partners: more processor time with feedback", "%", "<= 5"),
    Goal("pwjoin unpunctuated", "pwjoin", "a join without punctuations, PWJoin / window join", "times", "<= 1.02"),
    Goal("pwjoin irrelevant", "pwjoin", "the same, punctuations less than all keys of tuples", "times", "<= 1.1"),
    Goal("pwjoin irrelevant between", "pwjoin", "the same, punctuations between keys of tuples", "times", "<= 1.1"),
    Goal("pwjoin state", "pwjoin", "state with punct-asc-100-40 and 15 s, PWJoin / window join", "times", "<= 0.5"),
    Goal("pwjoin rate", "pwjoin", "rows/s of the same", "times", ">= 1"),
    Goal("http", "service", "invocation over HTTP, p50", "ms", "<= 1"),
    Goal("visible", "fresh", "push to visible, one row, in process, p50", "ms", "<= 5"),
    Goal("visible late", "fresh", "the same, p99", "ms", "<= 50"),
    Goal("derived", "fresh", "added by three derived streams in a row, p50", "ms", "<= 50"),
    Goal("visible joined", "fresh", "push to visible in a kept join / in a selection, p50", "", "<= 1.1"),
    Goal("followed", "fresh", "push to a follower's hands over HTTP, one row, p50", "ms", "<= 20"),
    Goal(
        "followed groups",
        "followed_groups",
        "push to change, 10,000 followed groups, 10,000 rows/s, p99",
        "s",
        "<= 0.3",
    ),
    Goal("followed limits", "followed_groups", "the same, 10,000 limits of 100 groups, p99", "s", "<= 0.3"),
    Goal("cold", "fresh", "first answer in a new process, with its start", "s", "<= 1"),
)
