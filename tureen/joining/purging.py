"""Which tuples of a join's inputs can be in future results, given what punctuations close (PWJoin §3.1, for n inputs).

Let p be a combination of tuples that have arrived, one for each input of a set Q. The comparisons for equality
determine the values of some columns of the other inputs. Input j is *closed for p* if it is a table, or if a
punctuation of its stream, all of whose columns are determined, matches their values: then no tuple of j that arrives
later can be combined with p. The rule is:

    p is dead if all inputs outside Q are closed for p, or if one of them, j, is closed for p and p is dead together
    with each tuple of j that has arrived and is comparable with p.

*Proof.* Assume that a result r with a tuple that arrives later contains p, and that p is dead, with Q as large as
possible. In the first case r has a tuple that arrives later in none of the inputs: a contradiction. In the second case
the tuple s of r in j has arrived, because j is closed for p; so r contains p with s, which is dead: a contradiction to
the choice of Q. If Q has all inputs, r has arrived as a whole. So no later result contains a dead combination; for a
single tuple this means that it can be purged. For two inputs it is the rule of the paper.

The clauses of queries and their windows are not used: what is dead is dead for all queries. A tuple that the rule keeps
may be useless nevertheless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tureen.errors import QueryFailed
from tureen.joining.equality_classes import EqualityClasses
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import Flags, Numbers
from tureen.joining.join_limits import JoinLimits
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.key_columns import key_equalities
from tureen.joining.key_probes import comparisons_between, probed_pairs
from tureen.joining.shared_join import SharedJoin
from tureen.joining.stem import Stem

Closes = Callable[[int, Mapping[str, pa.Array]], Flags]
"""Which tuples of an input, of which only some columns are known, can no longer arrive."""

PURGE_LIMITS = JoinLimits(rows=1 << 18)
"""How many combinations are examined for a block of tuples; tuples with more stay in the state."""


class PurgeRule:
    """The rule for one join, at one moment."""

    def __init__(self, join: SharedJoin, classes: EqualityClasses, stems: Sequence[Stem], closes: Closes) -> None:
        """Decide from the tuples that have arrived, and from what is closed."""
        self._join, self._classes, self._stems, self._closes = join, classes, stems, closes

    def dead(self, number: int, rows: Numbers) -> Flags:
        """Which tuples of an input can be purged."""
        if not len(rows):
            return np.zeros(0, np.bool_)
        evaluation = JoinEvaluation(self._stems, 0, PURGE_LIMITS)
        return self._dead(evaluation, JoinedRows({number: rows}, len(rows)))

    def _dead(self, evaluation: JoinEvaluation, rows: JoinedRows) -> Flags:
        joined = list(rows.rows)
        others = [number for number in range(len(self._stems)) if number not in rows.rows]
        closed = {number: self._closed(evaluation, rows, joined, number) for number in others}
        dead = np.logical_and.reduce(list(closed.values())) if others else np.ones(len(rows), np.bool_)
        if len(others) < 2:
            return dead
        for number in others:
            candidates = np.flatnonzero(closed[number] & ~dead)
            between = comparisons_between(self._join.factors, rows.rows.keys(), number)
            if not len(candidates) or not key_equalities(between, number):
                continue
            try:
                pairs = probed_pairs(evaluation, rows.take(candidates), number, self._stems[number], between)
                dead_pairs = self._dead(evaluation, pairs.rows) if len(pairs.left) else np.zeros(0, np.bool_)
            except QueryFailed:
                continue
            is_alive = np.zeros(len(candidates), np.bool_)
            is_alive[pairs.left[~dead_pairs]] = True
            dead[candidates[~is_alive]] = True
        return dead

    def _closed(self, evaluation: JoinEvaluation, rows: JoinedRows, joined: Sequence[int], number: int) -> Flags:
        """For which rows an input is closed."""
        if self._join.relations[number].stream_id is None:
            return np.ones(len(rows), np.bool_)
        columns = {
            column: evaluation.values(field, rows)
            for column, field in self._classes.shared_columns(number, joined).items()
        }
        return self._closes(number, columns) if columns else np.zeros(len(rows), np.bool_)
