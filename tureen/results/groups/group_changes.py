"""Changes of groups: which rows an answer gained, which differ and which it lost, between two positions.

The changes of one read are in the order of a hash of their groups, so that a follower that stopped between two of them
continues with the rest: the position of a change tells the hash up to which they were read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tureen.aggregates.expression_values import ROW, numbered
from tureen.evaluation.duck import arrow_column, run
from tureen.keys import canonical_float
from tureen.position import Position, UnreadChanges
from tureen.query import Query
from tureen.results.groups.group_deltas import GroupDelta, NumberedGroups, same_rows

Kind = Literal["insert", "update", "delete", "reset"]


@dataclass(frozen=True)
class ChangedRow:
    """A row that an answer gained, that differs, or that it lost."""

    kind: Kind
    hash: int
    """Its place among the changes of a read."""
    row: dict[str, Any]
    """The row; if it is gone, as it was."""
    before: dict[str, Any] | None = None
    member: int = -1
    """The number of the query in its template."""
    label: str | int | None = None
    """The label of that query."""


@dataclass(frozen=True)
class GroupChanges:
    """The changes of groups between two positions, in the order of their hashes."""

    changed: Sequence[ChangedRow]
    since: Position
    end: Position
    due: float | None = None
    """After how many seconds time alone may change the groups; None if it does not."""
    places: Sequence[Position] | None = None
    """The position after each change, if it does not follow from the hashes."""

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.changed)

    def positions(self) -> Iterator[str]:
        """The position after each change."""
        if self.places is not None:
            yield from map(str, self.places)
            return
        end = str(self.end)
        since = str(replace(self.end, unread=self._unread(0))).rpartition("*")[2]
        hashes = [change.hash for change in self.changed]
        for own, following in pairwise(hashes):
            yield f"{end}*{own if following > own else max(own - 1, 0):016x}*{since}"
        if hashes:
            yield end

    def position(self, index: int | None = None) -> Position:
        """The position after the change of that index, or after all of them."""
        if index is None or index + 1 >= len(self.changed):
            return self.end
        if self.places is not None:
            return self.places[index]
        own, following = self.changed[index], self.changed[index + 1]
        after = own.hash if following.hash > own.hash else max(own.hash - 1, 0)
        return replace(self.end, unread=self._unread(after))

    def _unread(self, after: int) -> UnreadChanges:
        return UnreadChanges(after, self.since.marks, self.since.now, members=self.since.members)


class FollowedOutputs(Protocol):
    """HAVING and the select list of a query, or of the queries of a template, applied to some of their groups."""

    @property
    def key(self) -> Hashable:
        """Identifies the query, or the queries of a template."""

    @property
    def next_number(self) -> int | None:
        """Of a template, the number that its next query takes."""

    def between(self, first: int, end: int | None) -> FollowedOutputs:
        """Of a template, those of its queries with a number from `first` on, and before `end`."""

    def changed(self, delta: GroupDelta, keys: Sequence[str], only_turns: bool) -> list[ChangedRow]:
        """The changes of answers that follow from changed groups, in no order; or only the turns.

        `keys` are the columns with the keys of the groups.
        """

    def evaluate(self, groups: NumberedGroups) -> None:
        """Raise QueryFailed if an expression fails for one of the groups."""


class GroupOutputs:
    """HAVING and the select list of a query with groups, applied to some of its groups."""

    def __init__(self, query: Query) -> None:
        """Generate its SQL."""
        self._query, self.key, self.next_number = query, query.sql, None
        self._fields = pa.schema([(output.name, output.value.type.arrow) for output in query.outputs])

    @cached_property
    def _sql(self) -> str:
        grouping = self._query.grouping
        items = [f"({output.value.sql}) AS out{number}" for number, output in enumerate(self._query.outputs)]
        having = None if grouping is None else grouping.having
        where = "" if having is None else f" WHERE {having.sql}"
        return f"SELECT {', '.join([*items, ROW])} FROM rows{where} ORDER BY {ROW}"

    @cached_property
    def _is_plain(self) -> bool:
        grouping = self._query.grouping
        assert grouping is not None
        return grouping.having is None and all(output.value.column is not None for output in self._query.outputs)

    def __call__(self, groups: NumberedGroups) -> NumberedGroups:
        """The rows of the answer of some groups."""
        if self._is_plain:
            columns = [groups.rows.column(output.value.column) for output in self._query.outputs]
            return NumberedGroups(groups.numbers, pa.Table.from_arrays(columns, schema=self._fields))
        if not len(groups.numbers):
            return NumberedGroups(groups.numbers, self._fields.empty_table())
        result = run(self._sql, {"rows": numbered(groups.rows)}, "an expression")
        columns = [arrow_column(result.column(index), field.type) for index, field in enumerate(self._fields)]
        rows = result.column(len(columns)).to_numpy()
        return NumberedGroups(groups.numbers[rows], pa.Table.from_arrays(columns, schema=self._fields))

    def between(self, first: int, end: int | None) -> GroupOutputs:  # noqa: ARG002 - as for templates
        """The same: a query is not added to anything."""
        return self

    def changed(self, delta: GroupDelta, keys: Sequence[str], only_turns: bool) -> list[ChangedRow]:
        """The changes of the answer that follow from changed groups, in no order; or only the turns."""
        texts = key_texts(delta, keys)
        pairs = pair_rows(self(delta.before), self(delta.after), only_turns)
        return [ChangedRow(pair.kind, hash_of(texts[pair.number]), pair.row, pair.before) for pair in pairs]

    def evaluate(self, groups: NumberedGroups) -> None:
        """Raise QueryFailed if an expression fails for one of the groups."""
        self(groups)


class PairedRow(NamedTuple):
    """A row of two answers that is in one of them only, or differs."""

    kind: Kind
    number: int
    row: dict[str, Any]
    before: dict[str, Any] | None


def pair_rows(before: NumberedGroups, after: NumberedGroups, only_turns: bool) -> Iterator[PairedRow]:
    """The rows that are in one of two answers only, or differ; with `only_turns`, only the former."""
    if only_turns:
        same_before, same_after = np.isin(before.numbers, after.numbers), np.isin(after.numbers, before.numbers)
    else:
        same_before, same_after = same_rows(before, after)
    before, after = before.take(~same_before), after.take(~same_after)
    old = dict(zip(before.numbers.tolist(), before.rows.to_pylist(), strict=True))
    for number, row in zip(after.numbers.tolist(), after.rows.to_pylist(), strict=True):
        was = old.pop(number, None)
        yield PairedRow("insert" if was is None else "update", number, row, was)
    for number, row in old.items():
        yield PairedRow("delete", number, row, row)


def key_texts(delta: GroupDelta, keys: Sequence[str]) -> dict[int, str]:
    """The key of each group as a text, which is the same in all processes."""
    texts: dict[int, str] = {}
    for groups in (delta.before, delta.after):
        columns = [_plain_values(groups.rows.column(name)) for name in keys]
        keys_of_groups = map(repr, zip(*columns, strict=True)) if columns else ["()"] * len(groups.numbers)
        texts.update(zip(groups.numbers.tolist(), keys_of_groups, strict=True))
    return texts


@lru_cache(maxsize=1 << 16)
def hash_of(text: str) -> int:
    """The place of a group among the changes of a read."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if value is None else canonical_float(value) for value in values]
    return values


def after_reset(changed: Sequence[ChangedRow]) -> list[ChangedRow]:
    """All rows of an answer, after the change that says to forget those before."""
    return [ChangedRow("reset", 0, {}), *in_order(changed)]


def in_order(changed: Sequence[ChangedRow]) -> list[ChangedRow]:
    """Changes in the order of their hashes; of one group, in the order of the queries."""
    return sorted(changed, key=lambda change: (change.hash, change.member))
