"""Joining the parts of a kept join: new results of a sub-join, or new tuples of a stream, with those of the other part.

The results of a sub-join are in its join runs, which never change. They are found by an index of their keys, which is
in memory. So new tuples of a stream are joined with results, and not again with the streams that these are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.join import Field, JoinCompare
from tureen.join_parts import JoinPart, is_key_equality, parts_of
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import Flags, Numbers
from tureen.joining.join_limits import JoinLimits
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.key_probes import probed_pairs
from tureen.pot.kept_joins import JoinRun, KeptJoin, PlannedJoins, find_join_by_key
from tureen.pot.transaction import Transaction
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.stem_input import StreamStem
from tureen.results.snapshot.stream_state import StreamState
from tureen.stems.join_run import JoinedTuples, OpenJoinRun, concatenated
from tureen.stems.key_index import HASHED, KeyIndex, ProbeKeys, codes_of
from tureen.stream_join import StreamJoin, is_within

INDEX_BYTES = 1 << 28
"""The most memory of the indexes of join runs."""

Keys = tuple[tuple[Field, str], ...]
"""The fields by which the results of a sub-join are found, each with the domain in which it is compared."""


class SubJoinIndexes:
    """Indexes of join runs by key, for the process that keeps joins."""

    def __init__(self) -> None:
        """None yet."""
        self.indexes: BoundedCache[tuple[str, Keys], KeyIndex] = BoundedCache(INDEX_BYTES, lambda index: index.bytes)


class KeptPart(NamedTuple):
    """A part of a join, and its sub-join, if it is not a stream."""

    part: JoinPart
    sub_join: KeptJoin | None


def kept_parts(tx: Transaction, join: KeptJoin, planned: PlannedJoins) -> list[KeptPart]:
    """The parts of a join that has a plan; none if the results of a sub-join are not kept, or not as far apart."""
    plan = planned.plans.get(join.key)
    parts: list[KeptPart] = []
    for part in () if plan is None else parts_of(StreamJoin.of_key(join.key), plan) or ():
        sub_join = None if part.join is None else find_join_by_key(tx, part.join.key)
        if part.join is not None and (
            sub_join is None or sub_join.refused is not None or not is_within(join.reach, sub_join.reach)
        ):
            return []
        parts.append(KeptPart(part, sub_join))
    return parts


class PartStep(NamedTuple):
    """The tuples of each stream from `begins` to before `ends` are new."""

    states: Sequence[StreamState]
    begins: Sequence[int]
    ends: Sequence[int]
    reach: int | None
    limits: JoinLimits


def joined_parts(
    root: Path,
    join: StreamJoin,
    parts: Sequence[KeptPart],
    step: PartStep,
    indexes: KeyIndexes,
    sub_joins: SubJoinIndexes,
) -> JoinedTuples:
    """The joined tuples of a step, from two parts; those whose times differ by more than the reach are left out."""
    stems, old_stems = (
        [StreamStem(state, (0, end), None, indexes) for state, end in zip(step.states, limits, strict=True)]
        for limits in (step.ends, step.begins)
    )
    left, right = (
        OpenPart(part, [(run, OpenJoinRun(root / run.path)) for run in (() if kept is None else kept.runs)])
        for part, kept in parts
    )
    return PartJoining(join, stems, old_stems, step, sub_joins).joined(left, right)


@dataclass(frozen=True)
class OpenPart:
    """A part of a join, with the runs of its sub-join."""

    part: JoinPart
    runs: Sequence[tuple[JoinRun, OpenJoinRun]]


@dataclass(frozen=True)
class PartJoining:
    """One step of a join of two parts."""

    join: StreamJoin
    stems: Sequence[StreamStem]
    """The tuples of each stream before the end of the step."""
    old_stems: Sequence[StreamStem]
    """Those before its begin."""
    step: PartStep
    indexes: SubJoinIndexes

    def joined(self, left: OpenPart, right: OpenPart) -> JoinedTuples:
        """The joined tuples with a new tuple, each once."""
        pairs = [
            *self._pairs(self._new(left), right, self.step.ends),
            *self._pairs(self._new(right), left, self.step.begins),
        ]
        return concatenated(len(self.stems), [self._tuples(rows) for rows in pairs])

    def _tuples(self, rows: JoinedRows) -> JoinedTuples:
        numbers = [rows.rows[index] for index in range(len(self.stems))]
        of_inputs = list(zip(self.stems, numbers, strict=True))
        times = [stem.times_at(of_input) for stem, of_input in of_inputs]
        joined = JoinedTuples([stem.ids_at(of_input) for stem, of_input in of_inputs], np.minimum.reduce(times))
        if self.step.reach is None:
            return joined
        return joined.take(np.maximum.reduce(times) - joined.times <= self.step.reach)

    def _new(self, opened: OpenPart) -> JoinedRows:
        """The results of a part that have a new tuple."""
        inputs = opened.part.inputs
        if opened.part.join is None:
            (number,) = inputs
            rows = self.stems[number].rows_between((self.step.begins[number], self.step.ends[number]))
            return JoinedRows({number: rows}, len(rows))
        parts = [_NO_IDS[: len(inputs)]]
        for run, open_run in opened.runs:
            if any(last >= self.step.begins[number] for number, last in zip(inputs, run.last_ids, strict=True)):
                ids = np.stack(open_run.tuples.ids)
                is_new = np.logical_or.reduce([ids[at] >= self.step.begins[number] for at, number in enumerate(inputs)])
                parts.append(ids[:, is_new & self._are_before(inputs, ids, self.step.ends)])
        return self._rows(inputs, np.concatenate(parts, axis=1))[0]

    def _are_before(self, inputs: Sequence[int], ids: Numbers, limits: Sequence[int]) -> Flags:
        before: Flags = np.logical_and.reduce([ids[at] < limits[number] for at, number in enumerate(inputs)])
        return before

    def _rows(self, inputs: Sequence[int], ids: Numbers) -> tuple[JoinedRows, Numbers]:
        """Results of a sub-join as rows of the SteMs, and which of them: those whose tuples were not dropped."""
        numbers = [self.stems[number].rows_of(ids[at]) for at, number in enumerate(inputs)]
        present = np.flatnonzero(np.logical_and.reduce([rows >= 0 for rows in numbers]))
        rows = {number: of_input[present] for number, of_input in zip(inputs, numbers, strict=True)}
        return JoinedRows(rows, len(present)), present

    def _pairs(self, rows: JoinedRows, opened: OpenPart, limits: Sequence[int]) -> Iterator[JoinedRows]:
        """Rows of one part with the results of the other one whose tuples are before limits."""
        if not len(rows):
            return
        evaluation = JoinEvaluation(self.stems, 0, self.step.limits)
        between = [factor for factor in self.join.factors if _is_between(factor, rows, opened.part.inputs)]
        if opened.part.join is None:
            (number,) = opened.part.inputs
            stem = (self.stems if limits is self.step.ends else self.old_stems)[number]
            yield probed_pairs(evaluation, rows, number, stem, between).rows
            return
        keys, probed = _keys(between, opened.part.inputs)
        columns = [evaluation.values(field, rows) for field in probed]
        codes = [codes_of(column, domain) for column, (_, domain) in zip(columns, keys, strict=True)]
        valid = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns])
        probes = ProbeKeys.of(np.ascontiguousarray(np.stack(codes)), valid)
        exact = [factor for factor in between if is_key_equality(factor) and factor.domain not in HASHED]
        rest = [factor for factor in between if factor not in exact] if len(exact) == len(keys) else between
        total = 0
        for run, open_run in opened.runs:
            at, matching = self._index(opened.part.inputs, run, open_run, keys).find(probes)
            total += len(at)
            evaluation.limits.check_rows(total)
            ids = np.stack([of_stream[matching] for of_stream in open_run.tuples.ids])
            before = np.flatnonzero(self._are_before(opened.part.inputs, ids, limits))
            of_run, present = self._rows(opened.part.inputs, ids[:, before])
            pairs = rows.take(at[before[present]]).beside(of_run)
            yield pairs.take(evaluation.numbers_where(pairs, rest)) if rest else pairs

    def _index(self, inputs: Sequence[int], run: JoinRun, open_run: OpenJoinRun, keys: Keys) -> KeyIndex:
        """The results of a run by key; those of dropped tuples are left out."""

        def build() -> KeyIndex:
            tuples = open_run.tuples
            rows, present = self._rows(inputs, np.stack(tuples.ids))
            codes, valid = np.zeros((len(keys), len(tuples)), np.int64), np.zeros(len(tuples), np.bool_)
            columns: list[pa.Array] = []
            for at, (field, domain) in enumerate(keys):
                (column,) = self.stems[field.input].columns_at([field.column], rows.rows[field.input])
                codes[at, present] = codes_of(column, domain)
                columns.append(column)
            valid[present] = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns])
            return KeyIndex.of_keys(codes, valid)

        return self.indexes.indexes.get((run.path, keys), build)


_NO_IDS: Numbers = np.empty((64, 0), np.int64)


def _is_between(factor: JoinCompare, rows: JoinedRows, inputs: Sequence[int]) -> bool:
    sides = {field.input for field in factor.fields}
    return bool(sides & rows.rows.keys()) and bool(sides & set(inputs))


def _keys(between: Sequence[JoinCompare], inputs: Sequence[int]) -> tuple[Keys, list[Field]]:
    """The fields of a sub-join that are compared for equality, each once, and what each is compared with."""
    by_field: dict[tuple[Field, str], Field] = {}
    for factor in between:
        if is_key_equality(factor):
            own, other = (factor.left, factor.right) if factor.left.input in inputs else (factor.right, factor.left)
            by_field.setdefault((own, factor.domain), other)
    return tuple(by_field), list(by_field.values())
