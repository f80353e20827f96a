"""Cut a query's tokens into the SELECT that sqlglot reads and the window that only we know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.literals import read_string
from tureen.language.source import Source
from tureen.language.text.depth import MAX_DEPTH
from tureen.language.text.in_lists import tokenize_with_lists

SHORT = 1024
"""The tokens of texts of no more characters are kept for a while."""

OPEN = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
CLOSE = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})

# After one of these an operand or a name must come, so BEGIN or END there is a column's name.
_BEFORE_NAME = frozenset(
    {
        TokenType.SELECT,
        TokenType.DISTINCT,
        TokenType.COMMA,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.CASE,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.ORDER_BY,
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.DOT,
        TokenType.ALIAS,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.NULLSAFE_EQ,
        TokenType.PLUS,
        TokenType.DASH,
        TokenType.STAR,
        TokenType.SLASH,
        TokenType.MOD,
        TokenType.DPIPE,
        TokenType.BETWEEN,
        TokenType.LIKE,
        TokenType.IN,
    }
)
_CLAUSES = frozenset(
    {
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
    }
)
_AFTER_WHERE = (_CLAUSES - {TokenType.WHERE}) | {TokenType.OFFSET, TokenType.SEMICOLON}
_ENDS = {
    TokenType.SELECT: frozenset({TokenType.FROM, TokenType.SEMICOLON}),
    TokenType.WHERE: _AFTER_WHERE,
    TokenType.HAVING: _AFTER_WHERE - {TokenType.HAVING},
}
"""The clauses that hold values, and what ends each."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A query's tokens, part by part; a part that is not there is None."""

    select: list[Token]
    brackets: list[list[Token]]
    """The windows in brackets, one for each stream that has one."""
    partial: Token | None
    """The EMIT of EMIT PARTIAL."""
    begin: list[Token] | None
    end: list[Token] | None


def tokenize(source: Source) -> list[Token]:
    """The tokens of a text, or an error that says what could not be read."""
    return list(_kept(source.text)) if len(source.text) <= SHORT else _tokens(source.text)


@lru_cache(maxsize=64)
def _kept(text: str) -> tuple[Token, ...]:
    """Of a query that is registered, first the shape is looked at, and then the query."""
    return tuple(_tokens(text))


def _tokens(text: str) -> list[Token]:
    source = Source(text)
    try:
        text.encode()
        tokens = tokenize_with_lists(text, Spark().tokenize)
    except UnicodeEncodeError as error:
        raise SqlError("the text holds half of a surrogate pair", place=source.place(error.start)) from None
    except SqlglotError:
        raise SqlError(
            "the text cannot be read",
            hint="look for a string, a comment or a backtick that is not closed",
            place=source.place(len(source.text)),
        ) from None
    return _with_strings(source, tokens)


def _with_strings(source: Source, tokens: list[Token]) -> list[Token]:
    """The tokens with every string as Spark reads it; strings side by side are one.

    Where no blank is between them, as in 'it''s', the doubled quote stands for itself.
    """
    found: list[Token] = []
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            raw = source.text[token.start : token.end + 1]
            text = read_string(source, raw, token.start)
            before = found[-1] if found else None
            start = token.start
            if before is not None and before.token_type is TokenType.STRING:
                found.pop()
                doubled = raw[0] if before.end + 1 == start and raw[0] == source.text[start - 1] else ""
                text, start = before.text + doubled + text, before.start
            token = Token(TokenType.STRING, text, token.line, token.col, start, token.end, token.comments)
        found.append(token)
    return found


def split(source: Source, tokens: list[Token]) -> Parts:
    """Find the windows of a query: in brackets after its streams, and BEGIN … END at its top level."""
    tokens = _without_semicolon(source, tokens)
    _check_start(source, tokens)
    _check_parameters(source, tokens)
    brackets, kept = _cut_brackets(source, tokens)
    partial, kept = _cut_partial(source, kept)
    marks = _window_words(source, kept)
    if not marks:
        return Parts(kept, brackets, partial, None, None)
    begin, end = _bounds(source, kept, marks)
    return Parts(kept[: marks[0]], brackets, partial, begin, end)


@dataclass(frozen=True, slots=True)
class Clauses:
    """Where some clauses of a query begin in its text, and where they end; past the end where there are none."""

    items: tuple[int, int]
    """The select list."""
    where: tuple[int, int]
    having: tuple[int, int]


def clauses_of(source: Source, tokens: list[Token]) -> Clauses:
    """Find the clauses of a query that hold values, at its top level."""
    end = len(source.text)
    marks = set(_window_words(source, tokens))
    depth, open_at = 0, None
    found: dict[TokenType, tuple[int, int]] = {}
    for i, token in enumerate(tokens):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth:
            continue
        if open_at is not None and (
            token.token_type in _ENDS[open_at.token_type] or i in marks or _begins_clause(tokens, i)
        ):
            found.setdefault(open_at.token_type, (int(open_at.start), int(token.start)))
            open_at = None
        if open_at is None and token.token_type in _ENDS:
            open_at = token
    if open_at is not None:
        found.setdefault(open_at.token_type, (int(open_at.start), end))
    kinds = TokenType.SELECT, TokenType.WHERE, TokenType.HAVING
    return Clauses(*(found.get(kind, (end, end)) for kind in kinds))


def where_of(source: Source, tokens: list[Token]) -> tuple[int, int]:
    """Where a query's WHERE clause begins in the text, and where it ends; past the end where there is none."""
    return clauses_of(source, tokens).where


def _without_semicolon(source: Source, tokens: list[Token]) -> list[Token]:
    first = next((i for i, one in enumerate(tokens) if one.token_type is TokenType.SEMICOLON), len(tokens))
    for token in tokens[first:]:
        if token.token_type is not TokenType.SEMICOLON:
            raise SqlError("there is more than one statement", hint="register one query", place=source.token(token))
    return tokens[:first]


def _check_start(source: Source, tokens: list[Token]) -> None:
    if not tokens:
        raise SqlError("there is no query in the text", hint="write SELECT … FROM a stream")
    first = tokens[0]
    if first.token_type is TokenType.WITH:
        raise Unsupported(
            "WITH is not supported yet",
            hint="write one SELECT over one stream",
            place=source.token(first),
        )
    if first.token_type is TokenType.L_PAREN:
        raise Unsupported("a query in parentheses is not supported", hint="leave them out", place=source.token(first))
    if first.token_type is not TokenType.SELECT:
        raise SqlError(f"a standing query starts with SELECT, not with '{first.text}'", place=source.token(first))


def _check_parameters(source: Source, tokens: list[Token]) -> None:
    for token in tokens:
        if token.token_type in (TokenType.PLACEHOLDER, TokenType.COLON, TokenType.PARAMETER):
            raise Unsupported(
                "parameters are not supported yet", hint="write the value itself", place=source.token(token)
            )


def _cut_brackets(source: Source, tokens: list[Token]) -> tuple[list[list[Token]], list[Token]]:
    """The `[…]` after the streams, with their brackets, and the tokens without them."""
    found: list[list[Token]] = []
    kept: list[Token] = []
    depth, in_from, i = 0, False, 0
    while i < len(tokens):
        kind = tokens[i].token_type
        if depth == 0 and kind is TokenType.FROM:
            in_from = True
        elif depth == 0 and kind in _CLAUSES:
            in_from = False
        if depth == 0 and in_from and kind is TokenType.L_BRACKET:
            close = next((j for j in range(i, len(tokens)) if tokens[j].token_type is TokenType.R_BRACKET), None)
            if close is None:
                raise SqlError("the bracket is not closed", place=source.token(tokens[i]))
            found.append(tokens[i : close + 1])
            i = close + 1
            continue
        depth += (kind in OPEN) - (kind in CLOSE)
        kept.append(tokens[i])
        i += 1
    return found, kept


def _cut_partial(source: Source, tokens: list[Token]) -> tuple[Token | None, list[Token]]:
    """The EMIT PARTIAL after the clauses or after the window, and the tokens without it."""
    for i, token in enumerate(tokens):
        if _is_partial(tokens, i):
            after = tokens[i + 2 : i + 3]
            if after and after[0].token_type not in (TokenType.BEGIN, TokenType.END):
                raise SqlError(
                    "EMIT PARTIAL comes after the clauses of SELECT",
                    hint="put it at the end of the query",
                    place=source.token(token),
                )
            return token, tokens[:i] + tokens[i + 2 :]
    return None, tokens


def _is_partial(tokens: list[Token], i: int) -> bool:
    """Whether EMIT PARTIAL begins there."""
    if tokens[i].text.upper() != "EMIT" or i + 1 == len(tokens):
        return False
    return tokens[i + 1].text.upper() == "PARTIAL" and not _is_name(tokens, i)


def _begins_clause(tokens: list[Token], i: int) -> bool:
    """Whether EMIT PARTIAL begins there, or a WINDOW clause: `WINDOW name AS (`."""
    if tokens[i].token_type is not TokenType.WINDOW:
        return _is_partial(tokens, i)
    return [token.token_type for token in tokens[i + 2 : i + 4]] == [TokenType.ALIAS, TokenType.L_PAREN]


def _is_name(tokens: list[Token], i: int) -> bool:
    """Whether the token there is where a name must be."""
    return i > 0 and tokens[i - 1].token_type in _BEFORE_NAME


def _window_words(source: Source, tokens: list[Token]) -> list[int]:
    """The places of the BEGIN and END that are the window's, at the top level and after FROM."""
    marks: list[int] = []
    depth = cases = 0
    seen_from = False
    for i, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        if depth + cases > MAX_DEPTH:
            raise SqlError(
                "the query is nested too deeply",
                hint=f"at most {MAX_DEPTH} levels of parentheses and CASE",
                place=source.token(token),
            )
        named = _is_name(tokens, i)
        if kind is TokenType.CASE and not named | (cases > 0):
            cases += 1
        elif kind is TokenType.CASE:
            cases += tokens[i - 1].token_type is not TokenType.DOT
        elif kind is TokenType.END and cases and not named:
            cases -= 1
        elif depth == 0 and cases == 0 and kind is TokenType.FROM:
            seen_from = True
        elif kind in (TokenType.BEGIN, TokenType.END) and depth == 0 and cases == 0 and seen_from and not named:
            marks.append(i)
    return marks


def _bounds(source: Source, tokens: list[Token], marks: list[int]) -> tuple[list[Token] | None, list[Token] | None]:
    """The tokens after BEGIN and after END."""
    found: dict[TokenType, list[Token]] = {}
    for mark, stop in zip(marks, [*marks[1:], len(tokens)], strict=True):
        word = tokens[mark]
        if word.token_type in found:
            raise SqlError(f"{word.text.upper()} is there twice", place=source.token(word))
        if word.token_type is TokenType.BEGIN and found:
            raise SqlError("BEGIN comes after END", hint="write BEGIN t END t", place=source.token(word))
        found[word.token_type] = tokens[mark + 1 : stop]
        if mark + 1 == stop:
            raise SqlError(
                f"{word.text.upper()} needs a time",
                hint="such as NOW, NOW - 10 MINUTES or TIMESTAMP '2026-01-01 00:00:00'",
                place=source.token(word),
            )
    return found.get(TokenType.BEGIN), found.get(TokenType.END)
