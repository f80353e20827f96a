"""The workload of PSoup §5.2.1: four attributes uniform in [0, 255], queries of one to four factors.

A constant is a multiple of 32 with probability 0.2, else anything in [0, 255].
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

import tureen

COLUMNS = "abcd"
SCHEMA = "a INT, b INT, c INT, d INT, ts TIMESTAMP"
START = 1_767_225_600_000_000  # 2026-01-01, in microseconds


def tuples(rows: int, seed: int) -> pa.Table:
    """Tuples a microsecond apart; the seed also determines their time range."""
    chance = np.random.default_rng(seed)
    columns = {name: pa.array(chance.integers(0, 256, rows, dtype=np.int32)) for name in COLUMNS}
    times = START + seed * rows + np.arange(rows)
    return pa.table({**columns, "ts": pa.array(times, pa.timestamp("us", tz="UTC"))})


def conditions(count: int, seed: int = 7) -> list[str]:
    """The WHERE conditions of `count` queries."""
    chance = random.Random(seed)

    def constant() -> int:
        return chance.randrange(0, 256, 32) if chance.random() < 0.2 else chance.randrange(256)

    def factor(column: str) -> str:
        kind = chance.choice(["=", "<", "<=", ">", ">=", "between"])
        if kind != "between":
            return f"{column} {kind} {constant()}"
        low, high = sorted((constant(), constant()))
        return f"{column} BETWEEN {low} AND {high}"

    return [
        " AND ".join(factor(column) for column in chance.sample(COLUMNS, chance.randint(1, 4))) for _ in range(count)
    ]


def register_all(
    soup: tureen.Soup, stream: str, wheres: Sequence[str], *, materialize: Any = True
) -> list[tureen.StandingQuery]:
    """Register a query for each condition, from many threads, so that registrations share commits."""
    with ThreadPoolExecutor(256) as pool:
        return list(
            pool.map(
                lambda where: soup.register(f"SELECT * FROM {stream} WHERE {where}", materialize=materialize), wheres
            )
        )


def truth(table: pa.Table, where: str) -> np.ndarray:
    """Which tuples satisfy a condition, by numpy alone."""
    matches = np.ones(len(table), np.bool_)
    for part in where.replace("BETWEEN ", "BETWEEN~").replace(" AND ", "&").split("&"):
        matches &= _factor(table, part) if "~" not in part else True
    return _between(table, where, matches)


def _factor(table: pa.Table, text: str) -> np.ndarray:
    words = text.split()
    if len(words) != 3:
        return np.ones(len(table), np.bool_)
    column, sign, constant = words
    values = table.column(column).to_numpy()
    compare = {"=": np.equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
    matches: np.ndarray = compare[sign](values, int(constant))
    return matches


def _between(table: pa.Table, where: str, matches: np.ndarray) -> np.ndarray:
    words = where.split()
    for index, word in enumerate(words):
        if word == "BETWEEN":
            values = table.column(words[index - 1]).to_numpy()
            matches = matches & (values >= int(words[index + 1])) & (values <= int(words[index + 3]))
    return matches
