"""The plain twin of changes: which rows of a query appear between two moments, computed from scratch.

A moment is the number of tuples of each stream. A row of a join appears when the last of its tuples arrives, if all of
them are in their windows at the time of the latest; a row of EXISTS or IN with its first partner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tureen.join import Field, InnerJoin, Join, JoinCompare, JoinFactor, JoinKind, JoinTree, field_name, visible_leaves
from tureen.predicate import AllOf, Compare
from tureen.query import Query, RelationKind
from tureen.schema import Column, Schema
from tureen.testing.evaluate import Row, is_true, value_of
from tureen.testing.truth import compare_columns, holds
from tureen.testing.tuples import Tuple
from tureen.testing.values import comparable
from tureen.window import Span

Moment = Mapping[str, int]
"""The number of tuples of each stream."""

Combination = tuple[Tuple, ...]
"""A tuple of each input."""


@dataclass(frozen=True)
class TwinRelation:
    """The schema of a stream or a table, and all of its tuples; rows of a table have numbers too."""

    schema: Schema
    tuples: Sequence[Tuple]


class AppearingRows:
    """The rows of one query over streams and tables."""

    def __init__(self, query: Query, relations: Mapping[str, TwinRelation]) -> None:
        """Compute from these relations, by name."""
        self._query = query
        self._names = [entry.relation for entry in query.inputs]
        self._is_stream = [entry.kind is RelationKind.STREAM for entry in query.inputs]
        self._relations = [relations[name] for name in self._names]
        self._factors = list(_factors(query.source))
        self._visible = sorted(visible_leaves(query.source))
        schemas = [relation.schema for relation in self._relations]
        self._types = {
            field_name(Field(number, column.name)): column.type
            for number, schema in enumerate(schemas)
            for column in schema.columns
        }
        self._candidates = [
            [candidate for candidate in relation.tuples if self._satisfies(number, candidate.values)]
            for number, relation in enumerate(self._relations)
        ]

    def between(self, begin: Moment, end: Moment) -> Counter[str]:
        """The rows that appear after one moment and not after another, as texts."""
        before = set(self._keys(begin))
        new = {key: rows for key, rows in self._keys(end).items() if key not in before}
        return Counter(text for rows in new.values() for text in comparable_texts([self._output(rows)]))

    def rows_at(self, moment: Moment) -> list[dict[str, Any]]:
        """All rows that have appeared until a moment."""
        return [self._output(rows) for rows in self._keys(moment).values()]

    def _keys(self, moment: Moment) -> dict[tuple[int, ...], Combination]:
        """The combinations of visible tuples that have a row at a moment, each with partners."""
        return {tuple(rows[number].number for number in self._visible): rows for rows in self._combinations(moment)}

    def _combinations(self, moment: Moment) -> Iterator[Combination]:
        def extended(rows: Combination) -> Iterator[Combination]:
            number = len(rows)
            if number == len(self._names):
                yield rows
                return
            bound = [factor for factor in self._factors if max(_inputs_of(factor), default=0) == number]
            for candidate in self._candidates[number]:
                if self._is_stream[number] and candidate.number >= moment[self._names[number]]:
                    continue
                longer = (*rows, candidate)
                if all(self._holds(factor, longer) for factor in bound):
                    yield from extended(longer)

        return (rows for rows in extended(()) if self._within_windows(rows))

    def _satisfies(self, number: int, values: Row) -> bool:
        schema = self._relations[number].schema
        columns = Schema(tuple(Column(column.name, column.type) for column in schema.columns))
        return holds(AllOf(tuple(self._query.inputs[number].clause)), values, columns)

    def _holds(self, factor: JoinFactor, rows: Combination) -> bool:
        row = self._row(rows)
        if isinstance(factor, JoinCompare):
            left, right = field_name(factor.left), field_name(factor.right)
            predicate = Compare(left, factor.op, right, factor.offset, factor.domain, factor.limit)
            return compare_columns(predicate, row, self._types)
        return is_true(factor.sql, [field_name(field) for field in factor.fields], row, self._types)

    def _within_windows(self, rows: Combination) -> bool:
        latest = max(row.time for row, is_stream in zip(rows, self._is_stream, strict=True) if is_stream)
        for row, is_stream, entry in zip(rows, self._is_stream, self._query.inputs, strict=True):
            if is_stream and not _contains(entry.window.span(latest), row.time):
                return False
        return True

    def _row(self, rows: Combination) -> Row:
        return {
            field_name(Field(number, column)): value
            for number, row in enumerate(rows)
            for column, value in row.values.items()
        }

    def _output(self, rows: Combination) -> dict[str, Any]:
        row = self._row(rows)
        return {output.name: value_of(output.value, row, self._types) for output in self._query.outputs}


def comparable_texts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as texts that are equal for the same names and values."""
    return [repr(row) for row in comparable(rows)]


def _contains(span: Span, time: int) -> bool:
    return (span.begin is None or time >= span.begin) and (span.end is None or time <= span.end)


def _factors(tree: JoinTree) -> Iterator[JoinFactor]:
    """The conditions of inner and semi joins: a row of a semi join needs partners that satisfy them."""
    match tree:
        case InnerJoin(sides, factors):
            yield from factors
            for side in sides:
                yield from _factors(side)
        case Join(JoinKind.SEMI, left, right, factors):
            yield from factors
            yield from _factors(left)
            yield from _factors(right)
        case int():
            return
        case _:
            raise AssertionError(f"{tree} has no changes")


def _inputs_of(factor: JoinFactor) -> set[int]:
    if isinstance(factor, JoinCompare):
        return {factor.left.input, factor.right.input}
    return {field.input for field in factor.fields}
