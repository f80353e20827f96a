"""`CREATE TABLE … FROM 'file'` over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

import tureen
from tests.service.running import RunningServer
from tureen.client.create_table import parse_create_from_file
from tureen.errors import DuplicateName, InvalidSchema, Location
from tureen.language.text.relation_statements import CreateTable
from tureen.language.text.statements import parse_statement

CREATED = [
    "CREATE TABLE t (a INT) FROM 'x.csv'",
    'create table if not exists `my t` (a INT, `b c` DECIMAL(9, 2)) from "x.csv";',
    "-- comment\nCREATE /* comment */ TABLE\n t FROM 'a/b''c.parquet'  ; ",
    r"CREATE TABLE t FROM 'C:\\users\\x.csv'",
    r"CREATE TABLE t FROM 'a\tb\'c.csv'",
    "CREATE TABLE `a``b` (a INT) FROM 'x.csv'",
    "CREATE TABLE if FROM 'x'",
    "CREATE TABLE t(a: INT)FROM'x--y'",
    "CREATE TABLE t FROM '/* x */'",
]


@pytest.mark.parametrize("text", CREATED)
def test_create_table_from_file_is_parsed_as_by_the_engine(text: str) -> None:
    statement = parse_statement(text)
    parsed = parse_create_from_file(text)
    assert isinstance(statement, CreateTable)
    assert parsed is not None
    assert (parsed.name, parsed.schema, parsed.file) == (statement.name, statement.schema, statement.file)
    assert (parsed.if_not_exists, parsed.position) == (statement.if_not_exists, statement.location)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT)",
        "CREATE TABLE t (a INT NOT NULL) FROM 'x'",
        "CREATE TABLE t (a INT, a INT) FROM 'x'",
        "CREATE TABLE t () FROM 'x'",
        "CREATE TABLE 12 FROM 'x'",
        "CREATE TABLE a.b FROM 'x'",
        "CREATE TABLE t FROM 'x'; DROP TABLE t",
        r"CREATE TABLE t FROM 'a\u0041'",
        "SELECT 'CREATE TABLE t FROM x'",
        "CREATE STREAM s (a INT) FROM 'rate'",
    ],
)
def test_other_statements_go_to_the_server(text: str) -> None:
    assert parse_create_from_file(text) is None


def test_create_table_errors_have_their_position(served_pot: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as client:
        client.sql(f"CREATE TABLE positioned (n INT) FROM '{tmp_path / 'a.csv'}'")
        assert client.table("positioned").to_pylist() == [{"n": 1}]
        with pytest.raises(DuplicateName) as duplicate:
            client.sql(f"CREATE TABLE\n positioned (n INT) FROM '{tmp_path / 'a.csv'}'")
        with pytest.raises(InvalidSchema) as invalid:
            client.sql(f"CREATE TABLE other (n INT, m NUMBER) FROM '{tmp_path / 'a.csv'}'")
        client.drop_table("positioned")
    assert (duplicate.value.location, invalid.value.location) == (Location(2, 2), Location(1, 30))
