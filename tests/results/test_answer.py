"""Answers at a prompt, in a notebook, and in other libraries."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import duckdb
import polars
import pyarrow as pa
import pytest

from tureen.errors import TureenError
from tureen.results.answer import Answer, Bounds
from tureen.results.answer_text import SHOWN_ROWS

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def answer(table: pa.Table, *, complete: bool = True, note: str | None = None) -> Answer:
    return Answer(table, Bounds(None, NOW), "1.0", complete, note)


TRADES = pa.table({"sym": ["IBM", None], "price": [120.5, 99.0], "ts": pa.array([NOW, NOW], pa.timestamp("us", "UTC"))})


def test_a_prompt_shows_the_rows() -> None:
    assert repr(answer(TRADES)) == (
        "sym   price  ts\n"
        "IBM   120.5  2026-01-31 12:00:00\n"
        "NULL   99.0  2026-01-31 12:00:00\n"
        "(2 rows; window from … to 2026-01-31 12:00:00)"
    )


def test_a_prompt_tells_what_is_missing() -> None:
    many = answer(pa.table({"n": range(10_000)}), complete=False)
    assert len(repr(many).splitlines()) == SHOWN_ROWS + 2
    assert "(10,000 rows, the first 20 are shown; window from … to" in repr(many)
    assert repr(many).endswith("which begins before what is retained)")
    assert repr(answer(TRADES, complete=False, note="east is away")).endswith("; tuples may be missing: east is away)")


@pytest.mark.parametrize("names", [[], ["a"], ["a", "a"]])
def test_odd_answers_are_shown(names: list[str]) -> None:
    empty = pa.Table.from_arrays([pa.array([], pa.int32()) for _ in names], names)
    assert "(0 rows" in repr(answer(empty))
    assert "0 rows" in answer(empty)._repr_html_()


def test_values_are_cut_and_escaped() -> None:
    hostile = answer(pa.table({"<b>": ["x" * 1000, "<script>\nalert(1)"]}))
    assert max(map(len, repr(hostile).splitlines())) < 60
    html = hostile._repr_html_()
    assert "<script>" not in html
    assert "<th>&lt;b&gt;</th>" in html


def test_other_libraries_read_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    trades = answer(TRADES)
    assert pa.table(trades) == TRADES
    assert polars.DataFrame(trades)["sym"].to_list() == trades.to_polars()["sym"].to_list() == ["IBM", None]
    assert trades.to_pandas()["price"].tolist() == [120.5, 99.0]
    assert duckdb.sql("SELECT sum(price) FROM trades").fetchall() == [(219.5,)]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(TureenError, match="polars is not installed"):
        trades.to_polars()
