"""Sealing, merging, debts and retention, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tureen.errors import QueryFailed
from tureen.pipeline import arrival, compiling, upkeep
from tureen.pot.clauses import last_eager_seq
from tureen.pot.query_runs import QueryRunRecord, live_query_runs, renew_query_runs
from tureen.pot.runs import Run, live_runs, streams_with_several_runs
from tureen.pot.streams import find_stream
from tureen.pot.sweep import sweep
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"a": number, "ts": START + timedelta(seconds=number)} for number in numbers]


@pytest.fixture
def soup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ManualEngine]:
    """A pot in which four rows are indexed."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)
    monkeypatch.setattr(upkeep, "LONG_TAIL", 64)
    opened = ManualEngine(tmp_path)
    opened.create_stream("s", "a INT, ts TIMESTAMP", time="ts")
    yield opened
    opened.close()


def runs_of(soup: ManualEngine) -> list[Run]:
    with soup.catalog.read() as tx:
        return live_runs(tx, 1)


def values(soup: ManualEngine, handle: str) -> list[int]:
    return [row["a"] for row in soup.invoke(handle)]


def test_only_large_batches_are_indexed_and_matched(soup: ManualEngine) -> None:
    query = soup.register("SELECT a FROM s WHERE a > 2")
    soup.compile()
    soup.push("s", rows(1, 2, 3))
    soup.push("s", rows(4, 5, 6, 7))
    assert [(run.indexed, run.matched_seq > 0) for run in runs_of(soup)] == [(False, False), (True, True)]
    assert values(soup, query) == [3, 4, 5, 6, 7]
    assert soup.invoker.explain(query)["tuples_by_path"] == {"published": 4, "owed": 0, "lazy": 0, "tail": 3}


def test_streams_to_merge_have_several_runs(soup: ManualEngine) -> None:
    for name in ("empty", "merged", "t"):
        soup.create_stream(name, "a INT, ts TIMESTAMP", time="ts")
    for name in ("s", "merged", "merged", "t", "t"):
        soup.push(name, rows(1, 2))
    with soup.catalog.read() as tx:
        merged, other = find_stream(tx, "merged"), find_stream(tx, "t")
        assert merged is not None
        assert other is not None
        assert streams_with_several_runs(tx) == {merged.id, other.id}
    assert upkeep.seal(soup.catalog, merged, everything=True)
    with soup.catalog.read() as tx:
        assert streams_with_several_runs(tx) == {other.id}


def test_a_query_registered_between_pin_and_commit_is_owed(soup: ManualEngine) -> None:
    early = soup.register("SELECT a FROM s WHERE a > 2")
    soup.compile()
    batch = soup.begin("s", rows(1, 2, 3, 4))
    late = soup.register("SELECT a FROM s WHERE a < 3")
    soup.commit(batch)
    assert values(soup, early) == [3, 4]
    assert soup.invoker.explain(late)["tuples_by_path"]["owed"] == 4
    assert values(soup, late) == [1, 2]
    soup.pay()
    assert soup.invoker.explain(late)["tuples_by_path"]["published"] == 4
    assert values(soup, late) == [1, 2]


def test_lazy_queries_have_no_cells(soup: ManualEngine) -> None:
    soup.push("s", rows(1, 2, 3, 4))
    lazy = soup.register("SELECT a FROM s WHERE a >= 2", materialize=False)
    soup.pay()
    assert soup.invoker.explain(lazy)["tuples_by_path"]["lazy"] == 4
    assert values(soup, lazy) == [2, 3, 4]
    eager = soup.register("SELECT a FROM s WHERE a >= 2")
    soup.pay()
    assert soup.invoker.explain(lazy)["tuples_by_path"]["published"] == 4
    assert values(soup, lazy) == values(soup, eager) == [2, 3, 4]


def test_a_clause_registered_again_has_all_rows(soup: ManualEngine) -> None:
    lazy = soup.register("SELECT a FROM s WHERE a > 1", materialize=False)
    eager = soup.register("SELECT a FROM s WHERE a > 1")
    soup.compile()
    soup.push("s", rows(1, 2, 3, 4))
    soup.unregister(eager)
    soup.compile()
    soup.push("s", rows(5, 6, 7, 8))
    assert values(soup, lazy) == [2, 3, 4, 5, 6, 7, 8]
    again = soup.register("SELECT a FROM s WHERE a > 1")
    assert values(soup, again) == [2, 3, 4, 5, 6, 7, 8]
    soup.pay()
    assert values(soup, again) == values(soup, lazy) == [2, 3, 4, 5, 6, 7, 8]


def test_single_row_pushes_leave_few_files(soup: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 64)
    query = soup.register("SELECT a FROM s WHERE a % 7 = 3 OR a < 20 BEGIN NOW - 100 YEARS END NOW + 100 YEARS")
    soup.compile()
    order = [(number * 37) % 600 for number in range(600)]
    for number in order:
        soup.push("s", rows(number))
        soup.seal()
    assert len(runs_of(soup)) < 60
    assert values(soup, query) == [number for number in range(600) if number % 7 == 3 or number < 20]
    assert any(run.indexed for run in runs_of(soup))
    soup.seal(everything=True)
    soup.pay()
    assert values(soup, query) == [number for number in range(600) if number % 7 == 3 or number < 20]
    sweep(soup.catalog, grace=-1, abandoned_after=-1)
    files = list((soup.catalog.root / "streams").rglob("*.*"))
    assert len(files) == sum(1 + len(run.cells) for run in runs_of(soup))
    assert values(soup, query) == [number for number in range(600) if number % 7 == 3 or number < 20]


def test_merging_is_amortized(soup: ManualEngine) -> None:
    """A large run is not rewritten for every few small runs."""
    sizes: list[int] = [1 << 19]
    written = 0
    for _ in range(2000):
        sizes.append(1)
        while merged := upkeep.choose_merge([_sized(size, index) for index, size in enumerate(sizes)]):
            first, last = merged[0].id, merged[-1].id
            total = sum(run.rows for run in merged)
            written += total
            sizes[first : last + 1] = [total]
    assert written < 2000 * 8
    assert len(sizes) < 64
    assert soup


def _sized(rows: int, run_id: int) -> Run:
    return Run(run_id, 1, 1, f"{run_id}", rows, 0, 0, 0, rows >= 64, 0, rows, 0)


class SteadyStream:
    """The runs of a stream under steady pushes, for `choose_merge`: sizes and times only."""

    def __init__(self, rows: int, retain: float, late: float = 0.0) -> None:
        """Push `rows` rows every half second, up to `late` seconds late."""
        self.rows, self.retain, self.late = rows, int(retain * 1e6), late
        self.runs: list[Run] = []
        self.pushed = self.written = self.number = self.longest = self.most = 0
        self._chance = Random(7)

    def play(self, seconds: int) -> None:
        """Push, expire and merge for a number of seconds."""
        for half in range(2 * seconds):
            end = int((half / 2 - self.late * self._chance.random()) * 1e6)
            self._add(len(self.runs), [], Run(0, 1, 1, "", self.rows, 0, end, end, False, 0, 0, 0))
            self.pushed += self.rows
            self.runs = [run for run in self.runs if run.max_time >= half * 500_000 - self.retain]
            if chosen := upkeep.choose_merge(self.runs, retain=self.retain):
                self._add(self.runs.index(chosen[0]), chosen, chosen[0])
            self.longest = max(self.longest, len(self.runs))
            self.most = max(self.most, sum(run.rows for run in self.runs))

    def _add(self, index: int, old: list[Run], template: Run) -> None:
        rows = sum(run.rows for run in old) or template.rows
        ends = [run.max_time for run in old] or [template.max_time]
        self.number += 1
        new = replace(template, id=self.number, rows=rows, max_time=max(ends), indexed=rows >= arrival.TAIL_ROWS)
        self.runs[index : index + len(old)] = [new]
        self.written += rows


@pytest.mark.parametrize("rows", [100, 1_000, 10_000])
def test_short_retention_limits_rewrites_and_rows(rows: int) -> None:
    steady = SteadyStream(rows, retain=120)
    steady.play(900)
    assert steady.written / steady.pushed < 3.5
    assert steady.most < 1.5 * 240 * rows
    assert steady.longest < 32


def test_late_rows_leave_few_runs() -> None:
    steady = SteadyStream(10_000, retain=120, late=110)
    steady.play(900)
    assert steady.longest <= upkeep.MANY_RUNS + 2


def test_payments_are_merged_into_few_files(soup: ManualEngine) -> None:
    soup.push("s", rows(*range(64)))
    handles = []
    for limit in range(20):
        handles.append(soup.register(f"SELECT a FROM s WHERE a < {limit}"))
        soup.pay()
        (run,) = runs_of(soup)
        assert len(run.cells) <= (limit + 1).bit_length()
        assert [values(soup, handle) for handle in handles] == [list(range(end)) for end in range(limit + 1)]


def test_clauses_are_merged_into_few_query_runs(soup: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "SMALL_RUN", 1)
    handles = []
    for limit in range(40):
        handles.append(soup.register(f"SELECT a FROM s WHERE a < {limit}"))
        soup.compile()
        assert len(query_runs_of(soup)) <= (limit + 1).bit_length()
    soup.push("s", rows(*range(64)))
    (run,) = runs_of(soup)
    with soup.catalog.read() as tx:
        assert run.matched_seq >= last_eager_seq(tx, run.stream_id), "a cell is owed"
    assert [values(soup, handle) for handle in handles] == [list(range(limit)) for limit in range(40)]


def test_a_query_run_with_many_dead_clauses_is_recompiled(soup: ManualEngine) -> None:
    handles = [soup.register(f"SELECT a FROM s WHERE a < {limit}") for limit in range(16)]
    soup.compile()
    (before,) = query_runs_of(soup)
    soup.unregister(handles[3])
    soup.compile()
    assert query_runs_of(soup) == [replace(before, dead=1)], "one dead clause in sixteen is not worth it"
    soup.unregister(handles[4])
    soup.compile()
    (after,) = query_runs_of(soup)
    assert (after.clauses, after.dead) == (14, 0)
    for handle in handles[:3] + handles[5:]:
        soup.unregister(handle)
    soup.compile()
    assert query_runs_of(soup) == []


def test_a_clause_that_is_eager_again_ignores_its_old_cells(soup: ManualEngine) -> None:
    first = soup.register("SELECT a FROM s WHERE a < 5")
    lazy = soup.register("SELECT a FROM s WHERE a < 5", materialize=False)
    soup.compile()
    soup.push("s", rows(*range(64)))
    soup.unregister(first)
    soup.compile()
    soup.push("s", rows(*range(64)))
    soup.register("SELECT a FROM s WHERE a < 5")
    assert values(soup, lazy) == sorted([*range(5), *range(5)])
    soup.pay()
    assert values(soup, lazy) == sorted([*range(5), *range(5)])
    assert soup.invoker.explain(lazy)["tuples_by_path"]["published"] == 128


def test_clauses_unregistered_during_compilation_are_dead(soup: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    handles = [soup.register(f"SELECT a FROM s WHERE a < {limit}") for limit in range(16)]

    def meanwhile(_point: str) -> None:
        for handle in handles[:8]:
            soup.unregister(handle)

    with monkeypatch.context() as patch:
        patch.setattr(compiling, "crash_point", meanwhile)
        soup.compile()
    (first,) = query_runs_of(soup)
    assert (first.clauses, first.dead) == (16, 8)
    soup.compile()
    (second,) = query_runs_of(soup)
    assert (second.clauses, second.dead) == (8, 0)


def test_query_runs_of_another_version_are_recompiled(soup: ManualEngine) -> None:
    query = soup.register("SELECT a FROM s WHERE a < 5")
    soup.compile()
    with soup.catalog.write() as tx:
        assert renew_query_runs(tx, 1), "the query runs of the test count as those of another version"
        assert not renew_query_runs(tx, 1)
    assert query_runs_of(soup) == []
    soup.push("s", rows(*range(8)))
    assert values(soup, query) == [0, 1, 2, 3, 4]
    soup.compile()
    soup.pay()
    assert len(query_runs_of(soup)) == 1
    soup.push("s", rows(*range(8)))
    assert soup.invoker.explain(query)["tuples_by_path"]["published"] == 16


def query_runs_of(soup: ManualEngine) -> list[QueryRunRecord]:
    with soup.catalog.read() as tx:
        return live_query_runs(tx, find_stream(tx, "s").id)


def test_end_now_minus_0_rows_is_now(soup: ManualEngine) -> None:
    soup.push("s", rows(1, 2, 3, 4, 5))
    now = int((START + timedelta(seconds=3)).timestamp() * 1_000_000)
    last = soup.register("SELECT a FROM s BEGIN NOW - 2 ROWS END NOW - 0 ROWS")
    until = soup.register("SELECT a FROM s END NOW - 0 ROWS")
    assert [row["a"] for row in soup.invoke(last, now)] == [2, 3]
    assert [row["a"] for row in soup.invoke(until, now)] == [1, 2, 3]


def test_merging_preserves_the_order_of_equal_times(soup: ManualEngine) -> None:
    query = soup.register("SELECT a FROM s")
    same = [{"a": number, "ts": START} for number in range(12)]
    for row in same:
        soup.push("s", [row])
    before = values(soup, query)
    soup.seal(everything=True)
    assert len(runs_of(soup)) == 1
    assert values(soup, query) == before == list(range(12))


def test_a_query_that_fails_does_not_stop_the_others(soup: ManualEngine) -> None:
    bad = soup.register("SELECT a FROM s WHERE 10 / (a - 3) > 0")
    guarded = soup.register("SELECT a FROM s WHERE a > 3 AND 10 / (a - 3) > 0")
    good = soup.register("SELECT a FROM s WHERE a > 2")
    soup.compile()
    soup.push("s", rows(1, 2, 3, 4, 5))
    with pytest.raises(QueryFailed, match="was stopped"):
        soup.invoke(bad)
    assert values(soup, good) == [3, 4, 5]
    assert values(soup, guarded) == [4, 5]
    soup.compile()
    soup.push("s", rows(6, 7, 8, 9))
    assert values(soup, good) == [3, 4, 5, 6, 7, 8, 9]


def test_a_reader_with_an_old_view_answers_after_a_merge(soup: ManualEngine) -> None:
    query = soup.register("SELECT a FROM s WHERE a >= 0")
    for number in range(20):
        soup.push("s", rows(number))
    reader = ManualEngine(soup.catalog.root)
    state = reader.invoker.view.stream(1)
    assert len(state.segments) == 1
    reader.invoker.view.segments._maps._values.clear()
    reader.invoker.view.segments._tails._values.clear()
    soup.seal()
    sweep(soup.catalog, grace=-1)
    assert [row["a"] for row in reader.invoke(query)] == list(range(20))
    reader.close()
