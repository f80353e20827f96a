"""The operator of a continuous join: new tuples go once through the SteMs, for all queries that follow the join.

The state of an input is its SteM: the tuples that it has received, seen through runs and their key index (CACQ §2.4).
New tuples of one input are matched with the clauses of all queries, and then probe the SteMs of the other inputs in an
order that the eddy chooses. What is left at the end are joined tuples, each with its lineage.

A joined tuple is produced by that of its tuples which arrived last, as in `tureen.results.changes.join_changes`: stream
by stream, the new tuples of each with all of the streams before it and the old ones of those after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from tureen.eddy.join_routing import JoinRouter
from tureen.eddy.operators import Operator
from tureen.eddy.statistics import Observation
from tureen.errors import QueryFailed
from tureen.join import JoinCompare
from tureen.joining.join_consumers import JoinConsumers
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import Numbers
from tureen.joining.join_limits import JoinLimits
from tureen.joining.joined_block import JoinedPiece, PieceTuples
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.key_columns import key_equalities
from tureen.joining.key_probes import comparisons_between, probed_pairs
from tureen.joining.lineages import Lineages, bitmap_of
from tureen.joining.shared_factor import SharedFactor
from tureen.joining.shared_join import SharedJoin
from tureen.joining.sparse_lineages import SparseLineages, combined
from tureen.joining.stem import Ids, Stem

log = logging.getLogger("tureen")

ROUTED_TUPLES = 8_192
"""The most new tuples that are routed together."""

MOST_FACTORS = 16
"""The most conditions that are evaluated for all queries at once; further ones by each follower for its own rows."""

OPERATOR_LIMITS = JoinLimits(rows=1 << 20)
"""The maximum number of joined tuples of a block of new tuples; above it, each follower computes its own."""


class JoinSetting(Enum):
    """Which constraints an operator uses to shrink its state (PWJoin §6)."""

    BOTH = "pwjoin"
    WINDOWS = "wjoin"
    """Punctuations are ignored."""
    PUNCTUATIONS = "pjoin"
    """Tuples stay in the state when they have left all windows."""


ReadStem = Callable[[int, Ids, int | None], Stem]
"""The SteM of an input with the tuples whose ids lie in an interval, as far as tuples from a time on can join them."""

KeepRows = Callable[[int, Stem, Numbers], Numbers]
"""Of new tuples of an input, those that may be in a joined tuple."""


@dataclass
class _Flow:
    """A block of new tuples on its way through the operators."""

    origin: int
    evaluation: JoinEvaluation
    rows: JoinedRows
    lineages: Lineages | SparseLineages
    times: Numbers | None
    """The time of the new tuple of each row; None if no consumer has windows."""
    order: list[str] = field(default_factory=list)
    """The names of the visited operators."""
    applied: set[SharedFactor] = field(default_factory=set)

    def keep(self, rows: Numbers) -> None:
        """Keep only the given rows."""
        self.rows, self.lineages = self.rows.take(rows), self.lineages.take(rows)
        self.times = None if self.times is None else self.times[rows]

    def keep_nonempty(self) -> None:
        """Keep only the rows that at least one query wants."""
        if len(self.lineages.nonempty) < len(self.rows):
            self.keep(self.lineages.nonempty)


class ContinuousJoin:
    """Joins new tuples for all consumers of one shared join."""

    def __init__(
        self,
        join: SharedJoin,
        names: Sequence[str],
        schemas: Sequence[pa.Schema],
        router: JoinRouter,
        setting: JoinSetting = JoinSetting.BOTH,
    ) -> None:
        """Start without consumers; `names` are the distinct names of the inputs, and `schemas` their stored columns."""
        self.join, self.names, self.router, self.setting = join, names, router, setting
        self.consumers, self._schemas = JoinConsumers(schemas), schemas

    def join_new(
        self, stem_of: ReadStem, begin: Mapping[int, int], end: Mapping[int, int], keep: KeepRows | None = None
    ) -> list[JoinedPiece]:
        """The joined tuples that a consumer may want, with a tuple of each stream's ids from `begin` to before `end`.

        `keep` may drop new tuples that are in none. Raises QueryFailed if they are too many.
        """
        marks: dict[int, int] = dict(begin)
        pieces: list[JoinedPiece] = []
        for stream in self.join.streams:
            if end[stream] > marks[stream]:
                for origin in self.join.inputs_of(stream):
                    limits = self.limits(origin, (marks[stream], end[stream]), marks)
                    source = stem_of(origin, limits[origin], None)
                    new = source.rows_within()
                    if keep is not None:
                        new = keep(origin, source, new)
                    pieces += self.pieces_of(origin, limits, stem_of, source, new)
            marks[stream] = end[stream]
        return pieces

    def limits(self, origin: int, new: Ids, marks: Mapping[int, int]) -> list[Ids]:
        """The ids that the new tuples of an input are joined with, input by input."""
        stream = self.join.relations[origin].stream_id
        limits: list[Ids] = []
        for number, relation in enumerate(self.join.relations):
            if relation.stream_id is None:
                limits.append((0, 0))
            elif relation.stream_id != stream:
                limits.append((0, marks[relation.stream_id]))
            elif number == origin:
                limits.append(new)
            else:
                # A joined tuple with several new tuples of the stream is produced by the first of them.
                limits.append((0, new[0] if number < origin else new[1]))
        return limits

    def pieces_of(
        self, origin: int, limits: Sequence[Ids], stem_of: ReadStem, source: Stem, new: Numbers
    ) -> Iterator[JoinedPiece]:
        """The joined tuples of new tuples of one input, given by rows of its SteM."""
        for begin in range(0, len(new), ROUTED_TUPLES):
            rows = new[begin : begin + ROUTED_TUPLES]
            self.router.admit(self.names[origin], len(rows))
            lineages = self.lineages(origin, source, rows)
            if len(lineages.nonempty) < len(rows):
                rows, lineages = rows[lineages.nonempty], lineages.take(lineages.nonempty)
            if not len(rows):
                continue
            times = source.times_at(rows) if self.consumers.has_windows else None
            first = None if times is None else int(times.min())
            stems = [
                source
                if number == origin
                else stem_of(number, ids, None if first is None else self.earliest(number, first))
                for number, ids in enumerate(limits)
            ]
            evaluation = JoinEvaluation(stems, 0, OPERATOR_LIMITS)
            flow = _Flow(origin, evaluation, JoinedRows({origin: rows}, len(rows)), lineages, times)
            self._route(flow, stems)
            if len(flow.rows):
                yield self._piece(flow, stems)

    def lineages(self, number: int, stem: Stem, rows: Numbers) -> Lineages | SparseLineages:
        """The lineages of tuples of one input."""
        clauses = self.consumers.clauses[number]
        return clauses.lineages(stem.columns_at(clauses.columns, rows), len(rows), self._words)

    def _lineages_of_partners(self, number: int, stem: Stem, rows: Numbers) -> Lineages | SparseLineages:
        """The lineages of tuples of one input that may occur several times, each of which is matched once."""
        if not self.consumers.clauses[number].columns:
            return self.lineages(number, stem, rows)
        tuples, of_rows = np.unique(rows, return_inverse=True)
        return self.lineages(number, stem, tuples).take(of_rows.reshape(-1))

    @property
    def _words(self) -> int:
        return max(1, -(-self.consumers.capacity // 64))

    def earliest(self, number: int, time_of_new: int) -> int | None:
        """A time before which no tuple of an input can join tuples from a time on."""
        reach = None if self.setting is JoinSetting.PUNCTUATIONS else self.consumers.reach(number)
        return None if reach is None else time_of_new - reach

    def _route(self, flow: _Flow, stems: Sequence[Stem]) -> None:
        origin = self.names[flow.origin]
        while len(flow.rows):
            ready = self._ready(flow)
            if not ready:
                break
            operator = self.router.choose(origin, list(ready))
            tuples, began = len(flow.rows), perf_counter()
            visited = ready[operator]
            if isinstance(visited, SharedFactor):
                self._apply(flow, visited)
            else:
                self._probe(flow, visited, stems)
            flow.order.append(operator.name)
            cost = perf_counter() - began
            self.router.observe(origin, Observation(operator, tuples, len(flow.rows), cost=cost))
        change = self.router.finish(origin, flow.order, self._operators(flow.origin))
        if change is not None:
            before, after = (", ".join(order) for order in change)
            log.info("new tuples of '%s' are now joined in the order %s; before: %s", origin, after, before)

    def _operators(self, origin: int) -> list[str]:
        """The names of all operators that new tuples of an input may visit."""
        others = [name for number, name in enumerate(self.names) if number != origin]
        return [*others, *(factor.shown_name(self.names) for factor in self._factors())]

    def _factors(self) -> list[SharedFactor]:
        """The conditions that are evaluated for all queries at once."""
        return [factor for factor in self.consumers.factors if not factor.is_costly][:MOST_FACTORS]

    def _ready(self, flow: _Flow) -> dict[Operator, int | SharedFactor]:
        """The operators that a block can visit."""
        ready: dict[Operator, int | SharedFactor] = {}
        joined = flow.rows.rows.keys()
        for number, name in enumerate(self.names):
            between = comparisons_between(self.join.factors, joined, number)
            if number not in joined and key_equalities(between, number):
                ready[Operator(name, _NOBODY)] = number
        for factor in self._factors():
            name = factor.shown_name(self.names)
            if name not in flow.order and factor.inputs <= joined:
                ready[Operator(name, _NOBODY)] = factor
        return ready

    def _probe(self, flow: _Flow, number: int, stems: Sequence[Stem]) -> None:
        """Join the rows with the tuples of another input."""
        stem = stems[number]
        between = comparisons_between(self.join.factors, flow.rows.rows.keys(), number)
        pairs, left, right = probed_pairs(
            flow.evaluation, flow.rows, number, stem, between, partial(self._within_reach, flow, number, stem)
        )
        flow.rows, flow.times = pairs, None if flow.times is None else flow.times[left]
        flow.lineages = combined(flow.lineages.take(left), self._lineages_of_partners(number, stem, right))
        flow.keep_nonempty()

    def _within_reach(
        self, flow: _Flow, number: int, stem: Stem, left: Numbers, right: Numbers
    ) -> tuple[Numbers, Numbers]:
        """The pairs that some consumer's windows can contain, by the time of the new tuple."""
        reach = self.consumers.reach(number)
        if reach is None or flow.times is None or not len(left):
            return left, right
        least = stem.least_time()
        if least is not None and least >= int(flow.times.max()) - reach:
            # All tuples of the state are within the windows: the smaller it is, the more often.
            return left, right
        times = stem.times_at(right)
        if times is None:
            return left, right
        kept = times >= flow.times[left] - reach
        return left[kept], right[kept]

    def _apply(self, flow: _Flow, factor: SharedFactor) -> None:
        """Remove from the lineages of rows that do not satisfy a condition the queries that have it."""
        slots = bitmap_of(sorted(self.consumers.factors[factor]), self._words)
        concerned = flow.lineages.rows_with(slots)
        rows = flow.rows.take(concerned)
        try:
            satisfying = factor.satisfying(len(rows), lambda column: flow.evaluation.values(column, rows))
        except QueryFailed:
            # Perhaps on a row that none of these queries wants. They evaluate it by themselves.
            return
        fails = np.zeros(len(flow.rows), np.bool_)
        fails[np.delete(concerned, satisfying)] = True
        flow.lineages = flow.lineages.without(slots, fails)
        flow.applied.add(factor)
        flow.keep_nonempty()

    def piece_of(self, stems: Sequence[Stem], ids: Numbers, rest: Sequence[JoinCompare]) -> JoinedPiece | None:
        """Joined tuples that another plan has produced, given by a line of ids for each input.

        `rest` are comparisons that they may not satisfy. None if no consumer wants one of them.
        """
        evaluation = JoinEvaluation(stems, 0, OPERATOR_LIMITS)
        evaluation.limits.check_rows(ids.shape[1])
        numbers = [stem.rows_of(of_input) for stem, of_input in zip(stems, ids, strict=True)]
        # Tuples that were dropped from their stream in the meantime are not there any more.
        present = np.flatnonzero(np.logical_and.reduce([rows >= 0 for rows in numbers]))
        rows = JoinedRows({number: of_input[present] for number, of_input in enumerate(numbers)}, len(present))
        rows = evaluation.where(rows, rest)
        lineages: Lineages | SparseLineages
        lineages = Lineages(np.full((1, self._words), ~np.uint64(0)), np.zeros(len(rows), np.int64))
        for number, stem in enumerate(stems):
            lineages = combined(lineages, self._lineages_of_partners(number, stem, rows.rows[number]))
        flow = _Flow(0, evaluation, rows, lineages, None)
        flow.keep_nonempty()
        for factor in self._factors():
            if len(flow.rows):
                self._apply(flow, factor)
        return self._piece(flow, stems) if len(flow.rows) else None

    def _piece(self, flow: _Flow, stems: Sequence[Stem]) -> JoinedPiece:
        tuples = []
        for number, stem in enumerate(stems):
            names, rows, of_joined = self.consumers.columns(number), flow.rows.rows[number], None
            if not all(pa.types.is_primitive(self._schemas[number].field(name).type) for name in names):
                # Texts may be long. Numbers are copied for each joined tuple in less time than it takes to find
                # which tuples are the same.
                rows, of_joined = np.unique(rows, return_inverse=True)
            columns = dict(zip(names, stem.columns_at(names, rows), strict=True))
            times = stem.times_at(rows) if self.consumers.has_windows else None
            tuples.append(PieceTuples(stem.ids_at(rows), times, columns, of_joined))
        return JoinedPiece(tuples, flow.lineages.compacted(), frozenset(flow.applied))


_NOBODY: frozenset[int] = frozenset()
