"""Spark as a judge of many small questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def small_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark configured for tables of a few rows, where planning takes most of a job's time."""
    options = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: str(spark.conf.get(name)) for name in options}
    for name, value in options.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)
