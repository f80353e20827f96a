"""Shapes: a query's text without the constants of its WHERE clause. Queries that differ only there share a shape.

A template's parameters are replaced like constants, so a query has the same shape as a template of which it could be
a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from tureen.language.source import Source
from tureen.language.text.in_lists import LIST, count_items, items_of
from tureen.language.text.split import tokenize, where_of

_LITERALS = frozenset({TokenType.NUMBER, TokenType.STRING})
_TYPED = frozenset({TokenType.DATE, TokenType.TIMESTAMP})
_SIGNED_AFTER = frozenset(
    {
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.AND,
        TokenType.BETWEEN,
        TokenType.COMMA,
        TokenType.L_PAREN,
    }
)
_QUOTES = '`"'


@dataclass(frozen=True, slots=True)
class Shape:
    """A query's text with `?` for the constants of its WHERE clause, and the offsets of that clause."""

    text: str
    tokens: list[Token]
    """The tokens of the whole query."""
    where: tuple[int, int]
    """Start and end offsets of the WHERE clause; the end of the text if there is none."""


def shape_of(text: str) -> Shape:
    """The shape of a query, or of a template.

    >>> shape_of("SELECT * FROM s WHERE A = 'x' AND b > -2.5").text
    'select * from s where a = ? and b > ?'
    >>> shape_of("select * from s where a = :name and b > :p").text
    'select * from s where a = ? and b > ?'
    """
    source = Source(text)
    tokens = tokenize(source)
    words: list[str] = []
    start, end = where_of(source, tokens)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        inside = start <= token.start < end
        size = _literal(tokens, index) if inside else 0
        if not size and inside and token.token_type is TokenType.COLON and index + 1 < len(tokens):
            size = 2  # a parameter
        if token.token_type is LIST:
            items = ["?"] * count_items(token.text) if inside else map(_spaced, items_of(token.text))
            words.append(" , ".join(items))
        else:
            words.append("?" if size else _word(source, token))
        index += max(size, 1)
    return Shape(" ".join(words), tokens, (start, end))


def _literal(tokens: list[Token], index: int) -> int:
    """The number of tokens of the constant that starts at an index; 0 if none does."""
    kind = tokens[index].token_type
    if kind in _LITERALS:
        # A number with a suffix, such as 5L, is several tokens with the same offset.
        return sum(token.start == tokens[index].start for token in tokens[index : index + 3])
    after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    if kind in _TYPED and after is TokenType.STRING:
        return 2
    signed = kind is TokenType.DASH and after is TokenType.NUMBER and tokens[index - 1].token_type in _SIGNED_AFTER
    return 2 if signed else 0


def _spaced(item: str) -> str:
    """A constant of a list, with a blank between sign and number as between any two tokens."""
    return f"- {item[1:]}" if item[0] == "-" else item


def _word(source: Source, token: Token) -> str:
    raw = source.text[token.start : token.end + 1]
    return raw if token.token_type is TokenType.STRING or raw[:1] in _QUOTES else raw.lower()
