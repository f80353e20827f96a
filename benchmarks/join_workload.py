"""Streams for joins that several engines compute: two with a partner for each tuple, and a chain of four.

In the chain `a – b – c – d`, each tuple has one partner in the next stream, but only a tenth of the tuples of `c` have
one in `d`: most intermediate results become no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

START = 1_700_000_000_000_000
SPARSE = 10
"""How many times as many keys the last stream of the chain has."""


@dataclass(frozen=True)
class JoinWorkload:
    """A join: the columns of its streams without their time, its SELECT, and that with which results are compared."""

    streams: Mapping[str, str]
    sql: str
    checked: str
    """The sums of a result, each of them exact; the result is called `joined`."""

    def tables(self, rows: int) -> dict[str, pa.Table]:
        """The tuples of each stream."""
        random = np.random.default_rng(len(self.streams))
        permuted = {key: random.permutation(rows) for key in "kji"}
        tables = {}
        for name, columns in self.streams.items():
            order = random.permutation(rows)
            values: dict[str, np.ndarray] = {}
            for column in (text.split()[0] for text in columns.split(", ")):
                is_sparse = name == "d" and column == "i"
                keys = random.permutation(SPARSE * rows)[:rows] if is_sparse else permuted.get(column, order)[order]
                values[column] = keys / 2 if column == "v" else keys
            times = pa.array(START + np.arange(rows) * 1000).cast(pa.timestamp("us", "UTC"))
            tables[name] = pa.table({**{column: pa.array(keys) for column, keys in values.items()}, "ts": times})
        return tables

    def expected(self, tables: Mapping[str, pa.Table]) -> tuple[float, ...]:
        """What DuckDB computes."""
        with duckdb.connect() as database:
            for name, table in tables.items():
                database.register(name, table)
            row = database.execute(f"SELECT {self.checked} FROM ({self.sql}) joined").fetchone()
        assert row is not None
        assert row[0], "the join has no result"
        return tuple(map(float, row))

    def write(self, folder: Path, tables: Mapping[str, pa.Table], rows: int | None = None) -> Path:
        """Write a folder for each stream, as Parquet files and as CSV files without a header and the time.

        Each file has that many rows; by default, half of the stream.
        """
        for kind in ("parquet", "csv"):
            for name, table in tables.items():
                (folder / kind / name).mkdir(parents=True)
                for number, part in enumerate(_parts(table, rows or -(-len(table) // 2))):
                    path = folder / kind / name / f"{number:03}.{kind}"
                    if kind == "csv":
                        pcsv.write_csv(part.drop_columns("ts"), path, pcsv.WriteOptions(include_header=False))
                    else:
                        pq.write_table(part, path, compression="none")
        return folder


def check_sums(sums: tuple[float, ...], expected: tuple[float, ...], subject: str) -> None:
    """Raise unless an engine has the expected result."""
    if tuple(map(float, sums)) != expected:
        raise AssertionError(f"{subject} has the sums {sums}, and DuckDB's {expected}")


def _parts(table: pa.Table, size: int) -> Iterator[pa.Table]:
    return (table.slice(start, size) for start in range(0, len(table), size))


TWO = JoinWorkload(
    {"a": "k BIGINT, v DOUBLE", "b": "k BIGINT, v DOUBLE"},
    "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k",
    "COUNT(*), SUM(k), SUM(v), SUM(w)",
)
FOUR = JoinWorkload(
    {"a": "k BIGINT, v DOUBLE", "b": "k BIGINT, j BIGINT", "c": "j BIGINT, i BIGINT", "d": "i BIGINT, v DOUBLE"},
    "SELECT a.k, a.v, d.v AS w FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j JOIN d ON c.i = d.i",
    "COUNT(*), SUM(k), SUM(v), SUM(w)",
)
