"""Compiled loops of key indexes: rows with equal keys form groups, and a directory finds the group of a key.

Keys are an array of one line per compared column. Groups are in order of the hashes of their keys. The first bits of a
hash are the number of a bucket, and the directory has the first group of each bucket, so that the keys of a bucket are
side by side. A filter has some bits for each group, so that most keys without a group are recognized from an array that
is small enough for the processor's cache.
"""

from __future__ import annotations

import numpy as np

from tureen.stems.sort_kernels import compiled

AT_ONCE = 256
"""The number of keys that are looked up together."""


@compiled
def hash_row(keys: np.ndarray, row: int) -> np.uint64:
    """A hash of the keys of a row, of which all bits depend on all bits of these."""
    mixed = np.uint64(0)
    for line in range(keys.shape[0]):
        mixed = (mixed ^ np.uint64(keys[line, row])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@compiled
def bucket_of(mixed: np.uint64, bits: int) -> int:
    """The first bits of a hash; at least one."""
    bucket: int = np.int64(mixed >> np.uint64(64 - bits))  # type: ignore[assignment]
    return bucket


@compiled
def _filter_bits(mixed: np.uint64) -> np.uint64:
    """Three bits of a word of the filter, by the last bits of a hash; the word is found by the first ones."""
    bit = np.uint64(1)
    low, middle, high = mixed & np.uint64(63), (mixed >> np.uint64(6)) & np.uint64(63), mixed >> np.uint64(12)
    return (bit << low) | (bit << middle) | (bit << (high & np.uint64(63)))


@compiled
def hash_keys(keys: np.ndarray, hashes: np.ndarray) -> None:
    """The hashes of all keys."""
    for row in range(hashes.size):
        hashes[row] = hash_row(keys, row)


@compiled
def order_by_hash(keys: np.ndarray, valid: np.ndarray, bits: int, order: np.ndarray, hashes: np.ndarray) -> int:
    """The numbers of valid keys in order of the first bits of their hashes, and the hashes; returns how many."""
    mixed = np.empty(valid.size, np.uint64)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for row in range(valid.size):
        mixed[row] = hash_row(keys, row)
        ends[bucket_of(mixed[row], bits) + 1] += valid[row]
    for bucket in range(ends.size - 1):
        ends[bucket + 1] += ends[bucket]
    count: int = ends[ends.size - 1]
    for row in range(valid.size):
        if valid[row]:
            bucket = bucket_of(mixed[row], bits)
            order[ends[bucket]], hashes[ends[bucket]] = row, mixed[row]
            ends[bucket] += 1
    return count


@compiled
def _is_after(keys: np.ndarray, rows: np.ndarray, first: int, second: int) -> bool:
    """Whether one entry comes after another one: by its keys, then by its row."""
    for line in range(keys.shape[0]):
        if keys[line, first] != keys[line, second]:
            return bool(keys[line, first] > keys[line, second])
    return bool(rows[first] > rows[second])


@compiled
def _sort_bucket(keys: np.ndarray, rows: np.ndarray, begin: int, end: int) -> None:
    """Sort the entries of a bucket: few, or many with the same key, which are in order already (Shell's sort)."""
    is_sorted = True
    for index in range(begin + 1, end):
        if _is_after(keys, rows, index - 1, index):
            is_sorted = False
            break
    if is_sorted:
        return
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for index in range(begin + gap, end):
            at = index
            while at - gap >= begin and _is_after(keys, rows, at - gap, at):
                for line in range(keys.shape[0]):
                    keys[line, at], keys[line, at - gap] = keys[line, at - gap], keys[line, at]
                rows[at], rows[at - gap] = rows[at - gap], rows[at]
                at -= gap
        gap //= 3


@compiled
def sort_by_bucket(
    keys: np.ndarray, valid: np.ndarray, bits: int, ends: np.ndarray, sorted_keys: np.ndarray, rows: np.ndarray
) -> None:
    """Sort the valid rows by bucket, and within a bucket by key and row.

    `ends` has a zero for each bucket and one more; it receives where each bucket ends in `sorted_keys` and `rows`.
    """
    buckets = np.empty(valid.size, np.uint32)
    for row in range(valid.size):
        if valid[row]:
            bucket = bucket_of(hash_row(keys, row), bits)
            buckets[row] = bucket
            ends[bucket + 1] += 1
    for bucket in range(ends.size - 1):
        ends[bucket + 1] += ends[bucket]
    # An end starts as that of the bucket before, and moves with each row.
    for row in range(valid.size):
        if valid[row]:
            at = ends[buckets[row]]
            ends[buckets[row]] += np.uint32(1)
            rows[at] = row
            # Not later by the rows: reads in order and writes that nobody waits for are faster than the reverse.
            for line in range(keys.shape[0]):
                sorted_keys[line, at] = keys[line, row]
    begin = 0
    for bucket in range(ends.size - 1):
        if ends[bucket] > begin + 1:
            _sort_bucket(sorted_keys, rows, begin, ends[bucket])
        begin = ends[bucket]


@compiled
def combine_equal(ends: np.ndarray, keys: np.ndarray, starts: np.ndarray) -> int:
    """Combine neighbours with equal keys to groups; returns how many there are.

    The first columns of `keys` become the keys of the groups, `starts` their first entries, and `ends` has the number
    of groups instead of entries up to the end of each bucket.
    """
    count = begin = 0
    for bucket in range(ends.size - 1):
        end = ends[bucket]
        for index in range(begin, end):
            same = index > begin
            if same:
                for line in range(keys.shape[0]):
                    same = same and keys[line, count - 1] == keys[line, index]
            if not same:
                for line in range(keys.shape[0]):
                    keys[line, count] = keys[line, index]
                starts[count] = index
                count += 1
        ends[bucket] = count
        begin = end
    starts[count] = begin
    return count


@compiled
def fill_filter(keys: np.ndarray, bits: int, words: np.ndarray) -> None:
    """Set the bits of all keys in a filter of 2**bits words."""
    for group in range(keys.shape[1]):
        mixed = hash_row(keys, group)
        words[bucket_of(mixed, bits)] |= _filter_bits(mixed)


@compiled
def pass_filter(hashes: np.ndarray, words: np.ndarray, word_bits: int, numbers: np.ndarray) -> int:
    """Find the keys that may have a group; returns how many, and writes their numbers."""
    count = 0
    for row in range(hashes.size):
        needed = _filter_bits(hashes[row])
        numbers[count] = row
        count += words[bucket_of(hashes[row], word_bits)] & needed == needed
    return count


@compiled
def find_groups(
    keys: np.ndarray,
    hashes: np.ndarray,
    numbers: np.ndarray,
    directory: np.ndarray,
    bits: int,
    stored: np.ndarray,
    starts: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
) -> int:
    """Find the groups of the keys with some numbers; returns how many have one, and moves these to the front.

    `firsts` and `lasts` receive the begins and ends of the groups. A step is done for many keys before the next one:
    large arrays are not in the processor's cache, and reads that do not depend on each other wait for memory together.
    """
    begins, ends, heads = np.empty(AT_ONCE, np.int64), np.empty(AT_ONCE, np.int64), np.empty(AT_ONCE, np.int64)
    count = 0
    # Without groups there is no key to read.
    total = numbers.size if stored.shape[1] else 0
    for first in range(0, total, AT_ONCE):
        size = min(AT_ONCE, total - first)
        for number in range(size):
            bucket = bucket_of(hashes[numbers[first + number]], bits)
            begins[number], ends[number] = directory[bucket], directory[bucket + 1]
        for number in range(size):
            heads[number] = stored[0, min(begins[number], stored.shape[1] - 1)]
        for number in range(size):
            row = numbers[first + number]
            for group in range(begins[number], ends[number]):
                head = heads[number] if group == begins[number] else stored[0, group]
                same = head == keys[0, row]
                for line in range(1, keys.shape[0]):
                    same = same and stored[line, group] == keys[line, row]
                if same:
                    numbers[count], firsts[count] = row, group
                    count += 1
                    break
    for index in range(count):
        group = firsts[index]
        firsts[index], lasts[index] = starts[group], starts[group + 1]
    return count


@compiled
def fill_rows(
    numbers: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
    rows: np.ndarray,
    keys_at: np.ndarray,
    rows_at: np.ndarray,
) -> None:
    """Write the number of each key beside each row of its interval."""
    at = 0
    for number in range(numbers.size):
        for index in range(firsts[number], lasts[number]):
            keys_at[at] = numbers[number]
            rows_at[at] = rows[index]
            at += 1


@compiled
def hash_texts(bounds: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """A hash of each text: the bytes from `bounds[n]` to `bounds[n + 1]`."""
    for row in range(hashes.size):
        mixed = np.uint64(0xCBF29CE484222325)
        for index in range(bounds[row], bounds[row + 1]):
            mixed = (mixed ^ np.uint64(data[index])) * np.uint64(0x100000001B3)
        mixed ^= mixed >> np.uint64(29)
        hashes[row] = np.int64(mixed & np.uint64(0x7FFFFFFFFFFFFFFF))
    return hashes


@compiled
def hash_decimals(words: np.ndarray, factor: int, hashes: np.ndarray) -> np.ndarray:
    """The hash of each number `unscaled × factor`, modulo 2**61 - 1.

    `words` has for each row the low and the high 64 bits of the unscaled number. With the inverse of a power of ten as
    the factor, numbers that are equal at different scales have the same hash.
    """
    prime = np.uint64((1 << 61) - 1)
    half, quarter = np.uint64((1 << 31) - 1), np.uint64((1 << 30) - 1)
    factor_low, factor_high = np.uint64(factor) & half, np.uint64(factor) >> np.uint64(31)
    for row in range(hashes.size):
        # Modulo the prime, 2**64 is 8.
        high = np.uint64(words[row, 1] & 0x7FFFFFFFFFFFFFFF) % prime
        low = np.uint64(words[row, 0]) % prime
        value = (high * np.uint64(8) % prime + low) % prime
        if words[row, 1] < 0:
            # The sign bit counts -2**127, and 2**127 = 2**5.
            value = (value + prime - np.uint64(32)) % prime
        value_low, value_high = value & half, value >> np.uint64(31)
        middle = value_low * factor_high + value_high * factor_low
        product = value_high * factor_high * np.uint64(2) + (middle >> np.uint64(30))
        product += ((middle & quarter) << np.uint64(31)) + value_low * factor_low
        hashes[row] = np.int64(product % prime)
    return hashes
