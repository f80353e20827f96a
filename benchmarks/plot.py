"""Plots of measurements, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any

MOST_LABELS = 3
"""The most labels of a legend within a plot."""
LEGEND_ROW = 0.2
"""The height of a row of a legend below a plot, in inches."""
TITLE_LENGTH = 64
"""The length from which on a title has several lines."""

Curves = Mapping[str, Sequence[tuple[float, float]]]


def draw(path: Path, title: str, *painters: Callable[[Any], None], width: float = 7, height: float = 4) -> None:
    """Draw one plot, or several below one another with a common x axis; each painter gets its axes."""
    # Imported only for plotting: measuring does not need it.
    matplotlib = import_module("matplotlib")
    figure = import_module("matplotlib.figure").Figure(figsize=(width, height * len(painters)), layout="constrained")
    # A legend of many labels would cover the curves.
    below = partial(figure.legend, loc="outside lower center", ncols=2)
    panels = figure.subplots(len(painters), sharex=True, squeeze=False)[:, 0]
    for axes, paint in zip(panels, painters, strict=True):
        paint(axes)
        axes.grid(alpha=0.3)
        labels = axes.get_legend_handles_labels()[1]
        is_crowded = len(painters) == 1 and len(labels) > MOST_LABELS
        if is_crowded:
            figure.set_figheight(height + LEGEND_ROW * -(-len(labels) // 2))
        (below if is_crowded else axes.legend)(frameon=False, fontsize="small")
    panels[0].set_title(fill(title, TITLE_LENGTH), fontsize="medium" if len(title) > TITLE_LENGTH else None)
    # Texts stay texts, and the same numbers give the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tureen"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def draw_growth(path: Path, title: str, curves: Mapping[str, Sequence[tuple[int, float]]]) -> None:
    """Draw milliseconds over numbers of rows, which double from point to point."""
    draw_curves(path, title, curves, x="rows in the window", y="ms, p50", base=2, logarithmic=False)


def draw_curves(
    path: Path, title: str, curves: Curves, *, x: str, y: str, base: int | None = None, logarithmic: bool = True
) -> None:
    """Draw one curve for each label; with a `base`, the x axis is logarithmic."""

    def paint(axes: Any) -> None:
        for label, points in curves.items():
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=label)
        if base is not None:
            axes.set_xscale("log", base=base)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set(xlabel=x, ylabel=y)
        _label_ticks(axes, curves, is_linear=base is None)

    draw(path, title, paint)


def _label_ticks(axes: Any, curves: Curves, *, is_linear: bool) -> None:
    """Whole numbers where all values are whole, and plain numbers on a logarithmic axis of few decades."""
    ticker = import_module("matplotlib.ticker")
    if is_linear and all(float(at).is_integer() for points in curves.values() for at, _ in points):
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log" and low >= 0.001 and high <= 100_000:
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
        # Between two decades, only if there are few of them.
        digits = "235" if high < 30 * low else ""
        axes.yaxis.set_minor_formatter(
            ticker.FuncFormatter(lambda value, _: f"{value:,g}" if f"{value:e}"[0] in digits else "")
        )


def draw_bars(path: Path, title: str, bars: Mapping[str, Mapping[str, float]], *, y: str) -> None:
    """Draw a group of bars for each label, with a bar for each of its names."""
    names = list(dict.fromkeys(name for group in bars.values() for name in group))
    width = 0.8 / len(names)

    def paint(axes: Any) -> None:
        for index, name in enumerate(names):
            heights = [group.get(name, 0.0) for group in bars.values()]
            axes.bar([group_index + index * width for group_index in range(len(bars))], heights, width, label=name)
        axes.set_xticks([group_index + 0.4 - width / 2 for group_index in range(len(bars))], list(bars))
        axes.set_ylabel(y)

    draw(path, title, paint)
