"""Columns, factors and values of a query's inputs, as people read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tureen.functions.user_function import shown_sql
from tureen.join import Field, JoinCompare, JoinFactor, JoinOpaque, field_name
from tureen.language.expression_text import with_names
from tureen.language.predicates.factor_text import factor_text
from tureen.predicate import Predicate
from tureen.query import NOW, Expression, Grouping, Input, Query, aggregate_name, block_column, key_name
from tureen.schema import Column, Kind, Schema, Type
from tureen.why.explanation import Reason, value_text


@dataclass(frozen=True)
class ShownInput:
    """The names of an input and of its columns."""

    name: str
    schema: Schema
    """The columns by the names that expressions use."""
    labels: Mapping[str, str]
    """The names that people read, by those names."""

    @property
    def plain_labels(self) -> dict[str, str]:
        """The names without that of the input before them, by the names that expressions use."""
        return {name: label.removeprefix(f"{self.name}.") for name, label in self.labels.items()}

    def factor(self, factor: Predicate) -> str:
        """A factor over this input alone."""
        return factor_text(factor, self.schema, lambda name: self.labels.get(name, name))

    def values(self, row: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
        """Some values of a row, by the names that people read."""
        return {self.labels[name]: row[name] for name in columns if name in self.labels}


class ShownQuery:
    """The names of a query's inputs; those of columns have the input's name before them if there are several."""

    def __init__(self, query: Query, schema_of: Callable[[str], Schema]) -> None:
        """Name the inputs of a query."""
        is_single = len(query.inputs) == 1
        self.inputs = [_shown_input(entry, schema_of, is_single=is_single) for entry in query.inputs]
        self._labels = {
            field_name(Field(number, name)): label
            for number, entry in enumerate(self.inputs)
            for name, label in entry.labels.items()
        }
        self.types = {
            entry.labels[column.name]: column.type.sql for entry in self.inputs for column in entry.schema.columns
        }

    def names(self, numbers: Iterable[int]) -> str:
        """The names of some inputs."""
        return " and ".join(self.inputs[number].name for number in sorted(numbers))

    def label(self, column: Field) -> str:
        """A column of an input."""
        return self.inputs[column.input].labels.get(column.column, column.column)

    def join_factor(self, factor: JoinFactor) -> str:
        """A factor between inputs."""
        if not isinstance(factor, JoinCompare):
            return _renamed(factor, self._labels)
        offset = f" {'+' if factor.offset > 0 else '-'} {_offset_text(self, factor)}" if factor.offset else ""
        return f"{self.label(factor.left)} {factor.op} {self.label(factor.right)}{offset}"

    def expression(self, expression: Expression, grouping: Grouping | None = None) -> str:
        """An expression over joined rows or, with a grouping, over groups."""
        labels = {**self._labels, NOW: "NOW"}
        if grouping is not None:
            labels |= self.group_labels(grouping)
        return _renamed(expression, labels)

    def group_labels(self, grouping: Grouping) -> dict[str, str]:
        """The names of the columns of groups: their keys and aggregates."""
        labels = {}
        for number, key in enumerate(grouping.keys):
            labels[key_name(number)] = self._typed(self.expression(key), key.type)
        for number, call in enumerate(grouping.aggregates):
            arguments = ", ".join(map(self.expression, call.arguments)) or "*"
            text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments})"
            labels[aggregate_name(number)] = self._typed(text, call.type)
        return labels

    def _typed(self, label: str, type_: Type) -> str:
        self.types[label] = type_.sql
        return label

    def labelled(self, row: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
        """Some values of a joined row, by the names that people read."""
        return {self._labels.get(name, "NOW" if name == NOW else name): row[name] for name in columns}


def failed_factor(factor: str, truth: str, values: Mapping[str, Any], kind: str = "factor") -> Reason:
    """The reason that a condition is not true."""
    return Reason(kind, factor_sentence(factor, truth, values), factor, truth, values)


def factor_sentence(factor: str, truth: str, values: Mapping[str, Any]) -> str:
    """A condition that is not true, with its values.

    >>> factor_sentence("price > 100.0", "unknown", {"price": None})
    'price > 100.0 is unknown (price is NULL)'
    """
    shown = ", ".join(
        f"{name} is NULL" if value is None else f"{name} = {value_text(value)}" for name, value in values.items()
    )
    verdict = "raises an error" if truth == "error" else f"is {truth}"
    return f"{factor} {verdict} ({shown})" if shown else f"{factor} {verdict}"


def duration_text(micros: float) -> str:
    """A difference of times.

    >>> duration_text(61_000_000), duration_text(1_500_000)
    ('0:01:01', '0:00:01.500000')
    """
    return str(timedelta(microseconds=micros))


def _shown_input(entry: Input, schema_of: Callable[[str], Schema], *, is_single: bool) -> ShownInput:
    before = "" if is_single else f"{entry.shown_name}."
    if entry.block is None:
        schema = schema_of(entry.relation)
        return ShownInput(entry.shown_name, schema, {name: before + name for name in schema.names})
    columns = {block_column(number): output for number, output in enumerate(entry.block.outputs)}
    schema = Schema(tuple(Column(name, output.value.type) for name, output in columns.items()))
    return ShownInput(entry.shown_name, schema, {name: before + output.name for name, output in columns.items()})


def _renamed(expression: Expression | JoinOpaque, labels: Mapping[str, str]) -> str:
    """An expression with the names that people read."""
    return with_names(expression.text or shown_sql(expression.sql), lambda name: labels.get(name, name))


def _offset_text(shown: ShownQuery, factor: JoinCompare) -> str:
    column = shown.inputs[factor.right.input].schema.find(factor.right.column)
    size = abs(factor.offset)
    if column is not None and column.type == Type(Kind.TIMESTAMP):
        return f"INTERVAL '{size / 1_000_000:g}' SECOND"
    return str(size)
