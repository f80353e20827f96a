"""Compiled loops of plans: keys of joined tuples, and finding joined tuples by key.

Joined tuples with the same key form a chain: `heads` has the last one of each slot of a table with a power of two
slots, and `nexts` the one before it. -1 ends a chain.
"""

from __future__ import annotations

import numpy as np

from tureen.stems.sort_kernels import compiled


@compiled
def mix_keys(hashes: np.ndarray, keys: np.ndarray, rows: np.ndarray) -> None:
    """Mix another key column into the hash of each joined tuple; `rows` are the tuples that have it."""
    for index in range(rows.size):
        mixed = np.uint64(hashes[index]) ^ np.uint64(keys[rows[index]])
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(29)
        hashes[index] = np.int64(mixed)


@compiled
def link(heads: np.ndarray, nexts: np.ndarray, hashes: np.ndarray, first: int, end: int) -> None:
    """Put rows from `first` to before `end` at the heads of their chains."""
    mask = heads.size - 1
    for row in range(first, end):
        slot = hashes[row] & mask
        nexts[row] = heads[slot]
        heads[slot] = row


@compiled
def find_partners(
    heads: np.ndarray,
    nexts: np.ndarray,
    hashes: np.ndarray,
    latest: np.ndarray,
    until: np.ndarray,
    wants: np.ndarray,
    probe_hashes: np.ndarray,
    probe_latest: np.ndarray,
    probe_until: np.ndarray,
    probe_wants: np.ndarray,
    horizon: int,
    probing: np.ndarray,
    partners: np.ndarray,
) -> int:
    """Pairs of a probe and a row with the same hash, in whose windows both are, and that some query wants.

    Returns how many there are; only those that fit are written.
    """
    mask = heads.size - 1
    count = 0
    for probe in range(probe_hashes.size):
        key = probe_hashes[probe]
        row = heads[key & mask]
        while row >= 0:
            if hashes[row] == key and until[row] >= horizon and wants[row] & probe_wants[probe] != 0:
                begin = max(latest[row], probe_latest[probe])
                if begin <= min(until[row], probe_until[probe]):
                    if count < probing.size:
                        probing[count] = probe
                        partners[count] = row
                    count += 1
            row = nexts[row]
    return count
