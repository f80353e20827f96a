"""Plots of CACQ's experiments (§2.2 and §3), from what `benchmarks.cacq` found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.cacq import BIN, EVERY, ROUTED, Findings
from benchmarks.plot import Curves, draw_bars, draw_curves
from benchmarks.report import Report


def plot(findings: Findings, report: Report) -> None:
    """Draw them all, and let the report show them."""
    for name, title, x, found in (
        ("cacq-queries.svg", "Throughput by number of queries", "queries", findings.queries),
        ("cacq-sources.svg", "Throughput by number of sources, 512 queries", "sources", findings.sources),
    ):
        draw_curves(report.plot(name, title), title, turned(found), x=x, y="tuples/s", base=2)
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


def turned(found: Mapping[int, Mapping[str, float]]) -> Curves:
    """One curve for each way, from what was found for each number."""
    ways = dict.fromkeys(way for rates in found.values() for way in rates)
    return {way: [(number, rates[way]) for number, rates in found.items() if way in rates] for way in ways}


def over_time(series: Mapping[str, Sequence[float]]) -> Curves:
    """Values that stand for a bin of tuples each, at the ends of their bins."""
    return {name: [((place + 1) * BIN, value) for place, value in enumerate(values)] for name, values in series.items()}
