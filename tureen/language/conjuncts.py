"""A query's text cut at the ANDs of its WHERE clause: what is around the clause, and its factors one by one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from tureen.language.split import CLOSE, OPEN

_ENDS = frozenset(
    {TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.BEGIN, TokenType.END}
)
# What may stand beside the ANDs that are cut at. With anything else, such as OR or CASE, the clause stays whole.
_PLAIN = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.DOT,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.DATE,
        TokenType.TIMESTAMP,
        TokenType.TRUE,
        TokenType.FALSE,
        TokenType.NULL,
        TokenType.DASH,
        TokenType.PLUS,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.BETWEEN,
        TokenType.AND,
        TokenType.NOT,
        TokenType.IS,
        TokenType.IN,
        TokenType.LIKE,
    }
)


@dataclass(frozen=True, slots=True)
class Cut:
    """Stretches of a text, each from its first character to after its last."""

    factors: tuple[tuple[int, int], ...]
    head: int
    """Where the text before the factors ends, with the word WHERE."""
    tail: int
    """Where the text after them begins."""


def cut_at_ands(text: str, tokens: list[Token]) -> Cut:
    """Cut a query; the clause is one factor where it is not clear that it can be cut, and none where there is none."""
    where = next((place for place, token in enumerate(tokens) if token.token_type is TokenType.WHERE), None)
    if where is None:
        return Cut((), len(text), len(text))
    head = int(tokens[where].end) + 1
    whole = Cut(((head, len(text)),), head, len(text))
    factors: list[tuple[int, int]] = []
    depth, between, first = 0, False, where + 1
    end = len(tokens)
    for place in range(where + 1, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        if depth or kind in CLOSE:
            continue
        if kind in _ENDS:
            end = place
            break
        if kind not in _PLAIN:
            return whole
        if kind is TokenType.AND and not between:
            factors.append((first, place))
            first = place + 1
        between = kind is TokenType.BETWEEN or (between and kind is not TokenType.AND)
    factors.append((first, end))
    if any(start == stop for start, stop in factors):
        return whole
    spans = tuple((int(tokens[start].start), int(tokens[stop - 1].end) + 1) for start, stop in factors)
    return Cut(spans, head, int(tokens[end].start) if end < len(tokens) else len(text))
