"""Compiled loops over partial aggregates.

A *state* is the partial aggregate of one group: a row of integers and a row of doubles, laid out by a *program*. Each
line of the program has an operation, the measure that it reads, and the first slot that it fills:

```
ROWS      int    the number of rows
COUNT     int    the number of values that are not NULL
SUM       int ×2 their sum in 128 bits, the lower word first, so that a sum of BIGINTs does not overflow midway
MIN, MAX  int    the least and the greatest
AND, OR, XOR     int    their bitwise combination
FSUM      dbl ×2 the sum of doubles and its rounding error, so that the order of addition hardly matters
MOMENT    dbl ×3 their number, their mean, and the sum of squared distances from it
```

A group is *touched* when its state is first needed: its mark is set, its number recorded, its state initialized. So the
cost of a call does not depend on the number of groups that it does not use.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tureen.keys import GREATEST_KEY, LEAST_KEY
from tureen.stems.sort_kernels import Int, compiled, pointer

ROWS, COUNT, SUM, MIN, MAX, FSUM, MOMENT, AND, OR, XOR = range(10)

# The fields of a strip's entry: see `tureen.aggregates.strip`.
HITS, HIT_ROWS, CODES, MEASURES, CHUNK, LEVELS, LEVEL_FIRST, NODE_START, NODE_CODES, NODE_INTS, NODE_FLOATS = range(11)
FIELDS = 11

FAN = 4
"""The number of nodes of the tree that are combined in one node of the next level."""


class States(NamedTuple):
    """Scratch space for states, by group: which groups are touched, and their states."""

    mark: np.ndarray
    touched: np.ndarray
    ints: np.ndarray
    floats: np.ndarray


class StateArrays(NamedTuple):
    """Stored states: the group of each, its integers and its doubles."""

    codes: np.ndarray
    ints: np.ndarray
    floats: np.ndarray


_LEAST, _GREATEST = np.int64(LEAST_KEY), np.int64(GREATEST_KEY)
UNBOUNDED = 1 << 40


@compiled
def init_state(program: np.ndarray, states: States, group: Int, count: Int) -> Int:
    """Touch a group that is not marked yet; returns the number of touched groups."""
    states.mark[group] = 1
    states.touched[count] = group
    for slot in range(states.ints.shape[1]):
        states.ints[group, slot] = 0
    for slot in range(states.floats.shape[1]):
        states.floats[group, slot] = 0.0
    for line in range(program.shape[0]):
        if program[line, 0] == MIN:
            states.ints[group, program[line, 2]] = _GREATEST
        elif program[line, 0] == MAX:
            states.ints[group, program[line, 2]] = _LEAST
        elif program[line, 0] == AND:
            states.ints[group, program[line, 2]] = -1
    return count + 1


@compiled
def _init_states(program: np.ndarray, states: States, codes: np.ndarray, low: Int, high: Int, count: Int) -> Int:
    """Touch the groups `codes[low:high]`; returns the number of touched groups."""
    for index in range(low, high):
        if states.mark[codes[index]] == 0:
            count = init_state(program, states, codes[index], count)
    return count


@compiled
def _add_wide(ints: np.ndarray, group: Int, slot: Int, low: Int, high: Int) -> None:
    """Add a 128-bit number."""
    before = ints[group, slot]
    after = before + low
    # The lower words are unsigned: with the sign bit flipped they compare correctly.
    carry = 1 if (after ^ _LEAST) < (before ^ _LEAST) else 0
    ints[group, slot] = after
    ints[group, slot + 1] += high + carry


@compiled
def _add_exactly(floats: np.ndarray, group: Int, slot: Int, value: float, lost: float) -> None:
    """Add a double and its rounding error (Knuth's two-sum)."""
    before = floats[group, slot]
    total = before + value
    part = total - before
    floats[group, slot] = total
    floats[group, slot + 1] += (before - (total - part)) + (value - part) + lost


@compiled
def _add_moment(floats: np.ndarray, group: Int, slot: Int, rows: float, mean: float, squares: float) -> None:
    """Combine the number, mean and squared distances of two sets of values (Chan et al.)."""
    if rows == 0:
        return
    before = floats[group, slot]
    total = before + rows
    distance = mean - floats[group, slot + 1]
    floats[group, slot] = total
    if before == 0:
        floats[group, slot + 1] = mean
        floats[group, slot + 2] = squares
        return
    floats[group, slot + 1] += distance * (rows / total)
    floats[group, slot + 2] += squares + distance * distance * (before * rows / total)


@compiled
def add_hits(program: np.ndarray, measures: np.ndarray, codes: np.ndarray, low: Int, high: Int, states: States) -> None:
    """Add the hits from `low` to before `high` to the states of their groups, which must be touched."""
    ints, floats = states.ints, states.floats
    for line in range(program.shape[0]):
        op, slot = program[line, 0], program[line, 2]
        if op == ROWS:
            for hit in range(low, high):
                ints[codes[hit], slot] += 1
            continue
        values_at, present_at = measures[program[line, 1], 0], measures[program[line, 1], 1]
        present = numba.carray(pointer(present_at), UNBOUNDED, np.uint8)
        keys = numba.carray(pointer(values_at), UNBOUNDED, np.int64)
        doubles = numba.carray(pointer(values_at), UNBOUNDED, np.float64)
        for hit in range(low, high):
            if present_at != 0 and present[hit] == 0:
                continue
            group = codes[hit]
            if op == COUNT:
                ints[group, slot] += 1
            elif op == SUM:
                _add_wide(ints, group, slot, keys[hit], keys[hit] >> 63)
            elif op == MIN:
                ints[group, slot] = min(ints[group, slot], keys[hit])
            elif op == MAX:
                ints[group, slot] = max(ints[group, slot], keys[hit])
            elif op == FSUM:
                _add_exactly(floats, group, slot, doubles[hit], 0.0)
            elif op == AND:
                ints[group, slot] &= keys[hit]
            elif op == OR:
                ints[group, slot] |= keys[hit]
            elif op == XOR:
                ints[group, slot] ^= keys[hit]
            else:
                _add_moment(floats, group, slot, 1.0, doubles[hit], 0.0)


@compiled
def add_states(program: np.ndarray, source: StateArrays, low: Int, high: Int, states: States) -> None:
    """Add the stored states from `low` to before `high` to those of their groups, which must be touched."""
    ints, floats = states.ints, states.floats
    for line in range(program.shape[0]):
        op, slot = program[line, 0], program[line, 2]
        for entry in range(low, high):
            group = source.codes[entry]
            if op in (ROWS, COUNT):
                ints[group, slot] += source.ints[entry, slot]
            elif op == SUM:
                _add_wide(ints, group, slot, source.ints[entry, slot], source.ints[entry, slot + 1])
            elif op == MIN:
                ints[group, slot] = min(ints[group, slot], source.ints[entry, slot])
            elif op == MAX:
                ints[group, slot] = max(ints[group, slot], source.ints[entry, slot])
            elif op == FSUM:
                _add_exactly(floats, group, slot, source.floats[entry, slot], source.floats[entry, slot + 1])
            elif op == AND:
                ints[group, slot] &= source.ints[entry, slot]
            elif op == OR:
                ints[group, slot] |= source.ints[entry, slot]
            elif op == XOR:
                ints[group, slot] ^= source.ints[entry, slot]
            else:
                rows, mean, squares = (
                    source.floats[entry, slot],
                    source.floats[entry, slot + 1],
                    source.floats[entry, slot + 2],
                )
                _add_moment(floats, group, slot, rows, mean, squares)


@compiled
def _emit(states: States, count: Int, output: StateArrays, entries: Int) -> Int:
    """Write the touched states in order of their groups, and reset their marks; returns the number of entries."""
    states.touched[:count].sort()
    for number in range(count):
        group = states.touched[number]
        states.mark[group] = 0
        output.codes[entries] = group
        for slot in range(states.ints.shape[1]):
            output.ints[entries, slot] = states.ints[group, slot]
        for slot in range(states.floats.shape[1]):
            output.floats[entries, slot] = states.floats[group, slot]
        entries += 1
    return entries


@compiled
def count_entries(codes: np.ndarray, starts: np.ndarray, mark: np.ndarray) -> Int:
    """The total number of groups of all stretches of hits, where each stretch counts its own groups."""
    total = 0
    for stretch in range(starts.size - 1):
        for hit in range(starts[stretch], starts[stretch + 1]):
            if mark[codes[hit]] == 0:
                mark[codes[hit]] = 1
                total += 1
        for hit in range(starts[stretch], starts[stretch + 1]):
            mark[codes[hit]] = 0
    return total


@compiled
def fold_hits(
    program: np.ndarray,
    measures: np.ndarray,
    codes: np.ndarray,
    starts: np.ndarray,
    states: States,
    output: StateArrays,
    output_start: np.ndarray,
) -> None:
    """Compute the states of the groups of each stretch of hits, and the start of each stretch's states."""
    entries = 0
    for stretch in range(starts.size - 1):
        low, high = starts[stretch], starts[stretch + 1]
        output_start[stretch] = entries
        count = _init_states(program, states, codes, low, high, 0)
        add_hits(program, measures, codes, low, high, states)
        entries = _emit(states, count, output, entries)
    output_start[starts.size - 1] = entries


@compiled
def fold_states(
    program: np.ndarray,
    source: StateArrays,
    starts: np.ndarray,
    states: States,
    output: StateArrays,
    output_start: np.ndarray,
) -> None:
    """Compute the states of the groups of each stretch of stored states, and the start of each stretch's states."""
    entries = 0
    for stretch in range(starts.size - 1):
        low, high = starts[stretch], starts[stretch + 1]
        output_start[stretch] = entries
        count = _init_states(program, states, source.codes, low, high, 0)
        add_states(program, source, low, high, states)
        entries = _emit(states, count, output, entries)
    output_start[starts.size - 1] = entries


@compiled
def hits_before(rows_at: Int, hits: Int, row: Int) -> Int:
    """The number of a strip's hits in rows before a given row."""
    if rows_at == 0:
        return min(max(row, 0), hits)
    rows = numba.carray(pointer(rows_at), UNBOUNDED, np.int32)
    low, high = 0, hits
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def combine(program: np.ndarray, strips: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, states: States) -> Int:
    """Add an interval of rows of each strip to the states of its groups; returns the number of touched groups.

    Whole chunks are added from the tree, the rest at both ends from the hits.
    """
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
        count = _init_states(program, states, codes, low, edge, count)
        add_hits(program, measures, codes, low, edge, states)
        count = _init_states(program, states, codes, rest, high, count)
        add_hits(program, measures, codes, rest, high, states)
        count = _combine_nodes(program, strip, first, last, states, count)
    return count


@compiled
def _combine_nodes(program: np.ndarray, strip: np.ndarray, first: Int, last: Int, states: States, count: Int) -> Int:
    """Add the chunks from `first` to before `last`, by the largest nodes within them."""
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
        for at in range(levels[level] + first, levels[level] + inner):
            count = _init_states(program, states, nodes.codes, starts[at], starts[at + 1], count)
            add_states(program, nodes, starts[at], starts[at + 1], states)
        for at in range(levels[level] + outer, levels[level] + last):
            count = _init_states(program, states, nodes.codes, starts[at], starts[at + 1], count)
            add_states(program, nodes, starts[at], starts[at + 1], states)
        if inner == last:
            break
        first, last, level = inner // FAN, outer // FAN, level + 1
    return count


@compiled
def fold_steps(
    program: np.ndarray,
    tree: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
    states: States,
    output: StateArrays,
    output_start: np.ndarray,
) -> None:
    """Compute the states of the groups of each step: of a tree's lowest nodes from `firsts` to before `lasts`."""
    entries = 0
    for step in range(firsts.size):
        output_start[step] = entries
        count = _combine_nodes(program, tree, firsts[step], lasts[step], states, 0)
        entries = _emit(states, count, output, entries)
    output_start[firsts.size] = entries
