"""Panes: the pieces of step windows that overlapping steps share.

Steps of width w and slide s are composed of panes of length gcd(w, s) (Data Stream Sharing, §3.3: windows that are
multiples of one another are composed of the same parts). A strip stores its states pane by pane; a coarser division is
computed from a stored finer one if there is one, otherwise from the hits.
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
    concat_entries,
    fold_entries,
    fold_hits,
    grow_tree,
    room_for,
    table_row,
)
from tureen.errors import QueryFailed

MOST_STEPS = 1 << 24
"""The maximum number of steps of an answer, and of groups in them."""


def panes_at(
    strip: Strip,
    divisions: dict[Division, Panes],
    positions: Callable[[], npt.NDArray[np.int64]],
    division: Division,
    scratch: States,
) -> Panes:
    """The strip's panes on one axis: pane n has the hits with `phase + n * length <= position < … + length`.

    `positions` returns the ascending positions of all hits; it is called only if no finer division is stored.
    """
    panes = divisions.get(division)
    if panes is None:
        length, phase = division
        finer = _finer(divisions, division)
        if finer is None:
            panes = panes_of(strip, (positions() - phase) // length, scratch)
        else:
            panes = _coarser(strip.plan, divisions[finer], finer, division, scratch)
        divisions[division] = panes
    return panes


def panes_of(strip: Strip, numbers: npt.NDArray[np.int64], scratch: States) -> Panes:
    """The strip's panes, given the number of each hit's pane, ascending."""
    hits = changes(numbers)
    occurring = numbers[hits[:-1]]
    starts, entries = fold_hits(strip.plan, strip.columns, strip.codes, hits, occurring, scratch)
    return Panes(occurring, hits, starts, entries)


def pane_entries(strip: Strip, panes: Panes, first: int, last: int, scratch: States) -> Entries:
    """The states by pane of the hits in rows from `first` to before `last`; those of partial panes are recomputed."""
    low, high = strip.hits_before(first), strip.hits_before(last)
    if low >= high:
        return concat_entries(strip.plan, [])
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
        complete = slice(int(panes.starts[begin]), int(panes.starts[end]))
        parts.append(panes.entries.take(complete))
    for pane, start, stop in cuts:
        stretch = np.array([start, stop], np.int64)
        parts.append(
            fold_hits(strip.plan, strip.columns, strip.codes, stretch, panes.numbers[pane : pane + 1], scratch)[1]
        )
    return concat_entries(strip.plan, parts)


def merged(plan: Plan, parts: Sequence[Entries], scratch: States) -> Entries:
    """Entries of several strips, merged to one per interval and group, in that order."""
    entries = concat_entries(plan, parts)
    entries = entries.take(np.argsort(entries.intervals, kind="stable"))
    starts = changes(entries.intervals)
    return fold_entries(plan, entries, starts, entries.intervals[starts[:-1]], scratch)[1]


def covering(panes: npt.NDArray[np.int64], width: int, slide: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The first and the last step that cover each pane; step n covers panes `n * slide` to before `… + width`."""
    return -((width - 1 - panes) // slide), panes // slide


def steps_over(
    panes: npt.NDArray[np.int64], width: int, slide: int, first_step: int, last_step: int
) -> npt.NDArray[np.int64]:
    """The distinct steps from `first_step` to `last_step` that cover any of the given panes, which ascend."""
    first, last = covering(panes, width, slide)
    first, last = np.maximum(first, first_step), np.minimum(last, last_step)
    covered = np.maximum.accumulate(np.concatenate([[first_step - 1], last]))[:-1]
    first = np.maximum(first, covered + 1)
    return stretches(first, np.maximum(last - first + 1, 0))[1]


def stretches(
    firsts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each of `firsts`, `counts` consecutive numbers from it on, with its index; raises if they are too many."""
    total = int(counts.sum())
    if total > MOST_STEPS:
        raise QueryFailed(
            "the answer has too many steps",
            detail=f"at most {MOST_STEPS:,}, got {total:,}",
            hint="use a longer SLIDE, or BEGIN and END",
        )
    source = np.repeat(np.arange(len(counts)), counts)
    return source, firsts[source] + np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)


def step_entries(
    plan: Plan, entries: Entries, steps: npt.NDArray[np.int64], width: int, slide: int, scratch: States
) -> Entries:
    """The states of the given steps, computed by a tree over those of panes in ascending order."""
    if width == slide == 1:
        # Steps of one pane each are the panes themselves.
        if not len(steps):
            return entries
        return entries.take((entries.intervals >= steps[0]) & (entries.intervals <= steps[-1]))
    starts = changes(entries.intervals)
    panes = entries.intervals[starts[:-1]]
    firsts = np.searchsorted(panes, steps * slide)
    lasts = np.searchsorted(panes, steps * slide + width)
    tree = grow_tree(plan, starts, entries, scratch)
    room = int(np.minimum(starts[lasts] - starts[firsts], len(scratch.mark)).sum())
    if room > MOST_STEPS:
        raise QueryFailed(
            "the answer has too many groups in too many steps",
            detail=f"at most {MOST_STEPS:,}, got up to {room:,}",
            hint="use a longer SLIDE, or BEGIN and END",
        )
    output, ends = room_for(plan, room), np.empty(len(steps) + 1, np.int64)
    kernels.fold_steps(plan.program, table_row(tree.addresses()), firsts, lasts, scratch, output, ends)
    result = Entries(np.empty(room, np.int64), *output).take(slice(0, int(ends[-1])))
    return result._replace(intervals=np.repeat(steps, np.diff(ends)))


def _finer(divisions: dict[Division, Panes], division: Division) -> Division | None:
    """The stored division of the longest panes of which those of `division` are composed."""
    length, phase = division
    fitting = [(fine, start) for fine, start in divisions if length % fine == 0 and (phase - start) % fine == 0]
    return max(fitting, default=None)


def _coarser(plan: Plan, panes: Panes, finer: Division, division: Division, scratch: States) -> Panes:
    numbers = (panes.numbers * finer[0] + finer[1] - division[1]) // division[0]
    at = changes(numbers)
    occurring = numbers[at[:-1]]
    starts, entries = fold_entries(plan, panes.entries, panes.starts[at], occurring, scratch)
    return Panes(occurring, panes.hits[at], starts, entries)


def changes(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The start of each stretch of equal numbers, and the end of the last."""
    if not len(numbers):
        return np.zeros(1, np.int64)
    inner = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    return np.concatenate([[0], inner, [len(numbers)]]).astype(np.int64)
