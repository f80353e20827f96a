"""Invocation: handle → window at NOW → the query's tuples in each run → gathered rows.

It starts no Spark job and scans only the tail: published cells are looked up, owed and lazy ones are evaluated from the
index.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tureen.aggregates.expression_values import with_now
from tureen.bounded_cache import BoundedCache
from tureen.errors import QueryFailed, UnknownQuery, UnknownStream
from tureen.language import bind_query
from tureen.language.fast.quick import QuickBinder
from tureen.language.predicates.factor_text import factor_text
from tureen.language.text.shapes import shape_of
from tureen.matching import Selector, access_column, describe
from tureen.position import Position
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.parts import missing_file
from tureen.pot.queries import LOCAL, Registered, RegisteredInput, count_shape
from tureen.pot.query_runs import live_query_runs
from tureen.pot.streams import Stream, find_stream, list_streams
from tureen.pot.templates import count_members_of_shape
from tureen.queries import QueryRun
from tureen.results.answer import Answer, Bounds
from tureen.results.changes import NewRows, check_has_changes, mark_of, new_rows
from tureen.results.grouped import Plans, grouped
from tureen.results.grouping_set_rows import rows_of_sets
from tureen.results.kept import Structure, StructureCache
from tureen.results.ranges import ranges_of
from tureen.results.ready import BoundTemplate, Ready
from tureen.results.selection import Selection
from tureen.results.stepping import steps_at
from tureen.results.stream_state import Snapshot, StreamState
from tureen.results.template_matches import TemplateMatches, TemplateRule, finish_matches, match_template
from tureen.results.view import View
from tureen.results.watch import Watch
from tureen.schema import Column, Schema
from tureen.window import Span

Result = TypeVar("Result")

LIGHT_ROWS = 1 << 20
"""The maximum number of rows of a small stream, whose rows are gathered in a few milliseconds."""

LIGHT_TEXT = 2_000
"""The maximum length of a short text, which is parsed in a millisecond or two."""

RETRIES = 5
"""How often an invocation is retried if a file was removed."""

BOUND_TEMPLATES = 256
"""The number of templates that a process caches as `BoundTemplate`."""

BOUND_QUERIES = 4096
"""The number of prepared queries that a process caches."""


class Invoker:
    """Answers standing queries of one pot; needs neither the lease nor Spark."""

    def __init__(self, catalog: Catalog, clock: Callable[[], int] = micros_now) -> None:
        """Answer from that catalog; `clock` returns NOW in microseconds."""
        self.view = View(catalog)
        self._clock = clock
        self._ready: BoundedCache[str, Ready] = BoundedCache(BOUND_QUERIES)
        self._binder = QuickBinder()
        self._members: BoundedCache[str, BoundTemplate] = BoundedCache(BOUND_TEMPLATES)
        self._structure_cache = StructureCache()
        self.watch = Watch()

    def invoke(self, handle: str, now: int | None = None) -> Answer:
        """The answer of a query at `now`, by default at the stream's NOW."""
        return self._with_files(lambda: self._invoke(handle, now))

    def is_light(self, handle: str) -> bool:
        """Whether an invocation only looks up rows of a small stream and selects columns.

        A query with a long text is not light, because parsing it at the first invocation takes time.
        """
        return self._with_files(lambda: self._is_light(handle))

    def _is_light(self, handle: str) -> bool:
        registered, state = self._look_up(handle)
        if len(registered.sql) > LIGHT_TEXT or sum(run.rows for run in state.runs) > LIGHT_ROWS:
            return False
        return self._bound(registered, state.stream.schema).light

    def answer_once(self, sql: str, now: int | None = None) -> Answer:
        """The answer of an unregistered query, evaluated from the index."""
        return self._with_files(lambda: self._answer(*self._unregistered(sql), now))

    def new_rows(self, handle: str, since: Position | None) -> NewRows:
        """The rows that joined a query's answer since a position; without one, none yet."""
        return self._with_files(lambda: self._new_rows(handle, since))

    def _new_rows(self, handle: str, since: Position | None) -> NewRows:
        registered, state = self._look_up(handle)
        _check_standing(registered)
        ready = self._bound(registered, state.stream.schema)
        check_has_changes(ready.query)
        query, mark = ready.query, mark_of(state, since)
        names = query.columns or (state.stream.schema.time_column,)
        new = new_rows(state, names, query.stream.window, registered.stream, ready.selector, mark.next_id)
        return replace(new, rows=ready.finish(new.rows))

    def template_matches(self, rule: TemplateRule, template_id: str, since: Position | None) -> TemplateMatches:
        """The rows that joined the answers of a template's queries since a position; without one, none yet."""
        return self._with_files(lambda: self._template_matches(rule, template_id, since))

    def _template_matches(self, rule: TemplateRule, template_id: str, since: Position | None) -> TemplateMatches:
        check_has_changes(rule.query)
        state = self.view.stream(rule.stream_id)
        # Read after the stream: an older version of the template could lack queries, see `View.members`.
        members = self.view.members(template_id, at_least=state.seq)
        if members is None:
            raise UnknownQuery(f"there is no template '{template_id}'", hint="it was unregistered before")
        pairing = rule.pairing(members)
        schema = state.stream.schema
        names = sorted({schema.time_column, *rule.columns, *pairing.columns})
        common, mark = Selector(pairing.common, schema), mark_of(state, since)
        stream = RegisteredInput(stream_id=rule.stream_id)
        new = new_rows(state, names, rule.query.stream.window, stream, common, mark.next_id)
        return finish_matches(rule, match_template(new, pairing, members, mark), members)

    def snapshot(self) -> Snapshot:
        """All streams, with their pending rows."""

        def read() -> Snapshot:
            while True:
                with self.view.catalog.read() as tx:
                    streams = [stream.id for stream in list_streams(tx)]
                # A stream that is dropped in the meantime is not listed again.
                with suppress(UnknownStream):
                    return self.view.snapshot(streams)
                self.view.refresh()

        return self._with_files(read)

    def next_id(self, stream_id: int) -> int:
        """The id of the next tuple that is pushed to a stream."""
        return self._with_files(lambda: self.view.stream(stream_id)).stream.next_id

    def schema_of(self, handle: str) -> Schema:
        """The columns of a query's answers."""
        registered, state = self._with_files(lambda: self._look_up(handle))
        query = self._bound(registered, state.stream.schema).query
        return Schema(tuple(Column(output.name, output.value.type) for output in query.outputs))

    def _with_files(self, answer: Callable[[], Result]) -> Result:
        """Call `answer`, and retry it if a file was removed in the meantime."""
        self.view.refresh()
        try:
            return answer()
        except FileNotFoundError:
            return self._with_held_files(answer)

    def _with_held_files(self, answer: Callable[[], Result]) -> Result:
        """Call `answer` again after a file was replaced and removed before it was mapped.

        All files are mapped first, so that a retry succeeds however long it takes.
        """
        with self.view.holding():
            for _ in range(RETRIES):
                self.view.forget()
                with suppress(FileNotFoundError):
                    return answer()
            self.view.forget()
            try:
                return answer()
            except FileNotFoundError as error:
                raise missing_file(error) from error

    def _invoke(self, handle: str, now: int | None) -> Answer:
        registered, state = self._look_up(handle)
        _check_standing(registered)
        return self._answer(registered, state, self._bound(registered, state.stream.schema), now)

    def _answer(self, registered: Registered, state: StreamState, ready: Ready, now: int | None) -> Answer:
        query, instant = ready.query, self.now_of(state.stream) if now is None else now
        span = query.stream.window.span(instant)
        horizon = state.stream.horizon(self._clock())
        stepping = None
        if query.steps is not None:
            stepping = steps_at(state, query.steps, span, instant, horizon)
        ranges = ranges_of(state.segments, span, horizon) if stepping is None else stepping.ranges
        now_used = instant if query.uses_now else None
        selection = Selection(
            state, registered.stream, ready.selector, ranges, stepping, self.watch, now_used, query.at_now
        )
        return Answer(
            table=ready.finish(self._rows(selection, ready)),
            window=Bounds.of(span.begin, span.end if span.until is None else _earlier(span.end, span.until)),
            position=state.position,
            complete=_complete(state, span, selection.window_rows, horizon),
        )

    def _rows(self, selection: Selection, ready: Ready) -> pa.Table | pa.RecordBatch:
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

    def _groups(self, selection: Selection, plans: Plans) -> pa.RecordBatch:
        stream = selection.state.stream
        structure = self._structure_cache.structure((stream.id, plans.shape), lambda: Structure(plans.partial))
        before = structure.nbytes
        table = grouped(selection, plans, structure)
        self._structure_cache.clean_up(selection.state)
        if structure.nbytes > before:
            self._structure_cache.trim()
        return table

    def now_of(self, stream: Stream) -> int:
        """The NOW of a stream: the wall clock, or the highest time seen."""
        if stream.clock == "stream" and stream.last_time is not None:
            return stream.last_time
        return self._clock()

    def explain(self, handle: str) -> dict[str, Any]:
        """How a query is answered: its factors, its access path, and the state of its cells."""

        def explain() -> dict[str, Any]:
            registered, state = self._look_up(handle)
            return self._explain(registered, state, self._bound(registered, state.stream.schema))

        return self._with_files(explain)

    def explain_once(self, sql: str) -> dict[str, Any]:
        """How an unregistered query would be answered."""
        return self._with_files(lambda: self._explain(*self._unregistered(sql)))

    def _explain(self, registered: Registered, state: StreamState, ready: Ready) -> dict[str, Any]:
        span = ready.query.stream.window.span(self.now_of(state.stream))
        ranges = ranges_of(state.segments, span, state.stream.horizon(self._clock()))
        paths = {"published": 0, "owed": 0, "lazy": 0, "tail": 0}
        for segment, (first, last) in zip(state.segments, ranges, strict=True):
            if last > first:
                paths[_path(segment.matched_seq, registered.stream)] += last - first
        return {
            "id": registered.id or None,
            "name": registered.name,
            "sql": registered.sql,
            "state": registered.state if registered.id else None,
            "error": registered.error,
            "stream": state.stream.name,
            "factors": [factor_text(factor, state.stream.schema) for factor in ready.query.stream.clause],
            "at_now": None if ready.query.at_now is None else ready.query.at_now.sql,
            "materialize": "auto" if registered.eager is None else registered.eager,
            "materialized": registered.stream.number is not None,
            "why": _why(registered, self.watch),
            "clause": registered.stream.clause_id or 0,
            "shape": self._shape(registered),
            "access": self._access(registered),
            "aggregates": _aggregates(ready),
            "tuples_by_path": paths,
            "runs_in_window": sum(1 for first, last in ranges if last > first),
        }

    def _access(self, registered: Registered) -> dict[str, Any]:
        """How the clause is matched with arriving tuples: by key or visited, and the size of its query run."""
        stream_id, number = registered.stream.stream_id, registered.stream.number
        if stream_id is None or number is None:
            return {"way": "evaluated from the index of each run, or by a scan of its tail"}
        with self.view.catalog.read() as tx:
            runs = live_query_runs(tx, stream_id)
        path = next((run.path for run in runs if run.first <= number <= run.last), None)
        if path is None:
            return {"way": "matched with arriving tuples once it is compiled"}
        run = QueryRun.load(self.view.catalog.root / path)
        index = int(np.searchsorted(run.ids, number))
        key = access_column(run, index) if index < len(run) and run.ids[index] == number else None
        way = "visited for every block" if key is None else f"reached by the key of its equality on '{key}'"
        return {"way": way, "clauses": len(run), **describe(run)}

    def _shape(self, registered: Registered) -> dict[str, Any]:
        """The shape of a query, and the number of queries with that shape."""
        shape = registered.shape or shape_of(registered.sql).text
        with self.view.catalog.read() as tx:
            return {"text": shape, "queries": count_shape(tx, shape) + count_members_of_shape(tx, shape)}

    def _look_up(self, handle: str) -> tuple[Registered, StreamState]:
        stream_ids = self.view.query(handle).stream_ids
        snapshot = self.view.snapshot(stream_ids)
        return self.view.query(handle, at_least=snapshot.seq), snapshot.streams[stream_ids[0]]

    def _unregistered(self, sql: str) -> tuple[Registered, StreamState, Ready]:
        """An unregistered query, as if it were registered and lazy."""
        with self.view.catalog.read() as tx:
            streams: list[Stream] = []

            def lookup(name: str) -> tuple[str, Schema]:
                streams.append(find_stream(tx, name))
                return streams[-1].name, streams[-1].schema

            query = bind_query(sql, lookup)
        stream = streams[-1]
        return _unregistered(sql, stream.id), self.view.stream(stream.id), Ready.of(query, stream.schema)

    def _bound(self, registered: Registered, schema: Schema) -> Ready:
        def prepare() -> Ready:
            values = registered.values
            if values is None:
                return Ready.of(self._binder.bind(registered.sql, lambda name: (name, schema))[0], schema)
            template = self._members.get(values.template, lambda: BoundTemplate(values, schema))
            return template.ready(registered.sql, values)

        return self._ready.get(registered.id, prepare)


def _unregistered(sql: str, stream_id: int) -> Registered:
    """An unregistered query, as if it were registered and lazy."""
    inputs = (RegisteredInput(stream_id=stream_id),)
    return Registered(id="", name=None, sql=sql, shape="", inputs=inputs, seq=0, registered_at=0, owner=LOCAL)


def _why(registered: Registered, watch: Watch) -> str:
    """Why a query is eager or lazy."""
    clause_id, eager = registered.stream.clause_id, registered.stream.number is not None
    if clause_id is None:
        return "evaluated when asked for, from the index"
    if registered.eager is None:
        choice = "kept ready" if eager else "evaluated when asked for"
        return watch.reasons.get(clause_id, f"{choice}: it was not invoked recently")
    if registered.eager:
        return "kept ready, as it was registered"
    if eager:
        return "kept ready for another query with the same condition"
    return "evaluated when asked for, as it was registered"


def _aggregates(ready: Ready) -> dict[str, Any] | None:
    """How the aggregates of a query are computed."""
    grouping = ready.query.grouping
    if grouping is None:
        return None
    plan, uses_partials = ready.plans[0].partial, all(plans.uses_partials for plans in ready.plans)
    return {
        "kept": "partial aggregates of each run" if uses_partials else "nothing: computed from the rows",
        "keys": [key.sql for key in grouping.keys],
        "from_rows": [plan.aggregates[number].function for number in plan.from_rows],
    }


def _check_standing(registered: Registered) -> None:
    if registered.error is not None:
        raise QueryFailed(
            f"query '{registered.name or registered.id}' was stopped",
            detail=registered.error,
            hint="unregister it, and register it again with a corrected expression",
        )


def _complete(state: StreamState, span: Span, held: int, horizon: int | None) -> bool:
    """Whether all tuples of the window are retained; `held` is the number of tuples in it."""
    if horizon is None:
        return True
    if span.begin is not None and span.begin < horizon:
        return False
    if span.take is None:
        return True
    return held + span.skip >= span.take or _has_all(state, horizon)


def _has_all(state: StreamState, horizon: int) -> bool:
    """Whether every tuple that was ever added to the stream is retained."""
    retained = sum(segment.rows - segment.rows_before(horizon, inclusive=False) for segment in state.segments)
    return retained == state.stream.next_id


def _earlier(end: int | None, until: int) -> int:
    return until if end is None else min(end, until)


def _path(matched_seq: int | None, query_input: RegisteredInput) -> str:
    if matched_seq is None:
        return "tail"
    if query_input.number is None:
        return "lazy"
    return "published" if query_input.clause_seq <= matched_seq else "owed"
