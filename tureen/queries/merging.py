"""Merging query runs: their arrays are put together as they are, without looking at any clause by itself."""

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
    """One run with the clauses of several, whose ids ascend from run to run; of some ids only, if they are given."""
    columns: dict[str, Encoding] = {}
    for run in runs:
        columns |= dict(zip(run.names, run.encodings, strict=True))
    cuts = _Cuts.of(runs, columns)
    texts: dict[str, int] = {text: 0 for run in runs for text in run.derived_texts}
    factors = _Factors.of(runs, list(columns), cuts)
    number = {text: place for place, text in enumerate(texts)}
    ids, sizes, members = [], [], []
    for run, places in zip(runs, factors.places, strict=True):
        kept = np.ones(len(run), np.bool_) if live is None else np.isin(run.ids, live)
        chosen = np.flatnonzero(kept)
        derived = np.array([number[text] for text in run.derived_texts], np.int64) + factors.size
        ids.append(run.ids[chosen])
        sizes.append(np.diff(run.arrays.clause_start)[chosen])
        members.append(
            np.concatenate([places, derived])[run.arrays.clause_factor[spread(run.arrays.clause_start, chosen)]]
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
class _Cuts:
    """The cut points of all columns together, and which of them each run's are."""

    places: list[Numbers]
    arrays: dict[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, runs: Sequence[QueryRun], columns: dict[str, Encoding]) -> _Cuts:
        places = [np.zeros(len(run.arrays.high), np.int64) for run in runs]
        start = [0]
        high: list[npt.NDArray[Any]] = []
        low: list[npt.NDArray[Any]] = []
        sizes: list[npt.NDArray[Any]] = []
        text: list[npt.NDArray[Any]] = []
        for name, encoding in columns.items():
            mine = [(run, _span(run, name)) for run in runs]
            keys, found = _distinct(encoding, mine)
            size = len(keys.high)
            edges = np.array([start[-1], start[-1] + size + 1, start[-1] + size + 2])
            for place, (_, span), where in zip(places, mine, found, strict=True):
                if span is not None:
                    known = np.concatenate([edges[:1], where + start[-1] + 1, edges[1:]])
                    place[span.start - 1 : span.stop + 2] = known
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
        return cls(places, arrays)


def _span(run: QueryRun, name: str) -> slice | None:
    """The cut points of a column that are keys, or None where the run has no such column."""
    if name not in run.names:
        return None
    column = run.names.index(name)
    return slice(int(run.arrays.cut_start[column]) + 1, int(run.arrays.cut_start[column + 1]) - 2)


@dataclass(frozen=True, eq=False)
class _Keys:
    """The distinct keys of a column, ascending: numbers, or texts one after the other with their sizes."""

    high: Numbers
    low: npt.NDArray[np.uint64]
    sizes: Numbers
    text: npt.NDArray[np.uint8]


def _distinct(encoding: Encoding, mine: Sequence[tuple[QueryRun, slice | None]]) -> tuple[_Keys, list[Numbers]]:
    """A column's keys of all runs, and where each run's stand among them."""
    given = [(run.arrays, span) for run, span in mine if span is not None]
    high = np.concatenate([arrays.high[span] for arrays, span in given])
    low, sizes, text = np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    if encoding is Encoding.TEXT:
        texts = pa.concat_arrays([_texts(arrays, span) for arrays, span in given])
        coded = texts.dictionary_encode()
        ranks, order = text_ranks(coded)
        inverse, distinct = ranks.astype(np.int64), coded.dictionary.take(order)
        sizes = numbers_of(pc.binary_length(distinct), np.int64)
        text = np.frombuffer(b"".join(distinct.to_pylist()), np.uint8)
        keys = _Keys(np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.uint64), sizes, text)
    elif encoding is Encoding.WIDE:
        low = np.concatenate([arrays.low[span] for arrays, span in given])
        order = np.lexsort((low, high))
        new = np.concatenate([[True], (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)])[: len(order)]
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.cumsum(new) - 1
        first = order[new]
        keys = _Keys(high[first], low[first], np.zeros(len(first), np.int64), text)
    else:
        numbers, inverse = np.unique(high, return_inverse=True)
        keys = _Keys(numbers, np.zeros(len(numbers), np.uint64), np.zeros(len(numbers), np.int64), text)
    ends = iter(np.split(inverse, np.cumsum([span.stop - span.start for _, span in given])[:-1]))
    return keys, [np.empty(0, np.int64) if span is None else next(ends) for _, span in mine]


def _texts(arrays: Arrays, span: slice) -> pa.LargeBinaryArray:
    offsets = np.ascontiguousarray(arrays.text_start[span.start : span.stop + 1])
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), span.stop - span.start, [None, pa.py_buffer(offsets), pa.py_buffer(arrays.text)]
    )


@dataclass(frozen=True, eq=False)
class _Factors:
    """The range factors of all runs, those of one interval each once, and which of them each run's are."""

    places: list[Numbers]
    size: int
    arrays: dict[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, runs: Sequence[QueryRun], names: Sequence[str], cuts: _Cuts) -> _Factors:
        columns, sizes, lows, highs = [], [], [], []
        for run, places in zip(runs, cuts.places, strict=True):
            known = np.array([names.index(name) for name in run.names], np.int64)
            columns.append(known[run.arrays.factor_column])
            sizes.append(np.diff(run.arrays.factor_start))
            lows.append(places[run.arrays.range_low])
            highs.append(places[run.arrays.range_high])
        column, size = np.concatenate(columns), np.concatenate(sizes)
        low, high = np.concatenate(lows), np.concatenate(highs)
        start = np.concatenate([[0], np.cumsum(size)])
        first, place = _each_once(size, start, low, high)
        spans = np.split(place, np.cumsum([len(one) for one in columns])[:-1])
        kept = spread(start, first)
        arrays = {
            "factor_column": column[first],
            "factor_start": np.concatenate([[0], np.cumsum(size[first])]),
            "range_low": low[kept],
            "range_high": high[kept],
        }
        return cls(spans, len(first), arrays)


def _each_once(size: Numbers, start: Numbers, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """One factor of each that are the same, and for every factor which of those it is.

    A cut point belongs to one column, so factors of one interval are the same if its two ends are.
    """
    single = size == 1
    keys = np.full(len(size), -1, np.int64)
    keys[single] = (low[start[:-1][single]] << 32) | high[start[:-1][single]]
    # Those of several intervals, or none, are told apart by where they stand.
    keys[~single] = -1 - np.flatnonzero(~single)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place


def _without_unused(run: QueryRun) -> QueryRun:
    """The run without the factors and cut points that no clause of it uses, as dead clauses leave them."""
    arrays, ranges = run.arrays, run.factors
    used = np.zeros(ranges + len(run.derived_texts), np.bool_)
    used[arrays.clause_factor] = True
    if used.all():
        return run
    place = np.cumsum(used) - 1
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
        "clause_factor": place[arrays.clause_factor],
    }
    texts = [text for text, kept in zip(run.derived_texts, used[ranges:], strict=True) if kept]
    return QueryRun(run.names, run.encodings, typed(Arrays, parts), texts)
