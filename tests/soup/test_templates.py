"""Templates: a text with rows of parameters answers like as many queries registered one by one."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tureen
from tests.soup.template_pot import BASE, SQL, TemplatePot, make_row, numbered_rows
from tureen.errors import (
    DuplicateName,
    InvalidRows,
    QueryFailed,
    SqlError,
    TureenError,
    TypeMismatch,
    UnknownQuery,
    Unsupported,
)
from tureen.pot.catalog import Catalog
from tureen.pot.members import drop_member
from tureen.pot.streams import drop_stream, find_stream
from tureen.pot.sweep import sweep


@pytest.fixture
def pot(tmp_path: Path) -> Iterator[TemplatePot]:
    """A pot with a stream."""
    pot = TemplatePot(tmp_path)
    yield pot
    pot.engine.close()


ODD_TEXTS = ["it's", 'say "so"', "back\\slash", "", "new\nline", "100%", "\U0001f600", ":p", "-- no comment", None]


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("sym = :x", ODD_TEXTS),
        ("price <= :x", [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e300, 5e-324, None]),
        ("qty <> :x", [0, -1, 2**63 - 1, -(2**63), None]),
        ("net >= :x", [Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99"), None]),
        ("day < :x", [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), None]),
        ("ts > :x", [BASE, BASE + timedelta(microseconds=1), datetime(1, 1, 1, tzinfo=UTC), None]),
        ("ok = :x OR :x IS NULL", [True, False, None]),
    ],
)
def test_each_row_of_parameters_is_a_query(pot: TemplatePot, where: str, values: list[Any]) -> None:
    sql = f"SELECT * FROM s WHERE {where}"
    handle = pot.templates.register(sql, [{"x": value} for value in values], None)
    since = pot.matches(handle, None).position()
    rows = [
        make_row(number, sym=sym, price=price, qty=qty, net=net, day=day, ok=ok)
        for number, (sym, price, qty, net, day, ok) in enumerate(
            zip(
                ODD_TEXTS,
                [0.0, 1.5, math.nan, math.inf, -math.inf, None, 1e300, -1.0, 5e-324, 2.0],
                [0, 1, -1, 2**63 - 1, None, -(2**63), 5, 6, 7, 8],
                [Decimal("0.00"), None, Decimal("-1.50"), Decimal("99999999.99"), *[Decimal("1.00")] * 6],
                [date(2024, 2, 29), None, date(1, 1, 1), date(9999, 12, 31), *[date(2026, 1, 1)] * 6],
                [True, False, None, *[True] * 7],
                strict=True,
            )
        )
    ]
    pot.engine.push("s", rows)
    rows_by_number: dict[int, list[dict[str, Any]]] = {}
    for number, row in numbered_rows(pot.matches(handle, since)):
        rows_by_number.setdefault(number, []).append(row)
    for number in range(len(values)):
        answer = pot.engine.invoke(f"{handle}.{number}")
        assert repr(answer.table.to_pylist()) == repr(rows_by_number.get(number, []))
    assert any(rows_by_number.values())


def test_changes_are_in_order_from_every_position(pot: TemplatePot) -> None:
    params = [{"sym": sym, "p": p} for sym in "ab" for p in (0.0, 5.0)]
    handle = pot.templates.register(SQL, params, "alerts")
    start = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(2, price=9.0), make_row(1, sym="b", price=3.0), make_row(3, sym="c", price=9.0)])
    pot.engine.push("s", [make_row(0, price=1.0)])
    everything = pot.matches(handle, start)
    changes = numbered_rows(everything)
    assert changes == [
        (0, {"sym": "a", "twice": 18.0}),
        (1, {"sym": "a", "twice": 18.0}),
        (2, {"sym": "b", "twice": 6.0}),
        (0, {"sym": "a", "twice": 2.0}),
    ]
    pot.engine.seal(everything=True)
    for index in range(len(changes)):
        assert numbered_rows(pot.matches(handle, everything.position(index))) == changes[index + 1 :]
    assert numbered_rows(pot.matches(handle, everything.position())) == []


def test_unregistering_members_and_templates(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": float(p)} for p in range(5)], "alerts")
    since = pot.matches(handle, None).position()
    with pot.engine.catalog.write() as tx:
        drop_member(tx, pot.engine.catalog.root, f"{handle}.1")
    with pytest.raises(UnknownQuery), pot.engine.catalog.write() as tx:
        drop_member(tx, pot.engine.catalog.root, f"{handle}.1")
    pot.engine.push("s", [make_row(0, price=3.5)])
    assert [number for number, _ in numbered_rows(pot.matches(handle, since))] == [0, 2, 3]
    assert list(pot.templates.members(handle)) == [0, 2, 3, 4]
    assert pot.engine.invoke("alerts.0").table.num_rows == 1
    for gone in ("alerts.1", "alerts.5", "alerts.x", f"{handle}.-1"):
        with pytest.raises(UnknownQuery):
            pot.engine.invoke(gone)
    pot.templates.drop(handle)
    with pytest.raises(UnknownQuery):
        pot.engine.invoke(f"{handle}.0")
    with pytest.raises(UnknownQuery, match="no template"):
        pot.matches(handle, since)


def test_dropping_a_stream_drops_its_templates(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": 1.0}], None)
    with pot.engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
    assert pot.templates.describe() == []
    with pytest.raises(UnknownQuery):
        pot.engine.invoke(f"{handle}.0")
    sweep(pot.engine.catalog, abandoned_after=-1, grace=-1)
    assert not list((pot.engine.catalog.root / "templates").rglob("*"))


@pytest.mark.parametrize(
    ("sql", "params", "kind", "says"),
    [
        (SQL, [{"sym": "a"}], TureenError, "no values for :p"),
        (SQL, [{"sym": "a", "p": 1.0, "q": 2}], TureenError, "no parameter :q"),
        (SQL, [], InvalidRows, "parameters must have at least one row"),
        (SQL, [{"sym": "a", "p": 1.0}, {"sym": 5, "p": 1.0}], InvalidRows, "cannot be converted to Arrow"),
        (SQL, 5, InvalidRows, "got int"),
        ("SELECT * FROM s WHERE sym = 'a'", [{"x": 1}], SqlError, "no parameter"),
        ("SELECT :x FROM s WHERE sym = :x", [{"x": "a"}], SqlError, "the name of column .* depends on the parameters"),
        ("SELECT net * :x AS y FROM s", [{"x": 5}], SqlError, "the type of column 'y' depends on the parameters"),
        ("SELECT round(price, CAST(:x AS INT)) AS y FROM s", [{"x": 5}], TypeMismatch, "does not accept"),
        ("SELECT sym FROM s GROUP BY sym, :x", [{"x": 5}], SqlError, "cannot stand here"),
        ("SELECT sym FROM s [ROWS :x] WHERE qty > :x", [{"x": 5}], SqlError, "cannot stand here"),
        ("SELECT * FROM s WHERE qty > :x BEGIN NOW - :x END NOW", [{"x": 1}], SqlError, "cannot stand here"),
        (
            "SELECT * FROM s WHERE qty > :x BEGIN TIMESTAMP '2026-01-01 00:00:00' END :x",
            [{"x": 1}],
            SqlError,
            "cannot stand here",
        ),
        ("SELECT * FROM s WHERE qty > :x ORDER BY qty LIMIT :x", [{"x": 1}], SqlError, "cannot stand here"),
        ("SELECT * FROM s WHERE qty > :x OFFSET :x", [{"x": 1}], SqlError, "cannot stand here"),
        (SQL, [{"sym": "a", "p": 2**70}], InvalidRows, "cannot be converted to Arrow"),
        ("SELECT * FROM s WHERE day = :x", [{"x": "2026-01-01"}], TypeMismatch, "STRING"),
        ("SELECT * FROM s WHERE nope = :x", [{"x": "a"}], SqlError, "nope"),
        ("SELECT * FROM s WHERE sym LIKE :x", [{"x": "a%"}], Unsupported, "constant"),
    ],
)
def test_invalid_templates_change_nothing(
    pot: TemplatePot, sql: str, params: Any, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        pot.templates.register(sql, params, "bad")
    assert pot.templates.describe() == []


def test_a_minus_before_a_negative_value_is_not_a_comment(pot: TemplatePot) -> None:
    handle = pot.templates.register("SELECT qty FROM s WHERE qty\n-:x\n> 3", [{"x": 1}, {"x": -5}], None)
    since = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(number, qty=number) for number in range(10)])
    numbers = [number for number, _ in numbered_rows(pot.matches(handle, since))]
    for number in (0, 1):
        assert len(pot.engine.invoke(f"{handle}.{number}")) == numbers.count(number) > 0


@pytest.mark.parametrize("where", ["qty > :k OR TRUE", "qty > :k AND 1 = 2", "qty = :k AND qty > 5 AND qty < 3"])
def test_constant_conditions_have_changes(pot: TemplatePot, where: str) -> None:
    handle = pot.templates.register(f"SELECT qty FROM s WHERE {where}", [{"k": 1}, {"k": 2}], None)
    since = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(0, qty=7)])
    assert len(numbered_rows(pot.matches(handle, since))) == (2 if "TRUE" in where else 0)


def test_queries_that_use_now_have_no_changes(pot: TemplatePot) -> None:
    sql = "SELECT sym, qty FROM s WHERE qty > :q AND ts < NOW - INTERVAL 1 MINUTE"
    handle = pot.templates.register(sql, [{"q": 1}, {"q": 2}], None)
    pot.engine.push("s", [{"sym": "a", "qty": n, "ts": BASE + timedelta(minutes=n)} for n in (1, 2, 3)])
    for number, expected in ((0, [2]), (1, [])):
        answer = pot.engine.invoke(
            f"{handle}.{number}", int((BASE + timedelta(minutes=3, seconds=30)).timestamp() * 1e6)
        )
        assert [row["qty"] for row in answer] == expected
    with pytest.raises(Unsupported, match="has no changes"):
        pot.matches(handle, None)
    assert pot.templates.explain(handle)["matching"]


def test_a_query_that_fails_does_not_stop_the_others(pot: TemplatePot) -> None:
    handle = pot.templates.register("SELECT qty FROM s WHERE qty / :p > 1", [{"p": p} for p in (1, 2, 0, 3)], None)
    since = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(0, qty=5), make_row(1, qty=1)])
    assert [number for number, _ in numbered_rows(pot.matches(handle, since))] == [0, 1, 3]
    with pytest.raises(QueryFailed):
        pot.engine.invoke(f"{handle}.2")


def test_duplicate_template_names_are_rejected(pot: TemplatePot) -> None:
    pot.templates.register(SQL, [{"sym": "a", "p": 1.0}], "alerts")
    with pytest.raises(DuplicateName):
        pot.templates.register(SQL, [{"sym": "a", "p": 1.0}], "ALERTS")


def test_explain_of_a_template_and_a_single_query(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": f"s{number}", "p": 0.5 * number} for number in range(40)], "alerts")
    about = pot.templates.explain(handle)
    key = {"column": "sym", "keys": 40, "clauses": 40, "residual": "price"}
    assert (about["queries"], about["matching"]["by_key"], about["matching"]["visited"]) == (40, [key], 0)
    alone = pot.engine.register(SQL.replace(":sym", "'a'").replace(":p", "1.5"))
    shape = pot.engine.invoker.explain(alone)["shape"]
    assert shape == {"text": about["shape"], "queries": 41}, "it joins the template's shape"
    assert "once it is compiled" in pot.engine.invoker.explain(alone)["access"]["way"]
    for number in range(20):
        pot.engine.register(f"SELECT sym FROM s WHERE sym = 'k{number}' AND price > {number}")
    visited = pot.engine.register("SELECT sym FROM s WHERE price > 3")
    pot.engine.compile()
    assert pot.engine.invoker.explain(alone)["access"]["way"] == "reached by the key of its equality on 'sym'"
    about = pot.engine.invoker.explain(visited)["access"]
    assert (about["way"], about["clauses"], about["visited"]) == ("visited for every block", 22, 1)


CODE = """
import sys
from pathlib import Path
from tureen.pot.catalog import Catalog
from tureen.results.invoke import Invoker
from tureen.soup.templates import Templates
catalog = Catalog(Path(sys.argv[1]))
templates = Templates(catalog, Invoker(catalog))
templates.register("SELECT * FROM s WHERE qty > :n", [{"n": number} for number in range(1000)], "many")
"""


@pytest.mark.parametrize("point", ["before_write", "before_commit", "in_commit", "after_commit"])
def test_killed(pot: TemplatePot, crash_dir: Path, point: str) -> None:
    root = pot.engine.catalog.root
    (crash_dir / f"template.{point}").touch()
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(root)],
        env={**os.environ, "TUREEN_CRASH_DIR": str(crash_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, f"the process was not killed: {done.stderr}"
    catalog = Catalog(root)
    sweep(catalog, abandoned_after=-1, grace=-1)
    standing = [count for _, count in pot.templates.describe()]
    assert standing == ([1000] if point == "after_commit" else [])
    files = list((root / "templates").rglob("*"))
    assert len(files) == len(standing)
    catalog.close()


def test_a_hundred_thousand_queries_on_spark(soup: tureen.Soup) -> None:
    soup.create_stream("many", "key INT, v DOUBLE, ts TIMESTAMP", time="ts")
    params = pa.table({"key": pa.array(range(100_000), pa.int32()), "least": pa.array([0.5] * 100_000)})
    before = soup.status()["queries"]
    alerts = soup.register_many("SELECT key, v FROM many WHERE key = :key AND v > :least", params, name="many-alerts")
    assert len(alerts) == 100_000
    assert soup.status()["queries"] == before + 100_000
    since = alerts[0].invoke().position
    soup.push("many", [{"key": 7, "v": 0.9, "ts": BASE}, {"key": 8, "v": 0.1, "ts": BASE}])
    change = next(alerts.changes(since=since))
    assert (change.query, change.row) == (alerts[7].id, {"key": 7, "v": 0.9})
    assert soup.query("many-alerts.7").invoke().table.to_pylist() == [{"key": 7, "v": 0.9}]
    alerts[7].unregister()
    assert len(alerts) == 99_999
    assert [query.id for query in alerts[6:9]] == [f"{alerts.id}.{number}" for number in (6, 8, 9)]
    assert soup.templates()[-1]["queries"] == 99_999
    soup.template("many-alerts").unregister()
    with pytest.raises(UnknownQuery):
        soup.query(f"{alerts.id}.8")


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("SELECT :p AS p, :k AS k, nope FROM s", "nope"),
        ("SELECT :p AS p, sym\nFROM s WHERE qty = :k AND :p > 1 AND qty + nope = 1", "nope"),
        ("SELECT sym FROM s WHERE price > -:k AND qty = :p AND\n sqrtt(qty) = 1", "sqrtt"),
        ("SELECT :p AS p, sym FROM nope WHERE qty = :k", "nope"),
        ("SELECT sym FROM s WHERE qty = :k AND day > :p", ":p"),
        ("SELECT :p AS p, :k AS k, qty FROM s BEGIN NOW - 3 END NOPE", "NOPE"),
    ],
)
def test_errors_are_located_in_the_text_of_the_template(pot: TemplatePot, sql: str, wrong: str) -> None:
    with pytest.raises(TureenError) as raised:
        pot.templates.register(sql, [{"p": 123_456, "k": -7}], None)
    location = raised.value.location
    assert location is not None
    assert sql.split("\n")[location.line - 1][location.column - 1 :].startswith(wrong)
