"""Plots of PWJoin's experiments (Figs. 8 to 12), from the measurements of `benchmarks.pwjoin`, with what it claims."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.plot import Curves, draw_curves
from benchmarks.pwjoin import WINDOWS, Experiment, PwjoinFindings, Sample, estimated_state
from benchmarks.report import Report


def plot(findings: PwjoinFindings, report: Report) -> None:
    """Draw all plots, and add them and the paper's claims to the report."""
    memory = findings.memory
    for window in WINDOWS:
        names = [f"PWJoin-{window}", f"WJoin-{window}", *([f"PJoin-{window}"] if window == max(WINDOWS) else [])]
        curves = _over_time(memory, names, lambda sample: sample.state)
        seconds = [sample.second for sample in memory.samples[names[0]]]
        curves[f"equation (1), {window} s"] = [(each, estimated_state(memory, each, window)) for each in seconds]
        curves["the same, values of the window alone"] = [
            (each, estimated_state(memory, each, window, counted_since=max(0, each - window))) for each in seconds
        ]
        title = f"Tuples in the state, window of {window} s (Fig. 8)"
        _draw(report, f"pwjoin-state-{window}.svg", title, curves, "seconds of the stream", "tuples")
    names = [f"{name}-{window}" for window in WINDOWS[1:] for name in ("PWJoin", "WJoin")]
    title = "Rows out by processor time (Fig. 9)"
    _draw(report, "pwjoin-rate.svg", title, _by_processor(findings.rates, names), "s of processor time", "rows")
    title = "Rows out by processor time, irrelevant punctuations (Fig. 10)"
    irrelevant = findings.irrelevant
    curves = _by_processor(irrelevant, list(irrelevant.samples))
    _draw(report, "pwjoin-irrelevant.svg", title, curves, "s of processor time", "rows")
    for name, title, experiment in (
        ("pwjoin-propagation.svg", "Punctuations out (Fig. 11)", findings.propagation),
        ("pwjoin-one-sided.svg", "Punctuations out, one stream punctuated (Fig. 12)", findings.one_sided),
    ):
        curves = _over_time(experiment, list(experiment.samples), lambda sample: sample.punctuations)
        _draw(report, name, title, curves, "seconds of the stream", "punctuations")
    for claim in CLAIMS:
        report.note(claim)


CLAIMS = (
    "The paper, Fig. 8: the larger the window, the more tuples PWJoin saves; equation (1) of section 5 is an estimate.",
    "Equation (1) falls to zero, because it divides by all values that ever occurred: docs/figures.md.",
    "The paper, Fig. 9: with 5 s the window join is slightly faster, with 15 s PWJoin is clearly faster.",
    "The paper, Fig. 10: irrelevant punctuations cost little.",
    "The paper, Fig. 11: PWJoin has more punctuations out than PJoin at all times.",
    "The paper, Fig. 12: with punctuations in one stream alone, PJoin has none out, and PWJoin has them regularly.",
)


def _draw(report: Report, name: str, title: str, curves: Curves, x: str, y: str) -> None:
    draw_curves(report.plot(name, title), title, curves, x=x, y=y, logarithmic=False)


def _over_time(
    experiment: Experiment, names: list[str], value: Callable[[Sample], float]
) -> dict[str, list[tuple[float, float]]]:
    return {name: [(sample.second, value(sample)) for sample in experiment.samples[name]] for name in names}


def _by_processor(experiment: Experiment, names: list[str]) -> dict[str, list[tuple[float, float]]]:
    return {name: [(sample.seconds, sample.rows) for sample in experiment.samples[name]] for name in names}
