"""Plots of PSoup's experiments, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.psoup_response import Curves


def draw_responses(path: Path, panels: Mapping[str, Curves]) -> None:
    """Draw milliseconds over sizes of windows, a panel for each workload."""
    figure, axes = _figure(len(panels))
    for place, (title, curves) in zip(axes, panels.items(), strict=True):
        _lines(place, curves)
        place.set(title=title, xlabel="tuples in the window", ylabel="ms per invocation")
    _save(figure, path)


def draw_arrivals(path: Path, panels: Mapping[str, Curves]) -> None:
    """Draw tuples per second over numbers of queries, a panel for each workload."""
    figure, axes = _figure(len(panels))
    for place, (title, curves) in zip(axes, panels.items(), strict=True):
        _lines(place, curves)
        place.set(title=title, xlabel="queries", ylabel="tuples per second")
    _save(figure, path)


def draw_predicates(
    path: Path, found: Mapping[int, Mapping[str, float]], paper: Mapping[int, Mapping[str, float]]
) -> None:
    """Draw milliseconds over numbers of predicates, what was found beside what the paper has."""
    figure, axes = _figure(2)
    for place, title, table in zip(axes, ("here", "in the paper, in 2003"), (found, paper), strict=True):
        names = next(iter(table.values()))
        _lines(place, {name: {number: row[name] for number, row in table.items()} for name in names})
        place.set(title=title, xlabel="interval predicates", ylabel="ms per invocation", xticks=list(table))
        place.set_xticklabels(map(str, table))
    _save(figure, path)


def _figure(panels: int) -> tuple[Any, Sequence[Any]]:
    # Looked for only when something is drawn: all measurements do without it.
    figure = import_module("matplotlib.figure").Figure(figsize=(6 * panels, 4.5), layout="constrained")
    return figure, [figure.add_subplot(1, panels, place + 1) for place in range(panels)]


def _lines(axes: Any, curves: Mapping[str, Mapping[int, float]]) -> None:
    for name, curve in curves.items():
        axes.plot(list(curve), list(curve.values()), marker="o", markersize=4, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")


def _save(figure: Any, path: Path) -> None:
    matplotlib = import_module("matplotlib")
    # Texts stay texts, and two runs of the same numbers give the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tureen"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
