"""Kept joins: answers stay the same while results are kept, merged, expired and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.pipeline.kept_joins_pot import SQL, START, answer, check_kept, joined_pot, kept, pairs, rows, status
from tureen.errors import QueryFailed
from tureen.joining.join_limits import JoinLimits
from tureen.pipeline import engine as engine_module
from tureen.pipeline import join_keeping
from tureen.pipeline.engine import Engine
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.kept_joins import join_status, joins_to_keep, restart_join
from tureen.pot.sweep import sweep
from tureen.results.invoke import Invoker
from tureen.results.joins import kept_rows
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ManualEngine]:
    """A pot whose joins are kept."""
    with joined_pot(tmp_path) as opened:
        yield opened


def test_queries_share_kept_results_and_what_is_owed_is_evaluated(engine: ManualEngine) -> None:
    eager, lazy = pairs(engine, SQL, "SELECT count(*) AS c FROM b, a WHERE b.k = a.k AND b.n > 3 AND a.n <> 7")
    assert not kept(engine, eager[0])["used"], "nothing is kept yet"
    engine.keep_joins()
    assert status(engine) == {"joins": 1, "rows": 60, "bytes": kept(engine, eager[0])["bytes"]}
    check_kept(engine, eager, lazy)
    engine.push("a", rows(30, 25))
    engine.append("b", rows(20, 5))
    about = kept(engine, eager[0])
    assert (about["joined_tuples"], about["owed_tuples"]) == (60, {"a": 25, "b": 5})
    check_kept(engine, eager, lazy)
    engine.take("b")
    engine.keep_joins()
    about = kept(engine, eager[0])
    assert (about["joined_tuples"], about["owed_tuples"], about["runs"]) == (140, {"a": 0, "b": 0}, 1)
    check_kept(engine, eager, lazy)
    engine.seal(everything=True)
    check_kept(engine, eager, lazy)


def test_few_owed_tuples_wait_for_other_upkeep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with joined_pot(tmp_path) as engine:
        engine.register(SQL, materialize=True)
    # Only the steps that this test takes.
    monkeypatch.setattr(Engine, "_run_upkeep", lambda _: None)
    monkeypatch.setattr(engine_module, "SPARK_DELAY", 3600.0)
    catalog = Catalog(tmp_path)
    invoker = Invoker(catalog, micros_now)
    opened = Engine(tmp_path, catalog, invoker, master="local[1]", nice=0, clock=micros_now)

    def kept_rows_after(many: int, *, everything: bool = False) -> int:
        monkeypatch.setattr(engine_module, "MANY_OWED", many)
        # As if the pause after the last step were over.
        opened._keep_at = 0.0
        opened._upkeep(with_clauses=everything)
        with catalog.read() as tx:
            return join_status(tx)["rows"]

    try:
        # 30 tuples of one stream and 20 of the other one.
        assert kept_rows_after(51) == 0
        assert kept_rows_after(50) == 60
        with catalog.write() as tx:
            (join,) = joins_to_keep(tx)
            restart_join(tx, join, join.reach)
        assert kept_rows_after(51) == 0
        assert kept_rows_after(51, everything=True) == 60
    finally:
        opened.close()
        catalog.close()


def test_a_query_with_other_conditions_needs_no_new_results(engine: ManualEngine) -> None:
    engine.register(SQL, materialize=True)
    engine.keep_joins()
    before = status(engine)
    eager, lazy = pairs(engine, "SELECT a.n FROM a, b WHERE a.k = b.k AND a.n % 2 = 0")
    check_kept(engine, eager, lazy)
    engine.keep_joins()
    assert status(engine) == before


@pytest.mark.parametrize(
    "windows",
    [
        ("[RANGE 10 SECONDS]", "[RANGE 15 SECONDS]"),
        ("[ROWS 7]", ""),
        ("", "[RANGE 3 SECONDS]"),
        ("[ROWS 3]", "[ROWS 9]"),
    ],
)
def test_windows(engine: ManualEngine, windows: tuple[str, str]) -> None:
    eager, lazy = pairs(engine, f"SELECT a.n AS x, b.n AS y FROM a {windows[0]} JOIN b {windows[1]} ON a.k = b.k")
    engine.keep_joins()
    for first in (30, 43, 60):
        check_kept(engine, eager, lazy)
        engine.push("a", rows(first, 13))
        # Late tuples: the runs are not in the order of arrival.
        engine.push("b", rows(first, 9)[::-1])
        check_kept(engine, eager, lazy)
        engine.keep_joins()
    check_kept(engine, eager, lazy)


def test_a_wider_window_starts_again(engine: ManualEngine) -> None:
    narrow, lazy = pairs(engine, "SELECT a.n AS x FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k")
    engine.keep_joins()
    few = status(engine)["rows"]
    wide, lazy_wide = pairs(engine, SQL)
    assert few < 60
    engine.keep_joins()
    assert status(engine)["rows"] == 60
    check_kept(engine, [*narrow, *wide], [*lazy, *lazy_wide])


def test_a_wider_window_is_right_before_it_is_kept(engine: ManualEngine) -> None:
    """Kept pairs within the reach of a narrow window are not all pairs of a wide one."""
    engine.register("SELECT a.n FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k", materialize=True)
    engine.keep_joins()
    (wide,), (lazy,) = pairs(engine, SQL)
    assert answer(engine, wide) == answer(engine, lazy)


def test_three_streams_with_a_table_and_an_expression(engine: ManualEngine) -> None:
    engine.create_stream("c", "n INT, k INT, ts TIMESTAMP", time="ts", clock="stream")
    engine.push("c", rows(0, 12, keys=5))
    eager, lazy = pairs(
        engine,
        "SELECT a.n AS x, b.n AS y, c.n AS z FROM c, b, a WHERE a.k = b.k AND b.k = c.k AND a.n + c.n > 20",
        "SELECT x.n AS x, y.n AS y FROM a x JOIN a y ON x.n = y.n + 1 AND x.k > y.k",
    )
    engine.keep_joins()
    check_kept(engine, eager, lazy)
    engine.push("c", rows(12, 5, keys=5))
    check_kept(engine, eager, lazy)
    engine.keep_joins()
    check_kept(engine, eager, lazy)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.n AS x, b.n AS y FROM a LEFT JOIN b ON a.k = b.k AND a.n + b.n > 20 AND a.n > 5",
        "SELECT a.n AS x, b.n AS y FROM b RIGHT JOIN a ON a.k = b.k AND b.n % 2 = 0 WHERE b.n IS NULL OR b.n > 4",
        "SELECT a.n AS x, b.n AS y FROM a FULL JOIN b ON a.k = b.k AND a.n > 3 AND b.n < 15",
        "SELECT a.n AS x FROM a SEMI JOIN b ON a.k = b.k AND a.n < b.n",
        "SELECT a.n AS x FROM a ANTI JOIN b ON a.k = b.k AND a.n < b.n",
        "SELECT n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.n > a.n AND b.n % 3 = 0) AND n > 2",
        "SELECT n FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.n + a.n > 20)",
        "SELECT n FROM a WHERE n IN (SELECT n FROM b WHERE k > 2)",
        "SELECT n FROM a WHERE n NOT IN (SELECT n FROM b WHERE k > 2)",
        "SELECT a.n AS x, b.n AS y FROM a ASOF JOIN b ON a.k = b.k AND a.ts > b.ts",
        "SELECT a.n AS x, b.n AS y FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts <= b.ts AND a.n + b.n > 12",
        "SELECT a.n AS x, o.n AS y FROM a JOIN b ON a.k = b.k LEFT JOIN b o ON o.n = a.n + b.n",
        "SELECT a.k, count(*) AS c, sum(b.n) AS s FROM a LEFT JOIN b ON a.n = b.n GROUP BY a.k",
    ],
)
def test_joins_of_every_kind_are_answered_from_kept_results(engine: ManualEngine, text: str) -> None:
    eager, lazy = pairs(engine, text)
    engine.keep_joins()
    check_kept(engine, eager, lazy)
    engine.push("a", [*rows(30, 25), {"n": None, "k": 3, "ts": START}])
    # A late tuple, and one of NULL, which makes NOT IN unknown for all.
    late = {"n": 77, "k": 7, "ts": START + timedelta(seconds=2)}
    engine.append("b", [*rows(20, 15), late, {"n": None, "k": 3, "ts": START}])
    check_kept(engine, eager, lazy)
    engine.take("b")
    engine.keep_joins()
    check_kept(engine, eager, lazy)
    engine.seal(everything=True)
    check_kept(engine, eager, lazy)


def test_inner_and_outer_joins_share_kept_results(engine: ManualEngine) -> None:
    eager, lazy = pairs(
        engine, SQL, "SELECT a.n FROM b RIGHT JOIN a ON b.k = a.k", "SELECT n FROM a WHERE k IN (SELECT k FROM b)"
    )
    engine.keep_joins()
    assert (status(engine)["joins"], status(engine)["rows"]) == (1, 60)
    check_kept(engine, eager, lazy)


def test_explain_says_which_inputs_have_kept_partners(engine: ManualEngine) -> None:
    handle = engine.register("SELECT a.n AS x FROM a LEFT JOIN b ON a.k = b.k", materialize=True)
    engine.keep_joins()
    joined_by = [entry["joined_by"] for entry in engine.invoker.explain(handle)["inputs"]]
    assert joined_by == ["kept results, and tuples without a partner", "kept results"]


GROUPED = "SELECT a.k, count(*) AS c, sum(b.n) AS s, max(a.n - b.n) AS d, count(DISTINCT b.n) AS u FROM a{0} JOIN b{1}"


@pytest.mark.parametrize(
    ("windows", "at_end"),
    [
        (("", ""), ""),
        (("", ""), " BEGIN NOW - 12 END NOW"),
        (("", ""), " BEGIN NOW - 25 END NOW - 6"),
        ((" [RANGE 10 SECONDS]", " [RANGE 15 SECONDS]"), ""),
        (("", " [RANGE 15 SECONDS]"), ""),
    ],
)
def test_groups_are_combined_from_partial_aggregates(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, windows: tuple[str, str], at_end: str
) -> None:
    eager, lazy = pairs(engine, f"{GROUPED.format(*windows)} ON a.k = b.k WHERE a.n <> 4 GROUP BY a.k{at_end}")
    engine.keep_joins()
    assert engine.invoker.explain(eager[0])["aggregates"]["kept"] == "partial aggregates of each join run"
    # All rows are not gathered.
    monkeypatch.delattr(kept_rows.KeptRows, "tuples")
    for first in (30, 43, 60):
        assert answer(engine, eager[0]) == answer(engine, lazy[0])
        engine.push("a", rows(first, 13))
        engine.push("b", rows(first - 5, 9)[::-1])
        assert answer(engine, eager[0]) == answer(engine, lazy[0])
        engine.keep_joins()
    assert answer(engine, eager[0]) == answer(engine, lazy[0])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS c FROM a [ROWS 5] JOIN b ON a.k = b.k",
        "SELECT count(*) AS c FROM a JOIN b ON a.k = b.k AND a.n + b.n > 10",
        "SELECT median(a.n) AS c FROM a JOIN b ON a.k = b.k",
        "SELECT count(*) AS c FROM a [RANGE 5 SECONDS SLIDE 5 SECONDS] JOIN b ON a.k = b.k",
        "SELECT sum(10 / (a.n - 3)) AS c FROM a [RANGE 5 SECONDS] JOIN b [RANGE 60 SECONDS] ON a.k = b.k",
        "SELECT count(*) AS c FROM a LEFT JOIN b ON a.k = b.k",
    ],
)
def test_other_groups_are_computed_from_the_rows(engine: ManualEngine, text: str) -> None:
    """Windows of rows, other conditions, holistic aggregates, steps, and an error outside the window."""
    eager, lazy = pairs(engine, text)
    engine.keep_joins()
    for _ in range(2):
        check_kept(engine, eager, lazy)


def test_queries_with_other_windows_share_partial_aggregates(engine: ManualEngine) -> None:
    text = f"{GROUPED.format('', '')} ON a.k = b.k GROUP BY a.k"
    eager, lazy = pairs(engine, *(f"{text} BEGIN NOW - {seconds} END NOW" for seconds in (3, 9, 20)))
    engine.keep_joins()
    check_kept(engine, eager, lazy)
    (structure,) = engine.invoker.answers._structure_cache._structures.values()
    assert structure.nbytes > 0


def test_partial_aggregates_are_those_of_the_query(engine: ManualEngine) -> None:
    """Queries that differ in a clause, or in the order of FROM, do not share them."""
    texts = [
        "SELECT count(*) AS c, sum(a.n) AS s FROM a JOIN b ON a.k = b.k WHERE b.n > 3",
        "SELECT count(*) AS c, sum(a.n) AS s FROM a JOIN b ON a.k = b.k WHERE a.n > 3",
        "SELECT count(*) AS c, sum(b.n) AS s FROM b JOIN a ON a.k = b.k WHERE a.n > 3",
        "SELECT count(*) AS c, sum(x.n) AS s FROM a x JOIN a y ON x.k = y.k WHERE x.n > 3",
        "SELECT count(*) AS c, sum(x.n) AS s FROM a y JOIN a x ON x.k = y.k WHERE x.n > 3",
    ]
    eager, lazy = pairs(engine, *texts)
    engine.keep_joins()
    check_kept(engine, eager, lazy)


def test_steps_are_bounded_and_large_ones_are_divided(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    eager, lazy = pairs(engine, SQL)
    monkeypatch.setattr(join_keeping, "STEP_TUPLES", 7)
    monkeypatch.setattr(join_keeping, "LARGE_STEP", 1 << 30)
    assert engine.keep_joins_once()
    assert kept(engine, eager[0])["owed_tuples"] == {"a": 23, "b": 13}
    check_kept(engine, eager, lazy)
    monkeypatch.setattr(join_keeping, "LARGE_STEP", 20)
    assert engine.keep_joins_once()
    assert kept(engine, eager[0])["owed_tuples"] == {"a": 0, "b": 0}
    assert kept(engine, eager[0])["runs"] > 2
    check_kept(engine, eager, lazy)
    assert not engine.keep_joins_once()


def test_exploding_joins_are_not_kept(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_keeping, "FAN_OUT_SAMPLE", 50)
    monkeypatch.setattr(join_keeping, "MAX_FAN_OUT", 1)
    (handle,), (lazy,) = pairs(engine, SQL)
    engine.keep_joins()
    about = kept(engine, handle)
    assert not about["used"]
    assert about["why"] == "not kept: 50 new tuples have 60 partners, more than 1 each"
    assert answer(engine, handle) == answer(engine, lazy)


def test_expired_results_are_dropped(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    for name in "ab":
        engine.create_stream(name, "n INT, k INT, ts TIMESTAMP", time="ts", clock="stream", retain="60 seconds")
    eager, lazy = pairs(engine, SQL.replace("< 90", "< 900"))
    for first in range(0, 500, 100):
        for name in "ab":
            engine.push(name, rows(first, 20))
        engine.expire()
        engine.keep_joins()
        check_kept(engine, eager, lazy)
        assert status(engine)["rows"] == 40
    engine.close()


def test_the_limit_of_joined_rows_applies_to_kept_results(engine: ManualEngine) -> None:
    (handle,), (lazy,) = pairs(engine, SQL)
    engine.keep_joins()
    limited = Invoker(engine.catalog, limits=JoinLimits(rows=10))
    grouped = engine.register("SELECT count(*) AS c FROM a JOIN b ON a.k = b.k WHERE a.n < 90", materialize=True)
    for query in (handle, lazy, grouped):
        with pytest.raises(QueryFailed, match="would have 60 rows, more than 10"):
            limited.invoke(query)


def test_results_are_dropped_with_the_last_query(engine: ManualEngine) -> None:
    first, second = engine.register(SQL, materialize=True), engine.register(SQL, materialize=True)
    engine.keep_joins()
    engine.unregister(first)
    engine.keep_joins()
    assert status(engine)["rows"] == 60
    engine.unregister(second)
    engine.keep_joins()
    assert status(engine) == {"joins": 0, "rows": 0, "bytes": 0}
    sweep(engine.catalog, grace=-1)
    assert not list((engine.catalog.root / "joins").rglob("*.run"))


def test_clauses_that_raise_outside_the_window_do_not_matter(engine: ManualEngine) -> None:
    text = "SELECT a.n AS x FROM a [RANGE 5 SECONDS] JOIN b [RANGE 60 SECONDS] ON a.k = b.k WHERE 10 / (a.n - 3) > 0"
    (handle,), (lazy,) = pairs(engine, text)
    engine.keep_joins()
    assert answer(engine, handle) == answer(engine, lazy)


def test_clauses_that_raise_for_tuples_without_a_partner_raise(engine: ManualEngine) -> None:
    """As if the join were evaluated, although no joined tuple has such a tuple."""
    engine.push("a", [{"n": 500, "k": 77, "ts": START + timedelta(seconds=40)}])
    text = "SELECT a.n AS x FROM a [RANGE 60 SECONDS] JOIN b ON a.k = b.k WHERE 10 / (a.n - 500) < 5"
    (handle,), (lazy,) = pairs(engine, text)
    engine.keep_joins()
    for query in (lazy, handle, handle):
        with pytest.raises(QueryFailed, match="zero"):
            engine.invoke(query)
    engine.push("a", rows(200, 3))
    assert answer(engine, handle) == answer(engine, lazy), "it has left the window"


def test_selected_rows_are_remembered(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = engine.register(SQL, materialize=True)
    engine.keep_joins()
    before = answer(engine, handle)
    monkeypatch.setattr(kept_rows, "_select", None)
    assert answer(engine, handle) == before


def test_auto_keeps_joins_that_are_invoked_often(engine: ManualEngine) -> None:
    auto, lazy = engine.register(SQL, materialize=None), engine.register(SQL, materialize=False)
    engine.keep_joins()
    assert not kept(engine, auto)["used"]
    answer(engine, auto)
    join_id = engine.invoker.view.query(auto).join_id
    assert join_id is not None
    engine.invoker.watch.note_join(join_id, 10**12)
    assert engine.choose(5)
    engine.keep_joins()
    check_kept(engine, [auto], [lazy])
    assert kept(engine, auto)["why"].startswith("kept: keeping it takes")
    assert not engine.choose(10_000), "no tuples arrive, so that keeping costs nothing"
    engine.push("a", rows(30, 40))
    assert engine.choose(10_000), "it was not invoked since"
    engine.keep_joins()
    assert status(engine)["rows"] == 0
    assert answer(engine, auto) == answer(engine, lazy)
