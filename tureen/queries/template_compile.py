"""Compiling a template's queries: a table of values becomes a query run, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.keys import GREATEST_KEY, NAN_KEY, after_text
from tureen.language.predicates.slots import Slot
from tureen.queries.arrays import Arrays, typed
from tureen.queries.cuts import Encoding, encoding_of
from tureen.queries.query_run import QueryRun
from tureen.stems.index import keys_of, text_ranks, truths_of

CutNumbers = npt.NDArray[np.int64]
"""Cut points, numbered within their column; an open end has the column's first or last."""

_AFTER = {"=": (False, True), ">": (True, None), ">=": (False, None), "<": (None, False), "<=": (None, True)}
"""For each comparison, whether its lower and upper ends are after the constant or before it; None is an open end."""


@dataclass(frozen=True, eq=False)
class _Column:
    """The cut points of a column, and the interval between two of them of each query."""

    encoding: Encoding
    keys: npt.NDArray[np.int64]
    texts: Sequence[bytes]
    low: CutNumbers
    high: CutNumbers

    @property
    def size(self) -> int:
        """The number of cut points, with the edges."""
        return max(len(self.keys), len(self.texts)) + 3


def can_compile(slots: Sequence[Slot], stored: pa.Schema, values: pa.Table) -> bool:
    """Whether the comparisons can be compiled: keys of both sides must compare like the values."""
    return all(
        slot.op in _AFTER and _comparable(stored.field(slot.column).type, values.schema.field(slot.parameter).type)
        for slot in slots
    ) and not any(_has_zero(values.column(slot.parameter)) for slot in slots)


_WHOLE = ("int8", "int16", "int32", "int64")


def _comparable(column: pa.DataType, values: pa.DataType) -> bool:
    if pa.types.is_floating(column):
        return pa.types.is_floating(values) or str(values) in _WHOLE
    if str(column) in _WHOLE:
        return str(values) in _WHOLE
    plain = pa.types.is_string(column) or pa.types.is_boolean(column) or pa.types.is_temporal(column)
    return bool(plain and column == values)


def _has_zero(column: pa.ChunkedArray) -> bool:
    """Whether a text contains a NUL: the cut point after one text could then equal another text."""
    return pa.types.is_string(column.type) and bool(pc.any(pc.match_substring(column, "\0")).as_py())


def compile_table(slots: Sequence[Slot], stored: pa.Schema, values: pa.Table, numbers: npt.NDArray[Any]) -> QueryRun:
    """Compile queries of ascending numbers, each a conjunction of comparisons with its row of values.

    Queries that compare with NULL, or whose interval is empty, never hold and are left out.

    >>> values = pa.table({"k": [7, 8, None], "t": [1.5, 2.5, 3.5]})
    >>> slots = [Slot("a", "=", "k"), Slot("v", ">", "t")]
    >>> stored = pa.schema([("a", pa.int64()), ("v", pa.float64())])
    >>> compile_table(slots, stored, values, np.array([0, 1, 2])).ids.tolist()
    [0, 1]
    """
    alive = np.ones(len(numbers), np.bool_)
    for slot in slots:
        alive &= truths_of(values.column(slot.parameter).combine_chunks().is_valid())
    values, numbers = values.filter(pa.array(alive)), np.asarray(numbers)[alive]
    by_column: dict[str, list[Slot]] = {}
    for slot in slots:
        by_column.setdefault(slot.column, []).append(slot)
    columns = {name: _column(stored.field(name).type, group, values) for name, group in by_column.items()}
    nonempty = np.ones(len(numbers), np.bool_)
    for column in columns.values():
        nonempty &= column.low < column.high
    return _build_run(columns, numbers, nonempty)


def _build_run(columns: Mapping[str, _Column], numbers: npt.NDArray[Any], nonempty: npt.NDArray[np.bool_]) -> QueryRun:
    """The run of all queries with nonempty intervals: each distinct interval of a column is a factor."""
    cut_start = np.concatenate([[0], np.cumsum([column.size for column in columns.values()])]).astype(np.int64)
    factors, lows, highs, members = [0], [], [], []
    for start, column in zip(cut_start, columns.values(), strict=False):
        pairs = (column.low[nonempty] << 32) | column.high[nonempty]
        distinct, member = np.unique(pairs, return_inverse=True)
        members.append(member + factors[-1])
        factors.append(factors[-1] + len(distinct))
        lows.append(start + (distinct >> 32))
        highs.append(start + (distinct & 0xFFFF_FFFF))
    ids = numbers[nonempty]
    arrays = {
        "ids": ids,
        "cut_start": cut_start,
        "factor_column": np.repeat(np.arange(len(columns)), np.diff(factors)),
        "factor_start": np.arange(factors[-1] + 1),
        "range_low": np.concatenate(lows),
        "range_high": np.concatenate(highs),
        "clause_start": np.arange(len(ids) + 1) * len(columns),
        "clause_factor": np.stack(members, axis=1).ravel(),
        **_keys(list(columns.values()), cut_start),
    }
    encodings = tuple(column.encoding for column in columns.values())
    return QueryRun(tuple(columns), encodings, typed(Arrays, arrays), [])


def _keys(columns: Sequence[_Column], cut_start: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    high = np.zeros(cut_start[-1], np.int64)
    has_text = any(column.encoding is Encoding.TEXT for column in columns)
    sizes = np.zeros(cut_start[-1] if has_text else 0, np.int64)
    texts: list[bytes] = []
    for start, column in zip(cut_start, columns, strict=False):
        if column.encoding is Encoding.TEXT:
            sizes[start + 1 : start + 1 + len(column.texts)] = [len(text) for text in column.texts]
            texts += column.texts
        else:
            high[start + 1 : start + 1 + len(column.keys)] = column.keys
    text_start = np.concatenate([[0], np.cumsum(sizes)])
    text = np.frombuffer(b"".join(texts), np.uint8)
    return {"high": high, "low": np.empty(0, np.uint64), "text": text, "text_start": text_start}


def _column(kind: pa.DataType, slots: Sequence[Slot], values: pa.Table) -> _Column:
    if pa.types.is_string(kind):
        return _texts(slots, values)
    encoding, rows = encoding_of(kind), values.num_rows
    ends = [_number_ends(slot.op, encoding, values.column(slot.parameter)) for slot in slots]
    present = [end for pair in ends for end in pair if end is not None]
    beyond = np.concatenate([end.beyond for end in present])
    # Sorting all keys once is faster than searching for a million keys one by one.
    keys, inverse = np.unique(np.concatenate([end.keys for end in present])[~beyond], return_inverse=True)
    positions = np.full(len(beyond), len(keys) + 1, np.int64)
    positions[~beyond] = inverse + 1
    by_end = iter(np.split(positions, len(present)))
    low, high = _innermost([[None if end is None else next(by_end) for end in pair] for pair in ends], len(keys), rows)
    return _Column(encoding, keys, (), low, high)


@dataclass(frozen=True, eq=False)
class _End:
    """The cut point of one end of each interval: before a key, or `beyond` the greatest key."""

    keys: npt.NDArray[np.int64]
    beyond: npt.NDArray[np.bool_]


def _number_ends(op: str, encoding: Encoding, column: pa.ChunkedArray) -> list[_End | None]:
    """The two ends of each interval."""
    keys, greatest = _number_keys(encoding, column)
    last = keys >= greatest
    before, after = _End(keys, np.zeros(len(keys), np.bool_)), _End(np.where(last, keys, keys + ~last), last)
    return [None if end is None else after if end else before for end in _AFTER[op]]


def _number_keys(encoding: Encoding, column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], int]:
    """The integer keys of values, and the greatest possible key."""
    values = column.combine_chunks()
    if encoding is Encoding.FLOAT:
        return keys_of(values.cast(pa.float64(), safe=False)), NAN_KEY
    return keys_of(values), GREATEST_KEY


def _texts(slots: Sequence[Slot], values: pa.Table) -> _Column:
    """The cut points of texts: two for each distinct text, before and after it."""
    parts = [values.column(slot.parameter).combine_chunks() for slot in slots]
    coded = pa.concat_arrays(parts).dictionary_encode()
    by_row, order = text_ranks(coded)
    ranks = np.split(by_row.astype(np.int64), len(slots))
    ends = [
        [None if end is None else 1 + 2 * row_ranks + end for end in _AFTER[slot.op]]
        for slot, row_ranks in zip(slots, ranks, strict=True)
    ]
    texts = [end for text in coded.dictionary.take(order).to_pylist() for end in (text.encode(), after_text(text))]
    low, high = _innermost(ends, len(texts), values.num_rows)
    return _Column(Encoding.TEXT, np.empty(0, np.int64), texts, low, high)


def _innermost(ends: Sequence[Sequence[CutNumbers | None]], keys: int, rows: int) -> tuple[CutNumbers, CutNumbers]:
    """The intersection of several intervals: the greatest lower end and the least upper end."""
    low, high = np.zeros(rows, np.int64), np.full(rows, keys + 1, np.int64)
    for lower, upper in ends:
        low = low if lower is None else np.maximum(low, lower)
        high = high if upper is None else np.minimum(high, upper)
    return low, high
