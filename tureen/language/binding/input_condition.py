"""A condition over one input of a bound query: which of its tuples a user asks about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.bind import bind_condition
from tureen.language.binding.conditions import clause_of_input
from tureen.language.binding.disjunctions import inputs_of
from tureen.language.binding.scope import Relation, Scope
from tureen.language.source import Source
from tureen.language.text.depth import parser_stack
from tureen.language.text.parse import parse_select
from tureen.language.text.split import tokenize
from tureen.language.tree import columns_in
from tureen.predicate import Clause
from tureen.query import NOW, Input, Query, RelationKind
from tureen.schema import Column, Schema


@dataclass(frozen=True)
class InputCondition:
    """A clause over one input of a query."""

    input: int
    clause: Clause


def bind_input_condition(text: str, query: Query, schema_of: Callable[[str], Schema]) -> InputCondition:
    """Bind a condition with the names of a query's inputs; it must concern exactly one of them.

    Inputs without a name, such as the answer of a set operation, cannot be asked about.
    """
    with parser_stack():
        source = Source(text)
        tokens = [token for token in tokenize(source) if token.token_type is not TokenType.SEMICOLON]
        if not tokens:
            raise SqlError("the condition is empty", hint="write a condition, such as sym = 'IBM'")
        select = parse_select(source, [*_select_where(tokens[0]), *tokens])
        other = next(
            (name for name, part in select.args.items() if part and name not in ("expressions", "where")), None
        )
        if other is not None:
            raise SqlError(
                "only a condition is allowed",
                hint="write what can follow WHERE",
                location=source.node(select.args["where"].this),
            )
        relations = tuple(
            _relation(number, entry, schema_of) for number, entry in enumerate(query.inputs) if entry.names
        )
        condition = bind_condition(Scope(source, relations), select.args["where"].this)
        location = source.location(condition.at)
        if NOW in columns_in(condition):
            raise Unsupported(
                "NOW is not supported in this condition", hint="write the time as a TIMESTAMP", location=location
            )
        inputs = inputs_of(condition)
        if len(inputs) > 1:
            names = " and ".join(query.inputs[number].shown_name for number in sorted(inputs))
            raise Unsupported(
                f"the condition must concern one input, got {names}",
                hint="ask about the tuples of one input at a time",
                location=location,
            )
        if not inputs and len(relations) > 1:
            names = " or ".join(relation.names[0] for relation in relations)
            raise SqlError(
                "the condition names no input", hint=f"compare a column of {names} with a value", location=location
            )
        number = next(iter(inputs), relations[0].number if relations else 0)
        relation = next(relation for relation in relations if relation.number == number)
        return InputCondition(number, clause_of_input(relation, [condition]))


def _select_where(like: Token) -> list[Token]:
    """The tokens of `SELECT 1 WHERE`, at the location of another."""
    words = [(TokenType.SELECT, "SELECT"), (TokenType.NUMBER, "1"), (TokenType.WHERE, "WHERE")]
    return [Token(kind, text, like.line, like.col, like.start, like.start) for kind, text in words]


def _relation(number: int, entry: Input, schema_of: Callable[[str], Schema]) -> Relation:
    if entry.block is None:
        return Relation(entry.names, schema_of(entry.relation), entry.kind, entry.relation, number)
    schema = Schema(tuple(Column(output.name, output.value.type) for output in entry.block.outputs))
    return Relation(entry.names, schema, RelationKind.BLOCK, number=number, block=entry.block)
