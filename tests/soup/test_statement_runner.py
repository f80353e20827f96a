"""Running statements: on a backend that records the calls, and on a real soup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow import parquet

import tureen
from tureen.errors import (
    DuplicateName,
    InvalidRows,
    InvalidSchema,
    Location,
    QueryFailed,
    SqlError,
    TureenError,
    UnknownColumn,
    UnknownQuery,
    UnknownStream,
    UnknownTable,
)
from tureen.language.text.statements import parse_statement
from tureen.schema import Schema
from tureen.soup.statement_runner import run_statement

PAGE = (Path(__file__).parents[2] / "docs" / "statements.md").read_text()
EXAMPLES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


class RecordingBackend:
    """Records the calls; raises the given error."""

    def __init__(self, error: TureenError | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            if name in ("streams", "tables", "describe_queries", "templates", "functions"):
                return [{"name": f"a_{name}"}]
            if name in ("query", "template"):
                return self
            if self.error is not None:
                raise self.error
            return name

        return call

    def run(self, text: str, **options: Any) -> Any:
        """Run a statement."""
        return run_statement(cast(tureen.AnySoup, self), parse_statement(text), **options)


A = Schema.parse("a INT")


@pytest.mark.parametrize(
    ("text", "calls", "gives"),
    [
        (
            "CREATE STREAM s (a INT) RETAIN 1 DAY CLOCK stream FROM 'rate' OPTIONS (x '1')",
            [
                (
                    "create_stream",
                    ("s", A),
                    {
                        "retain": "1 DAY",
                        "clock": "stream",
                        "source": {"format": "rate", "options": {"x": "1"}},
                        "unique": None,
                        "lateness": None,
                        "punctuate": None,
                        "key": None,
                        "item": None,
                        "if_not_exists": False,
                    },
                )
            ],
            None,
        ),
        (
            "CREATE STREAM IF NOT EXISTS s (a INT)",
            [
                (
                    "create_stream",
                    ("s", A),
                    {
                        "retain": None,
                        "clock": None,
                        "source": None,
                        "unique": None,
                        "lateness": None,
                        "punctuate": None,
                        "key": None,
                        "item": None,
                        "if_not_exists": True,
                    },
                )
            ],
            None,
        ),
        (
            "CREATE TABLE t (a INT) FROM 'x.csv'",
            [("create_table", ("t", A, "x.csv"), {"if_not_exists": False})],
            None,
        ),
        (
            "CREATE TABLE IF NOT EXISTS t (a INT)",
            [("create_table", ("t", A, None), {"if_not_exists": True})],
            None,
        ),
        (
            "CREATE OR REPLACE FUNCTION f(STRING, DECIMAL(3,1)) RETURNS INT VECTORIZED AS 'm:f'",
            [
                (
                    "create_function",
                    ("f", "m:f", "INT"),
                    {"arguments": "STRING, DECIMAL(3,1)", "vectorized": True, "replace": True},
                )
            ],
            None,
        ),
        ("DROP FUNCTION f", [("drop_function", ("f",), {})], None),
        ("SHOW FUNCTIONS", [("functions", (), {})], [{"name": "a_functions"}]),
        ("DROP STREAM s", [("drop_stream", ("s",), {})], None),
        ("DROP TABLE t", [("drop_table", ("t",), {})], None),
        ("DROP QUERY q", [("query", ("q",), {}), ("unregister", (), {})], None),
        ("REGISTER QUERY q AS SELECT 1", [("register", ("SELECT 1",), {"name": "q"})], "register"),
        ("REGISTER SELECT 1", [("register", ("SELECT 1",), {"name": None})], "register"),
        (
            "INVOKE q AT DATE '2026-01-01'",
            [("query", ("q",), {}), ("invoke", (), {"now": datetime(2026, 1, 1, tzinfo=UTC)})],
            "invoke",
        ),
        ("SELECT 1;", [("answer_once", ("SELECT 1",), {})], "answer_once"),
        ("EXPLAIN SELECT 1", [("explain_once", ("SELECT 1",), {})], "explain_once"),
        ("EXPLAIN q", [("query", ("q",), {}), ("explain", (), {})], "explain"),
        ("EXPLAIN ROW q WHERE a > 1", [("query", ("q",), {}), ("why", ("a > 1",), {"now": None})], "why"),
        ("SHOW STREAMS", [("streams", (), {})], [{"name": "a_streams"}]),
        ("SHOW TABLES", [("tables", (), {})], [{"name": "a_tables"}]),
        ("SHOW QUERIES", [("describe_queries", (), {})], [{"name": "a_describe_queries"}]),
        ("SHOW TEMPLATES", [("templates", (), {})], [{"name": "a_templates"}]),
        ("DESCRIBE TABLE A_Tables", [("tables", (), {})], {"kind": "table", "name": "a_tables"}),
    ],
)
def test_a_statement_becomes_calls(text: str, calls: list[Any], gives: Any) -> None:
    backend = RecordingBackend()
    assert backend.run(text) == gives
    assert backend.calls == calls


@pytest.mark.parametrize(
    ("text", "error", "location"),
    [
        ("REGISTER QUERY q AS\n  SELECT\n b FROM s", UnknownColumn("x", location=Location(2, 2)), Location(3, 2)),
        ("REGISTER QUERY q AS SELECT b FROM s", UnknownColumn("x", location=Location(1, 8)), Location(1, 28)),
        ("EXPLAIN SELECT b FROM s", UnknownColumn("x", location=Location(1, 8)), Location(1, 16)),
        ("\n SELECT b FROM s", UnknownColumn("x", location=Location(1, 8)), Location(2, 9)),
        ("SELECT b FROM s", QueryFailed("x"), None),
        ("CREATE STREAM s (a INT)", DuplicateName("x"), Location(1, 15)),
        ("CREATE TABLE t (a INT)", InvalidSchema("x"), Location(1, 14)),
        ("CREATE TABLE t (a INT) FROM 'x.csv'", InvalidRows("'x.csv' line 5: …"), None),
        ("DROP STREAM\n s", UnknownStream("x"), Location(2, 2)),
        ("DROP TABLE t", UnknownTable("x"), Location(1, 12)),
        ("INVOKE q", UnknownQuery("x"), Location(1, 8)),
        ("INVOKE q", QueryFailed("x"), None),
        ("EXPLAIN q", UnknownQuery("x"), Location(1, 9)),
        ("EXPLAIN ROW q WHERE a", UnknownQuery("x"), Location(1, 13)),
    ],
)
def test_errors_have_a_position_in_the_whole_text(text: str, error: TureenError, location: Location | None) -> None:
    with pytest.raises(type(error)) as caught:
        RecordingBackend(error).run(text)
    assert caught.value.location == location


def test_if_exists_ignores_unknown_names_only() -> None:
    for kind, error in (("STREAM", UnknownStream), ("TABLE", UnknownTable), ("QUERY", UnknownQuery)):
        assert RecordingBackend(error("x")).run(f"DROP {kind} IF EXISTS x") is None
        with pytest.raises(SqlError):
            RecordingBackend(SqlError("x")).run(f"DROP {kind} IF EXISTS x")


def test_files_may_be_forbidden() -> None:
    backend = RecordingBackend()
    with pytest.raises(InvalidRows, match="a server does not read files"):
        backend.run("CREATE TABLE t (a INT) FROM '/etc/passwd'", files=False)
    assert backend.calls == []


def test_describe_of_unknown_names_fails() -> None:
    for kind, error in (("", UnknownStream), ("TABLE", UnknownTable), ("QUERY", UnknownQuery)):
        with pytest.raises(error, match="named 'a_table'") as caught:
            RecordingBackend().run(f"DESCRIBE {kind} a_table")
        assert caught.value.location is not None


def test_examples_of_the_documentation(soup: tureen.Soup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("companies.csv").write_text("sym,sector\nIBM,tech\n")
    parquet.write_table(pa.table({"venue": ["X"]}), "venues.parquet")
    outcomes = {" ".join(text.split()[: 2 if "ROW" in text.split() else 1]): soup.sql(text) for text in EXAMPLES}
    assert len(EXAMPLES) == 27
    assert outcomes["CREATE"] is outcomes["DROP"] is None
    assert isinstance(outcomes["REGISTER"], tureen.StandingQuery)
    assert isinstance(outcomes["INVOKE"], tureen.Answer)
    assert isinstance(outcomes["SELECT"], tureen.Answer)
    assert outcomes["DESCRIBE"] == {"kind": "table", **soup.tables()[0]}
    assert soup.table("companies").to_pylist() == [{"sym": "IBM", "sector": "tech", "founded": None}]
    assert [info["name"] for info in soup.streams()] == ["trades", "offers", "big", "per_minute"]
    assert isinstance(outcomes["EXPLAIN"], dict)
    assert isinstance(outcomes["EXPLAIN ROW"], tureen.Explanation)
    for word in (
        "CREATE STREAM",
        "CREATE TABLE",
        "CREATE FUNCTION",
        "PUNCTUATE",
        "DROP",
        "REGISTER",
        "INVOKE",
        "SELECT",
        "SHOW",
        "DESCRIBE",
        "EXPLAIN",
        "EXPLAIN ROW",
    ):
        assert f"\n## {word}\n" in PAGE


def test_a_session(soup: tureen.Soup) -> None:
    assert soup.sql("CREATE STREAM session (a INT, ts TIMESTAMP) TIME ts RETAIN 1 DAY") is None
    assert soup.sql("CREATE STREAM IF NOT EXISTS Session (b INT)") is None
    handle = soup.sql(
        "REGISTER QUERY `my q` AS\n  SELECT a FROM session WHERE a > 1 BEGIN NOW - 1 HOUR END NOW -- x\n;"
    )
    assert isinstance(handle, tureen.StandingQuery)
    assert handle.sql == "SELECT a FROM session WHERE a > 1 BEGIN NOW - 1 HOUR END NOW"
    now = datetime.now(UTC).replace(microsecond=0)
    for query in ("`My Q`", handle.id):
        answer = soup.sql(f"INVOKE {query} AT TIMESTAMP '{now:%Y-%m-%d %H:%M:%S}'")
        assert isinstance(answer, tureen.Answer)
        assert answer.window == (now - timedelta(hours=1), now)
    (shown,) = (info for info in cast(list[dict[str, Any]], soup.sql("SHOW QUERIES")) if info["name"] == "my q")
    assert shown == {
        "id": handle.id,
        "name": "my q",
        "sql": handle.sql,
        "language": "sql",
        "state": "standing",
        "owner": "local",
        "shared": False,
        "registered_at": shown["registered_at"],
    }
    assert now - timedelta(minutes=1) < shown["registered_at"] <= datetime.now(UTC)
    assert soup.sql(f"DESCRIBE QUERY {handle.id}") == {"kind": "query", **shown}
    with pytest.raises(UnknownColumn) as caught:
        soup.sql("REGISTER QUERY other AS\n  SELECT a,\n b FROM session")
    assert caught.value.location == Location(3, 2)
    with pytest.raises(DuplicateName) as taken:
        soup.sql("CREATE TABLE\n session (a INT)")
    assert taken.value.location == Location(2, 2)
    soup.sql("CREATE TABLE session_names (a INT)")
    with pytest.raises(DuplicateName, match="there is a table named"):
        soup.sql("CREATE STREAM IF NOT EXISTS session_names (a INT)")
    with pytest.raises(UnknownStream, match="no stream or table named 'nowhere'") as unknown:
        soup.sql("REGISTER SELECT a\nFROM nowhere")
    assert unknown.value.location == Location(2, 6)
    soup.sql("DROP QUERY `my q`")
    with pytest.raises(UnknownQuery):
        soup.sql("INVOKE `my q`")
    soup.sql("DROP STREAM session")
    with pytest.raises(UnknownStream):
        soup.sql("DROP STREAM session")
    assert soup.sql("DROP STREAM IF EXISTS session") is None


def test_select_without_registering(soup: tureen.Soup) -> None:
    soup.sql("CREATE STREAM once (a INT)")
    soup.wait(soup.push("once", [{"a": n} for n in range(5)]))
    before = soup.status()["clauses"]
    answer = soup.sql("SELECT a FROM once WHERE a > 2")
    assert isinstance(answer, tureen.Answer)
    assert [row["a"] for row in answer] == [3, 4]
    assert isinstance(soup.sql("EXPLAIN SELECT a FROM once WHERE a > 2"), dict)
    assert soup.status()["clauses"] == before
    for text in ("\n SELECT b FROM once", "EXPLAIN\n SELECT b FROM once"):
        with pytest.raises(UnknownColumn) as caught:
            soup.sql(text)
        assert caught.value.location == Location(2, 9)
    soup.sql("CREATE TABLE once_names (a INT)")
    joined = soup.sql("SELECT o.a FROM once o LEFT ANTI JOIN once_names n ON o.a = n.a WHERE o.a > 3")
    assert isinstance(joined, tureen.Answer)
    assert list(joined) == [{"a": 4}]


@pytest.mark.parametrize("bad", [5, None, b"SHOW STREAMS", "\ud800"])
def test_statements_must_be_texts(tmp_path: Path, bad: Any) -> None:
    with tureen.open(tmp_path / "none") as empty_soup, pytest.raises(TureenError, match="a statement"):
        empty_soup.sql(bad)


def test_invalid_column_names_are_rejected(tmp_path: Path) -> None:
    with tureen.open(tmp_path / "none") as empty_soup:
        for name in ("a,b", "a)", "a``b", ""):
            for kind in ("STREAM", "TABLE"):
                with pytest.raises(InvalidSchema, match="is not a valid name of a column") as caught:
                    empty_soup.sql(f"CREATE {kind} s (ok INT, `{name}` INT)")
                assert caught.value.location is not None
        assert empty_soup.tables() == []


def test_an_empty_directory_has_empty_listings(tmp_path: Path) -> None:
    with tureen.open(tmp_path / "none") as empty_soup:
        assert [empty_soup.sql(f"SHOW {kind}") for kind in ("STREAMS", "TABLES", "QUERIES")] == [[], [], []]
        with pytest.raises(UnknownTable):
            empty_soup.table("x")
    assert not (tmp_path / "none").exists()
