"""Templates: one query text with `:parameters`, which stands for as many queries as there are rows of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, TureenError, Unsupported
from tureen.language.binding.scope import PARAMETERS
from tureen.language.source import Source
from tureen.language.text.split import ClauseSpans, clauses_of, tokenize
from tureen.schema import Schema


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A text cut at its parameters: `pieces[0]`, the first parameter, `pieces[1]`, …, the last piece."""

    pieces: tuple[str, ...]
    names: tuple[str, ...]
    source: Source
    starts: tuple[int, ...]
    """The offset of each piece in the template's text."""
    only_where: bool = True
    """Whether all of them stand in the WHERE clause."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters, each once, in lower case and in order of their first appearance."""
        return tuple(dict.fromkeys(name.lower() for name in self.names))

    def fill(self, values: Mapping[str, str]) -> str:
        """The query that the template is for some values, given by their names and as they are written in SQL.

        >>> read_template("SELECT * FROM s WHERE a = :x AND b > :x").fill({"x": "5"})
        'SELECT * FROM s WHERE a = 5 AND b > 5'
        """
        return "".join(self._filled(values))

    def _filled(self, values: Mapping[str, str]) -> list[str]:
        """Each piece and each value, as they are written."""
        filled = []
        for name, piece in zip(self.names, self.pieces, strict=False):
            value = values[name.lower()]
            # Two minuses side by side would begin a comment.
            filled += [piece, (" " if piece.endswith("-") and value.startswith("-") else "") + value]
        return [*filled, self.pieces[-1]]

    @contextmanager
    def filled(self, values: Mapping[str, str]) -> Iterator[str]:
        """`fill`, for use in a block whose errors have locations in that text: they get those in the template's."""
        filled = self._filled(values)
        text = "".join(filled)
        try:
            yield text
        except TureenError as error:
            if error.location is not None:
                error.location = self.source.location(self._offset(filled, Source(text).offset(error.location)))
            raise

    def _offset(self, filled: Sequence[str], offset: int) -> int:
        """The offset in the template's text of one in the filled text; of a value, that of its parameter."""
        for number, part in enumerate(filled):
            index = number // 2
            if offset < len(part) or number + 1 == len(filled):
                is_value = number % 2 == 1
                return self.starts[index] + (len(self.pieces[index]) if is_value else offset)
            offset -= len(part)
        raise AssertionError(filled)


@lru_cache(maxsize=256)
def read_template(text: str) -> TemplateText:
    """Find the parameters of a text."""
    source = Source(text)
    tokens = tokenize(source)
    _check_single(source, tokens)
    pieces, names, starts, end = [], [], [0], 0
    clauses = clauses_of(source, tokens)
    only_where = True
    for token, after in pairwise(tokens):
        if token.token_type is TokenType.COLON and after.start == token.end + 1 and after.text.isidentifier():
            if not _takes_values(clauses, token.start):
                raise SqlError(
                    "a parameter cannot stand here",
                    hint="parameters are values in the select list, in WHERE and in HAVING",
                    location=source.token(token),
                )
            only_where &= _within(clauses.where, token.start)
            pieces.append(text[end : token.start])
            names.append(after.text)
            end = after.end + 1
            starts.append(end)
    if not names:
        raise SqlError("the query has no parameter", hint="write :name where a row's value belongs, or use register")
    return TemplateText((*pieces, text[end:]), tuple(names), source, tuple(starts), only_where)


def _check_single(source: Source, tokens: Sequence[Token]) -> None:
    """Raise if a query contains another one."""
    selects = [token for token in tokens if token.token_type is TokenType.SELECT]
    if len(selects) > 1:
        within = selects[0] if tokens[0].token_type is TokenType.WITH else selects[1]
        raise Unsupported(
            "register_many is not supported for queries within queries",
            hint="register each query by itself",
            location=source.token(within),
        )


def _takes_values(clauses: ClauseSpans, offset: int) -> bool:
    return any(_within(clause, offset) for clause in (clauses.items, clauses.where, clauses.having))


def _within(clause: tuple[int, int], offset: int) -> bool:
    return clause[0] < offset < clause[1]


def text_with_columns(sql: str, parameters: Schema) -> str:
    """A template's text with a column of the relation `PARAMETERS` in the place of each parameter.

    >>> text_with_columns("SELECT * FROM s WHERE a = :x", Schema.parse("x INT"))
    'SELECT * FROM s WHERE a = `:`.`x`'
    """
    return read_template(sql).fill(columns_of_values(parameters))


def columns_of_values(parameters: Schema) -> dict[str, str]:
    """For each parameter, the column of the relation `PARAMETERS`."""
    return {column.name.lower(): f"`{PARAMETERS}`.`{column.name}`" for column in parameters.columns}
