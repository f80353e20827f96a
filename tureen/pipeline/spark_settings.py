"""Validating Spark settings, such as the packages of a source; imports no Spark, so that `--help` is fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tureen.errors import TureenError, shown


def check_spark(settings: Any) -> dict[str, str]:
    """Spark settings as strings; raises if one is invalid."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise TureenError(f"spark must be a dict, got {type(settings).__name__}", hint=_SPARK)
    checked = {}
    for key, value in settings.items():
        if not isinstance(key, str) or not key.startswith("spark.") or key != key.strip():
            raise TureenError(f"a Spark setting must be named spark.…, got {shown(key)}", hint=_SPARK)
        if key == "spark.master":
            raise TureenError("spark.master must be given as master", hint='such as master="local[4]"')
        if not isinstance(value, str | int | float):
            raise TureenError(f"{key} must be a text or a number, got {type(value).__name__}", hint=_SPARK)
        checked[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked


_SPARK = 'such as {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"}'
