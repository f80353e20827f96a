"""GROUP BY, slowly: rows → (steps →) groups → aggregates → HAVING."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from tureen.query import GROUPING_ID, NOW, STEP_END, STEP_START, Grouping, Query, aggregate_name, key_name
from tureen.schema import Kind, Schema, Type
from tureen.testing.aggregates import aggregate
from tureen.testing.evaluate import Row, Types, types_of, value_of
from tureen.testing.steps import View, bounds_of, steps_of
from tureen.testing.truth import selected
from tureen.testing.values import compare, identity, merged
from tureen.window import Steps, from_micros


@dataclass
class Group:
    """The values of its keys, and its rows by time and then arrival."""

    keys: tuple[Any, ...]
    rows: list[Row]


def grouped_types(grouping: Grouping) -> Types:
    """The columns of a grouped row."""
    moment = Type(Kind.TIMESTAMP)
    return {
        **{key_name(number): key.type for number, key in enumerate(grouping.keys)},
        **{aggregate_name(number): one.type for number, one in enumerate(grouping.aggregates)},
        STEP_START: moment,
        STEP_END: moment,
        NOW: moment,
        GROUPING_ID: Type(Kind.BIGINT),
    }


def grouped_rows(query: Query, grouping: Grouping, view: View) -> list[Row]:
    """The grouped rows of an answer, for which HAVING is TRUE: by grouping, by step, and then by the keys."""
    found = [row for keys in grouping.each for row in _of_set(query, grouping, keys, view)]
    if query.uses_now:
        found = [{**row, NOW: from_micros(view.now)} for row in found]
    having, types = grouping.having, grouped_types(grouping)
    return [row for row in found if having is None or value_of(having, row, types) is True]


def stepped_rows(query: Query, steps: Steps, view: View) -> list[Row]:
    """The rows of a query with steps and without groups: each once for every step that holds it, step by step."""
    return [{**row, **bounds} for bounds, rows in _by_step(query, steps, view) for row in rows]


def stepped_types(schema: Schema) -> Types:
    """The columns of a row with its step."""
    return {**types_of(schema), STEP_START: Type(Kind.TIMESTAMP), STEP_END: Type(Kind.TIMESTAMP)}


def _by_step(query: Query, steps: Steps, view: View) -> Iterator[tuple[Row, list[Row]]]:
    """The bounds of each step, and its rows that satisfy WHERE."""
    for step in steps_of(steps, view):
        start, end = bounds_of(step, steps)
        yield {STEP_START: start, STEP_END: end}, selected(query, step.tuples, view.stream.schema, view.now)


def _of_set(query: Query, whole: Grouping, numbers: tuple[int, ...], view: View) -> list[Row]:
    """The rows of one grouping; a key that it does not have is NULL."""
    schema = view.stream.schema
    grouping = Grouping(tuple(whole.keys[number] for number in numbers), whole.aggregates)
    found: list[Row] = []
    if query.steps is None:
        rows = selected(query, view.window, schema, view.now)
        found += _rows_of(grouping, rows, types_of(schema), {}, always=whole.always)
    else:
        for bounds, rows in _by_step(query, query.steps, view):
            found += _rows_of(grouping, rows, types_of(schema), bounds, always=False)
    wide: list[Row] = []
    for row in found:
        keys = dict.fromkeys(key_name(number) for number in range(len(whole.keys)))
        keys |= {key_name(number): row[key_name(place)] for place, number in enumerate(numbers)}
        bits = "".join("0" if number in numbers else "1" for number in range(len(whole.keys)))
        wide.append({**row, **keys, GROUPING_ID: int(bits or "0", 2)})
    return wide


def _rows_of(grouping: Grouping, rows: Sequence[Row], types: Types, step: Row, *, always: bool) -> list[Row]:
    """One row for each group; `always`: one even where there is no group."""
    groups = _groups_of(grouping, rows, types)
    if always and not groups:
        groups = [Group((), [])]
    return [_row_of(grouping, group, types, step) for group in groups]


def _groups_of(grouping: Grouping, rows: Sequence[Row], types: Types) -> list[Group]:
    """The groups in order of their keys, ascending with NULL first and NaN last."""
    groups: dict[tuple[Any, ...], Group] = {}
    for row in rows:
        keys = tuple(merged(value_of(key, row, types)) for key in grouping.keys)
        groups.setdefault(tuple(map(identity, keys)), Group(keys, [])).rows.append(row)

    def order(left: Group, right: Group) -> int:
        for one, other, key in zip(left.keys, right.keys, grouping.keys, strict=True):
            if (sign := compare(one, other, key.type)) != 0:
                return sign
        return 0

    return sorted(groups.values(), key=cmp_to_key(order))


def _row_of(grouping: Grouping, group: Group, types: Types, step: Row) -> Row:
    keys = {key_name(number): value for number, value in enumerate(group.keys)}
    aggregates = {
        aggregate_name(number): aggregate(
            one, [tuple(value_of(argument, row, types) for argument in one.arguments) for row in group.rows]
        )
        for number, one in enumerate(grouping.aggregates)
    }
    return {**keys, **aggregates, **step}
