"""Rows that carry punctuations."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tureen.closed.rules import PatternRows, Rules
from tureen.pot.runs import rejected_rows
from tureen.punctuation import Punctuation, Range
from tureen.schema import Schema
from tureen.stems.pattern_rows import read_patterns
from tureen.stems.punctuation_binding import bind_punctuation
from tureen.testing.manual_engine import ManualEngine

SCHEMA = Schema.parse("item INT, name STRING, over STRING")


def test_patterns_stand_after_their_rows() -> None:
    texts = [
        '{"item": 180}',
        None,
        '{"item": [1, 2], "name": "a"}',
        '{"item": {"low": 3, "high": 5, "high_open": true}}',
    ]
    expected = [
        (1, Punctuation(item=180)),
        (3, Punctuation(item=[1, 2], name="a")),
        (4, Punctuation(item=Range(low=3, high=5, high_open=True))),
    ]
    patterns = read_patterns(SCHEMA, "column 'over'", pa.array(texts))
    assert [tuple(each) for each in patterns.placed] == [(at, bind_punctuation(SCHEMA, each)) for at, each in expected]
    assert patterns.refused == {}
    several = read_patterns(SCHEMA, "header 'over'", pa.array([[], None, texts[:3], ['{"item": 1}', "x"]]))
    assert [each.at for each in several.placed] == [3, 3]
    assert list(several.refused) == [3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ("item = 1", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("180", "is not valid: a punctuation must be a mapping"),
        ("null", "is not valid: a punctuation must be a mapping"),
        ("{}", "is not valid: a punctuation needs a pattern"),
        ('{"thing": 1}', "is not valid: unknown column 'thing'"),
        ('{"item": null}', "is not valid: column 'item': NULL cannot be punctuated"),
        ('{"item": []}', "is not valid: column 'item': the list of a punctuation is empty"),
        ('{"item": "many"}', "is not valid: "),
        ('{"item": 1e300}', "is not valid: "),
        ('{"item": NaN}', "is not valid: "),
        ('{"item": [[1]]}', "is not valid: "),
        ('{"item": {"low": 5, "high": 4}}', "is not valid: column 'item': the range from 5 to 4 is empty"),
        ('{"item": {"lowest": 5}}', "is not valid: column 'item': a range has no 'lowest'"),
        ('{"item": {"low": {"low": 1}}}', "is not valid: "),
    ],
)
def test_rows_with_other_texts_are_refused(text: str, reason: str) -> None:
    patterns = read_patterns(SCHEMA, "column 'over'", pa.array([None, text]))
    assert patterns.placed == ()
    assert patterns.refused[1].startswith(f"the pattern in column 'over' {reason}")


def test_pushed_rows_carry_punctuations(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    engine.create_stream("s", "item INT, over STRING", rules=Rules(unique=("item",), pattern_rows=PatternRows("over")))

    def push(*rows: tuple[int, str | None]) -> tuple[int, int]:
        pushed = engine.append("s", [{"item": item, "over": over} for item, over in rows])
        return pushed.added, pushed.rejected

    # A row that is not valid neither closes anything nor takes its unique key.
    assert push((1, '{"item": 2}'), (2, None), (3, "?"), (3, None)) == (2, 2)
    engine.take("s")
    engine.inbox.trim()
    engine.close()
    engine = ManualEngine(tmp_path)
    assert push((2, None), (3, None), (4, '{"item": {"low": 10}}'), (11, None)) == (1, 3)
    assert [row["item"] for row in engine.invoker.answer_once("SELECT item FROM s ORDER BY item")] == [1, 3, 4]
    with engine.catalog.read() as tx:
        reasons = [each["reason"].partition(",")[0] for each in rejected_rows(tx, 1)]
    assert reasons == ["closed by the punctuation item = 2", "the pattern in column 'over' is not JSON"]
    engine.close()
