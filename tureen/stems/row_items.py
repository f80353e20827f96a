"""Rows with punctuations among them; also in clients, which may not have numpy.

Arrow data cannot hold punctuations: those of a table are in the metadata of its schema, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from tureen.errors import InvalidPunctuation
from tureen.punctuation import Punctuation, punctuation_in

METADATA_KEY = b"tureen.punctuations"
"""The key of the metadata of an Arrow schema: a JSON list of pairs of the number of rows before, and the patterns."""


class PlacedPunctuation(NamedTuple):
    """A punctuation after the first `at` rows."""

    at: int
    punctuation: Punctuation


def split_items(rows: Any) -> tuple[Any, list[PlacedPunctuation]]:
    """The rows without the punctuations among them, and these."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return rows, _from_metadata(rows.schema.metadata, rows.num_rows)
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping | str | bytes) or hasattr(rows, "iloc"):
        return rows, []
    if hasattr(rows, "to_arrow"):
        return rows, []
    plain: list[Any] = []
    placed: list[PlacedPunctuation] = []
    for row in rows:
        # Most rows have several columns; a dict of one may be a punctuation.
        if isinstance(row, Punctuation) or (isinstance(row, dict) and len(row) == 1):
            punctuation = punctuation_in(row)
            if punctuation is not None:
                placed.append(PlacedPunctuation(len(plain), punctuation))
                continue
        plain.append(row)
    return plain, placed


def with_metadata(batch: pa.RecordBatch | pa.Table, placed_json: str) -> pa.RecordBatch | pa.Table:
    """Rows whose schema has punctuations in its metadata."""
    return batch.replace_schema_metadata({**(batch.schema.metadata or {}), METADATA_KEY: placed_json.encode()})


def _from_metadata(metadata: Mapping[bytes, bytes] | None, rows: int) -> list[PlacedPunctuation]:
    text = (metadata or {}).get(METADATA_KEY)
    if text is None:
        return []
    try:
        pairs = [(at, where) for at, where in json.loads(text)]
    except (ValueError, TypeError):
        raise InvalidPunctuation("the punctuations in the metadata of the Arrow schema are not valid") from None
    if not all(isinstance(at, int) and 0 <= at <= rows for at, _ in pairs):
        raise InvalidPunctuation(f"a punctuation of an Arrow table must have a place from 0 to {rows}")
    return [PlacedPunctuation(at, Punctuation.of(where)) for at, where in pairs]
