"""Answering a prepared query from a snapshot: over one stream, or over several inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter_ns

import pyarrow as pa

from tureen.aggregates.expression_values import with_now
from tureen.bounded_cache import BoundedCache
from tureen.errors import QueryFailed
from tureen.joining.join_limits import JoinLimits
from tureen.position import Position
from tureen.pot.catalog import Catalog
from tureen.pot.registered import Registered, RegisteredInput
from tureen.pot.streams import Stream
from tureen.query import Query
from tureen.results.answer import Answer, Bounds
from tureen.results.answer_bounds import bounds_of, end_of, is_complete, note_of, position_of
from tureen.results.changes.closed_steps import ClosedSteps, closed_steps
from tureen.results.changes.join_changes import JoinChangeReader, NewJoinedRows
from tureen.results.covers.composed_steps import Composition, composed_groups, composed_ranges
from tureen.results.covers.reuse import Reuse
from tureen.results.finals.final_groups import FinalGroups
from tureen.results.joins.join_answers import JoinAnswer, table_input
from tureen.results.joins.join_inputs import TableInput
from tureen.results.joins.join_ready import ReadyInput, ReadyJoin, ReadySelection
from tureen.results.joins.kept_rows import ClauseRows, KeptRows
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.joins.remembered_joins import KeptJoinInvocation, RememberedJoins
from tureen.results.joins.remembered_part import OPEN, TimeWindow
from tureen.results.rows.grouped import Plans, grouped, rows_of_states
from tureen.results.rows.grouping_set_rows import rows_of_sets
from tureen.results.rows.kept import Structure, StructureCache
from tureen.results.rows.ranges import later, ranges_of
from tureen.results.rows.ready import Ready
from tureen.results.rows.remembered_rows import RememberedRows
from tureen.results.rows.selection import Selection
from tureen.results.rows.stepping import open_steps_at, steps_at
from tureen.results.rows.watch import Watch
from tureen.results.rows.window_edges import final_step_end
from tureen.results.snapshot.closing_histories import ClosingHistories
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.stems.table_files import read_content
from tureen.window import Span

KEPT_TABLES = 64
"""The number of contents of tables that a process keeps mapped."""


class Answers:
    """Answers prepared queries from snapshots of one pot."""

    def __init__(self, catalog: Catalog, clock: Callable[[], int], limits: JoinLimits) -> None:
        """Answer from that catalog's files, joins within limits; `clock` returns NOW in microseconds."""
        self._root = catalog.root
        self._clock = clock
        self._structure_cache = StructureCache()
        self._tables: BoundedCache[str, pa.Table] = BoundedCache(KEPT_TABLES)
        self.indexes = KeyIndexes()
        self._selected = ClauseRows()
        self.remembered = RememberedRows()
        self.remembered_joins = RememberedJoins()
        self.watch = Watch()
        self.limits = limits
        self.histories = ClosingHistories(catalog)

    def now_of(self, streams: Sequence[Stream]) -> int:
        """The NOW of streams: the highest time seen if all of them have that clock, otherwise the wall clock."""
        latest: int | None = None
        for stream in streams:
            if stream.clock != "stream":
                return self._clock()
            if latest is None or (stream.last_time is not None and stream.last_time > latest):
                latest = stream.last_time
        return self._clock() if latest is None else latest

    def wall_clock(self) -> int:
        """The wall clock, in microseconds."""
        return self._clock()

    def horizon(self, stream: Stream) -> int | None:
        """The time before which tuples of a stream have expired."""
        return stream.horizon(self._clock())

    def of_stream(self, registered: Registered, snapshot: Snapshot, ready: Ready, now: int | None) -> Answer:
        """The answer of a query over one stream."""
        state = snapshot.streams[registered.stream_ids[0]]
        instant = self.now_of([state.stream]) if now is None else now
        span, horizon = ready.query.inputs[0].window.span(instant), self.horizon(state.stream)
        selection = self.selection(ready, registered.inputs[0], state, instant, span, horizon)
        own = Snapshot(state.seq, state.pushes, {state.stream.id: state}, {})
        rows = self._final(registered, own, ready, self.rows(selection, ready), instant, horizon)
        note = note_of(snapshot, [state.stream])
        return Answer(
            table=ready.finish(rows),
            window=Bounds.of(span.begin, end_of(span)),
            position=self._position(registered, own, ready, instant),
            complete=note is None and is_complete(state, span, selection.window_rows, horizon),
            note=note,
        )

    def of_derived(self, reuse: Reuse, now: int | None) -> Answer:
        """The answer of a query over one stream, from a derived stream that covers it."""
        ready, derived = reuse.cover.ready, reuse.cover.derived
        base = reuse.snapshot.streams[derived.base.id]
        instant = self.now_of([base.stream]) if now is None else now
        span, horizon = ready.query.inputs[0].window.span(instant), self.horizon(base.stream)
        leaf = RegisteredInput(stream_id=derived.stream.id)
        selection = self.selection(ready, leaf, reuse.state, instant, span, horizon)
        return Answer(
            table=ready.finish(self.rows(selection, ready)),
            window=Bounds.of(span.begin, end_of(span)),
            position=position_of(Snapshot(base.seq, base.pushes, {base.stream.id: base}, {}), ready.query, instant),
            complete=is_complete(base, span, 0, horizon),
        )

    def of_steps(self, composition: Composition, ready: Ready, now: int | None) -> Answer | None:
        """The answer of a query whose steps are composed of those of a derived stream; None if that is not cheaper."""
        base, plans = composition.base, ready.plans[0]
        instant = self.now_of([base.stream]) if now is None else now
        span, horizon = ready.query.inputs[0].window.span(instant), self.horizon(base.stream)
        kept = self.kept_structure(base, plans)
        stepping, ranges = composed_ranges(composition, ready, span, instant, horizon, kept)
        if ranges is None:
            return None
        groups = composed_groups(composition, ranges, ready, stepping, self.watch)
        return Answer(
            table=ready.finish(rows_of_states(plans, plans.partial, groups, stepping)),
            window=Bounds.of(span.begin, end_of(span)),
            position=position_of(Snapshot(base.seq, base.pushes, {base.stream.id: base}, {}), ready.query, instant),
            complete=is_complete(base, span, stepping.held, horizon),
        )

    def closed_steps(self, registered: Registered, snapshot: Snapshot, ready: Ready, after: int | None) -> ClosedSteps:
        """The rows of a query's steps after that number that are over."""
        state = snapshot.streams[registered.stream_ids[0]]
        if state.stream.last_time is None:
            return ClosedSteps(pa.table({}), after)
        instant = self.now_of([state.stream])

        def select(state: StreamState, span: Span) -> Selection:
            # Without the horizon: after a pause, it may have passed steps that were not read yet.
            return self.selection(ready, registered.inputs[0], state, instant, span, None)

        return closed_steps(ready, state, select, self.rows, after)

    def of_join(self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin, now: int | None) -> Answer:
        """The answer of a query over several inputs."""
        instant = self.now_of([state.stream for state in snapshot.streams.values()]) if now is None else now
        remembered = self._of_remembered(registered, snapshot, ready, instant, is_now=now is None)
        if remembered is not None:
            return remembered
        join = self.join_answer(registered, snapshot, instant)
        began = perf_counter_ns()
        table = ready.finish(self._final(registered, snapshot, ready, join.rows(ready), instant, None))
        if registered.join_id is not None:
            self.watch.note_join(registered.join_id, perf_counter_ns() - began if join.kept is None else None)
        position = self._position(registered, snapshot, ready, instant)
        note = note_of(snapshot, (state.stream for state in snapshot.streams.values()))
        return Answer(table, bounds_of(join.spans), position, note is None and all(join.complete), note)

    def _of_remembered(
        self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin, instant: int, *, is_now: bool
    ) -> Answer | None:
        """The answer of a query over a kept join from joined rows that are remembered; None if they are not.

        Only invocations at NOW remember more: windows of the past do not contain the tuples that come next.
        """
        kept = None if registered.join_id is None else snapshot.joins.get(registered.join_id)
        part = ready.stream_join
        if kept is None or part is None or not ready.remembers_rows:
            return None

        def read() -> KeptRows:
            return self.join_answer(registered, snapshot, instant).kept_rows(ready, part, kept)

        clock, spans, states, windows, complete = self._clock(), [], [], [], True
        for number, stream in zip(part.inputs, part.join.streams, strict=True):
            state, span = snapshot.streams[stream], ready.inputs[number].input.window.span(instant)
            begin, horizon = span.begin, state.stream.horizon(clock)
            if horizon is not None:
                begin, complete = later(begin, horizon), complete and is_complete(state, span, 0, horizon)
            states.append(state)
            spans.append(span)
            windows.append(OPEN if begin is None and span.end is None else TimeWindow(begin, span.end))
        reads, query = read if is_now else None, registered.id
        invocation = KeptJoinInvocation(query, ready, kept, snapshot, states, tuple(windows), self.indexes, reads)
        rows = self.remembered_joins.table(invocation)
        if rows is None:
            return None
        self.limits.check_rows(rows.num_rows)
        self.watch.note_join(kept.join.id, None)
        note = note_of(snapshot, (state.stream for state in states)) if snapshot.troubles else None
        table = ready.finish.of_selected(rows)
        return Answer(table, bounds_of(spans), snapshot.position, complete and note is None, note)

    def rows_before_finish(
        self, registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin, now: int
    ) -> pa.Table:
        """The groups of a query at a moment, before HAVING and the select list."""
        if isinstance(ready, ReadyJoin):
            rows = self.join_answer(registered, snapshot, now).rows(ready)
        else:
            state = snapshot.streams[registered.stream_ids[0]]
            span, horizon = ready.query.stream.window.span(now), self.horizon(state.stream)
            rows = self.rows(self.selection(ready, registered.inputs[0], state, now, span, horizon), ready)
        return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows

    def explained_join(
        self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin
    ) -> tuple[JoinAnswer, QueryFailed | None]:
        """How the inputs of a query are joined, and the error if they cannot be.

        Its answer is not computed from the joined rows.
        """
        instant = self.now_of([state.stream for state in snapshot.streams.values()])
        join = self.join_answer(registered, snapshot, instant)
        try:
            join.evaluate(ready)
        except QueryFailed as failure:
            return join, failure
        return join, None

    def join_answer(self, registered: Registered, snapshot: Snapshot, instant: int) -> JoinAnswer:
        """What reads the inputs of a query at one NOW."""
        # The functions do not refer to the answer that refers to them: it would be kept until the garbage collector
        # runs, and with it the runs that it reads.
        spans: list[Span] = []
        horizons: list[int] = []
        complete: list[bool] = []

        def state_of(leaf: RegisteredInput) -> StreamState:
            assert leaf.stream_id is not None
            return snapshot.streams[leaf.stream_id]

        def note(state: StreamState, span: Span, selection: Selection, horizon: int | None) -> None:
            spans.append(span)
            horizons.extend([] if horizon is None else [horizon])
            complete.append(is_complete(state, span, selection.window_rows, horizon))

        def select(entry: ReadyInput, leaf: RegisteredInput) -> Selection:
            state = state_of(leaf)
            assert entry.selector is not None
            span, horizon = entry.input.window.span(instant), self.horizon(state.stream)
            ranges = ranges_of(state.segments, span, horizon)
            begin = later(span.begin, horizon)
            selection = Selection(
                state,
                leaf,
                entry.selector,
                ranges,
                None,
                self.watch,
                begin=begin,
                end=span.end,
                remembered=self.remembered,
            )
            note(state, span, selection, horizon)
            return selection

        def answer_selection(block: ReadySelection, leaf: RegisteredInput) -> pa.Table:
            state = state_of(leaf)
            span, horizon = block.ready.query.stream.window.span(instant), self.horizon(state.stream)
            selection = self.selection(block.ready, leaf, state, instant, span, horizon)
            note(state, span, selection, horizon)
            return block.ready.finish(self.rows(selection, block.ready))

        join = JoinAnswer(
            registered.inputs,
            select,
            lambda leaf: self.table(snapshot, leaf),
            answer_selection,
            instant,
            self.indexes,
            self.limits,
            self._selected,
            self._structure_cache,
            spans=spans,
            horizons=horizons,
            complete=complete,
        )
        if registered.join_id is not None:
            join.kept = snapshot.joins.get(registered.join_id)
        return join

    def changes_of_join(
        self,
        leaves: Sequence[RegisteredInput],
        snapshot: Snapshot,
        ready: ReadyJoin,
        since: Position | None,
        until: Mapping[int, int] | None = None,
    ) -> NewJoinedRows:
        """The rows of a join that appeared since a position, before the last step of the query."""

        def read_table(entry: ReadyInput, leaf: RegisteredInput) -> TableInput:
            return table_input(self.table(snapshot, leaf), entry)

        return JoinChangeReader(leaves, snapshot, ready, read_table, self.indexes).read(since, until)

    def table(self, snapshot: Snapshot, leaf: RegisteredInput) -> pa.Table:
        """The rows of a table."""
        assert leaf.table_id is not None
        return self.content(snapshot, leaf.table_id)

    def content(self, snapshot: Snapshot, table_id: str) -> pa.Table:
        """The rows of the table of an id."""
        content = snapshot.tables[table_id].content
        return self._tables.get(content.path, lambda: read_content(self._root, content))

    def selection(
        self,
        ready: Ready,
        query_input: RegisteredInput,
        state: StreamState,
        instant: int,
        span: Span,
        horizon: int | None,
    ) -> Selection:
        """The tuples of a stream that a query over it asks for."""
        query = ready.query
        stepping = None
        if query.steps is not None:
            window = query.stream.window
            stepping = (
                open_steps_at(state, query.steps, window, span, horizon)
                if query.final
                else steps_at(state, query.steps, span, instant, horizon)
            )
        ranges = ranges_of(state.segments, span, horizon) if stepping is None else stepping.ranges
        now_used = instant if query.uses_now else None
        return Selection(state, query_input, ready.selector, ranges, stepping, self.watch, now_used, query.at_now)

    def rows(self, selection: Selection, ready: Ready) -> pa.Table | pa.RecordBatch:
        """The rows of the window, or their groups."""
        grouping = ready.query.grouping
        if grouping is None:
            if selection.stepping is None and selection.now is None:
                return selection.matches().table(ready.fields)
            rows, steps = selection.rows(ready.fields)
            for name, column in ({} if selection.stepping is None else selection.stepping.columns(steps)).items():
                rows = rows.append_column(name, column)
            return rows
        parts = [self._groups(selection, plans) for plans in ready.plans]
        table = parts[0] if grouping.sets is None else rows_of_sets(grouping, parts)
        return table if selection.now is None else with_now(table, selection.now)

    def _final(
        self,
        registered: Registered,
        snapshot: Snapshot,
        ready: Ready | ReadyJoin,
        rows: pa.Table | pa.RecordBatch,
        now: int,
        horizon: int | None,
    ) -> pa.Table | pa.RecordBatch:
        """The groups of an answer; with EMIT FINAL, those that are final."""
        if not ready.query.final:
            return rows
        return FinalGroups(registered, snapshot, ready, self.histories).final_rows(rows, now, horizon)

    def _position(self, registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin, now: int) -> str:
        """The position of an answer: with NOW for groups, which change as time passes, unless they are final."""
        query = ready.query
        if not query.final:
            return position_of(snapshot, query, now)
        marks = FinalGroups(registered, snapshot, ready, self.histories).marks()
        # Not at `now`: changes do not depend on which window was asked for.
        return str(Position(snapshot.seq, marks, snapshot.pushes, self.last_step_end(query, snapshot)))

    def last_step_end(self, query: Query, snapshot: Snapshot) -> int | None:
        """The end of the last step that is final; None without steps, or before the first tuple."""
        stream = next(iter(snapshot.streams.values())).stream
        if query.steps is None or (stream.clock == "stream" and stream.last_time is None):
            return None
        return final_step_end(query.steps, self.now_of([stream]), stream.rules)

    def _groups(self, selection: Selection, plans: Plans) -> pa.RecordBatch:
        with self.structure(selection.state, plans) as structure:
            return grouped(selection, plans, structure)

    def kept_structure(self, state: StreamState, plans: Plans) -> Structure | None:
        """The partial aggregates of a grouping that are in memory, if there are any."""
        return self._structure_cache.peek((state.stream.id, plans.shape))

    @contextmanager
    def structure(self, state: StreamState, plans: Plans) -> Iterator[Structure]:
        """The partial aggregates of a grouping, for use in a block."""
        key = (state.stream.id, plans.shape)
        structure = self._structure_cache.structure(key, lambda: Structure(plans.partial))
        before = structure.nbytes
        yield structure
        self._structure_cache.clean_up(state)
        if structure.nbytes > before:
            self._structure_cache.trim()
