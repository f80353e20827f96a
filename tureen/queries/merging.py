"""Merging query runs by their arrays, without decoding any clause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tureen.queries.access_predicates import cuts_of
from tureen.queries.arrays import Arrays, spread, typed
from tureen.queries.cuts import Encoding
from tureen.queries.query_run import QueryRun
from tureen.stems.index import numbers_of, text_ranks

Numbers = npt.NDArray[np.int64]


def merge_runs(runs: Sequence[QueryRun], live: npt.NDArray[Any] | None = None) -> QueryRun:
    """One run with the clauses of several runs, whose ids ascend from run to run; only those in `live`, if given."""
    columns: dict[str, Encoding] = {}
    for run in runs:
        columns |= dict(zip(run.names, run.encodings, strict=True))
    cuts = _MergedCuts.of(runs, columns)
    texts: dict[str, int] = {text: 0 for run in runs for text in run.derived_texts}
    factors = _MergedFactors.of(runs, list(columns), cuts)
    number = {text: index for index, text in enumerate(texts)}
    ids, sizes, members = [], [], []
    for run, factor_numbers in zip(runs, factors.numbers, strict=True):
        is_live = np.ones(len(run), np.bool_) if live is None else np.isin(run.ids, live)
        chosen = np.flatnonzero(is_live)
        derived = np.array([number[text] for text in run.derived_texts], np.int64) + factors.size
        ids.append(run.ids[chosen])
        sizes.append(np.diff(run.arrays.clause_start)[chosen])
        members.append(
            np.concatenate([factor_numbers, derived])[run.arrays.clause_factor[spread(run.arrays.clause_start, chosen)]]
        )
    arrays = {
        "ids": np.concatenate(ids),
        "clause_start": np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
        "clause_factor": np.concatenate(members),
        **cuts.arrays,
        **factors.arrays,
    }
    return _without_unused(QueryRun(tuple(columns), tuple(columns.values()), typed(Arrays, arrays), list(texts)))


@dataclass(frozen=True, eq=False)
class _MergedCuts:
    """The cut points of all runs, and the position of each run's cut points among them."""

    positions: list[Numbers]
    arrays: dict[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, runs: Sequence[QueryRun], columns: dict[str, Encoding]) -> _MergedCuts:
        positions = [np.zeros(len(run.arrays.high), np.int64) for run in runs]
        start = [0]
        high: list[npt.NDArray[Any]] = []
        low: list[npt.NDArray[Any]] = []
        sizes: list[npt.NDArray[Any]] = []
        text: list[npt.NDArray[Any]] = []
        for name, encoding in columns.items():
            spans = [(run, _span(run, name)) for run in runs]
            keys, positions_by_run = _distinct(encoding, spans)
            size = len(keys.high)
            edges = np.array([start[-1], start[-1] + size + 1, start[-1] + size + 2])
            for run_positions, (_, span), key_positions in zip(positions, spans, positions_by_run, strict=True):
                if span is not None:
                    cut_positions = np.concatenate([edges[:1], key_positions + start[-1] + 1, edges[1:]])
                    run_positions[span.start - 1 : span.stop + 2] = cut_positions
            start.append(start[-1] + size + 3)
            for parts, part in ((high, keys.high), (low, keys.low), (sizes, keys.sizes)):
                parts.append(np.pad(part, (1, 2)))
            text.append(keys.text)
        wide, worded = Encoding.WIDE in columns.values(), Encoding.TEXT in columns.values()
        arrays = {
            "cut_start": np.array(start),
            "high": np.concatenate([*high, np.empty(0, np.int64)]),
            "low": np.concatenate([*low, np.empty(0, np.uint64)]) if wide else np.empty(0, np.uint64),
            "text_start": np.concatenate([[0], np.cumsum(np.concatenate(sizes)) if worded else np.empty(0, np.int64)]),
            "text": np.concatenate([*text, np.empty(0, np.uint8)]),
        }
        return cls(positions, arrays)


def _span(run: QueryRun, name: str) -> slice | None:
    """The cut points of a column that are keys, or None if the run does not use the column."""
    if name not in run.names:
        return None
    column = run.names.index(name)
    return slice(int(run.arrays.cut_start[column]) + 1, int(run.arrays.cut_start[column + 1]) - 2)


@dataclass(frozen=True, eq=False)
class _ColumnKeys:
    """The distinct keys of a column, ascending: numbers, or concatenated texts with their sizes."""

    high: Numbers
    low: npt.NDArray[np.uint64]
    sizes: Numbers
    text: npt.NDArray[np.uint8]


def _distinct(encoding: Encoding, spans: Sequence[tuple[QueryRun, slice | None]]) -> tuple[_ColumnKeys, list[Numbers]]:
    """A column's keys of all runs, and the positions of each run's keys among them."""
    present = [(run.arrays, span) for run, span in spans if span is not None]
    high = np.concatenate([arrays.high[span] for arrays, span in present])
    low, sizes, text = np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    if encoding is Encoding.TEXT:
        texts = pa.concat_arrays([_texts(arrays, span) for arrays, span in present])
        coded = texts.dictionary_encode()
        ranks, order = text_ranks(coded)
        inverse, distinct = ranks.astype(np.int64), coded.dictionary.take(order)
        sizes = numbers_of(pc.binary_length(distinct), np.int64)
        text = np.frombuffer(b"".join(distinct.to_pylist()), np.uint8)
        keys = _ColumnKeys(np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.uint64), sizes, text)
    elif encoding is Encoding.WIDE:
        low = np.concatenate([arrays.low[span] for arrays, span in present])
        order = np.lexsort((low, high))
        new = np.concatenate([[True], (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)])[: len(order)]
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.cumsum(new) - 1
        first = order[new]
        keys = _ColumnKeys(high[first], low[first], np.zeros(len(first), np.int64), text)
    else:
        numbers, inverse = np.unique(high, return_inverse=True)
        keys = _ColumnKeys(numbers, np.zeros(len(numbers), np.uint64), np.zeros(len(numbers), np.int64), text)
    ends = iter(np.split(inverse, np.cumsum([span.stop - span.start for _, span in present])[:-1]))
    return keys, [np.empty(0, np.int64) if span is None else next(ends) for _, span in spans]


def _texts(arrays: Arrays, span: slice) -> pa.LargeBinaryArray:
    offsets = np.ascontiguousarray(arrays.text_start[span.start : span.stop + 1])
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), span.stop - span.start, [None, pa.py_buffer(offsets), pa.py_buffer(arrays.text)]
    )


@dataclass(frozen=True, eq=False)
class _MergedFactors:
    """The range factors of all runs, without duplicates of one interval, and the numbers of each run's factors."""

    numbers: list[Numbers]
    size: int
    arrays: dict[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, runs: Sequence[QueryRun], names: Sequence[str], cuts: _MergedCuts) -> _MergedFactors:
        columns, sizes, lows, highs = [], [], [], []
        for run, cut_positions in zip(runs, cuts.positions, strict=True):
            column_numbers = np.array([names.index(name) for name in run.names], np.int64)
            columns.append(column_numbers[run.arrays.factor_column])
            sizes.append(np.diff(run.arrays.factor_start))
            lows.append(cut_positions[run.arrays.range_low])
            highs.append(cut_positions[run.arrays.range_high])
        column, size = np.concatenate(columns), np.concatenate(sizes)
        low, high = np.concatenate(lows), np.concatenate(highs)
        start = np.concatenate([[0], np.cumsum(size)])
        first, number = _deduplicate(size, start, low, high)
        spans = np.split(number, np.cumsum([len(numbers) for numbers in columns])[:-1])
        intervals = spread(start, first)
        arrays = {
            "factor_column": column[first],
            "factor_start": np.concatenate([[0], np.cumsum(size[first])]),
            "range_low": low[intervals],
            "range_high": high[intervals],
        }
        return cls(spans, len(first), arrays)


def _deduplicate(size: Numbers, start: Numbers, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """The first of each set of equal factors, and for every factor the number of its set.

    A cut point belongs to one column, so factors of one interval are equal if both ends are.
    """
    single = size == 1
    keys = np.full(len(size), -1, np.int64)
    keys[single] = (low[start[:-1][single]] << 32) | high[start[:-1][single]]
    # Factors of several intervals, or none, all count as different.
    keys[~single] = -1 - np.flatnonzero(~single)
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return first, number


def _without_unused(run: QueryRun) -> QueryRun:
    """The run without factors and cut points that no clause uses, such as those of dead clauses."""
    arrays, ranges = run.arrays, run.factors
    used = np.zeros(ranges + len(run.derived_texts), np.bool_)
    used[arrays.clause_factor] = True
    if used.all():
        return run
    new_number = np.cumsum(used) - 1
    factor = np.flatnonzero(used[:ranges])
    interval = spread(arrays.factor_start, factor)
    cut = cuts_of(arrays, factor)
    letters = spread(arrays.text_start, cut) if len(arrays.text_start) > 1 else np.empty(0, np.int64)
    parts = {
        "ids": arrays.ids,
        "cut_start": np.searchsorted(cut, arrays.cut_start),
        "high": arrays.high[cut],
        "low": arrays.low[cut] if len(arrays.low) else arrays.low,
        "text": arrays.text[letters],
        "text_start": np.concatenate([[0], np.cumsum(np.diff(arrays.text_start)[cut])])
        if len(arrays.text_start) > 1
        else arrays.text_start,
        "factor_column": arrays.factor_column[factor],
        "factor_start": np.concatenate([[0], np.cumsum(np.diff(arrays.factor_start)[factor])]),
        "range_low": np.searchsorted(cut, arrays.range_low[interval]),
        "range_high": np.searchsorted(cut, arrays.range_high[interval]),
        "clause_start": arrays.clause_start,
        "clause_factor": new_number[arrays.clause_factor],
    }
    texts = [text for text, is_used in zip(run.derived_texts, used[ranges:], strict=True) if is_used]
    return QueryRun(run.names, run.encodings, typed(Arrays, parts), texts)
