"""GROUP BY in its simplest form: rows → (steps →) groups → aggregates → HAVING."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, Protocol

from tureen.query import GROUPING_ID, NOW, STEP_END, STEP_START, Grouping, Query, aggregate_name, key_name
from tureen.schema import Kind, Type
from tureen.testing.aggregates import aggregate
from tureen.testing.evaluate import Row, Types, types_of, value_of
from tureen.testing.outputs import finish
from tureen.testing.steps import WindowView, bounds_of, steps_of
from tureen.testing.truth import selected_rows
from tureen.testing.values import compare, identity, normalized
from tureen.window import Steps, from_micros


@dataclass
class Group:
    """A group: the values of its keys, and its rows by time and then arrival."""

    keys: tuple[Any, ...]
    rows: list[Row]


def grouped_types(grouping: Grouping) -> Types:
    """The columns of a grouped row."""
    moment = Type(Kind.TIMESTAMP)
    return {
        **{key_name(number): key.type for number, key in enumerate(grouping.keys)},
        **{aggregate_name(number): call.type for number, call in enumerate(grouping.aggregates)},
        STEP_START: moment,
        STEP_END: moment,
        NOW: moment,
        GROUPING_ID: Type(Kind.BIGINT),
    }


class SelectedRows(Protocol):
    """The rows of a query that satisfy WHERE, before they are grouped."""

    @property
    def query(self) -> Query:
        """The query."""

    @property
    def now(self) -> int:
        """The NOW of the answer."""

    @property
    def types(self) -> Types:
        """The types of their columns."""

    def rows(self) -> list[Row]:
        """All rows, by time and then arrival."""

    def by_step(self, steps: Steps) -> Iterator[tuple[Row, list[Row]]]:
        """The bounds of each step, and its rows."""


@dataclass(frozen=True)
class StreamRows:
    """The rows of a query over one stream."""

    query: Query
    view: WindowView

    @property
    def now(self) -> int:
        """The NOW of the answer."""
        return self.view.now

    @property
    def types(self) -> Types:
        """The types of the stream's columns."""
        return types_of(self.view.stream.schema)

    def rows(self) -> list[Row]:
        """The rows of the window."""
        return selected_rows(self.query, self.view.window, self.view.stream.schema, self.view.now)

    def by_step(self, steps: Steps) -> Iterator[tuple[Row, list[Row]]]:
        """The rows of each step of the window."""
        for step in steps_of(steps, self.view):
            start, end = bounds_of(step, steps)
            rows = selected_rows(self.query, step.tuples, self.view.stream.schema, self.view.now)
            yield {STEP_START: start, STEP_END: end}, rows


def answer(source: SelectedRows) -> list[dict[str, Any]]:
    """The answer of a query from the rows that satisfy its WHERE clause."""
    query = source.query
    if query.grouping is not None:
        return finish(query, grouped_rows(query, query.grouping, source), grouped_types(query.grouping))
    if query.steps is not None:
        moment = Type(Kind.TIMESTAMP)
        rows = [{**row, **bounds} for bounds, rows in source.by_step(query.steps) for row in rows]
        return finish(query, rows, {**source.types, STEP_START: moment, STEP_END: moment})
    return finish(query, source.rows(), source.types)


def grouped_rows(query: Query, grouping: Grouping, source: SelectedRows) -> list[Row]:
    """The grouped rows of an answer, filtered by HAVING and ordered by grouping set, step and keys."""
    rows = [row for keys in grouping.each for row in _of_set(query, grouping, keys, source)]
    if query.uses_now:
        rows = [{**row, NOW: from_micros(source.now)} for row in rows]
    having, types = grouping.having, grouped_types(grouping)
    return [row for row in rows if having is None or value_of(having, row, types) is True]


def _of_set(query: Query, whole: Grouping, numbers: tuple[int, ...], source: SelectedRows) -> list[Row]:
    """The rows of one grouping set; keys outside the set are NULL."""
    grouping = Grouping(tuple(whole.keys[number] for number in numbers), whole.aggregates)
    group_rows: list[Row] = []
    if query.steps is None:
        group_rows += _rows_of(grouping, source.rows(), source.types, {}, always=whole.always)
    else:
        for bounds, rows in source.by_step(query.steps):
            group_rows += _rows_of(grouping, rows, source.types, bounds, always=False)
    wide: list[Row] = []
    for row in group_rows:
        keys = dict.fromkeys(key_name(number) for number in range(len(whole.keys)))
        keys |= {key_name(number): row[key_name(key_index)] for key_index, number in enumerate(numbers)}
        bits = "".join("0" if number in numbers else "1" for number in range(len(whole.keys)))
        wide.append({**row, **keys, GROUPING_ID: int(bits or "0", 2)})
    return wide


def _rows_of(grouping: Grouping, rows: Sequence[Row], types: Types, step: Row, *, always: bool) -> list[Row]:
    """One row for each group; with `always`, one row even if there are no groups."""
    groups = _groups_of(grouping, rows, types)
    if always and not groups:
        groups = [Group((), [])]
    return [_row_of(grouping, group, types, step) for group in groups]


def _groups_of(grouping: Grouping, rows: Sequence[Row], types: Types) -> list[Group]:
    """The groups in order of their keys, ascending with NULL first and NaN last."""
    groups: dict[tuple[Any, ...], Group] = {}
    for row in rows:
        keys = tuple(normalized(value_of(key, row, types)) for key in grouping.keys)
        groups.setdefault(tuple(map(identity, keys)), Group(keys, [])).rows.append(row)

    def order(left: Group, right: Group) -> int:
        for first, second, key in zip(left.keys, right.keys, grouping.keys, strict=True):
            if (sign := compare(first, second, key.type)) != 0:
                return sign
        return 0

    return sorted(groups.values(), key=cmp_to_key(order))


def _row_of(grouping: Grouping, group: Group, types: Types, step: Row) -> Row:
    keys = {key_name(number): value for number, value in enumerate(group.keys)}
    aggregates = {
        aggregate_name(number): aggregate(
            call, [tuple(value_of(argument, row, types) for argument in call.arguments) for row in group.rows]
        )
        for number, call in enumerate(grouping.aggregates)
    }
    return {**keys, **aggregates, **step}
