"""Plain conditions: a WHERE clause that consists of `column op constant` joined by AND, read from its tokens.

Only the form counts: a name, an operator or BETWEEN, and constants. A clause with anything else is not plain.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from tureen.language.text.shapes import Shape
from tureen.language.types import integer_range
from tureen.predicate import Key
from tureen.schema import Kind

_OPERATORS = {
    TokenType.EQ: "=",
    TokenType.NEQ: "<>",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}
# Names, and keywords that are often names of columns.
_NAMES = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.DATE,
        TokenType.TIME,
        TokenType.TIMESTAMPTZ,
        TokenType.DATETIME,
        TokenType.TEXT,
        TokenType.INDEX,
        TokenType.LOAD,
        TokenType.SESSION,
        TokenType.COMMENT,
    }
)
_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a constant: the column as written in the text, and its name."""

    written: str
    column: str
    op: str
    kind: Kind
    value: Key

    @property
    def form(self) -> tuple[str, str, Kind]:
        """The comparison without its constant."""
        return self.written, self.op, self.kind


@dataclass(frozen=True, slots=True)
class PlainQuery:
    """A query's text before and after its WHERE clause, and the comparisons of that clause, if there is one."""

    head: str
    tail: str
    comparisons: tuple[Comparison, ...] = ()


def plain_where(text: str, shape: Shape) -> PlainQuery | None:
    """Read a query with a plain WHERE clause or without any; None for all others."""
    start, end = shape.where
    clause = [token for token in shape.tokens if start <= token.start < end]
    if not clause:
        return PlainQuery(text, "")
    reader = _Reader(text, clause[1:])
    comparisons: list[Comparison] = []
    while True:
        read = reader.comparisons()
        if read is None:
            return None
        comparisons += read
        if reader.at_end():
            return PlainQuery(text[: clause[0].end + 1], text[end:], tuple(comparisons))
        if reader.take(TokenType.AND) is None:
            return None


class _Reader:
    """Reads the tokens of a clause."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text, self._tokens, self._index = text, tokens, 0

    def at_end(self) -> bool:
        return self._index == len(self._tokens)

    def take(self, *kinds: TokenType) -> Token | None:
        """Consume the next token if it is of one of these types."""
        if self.at_end() or self._tokens[self._index].token_type not in kinds:
            return None
        self._index += 1
        return self._tokens[self._index - 1]

    def comparisons(self) -> list[Comparison] | None:
        """Read a comparison, or the two that BETWEEN is short for."""
        first = last = self.take(*_NAMES)
        while last is not None and self.take(TokenType.DOT) is not None:
            last = self.take(*_NAMES)
        operator = self.take(*_OPERATORS, TokenType.BETWEEN)
        if first is None or last is None or operator is None:
            return None
        constants = [self._constant()]
        ops = [_OPERATORS.get(operator.token_type, ">=")]
        if operator.token_type is TokenType.BETWEEN:
            if self.take(TokenType.AND) is None:
                return None
            constants.append(self._constant())
            ops.append("<=")
        if None in constants:
            return None
        written = self._text[first.start : last.end + 1]
        return [Comparison(written, last.text, op, *key) for op, key in zip(ops, constants, strict=True) if key]

    def _constant(self) -> tuple[Kind, Key] | None:
        """Read a string, an INT or a decimal literal: its kind and its key. None for anything else."""
        text = self.take(TokenType.STRING)
        if text is not None:
            return Kind.STRING, text.text
        negative = self.take(TokenType.DASH) is not None
        number = self.take(TokenType.NUMBER)
        if number is None:
            return None
        whole, point, rest = number.text.partition(".")
        if not set(whole + rest) <= _DIGITS or not whole:
            return None
        if point:
            # A DECIMAL literal is compared with a DOUBLE column as a DOUBLE. Zero is excluded because of its sign.
            value = float(number.text)
            short = len(whole) + len(rest) <= 38 and value
            return (Kind.DECIMAL, -value if negative else value) if short and rest else None
        small = int(whole) if len(whole) <= 10 else 1 << 40
        least, greatest = integer_range(Kind.INT)
        signed = -small if negative else small
        return (Kind.INT, signed) if least <= signed <= greatest else None
