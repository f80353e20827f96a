"""UNION, INTERSECT and EXCEPT: blocks whose outputs are cast to common types."""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokens import Token

from tureen.errors import SqlError, TureenError, TypeMismatch
from tureen.language.binding.coerce import coerce, common
from tureen.language.binding.draft import Context
from tureen.language.binding.outputs import SetOperand
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import Source
from tureen.language.text.blocks import SetTokens
from tureen.language.tree import Const, Ref
from tureen.query import Input, Output, Query, QueryBlock, RelationKind, SetOperation, SetOperator, block_column
from tureen.schema import Column, Kind, Type


def bind_set_operation(context: Context, operands: SetTokens) -> SetOperation:
    """Bind the operands of a set operation, and cast their outputs to common types."""
    at = _first(operands.right).start
    left = _operand(context, operands.left, SetOperand.FIRST)
    right = _operand(context, operands.right, SetOperand.OTHER)
    operator = operands.operator
    if len(left.outputs) != len(right.outputs):
        raise SqlError(
            f"{operator.value} requires as many columns on both sides, "
            f"got {len(left.outputs)} and {len(right.outputs)}",
            location=context.source.location(at),
        )
    types = [
        _common_type(context.source, operator, output, other, at)
        for output, other in zip(left.outputs, right.outputs, strict=True)
    ]
    left, right = (_cast(context.source, block, types) for block in (left, right))
    return SetOperation(operator, operands.keep_duplicates, left, right)


def query_over(source: Source, block: QueryBlock) -> Query:
    """A query that returns the answer of a block."""
    outputs = tuple(
        Output(output.name, expression_of(source, _ref(number, output.value.type)))
        for number, output in enumerate(block.outputs)
    )
    return Query(source.text, (Input("", kind=RelationKind.BLOCK, block=block),), outputs)


def _operand(context: Context, tokens: SetTokens | list[Token], operand: SetOperand) -> QueryBlock:
    if isinstance(tokens, SetTokens):
        return bind_set_operation(context, tokens)
    return context.bind_block(replace(context, operand=operand), tokens)


def _first(operand: SetTokens | list[Token]) -> Token:
    return _first(operand.left) if isinstance(operand, SetTokens) else operand[0]


def _common_type(source: Source, operator: SetOperator, output: Output, other: Output, at: int) -> Type:
    left, right = output.value.type, other.value.type
    if left.kind is Kind.ARRAY or right.kind is Kind.ARRAY:
        raise TypeMismatch(f"{operator.value} does not support ARRAY", location=source.location(at))
    if output.is_untyped or other.is_untyped:
        return right if output.is_untyped else left
    try:
        target = common(source, [Ref(Column("left", left), at), Ref(Column("right", right), at)])
    except TureenError:
        target = None
    if target is None:
        raise TypeMismatch(
            f"{operator.value} cannot combine {left.sql} and {right.sql}",
            hint="cast one of the columns",
            location=source.location(at),
        )
    return target


def _cast(source: Source, block: QueryBlock, types: list[Type]) -> QueryBlock:
    """A block whose outputs have these types."""
    if [output.value.type for output in block.outputs] == types:
        return block
    columns = enumerate(zip(block.outputs, types, strict=True))
    outputs = tuple(_cast_output(source, number, output, target) for number, (output, target) in columns)
    return replace(query_over(source, block), outputs=outputs)


def _cast_output(source: Source, number: int, output: Output, target: Type) -> Output:
    value = Const(None, target, 0) if output.is_untyped else coerce(source, _ref(number, output.value.type), target)
    return Output(output.name, expression_of(source, value))


def _ref(number: int, type_: Type) -> Ref:
    return Ref(Column(block_column(number), type_), 0)
