"""Tables and statements, embedded and through a client."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import tureen
from tests.behaviour.conftest import AnySoup, rows
from tureen.errors import DuplicateName, InvalidRows, InvalidSchema, Location, SqlError, UnknownColumn, UnknownTable

Names = Callable[[str], str]


def test_create_replace_read_and_drop(soup: AnySoup, fresh: Names) -> None:
    name = fresh("companies")
    soup.create_table(name, "sym STRING, sector STRING", rows=[{"sym": "A", "sector": "x"}])
    assert soup.table(name).to_pylist() == [{"sym": "A", "sector": "x"}]
    soup.replace_table(name, pa.table({"sym": ["B", "C"]}))
    assert soup.table(name).column("sym").to_pylist() == ["B", "C"]
    described = next(table for table in soup.tables() if table["name"] == name)
    assert (described["schema"], described["rows"]) == ("`sym` STRING, `sector` STRING", 2)
    assert isinstance(described["changed_at"], datetime)
    with pytest.raises(DuplicateName):
        soup.create_table(name, "sym STRING")
    with pytest.raises(InvalidRows):
        soup.replace_table(name, [{"nope": 1}])
    with pytest.raises(InvalidRows, match="None"):
        soup.replace_table(name, None)
    soup.drop_table(name)
    for call in (lambda: soup.table(name), lambda: soup.drop_table(name), lambda: soup.replace_table(name, [])):
        with pytest.raises(UnknownTable):
            call()


def test_types_come_from_the_rows_or_the_schema(soup: AnySoup, fresh: Names) -> None:
    name = fresh("typed")
    soup.create_table(name, rows=pa.table({"n": pa.array([1], pa.int32())}))
    assert soup.table(name).schema.field("n").type == pa.int32()
    with pytest.raises(InvalidSchema, match="types"):
        soup.create_table(fresh("untyped"), rows=[{"n": 1}])


def test_create_table_reads_a_file_of_the_caller(soup: AnySoup, fresh: Names, tmp_path: Path) -> None:
    name = fresh("filed")
    (tmp_path / "rows.csv").write_text("n,text\n1,one\n2,\n")
    soup.sql(f"CREATE TABLE {name} (n INT, text STRING) FROM '{tmp_path / 'rows.csv'}'")
    assert soup.table(name).to_pylist() == [{"n": 1, "text": "one"}, {"n": 2, "text": None}]
    soup.sql(f"CREATE TABLE IF NOT EXISTS {name} (n INT)")


def test_statements(soup: AnySoup, fresh: Names) -> None:
    stream, query = fresh("s"), fresh("q")
    assert soup.sql(f"CREATE STREAM {stream} (sym STRING, price DOUBLE, qty INT, ts TIMESTAMP) TIME ts") is None
    registered = soup.sql(f"REGISTER QUERY {query} AS SELECT sym FROM {stream} WHERE qty > 1")
    assert isinstance(registered, tureen.StandingQuery)
    assert registered.name == query
    soup.wait(soup.push(stream, rows(("A", 1.0, 1), ("B", 2.0, 2))))
    answer = soup.sql(f"INVOKE {query}")
    assert isinstance(answer, tureen.Answer)
    assert answer.table.to_pylist() == [{"sym": "B"}]
    count = soup.sql(f"SELECT count(*) AS n FROM {stream};")
    assert isinstance(count, tureen.Answer)
    assert count.table.to_pylist() == [{"n": 2}]
    listed = soup.sql("SHOW QUERIES")
    assert isinstance(listed, list)
    assert isinstance(next(info for info in listed if info["name"] == query)["registered_at"], datetime)
    described = soup.sql(f"DESCRIBE {stream}")
    assert isinstance(described, dict)
    assert (described["kind"], described["name"]) == ("stream", stream)
    explained = soup.sql(f"EXPLAIN SELECT sym FROM {stream} WHERE qty > 1")
    assert isinstance(explained, dict)
    assert "qty" in explained["factors"][0]
    assert soup.sql(f"DROP QUERY {query}") is None
    assert soup.sql(f"DROP STREAM IF EXISTS {stream}") is None


@pytest.mark.parametrize(
    ("statement", "position"),
    [
        ("REGISTER QUERY q AS\n  SELECT prize FROM {s}", Location(2, 10)),
        ("EXPLAIN SELECT prize FROM {s}", Location(1, 16)),
        ("SELECT prize FROM {s}", Location(1, 8)),
    ],
)
def test_errors_have_a_position_in_the_statement(
    soup: AnySoup, trades: str, statement: str, position: Location
) -> None:
    with pytest.raises(UnknownColumn) as raised:
        soup.sql(statement.format(s=trades))
    assert (raised.value.location, raised.value.hint) == (position, "did you mean 'price'?")


def test_invalid_statements(soup: AnySoup) -> None:
    for text in ("BREW COFFEE", "CREATE TABLE"):
        with pytest.raises(SqlError) as raised:
            soup.sql(text)
        assert raised.value.location is not None
    for call in (soup.sql, soup.register):
        with pytest.raises(SqlError):
            call("")
