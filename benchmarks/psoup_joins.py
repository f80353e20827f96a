"""PSoup's experiments with joins: response times against windows, and composite against separate probes.

* *Fig. 8* (§5.2.2): response time of inequality joins by size of the window, see `psoup_join_response`.
* *Fig. 11* (§5.4): probe times with and without composite tuples, three workloads, see `psoup_probes`.

The paper's figures are from its text, so mostly orders of magnitude. Fig. 11's x axis is not known; here it is the
number of tuples that probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.plot import draw_curves
from benchmarks.psoup_join_response import JoinWorkload, join_conditions, join_response_times
from benchmarks.psoup_probes import BY_INDEX, COMPOSITE, SEPARATE, WORKLOADS, ProbePlan, probe_times
from benchmarks.psoup_response import COMPLETE, NOMAT, PARTIAL, Curves, InvocationPlan
from benchmarks.report import Report
from tureen.pipeline.join_keeping import MAX_FAN_OUT

PAPERS_WINDOW = 576
"""The window for which the paper's text has figures."""

PAPER_MILLISECONDS: Mapping[str, float] = {PARTIAL: 29.98, COMPLETE: 8.54}
"""The paper's response times with that window."""

PAPER_RATIOS: Mapping[tuple[str, str], str] = {
    (NOMAT, PARTIAL): "about 100",
    (NOMAT, COMPLETE): "about 100",
    (PARTIAL, COMPLETE): "3.5, below 10 for all windows",
}
"""The paper's ratios of two response times."""

PAPER_PROBES: Mapping[str, str] = {
    "Eq/Ineq": "about 2",
    "Ineq/Eq": "above 1",
    "Ineq/Ineq": "below 1",
}
"""The paper's ratios of separate and composite probe times."""


@dataclass(frozen=True)
class PsoupJoinScale:
    """The sizes of both experiments."""

    queries: int
    windows: Sequence[int]
    plan: InvocationPlan
    probes: ProbePlan


WHOLE = PsoupJoinScale(
    queries=8,
    windows=[64, 128, 256, PAPERS_WINDOW, 1_024],
    plan=InvocationPlan(batch=400, batches=2, rounds=5),
    probes=ProbePlan(stream=8_192, probes=[1, 4, 16, 64, 256, 1_024], queries=4, rounds=5),
)
QUICK = PsoupJoinScale(
    queries=2,
    windows=[16, PAPERS_WINDOW // 4],
    plan=InvocationPlan(batch=50, batches=1, rounds=1),
    probes=ProbePlan(stream=4_200, probes=[1, 8], queries=2, rounds=1),
)


@dataclass(frozen=True)
class PsoupJoinFindings:
    """The measurements in milliseconds, for plotting."""

    windows: Curves
    """Response time by variant and size of the window."""
    probes: Mapping[str, Curves]
    """Time of all probes by workload, method and number of probing tuples."""


def measure(root: Path, report: Report, *, quick: bool = False) -> PsoupJoinFindings:
    """Run both experiments; with `quick`, small ones that only check that everything runs."""
    scale = QUICK if quick else WHOLE
    report.note(
        f"The engine does not keep joins whose tuples have more than {MAX_FAN_OUT} partners on average, as those of "
        "Fig. 8 have; for PSoup-P and PSoup-C, that limit is raised. Otherwise the engine evaluates them like NoMat."
    )
    report.note(
        "PSoup-C stores where the joined tuples of each window are, which the engine does not do. "
        "Finding the rows alone leaves out copying the tuples into an Arrow table."
    )
    report.note(
        "The paper's nested-loops index join is `separate, by index`. Eq/Ineq is its name of the workload whose shared "
        "factor is an equality and whose factor between the streams is an inequality; Ineq/Eq is the reverse."
    )
    windows = _windows(root / "join-response", scale, report)
    probes = {name: _probes(root / f"probes-{number}", name, scale, report) for number, name in enumerate(WORKLOADS)}
    return PsoupJoinFindings(windows, probes)


def plot(findings: PsoupJoinFindings, report: Report) -> None:
    """Draw both figures with the measurements, and the paper's response times beside them."""
    title = "Response time of inequality joins"
    paper = {f"{name}, in the paper": {PAPERS_WINDOW: value} for name, value in PAPER_MILLISECONDS.items()}
    curves = {name: list(curve.items()) for name, curve in {**findings.windows, **paper}.items()}
    path = report.plot("join-response.svg", title)
    draw_curves(path, title, curves, x="tuples in the window of each stream", y="ms per invocation", base=2)
    for name, of_workload in findings.probes.items():
        title = f"Composite and separate probes, {name}"
        curves = {method: list(curve.items()) for method, curve in of_workload.items()}
        path = report.plot(f"join-probes-{name.lower().replace('/', '-')}.svg", title)
        draw_curves(path, title, curves, x="probing tuples", y="ms for all probes", base=2)


def _windows(root: Path, scale: PsoupJoinScale, report: Report) -> Curves:
    """Fig. 8."""
    workload = JoinWorkload.uniform(scale.plan.rows(scale.windows), join_conditions(scale.queries))
    whole, rows = join_response_times(root, workload, scale.windows, scale.plan)
    for size in scale.windows:
        for variant, curve in whole.items():
            paper = PAPER_MILLISECONDS.get(variant) if size == PAPERS_WINDOW else None
            label = f"response, inequality joins, windows of {size:,}, {variant}"
            report.add(label if paper is None else f"{label} (paper: {paper})", curve[size], "ms")
    for size in sorted({PAPERS_WINDOW, max(scale.windows)} & set(scale.windows)):
        for (numerator, denominator), claim in PAPER_RATIOS.items():
            label = f"{numerator} / {denominator}, inequality joins, windows of {size:,}"
            report.add(f"{label} (paper: {claim})", whole[numerator][size] / whole[denominator][size], "times")
        label = f"{NOMAT} / {PARTIAL}, inequality joins, windows of {size:,}, finding the rows alone"
        report.add(label, rows[NOMAT][size] / rows[PARTIAL][size], "times")
    return whole


def _probes(root: Path, workload: str, scale: PsoupJoinScale, report: Report) -> Curves:
    """A workload of Fig. 11."""
    curves = probe_times(root, workload, scale.probes)
    for count in scale.probes.probes:
        for method, curve in curves.items():
            report.add(f"probes, {workload}, {_tuples(count)}, {method}", curve[count], "ms")
    for count in scale.probes.probes[1:]:
        for method in (SEPARATE, BY_INDEX):
            claim = f" (paper: {PAPER_PROBES[workload]})" if method == BY_INDEX else ""
            ratio = curves[method][count] / curves[COMPOSITE][count]
            report.add(f"{method} / {COMPOSITE}, {workload}, {_tuples(count)}{claim}", ratio, "times")
    return curves


def _tuples(count: int) -> str:
    return f"{count:,} tuple{'' if count == 1 else 's'}"
