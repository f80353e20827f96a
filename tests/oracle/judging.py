"""What the second opinions on whole queries share: one table, the oracle over it, and how two answers compare."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from tureen.schema import Schema
from tureen.testing import Oracle, comparable
from tureen.testing.judged import RANK
from tureen.testing.stepped import NOW
from tureen.window import to_micros

CLOSE = 1e-9
"""How far a sum of DOUBLE may be from another, for the order of adding is nobody's promise."""


def asking(examples: int) -> settings:
    """Settings for so many questions: the same in every run, or new ones with `TUREEN_EXPLORE`."""
    return settings(
        max_examples=examples,
        phases=(Phase.generate,),
        deadline=None,
        database=None,
        derandomize="TUREEN_EXPLORE" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )


def told(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> Oracle:
    """An oracle over the stream `s`, whose clock stands."""
    oracle = Oracle(clock=lambda: to_micros(NOW))
    oracle.create_stream("s", schema)
    oracle.push("s", rows)
    return oracle


def ranked(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The judge's table: the rows in order of time and then arrival, and numbered."""
    ordered = sorted(rows, key=lambda row: to_micros(row[str(schema.time)]))
    return [{**row, RANK: number} for number, row in enumerate(ordered)]


def same(ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]], ordered: bool) -> bool:
    """Whether two answers have the same values, whatever their columns are called."""
    one, other = [list(row.values()) for row in ours], [list(row.values()) for row in theirs]
    if not ordered:
        one, other = sorted(one, key=_look), sorted(other, key=_look)
    return len(one) == len(other) and all(
        len(left) == len(right) and all(map(alike, left, right)) for left, right in zip(one, other, strict=True)
    )


def alike(left: Any, right: Any) -> bool:
    """Whether two values are the same, or two floats nearly so; the sign of a zero does not count."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=CLOSE, abs_tol=CLOSE)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike, left, right))
    return comparable([{"": left}]) == comparable([{"": right}])


def _look(row: list[Any]) -> str:
    """A text that is the same for rows that are; floats are rounded, so that near ones come at the same place."""
    return repr([f"{value + 0.0:.6g}" if isinstance(value, float) else comparable([{"": value}]) for value in row])
