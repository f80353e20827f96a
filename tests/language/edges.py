"""Rows of edge values, for comparing expressions with Spark."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tureen.schema import Schema

SCHEMA = Schema.parse(
    "i INT, j INT, l BIGINT, f FLOAT, d DOUBLE, e DOUBLE, n DECIMAL(10,2), k DECIMAL(17,2), m DECIMAL(38,10), "
    "s STRING, t STRING, dt DATE, du DATE, ts TIMESTAMP, tu TIMESTAMP, b BOOLEAN, c BOOLEAN, "
    "a TINYINT, o TINYINT, h SMALLINT"
)

_INTS = [0, 1, -1, 2, 5, 7, 100, 16777217, 2147483647, -2147483648, None]
_TINY = [0, 1, -1, 2, 5, 7, 100, 127, -128, 50, -50, None]
_DOUBLES = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    0.1,
    1.1,
    2.0,
    1e308,
    -1e308,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    9007199254740992.0,
    None,
]
_DATES = [
    date(1970, 1, 1),
    date(1969, 12, 31),
    date(2020, 2, 29),
    date(2026, 11, 16),
    date(1, 1, 1),
    date(9999, 12, 31),
    None,
]
_TIMES = [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2020, 2, 29, 12, 30, 15, 500000, tzinfo=UTC),
    datetime(2020, 2, 29, tzinfo=UTC),
    datetime(2026, 11, 16, 2, 3, 4, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    None,
]
_STRINGS = [
    "", "a", "ab", "abc", "ABC", " ab ", "a%c", "a_c", "a\\c", "b", "é", "straße", "ﬁn", "\U0001f600", "a\U0001f600c",
    "\uffff", "it's", "1", "x\ty", "İz", None,
]  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "i": _INTS,
    "j": _INTS,
    "l": [*_INTS, 9007199254740992, 9007199254740993, 9223372036854775807, -9223372036854775808],
    "f": [0.0, -0.0, 1.5, 0.1, 1.1, 16777216.0, 3.4028234663852886e38, math.inf, -math.inf, math.nan, None],
    "d": _DOUBLES,
    "e": _DOUBLES,
    "n": [
        None,
        *map(Decimal, ["0.00", "1.23", "-1.23", "1.24", "1.50", "99999999.99", "-99999999.99", "5.00", "0.10"]),
    ],
    "k": [None, *map(Decimal, ["0.00", "900719925474099.31", "900719925474099.32", "-900719925474099.31", "1.10"])],
    "m": [
        None,
        *map(Decimal, ["0", "1.2345678901", "9999999999999999999999999999.9999999999", "-0.0000000001", "0.005"]),
    ],
    "s": _STRINGS,
    "t": _STRINGS,
    "dt": _DATES,
    "du": _DATES,
    "ts": _TIMES,
    "tu": _TIMES,
    "b": [True, False, None],
    "c": [True, False, None],
    "a": _TINY,
    "o": _TINY,
    "h": [*_TINY, 255, 128, 1000, 32767, -32768, 12345],
}
ROWS = 60


def table(schema: Schema, values: dict[str, list[Any]]) -> pa.Table:
    """A table with every edge value of each column in random order, filled up with random edge values."""
    chance = random.Random(7)
    columns: dict[str, pa.Array] = {}
    for column in schema.columns:
        edge_values = values[column.name]
        column_values = edge_values + [chance.choice(edge_values) for _ in range(ROWS - len(edge_values))]
        chance.shuffle(column_values)
        columns[column.name] = pa.array(column_values, column.type.arrow)
    return pa.table(columns)
