"""Invalid arguments are rejected before anything is done."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tureen
from tureen.arguments import check_name, check_source, check_text
from tureen.errors import InvalidSchema, QueryFailed, TureenError, UnknownQuery, WaitTimeout
from tureen.evaluation import duck
from tureen.matching import opaque
from tureen.pot.catalog import Catalog
from tureen.pot.members import drop_member
from tureen.pot.streams import create_stream
from tureen.predicate import Opaque
from tureen.schema import Schema
from tureen.soup.served_soup import ServedSoup
from tureen.soup.standing import Following
from tureen.window import Now, to_micros


@pytest.mark.parametrize("bad", ["", "  ", "a\0b", "x" * 256, "\ud800", 5, None, b"x", "0123456789abcdef" * 2])
def test_names(bad: Any) -> None:
    with pytest.raises(TureenError):
        check_name(bad, "query")
    assert check_name("my query", "query") == "my query"


@pytest.mark.parametrize("bad", [-1, 20, 1.5, "10", True, None])
def test_priorities(bad: Any, tmp_path: Path) -> None:
    with pytest.raises(TureenError, match="nice must be an integer from 0 to 19, got"):
        tureen.open(tmp_path, nice=bad)
    tureen.open(tmp_path, nice=19).close()


def test_invalid_names_are_quoted_in_errors() -> None:
    with pytest.raises(TureenError, match=r"^'x\\n' is not a valid name of a query"):
        check_name("x\n", "query")


@pytest.mark.parametrize("bad", [5, b"x", None, "\udfff", "x" * (1 << 21)])
def test_texts(bad: Any) -> None:
    with pytest.raises(TureenError):
        check_text(bad, "a key")


@pytest.mark.parametrize(
    "bad", ["rate", {}, {"format": 5}, {"format": "rate", "options": 5}, {"format": "x", "o": object()}]
)
def test_sources(bad: Any) -> None:
    with pytest.raises(InvalidSchema):
        check_source(bad)
    check_source({"format": "rate", "options": {"rowsPerSecond": 1}})


@pytest.mark.parametrize("months", [-12 * 3000, 12 * 9000])
def test_bounds_beyond_the_calendar_are_open(months: int) -> None:
    now = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
    assert (Now(months=months).at(now) < now) == (months < 0)


def test_fatal_duckdb_errors_do_not_affect_later_expressions() -> None:
    """Some errors invalidate a DuckDB connection; later expressions must get a new one."""
    broken = pa.record_batch([pa.array([b"\xff\xfe"]).view(pa.string())], names=["s"])
    whole = pa.record_batch([pa.array(["ok"])], names=["s"])
    factor = Opaque("upper(\"s\") = 'OK'", ("s",))
    before = duck._evaluator()
    with pytest.raises(QueryFailed):
        opaque.evaluate(factor, broken)
    assert duck._evaluator() is not before
    assert opaque.evaluate(factor, whole).to_pylist() == [True]


@pytest.fixture
def soup(tmp_path: Path) -> Iterator[tureen.Soup]:
    """A pot with a stream and a template, without Spark."""
    with tureen.open(tmp_path / "pot") as opened:
        opened.create_table("t", "a INT")
        catalog = Catalog(opened.path)
        with catalog.write() as tx:
            create_stream(tx, "s", Schema.parse("a INT, ts TIMESTAMP", "ts"), clock="wall", retain=None, source=None)
        catalog.close()
        opened.register_many("SELECT a FROM s WHERE a > :x", [{"x": 1}], name="many")
        yield opened
        assert opened.status()["engine"] == "none", "arguments are checked before the engine starts"


LONE_SURROGATE = "\ud800"


@pytest.mark.parametrize("bad", [LONE_SURROGATE, f"many.{LONE_SURROGATE}", None, [], 5, b"x", float("nan")])
def test_invalid_names_are_rejected_by_all_methods(soup: tureen.Soup, bad: Any) -> None:
    calls = ServedSoup.of(soup).calls
    for call in (
        calls.unregister,
        calls.unregister_template,
        soup.drop_stream,
        soup.drop_table,
        soup.table,
        soup.rejected,
        calls.explain,
        calls.registered,
        soup.query,
        soup.template,
        calls.template_numbers,
        lambda name: calls.changes(name, Following()),
        lambda name: calls.answer(name, None, None, None),
        lambda name: calls.why(name, "TRUE", None, 1),
        lambda name: calls.template_changes(name, Following()),
        lambda name: soup.replace_table(name, []),
    ):
        with pytest.raises(TureenError):
            call(bad)


@pytest.mark.parametrize("number", ["x", "²", "1", "-1", "", "1" * 5000])
def test_invalid_member_numbers(soup: tureen.Soup, number: str) -> None:
    handle = f"{soup.template('many').id}.{number}"
    calls = ServedSoup.of(soup).calls
    for call in (soup.query, calls.explain, calls.registered):
        with pytest.raises(TureenError):
            call(handle)
    with soup._pot.catalog.write() as tx, pytest.raises(UnknownQuery):
        drop_member(tx, soup.path, handle)


@pytest.mark.parametrize("bad", ["x", "", "1.2", "1" * 5000, "9" * 19, LONE_SURROGATE, None])
def test_invalid_positions(soup: tureen.Soup, bad: Any) -> None:
    with pytest.raises(TureenError):
        soup.wait(bad, timeout=0)


def test_nat_is_not_a_valid_now(soup: tureen.Soup) -> None:
    query = soup.template("many")[0]
    with pytest.raises(TureenError, match="now must be a datetime, got NaT"):
        query.invoke(now=pd.NaT)
    with pytest.raises(TureenError, match="now must be a datetime, got NaT"):
        soup.answer_once("SELECT a FROM s", now=pd.NaT)
    assert len(query.invoke(now=pd.Timestamp("2026-01-01"))) == 0


@pytest.mark.parametrize("bad", ["x", "1", [], b"1", float("nan"), 10**400])
def test_invalid_timeouts(soup: tureen.Soup, bad: Any) -> None:
    template = soup.template("many")
    query = template[0]
    at = query.invoke().position
    for call in (
        lambda: query.invoke(timeout=bad),
        lambda: query.invoke(wait_for=at, timeout=bad),
        lambda: soup.wait(at, timeout=bad),
        lambda: query.changes(timeout=bad),
        lambda: template.changes(timeout=bad),
        lambda: soup.start(wait=bad),
    ):
        with pytest.raises(TureenError, match="timeout"):
            call()


def test_negative_timeouts(soup: tureen.Soup) -> None:
    query = soup.template("many")[0]
    assert list(query.changes(timeout=-1)) == []
    with tureen.open(soup.path, mode="read") as reading, pytest.raises(WaitTimeout):
        reading.wait("999999999999999", timeout=-1)


@pytest.mark.parametrize("bad", [None, 5, b"x", LONE_SURROGATE, "a\0b"])
def test_invalid_paths(bad: Any) -> None:
    with pytest.raises(TureenError, match="path"):
        tureen.open(bad)
