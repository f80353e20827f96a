"""Rows that carry punctuations: patterns in JSON, in a column of the row or in headers that come with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from tureen.closed.pattern import Pattern
from tureen.closed.rules import PatternRows
from tureen.closed.section import PlacedPattern
from tureen.errors import TureenError
from tureen.punctuation import Punctuation
from tureen.schema import Schema
from tureen.stems.punctuation_binding import bind_punctuation


class RowPatterns(NamedTuple):
    """The punctuations of rows, each after its row, and the reasons to reject rows whose patterns are not valid."""

    placed: tuple[PlacedPattern, ...] = ()
    refused: Mapping[int, str] = {}


def read_patterns(schema: Schema, source: str, texts: pa.Array | pa.ChunkedArray) -> RowPatterns:
    """The punctuations in the texts of rows, of which each is a text, a list of texts, or NULL.

    `source` tells where they come from, for errors. A row is refused if one of its patterns is not valid.
    """
    placed: list[PlacedPattern] = []
    refused: dict[int, str] = {}
    for row, text in enumerate(texts.to_pylist()):
        try:
            patterns = [_bind(schema, item) for item in _listed(text) if item is not None]
        except TureenError as error:
            refused[row] = f"the pattern in {source} is not valid: {error.message}"
        except (ValueError, RecursionError):
            refused[row] = f"the pattern in {source} is not JSON"
        else:
            placed += [PlacedPattern(row + 1, pattern) for pattern in patterns]
    return RowPatterns(tuple(placed), refused)


def with_carried(
    schema: Schema,
    rows: PatternRows | None,
    batch: pa.RecordBatch,
    patterns: Sequence[PlacedPattern] = (),
    headers: pa.ChunkedArray | None = None,
) -> RowPatterns:
    """The punctuations of a push, with those that its rows carry in a column or in headers."""
    if rows is None or (rows.is_header and headers is None):
        return RowPatterns(tuple(patterns))
    carried = read_patterns(schema, rows.shown, batch.column(rows.name) if headers is None else headers)
    placed = sorted((*patterns, *carried.placed), key=lambda pattern: pattern.at)
    return RowPatterns(tuple(placed), carried.refused)


def _bind(schema: Schema, text: str) -> Pattern:
    return bind_punctuation(schema, Punctuation.of(json.loads(text)))


def _listed(text: str | Sequence[str | None] | None) -> Sequence[str | None]:
    return [text] if text is None or isinstance(text, str) else text
