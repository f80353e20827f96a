"""Parsing of statements, and errors of invalid ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import InvalidSchema, Location, SqlError, TureenError
from tureen.language.text.peer_statements import CreatePeer, ShareStream
from tureen.language.text.relation_statements import CreateStream, CreateTable, DeriveStream
from tureen.language.text.statements import (
    Describe,
    Drop,
    Explain,
    ExplainRow,
    Invoke,
    Register,
    Select,
    Show,
    Statement,
    parse_statement,
    relocate,
)
from tureen.schema import Schema

TRADES = Schema.parse("sym STRING, price DECIMAL(10,2), ts TIMESTAMP", time="ts")
PLAIN = Schema.parse("a INT")
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
SELECT = "SELECT a FROM s WHERE a > 1"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE STREAM s (a INT)", CreateStream("s", PLAIN)),
        ("create stream if not exists `my s` (`a` int);", CreateStream("my s", PLAIN, if_not_exists=True)),
        (
            "CREATE STREAM t (sym STRING, price DECIMAL(10, 2), ts TIMESTAMP) TIME ts RETAIN 1 DAY CLOCK stream",
            CreateStream("t", TRADES, retain="1 DAY", clock="stream"),
        ),
        (
            "CREATE STREAM t (sym: text, price dec(10,2),\n ts timestamp)\n"
            "CLOCK WALL RETAIN INTERVAL '90' MINUTE TIME TS",
            CreateStream("t", TRADES, retain="INTERVAL '90' MINUTE", clock="wall"),
        ),
        ("CREATE STREAM s (a INT) RETAIN '1 day 12 hours'", CreateStream("s", PLAIN, retain="1 day 12 hours")),
        ("CREATE STREAM s (a INT) FROM 'rate'", CreateStream("s", PLAIN, format="rate")),
        ("CREATE STREAM s (a INT) ITEM 'r/i'", CreateStream("s", PLAIN, item="r/i")),
        ("CREATE PEER alpha URL 'http://a'", CreatePeer("alpha", "http://a")),
        ("create peer `a b` url 'http://a' ca 'x.pem' token 't';", CreatePeer("a b", "http://a", "t", "x.pem")),
        ("SHARE STREAM s WITH alpha", ShareStream("s", "alpha")),
        ("UNSHARE STREAM `my s` WITH alpha", ShareStream("my s", "alpha", shared=False)),
        ("DROP PEER IF EXISTS alpha", Drop("PEER", "alpha", if_exists=True)),
        ("SHOW PEERS", Show("PEERS")),
        ("CREATE STREAM s ITEM 'r/i' AS SELECT a FROM t", DeriveStream("s", "SELECT a FROM t", item="r/i")),
        (
            "CREATE STREAM s (a INT) FROM 'kafka' OPTIONS (subscribe 'x', 'a b' = 'it''s', "
            "c.d 5, e = -1.5, 'f' 'g', h true)",
            CreateStream(
                "s",
                PLAIN,
                format="kafka",
                options=(("subscribe", "x"), ("a b", "it's"), ("c.d", "5"), ("e", "-1.5"), ("f", "g"), ("h", "true")),
            ),
        ),
        ("CREATE STREAM s (a INT) FROM 'rate' OPTIONS () RETAIN 5", CreateStream("s", PLAIN, "5", format="rate")),
        ("CREATE STREAM stream (a INT)", CreateStream("stream", PLAIN)),
        ("CREATE STREAM if (a INT)", CreateStream("if", PLAIN)),
        ("CREATE TABLE t (a INT)", CreateTable("t", PLAIN)),
        ("CREATE TABLE IF NOT EXISTS t (a INT) FROM 'x.csv'", CreateTable("t", PLAIN, "x.csv", if_not_exists=True)),
        ("CREATE TABLE t FROM 'x.parquet'", CreateTable("t", None, "x.parquet")),
        ("DROP STREAM s", Drop("STREAM", "s")),
        ("DROP TABLE IF EXISTS `order`", Drop("TABLE", "order", if_exists=True)),
        ("/* /* */ */ drop query big -- gone\n;;", Drop("QUERY", "big")),
        (f"REGISTER {SELECT};", Register(SELECT)),
        (f"REGISTER QUERY `big one` AS -- why\n{SELECT} -- so\n ; ", Register(SELECT, "big one")),
        ("REGISTER QUERY q AS SELECT a -- x\nFROM s", Register("SELECT a -- x\nFROM s", "q")),
        ("INVOKE big", Invoke("big")),
        ("INVOKE big AT TIMESTAMP '2026-01-01 00:00:00'", Invoke("big", MIDNIGHT)),
        ("INVOKE big AT '2026-01-01T01:00:00+01:00'", Invoke("big", MIDNIGHT)),
        ("INVOKE big AT DATE '2026-01-01'", Invoke("big", MIDNIGHT)),
        ("SHOW STREAMS", Show("STREAMS")),
        ("-- all of them\nshow tables", Show("TABLES")),
        ("SHOW QUERIES -- now\n;", Show("QUERIES")),
        ("show templates", Show("TEMPLATES")),
        ("EXPLAIN big", Explain("big", None)),
        (f"EXPLAIN {SELECT}", Explain(None, SELECT)),
        ("EXPLAIN `select`", Explain("select", None)),
        ("EXPLAIN row", Explain("row", None)),
        ("EXPLAIN ROW big WHERE a = 1;", ExplainRow("big", "a = 1")),
        (
            "explain row `row` at DATE '2026-01-01' where row = ';'",
            ExplainRow("row", "row = ';'", datetime(2026, 1, 1, tzinfo=UTC)),
        ),
        ("DESCRIBE trades", Describe("trades")),
        ("DESC TABLE trades", Describe("trades", "TABLE")),
        ("DESCRIBE table", Describe("table")),
        (f"  {SELECT} ;", Select(SELECT)),
    ],
)
def test_statement(text: str, statement: Statement) -> None:
    assert parse_statement(text) == statement


@pytest.mark.parametrize(
    "handle",
    ["0" * 32, "0123456789abcdef" * 2, "00000e12000000000000000000000012", "1" * 31 + "d", "1e5f" * 8, "ABCDEF01" * 4],
)
def test_a_handle_may_look_like_a_number(handle: str) -> None:
    assert parse_statement(f"INVOKE {handle} AT DATE '2026-01-01'") == Invoke(handle, MIDNIGHT)
    assert parse_statement(f"DROP QUERY {handle}") == Drop("QUERY", handle)
    assert parse_statement(f"EXPLAIN {handle};") == Explain(handle, None)


@pytest.mark.parametrize(
    ("text", "message", "location", "hint"),
    [
        ("CRATE STREAM s (a INT)", "unknown statement 'CRATE'", (1, 1), "did you mean CREATE STREAM?"),
        ("DORP TABEL t", "'DORP'", (1, 1), "did you mean DROP TABLE?"),
        ("\n  INVOK big", "'INVOK'", (2, 3), "did you mean INVOKE?"),
        ("SLECT a FROM s", "'SLECT'", (1, 1), "did you mean SELECT?"),
        ("VACUUM", "'VACUUM'", (1, 1), "statements begin with CREATE, DROP"),
        ("INSERT INTO s VALUES (1)", "'INSERT'", (1, 1), "push"),
        (
            "CREATE STREEM s (a INT)",
            "expected STREAM, TABLE, FUNCTION or PEER, got 'STREEM'",
            (1, 8),
            "did you mean STREAM?",
        ),
        ("CREATE QUERY q AS SELECT 1", "got 'QUERY'", (1, 8), "REGISTER QUERY"),
        ("CREATE", "got the end of the text", (1, 7), "CREATE STREAM"),
        ("CREATE STREAM", "the name of a stream", (1, 14), None),
        ("CREATE STREAM 's' (a INT)", "the name of a stream, got ''s''", (1, 15), "`s`"),
        ("CREATE STREAM a.b (a INT)", "one part", (1, 17), "backticks"),
        ("CREATE STREAM s", "the columns in parentheses", (1, 16), "sym STRING"),
        ("CREATE STREAM s ()", "the name of a column", (1, 18), None),
        ("CREATE STREAM s (a)", "the type of column 'a'", (1, 19), "STRING"),
        ("CREATE STREAM s (a INT,\n b INTT)", "unknown type 'INTT'", (2, 4), "did you mean 'INT'?"),
        ("CREATE STREAM s (a INT NOT NULL)", "a comma or a parenthesis, got 'NOT'", (1, 24), "leave NOT NULL out"),
        ("CREATE STREAM s (a INT PRIMARY KEY)", "got 'PRIMARY KEY'", (1, 24), "UNIQUE (column)"),
        (
            "CREATE STREAM s (a INT COMMENT 'x')",
            "a comma or a parenthesis, got 'COMMENT'",
            (1, 24),
            "a name and a type",
        ),
        ("CREATE STREAM s (a TIMESTAMP(3))", "type TIMESTAMP has no length", (1, 20), "write TIMESTAMP"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "got 'MATERIALIZED'", (1, 8), "REGISTER QUERY"),
        ("CREATE SOURCE s (a INT)", "got 'SOURCE'", (1, 8), "CREATE STREAM"),
        ("CREATE TABLE t AS SELECT a FROM s", "got 'AS'", (1, 16), "REGISTER QUERY t AS"),
        ("SUBSCRIBE TO v", "'SUBSCRIBE'", (1, 1), "changes()"),
        ("COPY s FROM 'rows.csv'", "'COPY'", (1, 1), "tureen push"),
        ("CREATE STREAM s (a INT, A INT)", "duplicate column 'A'", (1, 25), None),
        ("CREATE STREAM s (_a INT)", "underscore", (1, 15), "reserved"),
        ("CREATE STREAM s (a INT", "end of the text", (1, 23), None),
        ("CREATE STREAM s (a INT) TIME b", "the time column 'b'", (1, 30), None),
        ("CREATE STREAM s (a INT) TIME a", "must be TIMESTAMP, got INT", (1, 30), None),
        ("CREATE STREAM s (a INT) RETAIN 1 DAY RETAIN 2 DAYS", "duplicate RETAIN", (1, 38), None),
        ("CREATE STREAM s (a INT) RETAIN CLOCK wall", "a duration", (1, 32), "RETAIN 1 DAY"),
        ("CREATE STREAM s (a INT) RETAIN soon", "'soon' is not a duration", (1, 32), "1 day"),
        ("CREATE STREAM s (a INT) RETAIN 1 MONTH", "no fixed length", (1, 32), "days"),
        ("CREATE STREAM s (a INT) CLOCK sundial", "STREAM or WALL", (1, 31), "replays"),
        ("CREATE STREAM s (a INT) RETIAN 1 DAY", "got 'RETIAN'", (1, 25), "did you mean RETAIN?"),
        (
            "CREATE STREAM s UNIQUE (a) AS SELECT a FROM t",
            "UNIQUE requires columns",
            (1, 17),
            "a stream that the query",
        ),
        ("CREATE STREAM s RETAIN 1 DAY LATENESS 1 SECOND AS SELECT a FROM t", "LATENESS requires", (1, 30), "LATENESS"),
        (
            "CREATE STREAM s (a INT) UNIQUE (a) AS SELECT a FROM t",
            "with columns cannot be derived",
            (1, 36),
            "s AS SEL",
        ),
        ("CREATE STREAM s (a INT) FROM kafka", "a format in quotes", (1, 30), "'rate'"),
        ("CREATE STREAM s (a INT) FROM 'rate' OPTIONS x", "options in parentheses", (1, 45), "OPTIONS ("),
        ("CREATE STREAM s (a INT) FROM 'rate' OPTIONS (x)", "the value of option 'x'", (1, 47), "OPTIONS ("),
        ("CREATE STREAM s (a INT) FROM 'rate' OPTIONS ('x', y 1)", "option 'x' has no value", (1, 46), "OPTIONS ("),
        ("CREATE STREAM s (a INT) FROM 'rate' OPTIONS (x 1, X 2)", "duplicate option 'X'", (1, 51), None),
        ("CREATE TABLE t (a INT) RETAIN 1 DAY", "RETAIN is not allowed for a table", (1, 24), "STREAM"),
        ("CREATE TABLE t (a INT) FROM x.csv", "a file in quotes", (1, 29), "companies.csv"),
        ("CREATE TABLE t", "the columns in parentheses", (1, 15), "sym STRING"),
        ("CREATE PEER alpha", "expected URL", (1, 18), "URL 'http://…'"),
        ("CREATE PEER alpha URL x", "an address in quotes", (1, 23), "as in URL"),
        ("CREATE PEER a URL 'x' TOKEN 't' TOKEN 't'", "duplicate TOKEN", (1, 33), None),
        ("SHARE s WITH alpha", "expected STREAM", (1, 7), "SHARE STREAM trades WITH a peer"),
        ("UNSHARE STREAM s", "expected WITH", (1, 17), "UNSHARE STREAM s WITH a peer"),
        ("DROP big", "STREAM, TABLE, QUERY, FUNCTION or PEER", (1, 6), "DROP QUERY"),
        ("REGISTER big AS SELECT 1", "QUERY or SELECT, got 'big'", (1, 10), "REGISTER [QUERY name AS]"),
        ("REGISTER QUERY big SELECT 1", "expected AS", (1, 20), "REGISTER QUERY big AS"),
        ("REGISTER QUERY big AS", "expected SELECT", (1, 22), None),
        ("INVOKE", "the name of a query", (1, 7), None),
        ("INVOKE big AT NOON", "a time, got 'NOON'", (1, 15), "TIMESTAMP '"),
        ("INVOKE big AT TIMESTAMP 'noon'", "'noon' is not a TIMESTAMP", (1, 25), "TIMESTAMP '"),
        ("SHOW STREMS", "STREAMS, TABLES, QUERIES, TEMPLATES, FUNCTIONS or PEERS", (1, 6), "did you mean STREAMS?"),
        ("SHOW TABLES LIKE 'x'", "'LIKE' is not expected", (1, 13), None),
        ("SHOW TABLES; SHOW STREAMS", "only one statement", (1, 14), "one at a time"),
        ("SHOW 'TABLES", "cannot be read", (1, 13), "not closed"),
        ("EXPLAIN", "the name of a query", (1, 8), None),
        ("", "no statement", None, "SHOW"),
        (" -- nothing", "no statement", None, "SHOW"),
    ],
)
def test_error(text: str, message: str, location: tuple[int, int] | None, hint: str | None) -> None:
    with pytest.raises(TureenError) as caught:
        parse_statement(text)
    assert isinstance(caught.value, SqlError | InvalidSchema)
    assert message in caught.value.message
    assert caught.value.location == (Location(*location) if location else None)
    assert hint is None or hint in (caught.value.hint or "")


@pytest.mark.parametrize("prefix", ["REGISTER ", "EXPLAIN\n", "REGISTER QUERY q\n AS   ", "\n\n\t", ""])
@pytest.mark.parametrize("inner", [Location(1, 1), Location(1, 8), Location(3, 2)])
def test_error_location_is_relative_to_the_whole_text(prefix: str, inner: Location) -> None:
    query = "SELECT a,\n  b\n FROM s"
    statement = parse_statement(prefix + query)
    assert isinstance(statement, Register | Explain | Select)
    assert statement.sql == query
    error = SqlError("x", location=inner)
    relocate(error, statement.location)
    # Compare the text at both locations.
    lines = (prefix + query).split("\n")
    assert error.location is not None
    assert (
        lines[error.location.line - 1][error.location.column - 1 :]
        == query.split("\n")[inner.line - 1][inner.column - 1 :]
    )


TEXT = """CREATE DROP SHOW STREAM TABLE QUERY IF NOT EXISTS ( ) , a `b` INT DECIMAL 10 'x' FROM OPTIONS = . TIME RETAIN
CLOCK 1 DAY INTERVAL REGISTER AS SELECT INVOKE AT TIMESTAMP EXPLAIN DESCRIBE ; -- /* */ 0e1 5L ' ` é"""
WORDS = st.sampled_from([*TEXT.split(), "\n"])


@example_settings(120)
@given(st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=40))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        parse_statement(text)
    except TureenError as error:
        assert isinstance(error, SqlError | InvalidSchema)  # noqa: PT017 - most texts raise, some do not
