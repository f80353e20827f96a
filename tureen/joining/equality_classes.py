"""Equality classes: the columns of a join's inputs that have the same value in every joined tuple.

Equality is transitive only if it is exact. A BIGINT and a DOUBLE are compared as doubles, so that two BIGINTs may equal
the same DOUBLE and not each other: such comparisons connect no class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tureen.closed.key_codes import has_order
from tureen.join import Field
from tureen.joining.shared_join import SharedJoin
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, type_of_arrow


@dataclass(frozen=True)
class EqualityClasses:
    """The classes of a join."""

    class_of: Mapping[Field, int]
    members: Sequence[Sequence[Field]]
    domains: Mapping[Field, str]
    """The domain in which a column is compared, in the order of the join's comparisons."""

    @classmethod
    def of(cls, join: SharedJoin, schemas: Sequence[pa.Schema]) -> EqualityClasses:
        """The classes of a join of inputs with these stored columns."""
        sets: list[set[Field]] = []
        domains: dict[Field, str] = {}
        for factor in join.factors:
            left, right = factor.left, factor.right
            if factor.op != "=" or factor.offset or left.input == right.input:
                continue
            kinds = [_code_kind(schemas[field.input].field(field.column).type) for field in (left, right)]
            if kinds[0] is None or kinds[0] != kinds[1]:
                continue
            for field in (left, right):
                domains.setdefault(field, factor.domain)
            touched = [group for group in sets if left in group or right in group]
            sets = [group for group in sets if group not in touched] + [{left, right}.union(*touched)]
        members = [sorted(group, key=lambda field: (field.input, field.column)) for group in sets]
        members.sort(key=lambda fields: (fields[0].input, fields[0].column))
        class_of = {field: number for number, fields in enumerate(members) for field in fields}
        return cls(class_of, members, domains)

    def columns_of(self, number: int) -> dict[str, int]:
        """The columns of an input that are in a class, and which."""
        return {field.column: of for field, of in self.class_of.items() if field.input == number}

    def field_in(self, number: int, class_number: int) -> Field | None:
        """A column of an input in a class."""
        return next((field for field in self.members[class_number] if field.input == number), None)

    def shared_columns(self, number: int, others: Sequence[int]) -> dict[str, Field]:
        """The columns of an input whose values tuples of other inputs determine, each with a column of those."""
        shared = {}
        for column, of in self.columns_of(number).items():
            fields = (self.field_in(other, of) for other in others)
            field = next((candidate for candidate in fields if candidate is not None), None)
            if field is not None:
                shared[column] = field
        return shared


def _code_kind(arrow: pa.DataType) -> object:
    """What types have in common whose values have the same codes if they are equal; None if there are none."""
    column_type = type_of_arrow(arrow)
    if column_type is None or column_type.kind is Kind.ARRAY:
        return None
    if column_type.kind in INTEGRAL:
        return "integer"
    if column_type.kind in FRACTIONAL:
        return "fraction"
    return column_type.kind, column_type.scale, has_order(column_type)
