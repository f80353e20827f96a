"""Plots of CACQ's experiments (§2.2 and §3), from the measurements of `benchmarks.cacq`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.cacq import BIN, EVERY, ROUTED, CacqFindings
from benchmarks.cacq_state import QUERIES
from benchmarks.plot import Curves, draw_bars, draw_curves
from benchmarks.report import Report


def plot(findings: CacqFindings, report: Report) -> None:
    """Draw all plots and add them to the report."""
    for name, title, x, rates in (
        ("cacq-queries.svg", "Throughput by number of queries", "queries", findings.queries),
        ("cacq-sources.svg", "Throughput by number of sources, 512 queries", "sources", findings.sources),
        ("cacq-state.svg", f"Throughput by size of tuple state, {QUERIES} queries", "bits for a tuple", findings.state),
    ):
        draw_curves(report.plot(name, title), title, curves_by_method(rates), x=x, y="tuples/s", base=2)
    title = "Filters that a tuple visits, by routing scheme"
    draw_bars(report.plot("cacq-routing.svg", title), title, findings.filters, y="filters per tuple")
    title = f"Filters per tuple over time; selectivities swap after {ROUTED // 2:,} tuples"
    draw_curves(
        report.plot("cacq-adaptation.svg", title),
        title,
        over_time(findings.over_time),
        x="tuples",
        y="filters per tuple",
        logarithmic=False,
    )
    for number, (workload, shares) in enumerate(findings.tickets.items(), 1):
        title = f"Tickets of each filter, a query added every {EVERY:,} tuples: {workload}"
        draw_curves(
            report.plot(f"cacq-tickets-{number}.svg", title),
            title,
            over_time(shares),
            x="tuples",
            y="share of the tickets",
            logarithmic=False,
        )


def curves_by_method(rates_by_number: Mapping[int, Mapping[str, float]]) -> Curves:
    """One curve for each method, from the rates for each number."""
    methods = dict.fromkeys(method for rates in rates_by_number.values() for method in rates)
    return {
        method: [(number, rates[method]) for number, rates in rates_by_number.items() if method in rates]
        for method in methods
    }


def over_time(series: Mapping[str, Sequence[float]]) -> Curves:
    """The value of each bin of tuples, at the end of the bin."""
    return {name: [((index + 1) * BIN, value) for index, value in enumerate(values)] for name, values in series.items()}
