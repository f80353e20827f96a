"""CSV files as the contents of tables: values by the schema, and errors with their line."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import tureen
from tureen.errors import InvalidRows

ALL = "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(10,2), s STRING, day DATE, ts TIMESTAMP"


@pytest.fixture
def soup(engineless: tureen.Soup) -> tureen.Soup:
    return engineless


def test_csv_values_are_parsed_by_the_schema(soup: tureen.Soup, tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_bytes(
        b"\xef\xbb\xbfB, i ,l,f,d,n,s,day,ts\r\n"
        b'TRUE,-1,9223372036854775807,0.5,1e3,3.25,"a,\n""b""",2026-01-02,2026-01-02T03:04:05+01:00\r\n'
        b"\r\n"
        b'false,+7,1,NaN,-Infinity,1,"",2026-01-02,2026-01-02 03:04:05\r\n'
        b",,,,,,,,"
    )
    soup.create_table("all", ALL, path)
    first, second, third = soup.table("all").to_pylist()
    moment = datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert list(first.values()) == [
        *(True, -1, 2**63 - 1, 0.5, 1000.0, Decimal("3.25"), 'a,\n"b"', date(2026, 1, 2), moment),
    ]
    assert (second["s"], second["i"], second["d"]) == ("", 7, float("-inf"))
    assert second["ts"].hour == 3
    assert set(third.values()) == {None}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("b", "1"),
        ("i", "2147483648"),
        ("i", "1.5"),
        ("i", "1_000"),
        ("i", "x"),
        ("l", "9223372036854775808"),
        ("f", "1e39"),
        ("d", "1_0"),
        ("d", "-1e400"),
        ("n", "3.255"),
        ("n", "-7E-77"),
        ("n", "1E-5000000"),
        ("n", "1E5000000"),
        ("n", "123456789.00"),
        ("n", "NaN"),
        ("day", "02/01/2026"),
        ("ts", "yesterday"),
    ],
)
def test_invalid_csv_values_are_reported_with_their_line(
    soup: tureen.Soup, tmp_path: Path, column: str, text: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f'{column},s\n,"two\nlines"\n\n{text},x\n')
    soup.create_table("t", ALL, [{"s": "before"}])
    with pytest.raises(InvalidRows, match=rf"'bad.csv' line 5: column '{column}' is .*, not '{text}'"):
        soup.replace_table("t", path)
    assert [row["s"] for row in soup.table("t").to_pylist()] == ["before"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"s,zz\n", "line 1: unknown column 'zz'"),
        (b"s,i,S\n", "line 1: duplicate column 'S'"),
        (b"s,i\nx,1\ny,2,3\n", "line 3: 3 fields, where the header has 2"),
        (b's,i\n"x\ny",1\n\ny\n', "line 5: 1 fields, where the header has 2"),
        (b's,i\n"x,1\ny,2\n', "a quote is not closed"),
        (b"s,i\n\xff,1\n", "UTF-8"),
    ],
)
def test_invalid_csv_files(soup: tureen.Soup, tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "bad.csv").write_bytes(content)
    with pytest.raises(InvalidRows, match=says):
        soup.create_table("t", ALL, tmp_path / "bad.csv")
    assert soup.tables() == []
