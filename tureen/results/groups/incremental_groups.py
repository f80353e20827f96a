"""The groups of a window of time over one stream, kept up to date: only those that tuples join or leave are computed.

A tuple joins or leaves when it arrives, or when the window's edge passes it. The groups of these tuples are computed
again from the partial aggregates of all runs; the others keep their states, also when runs are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.groups import GroupNumbers
from tureen.aggregates.selected_kernels import combine_selected
from tureen.aggregates.strip import Entries, Strip, scratch_for
from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.results.rows.grouped import GroupStates, Plans, empty_row, state_rows
from tureen.results.rows.kept import Structure
from tureen.results.rows.ranges import Range, ranges_of
from tureen.results.snapshot.stream_state import StreamState
from tureen.window import Span

Mask = npt.NDArray[np.bool_]


class WindowContent(NamedTuple):
    """The tuples in a window at one moment: those before an id, with times between two bounds, both included."""

    next_id: int
    begin: int | None
    end: int | None

    def ranges(self, state: StreamState) -> list[Range]:
        """The rows of each segment between the bounds, whatever their ids."""
        return ranges_of(state.segments, Span(self.begin, self.end), None)


class GroupRows(NamedTuple):
    """Groups that may differ between two moments, as they were and as they are."""

    before: pa.Table
    after: pa.Table


class IncrementalGroups:
    """The states of all groups at one moment."""

    def __init__(self, plans: Plans) -> None:
        """Start without groups."""
        self._plans, self._plan = plans, plans.partial
        self._content: WindowContent | None = None
        self._groups = GroupNumbers([key.type for key in self._plan.keys])
        self._clear()

    def _clear(self) -> None:
        plan = self._plan
        self._present: Mask = np.zeros(0, np.bool_)
        self._ints, self._floats = np.zeros((0, plan.ints), np.int64), np.zeros((0, plan.floats), np.float64)

    def advance(
        self,
        structure: Structure,
        state: StreamState,
        content: WindowContent,
        query_input: RegisteredInput,
        selector: Selector,
    ) -> GroupRows | None:
        """Advance to another moment; None if a run has no partial aggregates, because an expression raises an error."""
        with structure.lock:
            ranges = content.ranges(state)
            before = [(0, 0)] * len(ranges) if self._content is None else self._content.ranges(state)
            numbers = [number for number, (pair) in enumerate(zip(before, ranges, strict=True)) if _is_read(*pair)]
            strips = structure.strips(state, numbers, query_input, selector)
            if strips is None:
                self._content = None
                return None
            everything = self._content is None or structure.groups is not self._groups
            old = self.rows() if everything else None
            if everything:
                self._groups = structure.groups
                self._clear()
            self._grow()
            selected = self._selected(state, strips, before, ranges, everything=everything)
            changed = self._compute(strips, ranges, selected, old is not None)
            self._content = content
        if old is not None:
            return GroupRows(old, self.rows())
        return changed

    def __len__(self) -> int:
        """The number of groups that have tuples."""
        return int(self._present.sum())

    def rows(self) -> pa.Table:
        """The rows of all groups."""
        codes = np.flatnonzero(self._present).astype(np.int32)
        return self._rows_of(codes, self._ints[codes], self._floats[codes])

    def _grow(self) -> None:
        """Make room for the groups that are new."""
        added = len(self._groups) - len(self._present)
        if added > 0:
            room = max(added, len(self._present) // 2)
            self._present = np.concatenate([self._present, np.zeros(room, np.bool_)])
            self._ints = np.concatenate([self._ints, np.zeros((room, self._plan.ints), np.int64)])
            self._floats = np.concatenate([self._floats, np.zeros((room, self._plan.floats), np.float64)])

    def _selected(
        self,
        state: StreamState,
        strips: Sequence[tuple[int, Strip]],
        before: Sequence[Range],
        after: Sequence[Range],
        *,
        everything: bool,
    ) -> npt.NDArray[np.uint8]:
        """The groups of the tuples that are in the window at one of the two moments only."""
        if everything or self._content is None:
            return np.ones(len(self._groups), np.uint8)
        selected = np.zeros(len(self._groups), np.uint8)
        next_id = self._content.next_id
        ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
        for number, strip in strips:
            segment = state.segments[number]
            if ends[number] <= next_id:
                for first, last in _either(before[number], after[number]):
                    selected[strip.codes[strip.hits_before(first) : strip.hits_before(last)]] = 1
            elif segment.first_id >= next_id:
                first, last = after[number]
                selected[strip.codes[strip.hits_before(first) : strip.hits_before(last)]] = 1
            else:
                rows = strip.hit_rows()
                was_in = _within(rows, before[number]) & (segment.ids_at(rows) < next_id)
                selected[strip.codes[was_in != _within(rows, after[number])]] = 1
        return selected

    def _compute(
        self,
        strips: Sequence[tuple[int, Strip]],
        ranges: Sequence[Range],
        selected: npt.NDArray[np.uint8],
        everything: bool,
    ) -> GroupRows:
        """Compute the states of the selected groups; the rows of those that differ."""
        codes = np.flatnonzero(selected).astype(np.int32)
        was_present, ints, floats = self._present[codes], self._ints[codes], self._floats[codes]
        scratch = scratch_for(self._plan, len(self._groups))
        if strips and len(codes):
            firsts = np.array([ranges[number][0] for number, _ in strips], np.int64)
            lasts = np.array([ranges[number][1] for number, _ in strips], np.int64)
            table = np.concatenate([strip.entry for _, strip in strips]).reshape(len(strips), -1)
            combine_selected(self._plan.program, table, firsts, lasts, selected, scratch)
        is_present = scratch.mark[codes].astype(np.bool_)
        differs = was_present != is_present
        both = was_present & is_present
        differs |= both & (ints != scratch.ints[codes]).any(axis=1)
        # Also from -0.0 to 0.0 and from one NaN to another, which makes no difference later.
        bits = floats.view(np.int64) != scratch.floats[codes].view(np.int64)
        differs |= both & bits.any(axis=1)
        self._present[codes], present = is_present, codes[is_present]
        self._ints[present], self._floats[present] = scratch.ints[present], scratch.floats[present]
        if everything:
            return GroupRows(_NO_ROWS, _NO_ROWS)
        old, new = differs & was_present, codes[differs & is_present]
        return GroupRows(
            self._rows_of(codes[old], ints[old], floats[old], is_whole=bool(differs.any())),
            self._rows_of(new, self._ints[new], self._floats[new], is_whole=bool(differs.any())),
        )

    def _rows_of(
        self,
        codes: npt.NDArray[np.int32],
        ints: npt.NDArray[np.int64],
        floats: npt.NDArray[np.float64],
        *,
        is_whole: bool = True,
    ) -> pa.Table:
        """The rows of groups; if these are all groups and there are none, the row of an answer without GROUP BY."""
        if self._plans.always and is_whole and not len(codes):
            return pa.Table.from_batches([empty_row(self._plan)])
        entries = Entries(np.zeros(len(codes), np.int64), codes, ints, floats)
        states = GroupStates(self._groups.columns(codes), np.zeros(len(codes), np.int64), entries, {})
        return pa.Table.from_batches([state_rows(self._plan, states, None)])


_NO_ROWS = pa.table({})


def _is_read(before: Range, after: Range) -> bool:
    return before[1] > before[0] or after[1] > after[0]


def _within(rows: npt.NDArray[np.int64], bounds: Range) -> Mask:
    mask: Mask = (rows >= bounds[0]) & (rows < bounds[1])
    return mask


def _either(before: Range, after: Range) -> list[Range]:
    """The rows in one of two ranges only, and perhaps those between them."""
    if before[1] <= before[0]:
        return [after]
    if after[1] <= after[0]:
        return [before]
    return [
        (min(before[0], after[0]), max(before[0], after[0])),
        (min(before[1], after[1]), max(before[1], after[1])),
    ]
