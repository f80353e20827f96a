"""PSoup's experiments: response times against windows and predicates, arrival rates against numbers of queries.

* *Fig. 7a, b* (§5.2.2): response time by size of the window, for one to four equalities or interval predicates.
* *Table 2* (§5.2.3): response time by number of interval predicates, over windows of 2^15 tuples.
* *Fig. 9* (§5.2.4): arrival rate by number of queries of one to four interval predicates, windows of 1,000 tuples.
* *Figs. 12 and 13* (§5.5): the same on traffic, windows of 1,000 and 10,000 tuples.

NoMat evaluates at invocation from the indexes, PSoup-P stores the matches of the WHERE clause and applies the window at
invocation, PSoup-C stores the current window's results (see `psoup_response` and `psoup_variants`). Everything that is
timed is compared with numpy first. The paper ran in memory; here every batch is written and fsynced. The paper's
figures are from its text and its Table 2, so mostly orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.plot import draw_curves
from benchmarks.psoup_arrival import NAMES, BatchPlan, arrival_rates
from benchmarks.psoup_response import COMPLETE, NOMAT, PARTIAL, Curves, InvocationPlan, response_times
from benchmarks.psoup_variants import C_LAZILY, C_SHARED, C_UNSHARED, P_SHARED, P_UNSHARED
from benchmarks.psoup_workload import Workload, equalities, intervals, uniform
from benchmarks.report import Report
from benchmarks.traffic import traffic

EQUALITIES, INTERVALS, TRAFFIC = "equalities", "intervals", "traffic"

PAPER_RESPONSE_RATIOS: Mapping[tuple[str, str, str], str] = {
    (EQUALITIES, NOMAT, PARTIAL): "10 to 100",
    (EQUALITIES, PARTIAL, COMPLETE): "100",
    (INTERVALS, NOMAT, PARTIAL): "10 to 100",
    (INTERVALS, PARTIAL, COMPLETE): "comparable",
    (TRAFFIC, NOMAT, PARTIAL): "the same trend",
    (TRAFFIC, PARTIAL, COMPLETE): "the same trend",
}
"""The paper's ratios of two response times, by workload."""

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
"""The pairs of arrival rates whose ratio is reported."""

PAPER_RATE_RATIOS: Mapping[tuple[str, str, str], str] = {
    (INTERVALS, P_SHARED, P_UNSHARED): "10, growing with the queries",
    (INTERVALS, P_SHARED, C_SHARED): "100",
    (INTERVALS, C_SHARED, C_UNSHARED): "almost 1",
    (TRAFFIC, P_SHARED, P_UNSHARED): "above 1",
    (TRAFFIC, P_SHARED, C_SHARED): "above 1",
    (TRAFFIC, C_SHARED, C_UNSHARED): "above 1",
}
"""The paper's ratios of arrival rates, by workload."""


@dataclass(frozen=True)
class PsoupScale:
    """The sizes of all experiments."""

    queries: int
    """The number of queries that are invoked."""
    windows: Sequence[int]
    wide: Sequence[int]
    """Larger windows, for selective queries only."""
    fixed: int
    """The window of Table 2."""
    plan: InvocationPlan
    counts: Sequence[int]
    """The numbers of queries that tuples are matched with."""
    small: int
    large: int
    """The windows while tuples arrive."""
    batches: BatchPlan


WHOLE = PsoupScale(
    queries=64,
    windows=[1 << power for power in (7, 9, 11, 13, 14, 15, 16, 17)],
    wide=[1 << 18, 1 << 20],
    fixed=1 << 15,
    plan=InvocationPlan(batch=40_009, batches=2, rounds=5),
    counts=[1 << power for power in (7, 9, 10, 11, 12)],
    small=1_000,
    large=10_000,
    batches=BatchPlan(1 << 16, 5),
)
QUICK = PsoupScale(
    queries=3,
    windows=[128, 4_500],
    wide=[6_000],
    fixed=4_500,
    plan=InvocationPlan(batch=4_099, batches=1, rounds=1),
    counts=[4, 12],
    small=100,
    large=6_000,
    batches=BatchPlan(4_500, 1),
)


@dataclass(frozen=True)
class PsoupFindings:
    """The measurements, for plotting; times in milliseconds, rates in tuples per second."""

    windows: Mapping[str, Curves]
    """Response time by workload, variant and size of the window."""
    predicates: Mapping[int, Mapping[str, float]]
    """Response time by number of interval predicates and by variant."""
    arrivals: Mapping[tuple[str, int], Curves]
    """Arrival rate by workload and window, variant and number of queries."""


def measure(root: Path, report: Report, *, quick: bool = False) -> PsoupFindings:
    """Run all experiments; with `quick`, small ones that only check that everything runs."""
    scale = QUICK if quick else WHOLE
    report.note(
        "Response times are those of whole answers. Finding the rows alone leaves out what all variants do alike: "
        "asking the catalog whether something changed, and copying the tuples into an Arrow table."
    )
    max_queries, invoked_queries = max(scale.counts), scale.queries
    small_windows, all_windows = scale.windows, [*scale.windows, *scale.wide]
    rows = scale.plan.rows(all_windows)
    windows = {
        workload.name: _windows(root, workload, sizes, scale.plan, report)
        for workload, sizes in (
            (uniform(EQUALITIES, rows, equalities(invoked_queries)), all_windows),
            (uniform(INTERVALS, scale.plan.rows(small_windows), intervals(invoked_queries)), small_windows),
            (traffic(TRAFFIC, rows, invoked_queries), all_windows),
        )
    }
    predicates = {number: _predicates(root, number, scale, report) for number in TABLE_2}
    synthetic = uniform(INTERVALS, scale.batches.rows, intervals(max_queries))
    trace = traffic(TRAFFIC, scale.batches.rows, max_queries)
    arrivals = {
        (workload.name, size): _arrivals(root, workload, size, scale, report)
        for workload, size in ((synthetic, scale.small), (trace, scale.small), (trace, scale.large))
    }
    return PsoupFindings(windows, predicates, arrivals)


def plot(findings: PsoupFindings, folder: Path) -> None:
    """Draw the paper's figures with the measurements, and Table 2 with the paper's values."""
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


def _windows(root: Path, workload: Workload, sizes: Sequence[int], plan: InvocationPlan, report: Report) -> Curves:
    """Figs. 7a, 7b and 12."""
    whole, rows = response_times(root / f"response-{workload.name}", workload, sizes, plan)
    for size in sizes:
        for name, curve in whole.items():
            report.add(f"response, {workload.name}, window of {size:,}, {name}", curve[size], "ms")
    for size in sorted({PAPERS_LARGEST, max(sizes)} & set(sizes)):
        for numerator, denominator in ((NOMAT, PARTIAL), (PARTIAL, COMPLETE)):
            label = f"{numerator} / {denominator}, {workload.name}, window of {size:,}"
            paper = PAPER_RESPONSE_RATIOS[workload.name, numerator, denominator]
            report.add(f"{label} (paper: {paper})", whole[numerator][size] / whole[denominator][size], "times")
            report.add(f"{label}, finding the rows alone", rows[numerator][size] / rows[denominator][size], "times")
    return whole


def _predicates(root: Path, number: int, scale: PsoupScale, report: Report) -> dict[str, float]:
    """A row of Table 2."""
    name = f"{number} interval predicate{'s' if number > 1 else ''}"
    workload = uniform(name, scale.plan.rows([scale.fixed]), intervals(scale.queries, predicates=number))
    whole, rows = response_times(root / f"predicates-{number}", workload, [scale.fixed], scale.plan)
    paper = TABLE_2[number]
    for variant, curve in whole.items():
        report.add(f"response, {name}, {variant} (paper: {paper[variant]})", curve[scale.fixed], "ms")
    for numerator, denominator in ((NOMAT, PARTIAL), (NOMAT, COMPLETE), (PARTIAL, COMPLETE)):
        ratio, rows_ratio = (
            curves[numerator][scale.fixed] / curves[denominator][scale.fixed] for curves in (whole, rows)
        )
        report.add(
            f"{numerator} / {denominator}, {name} (paper: {paper[numerator] / paper[denominator]:.3g})", ratio, "times"
        )
        report.add(f"{numerator} / {denominator}, {name}, finding the rows alone", rows_ratio, "times")
    return {variant: curve[scale.fixed] for variant, curve in whole.items()}


def _arrivals(root: Path, workload: Workload, window: int, scale: PsoupScale, report: Report) -> Curves:
    """Figs. 9, 13a and 13b."""
    label = f"{workload.name}, window of {window:,}"
    arrival = arrival_rates(root / f"arrival-{workload.name}-{window}", workload, window, scale.counts, scale.batches)
    for count in scale.counts:
        for name in NAMES:
            report.add(f"arrival, {label}, {count:,} queries, {name}", arrival.rates[name][count], "tuples/s")
    for count in (scale.counts[0], scale.counts[-1]):
        for numerator, denominator in RATIOS:
            ratio, processor_ratio = (
                curves[numerator][count] / curves[denominator][count]
                for curves in (arrival.rates, arrival.by_processor)
            )
            paper = PAPER_RATE_RATIOS.get((workload.name, numerator, denominator))
            name = f"{numerator} / {denominator}, {label}, {count:,} queries"
            report.add(name if paper is None else f"{name} (paper: {paper})", ratio, "times")
            report.add(f"{name}, by processor time", processor_ratio, "times")
    last = scale.counts[-1]
    for name, unit in ((P_SHARED, f"bytes for {scale.batches.batch:,} tuples"), (C_SHARED, "bytes")):
        report.add(f"results kept, {label}, {last:,} queries, {name}", arrival.bytes[name][last], unit)
    return arrival.rates
