"""Templates: rows as XML, and templates as JSON."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tureen.results.answer import Answer, Bounds, Change
from tureen.xml_template import (
    METADATA_KEY,
    Choice,
    Constructor,
    Listing,
    Literal,
    Part,
    Rows,
    Subtree,
    Value,
    decode_template,
    encode_template,
    render_row,
    tree_of,
    value_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (1, "1"),
        (True, "true"),
        (1.0, "1"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (9.5e-7, "9.5E-7"),
        (999999.5, "999999.5"),
        (1e6, "1.0E6"),
        (-1.25e300, "-1.25E300"),
        (math.nan, "NaN"),
        (-math.inf, "-INF"),
        (Decimal("1.50"), "1.5"),
        (Decimal("1E+3"), "1000"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC), "2026-01-02T03:04:05.6Z"),
        ("a<b>&\r\x00", "a&lt;b&gt;&amp;&#13;\ufffd"),
        ([1.0, 2.5], "1 2.5"),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert value_text(value) == text


ROW = {"all": [True, True], "last": [False, True], "a": 1, "n": None, "l": [1, 2], "m": [3, 4], "yes": True, "s": "x"}


@pytest.mark.parametrize(
    ("part", "xml"),
    [
        (Constructor("e"), "<e/>"),
        (Constructor("e", (Value("n"),)), "<e/>"),
        (Constructor("e", (Literal("a&b"), Value("a"))), "<e>a&amp;b1</e>"),
        (Listing((Value("a"), Value("s"))), "1 x"),
        (Listing((Value("a"), Value("n"), Value("s"))), "1 x"),
        (Listing((Value("a"), Subtree("t", "s"), Value("s"))), "1<t>x</t>x"),
        (Choice("yes", Value("a"), Value("s")), "1"),
        (Choice("n", Value("a"), Value("s")), "x"),
        (Subtree("t", "n"), ""),
        (Subtree("t", "n", always=True), "<t/>"),
        (Subtree("t", "l"), "<t>1</t><t>2</t>"),
        (tree_of("t", [("p/q", "a"), ("p/@k", "s"), ("z", "n")]), '<t><p k="x"><q>1</q></p></t>'),
        (tree_of("t", [("count(*)", "a")]), '<t><column name="count(*)">1</column></t>'),
        (tree_of("t", [("v[1]", "a"), ("v[last()]", "s")]), "<t><v>1</v><v>x</v></t>"),
        (
            tree_of("t", [("x", "l"), ("y", "m")], together=(("l", "all"), ("m", "last"))),
            "<t><x>1</x></t><t><x>2</x><y>4</y></t>",
        ),
    ],
)
def test_parts(part: Part, xml: str) -> None:
    assert render_row(part, ROW) == xml
    assert decode_template(encode_template(part)) == part


def test_answers_and_changes() -> None:
    table = pa.table({"a/b": [1, None], "c": ["x", "y"]})
    answer = Answer(table, Bounds(None, None), "0", complete=True)
    assert answer.xml == "<rows><row><a><b>1</b></a><c>x</c></row><row><c>y</c></row></rows>"
    assert Change("q", {"a/b": 1}, "0").xml == "<row><a><b>1</b></a></row>"
    template = Constructor("all", (Rows(Constructor("each", (Value("c"),))),))
    stored = table.replace_schema_metadata({METADATA_KEY: encode_template(template)})
    assert Answer(stored, Bounds(None, None), "0", complete=True).xml == "<all><each>x</each><each>y</each></all>"
    assert Change("q", {"c": "z"}, "0", template=template).xml == "<each>z</each>"
