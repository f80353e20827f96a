"""Key columns: the lists of columns by which joins find the rows of an input in its key index.

The lists are canonical: they do not depend on the order of conditions, so that joins share indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tureen.join import Field, InnerJoin, Join, JoinCompare, JoinFactor, JoinKind, JoinTree, LateralJoin, leaves
from tureen.keys import KeyColumns
from tureen.query import ConstantRows, QueryBlock, SetOperation, block_leaves

_PAIRING = frozenset({JoinKind.LEFT, JoinKind.FULL})
"""The joins whose pairs may be found by a key index; the others group and sort one side."""


def key_equalities(factors: Sequence[JoinFactor], number: int) -> list[JoinCompare]:
    """The equalities of columns of an input by which its rows are found in an index: one for each of its columns."""
    by_column: dict[tuple[str, str], JoinCompare] = {}
    for factor in factors:
        if isinstance(factor, JoinCompare) and _is_key(factor, number):
            by_column.setdefault((own_field(factor, number).column, factor.domain), factor)
    return [by_column[column] for column in sorted(by_column)]


def key_columns(equalities: Sequence[JoinCompare], number: int) -> KeyColumns:
    """The columns of an input that equalities compare."""
    return tuple((own_field(factor, number).column, factor.domain) for factor in equalities)


def own_field(factor: JoinCompare, number: int) -> Field:
    """The field of an input that a comparison with another one reads."""
    return factor.left if factor.left.input == number else factor.right


def other_field(factor: JoinCompare, number: int) -> Field:
    """The field of the other input."""
    return factor.right if factor.left.input == number else factor.left


def _is_key(factor: JoinCompare, number: int) -> bool:
    inputs = {factor.left.input, factor.right.input}
    return factor.op == "=" and not factor.offset and number in inputs and len(inputs) == 2


def columns_of_streams(block: QueryBlock, stream_ids: Sequence[int | None]) -> frozenset[tuple[int, KeyColumns]]:
    """The streams that a query may probe, each with a list of columns.

    `stream_ids` has for each leaf of the query, see `tureen.query.Query.leaves`, the id of its stream, if it is one.
    """
    return frozenset(_of_block(block, stream_ids))


def _of_block(block: QueryBlock, stream_ids: Sequence[int | None]) -> Iterator[tuple[int, KeyColumns]]:
    if isinstance(block, ConstantRows):
        return
    if isinstance(block, SetOperation):
        middle = len(block_leaves(block.left))
        yield from _of_block(block.left, stream_ids[:middle])
        yield from _of_block(block.right, stream_ids[middle:])
        return
    for number, columns in probed_columns(block.source):
        leaf = block.leaf_numbers[number]
        stream_id = None if leaf is None else stream_ids[leaf]
        if stream_id is not None:
            yield stream_id, columns
    begin = 0
    for entry in block.inputs:
        end = begin + (1 if entry.block is None else len(block_leaves(entry.block)))
        if entry.block is not None:
            yield from _of_block(entry.block, stream_ids[begin:end])
        begin = end


def probed_columns(tree: JoinTree) -> frozenset[tuple[int, KeyColumns]]:
    """The inputs of a join tree that may be probed, each with a list of columns.

    Which of them are, and by which columns, depends on the numbers of rows: an input is joined after one or more of
    the inputs that equalities connect with it. So there is a list for each of these, and one for those that are
    connected with each other without it.
    """
    return frozenset(_probed(tree))


def _probed(tree: JoinTree) -> Iterator[tuple[int, KeyColumns]]:
    match tree:
        case InnerJoin(sides, factors):
            yield from _of_sides(sides, factors)
        case Join(kind, left, right, factors):
            sides = (left, right)
            yield from _of_sides(sides, factors if kind in _PAIRING else ())
        case LateralJoin(left, right, factors, _, one_suffices):
            sides = (left, right)
            yield from _of_sides(sides, () if one_suffices else factors)
        case _:
            return
    for side in sides:
        yield from _probed(side)


def _of_sides(sides: Sequence[JoinTree], factors: Sequence[JoinFactor]) -> Iterator[tuple[int, KeyColumns]]:
    for number in sides:
        if not isinstance(number, int):
            continue
        others = [frozenset(leaves(side)) for side in sides if side != number]
        for joined in {*others, *_connected(others, factors)}:
            between = [factor for factor in factors if {field.input for field in factor.fields} <= joined | {number}]
            columns = key_columns(key_equalities(between, number), number)
            if columns:
                yield number, columns


def _connected(sides: Sequence[frozenset[int]], factors: Sequence[JoinFactor]) -> list[frozenset[int]]:
    """Sides that conditions connect with each other, as one."""
    groups = list(sides)
    for factor in factors:
        inputs = {field.input for field in factor.fields}
        if inputs <= frozenset().union(*groups):
            touched = [group for group in groups if group & inputs]
            groups = [group for group in groups if group not in touched] + [frozenset().union(*touched)]
    return groups
