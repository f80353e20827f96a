"""Punctuations of a join's output, from those of its inputs (PWJoin §3.1, Theorem 3.1).

A punctuation of a stream holds for the output as soon as all other inputs are closed for the values of its columns: a
later joined tuple that matches it would need a tuple that arrives later in one of the inputs, and none of them can have
one. It is propagated with the last punctuation that this needs, after all joined tuples of the tuples that were read
before.

Which punctuations are propagated between two vectors of marks does not depend on who else follows the join, or on when
the operator started. So a reader can stop in the middle of them: they are computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from math import prod
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tureen.closed.closed_ranges import difference
from tureen.closed.closed_set import MAX_COMBINATIONS
from tureen.closed.pattern import Code, CodeRange, Pattern, ValueList
from tureen.closed.pattern_values import array_of_codes, value_arrays
from tureen.join import Field
from tureen.joining.shared_join import SharedJoinOfQuery
from tureen.position import Mark
from tureen.pot.catalog import Catalog
from tureen.results.changes.closed_inputs import ClosedInputs, PunctuatedJoin
from tureen.results.changes.early_propagation import Exhaustion, value_parts
from tureen.results.changes.output_patterns import InputPart, OutputPatterns, Part
from tureen.results.snapshot.stream_state import Snapshot
from tureen.results.snapshot.unread_places import unread_places
from tureen.schema import Schema


class _Closing(NamedTuple):
    """A pattern of an input without ranges in the columns of keys, and the values that these combine to."""

    parts: Mapping[str, Part]
    keys: tuple[str, ...]
    """The columns that equalities compare with other inputs."""
    codes: Sequence[tuple[Code, ...]]
    """The codes of these, combination by combination."""


class JoinPropagation:
    """The propagation of one query's join, from one snapshot."""

    def __init__(
        self,
        catalog: Catalog,
        exhaustion: Exhaustion,
        shared: SharedJoinOfQuery,
        outputs: OutputPatterns,
        snapshot: Snapshot,
    ) -> None:
        """Read what closed from that snapshot; `exhaustion` has the windows of the query."""
        self._catalog, self._punctuated, self._snapshot = catalog, exhaustion.punctuated, snapshot
        self.exhaustion = exhaustion
        self._shared, self._outputs, self._classes = shared, outputs, exhaustion.punctuated.classes

    def between(self, before: Mapping[int, Mark], after: Mapping[int, Mark]) -> list[Pattern]:
        """The punctuations over the query's outputs that are propagated between two vectors of marks, in order.

        Each stream's own are applied after those of the streams before it.
        """
        patterns: dict[Pattern, None] = {}
        at_first = ClosedInputs(self._punctuated, self._snapshot, before)
        for stream in sorted(after):
            if before[stream] == after[stream]:
                continue
            marks = {other: before[other] if other > stream else after[other] for other in after}
            closed = ClosedInputs(self._punctuated, self._snapshot, marks)
            for number in self._punctuated.join.inputs_of(stream):
                step = _InputStep(self, number, closed, at_first)
                for parts in step.propagated(self._new_patterns(stream, before, after), before[stream], after[stream]):
                    pattern = self._outputs.pattern(self._input_parts(number, parts))
                    if pattern is not None:
                        patterns.setdefault(pattern)
        at_end = ClosedInputs(self._punctuated, self._snapshot, after)
        for number, columns in self.exhaustion.newly_exhausted(at_first, at_end):
            for parts in value_parts(self.schema_of(number), columns):
                pattern = self._outputs.pattern(self._input_parts(number, parts))
                if pattern is not None:
                    patterns.setdefault(pattern)
        return list(patterns)

    @property
    def punctuated(self) -> PunctuatedJoin:
        """The join."""
        return self._punctuated

    def schema_of(self, number: int) -> Schema:
        """The columns of an input that is a stream."""
        return self._punctuated.state_of(self._snapshot, number).stream.schema

    def _new_patterns(self, stream: int, before: Mapping[int, Mark], after: Mapping[int, Mark]) -> list[Pattern]:
        first, end = before[stream].punctuations or 0, after[stream].punctuations or 0
        if end <= first:
            return []
        state = self._snapshot.streams[stream]
        places = unread_places(self._catalog, state, Mark(0, punctuations=first), after[stream].next_id)
        return [place.pattern for place in places.places if place.number < end]

    def _input_parts(self, number: int, parts: Mapping[str, Part]) -> list[InputPart]:
        """A pattern of an input of the join by the columns of the query's inputs."""
        by_fields = []
        for name, part in parts.items():
            field = Field(number, name)
            of_class = self._classes.class_of.get(field)
            fields = [field] if of_class is None else self._classes.members[of_class]
            by_fields.append(
                InputPart([Field(self._shared.inputs[field.input], field.column) for field in fields], part)
            )
        return by_fields


class _InputStep:
    """What the new punctuations of one input lead to, given what is closed in the others."""

    def __init__(self, join: JoinPropagation, number: int, closed: ClosedInputs, at_first: ClosedInputs) -> None:
        self._punctuated, self._number, self._closed, self._at_first = join.punctuated, number, closed, at_first
        self._exhaustion = join.exhaustion
        self._schema = join.schema_of(number)
        self._types = {column.name: column.type for column in self._schema.columns}
        self._keys = self._punctuated.classes.columns_of(number)
        others = range(len(self._punctuated.join.relations))
        streams = set(self._punctuated.stream_inputs())
        self._others = [other for other in others if other != number and other in streams]
        self._ranges: list[CodeRange] = []
        """The new ranges so far."""

    def propagated(self, patterns: Sequence[Pattern], before: Mark, after: Mark) -> Iterator[Mapping[str, Part]]:
        """The patterns over columns of the input that hold for the output, or the parts of them that do."""
        closings: dict[tuple[str, ...], list[_Closing]] = {}
        for pattern in patterns:
            parts = dict(pattern.columns)
            closing = self._closing(parts)
            if not self._others:
                yield parts
            elif closing is not None:
                closings.setdefault(closing.keys, []).append(closing)
            elif len(parts) == 1:
                ((name, part),) = parts.items()
                yield from ({name: narrowed} for narrowed in self._range_parts(name, part))
        for group in closings.values():
            yield from self._of_values(group)
        yield from self._of_unique_keys(before, after)

    def _closing(self, parts: Mapping[str, Part]) -> _Closing | None:
        """A pattern by its values in keys; None if it has none, or a range."""
        keys = {name: part for name, part in parts.items() if name in self._keys}
        lists = [part.codes for part in keys.values() if isinstance(part, ValueList)]
        if not keys or len(lists) < len(keys) or prod(map(len, lists)) > MAX_COMBINATIONS:
            return None
        return _Closing(parts, tuple(keys), list(product(*lists)))

    def _of_values(self, closings: Sequence[_Closing]) -> Iterator[Mapping[str, Part]]:
        """What patterns with values in the same keys lead to."""
        combined = zip(*chain.from_iterable(closing.codes for closing in closings), strict=True)
        columns = {
            name: array_of_codes(self._types[name], codes)
            for name, codes in zip(closings[0].keys, combined, strict=True)
        }
        values = {self._keys[name]: column for name, column in columns.items()}
        holds = self._exhaustion.closed_by_others(self._number, values, self._closed)
        for other in self._others if holds.any() else ():
            holds &= ~self._exhaustion.propagated_early(other, values, self._at_first)
        if not holds.all():
            holds |= self._exhaustion.exhausted(self._number, values, self._closed)
        if len(closings[0].parts) == len(closings[0].keys) and holds.any():
            # Closed before: it was propagated, or will be with a punctuation of another input.
            holds &= ~self._at_first.closes(self._number, columns)
        if not holds.any():
            return
        begin = 0
        for closing in closings:
            held = holds[begin : begin + len(closing.codes)]
            begin += len(closing.codes)
            codes = [closing.codes[index] for index in np.flatnonzero(held).tolist()]
            if codes and len(closing.keys) == 1:
                yield {**closing.parts, closing.keys[0]: ValueList(tuple(code for (code,) in codes))}
            elif len(codes) == len(closing.codes):
                yield closing.parts
            else:
                for combination in codes:
                    single = {name: ValueList((code,)) for name, code in zip(closing.keys, combination, strict=True)}
                    yield {**closing.parts, **single}

    def _of_unique_keys(self, before: Mark, after: Mark) -> Iterator[Mapping[str, Part]]:
        """What the unique keys of new tuples lead to."""
        rules = self._punctuated.state_of(self._closed.snapshot, self._number).stream.rules
        keys = [name for name in rules.unique if name in self._keys]
        if not keys or not self._others or after.next_id <= before.next_id:
            return
        stem = self._closed.stem(self._number, (before.next_id, after.next_id))
        rows = stem.rows_within()
        rows = rows[np.argsort(stem.ids_at(rows))]
        columns = dict(zip(rules.unique, stem.columns_at(rules.unique, rows), strict=True))
        valid = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns.values()])
        values = {self._keys[name]: columns[name] for name in keys}
        held = valid & self._exhaustion.closed_by_others(self._number, values, self._closed)
        yield from value_parts(self._schema, {name: column.filter(pa.array(held)) for name, column in columns.items()})

    def _range_parts(self, name: str, part: Part) -> list[Part]:
        """The parts of a range of a column for which all other inputs are closed."""
        if name not in self._keys or not isinstance(part, CodeRange):
            return []
        parts: list[Part] = list(self._new_ranges(name, part))
        for other in self._others:
            parts = [
                both
                for remaining in parts
                for column, of_class in self._punctuated.classes.columns_of(other).items()
                if of_class == self._keys[name]
                for both in self._narrowed(name, remaining, other, column)
            ]
        return [new for remaining in parts for new in self._not_closed_before(name, remaining)]

    def _new_ranges(self, name: str, interval: CodeRange) -> list[CodeRange]:
        """A range without what earlier ranges of this input have closed, whose parts were propagated or will be."""
        ranges = [interval]
        known = self._at_first.closed_within(self._number, name, interval)
        for earlier in [*(closed_part for closed_part in known if isinstance(closed_part, CodeRange)), *self._ranges]:
            ranges = [rest for open_range in ranges for rest in difference(open_range, earlier)]
        self._ranges.append(interval)
        return ranges

    def _not_closed_before(self, name: str, part: Part) -> list[Part]:
        """A range, or values without those that this input had closed before."""
        if isinstance(part, CodeRange):
            return [part]
        values = value_arrays(Pattern(((name, part),)), self._types)
        assert values is not None
        closed = self._at_first.closes(self._number, values)
        codes = tuple(code for code, is_closed in zip(part.codes, closed.tolist(), strict=True) if not is_closed)
        return [ValueList(codes)] if codes else []

    def _narrowed(self, name: str, part: Part, other: int, column: str) -> list[Part]:
        """Of values or a range of a column of this input, what another input has closed in one of its columns."""
        if isinstance(part, CodeRange):
            return self._closed.closed_within(other, column, part)
        values = value_arrays(Pattern(((name, part),)), self._types)
        assert values is not None
        held = self._closed.closes(other, {column: values[name]})
        codes = tuple(code for code, is_held in zip(part.codes, held.tolist(), strict=True) if is_held)
        return [ValueList(codes)] if codes else []
