"""Rows that are the last with their key punctuate it, as the plain twin does with a punctuation after each."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed.gate import Gate
from tureen.closed.rules import LastRows, Rules
from tureen.closed.section import PlacedPattern, decode_section, encode_section
from tureen.punctuation import Punctuation
from tureen.schema import Schema
from tureen.stems.intake import to_batch
from tureen.stems.punctuation_binding import bind_punctuation
from tureen.testing.punctuations import PunctuatedStream

SCHEMA = Schema.parse("k INT, s STRING, closed BOOLEAN")
ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from([None, 1, 2]),
        "s": st.sampled_from([None, "a", "b"]),
        "closed": st.sampled_from([None, False, False, True]),
    }
)
ITEMS = st.lists(ROW | ROW | st.sampled_from([1, 2]).map(lambda k: Punctuation(k=k)), max_size=8)


ALL_ROWS = [{"k": k, "s": s, "closed": False} for k in (None, 1, 2) for s in (None, "a", "b")]


@given(st.lists(ITEMS, max_size=4), st.sampled_from([("k",), ("s", "k")]))
@example_settings(60)
def test_gates_decide_as_with_punctuations(pushes: list[list[Any]], key: tuple[str, ...]) -> None:
    rules = Rules(last_rows=LastRows("closed", key))
    gate, rebuilt, twin = Gate(SCHEMA, rules), Gate(SCHEMA, rules), PunctuatedStream()
    for items in pushes:
        known = len(twin.accepted)
        for item in items:
            twin.push([item])
            if isinstance(item, dict) and item["closed"] and None not in [item[name] for name in key]:
                twin.push([Punctuation(**{name: item[name] for name in key})])
        rows = [item for item in items if isinstance(item, dict)]
        placed = [
            PlacedPattern(sum(isinstance(each, dict) for each in items[:index]), bind_punctuation(SCHEMA, item))
            for index, item in enumerate(items)
            if isinstance(item, Punctuation)
        ]
        verdict = gate.pass_through(to_batch(SCHEMA, rows), placed, 0)
        assert verdict.accepted.to_pylist() == twin.accepted[known:]
        assert verdict.section.rejected_rows == len(rows) - verdict.accepted.num_rows
        # From the log, a gate is rebuilt without deciding again.
        rebuilt.restore(verdict.accepted, decode_section(encode_section(verdict.section)), 0)
    expected = [row for row in ALL_ROWS if twin.would_accept(row)]
    for each in (gate, rebuilt):
        assert each.pass_through(to_batch(SCHEMA, ALL_ROWS), (), 0).accepted.to_pylist() == expected
