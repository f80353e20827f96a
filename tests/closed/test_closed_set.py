"""Closed sets: which punctuations close nothing new, against tuples that are compared one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed.closed_set import ClosedSet
from tureen.punctuation import Punctuation, Range
from tureen.schema import Schema
from tureen.stems.punctuation_binding import bind_punctuation
from tureen.testing.punctuations import matches

SCHEMA = Schema.parse("k INT, word STRING, big DECIMAL(20, 0), ts TIMESTAMP")
VALUES: dict[str, list[Any]] = {
    "k": [0, 1, 2, 3],
    "word": ["", "a", "b", "c"],
    "big": [Decimal(10**19), Decimal(10**19 + 1), Decimal(-5)],
    "ts": [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second) for second in range(4)],
}


def ranges(values: list[Any]) -> st.SearchStrategy[Range]:
    ordered = sorted(values)
    both = st.tuples(st.sampled_from(ordered[:2]), st.sampled_from(ordered[2:]))
    ends = both | st.tuples(st.none(), st.sampled_from(ordered)) | st.tuples(st.sampled_from(ordered), st.none())
    return st.builds(lambda pair: Range(*pair), ends)


def parts(name: str) -> st.SearchStrategy[Any]:
    values = VALUES[name]
    return st.sampled_from(values) | st.lists(st.sampled_from(values), min_size=1, max_size=3) | ranges(values)


PUNCTUATIONS = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: parts(name) for name in names}).map(Punctuation.of)
)
TUPLES = [
    {"k": k, "word": word, "big": big, "ts": ts}
    for k in [*VALUES["k"], 9]
    for word in [*VALUES["word"], "aa", "z"]
    for big in [*VALUES["big"], Decimal(7), Decimal(10**19 + 9)]
    for ts in [*VALUES["ts"], VALUES["ts"][0] + timedelta(seconds=99), VALUES["ts"][1] + timedelta(milliseconds=5)]
]


@example([Punctuation(k=Range(high=2)), Punctuation(k=[0, 1]), Punctuation(k=[1, 3])])
@example([Punctuation(word=Range(low="a")), Punctuation(word=Range("b", "c")), Punctuation(word="b")])
@given(st.lists(PUNCTUATIONS, min_size=2, max_size=6))
@example_settings(30)
def test_punctuations_that_close_nothing_new(punctuations: list[Punctuation]) -> None:
    closed, earlier = ClosedSet(SCHEMA), list[Punctuation]()
    for punctuation in punctuations:
        pattern = bind_punctuation(SCHEMA, punctuation)
        (closes_nothing,) = closed.closes_all([pattern])
        if closes_nothing:
            inside = [row for row in TUPLES if matches(punctuation, row)]
            assert all(any(matches(each, row) for each in earlier) for row in inside)
        closed.add(pattern, 0)
        earlier.append(punctuation)
        patterns = [bind_punctuation(SCHEMA, each) for each in earlier]
        assert closed.closes_all(patterns) == [True] * len(patterns)
