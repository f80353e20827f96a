"""Joins as they are bound: the fields of several inputs, the conditions between them, and the tree of FROM.

A query's inputs have numbers. A *join tree* says how their rows are combined: a leaf is the number of an input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

_QUALIFIED = re.compile(r"_([0-9]+)_(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of one of a query's inputs."""

    input: int
    column: str


def field_name(field: Field) -> str:
    """The name of a field in the rows that expressions are computed from.

    A column of the first input keeps its name. No column of an input begins with an underscore.

    >>> field_name(Field(0, "price")), field_name(Field(1, "price"))
    ('price', '_1_price')
    """
    return f"_{field.input}_{field.column}" if field.input else field.column


@lru_cache(4096)
def parse_field(name: str) -> Field:
    """The field of a name that `field_name` returned.

    >>> parse_field("price"), parse_field("_1_price")
    (Field(input=0, column='price'), Field(input=1, column='price'))
    """
    match = _QUALIFIED.fullmatch(name)
    return Field(0, name) if match is None else Field(int(match.group(1)), match.group(2))


@dataclass(frozen=True, slots=True)
class JoinCompare:
    """Columns of two inputs: `left op right + offset`; see `tureen.predicate.Compare`."""

    left: Field
    op: str
    right: Field
    offset: int | float = 0
    domain: str = "int"
    limit: int = 64

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns that it reads."""
        return self.left, self.right


@dataclass(frozen=True, slots=True)
class JoinKey:
    """An expression over one side of a join: DuckDB SQL, in which the columns have the names of `field_name`."""

    sql: str
    fields: tuple[Field, ...]
    is_text: bool
    """Whether its values are STRINGs."""


@dataclass(frozen=True, slots=True)
class JoinOpaque:
    """Any other condition over joined rows: DuckDB SQL, in which the columns have the names of `field_name`."""

    sql: str
    fields: tuple[Field, ...]
    uses_now: bool = False
    """Whether it depends on NOW."""
    is_last: bool = False
    """Whether it is a condition of one input, with that input's names of columns, that is evaluated after the join."""
    text: str = field(default="", compare=False, repr=False)
    """How it was written; see `Expression`."""
    keys: tuple[JoinKey, JoinKey] | None = field(default=None, compare=False, repr=False)
    """The sides of an equality, if each reads inputs that the other one does not."""


JoinFactor = JoinCompare | JoinOpaque


def divided(factors: Sequence[JoinFactor], number: int) -> tuple[tuple[JoinFactor, ...], tuple[JoinFactor, ...]]:
    """The factors without columns of an input, and those with one."""
    uses = [any(field.input == number for field in factor.fields) for factor in factors]
    without, using = (
        tuple(factor for factor, is_using in zip(factors, uses, strict=True) if is_using is side)
        for side in (False, True)
    )
    return without, using


class JoinKind(Enum):
    """How the rows of two sides are combined, other than by an inner join."""

    LEFT = "left"
    """Each pair of partners, and each left row without a partner, with NULLs in the right columns."""
    FULL = "full"
    """As LEFT, and each right row without a partner."""
    SEMI = "semi"
    """Each left row with a partner; without columns of the right side."""
    ANTI = "anti"
    """Each left row without a partner."""
    ASOF = "asof"
    """Each left row with its latest partner; rows without a partner are left out."""
    ASOF_LEFT = "asof left"
    """As ASOF, and each left row without a partner."""


@dataclass(frozen=True, slots=True)
class InnerJoin:
    """The combinations of rows of all sides that satisfy all factors; with one side, a filter of its rows."""

    sides: tuple[JoinTree, ...]
    factors: tuple[JoinFactor, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Two sides, of which one row may remain without a partner: partners satisfy all factors.

    `latest` is the inequality of an ASOF join: of the right rows that satisfy it, the one with the closest value.
    """

    kind: JoinKind
    left: JoinTree
    right: JoinTree
    factors: tuple[JoinFactor, ...] = ()
    latest: JoinCompare | None = None


@dataclass(frozen=True, slots=True)
class LateralJoin:
    """Each left row once, with the row of the input `result`, which is computed from its partners on the right.

    This is a subquery that uses columns of the query around it. Partners satisfy all factors.
    """

    left: JoinTree
    right: JoinTree
    factors: tuple[JoinFactor, ...]
    result: int
    one_suffices: bool = False
    """Whether it is computed from one partner, of which no column is read: EXISTS."""


JoinTree = int | InnerJoin | Join | LateralJoin


def leaves(tree: JoinTree, *, visible: bool = False) -> Iterator[int]:
    """The inputs of a join tree, from left to right.

    With `visible`, only those whose columns its rows have: not the right side of a semi, anti or lateral join.

    >>> list(leaves(InnerJoin((0, Join(JoinKind.LEFT, 2, 1)))))
    [0, 2, 1]
    """
    match tree:
        case InnerJoin(sides):
            for side in sides:
                yield from leaves(side, visible=visible)
        case Join(kind, left, right):
            yield from leaves(left, visible=visible)
            if not visible or kind not in (JoinKind.SEMI, JoinKind.ANTI):
                yield from leaves(right, visible=visible)
        case LateralJoin(left, right, _, result):
            yield from leaves(left, visible=visible)
            if not visible:
                yield from leaves(right, visible=visible)
            yield result
        case _:
            yield tree


def visible_leaves(tree: JoinTree) -> Iterator[int]:
    """The inputs whose columns the rows of a join tree have."""
    return leaves(tree, visible=True)
