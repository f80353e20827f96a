"""Compiled loops of the feedback about demand: tests of tuples, keys of inputs, and tuples that wait for them.

The keys of the inputs are in *directories*: for each pair of inputs, those of the first one that tuples of the second
are compared with. The entries of all directories are in one array, found by a hash table. An entry has a chain of
*watchers*: a suspended tuple has one or, if it waits for a pair, two. Those of the tuple `n` are `2 * n` and the next.
"""

from __future__ import annotations

import numpy as np

from tureen.joining.join_input import Flags
from tureen.stems.sort_kernels import compiled

DIRECTORY, KEY, UNTIL, WANTS, HEAD = range(5)
"""The fields of an entry."""

USED, OWN_LINE, OTHER_LINE, THIRDS = range(4)
"""The fields of a directory; the lines of keys of third inputs, whose hashes are in sets of bits, follow."""

IS_PAIR, FIRST, SECOND, FIRST_SET, SECOND_SET, IS_FINAL = range(6)
"""The fields of a test: a directory or a pair of them, with sets of bits; a tuple that fails a final one is dropped."""

AFTER, BEFORE, OWN, OTHER = range(4)
"""The fields of a watcher: its neighbours in the chain, and the sets of bits that have none in common, or -1."""

ENTRIES, STACK, ACTIVATED, NEXT, END, TESTS, PUBLICATIONS = range(7)
"""Counters: how many there are, the tuples that are still to be published, and what was done so far."""

DROPPED, SUSPENDED, ALIVE, ACTIVE = -1, 0, 1, 2
"""The levels of a tuple: it can join nothing; waits; has partners in later inputs; is in demand."""


def is_waiting(level: np.ndarray) -> Flags:
    """Which tuples are suspended."""
    waiting: Flags = (level == SUSPENDED) | (level == ALIVE)
    return waiting


@compiled
def _mixed(key: int, directory: int) -> np.uint64:
    mixed = (np.uint64(key) + np.uint64(directory)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(32))


@compiled
def _entry(directory: int, key: int, table: np.ndarray, entries: np.ndarray, counts: np.ndarray, adds: bool) -> int:
    """The entry of a key; if there is none, a new one or -1."""
    mask = table.size - 1
    slot = np.int64(_mixed(key, directory) & np.uint64(mask))
    while table[slot] != 0:
        entry = table[slot] - 1
        if entries[entry, KEY] == key and entries[entry, DIRECTORY] == directory:
            return np.int64(entry)  # type: ignore[return-value]
        slot = (slot + 1) & mask
    if not adds:
        return -1
    entry = counts[ENTRIES]
    counts[ENTRIES] += 1
    table[slot] = entry + 1
    entries[entry, DIRECTORY], entries[entry, KEY], entries[entry, WANTS], entries[entry, HEAD] = directory, key, 0, -1
    entries[entry, UNTIL] = np.iinfo(np.int64).min
    return np.int64(entry)  # type: ignore[return-value]


@compiled
def link_entries(table: np.ndarray, entries: np.ndarray, count: int) -> None:
    """Put all entries into an empty hash table."""
    mask = table.size - 1
    for entry in range(count):
        slot = np.int64(_mixed(entries[entry, KEY], entries[entry, DIRECTORY]) & np.uint64(mask))
        while table[slot] != 0:
            slot = (slot + 1) & mask
        table[slot] = entry + 1


@compiled
def _share(bits: np.ndarray, first: int, second: int, words: int) -> bool:
    """Whether two sets of bits have one in common."""
    shares = False
    for word in range(words):
        shares |= bits[first * words + word] & bits[second * words + word] != 0
    return shares


@compiled
def _watch(watcher: int, own: int, other: int, sets: int, entries: np.ndarray, watchers: np.ndarray) -> None:
    """Put a watcher at the head of the chain of an entry, that of its own set of bits."""
    head = entries[own // sets, HEAD]
    watchers[watcher, AFTER], watchers[watcher, BEFORE] = head, -1
    watchers[watcher, OWN], watchers[watcher, OTHER] = own, other
    if head >= 0:
        watchers[head, BEFORE] = watcher
    entries[own // sets, HEAD] = watcher


@compiled
def _unlink(watcher: int, sets: int, entries: np.ndarray, watchers: np.ndarray) -> None:
    """Remove a watcher from its chain."""
    after, before = watchers[watcher, AFTER], watchers[watcher, BEFORE]
    if before >= 0:
        watchers[before, AFTER] = after
    else:
        entries[watchers[watcher, OWN] // sets, HEAD] = after
    if after >= 0:
        watchers[after, BEFORE] = before


@compiled
def _take_watchers(
    entry: int, words: int, sets: int, fresh: np.ndarray, entries: np.ndarray, bits: np.ndarray,
    watchers: np.ndarray, stack: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Put the watchers of an entry on the stack, except those of pairs whose sets have still no bit in common.

    `fresh` has the bit that was added to each set of the entry, or -1: two sets had no bit in common before.
    """
    watcher = entries[entry, HEAD]
    while watcher >= 0:
        after = np.int64(watchers[watcher, AFTER])
        other = watchers[watcher, OTHER]
        if other >= 0:
            bit = fresh[watchers[watcher, OWN] - entry * sets]
            if bit < 0 or bits[other * words + (bit >> 6)] >> np.uint64(bit & 63) & np.uint64(1) == 0:
                watcher = after
                continue
            _unlink(watcher ^ 1, sets, entries, watchers)
        _unlink(watcher, sets, entries, watchers)
        stack[counts[STACK]] = watcher >> 1
        counts[STACK] += 1
        watcher = after


@compiled
def _publish(
    row: int, is_alive: bool, words: int, sets: int, ranks: np.ndarray, directories: np.ndarray,
    inputs: np.ndarray, until: np.ndarray, wants: np.ndarray, keys: np.ndarray,
    table: np.ndarray, entries: np.ndarray, bits: np.ndarray, watchers: np.ndarray, stack: np.ndarray,
    fresh: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Count a tuple as a partner: of inputs of higher ranks when it has arrived, of lower ones when it is alive."""
    number = inputs[row]
    for toward in range(ranks.size):
        directory = number * ranks.size + toward
        if directories[directory, USED] == 0 or (ranks[toward] < ranks[number]) != is_alive:
            continue
        line = directories[directory, OWN_LINE]
        counts[PUBLICATIONS] += 1
        entry = _entry(directory, keys[line, row] if line >= 0 else 0, table, entries, counts, True)
        entries[entry, UNTIL] = max(entries[entry, UNTIL], until[row])
        entries[entry, WANTS] |= wants[row]
        for index in range(sets):
            line = directories[directory, THIRDS + index]
            fresh[index] = -1
            if line >= 0:
                bit = np.int64(_mixed(keys[line, row], 0) >> np.uint64(7) & np.uint64(64 * words - 1))
                word = (entry * sets + index) * words + (bit >> 6)
                if bits[word] >> np.uint64(bit & 63) & np.uint64(1) == 0:
                    bits[word] |= np.uint64(1) << np.uint64(bit & 63)
                    fresh[index] = bit
        if entries[entry, HEAD] >= 0:
            _take_watchers(entry, words, sets, fresh, entries, bits, watchers, stack, counts)


@compiled
def _passes(
    row: int, test: np.ndarray, words: int, sets: int, directories: np.ndarray,
    times: np.ndarray, wants: np.ndarray, level: np.ndarray, keys: np.ndarray,
    table: np.ndarray, entries: np.ndarray, bits: np.ndarray, watchers: np.ndarray, counts: np.ndarray,
) -> bool:  # fmt: skip
    """Whether a tuple passes a test; otherwise it is suspended, or dropped."""
    line = directories[test[FIRST], OTHER_LINE]
    key = keys[line, row] if line >= 0 else 0
    if test[IS_PAIR] == 0:
        entry = _entry(test[FIRST], key, table, entries, counts, test[IS_FINAL] == 0)
        if entry >= 0 and entries[entry, UNTIL] >= times[row] and entries[entry, WANTS] & wants[row] != 0:
            return True
        if test[IS_FINAL] != 0:
            level[row] = DROPPED
        else:
            _watch(2 * row, entry * sets, -1, sets, entries, watchers)
        return False
    first = _entry(test[FIRST], key, table, entries, counts, True)
    line = directories[test[SECOND], OTHER_LINE]
    second = _entry(test[SECOND], keys[line, row], table, entries, counts, True)
    own, other = first * sets + test[FIRST_SET], second * sets + test[SECOND_SET]
    if _share(bits, own, other, words):
        return True
    _watch(2 * row, own, other, sets, entries, watchers)
    _watch(2 * row + 1, other, own, sets, entries, watchers)
    return False


@compiled
def test_tuples(
    words: int, sets: int, is_tested: bool, ranks: np.ndarray, directories: np.ndarray, tests: np.ndarray,
    limits: np.ndarray, tallies: np.ndarray, inputs: np.ndarray, times: np.ndarray, until: np.ndarray,
    wants: np.ndarray, level: np.ndarray, passed: np.ndarray,
    keys: np.ndarray, table: np.ndarray,
    entries: np.ndarray, bits: np.ndarray, watchers: np.ndarray, stack: np.ndarray, active: np.ndarray,
    counts: np.ndarray,
) -> bool:  # fmt: skip
    """Publish new tuples and test them and those that they resume; False if an array must grow before it continues.

    `limits` has for each input how many tests concern higher ranks alone, and how many there are in all. `tallies`
    counts for each test the tuples that were tested, and those that failed.
    """
    room = 2 * ranks.size + 4
    fresh = np.empty(sets, np.int64)
    while True:
        if counts[ENTRIES] + room > min(entries.shape[0], table.size * 2 // 3):
            return False
        if counts[STACK] == 0:
            row = counts[NEXT]
            if row == counts[END]:
                return True
            counts[NEXT] += 1
            if level[row] == DROPPED:
                continue
            _publish(
                row, False, words, sets, ranks, directories, inputs, until, wants, keys, table, entries, bits, watchers,
                stack, fresh, counts,
            )  # fmt: skip
            if level[row] == ACTIVE:
                _publish(
                    row, True, words, sets, ranks, directories, inputs, until, wants, keys, table, entries, bits,
                    watchers, stack, fresh, counts,
                )  # fmt: skip
            elif is_tested:
                stack[counts[STACK]] = row
                counts[STACK] += 1
            continue
        counts[STACK] -= 1
        row = int(stack[counts[STACK]])
        if level[row] == DROPPED:
            continue
        number = inputs[row]
        passes = True
        # What a tuple has passed it will pass again.
        test = np.int64(passed[row])
        while passes:
            if test == limits[number, 0] and level[row] == SUSPENDED:
                level[row] = ALIVE
                _publish(
                    row, True, words, sets, ranks, directories, inputs, until, wants, keys, table, entries, bits,
                    watchers, stack, fresh, counts,
                )  # fmt: skip
            if test == limits[number, 1]:
                level[row] = ACTIVE
                active[counts[ACTIVATED]] = row
                counts[ACTIVATED] += 1
                break
            passes = _passes(
                row, tests[number, test], words, sets, directories, times, wants, level, keys, table, entries, bits,
                watchers, counts,
            )  # fmt: skip
            counts[TESTS] += 1
            tallies[number, test, 0] += 1
            tallies[number, test, 1] += not passes
            test += passes
        passed[row] = test
