"""Answers of joins and blocks: all inputs as of one snapshot, then their joined rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.expression_values import with_now
from tureen.eddy.costly_factors import JoinPlacement
from tureen.errors import DamagedFile, LimitExceeded, QueryFailed
from tureen.join import InnerJoin, Join, JoinTree, leaves
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import JoinInput, Numbers
from tureen.joining.join_limits import DEFAULT_LIMITS, JoinLimits
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.partnered import KnownPairs
from tureen.joining.row_order import WITHOUT_TIME
from tureen.pot.registered import RegisteredInput
from tureen.query import RelationKind, block_column
from tureen.results.joins.combined_rows import combine
from tureen.results.joins.costly_inputs import after_join, costly_inputs, note_fan_outs, placements_of
from tureen.results.joins.first_joined import first_joined
from tureen.results.joins.join_inputs import StreamInput, TableInput, rows_satisfying
from tureen.results.joins.join_ready import (
    ReadyBlock,
    ReadyConstants,
    ReadyInput,
    ReadyJoin,
    ReadyLateral,
    ReadySelection,
    several_rows,
)
from tureen.results.joins.joined import JoinedMatches
from tureen.results.joins.kept_join_groups import JoinStructure, kept_groups
from tureen.results.joins.kept_rows import ClauseRows, KeptRows
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.lateral_values import LateralValues
from tureen.results.rows.axis import TimeAxis
from tureen.results.rows.grouped import groups_of_rows
from tureen.results.rows.grouping_set_rows import rows_of_sets
from tureen.results.rows.kept import StructureCache
from tureen.results.rows.matches import rows_in_steps
from tureen.results.rows.selection import Selection
from tureen.results.rows.stepping import Stepping, whole_steps
from tureen.results.snapshot.stream_state import JoinState
from tureen.stream_join import StreamJoinOfQuery, is_within
from tureen.window import Span, Steps

Result = TypeVar("Result")

AnswerSelection = Callable[[ReadySelection, RegisteredInput], pa.Table]
"""The answer of a block over one stream."""


class AnsweredBlock(NamedTuple):
    """The answer of a block."""

    table: pa.Table
    notes: list[list[Any]]
    """What it adds to `spans`, `horizons` and `complete` of a `JoinAnswer`."""


@dataclass
class JoinAnswer:
    """One answer of a join: what it reads, and what was observed while it was computed."""

    leaves: Sequence[RegisteredInput]
    select: Callable[[ReadyInput, RegisteredInput], Selection]
    """The tuples of a stream that satisfy the clause of an input within its window."""
    read_table: Callable[[RegisteredInput], pa.Table]
    answer_selection: AnswerSelection
    now: int
    indexes: KeyIndexes
    limits: JoinLimits = DEFAULT_LIMITS
    selected: ClauseRows = field(default_factory=ClauseRows)
    structures: StructureCache | None = None
    """The partial aggregates of join runs."""
    kept: JoinState | None = None
    """The kept results of the outermost query's join."""
    spans: list[Span] = field(default_factory=list)
    """The windows of all inputs that are streams."""
    horizons: list[int] = field(default_factory=list)
    """The times before which their tuples have expired."""
    step_spans: list[Span] = field(default_factory=list)
    """The windows of its own inputs that are streams, as far as they are retained: steps lie in all of these."""
    complete: list[bool] = field(default_factory=list)
    """For each of these windows, whether everything that it asks for is still retained."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """The order in which the outermost query joined its inputs."""
    probed: set[int] = field(default_factory=set)
    """The streams and tables whose rows were found by key index, by their numbers in `leaves`."""

    answered: dict[int, AnsweredBlock] = field(default_factory=dict)
    """The answers of blocks by `ReadyInput.same_block`, so that a query of WITH that is used often is answered once."""
    placements: dict[int, JoinPlacement] = field(default_factory=dict)
    """Where the factors with user functions of inputs were evaluated, by the number of the input."""
    joined: int = 0
    """The joined rows before factors that are evaluated after the join."""

    def answer(self, ready: ReadyJoin) -> pa.Table:
        """The rows of the answer."""
        return ready.finish(self.rows(ready))

    def evaluate(self, ready: ReadyJoin) -> None:
        """Join the inputs without computing the answer, to record how they are joined."""
        self._matches(ready)

    def rows(self, ready: ReadyJoin) -> pa.Table | pa.RecordBatch:
        """The joined rows, or their groups."""
        query = ready.query
        now = self.now if query.uses_now else None
        parts = self._with_kept(ready, self._kept_groups) if ready.uses_kept_partials else None
        if parts is None:
            matches = self._matches(ready, ready.first_rows)
            stepping = None if query.steps is None else self.stepping(query.steps)
            if stepping is None and not ready.needs_order:
                matches = replace(matches, needs_order=False)
            steps_of = None if stepping is None else lambda _: _steps_of(stepping, matches.times)
            rows, steps = rows_in_steps(matches, ready.fields, now, query.at_now, steps_of)
            if query.grouping is None:
                return rows if stepping is None else _with_columns(rows, stepping, steps)
            parts = [groups_of_rows(plans, rows, steps, stepping) for plans in ready.plans]
        assert query.grouping is not None
        table = parts[0] if query.grouping.sets is None else rows_of_sets(query.grouping, parts)
        return table if now is None else with_now(table, now)

    def _matches(self, ready: ReadyJoin, first: int | None = None) -> JoinedMatches:
        """The joined rows; with `first`, only that number of them, in order."""
        matches = self._with_kept(ready, self._kept_matches)
        if matches is None:
            self.kept = None
            matches = self._placed(ready, first)
        return matches if first is None else matches.first(first)

    def _placed(self, ready: ReadyJoin, first: int | None) -> JoinedMatches:
        """The joined rows; factors with user functions are evaluated before or after the join."""
        if not ready.calls_functions:
            return self._joined(ready, (), (), first)
        costly = costly_inputs(ready)
        self.placements = placements_of(ready, costly, self.leaves)
        later = [number for number, placement in self.placements.items() if not placement.is_before]
        noted: tuple[list[Any], ...] = self.spans, self.horizons, self.step_spans, self.complete
        sizes = [len(entries) for entries in noted]
        try:
            return self._joined(ready, costly, later, first)
        except LimitExceeded:
            raise
        except QueryFailed:
            if len(later) == len(costly):
                raise
            for entries, size in zip(noted, sizes, strict=True):
                del entries[size:]
            # A call that raises counts only for a tuple with a partner.
            return self._joined(ready, costly, costly, first)

    def _joined(
        self, ready: ReadyJoin, costly: Sequence[int], later: Sequence[int], first: int | None
    ) -> JoinedMatches:
        placed = after_join(ready, later) if later else ready
        inputs = [self._input(entry, is_whole=number not in later) for number, entry in enumerate(placed.inputs)]
        matches = None if first is None or costly else self._first(placed.query.source, inputs, first)
        if matches is None:
            matches = self._evaluated(placed, inputs, placed.query.source)
        if costly:
            note_fan_outs(ready, costly, {number: len(inputs[number]) for number in costly}, self.joined)
        return matches

    def _first(self, tree: JoinTree, inputs: Sequence[JoinInput], count: int) -> JoinedMatches | None:
        """The first rows of an inner join of streams; None if all tuples have to be joined."""
        streams = [entry for entry in inputs if isinstance(entry, StreamInput)]
        if not isinstance(tree, InnerJoin) or len(streams) < len(inputs) or tree.sides != tuple(range(len(inputs))):
            return None
        return first_joined(streams, tree, self.now, self.limits, count)

    def _with_kept(
        self, ready: ReadyJoin, use: Callable[[ReadyJoin, StreamJoinOfQuery, KeptRows], Result | None]
    ) -> Result | None:
        """Call `use` with the kept rows of a query; None if it has none, or they do not suffice."""
        kept, part = self.kept, ready.stream_join
        if kept is None or part is None or not is_within(part.reach, kept.join.reach):
            return None
        lists: tuple[list[Any], ...] = self.spans, self.horizons, self.step_spans, self.complete
        sizes = [len(noted) for noted in lists]
        try:
            result = use(ready, part, self.kept_rows(ready, part, kept))
        except (QueryFailed, DamagedFile):
            # The clauses were evaluated for tuples outside the windows, or a file is damaged.
            result = None
        if result is None:
            for noted, size in zip(lists, sizes, strict=True):
                del noted[size:]
        return result

    def kept_rows(self, ready: ReadyJoin, part: StreamJoinOfQuery, kept: JoinState) -> KeptRows:
        """The rows of a query's stream join, which depend on the tuples in its windows."""
        selections = []
        for number in part.inputs:
            entry = ready.inputs[number]
            assert entry.leaf is not None
            selections.append(self._select(entry, self.leaves[entry.leaf]))
            self.selected.check(selections[-1])
        return KeptRows(
            part.join, kept.join, kept.runs, selections, part.inputs, self.selected, self.indexes, self.limits
        )

    def _kept_groups(self, ready: ReadyJoin, part: StreamJoinOfQuery, kept: KeptRows) -> list[pa.RecordBatch] | None:
        """The groups from partial aggregates of join runs; None if they have to be computed from the rows."""
        spans, structures = self.spans[-len(part.inputs) :], self.structures
        if structures is None:
            return None
        parts = []
        for plans in ready.plans:
            key = -kept.state.id, plans.shape
            structure = structures.structure(key, partial(JoinStructure, plans.partial))
            assert isinstance(structure, JoinStructure)
            before = structure.nbytes
            groups = kept_groups(kept, spans, plans, structure, ready.fields)
            if structure.nbytes > before:
                structures.trim()
            if groups is None:
                return None
            parts.append(groups)
        return parts

    def _kept_matches(self, ready: ReadyJoin, part: StreamJoinOfQuery, kept: KeptRows) -> JoinedMatches:
        tuples = kept.tuples()
        if part.is_whole:
            return kept.matches(tuples.in_order_of(np.argsort(part.inputs).tolist()))
        with_partner, numbers = kept.inputs(tuples, [number in part.all_tuples for number in part.inputs])
        of_part = dict(zip(part.inputs, with_partner, strict=True))
        of_input = dict(zip(part.inputs, numbers, strict=True))
        known: JoinedRows | KnownPairs = JoinedRows(of_input, len(tuples))
        if isinstance(part.tree, Join):
            ((left,), (right,)) = (leaves(side) for side in (part.tree.left, part.tree.right))
            known = KnownPairs(of_input[left], of_input[right], part.rest)
        inputs = [
            of_part[number] if number in of_part else self._input(entry) for number, entry in enumerate(ready.inputs)
        ]
        return self._evaluated(ready, inputs, part.source, {part.tree: known})

    def _evaluated(
        self,
        ready: ReadyJoin,
        inputs: Sequence[JoinInput],
        tree: JoinTree,
        known: Mapping[JoinTree, JoinedRows | KnownPairs] | None = None,
    ) -> JoinedMatches:
        evaluation = JoinEvaluation(inputs, self.now, self.limits, known=known)
        # Also those before an error.
        self.steps = evaluation.steps
        rows = evaluation.rows(tree)
        self.joined = evaluation.joined_before_last
        leaves = (ready.inputs[number].leaf for number in evaluation.probed)
        self.probed.update(leaf for leaf in leaves if leaf is not None)
        return JoinedMatches(inputs, rows)

    def inputs(self, ready: ReadyJoin) -> list[JoinInput]:
        """The rows of each input that lie in its window and satisfy its clause."""
        return [self._input(entry) for entry in ready.inputs]

    def _input(self, entry: ReadyInput, *, is_whole: bool = True) -> JoinInput:
        """The rows of an input; unless `is_whole`, its clause is only a part of the registered one."""
        if isinstance(entry.block, ReadyLateral):
            return LateralValues(entry.block, self.now)
        if entry.block is not None:
            return self._of_block(entry, entry.block)
        assert entry.leaf is not None
        leaf = self.leaves[entry.leaf]
        leaf = leaf if is_whole else replace(leaf, clause_id=None, number=None)
        if entry.input.kind is RelationKind.STREAM:
            return StreamInput(self._select(entry, leaf).matches(), self.indexes)
        return table_input(self.read_table(leaf), entry, self.indexes)

    def _select(self, entry: ReadyInput, leaf: RegisteredInput) -> Selection:
        """The tuples of an input, whose window the steps of this query depend on."""
        known = len(self.horizons)
        selection = self.select(entry, leaf)
        span = self.spans[-1]
        for horizon in self.horizons[known:]:
            span = span if span.begin is not None and span.begin >= horizon else replace(span, begin=horizon)
        self.step_spans.append(span)
        return selection

    def _of_block(self, entry: ReadyInput, block: ReadyBlock) -> TableInput:
        table = self._answered(entry, block)
        if entry.input.is_scalar and table.num_rows > 1:
            raise several_rows(table.num_rows)
        return table_input(table, entry)

    def _answered(self, entry: ReadyInput, block: ReadyBlock) -> pa.Table:
        """The answer of a block, which equal blocks share, and what is noted about its streams."""
        if entry.same_block is None:
            return self.block_answer(block)
        noted: tuple[list[Any], ...] = self.spans, self.horizons, self.complete
        known = self.answered.get(entry.same_block)
        if known is None:
            sizes = [len(entries) for entries in noted]
            table = self.block_answer(block)
            notes = [entries[size:] for entries, size in zip(noted, sizes, strict=True)]
            self.answered[entry.same_block] = AnsweredBlock(table, notes)
            return table
        for entries, more in zip(noted, known.notes, strict=True):
            entries += more
        return known.table

    def block_answer(self, block: ReadyBlock) -> pa.Table:
        """The answer of a block, with the columns of `block_column`."""
        match block:
            case ReadyJoin():
                inner = JoinAnswer(
                    self.leaves,
                    self.select,
                    self.read_table,
                    self.answer_selection,
                    self.now,
                    self.indexes,
                    self.limits,
                    spans=self.spans,
                    horizons=self.horizons,
                    complete=self.complete,
                    probed=self.probed,
                    answered=self.answered,
                )
                table = inner.answer(block)
            case ReadyLateral():
                raise AssertionError("it is computed from partners")
            case ReadyConstants():
                return block.table
            case ReadySelection():
                table = self.answer_selection(block, self.leaves[block.leaf])
            case _:
                operation = block.operation
                left, right = self.block_answer(block.left), self.block_answer(block.right)
                return combine(operation.operator, operation.keep_duplicates, left, right)
        return table.rename_columns([block_column(number) for number in range(table.num_columns)])

    def stepping(self, steps: Steps) -> Stepping:
        """The steps of time that lie in the windows of its own inputs, once these are read."""
        begin = max((span.begin for span in self.step_spans if span.begin is not None), default=None)
        end = min((span.end for span in self.step_spans if span.end is not None), default=None)
        first, last = whole_steps(steps, begin, end, self.now)
        return Stepping(steps, [], first, last, TimeAxis((), "", steps.origin), 0)


def _steps_of(stepping: Stepping, times: Numbers) -> tuple[Numbers, Numbers]:
    """For each pair of a joined row and a step that contains it: the row's index and the step.

    A row of an outer join that contains no tuple of a stream has no time, and is in no step.
    """
    (timed,) = np.nonzero(times != WITHOUT_TIME)
    indexes, steps = stepping.of_each(times[timed] - stepping.steps.origin)
    return timed[indexes], steps


def _with_columns(rows: pa.Table, stepping: Stepping, steps: npt.NDArray[np.int64]) -> pa.Table:
    for name, column in stepping.columns(steps).items():
        rows = rows.append_column(name, column)
    return rows


def table_input(table: pa.Table, entry: ReadyInput, indexes: KeyIndexes | None = None) -> TableInput:
    """The rows of a table or of a block's answer that satisfy the clause of an input; with `indexes`, also by key."""
    return TableInput(table, None if entry.selector is None else rows_satisfying(table, entry.selector), indexes)
