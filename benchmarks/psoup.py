"""PSoup's experiments: response times against windows and predicates, arrival rates against numbers of queries.

* *Fig. 7a, b* (§5.2.2): response time by size of the window, for one to four equalities or interval predicates.
* *Table 2* (§5.2.3): response time by number of interval predicates, over windows of 2^15 tuples.
* *Fig. 9* (§5.2.4): arrival rate by number of queries of one to four interval predicates, windows of 1,000 tuples.
* *Figs. 12 and 13* (§5.5): the same on traffic, windows of 1,000 and 10,000 tuples.

NoMat evaluates at invocation from the indexes, PSoup-P keeps what satisfies the WHERE clause and applies the window at
invocation, PSoup-C keeps the current window's results: `psoup_response` and `psoup_variants` say how. Everything that
is timed was compared with numpy first. The paper ran in memory; here every batch that is taken in is written and
fsynced. What stands here as the paper's is from its text and its Table 2, so mostly an order of magnitude.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.plot import draw_curves
from benchmarks.psoup_arrival import NAMES, Feed, arrival_rates
from benchmarks.psoup_response import COMPLETE, NOMAT, PARTIAL, Curves, Pace, response_times
from benchmarks.psoup_variants import C_LAZILY, C_SHARED, C_UNSHARED, P_SHARED, P_UNSHARED
from benchmarks.psoup_workload import Workload, equalities, intervals, uniform
from benchmarks.report import Report
from benchmarks.traffic import traffic

EQUALITIES, INTERVALS, TRAFFIC = "equalities", "intervals", "traffic"

OF_RESPONSES: Mapping[tuple[str, str, str], str] = {
    (EQUALITIES, NOMAT, PARTIAL): "10 to 100",
    (EQUALITIES, PARTIAL, COMPLETE): "100",
    (INTERVALS, NOMAT, PARTIAL): "10 to 100",
    (INTERVALS, PARTIAL, COMPLETE): "comparable",
    (TRAFFIC, NOMAT, PARTIAL): "the same trend",
    (TRAFFIC, PARTIAL, COMPLETE): "the same trend",
}
"""What the paper finds of the ratio of two response times, by workload."""

PAPERS_LARGEST = 1 << 16
"""The largest window of the paper."""

TABLE_2: Mapping[int, Mapping[str, float]] = {
    1: {NOMAT: 0.3940, PARTIAL: 0.0465, COMPLETE: 0.0565},
    2: {NOMAT: 0.4905, PARTIAL: 0.0240, COMPLETE: 0.0210},
    4: {NOMAT: 0.8255, PARTIAL: 0.0130, COMPLETE: 0.0035},
}
"""The paper's milliseconds by number of interval predicates and variant."""

RATIOS = (
    (P_SHARED, NOMAT),
    (P_SHARED, P_UNSHARED),
    (P_SHARED, C_SHARED),
    (P_SHARED, C_LAZILY),
    (C_SHARED, C_UNSHARED),
)
"""Of which arrival rates a ratio is reported."""

OF_RATES: Mapping[tuple[str, str, str], str] = {
    (INTERVALS, P_SHARED, P_UNSHARED): "10, growing with the queries",
    (INTERVALS, P_SHARED, C_SHARED): "100",
    (INTERVALS, C_SHARED, C_UNSHARED): "almost 1",
    (TRAFFIC, P_SHARED, P_UNSHARED): "above 1",
    (TRAFFIC, P_SHARED, C_SHARED): "above 1",
    (TRAFFIC, C_SHARED, C_UNSHARED): "above 1",
}
"""What the paper finds of them, by workload; the others are not in it."""


@dataclass(frozen=True)
class Scale:
    """The sizes of all experiments."""

    queries: int
    """How many queries are invoked."""
    windows: Sequence[int]
    wide: Sequence[int]
    """Larger windows, for selective queries only."""
    fixed: int
    """The window of Table 2."""
    pace: Pace
    counts: Sequence[int]
    """How many queries tuples are matched with."""
    small: int
    large: int
    """The windows while tuples arrive."""
    feed: Feed


WHOLE = Scale(
    queries=64,
    windows=[1 << power for power in (7, 9, 11, 13, 14, 15, 16, 17)],
    wide=[1 << 18, 1 << 20],
    fixed=1 << 15,
    pace=Pace(batch=40_009, batches=2, rounds=5),
    counts=[1 << power for power in (7, 9, 10, 11, 12)],
    small=1_000,
    large=10_000,
    feed=Feed(1 << 16, 5),
)
QUICK = Scale(
    queries=3,
    windows=[128, 4_500],
    wide=[6_000],
    fixed=4_500,
    pace=Pace(batch=4_099, batches=1, rounds=1),
    counts=[4, 12],
    small=100,
    large=6_000,
    feed=Feed(4_500, 1),
)


@dataclass(frozen=True)
class Findings:
    """What was found, for plotting; times in milliseconds, rates in tuples per second."""

    windows: Mapping[str, Curves]
    """Response time by workload, variant and size of the window."""
    predicates: Mapping[int, Mapping[str, float]]
    """Response time by number of interval predicates and by variant."""
    arrivals: Mapping[tuple[str, int], Curves]
    """Arrival rate by workload and window, variant and number of queries."""


def measure(root: Path, report: Report, *, quick: bool = False) -> Findings:
    """Run all experiments; `quick` makes them small, so that they say nothing but that they work."""
    scale = QUICK if quick else WHOLE
    report.note(
        "Response times are those of whole answers. Finding the rows alone leaves out what all variants do alike: "
        "asking the catalog whether something changed, and copying the tuples into an Arrow table."
    )
    most, few = max(scale.counts), scale.queries
    near, far = scale.windows, [*scale.windows, *scale.wide]
    enough = scale.pace.rows(far)
    windows = {
        workload.name: _windows(root, workload, sizes, scale.pace, report)
        for workload, sizes in (
            (uniform(EQUALITIES, enough, equalities(few)), far),
            (uniform(INTERVALS, scale.pace.rows(near), intervals(few)), near),
            (traffic(TRAFFIC, enough, few), far),
        )
    }
    predicates = {number: _predicates(root, number, scale, report) for number in TABLE_2}
    synthetic = uniform(INTERVALS, scale.feed.rows, intervals(most))
    trace = traffic(TRAFFIC, scale.feed.rows, most)
    arrivals = {
        (workload.name, size): _arrivals(root, workload, size, scale, report)
        for workload, size in ((synthetic, scale.small), (trace, scale.small), (trace, scale.large))
    }
    return Findings(windows, predicates, arrivals)


def plot(findings: Findings, folder: Path) -> None:
    """Draw the paper's figures with what was found; Table 2 beside what the paper has."""
    for name, curves in findings.windows.items():
        _draw(folder / f"psoup-response-{name}.svg", f"Response time, {name}", curves, "tuples in the window")
    tables = {"": findings.predicates, ", in the paper": TABLE_2}
    rows = {
        variant + where: {number: row[variant] for number, row in table.items()}
        for variant in (NOMAT, PARTIAL, COMPLETE)
        for where, table in tables.items()
    }
    _draw(folder / "psoup-predicates.svg", "Response time by predicates", rows, "interval predicates")
    for (name, size), curves in findings.arrivals.items():
        title = f"Arrival rate, {name}, windows of {size:,} tuples"
        _draw(folder / f"psoup-arrival-{name}-{size}.svg", title, curves, "queries", "tuples per second")


def _draw(path: Path, title: str, curves: Curves, x: str, y: str = "ms per invocation") -> None:
    points = {name: list(curve.items()) for name, curve in curves.items()}
    draw_curves(path, title, points, x=x, y=y, base=2)


def _windows(root: Path, workload: Workload, sizes: Sequence[int], pace: Pace, report: Report) -> Curves:
    """Figs. 7a, 7b and 12."""
    whole, rows = response_times(root / f"response-{workload.name}", workload, sizes, pace)
    for size in sizes:
        for name, curve in whole.items():
            report.add(f"response, {workload.name}, window of {size:,}, {name}", curve[size], "ms")
    for size in sorted({PAPERS_LARGEST, max(sizes)} & set(sizes)):
        for one, other in ((NOMAT, PARTIAL), (PARTIAL, COMPLETE)):
            what = f"{one} / {other}, {workload.name}, window of {size:,}"
            paper = OF_RESPONSES[workload.name, one, other]
            report.add(f"{what} (paper: {paper})", whole[one][size] / whole[other][size], "times")
            report.add(f"{what}, finding the rows alone", rows[one][size] / rows[other][size], "times")
    return whole


def _predicates(root: Path, number: int, scale: Scale, report: Report) -> dict[str, float]:
    """A row of Table 2."""
    name = f"{number} interval predicate{'s' if number > 1 else ''}"
    workload = uniform(name, scale.pace.rows([scale.fixed]), intervals(scale.queries, predicates=number))
    whole, rows = response_times(root / f"predicates-{number}", workload, [scale.fixed], scale.pace)
    paper = TABLE_2[number]
    for variant, curve in whole.items():
        report.add(f"response, {name}, {variant} (paper: {paper[variant]})", curve[scale.fixed], "ms")
    for one, other in ((NOMAT, PARTIAL), (NOMAT, COMPLETE), (PARTIAL, COMPLETE)):
        ratio, alone = (curves[one][scale.fixed] / curves[other][scale.fixed] for curves in (whole, rows))
        report.add(f"{one} / {other}, {name} (paper: {paper[one] / paper[other]:.3g})", ratio, "times")
        report.add(f"{one} / {other}, {name}, finding the rows alone", alone, "times")
    return {variant: curve[scale.fixed] for variant, curve in whole.items()}


def _arrivals(root: Path, workload: Workload, window: int, scale: Scale, report: Report) -> Curves:
    """Figs. 9, 13a and 13b."""
    what = f"{workload.name}, window of {window:,}"
    found = arrival_rates(root / f"arrival-{workload.name}-{window}", workload, window, scale.counts, scale.feed)
    for count in scale.counts:
        for name in NAMES:
            report.add(f"arrival, {what}, {count:,} queries, {name}", found.rates[name][count], "tuples/s")
    for count in (scale.counts[0], scale.counts[-1]):
        for one, other in RATIOS:
            ratio, used = (curves[one][count] / curves[other][count] for curves in (found.rates, found.by_processor))
            paper = OF_RATES.get((workload.name, one, other))
            name = f"{one} / {other}, {what}, {count:,} queries"
            report.add(name if paper is None else f"{name} (paper: {paper})", ratio, "times")
            report.add(f"{name}, by processor time", used, "times")
    last = scale.counts[-1]
    for name, unit in ((P_SHARED, f"bytes for {scale.feed.batch:,} tuples"), (C_SHARED, "bytes")):
        report.add(f"results kept, {what}, {last:,} queries, {name}", found.bytes[name][last], unit)
    return found.rates
