"""Plots of measurements, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path


def draw_growth(path: Path, title: str, curves: Mapping[str, Sequence[tuple[int, float]]]) -> None:
    """Draw milliseconds over numbers of rows, which double from point to point."""
    # Looked for only when something is drawn: all other measurements do without it.
    matplotlib = import_module("matplotlib")
    figure = import_module("matplotlib.figure").Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for label, points in curves.items():
        axes.plot([rows for rows, _ in points], [cost for _, cost in points], marker="o", markersize=4, label=label)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set(title=title, xlabel="rows in the window", ylabel="ms, p50")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    # Texts stay texts, and two runs of the same numbers give the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tureen"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
