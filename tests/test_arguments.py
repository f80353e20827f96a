"""What callers give wrongly is refused, alone and before anything is done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tureen.arguments import check_name, check_source, check_text
from tureen.errors import InvalidSchema, QueryFailed, TureenError
from tureen.matching import duck, opaque
from tureen.window import Now, to_micros


@pytest.mark.parametrize("bad", ["", "  ", "a\0b", "x" * 256, "\ud800", 5, None, b"x", "0123456789abcdef" * 2])
def test_names(bad: Any) -> None:
    with pytest.raises(TureenError):
        check_name(bad, "query")
    assert check_name("my query", "query") == "my query"


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
def test_bounds_beyond_the_calendar_are_as_good_as_open(months: int) -> None:
    now = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
    assert (Now(months=months).at(now) < now) == (months < 0)


def test_an_error_that_ends_duckdb_ends_that_expression_alone() -> None:
    """DuckDB gives up for good on some errors; the next expression must not notice."""
    broken = pa.record_batch([pa.array([b"\xff\xfe"]).view(pa.string())], names=["s"])
    whole = pa.record_batch([pa.array(["ok"])], names=["s"])
    before = duck._connection()
    with pytest.raises(QueryFailed):
        opaque.evaluate("upper(\"s\") = 'OK'", broken)
    assert duck._connection() is not before
    assert opaque.evaluate("upper(\"s\") = 'OK'", whole).to_pylist() == [True]
