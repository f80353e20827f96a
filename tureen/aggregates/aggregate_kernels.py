"""Compiled loops over partial aggregates.

A *state* is what one group has come to: a row of integers and a row of doubles, laid out by a *program*. Each line
of the program is an operation, the measure it looks at, and the first slot that it fills:

```
ROWS      int    how many rows
COUNT     int    how many values that are not NULL
SUM       int ×2 their sum in 128 bits, the lower word first: a sum of BIGINTs does not overflow on the way
MIN, MAX  int    the least and the greatest
AND, OR, XOR     int    their bits together
FSUM      dbl ×2 the sum of doubles and what was lost in rounding it, so that the order of adding hardly matters
MOMENT    dbl ×3 how many, their mean, and the sum of squared distances from it
```

States are kept for some groups at a time. A group is *touched* when its state is first needed: its mark is set, its
number noted, its state made empty. So a call costs what it looks at, however many groups there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tureen.keys import GREATEST_KEY, LEAST_KEY
from tureen.stems.sort_kernels import Int, compiled, pointer

ROWS, COUNT, SUM, MIN, MAX, FSUM, MOMENT, AND, OR, XOR = range(10)

# The fields of a strip's entry: see `tureen.aggregates.strip`.
HITS, PLACES, CODES, MEASURES, CHUNK, LEVELS, LEVEL_FIRST, NODE_START, NODE_CODES, NODE_INTS, NODE_FLOATS = range(11)
FIELDS = 11

FAN = 4
"""So many nodes of the tree are combined in one of the next level."""


class States(NamedTuple):
    """States in the making, by group: which are touched, and what they have come to."""

    mark: np.ndarray
    touched: np.ndarray
    ints: np.ndarray
    floats: np.ndarray


class Lot(NamedTuple):
    """States that are kept: the group of each, its integers and its doubles."""

    codes: np.ndarray
    ints: np.ndarray
    floats: np.ndarray


_LEAST, _GREATEST = np.int64(LEAST_KEY), np.int64(GREATEST_KEY)
_MANY = 1 << 40


@compiled
def _touch(program: np.ndarray, states: States, group: Int, count: Int) -> Int:
    """Make the state of a group empty that is not marked yet; return how many are touched."""
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
def _touch_all(program: np.ndarray, states: States, codes: np.ndarray, low: Int, high: Int, count: Int) -> Int:
    """Touch the groups from `low` to before `high`; return how many are touched."""
    for place in range(low, high):
        if states.mark[codes[place]] == 0:
            count = _touch(program, states, codes[place], count)
    return count


@compiled
def _add_wide(ints: np.ndarray, group: Int, slot: Int, low: Int, high: Int) -> None:
    """Add a number of 128 bits."""
    before = ints[group, slot]
    after = before + low
    # The lower words are unsigned: with the sign bit turned they compare as such.
    carry = 1 if (after ^ _LEAST) < (before ^ _LEAST) else 0
    ints[group, slot] = after
    ints[group, slot + 1] += high + carry


@compiled
def _add_exactly(floats: np.ndarray, group: Int, slot: Int, value: float, lost: float) -> None:
    """Add a double and keep what rounding loses (Knuth's two-sum)."""
    before = floats[group, slot]
    total = before + value
    part = total - before
    floats[group, slot] = total
    floats[group, slot + 1] += (before - (total - part)) + (value - part) + lost


@compiled
def _add_moment(floats: np.ndarray, group: Int, slot: Int, rows: float, mean: float, squares: float) -> None:
    """Combine two sets of values of which number, mean and squared distances are known (Chan et al.)."""
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
def _absorb(program: np.ndarray, measures: np.ndarray, codes: np.ndarray, low: Int, high: Int, states: States) -> None:
    """Add the hits from `low` to before `high` to the states of their groups, which are touched."""
    ints, floats = states.ints, states.floats
    for line in range(program.shape[0]):
        op, slot = program[line, 0], program[line, 2]
        if op == ROWS:
            for hit in range(low, high):
                ints[codes[hit], slot] += 1
            continue
        place, nulls = measures[program[line, 1], 0], measures[program[line, 1], 1]
        present = numba.carray(pointer(nulls), _MANY, np.uint8)
        keys = numba.carray(pointer(place), _MANY, np.int64)
        doubles = numba.carray(pointer(place), _MANY, np.float64)
        for hit in range(low, high):
            if nulls != 0 and present[hit] == 0:
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
def _merge(program: np.ndarray, lot: Lot, low: Int, high: Int, states: States) -> None:
    """Add the kept states from `low` to before `high` to those of their groups, which are touched."""
    ints, floats = states.ints, states.floats
    for line in range(program.shape[0]):
        op, slot = program[line, 0], program[line, 2]
        for entry in range(low, high):
            group = lot.codes[entry]
            if op in (ROWS, COUNT):
                ints[group, slot] += lot.ints[entry, slot]
            elif op == SUM:
                _add_wide(ints, group, slot, lot.ints[entry, slot], lot.ints[entry, slot + 1])
            elif op == MIN:
                ints[group, slot] = min(ints[group, slot], lot.ints[entry, slot])
            elif op == MAX:
                ints[group, slot] = max(ints[group, slot], lot.ints[entry, slot])
            elif op == FSUM:
                _add_exactly(floats, group, slot, lot.floats[entry, slot], lot.floats[entry, slot + 1])
            elif op == AND:
                ints[group, slot] &= lot.ints[entry, slot]
            elif op == OR:
                ints[group, slot] |= lot.ints[entry, slot]
            elif op == XOR:
                ints[group, slot] ^= lot.ints[entry, slot]
            else:
                rows, mean, squares = (
                    lot.floats[entry, slot],
                    lot.floats[entry, slot + 1],
                    lot.floats[entry, slot + 2],
                )
                _add_moment(floats, group, slot, rows, mean, squares)


@compiled
def _emit(states: States, count: Int, lot: Lot, done: Int) -> Int:
    """Write the touched states out in order of their groups, and untouch them."""
    states.touched[:count].sort()
    for number in range(count):
        group = states.touched[number]
        states.mark[group] = 0
        lot.codes[done] = group
        for slot in range(states.ints.shape[1]):
            lot.ints[done, slot] = states.ints[group, slot]
        for slot in range(states.floats.shape[1]):
            lot.floats[done, slot] = states.floats[group, slot]
        done += 1
    return done


@compiled
def count_entries(codes: np.ndarray, starts: np.ndarray, mark: np.ndarray) -> Int:
    """How many groups the stretches of hits between `starts` have, each stretch by itself."""
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
    lot: Lot,
    lot_start: np.ndarray,
) -> None:
    """The states of the groups of each stretch of hits, and where each stretch's begin."""
    done = 0
    for stretch in range(starts.size - 1):
        low, high = starts[stretch], starts[stretch + 1]
        lot_start[stretch] = done
        count = _touch_all(program, states, codes, low, high, 0)
        _absorb(program, measures, codes, low, high, states)
        done = _emit(states, count, lot, done)
    lot_start[starts.size - 1] = done


@compiled
def fold_lot(
    program: np.ndarray, source: Lot, starts: np.ndarray, states: States, lot: Lot, lot_start: np.ndarray
) -> None:
    """The states of the groups of each stretch of kept states, and where each stretch's begin."""
    done = 0
    for stretch in range(starts.size - 1):
        low, high = starts[stretch], starts[stretch + 1]
        lot_start[stretch] = done
        count = _touch_all(program, states, source.codes, low, high, 0)
        _merge(program, source, low, high, states)
        done = _emit(states, count, lot, done)
    lot_start[starts.size - 1] = done


@compiled
def hits_before(places: Int, hits: Int, row: Int) -> Int:
    """How many of a strip's hits are in rows before that one."""
    if places == 0:
        return min(max(row, 0), hits)
    rows = numba.carray(pointer(places), _MANY, np.int32)
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
    """Add a stretch of rows of each strip to the states of its groups; return how many groups are touched.

    What lies at the two edges comes from the rows, what is between them from the tree.
    """
    count = 0
    for number in range(strips.shape[0]):
        strip = strips[number]
        hits, chunk = strip[HITS], strip[CHUNK]
        low = hits_before(strip[PLACES], hits, firsts[number])
        high = hits_before(strip[PLACES], hits, lasts[number])
        codes = numba.carray(pointer(strip[CODES]), _MANY, np.int32)
        measures = numba.carray(pointer(strip[MEASURES]), (_MANY, 2), np.int64)
        first, last = -(-low // chunk), high // chunk
        edge, rest = first * chunk, last * chunk
        if first >= last or strip[LEVELS] == 0:
            first = last = 0
            edge = rest = high
        count = _touch_all(program, states, codes, low, edge, count)
        _absorb(program, measures, codes, low, edge, states)
        count = _touch_all(program, states, codes, rest, high, count)
        _absorb(program, measures, codes, rest, high, states)
        count = _combine_nodes(program, strip, first, last, states, count)
    return count


@compiled
def _combine_nodes(program: np.ndarray, strip: np.ndarray, first: Int, last: Int, states: States, count: Int) -> Int:
    """Add the chunks from `first` to before `last`, by the largest nodes that lie within them."""
    levels = numba.carray(pointer(strip[LEVEL_FIRST]), _MANY, np.int64)
    starts = numba.carray(pointer(strip[NODE_START]), _MANY, np.int64)
    lot = Lot(
        numba.carray(pointer(strip[NODE_CODES]), _MANY, np.int32),
        numba.carray(pointer(strip[NODE_INTS]), (_MANY, states.ints.shape[1]), np.int64),
        numba.carray(pointer(strip[NODE_FLOATS]), (_MANY, states.floats.shape[1]), np.float64),
    )
    level = 0
    while first < last:
        inner, outer = -(-first // FAN) * FAN, last // FAN * FAN
        if level + 1 == strip[LEVELS] or inner >= outer:
            inner = outer = last
        for at in range(levels[level] + first, levels[level] + inner):
            count = _touch_all(program, states, lot.codes, starts[at], starts[at + 1], count)
            _merge(program, lot, starts[at], starts[at + 1], states)
        for at in range(levels[level] + outer, levels[level] + last):
            count = _touch_all(program, states, lot.codes, starts[at], starts[at + 1], count)
            _merge(program, lot, starts[at], starts[at + 1], states)
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
    lot: Lot,
    lot_start: np.ndarray,
) -> None:
    """The states of the groups of each step: of the nodes from `firsts` to before `lasts` of a tree's lowest level."""
    done = 0
    for step in range(firsts.size):
        lot_start[step] = done
        count = _combine_nodes(program, tree, firsts[step], lasts[step], states, 0)
        done = _emit(states, count, lot, done)
    lot_start[firsts.size] = done
