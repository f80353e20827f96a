"""Compiling clauses into a query run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.predicate import Clause, Factor, IsNull, Within, dump_clause
from tureen.queries.arrays import Arrays
from tureen.queries.cuts import Cut, Edge, Encoding, encoding_of, ends_of
from tureen.queries.query_run import QueryRun
from tureen.schema import Schema

_LOWER_WORD = (1 << 64) - 1


def compile_clauses(ids: Sequence[int], clauses: Sequence[Clause], schema: Schema | pa.Schema) -> QueryRun:
    """Compile clauses of one stream, whose ids ascend; the schema may also be that of a stored batch.

    >>> from tureen.predicate import Interval
    >>> high = Within("a", (Interval(low=5),))
    >>> run = compile_clauses([1, 2], [(high,), (high, IsNull("b"))], Schema.parse("a INT, b INT"))
    >>> run.factors, run.names
    (2, ('a', 'b'))
    """
    if len(ids) != len(clauses):
        raise ValueError(f"every clause needs an id, got {len(ids)} ids for {len(clauses)} clauses")
    numbers = np.asarray(ids, np.int64)
    if np.any(numbers[1:] <= numbers[:-1]):
        raise ValueError("clause ids must ascend")
    ranges: dict[Within | IsNull, int] = {}
    derived: dict[Factor, int] = {}
    starts, members = [0], []
    for clause in clauses:
        for factor in clause:
            if isinstance(factor, Within | IsNull):
                members.append(ranges.setdefault(factor, len(ranges)))
            else:
                members.append(-1 - derived.setdefault(factor, len(derived)))
        starts.append(len(members))
    signed_members = np.array(members, np.int32)
    # Derived factors are numbered after the range factors, whose number is known only now.
    clause_factor = np.where(signed_members < 0, len(ranges) - 1 - signed_members, signed_members)
    columns, layout = _build_arrays(ranges, schema.stored if isinstance(schema, Schema) else schema)
    arrays = Arrays.of({"ids": numbers, "clause_start": starts, "clause_factor": clause_factor, **layout})
    texts = [dump_clause((factor,)) for factor in derived]
    return QueryRun(tuple(columns), tuple(columns.values()), arrays, texts)


def _build_arrays(ranges: dict[Within | IsNull, int], stored: pa.Schema) -> tuple[dict[str, Encoding], dict[str, Any]]:
    """The columns that the factors use, and the arrays of their cut points and ranges."""
    columns: dict[str, Encoding] = {}
    number_of: dict[str, int] = {}
    lows: list[Cut] = []
    highs: list[Cut] = []
    factor_column, factor_start = [], [0]
    for factor in ranges:
        name = factor.column
        encoding = columns.get(name)
        if encoding is None:
            encoding = columns[name] = encoding_of(stored.field(name).type)
            number_of[name] = len(number_of)
        factor_column.append(number_of[name])
        if isinstance(factor, IsNull):
            lows.append(Edge.TOP)
            highs.append(Edge.END)
        else:
            for interval in factor.intervals:
                low, high = ends_of(encoding, interval)
                lows.append(low)
                highs.append(high)
        factor_start.append(len(lows))
    range_column = np.repeat(np.array(factor_column, np.int32), np.diff(factor_start))
    range_low = np.zeros(len(lows), np.int32)
    range_high = np.zeros(len(lows), np.int32)
    cut_start, keys = [0], []
    for column, encoding in enumerate(columns.values()):
        column_ranges = np.flatnonzero(range_column == column)
        cuts = [lows[i] for i in column_ranges.tolist()] + [highs[i] for i in column_ranges.tolist()]
        distinct, positions = _cut_positions(encoding, cuts)
        range_low[column_ranges] = cut_start[-1] + positions[: len(column_ranges)]
        range_high[column_ranges] = cut_start[-1] + positions[len(column_ranges) :]
        keys.append(distinct)
        cut_start.append(cut_start[-1] + len(distinct) + 3)
    layout = {
        "cut_start": cut_start,
        "factor_column": factor_column,
        "factor_start": factor_start,
        "range_low": range_low,
        "range_high": range_high,
    }
    return columns, layout | _keys(list(columns.values()), keys, cut_start)


def _cut_positions(encoding: Encoding, cuts: list[Cut]) -> tuple[Sequence[Any], npt.NDArray[np.int64]]:
    """A column's distinct keys in ascending order, and the position of each cut point among its cut points."""
    keys: list[Any] = [cut for cut in cuts if type(cut) is not Edge]
    distinct: Any
    if encoding in (Encoding.INTEGER, Encoding.FLOAT):
        distinct, order = np.unique(np.array(keys, np.int64), return_inverse=True)
    else:
        distinct = sorted(set(keys))
        number = {key: index for index, key in enumerate(distinct)}
        order = np.array([number[key] for key in keys], np.int64)
    edges = {Edge.BOTTOM: 0, Edge.TOP: len(distinct) + 1, Edge.END: len(distinct) + 2}
    positions = np.array([edges[cut] if isinstance(cut, Edge) else -1 for cut in cuts], np.int64)
    positions[positions < 0] = order + 1
    return distinct, positions


def _keys(encodings: list[Encoding], keys: list[Sequence[Any]], cut_start: list[int]) -> dict[str, Any]:
    """All columns' keys as arrays over all cut points; lower words and texts are empty if unused."""
    total = cut_start[-1]
    high = np.zeros(total, np.int64)
    low = np.zeros(total if Encoding.WIDE in encodings else 0, np.uint64)
    texts = [b""] * total
    for encoding, start, column_keys in zip(encodings, cut_start, keys, strict=False):
        span = slice(start + 1, start + 1 + len(column_keys))
        if encoding is Encoding.TEXT:
            texts[span] = column_keys
        elif encoding is Encoding.WIDE:
            high[span] = [key >> 64 for key in column_keys]
            low[span] = [key & _LOWER_WORD for key in column_keys]
        else:
            high[span] = column_keys
    text = b"".join(texts)
    sizes = list(map(len, texts)) if Encoding.TEXT in encodings else []
    text_start = np.concatenate(([0], np.cumsum(np.array(sizes, np.int64))))
    return {"high": high, "low": low, "text": np.frombuffer(text, np.uint8), "text_start": text_start}
