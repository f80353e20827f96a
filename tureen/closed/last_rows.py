"""Punctuations of rows that say that they are the last with their key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tureen.closed.closed_set import BatchCodes, row_code
from tureen.closed.pattern import Pattern, ValueList
from tureen.closed.rules import LastRows
from tureen.closed.section import PlacedPattern
from tureen.schema import Schema


def with_last_rows(
    schema: Schema, last_rows: LastRows, codes: BatchCodes, placed: Sequence[PlacedPattern]
) -> list[PlacedPattern]:
    """The punctuations of a push, and after each row that is the last with its key one of that key.

    A row with NULL in the key closes nothing: NULL cannot be punctuated.
    """
    is_last = codes.values(last_rows.column).fill_null(False).to_numpy(zero_copy_only=False)
    names = [name for name in schema.names if name in last_rows.key]
    patterns = list(placed)
    for row in np.flatnonzero(is_last).tolist():
        if all(codes.values(name)[row].is_valid for name in names):
            values = ((name, ValueList((row_code(schema, codes, name, row),))) for name in names)
            patterns.append(PlacedPattern(row + 1, Pattern(tuple(values))))
    return sorted(patterns, key=lambda placed_pattern: placed_pattern.at)
