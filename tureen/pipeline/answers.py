"""Answers for Spark: what `spark.read.format("tureen")` needs, without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from tureen.pot.catalog import Catalog
from tureen.results.invoke import Invoker
from tureen.window import to_micros


def answer_schema(root: Path, query: str) -> str:
    """The columns of a query's answer, as Spark SQL writes them."""
    catalog = Catalog(root)
    try:
        return Invoker(catalog).schema_of(query).sql
    finally:
        catalog.close()


def answer_batches(root: Path, query: str, now: str | None) -> Iterator[pa.RecordBatch]:
    """The answer of a query, at a NOW given in ISO 8601 or at this moment."""
    catalog = Catalog(root)
    try:
        moment = None if now is None else to_micros(datetime.fromisoformat(now))
        yield from Invoker(catalog).invoke(query, now=moment).table.to_batches()
    finally:
        catalog.close()
