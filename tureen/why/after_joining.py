"""What happens to a tuple's joined rows afterwards: NOW, steps, groups, HAVING, QUALIFY, DISTINCT, OFFSET and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tureen.aggregates.expression_values import evaluate, with_now
from tureen.closed.tuple_groups import Mask
from tureen.evaluation.duck import run
from tureen.joining.join_input import JoinInput, Numbers
from tureen.joining.joined_rows import JoinedRows
from tureen.query import GROUPING_ID, STEP_END, STEP_START, Expression, Output, key_name
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.joins.joined import JoinedMatches
from tureen.results.rows.axis import Coordinates
from tureen.results.rows.finish import Finish
from tureen.results.rows.grouped import groups_of_rows
from tureen.results.rows.grouping_set_rows import rows_of_sets
from tureen.results.rows.matches import rows_in_steps
from tureen.results.rows.stepping import Stepping
from tureen.schema import Kind, Type
from tureen.why.explanation import Reason, value_text
from tureen.why.one_input import truth_name
from tureen.why.shown_values import ShownQuery, failed_factor

PLACE = "_place"
"""A column with the number of each row, by which rows are recognised after they were filtered and ordered."""

STEP_NUMBER = "_step"
"""A column with the number of a group's step: steps of rows may have the same start and end."""

MOST_GROUPS = 3
"""The number of groups of one tuple that are named."""

Verdict = tuple[bool, list[Reason]]
"""Whether a tuple is in the answer, and why."""

StepsOf = Callable[[JoinedMatches], tuple[Numbers, Numbers]]
"""For each pair of a joined row and a step that contains it: the numbers of the rows, and those of the steps."""


@dataclass(frozen=True)
class _PlacedMatches:
    """Joined rows with their places."""

    matches: JoinedMatches

    def __len__(self) -> int:
        return len(self.matches)

    def table(self, fields: pa.Schema) -> pa.Table:
        rows = self.matches.table(fields)
        return rows.append_column(PLACE, pa.array(np.arange(rows.num_rows)))


class NumberedSteps(Stepping):
    """Steps whose columns include their numbers."""

    @classmethod
    def of(cls, stepping: Stepping) -> NumberedSteps:
        """The same steps."""
        return cls(**{field.name: getattr(stepping, field.name) for field in fields(stepping)})

    def columns(self, numbers: Coordinates) -> dict[str, pa.Array]:
        """The columns with the start, the end and the number of steps."""
        return {**super().columns(numbers), STEP_NUMBER: pa.array(numbers)}


@dataclass(frozen=True)
class JoinedAnswer:
    """All joined rows of a query, and what its answer is computed from."""

    ready: ReadyJoin
    inputs: Sequence[JoinInput]
    joined: JoinedRows
    now: int
    shown: ShownQuery
    stepping: NumberedSteps | None
    steps_of: StepsOf
    are_final: Callable[[pa.Table], Mask] | None = None
    """Which groups are final, if the answer has only those."""

    def verdict(self, number: int, row: int) -> Verdict:
        """Whether the answer has a row of the joined rows with that row of an input, of which there are some."""
        own = JoinedMatches(self.inputs, self.joined.take(np.flatnonzero(self.joined.rows[number] == row)))
        reason = self._at_now(own)
        if reason is not None:
            return False, [reason]
        rows, steps = self._rows(own)
        if not rows.num_rows:
            return False, [
                Reason("step", "no step of the answer contains it: such steps are complete and in the window")
            ]
        query = self.ready.query
        if query.grouping is not None:
            groups = self._groups(rows, steps)
            return self._group_verdict(groups)
        about = []
        if len(query.inputs) > 1:
            about.append(Reason("joined", f"part of {len(own):,} joined row{'' if len(own) == 1 else 's'}"))
        if not self._removes_rows:
            return True, [*about, *self._distinct_note()]
        places = np.flatnonzero(self._all.in_order.rows[number] == row)
        in_answer, reasons = self._kept(np.flatnonzero(np.isin(self._table.column(PLACE).to_numpy(), places)))
        return in_answer, [*about, *reasons]

    @property
    def _removes_rows(self) -> bool:
        """Whether anything after the joins and groups removes rows."""
        query = self.ready.query
        having = None if query.grouping is None else query.grouping.having
        return having is not None or query.qualify is not None or query.limit is not None or query.offset > 0

    def _at_now(self, own: JoinedMatches) -> Reason | None:
        """The condition on NOW, if it is not true for any of the rows."""
        condition = self.ready.query.at_now
        if condition is None:
            return None
        rows = with_now(own.table(self.ready.fields), self.now)
        (truths,) = evaluate([condition], rows)
        if True in truths.to_pylist():
            return None
        self.shown.types["NOW"] = Kind.TIMESTAMP.value
        values = self.shown.labelled(rows.slice(0, 1).to_pylist()[0], condition.columns)
        return failed_factor(self.shown.expression(condition), truth_name(truths[0].as_py()), values)

    def _rows(self, matches: JoinedMatches) -> tuple[pa.Table, Numbers]:
        query, stepping = self.ready.query, self.stepping
        now = self.now if query.uses_now else None
        steps_of = None if stepping is None else lambda _: self.steps_of(matches)
        rows, steps = rows_in_steps(_PlacedMatches(matches), self.ready.fields, now, query.at_now, steps_of)
        if stepping is not None and query.grouping is None:
            for name, column in stepping.columns(steps).items():
                rows = rows.append_column(name, column)
        return rows, steps

    def _groups(self, rows: pa.Table, steps: Numbers) -> pa.Table:
        query = self.ready.query
        assert query.grouping is not None
        parts = [groups_of_rows(plans, rows, steps, self.stepping) for plans in self.ready.plans]
        groups = parts[0] if query.grouping.sets is None else rows_of_sets(query.grouping, parts)
        table = groups if isinstance(groups, pa.Table) else pa.Table.from_batches([groups])
        return with_now(table, self.now) if query.uses_now else table

    @cached_property
    def _all(self) -> JoinedMatches:
        return JoinedMatches(self.inputs, self.joined)

    @cached_property
    def _table(self) -> pa.Table:
        """All rows, or all groups, before HAVING and window functions; with their places."""
        rows, steps = self._rows(self._all)
        if self.ready.query.grouping is None:
            return rows
        groups = self._groups(rows, steps)
        return groups.append_column(PLACE, pa.array(np.arange(groups.num_rows)))

    @cached_property
    def _finished(self) -> pa.Table:
        """The outputs of the rows that remain, in order and before DISTINCT and LIMIT; their numbers come last."""
        number = Output(PLACE, Expression(f'"{PLACE}"', Type(Kind.BIGINT), (PLACE,), PLACE))
        query = replace(
            self.ready.query, outputs=(*self.ready.query.outputs, number), distinct=False, limit=None, offset=0
        )
        rows = self._table
        index = rows.column_names.index(PLACE)
        numbered = rows.set_column(index, PLACE, pa.array(np.arange(rows.num_rows)))
        return Finish(query)(numbered)

    def _kept(self, numbers: Numbers) -> Verdict:
        """Whether one of some rows of `_table` is in the answer."""
        query = self.ready.query
        order = self._finished.column(self._finished.num_columns - 1).to_numpy()
        remaining = np.flatnonzero(np.isin(order, numbers))
        if not len(remaining):
            return False, [self._filtered(numbers)]
        if query.limit is None and not query.offset:
            return True, self._distinct_note()
        last = len(order) if query.limit is None else query.offset + query.limit
        if query.distinct:
            kept = self._equal_row(remaining)
        else:
            kept = bool(((remaining >= query.offset) & (remaining < last)).any())
        if kept:
            return True, self._distinct_note()
        clause = " ".join(
            text
            for text in (
                "" if query.limit is None else f"LIMIT {query.limit:,}",
                f"OFFSET {query.offset:,}" if query.offset else "",
            )
            if text
        )
        at = "" if query.distinct else f": it is row {remaining[0] + 1:,} of {len(order):,}"
        return False, [Reason("limit", f"cut by {clause}{at}", clause)]

    def _filtered(self, numbers: Numbers) -> Reason:
        """The reason that HAVING or QUALIFY removed rows."""
        query = self.ready.query
        having = None if query.grouping is None else query.grouping.having
        if having is not None:
            rows = self._table.take(pa.array(numbers))
            (truths,) = evaluate([having], rows)
            if True not in truths.to_pylist():
                assert query.grouping is not None
                labels = self.shown.group_labels(query.grouping)
                row = rows.slice(0, 1).to_pylist()[0]
                values = {labels.get(name, name): row[name] for name in having.columns if name in labels}
                text = self.shown.expression(having, query.grouping)
                return failed_factor(text, truth_name(truths[0].as_py()), values, "having")
        return Reason("qualify", "removed by QUALIFY, which is not true for its row")

    def _equal_row(self, remaining: Numbers) -> bool:
        """Whether the answer of a query with DISTINCT has a row that equals one of some rows of `_finished`."""
        answer = self.ready.finish(self._table)
        names = [f"c{number}" for number in range(answer.num_columns)]
        own = self._finished.take(pa.array(remaining)).select(range(answer.num_columns))
        same = " AND ".join(f"answer.{name} IS NOT DISTINCT FROM own.{name}" for name in names)
        tables = {"answer": answer.rename_columns(names), "own": own.rename_columns(names)}
        return len(run(f"SELECT 1 FROM answer, own WHERE {same} LIMIT 1", tables, "the answer")) > 0

    def _distinct_note(self) -> list[Reason]:
        if not self.ready.query.distinct:
            return []
        return [Reason("distinct", "a row equal to its row is in the answer, which has each row once")]

    def _group_verdict(self, groups: pa.Table) -> Verdict:
        """Whether a tuple's groups are in the answer."""
        reasons = self._group_reasons(groups)
        if self.are_final is not None:
            final = self.are_final(groups)
            if not final.any():
                return False, [*reasons, Reason("open", "its group is not final: a later tuple may still join it")]
            groups = groups.filter(pa.array(final))
        if not self._removes_rows:
            return True, [*reasons, *self._distinct_note()]
        names = [name for name in groups.column_names if name == STEP_NUMBER or self._identifies(name)]
        same = " AND ".join(f'own."{name}" IS NOT DISTINCT FROM groups."{name}"' for name in names) or "TRUE"
        tables = {"own": groups, "groups": self._table}
        numbers = run(f"SELECT groups.{PLACE} FROM groups, own WHERE {same}", tables, "the groups")
        in_answer, removed = self._kept(np.unique(numbers.column(0).to_numpy()))
        return in_answer, [*reasons, *removed]

    def _identifies(self, name: str) -> bool:
        grouping = self.ready.query.grouping
        assert grouping is not None
        return name in (STEP_START, STEP_END, GROUPING_ID, *map(key_name, range(len(grouping.keys))))

    def _group_reasons(self, groups: pa.Table) -> list[Reason]:
        grouping = self.ready.query.grouping
        assert grouping is not None
        labels = self.shown.group_labels(grouping)
        if self.stepping is not None:
            labels |= {STEP_START: STEP_START, STEP_END: STEP_END}
            self.shown.types.update(dict.fromkeys((STEP_START, STEP_END), Kind.TIMESTAMP.value))
        reasons = []
        for row in groups.slice(0, MOST_GROUPS).to_pylist():
            values = {label: row[name] for name, label in labels.items() if self._identifies(name)}
            shown = ", ".join(f"{label} = {value_text(value)}" for label, value in values.items())
            reasons.append(
                Reason("group", f"counts in the group {shown}" if shown else "counts in the only group", values=values)
            )
        more = groups.num_rows - len(reasons)
        return reasons if more <= 0 else [*reasons, Reason("group", f"counts in {more:,} more groups")]
