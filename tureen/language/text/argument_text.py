"""The text of a call's arguments, which sqlglot's tree does not keep."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from tureen.language.literals import read_string
from tureen.language.source import Source
from tureen.language.text.split import CLOSE, OPEN


def argument_text(source: Source, node: exp.Expression, index: int, missing: str | None = None) -> str | None:
    """The value of an argument that is a string literal: `missing` if it is absent, None if it is anything else.

    >>> from sqlglot import parse_one
    >>> call = "SELECT date_format(ts, 'yyyy')"
    >>> argument_text(Source(call), parse_one(call, dialect="spark").expressions[0], 1)
    'yyyy'
    """
    start = node.meta.get("start")
    if not isinstance(start, int):
        return None
    arguments = _arguments(Spark().tokenize(source.text[start:]))
    if index >= len(arguments):
        return missing
    tokens = arguments[index]
    if not all(token.token_type in (TokenType.STRING, TokenType.RAW_STRING) for token in tokens):
        return None
    texts = [read_string(source, source.text[start + token.start : start + token.end + 1], start) for token in tokens]
    return "".join(texts)


def _arguments(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each argument of the call at the start of the tokens."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[1:]:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth == 0:
            break
        if depth == 1 and token.token_type is TokenType.COMMA:
            arguments.append([])
        elif depth > 1 or token.token_type is not TokenType.L_PAREN:
            arguments[-1].append(token)
    return arguments
