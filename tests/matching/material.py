"""Random blocks and clauses over all types, with corner cases: ties, extremes, NaN, -0.0, wide DECIMALs."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tureen.predicate import AllOf, AnyOf, Clause, Compare, Interval, IsNull, Like, Opaque, Predicate, Within
from tureen.schema import Schema

from .twin import COLUMNS, Row, key, order_key

SCHEMA = Schema.parse(
    "flag BOOLEAN, i INT, j INT, big BIGINT, f FLOAT, d DOUBLE, s STRING, t STRING, day DATE, ts TIMESTAMP, "
    "money DECIMAL(9,2), cost DECIMAL(18,2), wide DECIMAL(38,4)",
    time="ts",
)
SCALES = {column.name: column.type.scale for column in SCHEMA.columns}

_NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
_FLOATS = [float("nan"), _NEGATIVE_NAN, float("inf"), float("-inf"), -0.0, 0.0, 1.5, -1.5, 2.0, 0.25]
_INTS = [-(2**31), 2**31 - 1, *range(-4, 5)]
_TEXTS = ["", "a", "ab", "a\0", "abc", "b", "Z", "é", "\U0001d11e", "a\nb", "%", "a_c", "\\", "\uffff", "user-000017"]

VALUES: dict[str, list[Any]] = {
    "flag": [True, False],
    "i": _INTS,
    "j": _INTS,
    "big": [-(2**63), 2**63 - 1, 2**40, -(2**40), *range(-3, 4)],
    "f": _FLOATS,
    "d": [*_FLOATS, 5e-324, -5e-324, 1e308, 0.1],
    "s": _TEXTS,
    "t": _TEXTS,
    "day": [date(1960, 2, 29), date(1970, 1, 1), date(2024, 2, 29), date(2024, 3, 1)],
    "ts": [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2024, 1, 1, tzinfo=UTC)],
    "money": [Decimal(x).scaleb(-2) for x in (-999_999_999, -1, 0, 1, 250, 999_999_999)],
    "cost": [Decimal(x).scaleb(-2) for x in (-(10**18) + 1, -1, 0, 7, 10**18 - 1)],
    "wide": [
        Decimal((x < 0, tuple(map(int, str(abs(x)))), -4))
        for x in (0, 5, -5, 2**64, -(2**64), 2**64 + 1, 2**64 - 1, 2**63, -(2**63), 10**38 - 1, 1 - 10**38)
    ],
}


def random_rows(rng: random.Random, count: int) -> list[Row]:
    """Rows whose columns have few or many distinct values, and no, some, or only NULLs."""
    nulls = {name: rng.choice([0, 0, 0.2, 1 if rng.random() < 0.2 else 0.5]) for name in VALUES}
    pools = {name: rng.sample(pool, rng.randint(1, len(pool))) for name, pool in VALUES.items()}
    if rng.random() < 0.5:
        pools["i"] = [rng.randint(-1000, 1000) for _ in range(count + 1)]
        pools["d"] = [rng.gauss(0, 1) for _ in range(count + 1)]
        pools["s"] = [f"k{rng.randint(0, 500)}" for _ in range(count + 1)]
    return [
        {name: None if rng.random() < nulls[name] else rng.choice(pool) for name, pool in pools.items()}
        for _ in range(count)
    ]


def batch_of(rows: Sequence[Row], *, padding: int = 0) -> pa.RecordBatch:
    """The rows as a batch; with padding it is a slice of a longer batch, so that offsets are not zero."""
    arrays = []
    for column in SCHEMA.columns:
        values = [rows[0][column.name]] * padding + [row[column.name] for row in rows] if rows else []
        arrays.append(pa.array(values, column.type.arrow))
    return pa.RecordBatch.from_arrays(arrays, names=SCHEMA.names).slice(padding if rows else 0)


def _interval_keys(rng: random.Random, name: str, rows: Sequence[Row], count: int) -> list[Any]:
    pool = [value for value in VALUES[name] if value is not None]
    occurring = [row[name] for row in rows[:20] if row[name] is not None]
    by_order = {
        order_key(value_key): value_key
        for value_key in (key(rng.choice(pool + occurring), SCALES[name]) for _ in range(count))
    }
    return [by_order[order] for order in sorted(by_order)]


def random_within(rng: random.Random, rows: Sequence[Row], name: str | None = None) -> Within:
    """A factor of one, several or no intervals, or IS NOT NULL."""
    name = name or rng.choice(list(VALUES))
    if rng.random() < 0.05:
        return Within(name, rng.choice([(), (Interval(),)]))
    keys = _interval_keys(rng, name, rows, rng.choice([1, 1, 1, 2, 2, 5]))
    if len(keys) == 1 and rng.random() < 0.7:
        constant = keys[0]
        return Within(
            name,
            rng.choice(
                [
                    (Interval(constant, constant),),
                    (Interval(low=constant),),
                    (Interval(low=constant, low_open=True),),
                    (Interval(high=constant),),
                    (Interval(high=constant, high_open=True),),
                    (Interval(high=constant, high_open=True), Interval(low=constant, low_open=True)),
                    (Interval(constant, constant, low_open=True),),
                    (Interval(constant, constant, low_open=True, high_open=True),),
                ]
            ),
        )
    intervals = []
    while keys:
        low = keys.pop(0)
        high = keys.pop(0) if keys and rng.random() < 0.6 else low
        if high is low:
            intervals.append(Interval(low, low))
        else:
            intervals.append(Interval(low, high, rng.random() < 0.5, rng.random() < 0.5))
    return Within(name, tuple(intervals))


def random_derived(rng: random.Random, rows: Sequence[Row]) -> Predicate:
    """A factor that is not a range and never raises."""
    kind = rng.randrange(5)
    if kind == 0:
        pattern = rng.choice(["a%", "%b", "_", "a_", "%", "", "a\\_c", "\\%", "\\\\", "a%b", "__", "k1_"])
        return Like(rng.choice("st"), pattern, negated=rng.random() < 0.3)
    op = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    if kind == 1:
        pairs = [("i", "j", "int"), ("i", "big", "int"), ("f", "d", "double"), ("i", "d", "double")]
        pairs += [("money", "d", "double"), ("wide", "d", "double"), ("s", "t", "string")]
        pairs += [("money", "cost", "decimal"), ("wide", "cost", "decimal"), ("wide", "i", "decimal")]
        left, right, domain = rng.choice(pairs)
        offset = rng.choice([0, 1.5, -2.0]) if domain == "double" else 0
        return Compare(left, op, right, offset, domain)
    if kind == 2:
        sql = rng.choice(["i % 2 = 0", "s || 'x' = 'ax' OR flag"])
        return Opaque(sql, COLUMNS[sql])
    parts = tuple(random_within(rng, rows) for _ in range(rng.randint(0, 3)))
    if kind == 3:
        return AnyOf((*parts, IsNull(rng.choice(list(VALUES)))))
    return AnyOf((AllOf(parts), Like("s", "a%")))


def random_raising(rng: random.Random) -> Predicate:
    """A factor that raises on some rows."""
    if rng.random() < 0.5:
        return Opaque("10 // i > 2", COLUMNS["10 // i > 2"])
    offset, limit = rng.choice([(1, 32), (-1, 32), (2**40, 64), (2**62, 64), (-(2**64), 64)])
    return Compare("i", rng.choice(["<", ">=", "<>"]), rng.choice(["i", "big"]), offset, "int", limit)


def random_clause(rng: random.Random, rows: Sequence[Row]) -> Clause:
    """Zero to four factors, at most one of which raises."""
    factors: list[Predicate] = [random_within(rng, rows) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if rng.random() < 0.1:
        factors.append(IsNull(rng.choice(list(VALUES))))
    if rng.random() < 0.3:
        factors.append(random_derived(rng, rows))
    if rng.random() < 0.15:
        raising = random_raising(rng)
        guard = random_within(rng, rows, "i")
        factors.append(rng.choice([raising, AnyOf((guard, raising)), AllOf((guard, raising))]))
        if rng.random() < 0.5:
            factors.append(Within("i", (Interval(1, 3),)))
    rng.shuffle(factors)
    return tuple(factors)
