"""The page of the papers' figures has all of them."""

from __future__ import annotations

from benchmarks.figures import PAGE, PAPERS, figures_page
from benchmarks.report import RESULTS

OURS = ("aggregate", "peers", "soak", "join-inputs", "join-windows")
"""Plots of experiments that are in no paper."""


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == figures_page(), "run python -m benchmarks.figures"


def test_every_plot_of_a_paper_is_on_the_page() -> None:
    listed = {figure.file for figures in PAPERS.values() for figure in figures}
    plots = {path.name for path in RESULTS.glob("*.svg") if not path.name.startswith(OURS)}
    assert plots <= listed
    for name in plots:
        assert name in figures_page()
