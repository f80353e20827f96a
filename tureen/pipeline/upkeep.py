"""Merging neighbouring runs, and dropping expired ones.

Each step is one function: it reads the catalog, writes files, and commits. It can be interrupted at any point and
repeated, as can those of `compiling` and `debts`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import pyarrow as pa

from tureen.errors import DamagedFile, PotError
from tureen.faults import crash_point
from tureen.pipeline.arrival import MAX_RUN_BYTES, MAX_RUN_ROWS, TAIL_ROWS, write_tuples
from tureen.pipeline.debts import match_lock
from tureen.pipeline.pinning import Pin, pin
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.damage import lost_files, note_lost
from tureen.pot.files import new_attempt
from tureen.pot.parts import missing_file
from tureen.pot.reserved_ids import reservations
from tureen.pot.runs import Run, drop_runs, expiring_since, live_runs, note_expiring, replace_runs
from tureen.pot.streams import Stream
from tureen.stems.run import open_run

FAN = 16
"""The number of neighbouring runs of a tier that are merged into one run of the next."""

LONG_TAIL = 4 * TAIL_ROWS
"""A tail with this many rows is sealed, whatever the number of its runs."""

SLICES = 4
"""A merge spans at most the retention divided by this, so that tuples do not stay much longer."""

LEAST_IN_SLICE = 3
"""The minimum runs that are merged if they fill such a slice, even if they are fewer than `FAN`."""

MANY_RUNS = 64
"""A stream with more runs is merged regardless of its slices: its tuples do not arrive in order of time."""

EXPIRED_GRACE = 3600 * 1_000_000
"""Microseconds that a run before the horizon stays, or the stream's retention if that is shorter."""

_LAST_TIER = 4
"""Runs of larger tiers have the maximum size."""


def seal(catalog: Catalog, stream: Stream, *, everything: bool = False) -> bool:
    """Merge neighbouring small runs into one of the next tier; True if something was merged.

    Frequent small pushes thus end up in few files: the newest are scanned, and a merged run that is large enough is
    indexed and matched, which also pays its debts. `everything` seals all runs, whatever their size.
    """
    with catalog.read() as tx:
        # Runs that nothing needs are about to be dropped as they are.
        unneeded = expiring_since(tx, stream.id) if stream.keeps_needed else {}
        runs = [run for run in live_runs(tx, stream.id) if run.id not in unneeded]
        if reserved := reservations(tx, stream.id):
            # Rows with reserved ids are still to come between the others.
            runs = [run for run in runs if run.first_id < reserved[0].first_id]
        chosen = choose_merge(runs, lost_files(tx), everything=everything, retain=stream.retain)
        if not chosen:
            return False
        pinned = pin(tx, catalog.root, stream)
    return merge(catalog, stream, chosen, pinned)


def merge(catalog: Catalog, stream: Stream, chosen: Sequence[Run], pinned: Pin) -> bool:
    """Rewrite neighbouring runs as one, indexed and matched again; False if one of them was removed or is damaged."""
    try:
        tables = [
            open_run(catalog.root / run.path, stream.schema).table(stream.schema, run.first_id - chosen[0].first_id)
            for run in chosen
        ]
    except FileNotFoundError as error:
        with catalog.read() as tx:
            live = {run.path for run in live_runs(tx, stream.id)}
        damage = missing_file(error)
        if damage.file in live:
            note_lost(catalog, damage)
        return False
    except DamagedFile as damage:
        note_lost(catalog, damage)
        return False
    attempt = new_attempt()
    name = f"streams/{stream.id}/{attempt}-merged.run"
    crash_point("seal.before_write")
    with match_lock:
        merged = write_tuples(pinned, name, pa.concat_tables(tables))
    crash_point("seal.before_commit")
    try:
        with catalog.write() as tx:
            check_attempt(tx, attempt)
            replace_runs(tx, take_seq(tx), chosen, merged)
            crash_point("seal.in_commit")
    except PotError:
        return False  # one of them was merged or dropped concurrently
    crash_point("seal.after_commit")
    return True


def choose_merge(
    runs: Sequence[Run], lost: Set[str] = frozenset(), *, everything: bool = False, retain: int | None = None
) -> list[Run]:
    """The neighbours to merge next, or none. Runs with damaged tuples, whose paths are `lost`, are not merged.

    These are neighbours of at most one tier, once there are `FAN` of them, the smallest tier first; or a tail that is
    too long to scan. With a retention, runs are merged with those that expire at about the same time.
    """
    if everything:
        return max(_mergeable_groups(runs, lost, _LAST_TIER), key=len, default=[])
    max_span = None if retain is None or len(runs) > MANY_RUNS else retain // SLICES
    for tier in range(_LAST_TIER + 1):
        for group in _mergeable_groups(runs, lost, tier):
            if not any(run.indexed for run in group):
                if _is_due(group, FAN) or sum(run.rows for run in group) >= LONG_TAIL:
                    return group
            elif max_span is None:
                if _is_due(group, FAN):
                    return group
            elif part := _choose_slice(group, max_span):
                return part
    return []


def _choose_slice(group: Sequence[Run], max_span: int) -> list[Run]:
    """Neighbours in a group to merge next whose times of expiry differ by at most `max_span`, or none.

    A run expires as a whole, with its last tuple. If it is merged with younger runs, its tuples stay longer; if it is
    old, they are rewritten shortly before they expire. So a merge spans at most a slice of the retention, and runs that
    fill a slice are merged even if they are fewer than `FAN`.
    """
    for first in range(len(group)):
        low = high = group[first].max_time
        end = first
        while end < len(group):
            low, high = min(low, group[end].max_time), max(high, group[end].max_time)
            if high - low > max_span:
                break
            end += 1
        if _is_due(group[first:end], FAN if end == len(group) else LEAST_IN_SLICE):
            return list(group[first:end])
    return []


def _is_due(runs: Sequence[Run], min_runs: int) -> bool:
    """Whether there are enough runs, none with more than half of the rows: each rewrite at least doubles the run."""
    return len(runs) >= min_runs and 2 * max(run.rows for run in runs) <= sum(run.rows for run in runs)


def _mergeable_groups(runs: Sequence[Run], lost: Set[str], tier: int) -> list[list[Run]]:
    """Groups of two or more neighbours of at most a tier that fit into one run."""
    groups: list[list[Run]] = []
    group: list[Run] = []
    for run in runs:
        small = _tier(run) <= tier and run.path not in lost
        full = sum(member.rows for member in group) + run.rows > MAX_RUN_ROWS
        if not small or full or sum(member.bytes for member in group) + run.bytes > MAX_RUN_BYTES:
            groups.append(group)
            group = []
        if small:
            group.append(run)
    groups.append(group)
    return [group for group in groups if len(group) > 1]


def _tier(run: Run) -> int:
    tier, rows = 0, run.rows
    while rows >= FAN:
        rows //= FAN
        tier += 1
    return tier


def expire(catalog: Catalog, stream: Stream, now: int, *, grace: int = EXPIRED_GRACE) -> int:
    """Drop the runs that have been entirely before the stream's horizon for the grace; return their number.

    Answers exclude tuples before the horizon immediately. If a clock is ahead, the tuples that are before the horizon
    because of it are in answers again once the clock is corrected, unless that takes longer than the grace.
    """
    horizon = stream.horizon(now)
    if stream.retain is None or horizon is None:
        return 0
    with catalog.read() as tx:
        old = [run for run in live_runs(tx, stream.id) if run.max_time < horizon]
        before = expiring_since(tx, stream.id)
    # A stored time is in the future if the clock was set back.
    since = {run.id: min(before.get(run.id, now), now) for run in old}
    due = [run for run in old if now - since[run.id] >= min(grace, stream.retain)]
    dropped = {run.id for run in due}
    after = {run_id: time for run_id, time in since.items() if run_id not in dropped}
    if due or after != before:
        with catalog.write() as tx:
            note_expiring(tx, stream.id, before, after)
            if due:
                take_seq(tx)
                drop_runs(tx, due)
    return len(due)
