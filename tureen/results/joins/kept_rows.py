"""Kept rows: the rows of a query that contains a kept join, from its join runs and from what is owed.

A join run has the joined tuples of all queries with that join. Those that satisfy the clauses of a query are selected
once per run and remembered, because neither a run nor a clause ever changes. At an invocation, what remains is to find
the tuples of these rows and to compare them with the windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tureen.bounded_cache import BoundedCache
from tureen.joining.join_input import Flags, Numbers
from tureen.joining.join_limits import JoinLimits
from tureen.joining.joined_rows import JoinedRows
from tureen.pot.kept_joins import Ids, KeptJoin
from tureen.results.joins.join_inputs import Ids as IdInterval
from tureen.results.joins.join_inputs import StreamInput, matches_within, numbers_of
from tureen.results.joins.joined import JoinedMatches
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.new_joined_tuples import id_limits, join_new
from tureen.results.rows.gather import StreamMatches
from tureen.results.rows.placed_tuples import TuplePlaces, find_tuples, placed_by_id
from tureen.results.rows.selection import Selection
from tureen.results.snapshot.segment import Hits, Segment
from tureen.stems.join_run import JoinedTuples, OpenJoinRun, concatenated
from tureen.stream_join import StreamJoin

REMEMBERED = 4096
"""The number of selections of join runs that a process remembers."""

SPARSE = 16
"""If fewer than one in this many rows of a segment are in joined tuples, they are sorted instead of looked up."""

Selected = npt.NDArray[np.int32]
"""The numbers of the rows of a join run that satisfy the clauses of a query."""


class ClauseRows:
    """The rows of join runs that satisfy clauses, as a process remembers them."""

    def __init__(self) -> None:
        """Remember none."""
        self._selected: BoundedCache[tuple[str, tuple[int | None, ...]], Selected] = BoundedCache(REMEMBERED)
        self._checked: BoundedCache[tuple[tuple[int, ...], int | None], bool] = BoundedCache(REMEMBERED)

    def of(self, path: str, tuples: JoinedTuples, selections: Sequence[Selection]) -> Selected:
        """The rows of the run of that path that satisfy the clauses of selections."""
        clauses = tuple(selection.query_input.clause_id for selection in selections)
        if None in clauses:
            return _select(tuples, selections)
        return self._selected.get((path, clauses), lambda: _select(tuples, selections))

    def check(self, selection: Selection) -> None:
        """Raise QueryFailed if a clause raises for a tuple of a segment with tuples in the window.

        Also tuples without a partner count, as they do where a join is evaluated. Only ranges never raise.
        """
        if not selection.selector.derived:
            return
        for segment, (first, last) in zip(selection.state.segments, selection.ranges, strict=True):
            if last > first:
                key = segment.key, selection.query_input.clause_id
                self._checked.get(key, partial(_evaluate, segment, selection))


@dataclass(frozen=True)
class KeptRows:
    """The rows of a query's stream join in one snapshot."""

    join: StreamJoin
    state: KeptJoin
    runs: Sequence[OpenJoinRun]
    selections: Sequence[Selection]
    """The tuples of each stream of the join that satisfy the query's clause within its window."""
    numbers: tuple[int, ...]
    """The numbers of these streams among the query's inputs."""
    selected: ClauseRows
    indexes: KeyIndexes
    limits: JoinLimits

    def tuples(self) -> JoinedTuples:
        """The joined tuples that satisfy the clauses within the windows; raises if they exceed the limit."""
        tuples = concatenated(len(self.selections), [*self._kept(), *self.owed()])
        self.limits.check_rows(len(tuples))
        return tuples

    def inputs(self, tuples: JoinedTuples, whole: Sequence[bool]) -> tuple[list[StreamInput], list[Numbers]]:
        """For each stream the tuples that occur in joined ones, each once; and their numbers in the joined ones.

        Of streams that are `whole`, all tuples that satisfy the clause within the window.
        """
        inputs, numbers = [], []
        for selection, ids, is_whole in zip(self.selections, tuples.ids, whole, strict=True):
            if is_whole:
                matches = selection.matches()
                inputs.append(StreamInput(matches, self.indexes))
                numbers.append(_numbers_in(selection, matches, ids))
            else:
                with_partner, of_tuples = _matches_of(selection, ids)
                inputs.append(StreamInput(with_partner))
                numbers.append(of_tuples)
        return inputs, numbers

    def matches(self, tuples: JoinedTuples) -> JoinedMatches:
        """Joined tuples as matches, in the order that they have, if the query has no other inputs."""
        of_query = {
            number: placed_by_id(selection.state.stream.schema, selection.state.segments, ids)
            for number, selection, ids in zip(self.numbers, self.selections, tuples.ids, strict=True)
        }
        rows = JoinedRows(dict.fromkeys(self.numbers, np.arange(len(tuples))), len(tuples))
        return JoinedMatches([of_query[number] for number in range(len(of_query))], rows, tuples.times)

    @property
    def ends(self) -> Ids:
        """For each stream, the id after its last tuple."""
        return tuple(selection.state.stream.next_id for selection in self.selections)

    def owed(self) -> list[JoinedTuples]:
        """The joined tuples within the windows that are in no join run."""
        return self.joined_since(self.state.progress)

    def joined_since(self, ids: Ids) -> list[JoinedTuples]:
        """The joined tuples within the windows that contain a tuple from some id of its stream on."""
        return [
            join_new(self.join, new, limits, self._input_within, self.limits)
            for new, limits in id_limits(ids, self.ends)
        ]

    def existing(self, number: int) -> tuple[Selected, JoinedTuples]:
        """The rows of a join run that satisfy the clauses, in the windows or not; without those of dropped tuples."""
        rows, tuples = self._selected(number), self.runs[number].tuples
        for selection, ids in zip(self.selections, tuples.ids, strict=True):
            exists = find_tuples(selection.state.segments, ids[rows]).segments >= 0
            rows = rows if exists.all() else rows[exists]
        return rows, tuples.take(rows)

    def in_windows(self, number: int, rows: Selected) -> JoinedTuples:
        """Those of a join run's rows whose tuples are in the windows."""
        return self._in_windows(self.runs[number].tuples.take(rows))

    def selected_rows(self) -> int:
        """The number of rows of join runs that satisfy the clauses, in the windows or not."""
        return sum(len(self._selected(number)) for number in range(len(self.runs)))

    def _selected(self, number: int) -> Selected:
        return self.selected.of(self.state.runs[number].path, self.runs[number].tuples, self.selections)

    def _kept(self) -> Iterator[JoinedTuples]:
        begins = [selection.begin for selection in self.selections if selection.begin is not None]
        for number, opened in enumerate(self.runs):
            tuples, selected = opened.tuples, self._selected(number)
            if len(begins) == len(self.selections):
                # Rows are in order of their earliest tuple.
                first = int(np.searchsorted(tuples.times, min(begins)))
                selected = selected[np.searchsorted(selected, first) :]
            if len(selected):
                yield self._in_windows(tuples if len(selected) == len(tuples) else tuples.take(selected))

    def _in_windows(self, tuples: JoinedTuples) -> JoinedTuples:
        for number, selection in enumerate(self.selections):
            ids = tuples.ids[number]
            if _selects_all(selection, ids):
                continue
            inside = _within(selection, find_tuples(selection.state.segments, ids))
            if not inside.all():
                tuples = tuples.take(inside)
        return tuples

    def _input_within(self, index: int, ids: IdInterval, _: StreamInput | None) -> StreamInput:
        selection = self.selections[index]
        state = selection.state

        def select(number: int) -> Hits | None:
            segment = state.segments[number]
            first, last = segment.positions_within(*selection.ranges[number], ids)
            return segment.hits(selection.query_input, selection.selector, first, last) if last > first else None

        stream = state.stream
        return StreamInput(matches_within(stream.schema, state.segments, stream.next_id, ids, select), self.indexes)


def _evaluate(segment: Segment, selection: Selection) -> bool:
    """Evaluate a clause for all tuples of a segment, which raises if it fails for one."""
    segment.hits(selection.query_input, selection.selector, 0, segment.rows)
    return True


def _select(tuples: JoinedTuples, selections: Sequence[Selection]) -> Selected:
    rows = np.arange(len(tuples), dtype=np.int32)
    for selection, ids in zip(selections, tuples.ids, strict=True):
        if not selection.selector.clause:
            continue
        places = find_tuples(selection.state.segments, ids[rows])
        satisfies = np.zeros(len(rows), np.bool_)
        for number, inside in _by_segment(places):
            segment = selection.state.segments[number]
            flags = np.zeros(segment.rows, np.bool_)
            flags[segment.hits(selection.query_input, selection.selector, 0, segment.rows).positions()] = True
            satisfies[inside] = flags[places.rows[inside]]
        rows = rows[satisfies]
    return rows


def _by_segment(places: TuplePlaces) -> list[tuple[int, Numbers]]:
    """For each segment that has some of the tuples, their indexes."""
    numbers = np.unique(places.segments)
    return [(number, np.flatnonzero(places.segments == number)) for number in numbers.tolist() if number >= 0]


def _selects_all(selection: Selection, ids: Numbers) -> bool:
    """Whether tuples with some ids certainly exist and are in the window: all tuples are, and no id is missing."""
    segments = selection.state.segments
    if not segments or not len(ids) or ids.min() < segments[0].first_id:
        return False
    end = segments[0].first_id
    for segment, (first, last) in zip(segments, selection.ranges, strict=True):
        if segment.first_id != end or first > 0 or last < segment.rows or not segment.run().in_order:
            return False
        end += segment.rows
    return bool(ids.max() < end)


def _within(selection: Selection, places: TuplePlaces) -> Flags:
    """Which tuples are in the window of a selection."""
    # A tuple that was dropped has segment -1, whose range is empty.
    ranges = np.array([*selection.ranges, (0, 0)], np.int64).reshape(-1, 2)
    inside: Flags = (places.rows >= ranges[places.segments, 0]) & (places.rows < ranges[places.segments, 1])
    return inside


def _matches_of(selection: Selection, ids: Numbers) -> tuple[StreamMatches, Numbers]:
    """Tuples as matches, each once, and the number of each of them among these."""
    places = find_tuples(selection.state.segments, ids)
    numbers = np.empty(len(ids), np.int64)
    hits = []
    before = 0
    for number, inside in _by_segment(places):
        segment = selection.state.segments[number]
        run = segment.run()
        rows, numbers[inside] = _distinct(places.rows[inside], segment.rows)
        numbers[inside] += before
        before += len(rows)
        starts = np.searchsorted(rows, run.starts)
        in_block = rows - np.repeat(np.array(run.starts[:-1]), np.diff(starts))
        hits.append(Hits(segment, run, in_block.astype(np.uint16), starts))
    return StreamMatches(selection.state.stream.schema, hits), numbers


def _numbers_in(selection: Selection, matches: StreamMatches, ids: Numbers) -> Numbers:
    """The numbers of tuples among all matches of a selection."""
    places = find_tuples(selection.state.segments, ids)
    numbers = np.empty(len(ids), np.int64)
    begins = np.cumsum([0, *(len(hit.rows) for hit in matches.hits)]).tolist()
    of_segment = {id(hit.segment): (hit, begin) for hit, begin in zip(matches.hits, begins, strict=False)}
    for number, inside in _by_segment(places):
        hit, begin = of_segment[id(selection.state.segments[number])]
        numbers[inside] = numbers_of(hit, places.rows[inside])[0] + begin
    return numbers


def _distinct(rows: Numbers, end: int) -> tuple[Numbers, Numbers]:
    """The different rows of a segment, ascending, and the number of each row among them."""
    if len(rows) * SPARSE < end:
        return np.unique(rows, return_inverse=True)
    # Many rows are not sorted: their numbers are looked up.
    lookup = np.zeros(end, np.int32)
    lookup[rows] = 1
    distinct = np.flatnonzero(lookup)
    lookup[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, lookup[rows].astype(np.int64)
