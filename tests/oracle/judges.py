"""Comparisons of the oracle with a judge on whole queries: the table, the oracle over it, and equality of answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tureen.schema import Schema
from tureen.testing import Oracle, comparable
from tureen.testing.judge import RANK
from tureen.testing.step_strategies import NOW
from tureen.window import to_micros

CLOSE = 1e-9
"""The tolerance for sums of DOUBLE, whose order of addition is undefined."""


def oracle_with(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> Oracle:
    """An oracle with the rows in stream `s`, at a constant time."""
    oracle = Oracle(clock=lambda: to_micros(NOW))
    oracle.create_stream("s", schema)
    oracle.push("s", rows)
    return oracle


def ranked_rows(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The judge's table: the rows in order of time and then arrival, with their number."""
    ordered = sorted(rows, key=lambda row: to_micros(row[str(schema.time)]))
    return [{**row, RANK: number} for number, row in enumerate(ordered)]


def same_rows(ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]], ordered: bool) -> bool:
    """Whether two answers have the same values; column names are ignored."""
    our_rows, their_rows = [list(row.values()) for row in ours], [list(row.values()) for row in theirs]
    if not ordered:
        our_rows, their_rows = sorted(our_rows, key=_sort_key), sorted(their_rows, key=_sort_key)
    return len(our_rows) == len(their_rows) and all(
        len(left) == len(right) and all(map(same_value, left, right))
        for left, right in zip(our_rows, their_rows, strict=True)
    )


def same_value(left: Any, right: Any) -> bool:
    """Whether two values are equal; floats within the tolerance, and -0.0 equals 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=CLOSE, abs_tol=CLOSE)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return comparable([{"": left}]) == comparable([{"": right}])


def _sort_key(row: list[Any]) -> str:
    """A text that is the same for equal rows; floats are rounded, so that near ones sort equally."""
    return repr([f"{value + 0.0:.6g}" if isinstance(value, float) else comparable([{"": value}]) for value in row])
