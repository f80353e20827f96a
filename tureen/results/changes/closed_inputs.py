"""What can no longer arrive in the inputs of a join, when their streams were read up to marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.closed.closed_set import codes_within
from tureen.closed.pattern import CodeRange, ValueList
from tureen.join import Field
from tureen.joining.equality_classes import EqualityClasses
from tureen.joining.join_input import Flags, Numbers
from tureen.joining.shared_join import SharedJoin
from tureen.joining.stem import Ids, Stem
from tureen.position import Mark
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.stem_input import StreamStem
from tureen.results.snapshot.closing_histories import ClosingHistories
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.stems.key_index import HASHED, codes_of


@dataclass(frozen=True)
class PunctuatedJoin:
    """A join, and where the punctuations of its streams are known."""

    join: SharedJoin
    classes: EqualityClasses
    histories: ClosingHistories
    indexes: KeyIndexes

    def stream_inputs(self) -> list[int]:
        """The inputs that are streams."""
        return [number for number, relation in enumerate(self.join.relations) if relation.stream_id is not None]

    def state_of(self, snapshot: Snapshot, number: int) -> StreamState:
        """The stream of an input."""
        stream_id = self.join.relations[number].stream_id
        assert stream_id is not None
        return snapshot.streams[stream_id]

    def rows_by_value(self, stem: Stem, number: int, values: Mapping[str, pa.Array]) -> tuple[Numbers, Numbers]:
        """The tuples of an input that have values in some of its columns: pairs of the number of a value and a row."""
        names = sorted(values)
        columns = tuple((name, self.classes.domains[Field(number, name)]) for name in names)
        codes = [codes_of(values[name], domain) for name, domain in columns]
        valid = np.logical_and.reduce([np.asarray(values[name].is_valid()) for name in names])
        left, right = stem.probe(columns, np.ascontiguousarray(np.stack(codes)), valid)
        if any(domain in HASHED for _, domain in columns):
            taken = pa.array(left)
            stored = zip(names, stem.columns_at(names, right), strict=True)
            same = [pc.fill_null(pc.equal(column, values[name].take(taken)), False) for name, column in stored]
            exact = np.logical_and.reduce([np.asarray(flags) for flags in same])
            left, right = left[exact], right[exact]
        return left, right


@dataclass(frozen=True)
class ClosedInputs:
    """The inputs of a join at one vector of marks."""

    punctuated: PunctuatedJoin
    snapshot: Snapshot
    marks: Mapping[int, Mark]
    """For each stream the tuples and punctuations that were read."""
    _earliest: dict[int, int | None] = field(default_factory=dict)

    def closes(self, number: int, columns: Mapping[str, pa.Array]) -> Flags:
        """Which tuples of an input with these columns can no longer arrive."""
        state = self.punctuated.state_of(self.snapshot, number)
        mark, schema = self.marks[state.stream.id], state.stream.schema
        if mark.punctuations:
            closed: Flags = self.punctuated.histories.of(state).closes(columns, mark.punctuations)
        else:
            closed = np.zeros(len(next(iter(columns.values()))), np.bool_)
        closed |= self._have_unique_key(number, columns)
        # The column of an abstract clock has numbers, not instants.
        if schema.time is not None and schema.time in columns and not schema.has_abstract_clock:
            bound = self.earliest_time(number)
            if bound is not None:
                times = columns[schema.time].cast(pa.int64())
                closed |= np.asarray(pc.fill_null(pc.less(times, bound), False))
        return closed

    def closes_value(self, number: int, columns: Mapping[str, pa.Array]) -> Flags:
        """Which tuples of an input can no longer arrive because of a punctuation without ranges, or a unique key."""
        state = self.punctuated.state_of(self.snapshot, number)
        closed = self._have_unique_key(number, columns)
        punctuations = self.marks[state.stream.id].punctuations
        if punctuations:
            closed |= self.punctuated.histories.of(state).closes_value(columns, punctuations)
        return closed

    def _have_unique_key(self, number: int, columns: Mapping[str, pa.Array]) -> Flags:
        """Which tuples have the unique key of a tuple of the input that was read."""
        state = self.punctuated.state_of(self.snapshot, number)
        flags, unique = np.zeros(len(next(iter(columns.values()))), np.bool_), state.stream.rules.unique
        if unique and set(unique) <= columns.keys():
            stem = self.stem(number, (0, self.marks[state.stream.id].next_id))
            keys, _ = self.punctuated.rows_by_value(stem, number, {name: columns[name] for name in unique})
            flags[keys] = True
        return flags

    def closed_within(self, number: int, name: str, interval: CodeRange) -> list[ValueList | CodeRange]:
        """What is closed in an input of a range of one of its columns."""
        state = self.punctuated.state_of(self.snapshot, number)
        mark, rules = self.marks[state.stream.id], state.stream.rules
        parts: list[ValueList | CodeRange] = []
        if mark.punctuations:
            parts += self.punctuated.histories.of(state).closed_within(name, interval, mark.punctuations)
        if rules.unique == (name,):
            stem = self.stem(number, (0, mark.next_id))
            (values,) = stem.columns_at([name], stem.rows_within())
            codes = codes_within(state.stream.schema, name, interval, values)
            parts += [ValueList(codes)] if codes else []
        return parts

    def stem(self, number: int, ids: Ids, earliest: int | None = None) -> StreamStem:
        """The tuples of an input with ids in an interval; with `earliest`, perhaps without those before that time."""
        state = self.punctuated.state_of(self.snapshot, number)
        return StreamStem(state, ids, earliest, self.punctuated.indexes)

    def earliest_time(self, number: int) -> int | None:
        """A time before which no later tuple of an input can be, by its lateness or by punctuations on its time."""
        state = self.punctuated.state_of(self.snapshot, number)
        if state.stream.id not in self._earliest:
            self._earliest[state.stream.id] = self._earliest_time(state)
        return self._earliest[state.stream.id]

    def _earliest_time(self, state: StreamState) -> int | None:
        mark, rules, time = self.marks[state.stream.id], state.stream.rules, state.stream.schema.time
        bounds: list[int] = []
        if time is not None and mark.punctuations and not state.stream.schema.has_abstract_clock:
            closed = self.punctuated.histories.of(state).closed_within(time, CodeRange(), mark.punctuations)
            ranges = [part for part in closed if isinstance(part, CodeRange)]
            bounds += [int(part.high) + 1 for part in ranges if part.low is None and part.high is not None]
        if rules.lateness is not None:
            latest = _latest_time(state, mark.next_id, self.punctuated.indexes)
            bounds += [] if latest is None else [latest - rules.lateness]
        return max(bounds, default=None)


def _latest_time(state: StreamState, end_id: int, indexes: KeyIndexes) -> int | None:
    """The latest time of the tuples of a stream before an id; not that of a replica's home, which punctuations tell."""
    if end_id >= state.stream.next_id and state.stream.replica_of is None:
        return state.stream.last_time
    times: list[int] = []
    ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
    for segment, end in zip(state.segments, ends, strict=True):
        if segment.rows and end <= end_id:
            times.append(segment.max_time)
        elif segment.rows and segment.first_id < end_id:
            stem = StreamStem(state, (segment.first_id, end_id), None, indexes)
            rows = stem.rows_within()
            times += [int(stem.times_at(rows).max())] if len(rows) else []
    return max(times, default=None)
