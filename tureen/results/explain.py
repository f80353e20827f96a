"""EXPLAIN: how a query is answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tureen.join_parts import sub_joins_of
from tureen.language.predicates.factor_text import factor_text
from tureen.language.text.shapes import shape_of
from tureen.matching import access_column, describe
from tureen.pot.catalog import Catalog
from tureen.pot.kept_joins import KeptJoin, find_join, find_join_by_key, planned_joins
from tureen.pot.queries import count_shape
from tureen.pot.query_runs import live_query_runs
from tureen.pot.registered import Registered, RegisteredInput
from tureen.pot.templates import count_members_of_shape
from tureen.pot.transaction import Transaction
from tureen.queries import QueryRun
from tureen.query import Input, RelationKind
from tureen.results.answering import Answers
from tureen.results.covers.composed_steps import composed_ranges
from tureen.results.covers.kept_covers import KeptCovers
from tureen.results.covers.reuse import CoveringStreams
from tureen.results.finals.final_groups import FinalGroups
from tureen.results.following.followed_joins import FollowedJoins
from tureen.results.function_plans import describe_functions
from tureen.results.joins.join_answers import JoinAnswer
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.query_names import QueryNames
from tureen.results.rows.ranges import ranges_of
from tureen.results.rows.ready import Ready
from tureen.results.rows.watch import Watch
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.stream_join import StreamJoin


class Explainer:
    """Explains prepared queries."""

    def __init__(
        self,
        catalog: Catalog,
        answers: Answers,
        joins: FollowedJoins,
        covering: CoveringStreams,
        kept_covers: KeptCovers,
    ) -> None:
        """Explain what `answers` does, `joins` for followers, and from what else queries are answered."""
        self._catalog, self._answers, self._joins = catalog, answers, joins
        self._covering, self._kept_covers = covering, kept_covers

    def explain(self, registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin) -> dict[str, Any]:
        """How a query is answered: its factors, its access path, and the state of its cells."""
        at_now = ready.query.at_now
        about = {
            "id": registered.id or None,
            "name": registered.name,
            "sql": registered.sql,
            "language": registered.language,
            "translation": ready.query.translation,
            "state": registered.state if registered.id else None,
            "error": registered.error,
            "at_now": None if at_now is None else QueryNames(ready.query).expression(at_now),
            "materialize": "auto" if registered.eager is None else registered.eager,
            "shape": self._shape(registered),
        }
        if ready.query.final:
            about["final"] = self._final(registered, snapshot, ready)
        if isinstance(ready, ReadyJoin):
            return about | self._join(registered, snapshot, ready)
        state = snapshot.streams[registered.stream_ids[0]]
        now = self._answers.now_of([state.stream])
        return (
            about
            | self._input(ready.query.stream, registered, registered.stream, state, now)
            | {
                "aggregates": _aggregates(ready),
                "functions": describe_functions(ready.query, registered.inputs),
                "reuse": self._reuse(registered, ready) or self._kept_reuse(registered, snapshot, ready),
            }
        )

    def _reuse(self, registered: Registered, ready: Ready) -> dict[str, Any] | None:
        """The derived stream that a query is answered from, if there is one, and why."""
        reuse = self._covering.find(registered, ready)
        if reuse is None:
            return self._shared_steps(registered, ready)
        derived, clause = reuse.cover.derived, reuse.cover.ready.query.stream.clause
        return {
            "stream": derived.stream.name,
            "tuples": reuse.tuples,
            "of": reuse.base_tuples,
            "factors": [factor_text(factor, derived.base.schema) for factor in clause],
            "why": f"the query implies the selection of '{derived.stream.name}', which has all tuples up to now",
        }

    def _kept_reuse(self, registered: Registered, snapshot: Snapshot, ready: Ready) -> dict[str, Any] | None:
        """Whether a query is answered from what is kept for another one, which may be somebody else's."""
        if self._kept_covers.find(registered, snapshot, ready) is None:
            return None
        why = "its tuples are among those that are kept ready for a query with fewer conditions"
        return {"stream": snapshot.streams[registered.stream_ids[0]].stream.name, "why": why}

    def _shared_steps(self, registered: Registered, ready: Ready) -> dict[str, Any] | None:
        """The derived stream that the steps of a query are composed of, if there is one, and why."""
        composition = self._covering.find_steps(registered, ready)
        if composition is None:
            return None
        base, answers = composition.base, self._answers
        now = answers.now_of([base.stream])
        span, horizon = ready.query.inputs[0].window.span(now), answers.horizon(base.stream)
        kept = answers.kept_structure(base, ready.plans[0])
        _, ranges = composed_ranges(composition, ready, span, now, horizon, kept)
        if ranges is None:
            return None
        cover = composition.cover
        return {
            "stream": cover.source.stream.name,
            "tuples": ranges.row_count,
            "of": ranges.whole,
            "factors": [factor_text(factor, cover.source.base.schema) for factor in cover.rest],
            "base_tuples": ranges.tuple_count,
            "late_steps": len(ranges.inexact),
            "why": f"its steps are composed of those of '{cover.source.stream.name}' and of the tuples that these lack",
        }

    def _join(self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin) -> dict[str, Any]:
        streams = [state.stream for state in snapshot.streams.values()]
        now = self._answers.now_of(streams)
        join, failure = self._answers.explained_join(registered, snapshot, ready)
        inputs: list[dict[str, Any]] = []
        for number, (leaf, entry) in enumerate(zip(registered.inputs, ready.query.leaves, strict=True)):
            if entry.kind is RelationKind.TABLE:
                table = snapshot.tables[leaf.table_id or ""]
                factors = [factor_text(factor, table.schema) for factor in entry.clause]
                inputs.append({"table": table.name, "factors": factors, "rows": table.content.rows})
            else:
                state = snapshot.streams[leaf.stream_id or 0]
                inputs.append(self._input(entry, registered, leaf, state, now))
            inputs[-1] |= {"alias": entry.alias, "joined_by": _joined_by(number, join, ready)}
        names = QueryNames(ready.query)
        return {
            "inputs": inputs,
            "join": names.tree(ready.query.source),
            "join_order": [{**step, "side": names.tree(step["side"])} for step in join.steps],
            "join_error": None if failure is None else failure.message,
            "plan": registered.plan_hint.plan,
            "jit": registered.plan_hint.jit,
            "operator": self._joins.describe(registered.id),
            "kept_join": self._kept(registered, snapshot, is_used=join.kept is not None),
            "aggregates": _join_aggregates(ready, is_kept=join.kept is not None),
            "functions": describe_functions(ready.query, registered.inputs, join.placements),
        }

    def _final(self, registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin) -> dict[str, Any]:
        """How many groups of the answer are final, and what must be closed for that."""
        streams = [state.stream for state in snapshot.streams.values()]
        now = self._answers.now_of(streams)
        groups = self._answers.rows_before_finish(registered, snapshot, ready, now)
        final_groups = FinalGroups(registered, snapshot, ready, self._answers.histories)
        horizon = self._answers.horizon(streams[0]) if len(ready.query.inputs) == 1 else None
        final = int(final_groups.are_final(groups, now, horizon).sum())
        return {"final": final, "open": len(groups) - final, "closed_by": final_groups.rule.describe(ready.query)}

    def _kept(self, registered: Registered, snapshot: Snapshot, *, is_used: bool) -> dict[str, Any]:
        """Whether the results of a query's join are kept, and why."""
        if registered.join_id is None:
            why = (
                "evaluated when asked for"
                if registered.eager is False
                else "no streams of it are joined directly by comparisons"
            )
            return {"used": False, "why": why}
        with self._catalog.read() as tx:
            join = find_join(tx, registered.join_id)
            nodes = [] if join is None else list(_sub_joins(tx, join, snapshot))
        if join is None or join.refused is not None:
            return {"used": False, "why": f"not kept: {'its query left' if join is None else join.refused}"}
        asked = "kept, as the query was registered" if registered.eager else "not invoked recently"
        owed = {
            snapshot.streams[stream_id].stream.name: snapshot.streams[stream_id].stream.next_id - done
            for stream_id, done in zip(StreamJoin.of_key(join.key).streams, join.progress, strict=True)
        }
        return {
            "used": is_used,
            "why": self._answers.watch.join_reasons.get(join.id, asked),
            "joined_tuples": sum(run.rows for run in join.runs),
            "runs": len(join.runs),
            "bytes": sum(run.bytes for run in join.runs),
            "owed_tuples": owed,
            "sub_joins": nodes,
        }

    def _input(
        self, entry: Input, registered: Registered, leaf: RegisteredInput, state: StreamState, now: int
    ) -> dict[str, Any]:
        """How the tuples of a stream are selected."""
        ranges = ranges_of(state.segments, entry.window.span(now), self._answers.horizon(state.stream))
        paths = {"published": 0, "owed": 0, "lazy": 0, "tail": 0}
        for segment, (first, last) in zip(state.segments, ranges, strict=True):
            if last > first:
                paths[_path(segment.matched_seq, leaf)] += last - first
        return {
            "stream": state.stream.name,
            "factors": [factor_text(factor, state.stream.schema) for factor in entry.clause],
            "materialized": leaf.number is not None,
            "why": _why(registered, leaf, self._answers.watch),
            "clause": leaf.clause_id or 0,
            "access": self._access(leaf),
            "tuples_by_path": paths,
            "runs_in_window": sum(1 for first, last in ranges if last > first),
        }

    def _access(self, query_input: RegisteredInput) -> dict[str, Any]:
        """How the clause is matched with arriving tuples: by key or visited, and the size of its query run."""
        stream_id, number = query_input.stream_id, query_input.number
        if stream_id is None or number is None:
            return {"way": "evaluated from the index of each run, or by a scan of its tail"}
        with self._catalog.read() as tx:
            runs = live_query_runs(tx, stream_id)
        path = next((run.path for run in runs if run.first <= number <= run.last), None)
        if path is None:
            return {"way": "matched with arriving tuples once it is compiled"}
        run = QueryRun.load(self._catalog.root / path)
        index = int(np.searchsorted(run.ids, number))
        key = access_column(run, index) if index < len(run) and run.ids[index] == number else None
        way = "visited for every block" if key is None else f"reached by the key of its equality on '{key}'"
        return {"way": way, "clauses": len(run), **describe(run)}

    def _shape(self, registered: Registered) -> dict[str, Any]:
        """The shape of a query, and the number of queries with that shape."""
        shape = registered.shape or shape_of(registered.sql).text
        with self._catalog.read() as tx:
            return {"text": shape, "queries": count_shape(tx, shape) + count_members_of_shape(tx, shape)}


def _sub_joins(tx: Transaction, join: KeptJoin, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The sub-joins that are kept for a join by its plan, each before those that are made from it."""
    plan = planned_joins(tx).plans.get(join.key)
    for node in [] if plan is None else sub_joins_of(StreamJoin.of_key(join.key), plan):
        kept = find_join_by_key(tx, node.key)
        yield {
            "streams": [snapshot.streams[stream_id].stream.name for stream_id in node.streams],
            "joined_tuples": 0 if kept is None else sum(run.rows for run in kept.runs),
            "refused": None if kept is None else kept.refused,
        }


def _joined_by(leaf: int, join: JoinAnswer, ready: ReadyJoin) -> str:
    """How the rows of a stream or table are found that are joined."""
    part = ready.stream_join
    if join.kept is not None and part is not None:
        kept = {ready.inputs[number].leaf: number for number in part.inputs}
        if leaf in kept:
            return "kept results" + (", and tuples without a partner" if kept[leaf] in part.all_tuples else "")
    return "key index" if leaf in join.probed else "scan"


def _why(registered: Registered, query_input: RegisteredInput, watch: Watch) -> str:
    """Why a query is eager or lazy."""
    clause_id, eager = query_input.clause_id, query_input.number is not None
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
    """How the aggregates of a query over one stream are computed."""
    uses_partials = all(plans.uses_partials for plans in ready.plans)
    return _aggregates_from(ready, "partial aggregates of each run" if uses_partials else None)


def _join_aggregates(ready: ReadyJoin, *, is_kept: bool) -> dict[str, Any] | None:
    """How the aggregates of a join are computed."""
    uses_partials = is_kept and ready.uses_kept_partials
    return _aggregates_from(ready, "partial aggregates of each join run" if uses_partials else None)


def _aggregates_from(ready: Ready | ReadyJoin, kept: str | None) -> dict[str, Any] | None:
    grouping = ready.query.grouping
    if grouping is None:
        return None
    plan, names = ready.plans[0].partial, QueryNames(ready.query)
    return {
        "kept": kept or "nothing: computed from the rows",
        "keys": list(map(names.expression, grouping.keys)),
        "from_rows": [plan.aggregates[number].function for number in plan.from_rows],
    }


def _path(matched_seq: int | None, query_input: RegisteredInput) -> str:
    if matched_seq is None:
        return "tail"
    if query_input.number is None:
        return "lazy"
    return "published" if query_input.clause_seq <= matched_seq else "owed"
