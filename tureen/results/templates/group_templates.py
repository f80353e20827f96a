"""Groups of a template: computed once for all of its queries, which differ in HAVING and the select list only."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tureen.aggregates.expression_values import ROW, numbered
from tureen.errors import Unsupported
from tureen.evaluation.duck import arrow_column, run
from tureen.join import Field, InnerJoin, JoinCompare, JoinFactor, divided, field_name, parse_field
from tureen.pot.members import Members
from tureen.pot.registered import LOCAL, Registered
from tureen.pot.templates import Template
from tureen.query import Query, key_name
from tureen.results.groups.group_changes import ChangedRow, hash_of, key_texts, pair_rows
from tureen.results.groups.group_deltas import GroupDelta, NumberedGroups, Numbers
from tureen.results.joins.join_ready import SchemaOf
from tureen.results.rows.ready import Ready
from tureen.results.templates.pairing import NUMBER

WAS_IN, IS_IN = "_was_in", "_is_in"
"""Whether a group has tuples before and after."""


class TemplateGroups:
    """The groups of a template over one stream.

    Parameters may stand in HAVING and the select list. In WHERE, they may be compared with keys: all tuples of a group
    have the same key, so that such a condition is one on groups.
    """

    def __init__(self, template: Template, query: Query, schema_of: SchemaOf) -> None:
        """Prepare the groups of all queries; raise if the queries have different groups."""
        grouping = query.grouping
        assert grouping is not None
        if len(query.inputs) > 2:
            raise Unsupported("groups of templates over joins have no changes", hint="follow its queries one by one")
        assert isinstance(query.source, InnerJoin)
        self._query, self._where = query, list(_conditions(query, query.source))
        if any(self._uses_values(value.columns) for value in grouping.over_rows):
            raise Unsupported(
                "groups of a template with a parameter in GROUP BY or an aggregate have no changes",
                hint="follow its queries one by one",
            )
        common = replace(query, inputs=query.inputs[:1], source=0, outputs=(), grouping=replace(grouping, having=None))
        self.ready = Ready.of(common, schema_of(query.stream.relation))
        self.registered = Registered(template.id, None, template.sql, "", template.inputs, 0, 0, LOCAL)
        self._fields = pa.schema([(output.name, output.value.type.arrow) for output in query.outputs])
        self._items = [f"({output.value.sql}) AS out{number}" for number, output in enumerate(query.outputs)]

    def _uses_values(self, columns: Sequence[str]) -> bool:
        names = {field_name(Field(self._query.values_input, name)) for name in self._parameters}
        return not names.isdisjoint(columns)

    @property
    def _parameters(self) -> Sequence[str]:
        """The parameters that HAVING, the select list or a condition uses."""
        query, grouping = self._query, self._query.grouping
        assert grouping is not None
        having = () if grouping.having is None else grouping.having.columns
        used = [*having, *(name for output in query.outputs for name in output.value.columns)]
        fields = [field for name in used if (field := parse_field(name)).input == query.values_input]
        return list(dict.fromkeys([*(field.column for field in fields), *(name for _, name in self._where)]))

    def _write(self, relations: str, where: str) -> str:
        return f"SELECT {', '.join([*self._items, ROW, NUMBER])} FROM {relations}{where}"

    def outputs(self, members: Members) -> MemberOutputs:
        """The answers of all queries that are registered."""
        return MemberOutputs(self, members, members.standing)

    def values(self, members: Members, numbers: Numbers) -> pa.Table:
        """The parameters of queries that answers depend on, with their indexes."""
        values = members.take(self._parameters, numbers) if self._parameters else pa.table({})
        names = [field_name(Field(self._query.values_input, name)) for name in self._parameters]
        indexes = pa.array(np.arange(len(numbers)))
        return pa.table({NUMBER: indexes, **dict(zip(names, values.columns, strict=True))})

    def pairs(
        self, delta: GroupDelta, members: pa.Table, size: int, only_turns: bool
    ) -> tuple[NumberedGroups, NumberedGroups]:
        """The rows of answers before and after, of the groups that differ; or only of those that turned."""
        if only_turns:
            return self._turned(delta, members, size)
        return self.rows(delta.before, members, size), self.rows(delta.after, members, size)

    def rows(self, groups: NumberedGroups, members: pa.Table, size: int) -> NumberedGroups:
        """The rows of the answers of all queries, of some groups."""
        sql = self._write("rows, members", f" WHERE {self._condition}")
        return self._rows(sql, groups.rows, members, groups.numbers, size)

    def _rows(self, sql: str, rows: pa.Table, members: pa.Table, groups: Numbers, size: int) -> NumberedGroups:
        """Rows of answers; their numbers tell the query and the group."""
        if not len(rows) or not len(members):
            return NumberedGroups(groups[:0], self._fields.empty_table())
        result = run(sql, {"rows": numbered(rows), "members": members}, "an expression")
        columns = [arrow_column(result.column(index), field.type) for index, field in enumerate(self._fields)]
        indexes, queries = (result.column(len(columns) + offset).to_numpy() for offset in range(2))
        return NumberedGroups(queries * size + groups[indexes], pa.Table.from_arrays(columns, schema=self._fields))

    def _turned(self, delta: GroupDelta, members: pa.Table, size: int) -> tuple[NumberedGroups, NumberedGroups]:
        """The rows that are in one of the answers before and after only.

        All pairs of a group and a query are compared, and rows computed of those that turned.
        """
        condition = self._condition
        if "'" in condition:
            # The names of columns in it are replaced, which must not happen in a text.
            return self.pairs(delta, members, size, only_turns=False)
        numbers = np.union1d(delta.before.numbers, delta.after.numbers)
        was, now = delta.before.at(numbers), delta.after.at(numbers)
        names = was.schema.names
        both = {**{f"was{name}": was.column(name) for name in names}, **{name: now.column(name) for name in names}}
        presence = {WAS_IN: delta.before.contains(numbers), IS_IN: delta.after.contains(numbers)}
        rows = pa.table({**both, **{name: pa.array(mask) for name, mask in presence.items()}})
        earlier = re.sub(f'"({"|".join(map(re.escape, names))})"', r'"was\1"', condition)
        turned = f"({IS_IN} AND coalesce({condition}, FALSE)) <> ({WAS_IN} AND coalesce({earlier}, FALSE))"
        sql = f"SELECT {ROW}, {NUMBER}, {IS_IN} AND coalesce({condition}, FALSE) FROM rows, members WHERE {turned}"
        result = run(sql, {"rows": numbered(rows), "members": members}, "an expression")
        groups, queries, joined = (column.to_numpy() for column in result.columns)
        gone = ~joined.astype(np.bool_)
        return (
            self._of_pairs(delta.before, members, numbers[groups[gone]], queries[gone], size),
            self._of_pairs(delta.after, members, numbers[groups[~gone]], queries[~gone], size),
        )

    @property
    def _condition(self) -> str:
        """The condition on a group and a query."""
        grouping = self._query.grouping
        assert grouping is not None
        having = [] if grouping.having is None else [f"({grouping.having.sql})"]
        return f"({' AND '.join([*(sql for sql, _ in self._where), *having]) or 'TRUE'})"

    def _of_pairs(
        self, groups: NumberedGroups, members: pa.Table, numbers: Numbers, queries: Numbers, size: int
    ) -> NumberedGroups:
        """The rows of answers of pairs of a group and a query."""
        rows, values = groups.at(numbers), members.take(pa.array(queries))
        for name, column in zip(values.schema.names, values.columns, strict=True):
            rows = rows.append_column(name, column)
        return self._rows(self._write("rows", ""), rows, members, numbers, size)


@dataclass(frozen=True)
class MemberOutputs:
    """HAVING and the select lists of queries of a template, applied to some of their groups."""

    groups: TemplateGroups
    members: Members
    numbers: Numbers
    """The numbers of the queries, ascending."""

    @property
    def key(self) -> Hashable:
        """The template, and up to which query."""
        return self.members.template.id, self.next_number

    @property
    def next_number(self) -> int:
        """The number that the next query of the template takes."""
        return self.members.template.next_number

    def between(self, first: int, end: int | None) -> MemberOutputs:
        """Those of the queries with a number from `first` on, and before `end`."""
        last = len(self.numbers) if end is None else int(np.searchsorted(self.numbers, end))
        return replace(self, numbers=self.numbers[int(np.searchsorted(self.numbers, first)) : last])

    @cached_property
    def _values(self) -> pa.Table:
        return self.groups.values(self.members, self.numbers)

    def changed(self, delta: GroupDelta, keys: Sequence[str], only_turns: bool) -> list[ChangedRow]:
        """The changes of the answers that follow from those of groups, in no order; or only the turns."""
        texts = key_texts(delta, keys)
        size = max(texts, default=0) + 1
        before, after = self.groups.pairs(delta, self._values, size, only_turns)
        pairs = list(pair_rows(before, after, only_turns))
        positions, groups = np.divmod(np.array([pair.number for pair in pairs], np.int64), size)
        queries = self.numbers[positions]
        columns = pairs, groups.tolist(), queries.tolist(), self.members.labels(queries)
        return [
            ChangedRow(pair.kind, hash_of(f"{texts[group]}#{query}"), pair.row, pair.before, query, label)
            for pair, group, query, label in zip(*columns, strict=True)
        ]

    def evaluate(self, groups: NumberedGroups) -> None:
        """Raise QueryFailed if an expression fails for one of the groups."""
        self.groups.rows(groups, self._values, 1)


def _conditions(query: Query, source: InnerJoin) -> Iterator[tuple[str, str]]:
    """The conditions of WHERE with parameters, as SQL over groups, and the parameter of each."""
    grouping = query.grouping
    assert grouping is not None
    keys = {key.column: key_name(number) for number, key in enumerate(grouping.keys) if key.column is not None}
    for factor in divided(source.factors, query.values_input)[1]:
        condition = _condition(factor, query.values_input, keys)
        if condition is None:
            raise Unsupported(
                "groups of a template with a parameter in WHERE have no changes, unless a key is compared with it",
                hint="add the column to GROUP BY, or follow its queries one by one",
            )
        yield condition


def _condition(factor: JoinFactor, values_input: int, keys: dict[str, str]) -> tuple[str, str] | None:
    if not isinstance(factor, JoinCompare) or factor.offset:
        return None
    sides, parameter = [], None
    for field in factor.fields:
        if field.input == values_input:
            parameter = field.column
            sides.append(field_name(field))
        elif field.column in keys:
            sides.append(keys[field.column])
    if len(sides) != 2 or parameter is None:
        return None
    left, right = sides
    return f'("{left}" {factor.op} "{right}")', parameter
