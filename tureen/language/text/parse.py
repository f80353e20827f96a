"""Parsing: the tokens of a SELECT become sqlglot's tree, or an error with its position."""

from __future__ import annotations

from itertools import pairwise, zip_longest

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.durations import unit_name
from tureen.language.other_engines import PATTERNS, WINDOW_CLAUSE
from tureen.language.source import Source
from tureen.language.text.blocks import shown_token
from tureen.language.text.depth import MAX_OPERATORS, check_operators, too_deep

_WINDOW_KINDS = ("TUMBLING", "HOPPING", "SESSION")
"""The words after WINDOW in ksqlDB."""


def parse_select(source: Source, tokens: list[Token]) -> exp.Select:
    """The tree of one SELECT."""
    tokens = [_as_function(token, following) for token, following in zip_longest(tokens, tokens[1:])]
    try:
        statements = Spark().parser().parse(tokens, source.text)
    except RecursionError:
        # Prefix operators that nest without parentheses, deeper than any tree that is accepted.
        raise too_deep(f"at most {MAX_OPERATORS} nested operators", source) from None
    except ParseError as error:
        raise _parse_error(source, tokens, error) from None
    except (SqlglotError, ValueError, KeyError, IndexError, AttributeError, TypeError, AssertionError, ArithmeticError):
        raise SqlError("the query cannot be understood", location=source.token(tokens[0])) from None
    tree = statements[0] if len(statements) == 1 else None
    if not isinstance(tree, exp.Select):
        raise SqlError("the text is not one SELECT", location=source.token(tokens[0]))
    check_operators(source, tree)
    return tree


def _as_function(token: Token, following: Token | None) -> Token:
    """Spark's function `window` as a plain word: sqlglot would read a WINDOW clause."""
    if token.token_type is TokenType.WINDOW and following is not None and following.token_type is TokenType.L_PAREN:
        return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
    return token


def _parse_error(source: Source, tokens: list[Token], error: ParseError) -> SqlError:
    details = error.errors[0] if error.errors else {}
    line, col = details.get("line"), details.get("col")
    token = next((token for token in tokens if token.line == line and token.col == col), tokens[-1])
    description = str(details.get("description", ""))
    if description.startswith("Expecting "):
        message = f"expected {description.removeprefix('Expecting ').split()[0]} near '{shown_token(token)}'"
    elif description.startswith("Required keyword") or "Expected table name" in description:
        message = f"something is missing after '{shown_token(token)}'"
    else:
        message = f"'{shown_token(token)}' is not expected here"
    hint = "write INTERVAL before the number, as in NOW - INTERVAL 5 MINUTES" if unit_name(token.text) else None
    if any(after is token and before.text.upper() in ("ALL", "SOME") for before, after in pairwise(tokens)):
        hint = "write [NOT] IN (SELECT …), or [NOT] EXISTS (SELECT … WHERE …)"
    window = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.WINDOW), len(tokens))
    if any(token.text.upper() in _WINDOW_KINDS for token in tokens[window + 1 : window + 2]):
        return SqlError(
            "the window of a stream must be in brackets", hint=WINDOW_CLAUSE, location=source.token(tokens[window])
        )
    pattern = next((token for token in tokens if token.text.upper() == "MATCH_RECOGNIZE"), None)
    if pattern is not None:
        return Unsupported("MATCH_RECOGNIZE is not supported", hint=PATTERNS, location=source.token(pattern))
    return SqlError(message, hint=hint, location=source.token(token))
