"""Panes: the pieces into which step windows are cut, so that steps share them.

Steps of width w and slide s are made of panes of length gcd(w, s) (Data Stream Sharing, §3.3: windows that are
multiples of one another are made of the same parts). A strip keeps its states pane by pane; a coarser division is
made of a finer one that is there already, and only else from the hits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.aggregate_kernels import States
from tureen.aggregates.plan import Plan
from tureen.aggregates.strip import (
    Division,
    Entries,
    Panes,
    Strip,
    fold_entries,
    fold_hits,
    grow_tree,
    joined,
    room_for,
    table_row,
)
from tureen.errors import QueryFailed

MOST_STEPS = 1 << 24
"""An answer has at most so many steps, and so many groups in them."""


def panes_at(
    strip: Strip,
    kept: dict[Division, Panes],
    places: Callable[[], npt.NDArray[np.int64]],
    division: Division,
    scratch: States,
) -> Panes:
    """The strip's panes on one axis: pane n holds the hits with `phase + n * length <= place < … + length`.

    The places of all hits, which do not fall, are asked for only if no finer division is kept.
    """
    found = kept.get(division)
    if found is None:
        length, phase = division
        finer = _finer(kept, division)
        if finer is None:
            found = panes_of(strip, (places() - phase) // length, scratch)
        else:
            found = _coarser(strip.plan, kept[finer], finer, division, scratch)
        kept[division] = found
    return found


def panes_of(strip: Strip, numbers: npt.NDArray[np.int64], scratch: States) -> Panes:
    """The strip's panes, where the number of each hit's pane is known; they do not fall."""
    hits = changes(numbers)
    found = numbers[hits[:-1]]
    starts, entries = fold_hits(strip.plan, strip.columns, strip.codes, hits, found, scratch)
    return Panes(found, hits, starts, entries)


def pane_entries(strip: Strip, panes: Panes, first: int, last: int, scratch: States) -> Entries:
    """The states by pane of the hits in rows from `first` to before `last`: whole panes as kept, cut ones anew."""
    low, high = strip.hits_before(first), strip.hits_before(last)
    if low >= high:
        return joined(strip.plan, [])
    begin = int(np.searchsorted(panes.hits, low, side="left"))
    end = int(np.searchsorted(panes.hits, high, side="right")) - 1
    cuts: list[tuple[int, int, int]] = []
    if begin > end:
        cuts.append((end, low, high))
    else:
        if int(panes.hits[begin]) > low:
            cuts.append((begin - 1, low, int(panes.hits[begin])))
        if int(panes.hits[end]) < high:
            cuts.append((end, int(panes.hits[end]), high))
    parts: list[Entries] = []
    if begin < end:
        whole = slice(int(panes.starts[begin]), int(panes.starts[end]))
        parts.append(panes.entries.take(whole))
    for pane, start, stop in cuts:
        stretch = np.array([start, stop], np.int64)
        parts.append(
            fold_hits(strip.plan, strip.columns, strip.codes, stretch, panes.numbers[pane : pane + 1], scratch)[1]
        )
    return joined(strip.plan, parts)


def merged(plan: Plan, parts: Sequence[Entries], scratch: States) -> Entries:
    """Entries of several strips as one per place and group, in that order."""
    entries = joined(plan, parts)
    entries = entries.take(np.argsort(entries.places, kind="stable"))
    starts = changes(entries.places)
    return fold_entries(plan, entries, starts, entries.places[starts[:-1]], scratch)[1]


def covering(panes: npt.NDArray[np.int64], width: int, slide: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The first and the last step that cover each pane; step n covers those from `n * slide` to before `… + width`."""
    return -((width - 1 - panes) // slide), panes // slide


def steps_over(panes: npt.NDArray[np.int64], width: int, slide: int, least: int, most: int) -> npt.NDArray[np.int64]:
    """The steps from `least` to `most` that cover one of some panes, which ascend; each step once."""
    first, last = covering(panes, width, slide)
    first, last = np.maximum(first, least), np.minimum(last, most)
    seen = np.maximum.accumulate(np.concatenate([[least - 1], last]))[:-1]
    first = np.maximum(first, seen + 1)
    return stretches(first, np.maximum(last - first + 1, 0))[1]


def stretches(
    firsts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """So many numbers from each of `firsts` on, and to which of them each belongs; raises where there are too many."""
    total = int(counts.sum())
    if total > MOST_STEPS:
        raise QueryFailed(
            "the answer has too many steps",
            detail=f"{total:,}, and at most {MOST_STEPS:,} are given",
            hint="write a longer SLIDE, or BEGIN and END",
        )
    source = np.repeat(np.arange(len(counts)), counts)
    return source, firsts[source] + np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)


def step_entries(
    plan: Plan, entries: Entries, steps: npt.NDArray[np.int64], width: int, slide: int, scratch: States
) -> Entries:
    """The states of some steps, from those of panes in ascending order: by a tree over the panes."""
    if width == slide == 1:
        # Steps side by side are panes.
        return entries.take((entries.places >= steps[0]) & (entries.places <= steps[-1])) if len(steps) else entries
    starts = changes(entries.places)
    panes = entries.places[starts[:-1]]
    firsts = np.searchsorted(panes, steps * slide)
    lasts = np.searchsorted(panes, steps * slide + width)
    tree = grow_tree(plan, starts, entries, scratch)
    room = int(np.minimum(starts[lasts] - starts[firsts], len(scratch.mark)).sum())
    if room > MOST_STEPS:
        raise QueryFailed(
            "the answer has too many groups in too many steps",
            detail=f"up to {room:,}, and at most {MOST_STEPS:,} are given",
            hint="write a longer SLIDE, or BEGIN and END",
        )
    lot, ends = room_for(plan, room), np.empty(len(steps) + 1, np.int64)
    kernels.fold_steps(plan.program, table_row(tree.addresses()), firsts, lasts, scratch, lot, ends)
    found = Entries(np.empty(room, np.int64), *lot).take(slice(0, int(ends[-1])))
    return found._replace(places=np.repeat(steps, np.diff(ends)))


def _finer(kept: dict[Division, Panes], division: Division) -> Division | None:
    """The longest panes that are there and of which the wanted ones are made."""
    length, phase = division
    fitting = [one for one in kept if length % one[0] == 0 and (phase - one[1]) % one[0] == 0]
    return max(fitting, default=None)


def _coarser(plan: Plan, panes: Panes, finer: Division, wanted: Division, scratch: States) -> Panes:
    numbers = (panes.numbers * finer[0] + finer[1] - wanted[1]) // wanted[0]
    at = changes(numbers)
    found = numbers[at[:-1]]
    starts, entries = fold_entries(plan, panes.entries, panes.starts[at], found, scratch)
    return Panes(found, panes.hits[at], starts, entries)


def changes(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each stretch of equal numbers begins, and where the last ends."""
    if not len(numbers):
        return np.zeros(1, np.int64)
    inner = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    return np.concatenate([[0], inner, [len(numbers)]]).astype(np.int64)
