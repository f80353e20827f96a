"""Joins in their simplest form: all combinations of the rows of the windows, filtered one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tureen.errors import QueryFailed
from tureen.join import (
    Field,
    InnerJoin,
    Join,
    JoinCompare,
    JoinFactor,
    JoinKind,
    JoinTree,
    LateralJoin,
    field_name,
    visible_leaves,
)
from tureen.predicate import Compare, Opaque
from tureen.query import (
    NOW,
    STEP_END,
    STEP_START,
    ConstantRows,
    Input,
    Query,
    QueryBlock,
    SetOperation,
    SetOperator,
    block_column,
)
from tureen.schema import Kind, Type
from tureen.testing.evaluate import Row, Types, is_true, value_of
from tureen.testing.grouped import SelectedRows
from tureen.testing.truth import compare_columns
from tureen.testing.values import compare, identity, normalized
from tureen.window import Span, Steps, from_micros

_BEFORE_ALL = float("-inf")


@dataclass(frozen=True)
class InputRow:
    """A row of an input: its time and its number, by which answers are ordered, and its values."""

    time: float
    number: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class JoinedInput:
    """The rows of an input that satisfy its clause within its window."""

    rows: Sequence[InputRow]
    types: Types
    span: Span | None = None
    """Its window, if it is a stream; with its retention as the begin."""


Combination = Mapping[int, InputRow | None]
"""A row of each input, or None for a row of NULLs."""


@dataclass(frozen=True)
class JoinRows:
    """The rows of a query over several inputs: see `tureen.testing.grouped.SelectedRows`."""

    query: Query
    inputs: Sequence[JoinedInput]
    now: int
    answer: Callable[[SelectedRows], list[dict[str, Any]]]
    """The answer of a query from its rows."""
    called: Sequence[tuple[int, Opaque]] = ()
    """Conditions of inputs that call functions: they count only for joined rows."""

    @property
    def types(self) -> Types:
        """The types of the columns of all inputs."""
        types = {
            field_name(Field(number, column)): type_
            for number, entry in enumerate(self.inputs)
            for column, type_ in entry.types.items()
        }
        return {**types, NOW: Type(Kind.TIMESTAMP)}

    def rows(self) -> list[Row]:
        """The joined rows, by the time of the earliest tuple and then the numbers of all tuples."""
        return [row for _, row in self._timed()]

    def by_step(self, steps: Steps) -> Iterator[tuple[Row, list[Row]]]:
        """The joined rows of each step, by the time of their earliest tuple; a row without one is in no step."""
        timed = [(time, row) for time, row in self._timed() if time != _BEFORE_ALL]
        if not timed:
            return
        first = (min(time for time, _ in timed) - steps.width - steps.origin) // steps.slide
        last = (max(time for time, _ in timed) - steps.origin) // steps.slide
        for number in range(int(first), int(last) + 1):
            start = steps.origin + number * steps.slide
            rows = [row for time, row in timed if start <= time < start + steps.width]
            if rows and (steps.partial or self._is_whole(start, start + steps.width)):
                yield {STEP_START: from_micros(start), STEP_END: from_micros(start + steps.width)}, rows

    def _is_whole(self, start: int, end: int) -> bool:
        for entry in self.inputs:
            if entry.span is None:
                continue
            if entry.span.begin is not None and entry.span.begin > start:
                return False
            if entry.span.end is not None and end - 1 > entry.span.end:
                return False
        return end <= self.now

    def _timed(self) -> list[tuple[float, Row]]:
        visible = sorted(visible_leaves(self.query.source))
        combinations = sorted(self._joined(self.query.source), key=lambda rows: _order(visible, rows))
        timed = [(_time(rows), self._row(rows)) for rows in combinations if self._called(rows)]
        at_now = self.query.at_now
        return [(time, row) for time, row in timed if at_now is None or value_of(at_now, row, self.types) is True]

    def _called(self, rows: Combination) -> bool:
        """Whether the conditions that call functions hold; one that raises counts if no other rejects the row."""
        errors = []
        for number, factor in self.called:
            row = rows[number]
            assert row is not None
            try:
                if not is_true(factor.sql, factor.columns, row.values, self.inputs[number].types):
                    return False
            except QueryFailed as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return True

    def _row(self, rows: Combination) -> Row:
        values: dict[str, Any] = {NOW: from_micros(self.now)}
        for number, entry in enumerate(self.inputs):
            row = rows.get(number)
            for column in entry.types:
                values[field_name(Field(number, column))] = None if row is None else row.values[column]
        return values

    def _joined(self, tree: JoinTree) -> list[Combination]:
        match tree:
            case InnerJoin(sides, factors):
                combined = [_merged(*rows) for rows in product(*map(self._joined, sides))]
                return [rows for rows in combined if self._holds(factors, rows)]
            case Join():
                return self._two_sided(tree)
            case LateralJoin():
                return self._lateral(tree)
            case _:
                return [{tree: row} for row in self.inputs[tree].rows]

    def _two_sided(self, join: Join) -> list[Combination]:
        left, right = self._joined(join.left), self._joined(join.right)
        factors = join.factors if join.latest is None else (*join.factors, join.latest)
        partners = [[other for other in right if self._holds(factors, _merged(rows, other))] for rows in left]
        nothing: Combination = dict.fromkeys(visible_leaves(join.right))
        pairs = list(zip(left, partners, strict=True))
        match join.kind:
            case JoinKind.SEMI:
                return [rows for rows, others in pairs if others]
            case JoinKind.ANTI:
                return [rows for rows, others in pairs if not others]
            case JoinKind.ASOF | JoinKind.ASOF_LEFT:
                assert join.latest is not None
                latest = [(rows, self._latest(join.latest, others)) for rows, others in pairs]
                return [
                    _merged(rows, other or nothing)
                    for rows, other in latest
                    if other is not None or join.kind is JoinKind.ASOF_LEFT
                ]
        joined = [_merged(rows, other) for rows, others in pairs for other in others or [nothing]]
        if join.kind is JoinKind.FULL:
            matched = [other for others in partners for other in others]
            no_left: Combination = dict.fromkeys(visible_leaves(join.left))
            joined += [_merged(no_left, other) for other in right if other not in matched]
        return joined

    def _lateral(self, join: LateralJoin) -> list[Combination]:
        """Each left row with the value of a query over its partners, which are taken one by one."""
        block = self.query.inputs[join.result].block
        assert isinstance(block, Query)
        visible = sorted(visible_leaves(join.right))
        right = sorted(self._joined(join.right), key=lambda rows: _order(visible, rows))
        joined = []
        for rows in self._joined(join.left):
            both = [_merged(rows, other) for other in right]
            partners = [self._row(each) for each in both if self._holds(join.factors, each)]
            check_scalar(self.query.inputs[join.result], partners)
            (answer,) = self.answer(PartnerRows(block, partners, self.types, self.now))
            values = dict(zip(self.inputs[join.result].types, answer.values(), strict=True))
            joined.append(_merged(rows, {join.result: InputRow(float("inf"), 0, values)}))
        return joined

    def _latest(self, latest: JoinCompare, others: Sequence[Combination]) -> Combination | None:
        """The partner with the closest value; of equal ones the last if later ones are further away, else the first."""
        best: Combination | None = None
        type_ = self.inputs[latest.right.input].types[latest.right.column]
        for other in others:
            if best is None:
                best = other
                continue
            sign = compare(_value(other, latest.right), _value(best, latest.right), type_)
            if (latest.op in (">", ">=") and sign >= 0) or (latest.op in ("<", "<=") and sign < 0):
                best = other
        return best

    def _holds(self, factors: Sequence[JoinFactor], rows: Combination) -> bool:
        return all(self._factor_holds(factor, rows) for factor in factors)

    def _factor_holds(self, factor: JoinFactor, rows: Combination) -> bool:
        row = self._row(rows)
        if isinstance(factor, JoinCompare):
            left, right = field_name(factor.left), field_name(factor.right)
            predicate = Compare(left, factor.op, right, factor.offset, factor.domain, factor.limit)
            return compare_columns(predicate, row, self.types)
        columns = [field_name(column) for column in factor.fields]
        return is_true(factor.sql, [*columns, NOW] if factor.uses_now else columns, row, self.types)


@dataclass(frozen=True)
class PartnerRows:
    """The partners of a row, from which a query is computed: see `tureen.testing.grouped.SelectedRows`."""

    query: Query
    partners: list[Row]
    types: Types
    now: int

    def rows(self) -> list[Row]:
        """The partners, in order."""
        return self.partners

    def by_step(self, steps: Steps) -> Iterator[tuple[Row, list[Row]]]:
        """Such a query has no steps."""
        raise NotImplementedError


def block_input(block: QueryBlock, answer_of: Callable[[Query], list[dict[str, Any]]]) -> JoinedInput:
    """The answer of a block as an input."""
    types = {block_column(number): output.value.type for number, output in enumerate(block.outputs)}
    rows = [dict(zip(types, values, strict=True)) for values in _block_rows(block, answer_of)]
    return JoinedInput(numbered_rows(rows), types)


def numbered_rows(rows: Sequence[Mapping[str, Any]]) -> list[InputRow]:
    """Rows without a time, in their order."""
    return [InputRow(float("inf"), number, row) for number, row in enumerate(rows)]


def check_scalar(entry: Input, rows: Sequence[InputRow] | Sequence[Row]) -> None:
    """Raise if a query that is used as a value has several rows."""
    if entry.is_scalar and len(rows) > 1:
        raise QueryFailed(f"a query that is used as a value returned {len(rows)} rows")


def _block_rows(block: QueryBlock, answer_of: Callable[[Query], list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    if isinstance(block, Query):
        return [tuple(row.values()) for row in answer_of(block)]
    if isinstance(block, ConstantRows):
        return [tuple(value_of(value, {}, {}) for value in row) for row in block.rows]
    left, right = _block_rows(block.left, answer_of), _block_rows(block.right, answer_of)
    return _combined(block, left, right)


def _combined(
    operation: SetOperation, left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """The rows of a set operation, one by one."""
    both = [*left, *right]
    if operation.operator is SetOperator.UNION and operation.keep_duplicates:
        return both
    counts = [_counts(rows) for rows in (left, right)]
    result: list[tuple[Any, ...]] = []
    seen: set[Any] = set()
    for row in both:
        key = _key(row)
        if key in seen:
            continue
        seen.add(key)
        of_left, of_right = (count.get(key, 0) for count in counts)
        match operation.operator:
            case SetOperator.UNION:
                copies = 1
            case SetOperator.INTERSECT:
                copies = min(of_left, of_right)
            case SetOperator.EXCEPT:
                copies = of_left - of_right if operation.keep_duplicates else of_left * (of_right == 0)
        result += [row] * (max(copies, 0) if operation.keep_duplicates else min(max(copies, 0), 1))
    return result


def _counts(rows: Sequence[tuple[Any, ...]]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for row in rows:
        counts[_key(row)] = counts.get(_key(row), 0) + 1
    return counts


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(identity(normalized(value)) for value in row)


def _merged(*rows: Combination) -> Combination:
    return {number: row for combination in rows for number, row in combination.items()}


def _value(rows: Combination, column: Field) -> Any:
    row = rows[column.input]
    return None if row is None else row.values[column.column]


def _time(rows: Combination) -> float:
    """The time of the earliest tuple; of a row without tuples, a time before all others."""
    times = [row.time for row in rows.values() if row is not None and row.time != float("inf")]
    return min(times, default=_BEFORE_ALL)


def _order(visible: Sequence[int], rows: Combination) -> tuple[float, ...]:
    numbers = [-1 if (row := rows.get(number)) is None else row.number for number in visible]
    return (_time(rows), *numbers)
