"""What was written between the parentheses of a call, where sqlglot's tree no longer has it."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from tureen.language.literals import read_string
from tureen.language.source import Source
from tureen.language.text.split import CLOSE, OPEN


def argument_text(source: Source, node: exp.Expression, index: int, missing: str | None = None) -> str | None:
    """The string literal that is an argument; `missing` where there is none, None where it is something else.

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
    if not all(one.token_type in (TokenType.STRING, TokenType.RAW_STRING) for one in tokens):
        return None
    texts = [read_string(source, source.text[start + one.start : start + one.end + 1], start) for one in tokens]
    return "".join(texts)


def _arguments(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each argument of the call that the text starts with."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[1:]:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth == 0:
            break
        if depth == 1 and token.token_type is TokenType.COMMA:
            found.append([])
        elif depth > 1 or token.token_type is not TokenType.L_PAREN:
            found[-1].append(token)
    return found
