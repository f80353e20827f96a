"""PWJoin's experiments at a small size: the streams are as the paper says, and all settings join the same tuples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import pwjoin, pwjoin_plots
from benchmarks.pwjoin_streams import START, StreamSpec, generate
from benchmarks.report import Report


@pytest.mark.parametrize("order", ["asc", "desc", "random"])
def test_no_tuple_follows_its_punctuation(order: str) -> None:
    stream = generate(StreamSpec(order, segment=30, matches=40), 60, seed=3)
    assert np.all(np.diff(stream.times) >= 0)
    assert len(np.unique(stream.closed)) == len(stream.closed)
    assert np.diff(stream.places).mean() == pytest.approx(30, rel=0.15)
    if order != "random":
        steps = np.diff(stream.closed)
        assert np.all(steps == (1 if order == "asc" else -1))
    shares = []
    for number, (place, value) in enumerate(zip(stream.places, stream.closed, strict=True)):
        assert value not in stream.values[place:]
        begin = stream.places[number - 1] if number else 0
        shares.append((stream.values[begin:place] == value).mean())
    assert np.mean(shares) == pytest.approx(0.4, rel=0.25)


def test_items_are_complete_and_in_order() -> None:
    stream = generate(StreamSpec(segment=5), 3, seed=1)
    items = [
        item
        for second in range(10)
        for item in stream.items(START + second * pwjoin.SECOND, START + (second + 1) * pwjoin.SECOND)
    ]
    rows = [item["k"] for item in items if isinstance(item, dict)]
    assert rows == stream.values.tolist()
    assert len(items) == len(rows) + len(stream.places)


def test_settings_join_the_same_tuples_with_smaller_states(tmp_path: Path) -> None:
    specs = StreamSpec(segment=20), StreamSpec(segment=20)
    curves = [
        pwjoin.Curve("PWJoin", pwjoin.BOTH, 3),
        pwjoin.Curve("WJoin", pwjoin.ONLY_WINDOWS, 3),
        pwjoin.Curve("PJoin", pwjoin.ONLY_PUNCTUATIONS, 3),
    ]
    experiment = pwjoin.run(tmp_path, specs, curves, 6)
    last = {curve.name: experiment.last(curve.name) for curve in curves}
    assert last["PWJoin"].rows == last["WJoin"].rows == last["PJoin"].rows > 0
    assert last["PWJoin"].state < last["WJoin"].state
    assert last["PWJoin"].state <= last["PJoin"].state
    assert last["WJoin"].state == pytest.approx(600, rel=0.2)
    assert 0 < pwjoin.estimated_state(experiment, 6, 3) < last["WJoin"].state


@pytest.mark.filterwarnings("ignore:Creating legend")  # on a busy machine
def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    specs, pair = (StreamSpec(segment=20), StreamSpec(segment=20)), [*pwjoin.WINDOWS]
    curves = [pwjoin.Curve(f"{name}-{each}", setting, each) for each in pair for name, setting in pwjoin.PAIR]
    curves.append(pwjoin.Curve("PJoin-15", pwjoin.ONLY_PUNCTUATIONS, 15))
    experiment = pwjoin.run(tmp_path, specs, curves, 2)
    report = Report(folder=tmp_path / "plots")
    pwjoin_plots.plot(pwjoin.PwjoinFindings(experiment, experiment, experiment, experiment, experiment), report)
    assert len(list((tmp_path / "plots").glob("pwjoin-*.svg"))) == 7
