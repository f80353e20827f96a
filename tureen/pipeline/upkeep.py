"""Neighbouring runs are merged, and those that nobody can ask for any more are let go of.

Each step is one function: it looks at the catalog, writes files, and commits. It may be cut off at any point and done
again; so may those of `compiling` and `debts`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import pyarrow as pa

from tureen.errors import DamagedFile, PotError
from tureen.faults import crash_point
from tureen.pipeline.arrival import MAX_RUN_BYTES, MAX_RUN_ROWS, TAIL_ROWS, write_tuples
from tureen.pipeline.debts import matching
from tureen.pipeline.pinning import Pin, pin
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.damage import lost_files, note_lost
from tureen.pot.files import new_attempt
from tureen.pot.parts import missing_file
from tureen.pot.runs import Run, drop_runs, expiring_since, live_runs, note_expiring, replace_runs
from tureen.pot.streams import Stream
from tureen.stems.run import open_run

FAN = 16
"""So many neighbours of one tier are merged into one run of the next."""

LONG_TAIL = 4 * TAIL_ROWS
"""A tail of so many rows is sealed, however few runs it is."""

SLICES = 4
"""A merge reaches over at most one in so many parts of the retention, so that tuples do not stay much longer."""

LEAST_IN_SLICE = 3
"""So many runs that fill a slice are merged, though they be fewer than `FAN`."""

MANY_RUNS = 64
"""A stream of more runs is merged without regard to its slices: its tuples come in an order that has nothing to do with
their time."""

EXPIRED_GRACE = 3600 * 1_000_000
"""Microseconds for which a run before the horizon stays, or the stream's retention if that is shorter."""

_LAST_TIER = 4
"""Runs of larger tiers are as large as a run may be."""


def seal(catalog: Catalog, stream: Stream, *, everything: bool = False) -> bool:
    """Merge neighbouring small runs into one of the next tier; True if something was merged.

    A trickle of rows becomes few files: the newest are scanned, and from some size on a merged run is indexed and
    matched, which pays its debts as well. `everything` seals what is there, whatever its size.
    """
    with catalog.read() as tx:
        runs, lost = live_runs(tx, stream.id), lost_files(tx)
        pinned = pin(tx, catalog.root, stream)
    chosen = choose_merge(runs, lost, everything=everything, retain=stream.retain)
    return bool(chosen) and merge(catalog, stream, chosen, pinned)


def merge(catalog: Catalog, stream: Stream, chosen: Sequence[Run], pinned: Pin) -> bool:
    """Write neighbouring runs as one, indexed and matched anew; False where one of them is gone or damaged."""
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
    with matching:
        merged = write_tuples(pinned, name, pa.concat_tables(tables))
    crash_point("seal.before_commit")
    try:
        with catalog.write() as tx:
            check_attempt(tx, attempt)
            replace_runs(tx, take_seq(tx), chosen, merged)
            crash_point("seal.in_commit")
    except PotError:
        return False  # one of them was merged or dropped meanwhile
    crash_point("seal.after_commit")
    return True


def choose_merge(
    runs: Sequence[Run], lost: Set[str] = frozenset(), *, everything: bool = False, retain: int | None = None
) -> list[Run]:
    """The neighbours to merge next, or none. Runs with damaged tuples, whose paths are `lost`, stay as they are.

    Runs in a row that are at most of one tier, once there are `FAN` of them, the smallest tier first; and a tail
    that has become too long to scan. With a retention, runs are merged with those that expire at about the same time.
    """
    if everything:
        return max(_stretches(runs, lost, _LAST_TIER), key=len, default=[])
    apart = None if retain is None or len(runs) > MANY_RUNS else retain // SLICES
    for tier in range(_LAST_TIER + 1):
        for stretch in _stretches(runs, lost, tier):
            if not any(run.indexed for run in stretch):
                if _is_due(stretch, FAN) or sum(run.rows for run in stretch) >= LONG_TAIL:
                    return stretch
            elif apart is None:
                if _is_due(stretch, FAN):
                    return stretch
            elif part := _choose_slice(stretch, apart):
                return part
    return []


def _choose_slice(stretch: Sequence[Run], apart: int) -> list[Run]:
    """Neighbours in a stretch to merge next that expire within so much time of each other, or none.

    A run expires as a whole, with its last tuple. Where younger runs are merged with it, its tuples stay longer, and
    where it is old, they are written again shortly before they go. So no merge reaches over more than a slice of the
    retention, and what fills a slice is merged, though it be fewer than `FAN`.
    """
    for first in range(len(stretch)):
        low = high = stretch[first].max_time
        last = first
        while last < len(stretch):
            low, high = min(low, stretch[last].max_time), max(high, stretch[last].max_time)
            if high - low > apart:
                break
            last += 1
        if _is_due(stretch[first:last], FAN if last == len(stretch) else LEAST_IN_SLICE):
            return list(stretch[first:last])
    return []


def _is_due(runs: Sequence[Run], least: int) -> bool:
    """Whether there are so many, none of them above half: a tuple is written again only into a run twice as large."""
    return len(runs) >= least and 2 * max(run.rows for run in runs) <= sum(run.rows for run in runs)


def _stretches(runs: Sequence[Run], lost: Set[str], tier: int) -> list[list[Run]]:
    """Two or more neighbours of at most a tier that fit into one run."""
    found: list[list[Run]] = []
    group: list[Run] = []
    for run in runs:
        small = _tier(run) <= tier and run.path not in lost
        full = sum(one.rows for one in group) + run.rows > MAX_RUN_ROWS
        if not small or full or sum(one.bytes for one in group) + run.bytes > MAX_RUN_BYTES:
            found.append(group)
            group = []
        if small:
            group.append(run)
    found.append(group)
    return [group for group in found if len(group) > 1]


def _tier(run: Run) -> int:
    tier, rows = 0, run.rows
    while rows >= FAN:
        rows //= FAN
        tier += 1
    return tier


def expire(catalog: Catalog, stream: Stream, now: int, *, grace: int = EXPIRED_GRACE) -> int:
    """Drop the runs that have been wholly before the stream's horizon for a while; return how many.

    Answers leave out what is before the horizon at once. What a clock that is ahead puts before it is not dropped, and
    is back in answers when the clock is right again, unless that takes longer than the grace.
    """
    horizon = stream.horizon(now)
    if stream.retain is None or horizon is None:
        return 0
    with catalog.read() as tx:
        old = [run for run in live_runs(tx, stream.id) if run.max_time < horizon]
        before = expiring_since(tx, stream.id)
    # Since a time that is yet to come, where the clock was put back.
    since = {run.id: min(before.get(run.id, now), now) for run in old}
    due = [run for run in old if now - since[run.id] >= min(grace, stream.retain)]
    dropped = {run.id for run in due}
    after = {run_id: moment for run_id, moment in since.items() if run_id not in dropped}
    if due or after != before:
        with catalog.write() as tx:
            note_expiring(tx, stream.id, before, after)
            if due:
                take_seq(tx)
                drop_runs(tx, due)
    return len(due)
