"""Contents of tables: rows in all forms, and invalid ones."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

import tureen
from tureen.errors import InvalidRows, InvalidSchema

SCHEMA = "sym STRING, sector STRING"
ROWS = [{"sym": "IBM", "sector": "tech"}, {"sym": "GE", "sector": None}]


@pytest.fixture
def soup(engineless: tureen.Soup) -> tureen.Soup:
    return engineless


def row_forms(directory: Path) -> list[Any]:
    table = pa.Table.from_pylist(ROWS)
    parquet.write_table(table, directory / "rows.parquet")
    (directory / "rows.CSV").write_text("Sector,sym\ntech,IBM\n,GE\n")
    return [
        ROWS,
        iter(ROWS),
        table,
        table.to_batches()[0],
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        directory / "rows.parquet",
        str(directory / "rows.CSV"),
    ]


def test_rows_in_all_forms(soup: tureen.Soup, tmp_path: Path) -> None:
    for number, rows in enumerate(row_forms(tmp_path)):
        soup.create_table(f"t{number}", SCHEMA, rows)
        assert soup.table(f"t{number}").to_pylist() == ROWS, type(rows)


def test_typed_rows_need_no_schema(soup: tureen.Soup, tmp_path: Path) -> None:
    table = pa.table(
        {
            "small": pa.array([1], pa.int16()),
            "big": pa.array([1], pa.uint32()),
            "word": pa.array(["x"]).dictionary_encode(),
            "money": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("ms", tz="Europe/Berlin")),
        }
    )
    parquet.write_table(table, tmp_path / "typed.parquet")
    soup.create_table("typed", rows=tmp_path / "typed.parquet")
    schema = "`small` SMALLINT, `big` BIGINT, `word` STRING, `money` DECIMAL(9,2), `at` TIMESTAMP"
    assert soup.tables()[0]["schema"] == schema
    assert soup.table("typed").to_pylist()[0]["at"] == datetime(2026, 1, 1, tzinfo=UTC)
    frame = pd.DataFrame({"n": np.array([1], "int64"), "x": [0.5]})
    soup.create_table("framed", rows=frame)
    assert soup.tables()[1]["schema"] == "`n` BIGINT, `x` DOUBLE"
    for rows, says in (
        (ROWS, "rows without types need a schema"),
        (None, "rows without types need a schema"),
        (pa.table({"a": [[1]]}), "'a' has the unsupported type list"),
        (pa.table({"a,b": [1]}), "'a,b' is not a valid name"),
        (pa.table({}), "at least one column"),
    ):
        with pytest.raises(InvalidSchema, match=says):
            soup.create_table("untyped", rows=rows)


def test_a_spark_dataframe(spark: SparkSession, soup: tureen.Soup) -> None:
    frame = spark.sql("SELECT 'IBM' AS sym, 5 AS n, TIMESTAMP '2026-01-01 00:00:00' AS at")
    soup.create_table("inferred", rows=frame)
    soup.create_table("declared", "SYM STRING, n BIGINT, at TIMESTAMP", frame)
    expected = ["IBM", 5, datetime(2026, 1, 1, tzinfo=UTC)]
    assert [list(soup.table(name).to_pylist()[0].values()) for name in ("inferred", "declared")] == [expected] * 2
    with pytest.raises(InvalidRows, match="Spark DataFrame could not be read") as caught:
        soup.replace_table("declared", spark.sql("SELECT 'x' AS sym, 1 / 0 AS n"))
    assert "DIVIDE_BY_ZERO" in (caught.value.detail or "")
