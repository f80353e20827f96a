"""Blocks: queries within a query, cut out of its tokens.

A query in parentheses is replaced by a name that no user can write (`block_name`), and is read by itself; so each block
has windows of its own. WITH and UNION, INTERSECT and EXCEPT are read here too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.source import Source
from tureen.language.text.split import CLOSE, OPEN, window_words
from tureen.query import SetOperator

_MARK = "\0"

COMBINED = "\1"
"""The name of the combined rows of a set operation, which the clauses after it refer to."""

MAX_OPERATORS = 63
"""The maximum number of UNION, INTERSECT and EXCEPT in a row."""

_STARTS = frozenset({TokenType.SELECT, TokenType.WITH})
_OPERATORS = {
    TokenType.UNION: SetOperator.UNION,
    TokenType.INTERSECT: SetOperator.INTERSECT,
    TokenType.EXCEPT: SetOperator.EXCEPT,
}
_AFTER_OPERANDS = frozenset({TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET})
_WITH_PARENTHESES = frozenset({TokenType.IN, TokenType.EXISTS})
"""After these words a block keeps its parentheses."""


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A query of WITH."""

    name: str
    tokens: list[Token]
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SetTokens:
    """Two operands of a set operation; each is a block's tokens, or another set operation."""

    operator: SetOperator
    keep_duplicates: bool
    left: SetTokens | list[Token]
    right: SetTokens | list[Token]


def block_name(number: int) -> str:
    """The name that stands for a block in the tokens of the query around it."""
    return f"{_MARK}{number}"


def is_block_name(name: str) -> bool:
    """Whether a name stands for a block."""
    return name.startswith(_MARK)


def shown_token(token: Token) -> str:
    """The text of a token in an error message."""
    return "(SELECT" if is_block_name(token.text) else token.text


def cut_blocks(source: Source, tokens: list[Token]) -> tuple[list[Token], dict[str, list[Token]]]:
    """The tokens with a name for each query in parentheses, and the tokens of these queries by name."""
    rest: list[Token] = []
    blocks: dict[str, list[Token]] = {}
    i = 0
    while i < len(tokens):
        if not _opens_block(tokens, i):
            inner = _after_parentheses(tokens, i)
            # Parentheses around an expression are passed together: each would look for a query behind all of them.
            end = i + 1 if _kind(tokens, inner) in _STARTS else max(inner, i + 1)
            rest += tokens[i:end]
            i = end
            continue
        close = closing_index(source, tokens, i)
        name = block_name(len(blocks))
        blocks[name] = tokens[i + 1 : close]
        stand_in = _identifier(name, tokens[i], tokens[close])
        keeps = bool(rest) and rest[-1].token_type in _WITH_PARENTHESES
        rest += [tokens[i], stand_in, tokens[close]] if keeps else [stand_in]
        i = close + 1
    return rest, blocks


def cut_with(source: Source, tokens: list[Token]) -> tuple[list[CommonTable], list[Token]]:
    """The queries of WITH at the start of a query, and the tokens after them."""
    if not tokens or tokens[0].token_type is not TokenType.WITH:
        return [], tokens
    tables: list[CommonTable] = []
    i = 1
    while True:
        name, i = _expect_name(source, tokens, i)
        columns: list[str] = []
        if _kind(tokens, i) is TokenType.L_PAREN:
            close = closing_index(source, tokens, i)
            columns = [token.text for token in tokens[i + 1 : close] if token.token_type is not TokenType.COMMA]
            i = close + 1
        if _kind(tokens, i) is not TokenType.ALIAS or _kind(tokens, i + 1) is not TokenType.L_PAREN:
            raise SqlError(
                f"WITH {name.text} must be followed by AS and a query in parentheses",
                hint="write WITH name AS (SELECT …) SELECT …",
                location=source.token(name),
            )
        close = closing_index(source, tokens, i + 1)
        tables.append(CommonTable(name.text, tokens[i + 2 : close], columns))
        i = close + 1
        if _kind(tokens, i) is not TokenType.COMMA:
            return tables, tokens[i:]
        i += 1


def cut_set_operations(source: Source, tokens: list[Token]) -> tuple[SetTokens | None, list[Token]]:
    """The operands of set operations, and the ORDER BY, LIMIT and window after them; None for a single SELECT."""
    marks = _operator_marks(tokens)
    if not marks:
        return None, tokens
    if len(marks) > MAX_OPERATORS:
        raise SqlError(
            f"a query can have at most {MAX_OPERATORS} set operations in a row", location=source.token(tokens[marks[0]])
        )
    end = _end_of_operands(source, tokens, marks[-1])
    operands: list[SetTokens | list[Token]] = []
    operators: list[tuple[SetOperator, bool]] = []
    start = 0
    for mark in [*marks, end]:
        operands.append(without_parentheses(tokens[start:mark]))
        if mark == end:
            break
        start = mark + 1
        quantifier = _kind(tokens, start)
        operators.append((_OPERATORS[tokens[mark].token_type], quantifier is TokenType.ALL))
        start += quantifier in (TokenType.ALL, TokenType.DISTINCT)
    for part, at in zip(operands, [0, *(mark + 1 for mark in marks)], strict=True):
        if not part:
            raise SqlError("a set operation needs a query on both sides", location=source.token(tokens[max(at - 1, 0)]))
    # INTERSECT binds more tightly than UNION and EXCEPT, which are evaluated from left to right.
    for first in (True, False):
        operands, operators = _combined(operands, operators, intersects=first)
    (result,) = operands
    assert isinstance(result, SetTokens)
    return result, tokens[end:]


def select_combined(tail: list[Token], like: Token) -> list[Token]:
    """The tokens of `SELECT * FROM combined`, followed by clauses; `like` gives them a location."""
    words = [(TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM")]
    made = [Token(kind, text, like.line, like.col, like.start, like.start) for kind, text in words]
    return [*made, _identifier(COMBINED, like), *tail]


def _combined(
    operands: list[SetTokens | list[Token]], operators: list[tuple[SetOperator, bool]], *, intersects: bool
) -> tuple[list[SetTokens | list[Token]], list[tuple[SetOperator, bool]]]:
    """Combine the operands of INTERSECT, or of all operators, from left to right."""
    combined, remaining = [operands[0]], []
    for operator, operand in zip(operators, operands[1:], strict=True):
        if intersects and operator[0] is not SetOperator.INTERSECT:
            combined.append(operand)
            remaining.append(operator)
        else:
            combined.append(SetTokens(*operator, combined.pop(), operand))
    return combined, remaining


def _operator_marks(tokens: list[Token]) -> list[int]:
    """The indexes of the set operators outside parentheses; `* EXCEPT (column)` is none."""
    marks = []
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth == 0 and token.token_type in _OPERATORS:
            after = i + 1 + (_kind(tokens, i + 1) in (TokenType.ALL, TokenType.DISTINCT))
            if _kind(tokens, after) in _STARTS or _opens_block(tokens, after):
                marks.append(i)
    return marks


def _end_of_operands(source: Source, tokens: list[Token], last: int) -> int:
    """The index of the first clause after the last operand that concerns the whole set operation."""
    depth = 0
    windows = set(window_words(source, tokens))
    for i in range(last + 1, len(tokens)):
        kind = tokens[i].token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        if depth == 0 and (kind in _AFTER_OPERANDS or i in windows):
            return i
    return len(tokens)


def without_parentheses(tokens: list[Token]) -> list[Token]:
    """The tokens without parentheses around all of them."""
    while tokens and tokens[0].token_type is TokenType.L_PAREN and _close(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _opens_block(tokens: list[Token], i: int) -> bool:
    """Whether a parenthesis at an index contains a query, and not an expression."""
    inner = _after_parentheses(tokens, i)
    if inner == i or _kind(tokens, inner) not in _STARTS:
        return False
    # Of several parentheses, an outer one contains a query if a set operator follows the one within it.
    return all(_kind(tokens, _close(tokens, each) + 1) in _OPERATORS for each in range(i + 1, inner))


def _after_parentheses(tokens: list[Token], i: int) -> int:
    """The index of the first token from an index on that is not an opening parenthesis."""
    while _kind(tokens, i) is TokenType.L_PAREN:
        i += 1
    return i


def _close(tokens: list[Token], i: int) -> int:
    """The index of the token that closes the parenthesis at an index; the number of tokens if none does."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].token_type in OPEN) - (tokens[j].token_type in CLOSE)
        if depth == 0:
            return j
    return len(tokens)


def closing_index(source: Source, tokens: list[Token], i: int) -> int:
    """The index of the token that closes the parenthesis at an index."""
    close = _close(tokens, i)
    if close == len(tokens):
        raise SqlError("the parenthesis is not closed", location=source.token(tokens[i]))
    return close


def _kind(tokens: list[Token], i: int) -> TokenType | None:
    return tokens[i].token_type if 0 <= i < len(tokens) else None


def _expect_name(source: Source, tokens: list[Token], i: int) -> tuple[Token, int]:
    if i < len(tokens) and tokens[i].text.upper() == "RECURSIVE" and _kind(tokens, i + 1) is not TokenType.ALIAS:
        raise Unsupported("WITH RECURSIVE is not supported", location=source.token(tokens[i]))
    if i >= len(tokens) or tokens[i].token_type in OPEN | CLOSE:
        raise SqlError(
            "WITH must be followed by a name", hint="write WITH name AS (SELECT …)", location=source.token(tokens[0])
        )
    return tokens[i], i + 1


def _identifier(name: str, at: Token, last: Token | None = None) -> Token:
    """A name that stands for the tokens from one to another."""
    return Token(TokenType.IDENTIFIER, name, at.line, at.col, at.start, at.start if last is None else last.end)
