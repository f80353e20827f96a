"""What people read of an expression is SQL again, over the same columns."""

from __future__ import annotations

import pytest

from tests.language.test_functions import LINES, bound
from tureen.language.duckdb.render import render
from tureen.language.expression_text import expression_text, with_names
from tureen.language.spelling import spell_name
from tureen.language.tree import columns_in


def text_of(text: str) -> str:
    return with_names(expression_text(bound(text)), spell_name)


def test_every_expression_is_written_so_that_it_means_the_same() -> None:
    different = []
    for line in LINES:
        expression = bound(line.text)
        again = bound(text_of(line.text))
        assert columns_in(again) == columns_in(expression), line.text
        if render(again) != render(expression):
            different.append(line.text)
    # A constant is written without its type: 5, not 5Y.
    assert len(different) < len(LINES) // 10, different


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("upper(name) = 'it''s'", r"upper(name) = 'it\'s'"),
        ("NOT (i + 1 > 2 * (j - 3))", "NOT ((i + 1) > (2 * (j - 3)))"),
        ("at - INTERVAL '1' HOUR > ts", "(at - INTERVAL '1' HOUR) > ts"),
        ("at + INTERVAL 2 MONTHS", "at + INTERVAL '2' MONTH"),
        ("extract(HOUR FROM at) IN (1, 2)", "extract(HOUR FROM at) IN (1, 2)"),
        ("CASE WHEN i IS NULL THEN 1 ELSE j END", "CASE WHEN i IS NULL THEN 1 ELSE j END"),
        ("CAST(d AS STRING) LIKE '1%'", "CAST(d AS STRING) LIKE '1%'"),
        ("i ^ j", "i ^ j"),
    ],
)
def test_expressions_are_written_as_in_a_query(text: str, shown: str) -> None:
    assert text_of(text) == shown
