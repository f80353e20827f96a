"""The way from a handle and a condition to the explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tureen.closed.tuple_groups import Mask
from tureen.errors import SqlError, UnknownColumn, Unsupported
from tureen.join import visible_leaves
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import JoinInput, Numbers
from tureen.language.binding.input_condition import InputCondition, bind_input_condition
from tureen.pot.registered import Registered
from tureen.query import RelationKind
from tureen.results.answering import Answers
from tureen.results.finals.final_groups import FinalGroups
from tureen.results.invoke import Invoker
from tureen.results.joins.join_answers import JoinAnswer
from tureen.results.joins.join_inputs import StreamInput
from tureen.results.joins.join_ready import ReadyBlock, ReadyJoin, ReadySelection, ReadySetOperation, prepare
from tureen.results.joins.joined import JoinedMatches
from tureen.results.rows.ready import Ready
from tureen.results.rows.stepping import LATEST, Stepping, steps_at
from tureen.results.snapshot.standing_check import check_standing, relation_of
from tureen.results.snapshot.stream_state import Snapshot
from tureen.schema import Schema
from tureen.sharing.partial_rows import has_partial_rows
from tureen.why.after_joining import JoinedAnswer, NumberedSteps, Verdict
from tureen.why.asked_tuples import AskedTuple, AskedTuples, rows_of_table, tuples_of_stream
from tureen.why.explanation import ExplainedTuple, Explanation, Reason, value_text
from tureen.why.missing_partner import PartnerSearch
from tureen.why.one_input import StreamWindow, clause_reasons
from tureen.why.shown_values import ShownQuery
from tureen.window import from_micros


def explain_tuples(invoker: Invoker, handle: str, condition: str, now: int | None, limit: int) -> Explanation:
    """Why the latest tuples that satisfy a condition are in the answer of a query at `now`, or not."""

    def explain(registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin) -> Explanation:
        check_standing(registered)
        for state in snapshot.streams.values():
            if has_partial_rows(state.stream.schema):
                raise Unsupported(
                    f"the tuples of stream '{state.stream.name}' are not here: the answer is computed from partial "
                    "aggregates that another server sends",
                    hint="ask at the server where the stream lives",
                )
        instant = invoker.answers.now_of([state.stream for state in snapshot.streams.values()]) if now is None else now
        return _Asking(invoker.answers, registered, snapshot, instant).explain(ready, condition, limit)

    return invoker.with_prepared(handle, explain)


@dataclass(frozen=True)
class _Asking:
    """A query, and the snapshot and the NOW at which it is asked about."""

    answers: Answers
    registered: Registered
    snapshot: Snapshot
    now: int

    def explain(self, ready: Ready | ReadyJoin, condition: str, limit: int) -> Explanation:
        block, bound = self._bind(condition, ready)
        asking = _BlockAsking(self, block, bound)
        asked = asking.asked(limit)
        tuples = tuple(map(asking.explained, asked.tuples))
        notes = [*asking.notes()]
        if block.query is not ready.query:
            notes.append(
                f"explained for the part of the query that reads {asking.name} alone: what the rest of it does with "
                "the rows of that part is not explained"
            )
        return Explanation(asking.name, tuples, asked.total, tuple(notes), asking.types(), self.snapshot.position)

    def schema_of(self, relation: str) -> Schema:
        """The columns of a stream or table."""
        return relation_of(self.snapshot, relation).schema

    def _bind(self, condition: str, ready: Ready | ReadyJoin) -> tuple[ReadyJoin, InputCondition]:
        """The query that a condition is about: the whole one or, if that lacks its names, one in parentheses."""
        unknown: list[UnknownColumn] = []
        fitting = []
        for block in self._blocks(ready):
            try:
                bound = bind_input_condition(condition, block.query, self.schema_of)
            except UnknownColumn as error:
                unknown.append(error)
                continue
            if block.query is ready.query:
                return block, bound
            fitting.append((block, bound))
        if not fitting:
            raise unknown[0]
        if len(fitting) > 1:
            names = " and ".join(dict.fromkeys(block.query.inputs[bound.input].shown_name for block, bound in fitting))
            raise SqlError(
                f"the condition fits several parts of the query, over {names}",
                hint="write an alias that only one of them has before its columns",
            )
        return fitting[0]

    def _blocks(self, ready: Ready | ReadyBlock) -> Iterator[ReadyJoin]:
        """A query and those within it, each as a join of its inputs, unless it has none with a name."""
        match ready:
            case Ready():
                yield prepare(ready.query, self.schema_of)
            case ReadySelection():
                yield prepare(ready.ready.query, self.schema_of, first_leaf=ready.leaf)
            case ReadySetOperation():
                yield from self._blocks(ready.left)
                yield from self._blocks(ready.right)
            case ReadyJoin():
                if any(entry.input.names for entry in ready.inputs):
                    yield ready
                for entry in ready.inputs:
                    if entry.block is not None:
                        yield from self._blocks(entry.block)


@dataclass(frozen=True)
class _BlockAsking:
    """One query, or one in parentheses, and the input of it that is asked about."""

    asking: _Asking
    block: ReadyJoin
    bound: InputCondition

    @property
    def name(self) -> str:
        """The name of the input."""
        return self._shown.inputs[self.bound.input].name

    def types(self) -> dict[str, str]:
        """The types of all names in rows and reasons."""
        own = self._shown.inputs[self.bound.input]
        labels = own.plain_labels
        return {**self._shown.types, **{labels[column.name]: column.type.sql for column in own.schema.columns}}

    def asked(self, limit: int) -> AskedTuples:
        """The tuples that satisfy the condition."""
        asking, entry, clause = self.asking, self.block.inputs[self.bound.input], self.bound.clause
        if self._window is not None:
            return tuples_of_stream(asking.answers, self._window.state, clause, limit)
        if entry.block is not None:
            return rows_of_table(self._join.block_answer(entry.block), clause, limit)
        assert entry.leaf is not None
        table = asking.answers.table(asking.snapshot, asking.registered.inputs[entry.leaf])
        return rows_of_table(table, clause, limit)

    def explained(self, asked: AskedTuple) -> ExplainedTuple:
        """A tuple and its reasons."""
        in_answer, reasons = self._verdict(asked)
        labels = self._shown.inputs[self.bound.input].plain_labels
        row = {label: asked.row[name] for name, label in labels.items()}
        time = None if asked.time is None else from_micros(asked.time)
        return ExplainedTuple(self.name, row, time, in_answer, tuple(reasons))

    def notes(self) -> Iterator[str]:
        """What could not be examined."""
        window = self._window
        if window is None or window.horizon is None:
            return
        stored = sum(segment.rows for segment in window.state.segments)
        if stored < window.state.stream.next_id:
            yield (
                f"tuples of {self.name} before {value_text(from_micros(window.horizon))} have expired; "
                "those that are no longer stored cannot be examined"
            )

    def _verdict(self, asked: AskedTuple) -> Verdict:
        number = self.bound.input
        reasons = [] if self._window is None else list(self._window.reasons(asked))
        reasons += clause_reasons(self.block.query.inputs[number].clause, asked, self._shown.inputs[number])
        if reasons:
            return False, reasons
        if number not in visible_leaves(self.block.query.source):
            text = "only conditions such as EXISTS or IN read this input: its tuples are no part of the answer's rows"
            return False, [Reason("condition", text)]
        (row,) = np.flatnonzero(self._inputs[number].ids == asked.id)
        search = PartnerSearch(self._evaluation, self._shown, number, int(row), self._why_empty)
        if not len(search.rows(self.block.query.source)):
            return False, search.reasons(self.block.query.source)
        return self._answer.verdict(number, int(row))

    def _why_empty(self, number: int) -> str:
        """Why an input has no rows."""
        window = self._window_of(number)
        if window is None:
            return "none of its rows satisfies its conditions"
        if not window.rows:
            return "its window contains no tuple"
        return f"none of the {window.rows:,} tuples in its window satisfies its conditions"

    @cached_property
    def _shown(self) -> ShownQuery:
        return ShownQuery(self.block.query, self.asking.schema_of)

    @cached_property
    def _join(self) -> JoinAnswer:
        return self.asking.answers.join_answer(self.asking.registered, self.asking.snapshot, self.asking.now)

    @cached_property
    def _inputs(self) -> list[JoinInput]:
        return self._join.inputs(self.block)

    @cached_property
    def _evaluation(self) -> JoinEvaluation:
        return JoinEvaluation(self._inputs, self.asking.now, self.asking.answers.limits)

    @cached_property
    def _window(self) -> StreamWindow | None:
        return self._window_of(self.bound.input)

    def _window_of(self, number: int) -> StreamWindow | None:
        """The window of an input; None if it is no stream."""
        entry, asking = self.block.inputs[number], self.asking
        if entry.leaf is None or entry.input.kind is not RelationKind.STREAM:
            return None
        stream_id = asking.registered.inputs[entry.leaf].stream_id
        assert stream_id is not None
        state = asking.snapshot.streams[stream_id]
        return StreamWindow(state, entry.input.window.span(asking.now), asking.answers.horizon(state.stream))

    @cached_property
    def _answer(self) -> JoinedAnswer:
        joined = self._evaluation.rows(self.block.query.source)
        stepping = self._stepping
        return JoinedAnswer(
            self.block,
            self._inputs,
            joined,
            self.asking.now,
            self._shown,
            stepping,
            self._steps_of(stepping),
            self._are_final if self.block.query.final else None,
        )

    def _are_final(self, groups: pa.Table) -> Mask:
        asking = self.asking
        final_groups = FinalGroups(asking.registered, asking.snapshot, self.block, asking.answers.histories)
        return final_groups.are_final(groups, asking.now, None if self._window is None else self._window.horizon)

    @cached_property
    def _stepping(self) -> NumberedSteps | None:
        steps = self.block.query.steps
        if steps is None:
            return None
        if not steps.rows:
            stepping = self._join.stepping(steps)
            # A step that is not over may have final groups.
            return NumberedSteps.of(replace(stepping, last=LATEST) if self.block.query.final else stepping)
        window = self._window_of(0)
        assert window is not None, "only a query over one stream has steps of rows"
        return NumberedSteps.of(steps_at(window.state, steps, window.span, self.asking.now, window.horizon))

    def _steps_of(self, stepping: Stepping | None) -> Callable[[JoinedMatches], tuple[Numbers, Numbers]]:
        """The steps of joined rows, in order."""

        def by_time(matches: JoinedMatches) -> tuple[Numbers, Numbers]:
            assert stepping is not None
            return stepping.of_each(matches.times - stepping.steps.origin)

        def by_number(matches: JoinedMatches) -> tuple[Numbers, Numbers]:
            assert stepping is not None
            (source,) = self._inputs
            assert isinstance(source, StreamInput)
            hits = source.subset(np.sort(matches.rows.rows[0])).hits
            return stepping.of_each(stepping.axis.coordinates(hits, matches.table(self.block.fields)))

        return by_number if stepping is not None and stepping.steps.rows else by_time
