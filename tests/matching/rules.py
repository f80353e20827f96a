"""Random alert rules: clauses that a key reaches, with further factors of all kinds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tureen.predicate import Clause, Interval, IsNull, Predicate, Within

from .material import SCALES, VALUES, random_derived, random_raising, random_within
from .twin import Row, key


def equality(rng: random.Random, rows: Sequence[Row], name: str) -> Within:
    """An equality with a value that occurs in the column, or may."""
    occurring = [row[name] for row in rows[:200] if row[name] is not None]
    value = key(rng.choice(occurring if occurring and rng.random() < 0.8 else VALUES[name]), SCALES[name])
    return Within(name, (Interval(value, value),))


def residual(rng: random.Random, rows: Sequence[Row], name: str, side: str) -> Within:
    """An interval that is bounded on one side, mostly the given side."""
    constant = equality(rng, rows, name).intervals[0].low
    if rng.random() < 0.1:
        return random_within(rng, rows, name)
    low = Interval(low=constant, low_open=rng.random() < 0.5)
    high = Interval(high=constant, high_open=rng.random() < 0.5)
    return Within(name, ((low if (rng.random() < 0.8) == (side == "low") else high),))


def _more(rng: random.Random, rows: Sequence[Row], keys: Sequence[str]) -> Predicate:
    """A factor of any other kind, or a second key."""
    match rng.randrange(5):
        case 0:
            return equality(rng, rows, rng.choice(keys))
        case 1:
            return random_within(rng, rows)
        case 2:
            return IsNull(rng.choice(list(VALUES)))
        case 3:
            return random_derived(rng, rows)
        case _:
            return random_raising(rng)


def random_rules(rng: random.Random, rows: Sequence[Row], count: int) -> list[Clause]:
    """Rules whose keys are those of one or two columns, with one column for most residuals."""
    keys = rng.sample(list(VALUES), rng.choice([1, 1, 2]))
    measure, side = rng.choice(["i", "big", "f", "d", "ts", "money", "cost", "s", "wide"]), rng.choice(["low", "high"])
    rules: list[Clause] = []
    for _ in range(count):
        factors: list[Predicate] = [equality(rng, rows, rng.choice(keys))]
        if rng.random() < 0.7:
            factors.append(residual(rng, rows, measure, side))
        if rng.random() < 0.2:
            factors.append(_more(rng, rows, keys))
        rng.shuffle(factors)
        rules.append(tuple(factors))
    return rules
