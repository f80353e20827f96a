"""Purging the state of a followed join by the punctuations of its streams, in the order of their logs.

A block of new tuples is joined first. Then the punctuations that stand before the end of the block are applied: tuples
that no later result can contain leave the state. Since the state is derived from the logs, an operator that restarts
finds the same tuples dead: it compares the tuples of its inputs with what is closed, some with each block, the newest
first. A tuple that was not compared yet counts as alive, which changes no result.

So punctuations need not be applied after every block either. They are applied when the tuples and punctuations that
are new make a certain share of those within the windows: what is done once then costs less than what would be done
after each block, and the state is larger by at most that share. If nothing left the state, the share is doubled, so
that punctuations about values that no tuple has cost little.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from tureen.closed.closing_history import ClosingHistory
from tureen.closed.pattern import Pattern
from tureen.closed.pattern_block import PatternBlock
from tureen.closed.pattern_values import values_by_columns
from tureen.errors import QueryFailed
from tureen.join import Field
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import Numbers
from tureen.joining.join_state import EMPTY, InputState
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.key_columns import key_columns, key_equalities
from tureen.joining.key_probes import comparisons_between, probed_pairs
from tureen.joining.purging import PURGE_LIMITS, PurgeRule
from tureen.joining.stem import Ids, Stem
from tureen.keys import KeyColumns
from tureen.position import Mark
from tureen.pot.catalog import Catalog
from tureen.results.changes.closed_inputs import ClosedInputs, PunctuatedJoin
from tureen.results.changes.early_propagation import Exhaustion, value_parts
from tureen.results.joins.stem_input import StreamStem, TableStem
from tureen.results.snapshot.stream_state import Snapshot
from tureen.results.snapshot.unread_places import unread_block, unread_places
from tureen.stems.key_index import HASHED

SCANNED_TUPLES = 4_096
"""The number of old tuples that are compared with what is closed at each step, plus four for each new tuple."""

LAZY_SHARE = 2
"""New tuples and punctuations are compared when there is one of them for this many tuples within the windows."""

MOST_IDLE = 3
"""How often the number of tuples and punctuations is doubled, once for each time in which nothing left the state."""

MOST_UNAPPLIED = 65_536
"""The most tuples and punctuations that are not compared, however large the windows are."""


def is_punctuated(snapshot: Snapshot) -> bool:
    """Whether a stream has had punctuations, a unique key or a lateness."""
    return any(state.punctuation_end or state.stream.rules for state in snapshot.streams.values())


class JoinPurging:
    """The state of one followed join whose streams have punctuations."""

    def __init__(
        self, catalog: Catalog, punctuated: PunctuatedJoin, snapshot: Snapshot, ends: Mapping[int, int]
    ) -> None:
        """Begin with the state that the tuples and punctuations before `ends` have led to."""
        self._catalog, self._punctuated = catalog, punctuated
        self.inputs = [InputState() for _ in punctuated.join.relations]
        self._exhausted: dict[int, ClosingHistory] = {}
        """By input, values of which no tuple is in the windows any more, and none will be."""
        self._reach: list[int | None] = [None] * len(self.inputs)
        self._marks: dict[int, Mark] = {}
        """For each stream the tuples and the punctuations up to which they were applied."""
        self._least_new = 0
        """The number of new tuples and punctuations from which on they are applied."""
        self._idle = 0
        """How many times in a row nothing left the state; at most `MOST_IDLE`."""
        for stream, end in ends.items():
            places = unread_places(catalog, snapshot.streams[stream], Mark(end), end)
            self._marks[stream] = Mark(end, punctuations=places.end or 0)
        if any(mark.punctuations or snapshot.streams[stream].stream.rules for stream, mark in self._marks.items()):
            for stream, end in ends.items():
                for number in punctuated.join.inputs_of(stream):
                    self.inputs[number].scan_again(end)

    def keep(self, number: int, stem: Stem, rows: Numbers) -> Numbers:
        """Of new tuples of an input, those whose values are not known to be exhausted in another input."""
        if not self._exhausted or not len(rows):
            return rows
        held = np.ones(len(rows), np.bool_)
        for other, exhausted in self._exhausted.items():
            fields = self._punctuated.classes.shared_columns(other, [number])
            if other != number and fields:
                values = stem.columns_at([field.column for field in fields.values()], rows)
                held &= ~exhausted.closes(dict(zip(fields, values, strict=True)), exhausted.end)
        if not held.all():
            self.inputs[number].drop(stem.ids_at(rows[~held]))
        return rows[held]

    def _note_exhausted(self, closed: ClosedInputs, number: int, stem: Stem, rows: Numbers) -> None:
        """Remember the values of discarded tuples that are exhausted in another input: later ones are dropped."""
        exhaustion = Exhaustion(self._punctuated, self._reach)
        for other in self._punctuated.stream_inputs():
            fields = self._punctuated.classes.shared_columns(other, [number])
            if other == number or not fields or exhaustion.horizon(other, closed) is None:
                continue
            columns = dict(zip(fields, stem.columns_at([field.column for field in fields.values()], rows), strict=True))
            classes = self._punctuated.classes.columns_of(other)
            exhausted = exhaustion.exhausted(other, {classes[name]: each for name, each in columns.items()}, closed)
            if exhausted.any():
                schema = self._punctuated.state_of(closed.snapshot, other).stream.schema
                history = self._exhausted.setdefault(other, ClosingHistory(schema))
                values = {name: each.filter(pa.array(exhausted)) for name, each in columns.items()}
                stored = (Pattern(tuple(parts.items())).as_json() for parts in value_parts(schema, values))
                history.add(PatternBlock.of_stored(history.end, stored))

    def use_reach(self, reach: Sequence[int | None]) -> None:
        """Use how far the windows of all queries reach; if they reach further than before, nothing is exhausted."""
        if list(reach) != self._reach:
            self._exhausted.clear()
            self._reach = list(reach)

    def stem(self, snapshot: Snapshot, number: int, ids: Ids, earliest: int | None) -> StreamStem:
        """The SteM of an input that is a stream, for new tuples of others."""
        # Of two inputs, a dead tuple has no partner among new ones: nothing has to be left out.
        state, is_pair = self._punctuated.state_of(snapshot, number), len(self.inputs) == 2
        dead = self.inputs[number].dead
        return StreamStem(state, ids, earliest, self._punctuated.indexes, dead, finds_purged=is_pair)

    def is_due(self, snapshot: Snapshot, end: Mapping[int, int]) -> bool:
        """Whether so much is new that it is worth applying it."""
        new = sum(end_id - self._marks[stream].next_id for stream, end_id in end.items())
        for stream, mark in self._marks.items():
            new += snapshot.streams[stream].punctuation_end - (mark.punctuations or 0)
        return new >= self._least_new or any(state.unscanned for state in self.inputs)

    def _tuples_in_windows(self, snapshot: Snapshot) -> int:
        """The number of tuples of the inputs within the windows at the latest tuple, purged ones included."""
        count = 0
        for number in self._punctuated.stream_inputs():
            state, reach = self._punctuated.state_of(snapshot, number), self._reach[number]
            last = state.stream.last_time
            earliest = None if reach is None or last is None else last - reach
            stem = StreamStem(state, (0, state.stream.next_id), earliest, self._punctuated.indexes)
            count += stem.count_since(earliest)
        return count

    def apply(self, snapshot: Snapshot, tables: Mapping[int, TableStem], end: Mapping[int, int]) -> None:
        """Apply what closed since the last call, after the tuples before `end` were joined."""
        dead = sum(len(state.dead) for state in self.inputs)
        self._apply(snapshot, tables, end)
        has_effect = sum(len(state.dead) for state in self.inputs) > dead
        self._idle = 0 if has_effect else min(self._idle + 1, MOST_IDLE)
        share = self._tuples_in_windows(snapshot) // LAZY_SHARE
        self._least_new = min(share << self._idle, MOST_UNAPPLIED)

    def _apply(self, snapshot: Snapshot, tables: Mapping[int, TableStem], end: Mapping[int, int]) -> None:
        begin, closed = self._marks, self._read(snapshot, end)
        has_new = any(begin[stream].next_id < end_id for stream, end_id in end.items())
        if not has_new and not closed and not any(state.unscanned for state in self.inputs):
            return
        at_end, stems = ClosedInputs(self._punctuated, snapshot, self._marks), self._stems(snapshot, tables, end)
        matchable = stems
        if len(stems) == 2:
            # New tuples are compared anyway. Without them, segments that are combined soon need no index.
            matchable = self._stems(snapshot, tables, {stream: mark.next_id for stream, mark in begin.items()})
        moment = _PurgeMoment(self._punctuated, at_end, stems, matchable, self.inputs)
        counts: dict[int, int] = {}
        for number in self._punctuated.stream_inputs():
            stream = self._punctuated.join.relations[number].stream_id
            assert stream is not None
            counts[number], discarded = moment.remove_new(number, (begin[stream].next_id, end[stream]))
            if len(discarded):
                self._note_exhausted(at_end, number, stems[number], discarded)
        matched = [moment.matched(stream, block) for stream, block in closed.items()]
        matched += [
            moment.matched_by_keys(stream, (mark.next_id, end[stream]))
            for stream, mark in begin.items()
            if snapshot.streams[stream].stream.rules.unique and mark.next_id < end[stream]
        ]
        for rows in matched:
            moment.spread(rows)
        for number, count in counts.items():
            interval = self.inputs[number].next_scan(SCANNED_TUPLES + 4 * count)
            if interval is not None:
                moment.remove(number, moment.rows_between(number, interval))

    def _stems(self, snapshot: Snapshot, tables: Mapping[int, TableStem], end: Mapping[int, int]) -> list[Stem]:
        """The tuples of each input that are in its state, those of streams before an id."""
        indexes = self._punctuated.indexes
        return [
            tables[number]
            if relation.stream_id is None
            else StreamStem(
                snapshot.streams[relation.stream_id], (0, end[relation.stream_id]), None, indexes, state.dead
            )
            for number, (relation, state) in enumerate(zip(self._punctuated.join.relations, self.inputs, strict=True))
        ]

    def _read(self, snapshot: Snapshot, end: Mapping[int, int]) -> dict[int, PatternBlock]:
        """The punctuations of each stream that stand before the end and were not applied yet."""
        blocks: dict[int, PatternBlock] = {}
        marks: dict[int, Mark] = {}
        for stream, end_id in end.items():
            block = unread_block(self._catalog, snapshot.streams[stream], self._marks[stream].punctuations or 0, end_id)
            marks[stream] = Mark(end_id, punctuations=block.end)
            if len(block):
                blocks[stream] = block
                self._punctuated.histories.add(stream, block)
                for number in self._punctuated.join.inputs_of(stream):
                    self.inputs[number].punctuations += len(block)
        self._marks = marks
        return blocks


class _PurgeMoment:
    """The rule at one moment, and the tuples that it is applied to."""

    def __init__(
        self,
        punctuated: PunctuatedJoin,
        closed: ClosedInputs,
        stems: list[Stem],
        matchable: list[Stem],
        inputs: list[InputState],
    ) -> None:
        self._punctuated, self._closed, self._stems, self._inputs = punctuated, closed, stems, inputs
        self._matchable = matchable
        """The tuples that punctuations are matched with."""
        self._join, self._classes = punctuated.join, punctuated.classes
        self._rule = PurgeRule(self._join, self._classes, stems, closed.closes)

    def rows_between(self, number: int, ids: Ids) -> Numbers:
        """The rows of tuples with ids in an interval that are in the state."""
        stem = self._stems[number]
        assert isinstance(stem, StreamStem)
        rows, dead = stem.rows_between(ids), self._inputs[number].dead
        return rows[~dead.contains(stem.ids_at(rows))] if len(dead) else rows

    def remove_new(self, number: int, ids: Ids) -> tuple[int, Numbers]:
        """Leave out new tuples that are dead; returns how many tuples are new, and rows with the keys of dead ones."""
        if ids[1] <= ids[0]:
            return 0, EMPTY
        stem, columns = self._stems[number], self._key_columns(number)
        assert isinstance(stem, StreamStem)
        groups, others = ([], self.rows_between(number, ids)) if columns is None else stem.key_groups(columns, ids)
        # The rule depends on the key alone, so that each key is compared once.
        firsts = [group.first_rows() for group in groups]
        rows = np.concatenate([others, *firsts])
        dead, begin = self._rule.dead(number, rows), len(others)
        dead_ids = [stem.ids_at(others[dead[:begin]])]
        for group in groups:
            dead_ids.append(group.ids_of(dead[begin : begin + len(group)], ids))
            begin += len(group)
        self._inputs[number].discard(np.concatenate(dead_ids))
        return ids[1] - ids[0], rows[dead]

    def _key_columns(self, number: int) -> KeyColumns | None:
        """The columns whose values tell whether a tuple of an input is dead; None if there are none."""
        if len(self._stems) > 2 or self._join.relations[1 - number].stream_id is None:
            return None
        columns = key_columns(
            key_equalities(comparisons_between(self._join.factors, {1 - number}, number), number), number
        )
        shared = self._classes.shared_columns(1 - number, [number]).values()
        # Different texts or decimals may have the same key.
        exact = {column for column in columns if column[1] not in HASHED}
        return columns if {(field.column, self._classes.domains[field]) for field in shared} <= exact else None

    def remove(self, number: int, rows: Numbers) -> Numbers:
        """Remove tuples that are dead from the state; returns their rows."""
        # Stems may have been read before tuples were removed, and find them again: without this, `spread` may not end.
        rows = rows[~self._inputs[number].dead.contains(self._stems[number].ids_at(rows))]
        if not len(rows):
            return rows
        dead = rows[self._rule.dead(number, rows)]
        self._inputs[number].purge(self._stems[number].ids_at(dead))
        return dead

    def matched(self, stream: int, block: PatternBlock) -> dict[int, Numbers]:
        """The tuples of other inputs that match new punctuations of a stream."""
        schema = self._closed.snapshot.streams[stream].stream.schema
        types = {column.name: column.type for column in schema.columns}
        values, others = values_by_columns(block, types)
        for pattern in others:
            for other, _ in self._partners(stream, [name for name, _ in pattern.columns]):
                # Ranges have no index.
                state = self._punctuated.state_of(self._closed.snapshot, other)
                self._inputs[other].scan_again(self._closed.marks[state.stream.id].next_id)
        return _distinct(each for columns in values for each in self._probed(stream, columns))

    def matched_by_keys(self, stream: int, ids: Ids) -> dict[int, Numbers]:
        """The tuples of other inputs that have the unique key of a new tuple of a stream."""
        unique = self._closed.snapshot.streams[stream].stream.rules.unique
        stem = self._stems[self._join.inputs_of(stream)[0]]
        assert isinstance(stem, StreamStem)
        columns = stem.columns_at(unique, stem.rows_between(ids))
        return _distinct(self._probed(stream, dict(zip(unique, columns, strict=True))))

    def _partners(self, stream: int, names: Collection[str]) -> Iterator[tuple[int, Mapping[str, Field]]]:
        """The inputs whose tuples determine these columns of an input that reads the stream, and by which columns."""
        for number in self._join.inputs_of(stream):
            for other in self._punctuated.stream_inputs():
                shared = self._classes.shared_columns(number, [other])
                if other != number and set(names) <= shared.keys():
                    yield other, {name: shared[name] for name in names}

    def _probed(self, stream: int, columns: Mapping[str, pa.Array]) -> Iterator[tuple[int, Numbers]]:
        """The tuples of other inputs with values that are closed in a stream."""
        for other, fields in self._partners(stream, columns):
            values = {field.column: columns[name] for name, field in fields.items()}
            _, rows = self._punctuated.rows_by_value(self._matchable[other], other, values)
            yield other, rows

    def spread(self, matched: Mapping[int, Numbers]) -> None:
        """Apply the rule to tuples, then to those that can be combined with them, as long as tuples leave the state."""
        rows_of = {number: rows for number, rows in matched.items() if len(rows)}
        if len(self._stems) == 2:
            # The other input is closed for these tuples, and there is no third one.
            for number, rows in rows_of.items():
                self._inputs[number].purge(self._matchable[number].ids_at(rows))
            return
        dead_of = {number: self.remove(number, rows) for number, rows in rows_of.items()}
        # A combination with a tuple may be dead although the tuple is not: the first round includes all of them.
        while rows_of:
            combined = self._combined(rows_of)
            dead_of = {number: self.remove(number, rows) for number, rows in combined.items()}
            rows_of = {number: rows for number, rows in dead_of.items() if len(rows)}

    def _combined(self, rows_of: Mapping[int, Numbers]) -> dict[int, Numbers]:
        """The tuples of other inputs in the state that can be combined with tuples."""
        combined: dict[int, list[Numbers]] = {}
        evaluation = JoinEvaluation(self._stems, 0, PURGE_LIMITS)
        for number, rows in rows_of.items():
            for other in self._punctuated.stream_inputs():
                between = comparisons_between(self._join.factors, {number}, other)
                if other == number or not key_equalities(between, other):
                    continue
                with suppress(QueryFailed):
                    pairs = probed_pairs(
                        evaluation, JoinedRows({number: rows}, len(rows)), other, self._stems[other], between
                    )
                    combined.setdefault(other, []).append(pairs.right)
        return {other: np.unique(np.concatenate(rows)) for other, rows in combined.items()}


def _distinct(matched: Iterable[tuple[int, Numbers]]) -> dict[int, Numbers]:
    """The rows of each input."""
    of_inputs: dict[int, list[Numbers]] = {}
    for number, rows in matched:
        of_inputs.setdefault(number, []).append(rows)
    return {number: np.unique(np.concatenate(rows)) for number, rows in of_inputs.items()}
