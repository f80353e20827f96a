"""Partial aggregates of any interval and of panes equal plain aggregates of the rows."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates import strip
from tureen.aggregates.finals import column_of
from tureen.aggregates.groups import GroupNumbers
from tureen.aggregates.panes import changes, merged, pane_entries, panes_at, step_entries, steps_over
from tureen.aggregates.plan import Plan, plan_of
from tureen.aggregates.strip import Entries, Strip, concat_entries, make_strip, scratch_for
from tureen.errors import QueryFailed
from tureen.query import Aggregate, Expression, Grouping
from tureen.schema import Type

INT, BIGINT, DOUBLE = Type.parse("INT"), Type.parse("BIGINT"), Type.parse("DOUBLE")
NET, SUM_NET = Type.parse("DECIMAL(18,2)"), Type.parse("DECIMAL(28,2)")


def _column(name: str, kind: Type) -> Expression:
    return Expression(f'"{name}"', kind, (name,), name)


K, W, D, N = _column("k", INT), _column("i", BIGINT), _column("d", DOUBLE), _column("n", NET)
AGGREGATES = (
    Aggregate("count", (), BIGINT),
    Aggregate("count", (W,), BIGINT),
    Aggregate("sum", (W,), BIGINT),
    Aggregate("min", (W,), BIGINT),
    Aggregate("max", (D,), DOUBLE),
    Aggregate("sum", (D,), DOUBLE),
    Aggregate("stddev_samp", (D,), DOUBLE),
    Aggregate("sum", (N,), SUM_NET),
)
PLAN = plan_of(Grouping((K,), AGGREGATES))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of several levels over few rows."""
    monkeypatch.setattr(strip, "SMALLEST_CHUNK", 4)


def _values(seed: int, rows: int, groups: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)

    def with_nulls(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    return {
        "k": rng.integers(0, groups, rows).tolist(),
        "i": with_nulls(rng.integers(-(2**62), 2**62, rows).tolist()),
        "d": with_nulls((rng.standard_normal(rows) * 10.0 ** rng.integers(-3, 9)).tolist()),
        "n": with_nulls([int(value) for value in rng.integers(-(10**17), 10**17, rows)]),
    }


def _strip(values: dict[str, list[Any]], groups: GroupNumbers, rows: np.ndarray | None = None) -> Strip:
    columns = {
        "k": pa.array(values["k"], INT.arrow),
        "i": pa.array(values["i"], BIGINT.arrow),
        "d": pa.array(values["d"], DOUBLE.arrow),
        "n": pa.array([None if value is None else value for value in values["n"]], pa.decimal128(38, 0)),
    }
    # The unscaled numbers, reinterpreted with a scale of two.
    buffers = columns["n"].buffers()
    columns["n"] = pa.Array.from_buffers(NET.arrow, len(values["n"]), buffers)
    codes = groups.codes([columns["k"]], len(values["k"]))
    picked = [columns[measure.value.column or ""] for measure in PLAN.measures]
    return make_strip(PLAN, rows, codes, picked, len(groups))


def _plain(values: dict[str, list[Any]], hits: list[int]) -> dict[int, dict[str, list[Any]]]:
    groups: dict[int, dict[str, list[Any]]] = defaultdict(lambda: {"all": [], "i": [], "d": [], "n": []})
    for hit in hits:
        group = groups[values["k"][hit]]
        group["all"].append(hit)
        for name in "idn":
            if values[name][hit] is not None:
                group[name].append(values[name][hit])
    return groups


def _check(plan: Plan, groups: GroupNumbers, entries: Entries, expected: dict[int, dict[str, list[Any]]]) -> None:
    keys = groups.columns(entries.codes)[0].to_pylist()
    assert sorted(keys) == sorted(expected)
    sums = next(recipe for recipe in plan.recipes if recipe and recipe.aggregate.function == "sum")
    columns = [
        None if recipe is sums else column_of(recipe, entries.ints, entries.floats).to_pylist()
        for recipe in plan.recipes
        if recipe is not None
    ]
    for row, key in enumerate(keys):
        group = expected[key]
        values: list[Any] = [None if column is None else column[row] for column in columns]
        counted, present, _, lowest, greatest, total, spread_of, net = values
        assert counted == len(group["all"])
        assert present == len(group["i"])
        low, high = entries.ints[row, sums.slot : sums.slot + 2].tolist()
        assert low % 2**64 + (high << 64) == sum(group["i"])
        assert lowest == min(group["i"], default=None)
        assert greatest == max(group["d"], default=None)
        assert total == (math.fsum(group["d"]) if group["d"] else None) or math.isclose(
            total, math.fsum(group["d"]), rel_tol=1e-15, abs_tol=1e-300
        )
        deviation = float(np.std(group["d"], ddof=1)) if len(group["d"]) > 1 else None
        assert spread_of == deviation or math.isclose(spread_of, deviation or 0, rel_tol=1e-9)
        assert (None if net is None else int(net.scaleb(2))) == (sum(group["n"]) if group["n"] else None)


@example_settings(60)
@given(st.integers(0, 10**6), st.integers(0, 700), st.sampled_from([1, 3, 40]), st.data())
def test_any_interval_of_several_strips(seed: int, rows: int, groups: int, data: st.DataObject) -> None:
    numbering = GroupNumbers([INT])
    lots = [_values(seed + number, rows, groups) for number in range(2)]
    strips = [_strip(values, numbering) for values in lots]
    stretch = st.tuples(st.integers(0, rows), st.integers(0, rows)).map(sorted)
    stretches = [data.draw(stretch) for _ in strips]
    scratch = scratch_for(PLAN, max(len(numbering), 1))
    firsts, lasts = np.array(stretches, np.int64).T.copy()
    count = kernels.combine(
        PLAN.program, np.stack([part.entry for part in strips]), firsts, lasts,
        scratch,
    )  # fmt: skip
    codes = scratch.touched[:count]
    entries = Entries(np.zeros(count, np.int64), codes, scratch.ints[codes], scratch.floats[codes])
    both = {name: lots[0][name] + lots[1][name] for name in lots[0]}
    hits = [*range(*stretches[0]), *(rows + hit for hit in range(*stretches[1]))]
    _check(PLAN, numbering, entries, _plain(both, hits))


@example_settings(60)
@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(1, 9), st.integers(1, 9), st.integers(0, 20), st.data())
def test_steps_from_panes(seed: int, rows: int, width: int, slide: int, origin: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(-50, 50, rows))
    values = _values(seed, rows, 3)
    numbering = GroupNumbers([INT])
    single_strip = _strip(values, numbering)
    scratch = scratch_for(PLAN, len(numbering))
    first, last = sorted((data.draw(st.integers(0, rows)), data.draw(st.integers(0, rows))))
    pane = math.gcd(width, slide)
    if data.draw(st.booleans()):
        # The division is then computed from this finer one.
        panes_at(single_strip, single_strip.by_time, lambda: times, (1, 0), scratch)
    panes = panes_at(single_strip, single_strip.by_time, lambda: times, (pane, origin), scratch)
    entries = pane_entries(single_strip, panes, first, last, scratch)
    by_pane = merged(PLAN, [entries], scratch)
    step_numbers = steps_over(
        by_pane.intervals[changes(by_pane.intervals)[:-1]], width // pane, slide // pane, -(10**9), 10**9
    )
    steps = step_entries(PLAN, by_pane, step_numbers, width // pane, slide // pane, scratch)
    expected: dict[int, list[int]] = defaultdict(list)
    for hit in range(first, last):
        for step in range(-200, 200):
            if origin + step * slide <= times[hit] < origin + step * slide + width:
                expected[step].append(hit)
    assert sorted(set(steps.intervals.tolist())) == sorted(expected)
    for step, hits in expected.items():
        _check(PLAN, numbering, steps.take(steps.intervals == step), _plain(values, hits))


def test_hits_before_counts_only_hits() -> None:
    values = _values(5, 100, 3)
    numbering = GroupNumbers([INT])
    rows = np.arange(0, 300, 3, dtype=np.int32)
    single_strip = _strip(values, numbering, rows)
    assert [single_strip.hits_before(row) for row in (0, 1, 3, 4, 297, 298, 1000)] == [0, 1, 1, 2, 99, 100, 100]


def test_concatenating_nothing_is_empty() -> None:
    assert len(concat_entries(PLAN, []).codes) == 0


def test_too_many_steps_are_rejected() -> None:
    panes = np.array([0, 10**12], np.int64)
    with pytest.raises(QueryFailed, match="too many steps"):
        steps_over(panes, 10**11, 1, -(1 << 60), 1 << 60)
    assert steps_over(panes, 3, 2, -5, 5).tolist() == [-1, 0]
