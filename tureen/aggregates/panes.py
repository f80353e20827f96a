"""Panes: the pieces into which step windows are cut, so that steps share them.

Steps of width w and slide s are made of panes of length gcd(w, s) (Data Stream Sharing, §3.3: windows that are
multiples of one another are made of the same parts). A strip keeps its states pane by pane; a coarser division is
made of a finer one that is there already, and only else from the hits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tureen.aggregates.kernels import States
from tureen.aggregates.plan import Plan
from tureen.aggregates.strip import Division, Entries, Panes, Strip, fold_entries, fold_hits, joined


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


def spread(entries: Entries, width: int, slide: int) -> Entries:
    """Entries by pane as entries by step: a pane is part of every step that covers it.

    Step n covers the panes from `n * slide` to before `n * slide + width`.
    """
    last = entries.places // slide
    first = -((width - 1 - entries.places) // slide)
    times = np.maximum(last - first + 1, 0)
    source = np.repeat(np.arange(len(times)), times)
    before = np.repeat(np.cumsum(times) - times, times)
    steps = first[source] + (np.arange(len(source)) - before)
    return entries.take(source)._replace(places=steps)


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
