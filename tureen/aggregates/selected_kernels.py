"""Compiled loops over the partial aggregates of selected groups: those that a push or the passing of time concerns."""

from __future__ import annotations

import numba
import numpy as np

from tureen.aggregates.aggregate_kernels import (
    CHUNK,
    CODES,
    FAN,
    HIT_ROWS,
    HITS,
    LEVEL_FIRST,
    LEVELS,
    MEASURES,
    NODE_CODES,
    NODE_FLOATS,
    NODE_INTS,
    NODE_START,
    UNBOUNDED,
    StateArrays,
    States,
    add_hits,
    add_states,
    hits_before,
    init_state,
)
from tureen.stems.sort_kernels import Int, compiled, pointer


@compiled
def _add_selected_hits(
    program: np.ndarray,
    measures: np.ndarray,
    codes: np.ndarray,
    low: Int,
    high: Int,
    selected: np.ndarray,
    states: States,
    count: Int,
) -> Int:
    """Add the hits of selected groups from `low` to before `high`; returns the number of touched groups."""
    for hit in range(low, high):
        if selected[codes[hit]] != 0:
            if states.mark[codes[hit]] == 0:
                count = init_state(program, states, codes[hit], count)
            add_hits(program, measures, codes, hit, hit + 1, states)
    return count


@compiled
def _add_selected_states(
    program: np.ndarray, source: StateArrays, low: Int, high: Int, selected: np.ndarray, states: States, count: Int
) -> Int:
    """Add the stored states of selected groups from `low` to before `high`; returns the number of touched groups."""
    for entry in range(low, high):
        if selected[source.codes[entry]] != 0:
            if states.mark[source.codes[entry]] == 0:
                count = init_state(program, states, source.codes[entry], count)
            add_states(program, source, entry, entry + 1, states)
    return count


@compiled
def combine_selected(
    program: np.ndarray,
    strips: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
    selected: np.ndarray,
    states: States,
) -> Int:
    """What `combine` does, for the selected groups only, in the same order: their states are the same, bit by bit."""
    count = 0
    for number in range(strips.shape[0]):
        strip = strips[number]
        hits, chunk = strip[HITS], strip[CHUNK]
        low = hits_before(strip[HIT_ROWS], hits, firsts[number])
        high = hits_before(strip[HIT_ROWS], hits, lasts[number])
        codes = numba.carray(pointer(strip[CODES]), UNBOUNDED, np.int32)
        measures = numba.carray(pointer(strip[MEASURES]), (UNBOUNDED, 2), np.int64)
        first, last = -(-low // chunk), high // chunk
        edge, rest = first * chunk, last * chunk
        if first >= last or strip[LEVELS] == 0:
            first = last = 0
            edge = rest = high
        count = _add_selected_hits(program, measures, codes, low, edge, selected, states, count)
        count = _add_selected_hits(program, measures, codes, rest, high, selected, states, count)
        count = _combine_selected_nodes(program, strip, first, last, selected, states, count)
    return count


@compiled
def _combine_selected_nodes(
    program: np.ndarray, strip: np.ndarray, first: Int, last: Int, selected: np.ndarray, states: States, count: Int
) -> Int:
    """Add the selected groups of the chunks from `first` to before `last`, by the largest nodes within them."""
    levels = numba.carray(pointer(strip[LEVEL_FIRST]), UNBOUNDED, np.int64)
    starts = numba.carray(pointer(strip[NODE_START]), UNBOUNDED, np.int64)
    nodes = StateArrays(
        numba.carray(pointer(strip[NODE_CODES]), UNBOUNDED, np.int32),
        numba.carray(pointer(strip[NODE_INTS]), (UNBOUNDED, states.ints.shape[1]), np.int64),
        numba.carray(pointer(strip[NODE_FLOATS]), (UNBOUNDED, states.floats.shape[1]), np.float64),
    )
    level = 0
    while first < last:
        inner, outer = -(-first // FAN) * FAN, last // FAN * FAN
        if level + 1 == strip[LEVELS] or inner >= outer:
            inner = outer = last
        low, high = starts[levels[level] + first], starts[levels[level] + inner]
        count = _add_selected_states(program, nodes, low, high, selected, states, count)
        low, high = starts[levels[level] + outer], starts[levels[level] + last]
        count = _add_selected_states(program, nodes, low, high, selected, states, count)
        if inner == last:
            break
        first, last, level = inner // FAN, outer // FAN, level + 1
    return count
