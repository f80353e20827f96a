"""Which tuples of a join the changes of EMIT FINAL after a position need: those of groups that are open there.

A tuple fixes columns of all inputs, as far as they equal one of its own. The groups that it can belong to agree with it
in these. If the rule of final groups holds with these columns alone (`FinalRule.of_tuple`), all of them are final, also
those that have no row yet: no later row contains the tuple, and no row that contains it is reported later.

So all tuples that an open group's rows can have are kept, and it stays open as long as if nothing had been freed. A
final group may lose tuples. It stays final: fewer tuples leave a window no later.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tureen.join import JoinCompare
from tureen.joining.stem import Ids
from tureen.results.changes.changes import new_rows
from tureen.results.finals.final_groups import FinalGroups
from tureen.results.finals.final_rule import InputRule, StepTimes, inner_factors
from tureen.results.groups.open_groups import ReadTo
from tureen.window import WHOLE


@dataclass(frozen=True)
class JoinedGroups:
    """The groups of a join of streams with EMIT FINAL, at a moment."""

    finals: FinalGroups
    moment: ReadTo
    stream_id: int

    def have_open(self, ids: Ids, max_time: int) -> bool:  # noqa: ARG002 - as `IsNeeded`
        """Whether a tuple of the stream with an id in an interval can belong to a group that is open."""
        rules = self.finals.rule.inputs
        return any(
            self._has_open(rule, ids) for rule in rules if self.finals.state_of(rule.number).stream.id == self.stream_id
        )

    def _has_open(self, rule: InputRule, ids: Ids) -> bool:
        keys_of = {column.key: column.column for column in rule.fixed if column.key is not None}
        tuples = self._tuples(rule, list(dict.fromkeys(keys_of.values())), ids)
        count = tuples.num_rows
        if not count:
            return False
        grouping = self.finals.ready.query.grouping
        assert grouping is not None
        # Keys that the tuple does not fix are not used.
        keys = [
            tuples.column(keys_of[key]).combine_chunks() if key in keys_of else pa.nulls(count)
            for key in range(len(grouping.keys))
        ]
        of_tuple = self.finals.rule.of_tuple(rule.number)
        return not self.finals.final(keys, StepTimes.unlimited(count), self.moment.marks, of_tuple).all()

    def _tuples(self, rule: InputRule, names: list[str], ids: Ids) -> pa.Table:
        """Columns of the tuples that may be joined: NULL equals nothing."""
        state, (selector, leaf) = self.finals.state_of(rule.number), self.finals.input_of(rule.number)
        compared = {
            field.column
            for factor in inner_factors(self.finals.ready.query.source)
            if isinstance(factor, JoinCompare) and factor.op == "="
            for field in (factor.left, factor.right)
            if field.input == rule.number
        }
        columns = sorted({*names, *compared}) or [state.stream.schema.time_column]
        tuples = new_rows(state, columns, WHOLE, leaf, selector, *ids).rows
        for name in compared:
            tuples = tuples.filter(tuples.column(name).is_valid())
        return tuples
