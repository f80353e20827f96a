"""Templates over joins: rows of parameters, positions, errors, and what happens to them with their relations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.soup.template_pot import numbered_rows
from tureen.errors import QueryFailed, SqlError, UnknownQuery, Unsupported
from tureen.join import InnerJoin, JoinTree
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.joined_rows import JoinedRows
from tureen.position import Position
from tureen.pot.catalog_tables import query_inputs
from tureen.pot.streams import drop_stream, find_stream
from tureen.pot.sweep import sweep
from tureen.pot.template_tables import template_part_ids
from tureen.results.templates.template_matches import TemplateMatches
from tureen.soup.tables import Dimensions
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT t.sym, t.price, q.ask FROM trades t, quotes q WHERE t.sym = q.sym AND t.sym = :sym AND t.price > :p"
WITH_TABLE = "SELECT t.price, c.sector FROM trades t JOIN companies c ON t.sym = c.sym WHERE c.sector = :sector"


class JoinPot:
    """Two streams, a table, and templates over them."""

    def __init__(self, root: Path) -> None:
        self.engine = ManualEngine(root)
        self.engine.create_stream("trades", "sym STRING, price DOUBLE, ts TIMESTAMP", time="ts", clock="stream")
        self.engine.create_stream("quotes", "sym STRING, ask DOUBLE, ts TIMESTAMP", time="ts", clock="stream")
        self.tables = Dimensions(self.engine.catalog)
        rows = [{"sym": "a", "sector": "tech"}, {"sym": "b", "sector": "bank"}]
        self.tables.create("companies", "sym STRING, sector STRING", rows)
        self.templates = Templates(self.engine.catalog, self.engine.invoker)

    def trade(self, second: int, sym: str, price: float) -> None:
        """Push a trade, which is pending then."""
        self.engine.append("trades", [{"sym": sym, "price": price, "ts": BASE + timedelta(seconds=second)}])

    def quote(self, second: int, sym: str, ask: float) -> None:
        """Push a quote into a run."""
        self.engine.push("quotes", [{"sym": sym, "ask": ask, "ts": BASE + timedelta(seconds=second)}])

    def matches(self, handle: str, since: str | None) -> TemplateMatches:
        """The changes of a template's queries since a position."""
        return self.templates.matches(handle, None if since is None else Position.parse(since))


@pytest.fixture
def pot(tmp_path: Path) -> Iterator[JoinPot]:
    """A pot with two streams and a table."""
    pot = JoinPot(tmp_path)
    yield pot
    pot.engine.close()


def _numbers(matches: TemplateMatches) -> list[tuple[int, float, float]]:
    return [(number, row["price"], row["ask"]) for number, row in numbered_rows(matches)]


def test_changes_from_every_position(pot: JoinPot) -> None:
    handle = pot.templates.register(SQL, [{"sym": sym, "p": p} for sym in "ab" for p in (0.0, 5.0)], None)
    start = pot.matches(handle, None).position()
    pot.quote(0, "a", 1.0)
    pot.trade(1, "a", 9.0)
    pot.trade(2, "a", 8.0)
    pot.trade(3, "b", 9.0)
    pot.quote(4, "b", 3.0)
    everything = pot.matches(handle, start)
    changes = _numbers(everything)
    assert changes == [(0, 9.0, 1.0), (1, 9.0, 1.0), (0, 8.0, 1.0), (1, 8.0, 1.0), (2, 9.0, 3.0), (3, 9.0, 3.0)]
    assert [_numbers(pot.matches(handle, everything.position(index))) for index in range(6)] == [
        changes[index + 1 :] for index in range(6)
    ]
    positions = [everything.position(index) for index in range(len(changes))]
    assert positions == sorted(set(positions)), "positions compare by age"
    pot.engine.seal(everything=True)
    pot.trade(5, "a", 1.0)
    for index, position in enumerate(positions):
        later = _numbers(pot.matches(handle, position))
        assert sorted(later) == sorted([*changes[index + 1 :], (0, 1.0, 1.0)])


def test_an_added_query_has_changes_for_later_rows_only(pot: JoinPot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": 0.0}], None)
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 9.0)
    pot.quote(0, "a", 1.0)
    assert pot.templates.add(handle, [{"sym": "a", "p": 5.0}]) == range(1, 2)
    pot.quote(1, "a", 2.0)
    assert pot.templates.add(handle, [{"sym": "a", "p": 6.0}]) == range(2, 3)
    pot.trade(2, "a", 7.0)
    # A row is new for a query if one of its tuples came after the query was added.
    expected = [
        *[(0, 9.0, 1.0)],
        *[(number, 9.0, 2.0) for number in (0, 1)],
        *[(number, 7.0, ask) for number in (0, 1, 2) for ask in (1.0, 2.0)],
    ]
    everything = pot.matches(handle, start)
    changes = _numbers(everything)
    assert sorted(changes) == sorted(expected)
    for index in range(len(changes)):
        assert _numbers(pot.matches(handle, everything.position(index))) == changes[index + 1 :]
    assert len(pot.templates.members(handle).parts) == 2, "the second addition absorbed the first"
    with pot.engine.catalog.read() as tx:
        assert len(tx.execute(select(template_part_ids)).all()) == 1
    pot.templates.remove(handle, [0], None)
    assert sorted(_numbers(pot.matches(handle, start))) == sorted(change for change in expected if change[0])
    assert [len(pot.engine.invoke(f"{handle}.{number}")) for number in (1, 2)] == [4, 4]


def test_new_rows_are_joined_once_for_all_queries(pot: JoinPot, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = pot.templates.register(SQL, [{"sym": sym, "p": float(p)} for sym in "ab" for p in range(50)], None)
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 100.0)
    pot.quote(0, "a", 1.0)
    evaluated = []
    rows = JoinEvaluation.rows

    def count(evaluation: JoinEvaluation, tree: JoinTree) -> JoinedRows:
        evaluated.append(tree)
        return rows(evaluation, tree)

    monkeypatch.setattr(JoinEvaluation, "rows", count)
    assert len(pot.matches(handle, start)) == 50
    joins = [tree for tree in evaluated if isinstance(tree, InnerJoin)]
    assert len(joins) == 2, "once for the new tuples of each stream"


def test_equalities_with_one_parameter_join_the_streams(pot: JoinPot) -> None:
    sql = "SELECT t.price, q.ask FROM trades t, quotes q WHERE t.sym = :sym AND :sym = q.sym"
    handle = pot.templates.register(sql, [{"sym": "a"}, {"sym": "b"}, {"sym": None}], "pairs")
    assert pot.templates.explain("pairs")["matching"]["join"] == "(t, q WHERE t.sym = q.sym)"
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 1.0)
    pot.quote(0, "a", 2.0)
    pot.quote(1, "b", 3.0)
    assert _numbers(pot.matches(handle, start)) == [(0, 1.0, 2.0)]


def test_conditions_over_several_inputs(pot: JoinPot) -> None:
    sql = "SELECT t.price, q.ask, :d AS d FROM trades t JOIN quotes q ON t.sym = q.sym WHERE t.price > q.ask + :d"
    handle = pot.templates.register(sql, [{"d": 1.0}, {"d": 7.5}, {"d": None}], None)
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 9.0)
    pot.quote(0, "a", 1.0)
    pot.quote(1, "a", 5.0)
    assert numbered_rows(pot.matches(handle, start)) == [
        (0, {"price": 9.0, "ask": 1.0, "d": 1.0}),
        (1, {"price": 9.0, "ask": 1.0, "d": 7.5}),
        (0, {"price": 9.0, "ask": 5.0, "d": 1.0}),
    ]
    assert [len(pot.engine.invoke(f"{handle}.{number}")) for number in range(3)] == [2, 1, 0]


def test_conditions_over_parameters_alone(pot: JoinPot) -> None:
    handle = pot.templates.register(f"{SQL} AND :p < 5", [{"sym": "a", "p": p} for p in (1.0, 5.0, 2.0, None)], None)
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 9.0)
    pot.quote(0, "a", 1.0)
    assert _numbers(pot.matches(handle, start)) == [(0, 9.0, 1.0), (2, 9.0, 1.0)]


def test_a_query_that_fails_does_not_stop_the_others(pot: JoinPot) -> None:
    sql = "SELECT t.price, q.ask FROM trades t, quotes q WHERE t.sym = q.sym AND CAST(t.price AS INT) DIV :n > 1"
    handle = pot.templates.register(sql, [{"n": 1}, {"n": 0}, {"n": 2}], None)
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 9.0)
    pot.quote(0, "a", 1.0)
    assert _numbers(pot.matches(handle, start)) == [(0, 9.0, 1.0), (2, 9.0, 1.0)]
    with pytest.raises(QueryFailed):
        pot.engine.invoke(f"{handle}.1")


def test_tables_of_a_template(pot: JoinPot) -> None:
    handle = pot.templates.register(WITH_TABLE, [{"sector": "tech"}, {"sector": "oil"}], "sectors", label="sector")
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 1.0)
    assert numbered_rows(pot.matches(handle, start)) == [(0, {"price": 1.0, "sector": "tech"})]
    pot.tables.replace("companies", [{"sym": "a", "sector": "oil"}])
    assert [len(pot.engine.invoke(f"sectors.{number}")) for number in (0, 1)] == [0, 1]
    after = pot.matches(handle, start).position()
    pot.trade(1, "a", 2.0)
    assert pot.matches(handle, after).labels == ["oil"]
    with pot.engine.catalog.read() as tx:
        rows = tx.execute(select(query_inputs.c.kind).where(query_inputs.c.query_id == handle)).scalars()
    assert rows == ["stream", "table", "values"]
    pot.tables.drop("companies")
    assert pot.templates.describe() == []
    with pytest.raises(UnknownQuery):
        pot.engine.invoke(f"{handle}.0")


def test_a_table_shrinks_while_a_tuple_is_read(pot: JoinPot) -> None:
    pot.tables.replace("companies", [{"sym": "a", "sector": sector} for sector in ("bank", "oil", "tech")])
    sql = "SELECT t.price, c.sector FROM trades t JOIN companies c ON t.sym = c.sym WHERE c.sector > :s"
    handle = pot.templates.register(sql, [{"s": ""}], None)
    start = pot.matches(handle, None).position()
    pot.trade(0, "a", 1.0)
    changes = pot.matches(handle, start)
    assert [row["sector"] for _, row in numbered_rows(changes)] == ["bank", "oil", "tech"]
    pot.tables.replace("companies", [{"sym": "a", "sector": "bank"}])
    pot.trade(1, "a", 2.0)
    pot.trade(2, "a", 3.0)
    later = pot.matches(handle, changes.position(1))
    assert [row["price"] for _, row in numbered_rows(later)] == [2.0, 3.0]
    assert [row["price"] for _, row in numbered_rows(pot.matches(handle, later.position(0)))] == [3.0]


@pytest.mark.parametrize("stream", ["trades", "quotes"])
def test_dropping_a_stream_drops_its_templates(pot: JoinPot, stream: str) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": 1.0}], None)
    pot.templates.add(handle, [{"sym": "b", "p": 1.0}])
    with pot.engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, stream))
    assert pot.templates.describe() == []
    with pytest.raises(UnknownQuery):
        pot.engine.invoke(f"{handle}.0")
    sweep(pot.engine.catalog, abandoned_after=-1, grace=-1)
    assert not list((pot.engine.catalog.root / "templates").rglob("*"))
    with pot.engine.catalog.read() as tx:
        for table in (query_inputs, template_part_ids):
            assert tx.execute(select(table)).all() == []


def test_explain_names_columns_by_their_aliases(pot: JoinPot) -> None:
    rows = [{"sym": f"s{number}", "p": float(number)} for number in range(40)]
    handle = pot.templates.register(SQL.replace("t.price > :p", "q.ask > :p"), rows, None)
    matching = pot.templates.explain(handle)["matching"]
    assert (matching["way"], matching["columns"]) == ("an index of the values", ["t.sym", "q.ask"])
    key = {"column": "t.sym", "keys": 40, "clauses": 40, "residual": "q.ask"}
    assert matching["by_key"] == [key]
    about = pot.engine.invoker.explain(f"{handle}.7")
    assert [entry["factors"] for entry in about["inputs"]] == [["sym = 's7'"], ["ask > 7.0"]]


@pytest.mark.parametrize(
    ("sql", "kind", "says"),
    [
        ("SELECT t.sym FROM trades t LEFT JOIN quotes q ON t.sym = q.sym WHERE t.price > :x", Unsupported, "inner"),
        (
            "SELECT t.sym FROM trades t ASOF JOIN quotes q ON t.sym = q.sym AND t.ts >= q.ts WHERE t.price > :x",
            Unsupported,
            "inner",
        ),
        (
            "SELECT t.sym FROM trades t WHERE t.price > :x AND t.sym IN (SELECT q.sym FROM quotes q)",
            Unsupported,
            "queries within queries",
        ),
        ("WITH q AS (SELECT sym FROM quotes) SELECT * FROM q WHERE sym > :x", Unsupported, "queries within queries"),
        (
            "SELECT t.sym FROM trades t JOIN (VALUES ('AA')) v (s) ON v.s = t.sym WHERE price > :x",
            Unsupported,
            "VALUES",
        ),
        ("SELECT :x AS x", SqlError, "names no stream"),
        (
            "SELECT sym FROM trades WHERE price > :x UNION SELECT sym FROM quotes",
            Unsupported,
            "queries within queries",
        ),
        ("SELECT t.sym FROM trades t JOIN quotes q ON t.price > :x", SqlError, "a parameter cannot stand here"),
        ("SELECT t.sym FROM trades t, quotes q WHERE price > :x AND sym = 'a'", SqlError, "'sym' is ambiguous"),
        ("SELECT t.sym FROM trades t, quotes q WHERE t.price > :x AND q.nope = 1", SqlError, "no column 'nope'"),
    ],
)
def test_invalid_templates_change_nothing(pot: JoinPot, sql: str, kind: type[SqlError], says: str) -> None:
    with pytest.raises(kind, match=says) as raised:
        pot.templates.register(sql, [{"x": 1.0}], "bad")
    assert raised.value.location is not None
    assert pot.templates.describe() == []


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT c.sector, count(*) AS n FROM trades t JOIN companies c USING (sym) WHERE t.price > :x GROUP BY 1", 1),
        ("SELECT t.sym, q.ask FROM trades t [ROWS 5], quotes q WHERE t.sym = q.sym AND t.price > :x", 1),
        ("SELECT t.sym FROM trades t, quotes q WHERE t.price > :x ORDER BY t.price", 1),
    ],
)
def test_queries_without_changes_are_invoked(pot: JoinPot, sql: str, answer: int) -> None:
    handle = pot.templates.register(sql, [{"x": 1.0}, {"x": 5.0}], None)
    pot.trade(0, "a", 3.0)
    pot.quote(0, "a", 3.0)
    with pytest.raises(Unsupported, match="has no changes"):
        pot.matches(handle, None)
    assert [len(pot.engine.invoke(f"{handle}.{number}")) for number in (0, 1)] == [answer, 0]
    assert pot.templates.explain(handle)["matching"]["way"] == "an index of the values"


def test_a_template_over_a_table_alone(pot: JoinPot) -> None:
    handle = pot.templates.register("SELECT * FROM companies WHERE sector = :s", [{"s": "tech"}], None)
    assert pot.templates.add(handle, [{"s": "bank"}]) == range(1, 2)
    answers: list[Any] = [pot.engine.invoke(f"{handle}.{number}").table.to_pylist() for number in (0, 1)]
    assert answers == [[{"sym": "a", "sector": "tech"}], [{"sym": "b", "sector": "bank"}]]
    assert len(pot.matches(handle, None)) == 0
