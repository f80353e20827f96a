"""Opaque factors: any boolean expression, evaluated by DuckDB over a block's Arrow columns."""

from __future__ import annotations

import pyarrow as pa

from tureen.evaluation.duck import run
from tureen.functions.function_calls import know_text
from tureen.predicate import Opaque


def evaluate(factor: Opaque, columns: pa.RecordBatch) -> pa.BooleanArray:
    """The expression's value for each row: true, false or NULL."""
    for definition in factor.functions:
        know_text(definition)
    block = {"block": pa.Table.from_batches([columns])}
    answer = run(f"SELECT ({factor.sql}) AS holds FROM block", block, "the condition")
    return answer.column(0).combine_chunks().cast(pa.bool_())
