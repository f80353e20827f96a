"""PWJoin's experiments (§6): joins that exploit windows, punctuations or both, on the paper's streams.

PWJoin, WJoin (punctuations ignored) and PJoin (windows ignored) are settings of one operator. Each is in a process of
its own, so to speak: an invoker that reads the same log. So all settings see the same pushes, in turn, and their rows
are compared before anything is reported. A read of a follower is timed as processor time. The paper's CPU-limited mode,
in which tuples never have to be waited for, means many tuples at once here: rates are measured with ten times as many
tuples a second as in the paper, in pushes of a second.

PJoin's punctuations are those of the join without windows.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.pwjoin_streams import START, GeneratedStream, StreamSpec, generate
from benchmarks.report import Report
from tureen.closed.pattern import Pattern, ValueList
from tureen.closed.rules import NO_RULES, Rules
from tureen.joining.continuous_join import JoinSetting
from tureen.position import Position
from tureen.results.invoke import Invoker
from tureen.testing.manual_engine import ManualEngine

SECOND = 1_000_000
WINDOWS = (1, 5, 15)
RATE = 1_000
"""Tuples a second of each stream where rates are compared."""
IN_ORDER = Rules((), 0)
"""A lateness of zero: tuples come in order of time, which early propagation needs to know."""


@dataclass
class Follower:
    """A follower of the join with one setting, and what it has read."""

    setting: JoinSetting
    invoker: Invoker
    handle: str
    window: int | None
    position: Position = field(init=False)
    seconds: float = 0.0
    rows: int = 0
    punctuations: int = 0
    digest: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How often each value was joined in each push, which is compared with the other settings."""

    def __post_init__(self) -> None:
        """Start at the end of the streams."""
        self.invoker.followers.joins.setting = self.setting
        self.position = Position.parse(self.invoker.new_rows(self.handle, None).position())
        self.follower = self.invoker.follow(self.handle)

    def read(self, push: int, *, punctuations: bool) -> None:
        """Read what is new, and count it."""
        began = time.process_time()
        new = self.invoker.new_rows(self.handle, self.position, self.follower, punctuations=punctuations)
        self.position = Position.parse(new.position())
        self.seconds += time.process_time() - began
        self.rows += len(new)
        # Several values that are closed together may be one punctuation.
        self.punctuations += sum(_values_of(placed.pattern) for placed in new.punctuations)
        values, counts = np.unique(new.rows.column("k").to_numpy(), return_counts=True)
        self.digest.update({(push, int(value)): int(count) for value, count in zip(values, counts, strict=True)})

    def state(self, streams: Sequence[GeneratedStream], now: int) -> int:
        """The number of tuples that future results may contain, as far as the setting knows."""
        (operator,) = self.invoker.followers.joins.operators()
        total = 0
        for number, stream in enumerate(streams):
            ids = np.arange(np.searchsorted(stream.times, now))
            if self.window is not None and self.setting is not JoinSetting.PUNCTUATIONS:
                ids = ids[stream.times[ids] >= now - self.window * SECOND]
            alive = len(ids)
            if operator.purging is not None:
                alive -= int(operator.purging.inputs[number].dead.contains(ids).sum())
            total += alive
        return total


def _values_of(pattern: Pattern) -> int:
    return prod(len(part.codes) for _, part in pattern.columns if isinstance(part, ValueList))


@dataclass(frozen=True)
class Sample:
    """What a follower has at a sampling step."""

    second: int
    state: int
    rows: int
    seconds: float
    punctuations: int


@dataclass
class Experiment:
    """A run over two streams: the samples of each follower, by its name."""

    streams: tuple[GeneratedStream, GeneratedStream]
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def last(self, name: str) -> Sample:
        """The last sample of a follower."""
        return self.samples[name][-1]


@dataclass(frozen=True)
class Curve:
    """A follower of an experiment: its name, its setting, and the windows of both streams in seconds."""

    name: str
    setting: JoinSetting
    window: int | None
    only_b: bool = False
    """Whether only the second stream has the window."""

    @property
    def sql(self) -> str:
        """The query."""
        window = "" if self.window is None else f" [RANGE {self.window} SECONDS]"
        return f"SELECT a.k FROM a{'' if self.only_b else window} JOIN b{window} ON a.k = b.k"


def run(
    root: Path,
    specs: tuple[StreamSpec, StreamSpec],
    curves: Sequence[Curve],
    seconds: int,
    *,
    seed: int = 1,
    every: int = 2,
    rules: Rules = NO_RULES,
    punctuations: bool = False,
) -> Experiment:
    """Push two streams, a second at a time, and let all followers read."""
    streams = generate(specs[0], seconds, 2 * seed), generate(specs[1], seconds, 2 * seed + 1)
    experiment = Experiment(streams, {curve.name: [] for curve in curves})
    with TemporaryDirectory(dir=root) as folder:
        engine = ManualEngine(Path(folder))
        for name in ("a", "b"):
            engine.create_stream(name, "k BIGINT, ts TIMESTAMP", "ts", "stream", rules=rules)
        followers = {
            curve.name: Follower(
                curve.setting, Invoker(engine.catalog), engine.register(curve.sql, materialize=False), curve.window
            )
            for curve in curves
        }
        for push in range(seconds):
            begin, end = START + push * SECOND, START + (push + 1) * SECOND
            for name, stream in zip(("a", "b"), streams, strict=True):
                items = stream.items(begin, end)
                if items:
                    engine.append(name, items)
            turn = push % len(followers)
            names = list(followers)
            for name in names[turn:] + names[:turn]:
                followers[name].read(push, punctuations=punctuations)
            if (push + 1) % every == 0:
                for name, follower in followers.items():
                    experiment.samples[name].append(
                        Sample(
                            push + 1,
                            follower.state(streams, end),
                            follower.rows,
                            follower.seconds,
                            follower.punctuations,
                        )
                    )
        _verify(followers, curves)
        engine.close()
    return experiment


@cache
def warm_up(root: Path) -> None:
    """Let the process import and compile what all settings need, so that none of them pays for it alone."""
    specs = StreamSpec(segment=20), StreamSpec(segment=20)
    run(root, specs, [Curve(setting.value, setting, 2) for setting in JoinSetting], 4)


def _verify(followers: dict[str, Follower], curves: Sequence[Curve]) -> None:
    """Settings with the same window have joined the same tuples."""
    for curve in curves:
        same = [followers[other.name].digest for other in curves if other.sql == curve.sql]
        assert all(digest == same[0] for digest in same), f"{curve.name} has joined other tuples"


def estimated_state(experiment: Experiment, second: int, window: int, *, counted_since: int = 0) -> float:
    """The number of tuples in both states by equation (1): λ T (1 - λp t / NK), from what the streams have so far.

    NK is the number of values that occurred, λp t that of the punctuations of the other stream. With `counted_since`,
    NK is the number of values since that second, and only the punctuations about these are counted.
    """
    total = 0.0
    begin, end = START + counted_since * SECOND, START + second * SECOND
    for own, other in (experiment.streams, experiment.streams[::-1]):
        first, arrived = np.searchsorted(own.times, [begin, end])
        in_window = arrived / second * min(window, second)
        values = np.unique(own.values[first:arrived])
        closed = other.closed[: np.searchsorted(other.places, np.searchsorted(other.times, end), "right")]
        if counted_since:
            closed = np.intersect1d(closed, values)
        total += in_window * max(0.0, 1 - len(closed) / len(values))
    return total


@dataclass
class PwjoinFindings:
    """The experiments behind the plots."""

    memory: Experiment
    rates: Experiment
    irrelevant: Experiment
    propagation: Experiment
    one_sided: Experiment


BOTH, ONLY_WINDOWS, ONLY_PUNCTUATIONS = JoinSetting.BOTH, JoinSetting.WINDOWS, JoinSetting.PUNCTUATIONS


def measure(root: Path, report: Report, *, quick: bool) -> PwjoinFindings:
    """Run all experiments, and report the goals."""
    root.mkdir(parents=True, exist_ok=True)
    seconds, rounds = (10, 1) if quick else (60, 7)
    plain = StreamSpec()
    windows = [Curve(f"{name}-{each}", setting, each) for each in WINDOWS for name, setting in PAIR]
    memory = run(root, (plain, plain), [*windows, Curve("PJoin-15", ONLY_PUNCTUATIONS, 15)], seconds)
    pw, w = (_mean_state(memory, f"{name}-15") for name, _ in PAIR)
    report.add("tuples in the state of the window join, 15 s, punct-asc-100-40", w, "tuples")
    report.add("tuples in the state of PWJoin", pw, "tuples")
    report.reach("pwjoin state", pw / w)
    pair = [Curve(name, setting, 15) for name, setting in PAIR]
    fast = replace(plain, rate=RATE)
    short = seconds // 2
    warm_up(root)
    rates = run(root, (fast, fast), [curve for curve in windows if curve.window != min(WINDOWS)], short)
    # Of fewer seconds, the window would be full in half of them only.
    report.reach("pwjoin rate", _median_ratio(root, (fast, fast), pair, seconds, rounds, invert=True))
    uniform = StreamSpec(None, values=2_000, rate=RATE)
    report.reach("pwjoin unpunctuated", _median_ratio(root, (uniform, uniform), pair, short, rounds))
    asc, unordered = (StreamSpec(order, 30, 40, "outside", rate=RATE) for order in ("asc", "random"))
    report.reach("pwjoin irrelevant", _median_ratio(root, (asc, unordered), pair, short, rounds))
    asc, unordered = (replace(spec, irrelevant="between") for spec in (asc, unordered))
    report.reach("pwjoin irrelevant between", _median_ratio(root, (asc, unordered), pair, short, rounds))
    irrelevant = run(root, (asc, unordered), pair, short)
    orders = StreamSpec("asc", 30, 40), StreamSpec("random", 30, 40)
    propagation = run(
        root,
        orders,
        [Curve("PWJoin, 1 s", BOTH, 1), Curve("PJoin", ONLY_PUNCTUATIONS, None)],
        seconds,
        every=1,
        rules=IN_ORDER,
        punctuations=True,
    )
    one_sided = run(
        root,
        (StreamSpec(None), StreamSpec("asc", 30, 40)),
        [Curve("PWJoin, 5 s", BOTH, 5, only_b=True), Curve("PJoin", ONLY_PUNCTUATIONS, None)],
        seconds,
        every=1,
        rules=IN_ORDER,
        punctuations=True,
    )
    for name, experiment in (("both streams punctuated", propagation), ("one stream punctuated", one_sided)):
        for curve in experiment.samples:
            report.add(f"punctuations out, {name}: {curve}", experiment.last(curve).punctuations, "")
    return PwjoinFindings(memory, rates, irrelevant, propagation, one_sided)


PAIR = (("PWJoin", BOTH), ("WJoin", ONLY_WINDOWS))


def _mean_state(experiment: Experiment, name: str) -> float:
    """The mean number of tuples in the state, after the window is full."""
    samples = experiment.samples[name]
    return statistics.mean(sample.state for sample in samples[len(samples) // 2 :])


def _median_ratio(
    root: Path,
    specs: tuple[StreamSpec, StreamSpec],
    pair: Sequence[Curve],
    seconds: int,
    rounds: int,
    *,
    invert: bool = False,
) -> float:
    """The processor time of PWJoin by that of the window join; inverted, the rows a second. The median of rounds."""
    ratios = []
    warm_up(root)
    for number in range(rounds):
        experiment = run(root, specs, pair, seconds, seed=number + 2, every=seconds)
        ratios.append(experiment.last("PWJoin").seconds / experiment.last("WJoin").seconds)
    return statistics.median(1 / ratio if invert else ratio for ratio in ratios)
