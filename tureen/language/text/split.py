"""Split a query's tokens into the SELECT, which sqlglot parses, and the window, which is Tureen's own syntax."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.literals import read_string
from tureen.language.other_engines import EMITS
from tureen.language.source import Source
from tureen.language.text.depth import MAX_DEPTH
from tureen.language.text.in_lists import tokenize_with_lists

SHORT = 1024
"""Tokens of texts up to this many characters are cached."""

OPEN = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
CLOSE = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})

# These must be followed by an operand or a name, so BEGIN or END after them is a column's name.
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
CLAUSES = frozenset(
    {
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
    }
)
_AFTER_WHERE = (CLAUSES - {TokenType.WHERE}) | {TokenType.OFFSET, TokenType.SEMICOLON}
_ENDS = {
    TokenType.SELECT: frozenset({TokenType.FROM, TokenType.SEMICOLON}),
    TokenType.WHERE: _AFTER_WHERE,
    TokenType.HAVING: _AFTER_WHERE - {TokenType.HAVING},
}
"""The clauses that contain values, and the tokens that end each."""
_EMITS = ("FINAL", "PARTIAL")
"""The words that may follow EMIT."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """A window in brackets, and the end of the stream's name or alias before it."""

    tokens: list[Token]
    after: int


@dataclass(frozen=True, slots=True)
class QueryParts:
    """A query's tokens by part; absent parts are None."""

    select: list[Token]
    brackets: list[Bracket]
    """The windows in brackets, one per stream that has one."""
    partial: Token | None
    """The EMIT of EMIT PARTIAL."""
    final: Token | None
    """The EMIT of EMIT FINAL."""
    begin: list[Token] | None
    end: list[Token] | None


def tokenize(source: Source) -> list[Token]:
    """The tokens of a text; raises SqlError if it cannot be tokenized."""
    return list(_cached_tokens(source.text)) if len(source.text) <= SHORT else _tokens(source.text)


@lru_cache(maxsize=64)
def _cached_tokens(text: str) -> tuple[Token, ...]:
    """Cached, because registering a query tokenizes it twice: for its shape, and to parse it."""
    return tuple(_tokens(text))


def _tokens(text: str) -> list[Token]:
    source = Source(text)
    try:
        text.encode()
        tokens = tokenize_with_lists(text, Spark().tokenize)
    except UnicodeEncodeError as error:
        raise SqlError("the text contains an unpaired surrogate", location=source.location(error.start)) from None
    except SqlglotError:
        raise SqlError(
            "the text cannot be read",
            hint="look for a string, a comment or a backtick that is not closed",
            location=source.location(len(source.text)),
        ) from None
    return _with_strings(source, tokens)


def _with_strings(source: Source, tokens: list[Token]) -> list[Token]:
    """The tokens with the value of every string literal as in Spark; adjacent strings are concatenated.

    Without a blank between them, as in 'it''s', the doubled quote is a quote.
    """
    merged: list[Token] = []
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            raw = source.text[token.start : token.end + 1]
            text = read_string(source, raw, token.start)
            before = merged[-1] if merged else None
            start = token.start
            if before is not None and before.token_type is TokenType.STRING:
                merged.pop()
                doubled = raw[0] if before.end + 1 == start and raw[0] == source.text[start - 1] else ""
                text, start = before.text + doubled + text, before.start
            token = Token(TokenType.STRING, text, token.line, token.col, start, token.end, token.comments)
        merged.append(token)
    return merged


def split(source: Source, tokens: list[Token]) -> QueryParts:
    """Find the windows of a SELECT: in brackets after its streams, and BEGIN … END at its top level."""
    _check_start(source, tokens)
    brackets, rest = _cut_brackets(source, tokens)
    emits, rest = _cut_emits(source, rest)
    partial, final = emits.get("PARTIAL"), emits.get("FINAL")
    marks = window_words(source, rest)
    if not marks:
        return QueryParts(rest, brackets, partial, final, None, None)
    begin, end = _bounds(source, rest, marks)
    return QueryParts(rest[: marks[0]], brackets, partial, final, begin, end)


@dataclass(frozen=True, slots=True)
class ClauseSpans:
    """Start and end offsets of a query's clauses; the end of the text for a clause that is absent."""

    items: tuple[int, int]
    """The select list."""
    where: tuple[int, int]
    having: tuple[int, int]


def clauses_of(source: Source, tokens: list[Token]) -> ClauseSpans:
    """Find the top-level clauses of a query that contain values."""
    end = len(source.text)
    marks = set(window_words(source, tokens))
    depth, open_at = 0, None
    spans: dict[TokenType, tuple[int, int]] = {}
    for i, token in enumerate(tokens):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth:
            continue
        if open_at is not None and (
            token.token_type in _ENDS[open_at.token_type] or i in marks or _begins_clause(tokens, i)
        ):
            spans.setdefault(open_at.token_type, (int(open_at.start), int(token.start)))
            open_at = None
        if open_at is None and token.token_type in _ENDS:
            open_at = token
    if open_at is not None:
        spans.setdefault(open_at.token_type, (int(open_at.start), end))
    kinds = TokenType.SELECT, TokenType.WHERE, TokenType.HAVING
    return ClauseSpans(*(spans.get(kind, (end, end)) for kind in kinds))


def where_of(source: Source, tokens: list[Token]) -> tuple[int, int]:
    """Start and end offsets of a query's WHERE clause; the end of the text if there is none."""
    return clauses_of(source, tokens).where


def whole_query(source: Source, tokens: list[Token]) -> list[Token]:
    """The tokens of a text that is one query, without the semicolon after it."""
    tokens = _without_semicolon(source, tokens)
    _check_parameters(source, tokens)
    for token in tokens:
        if token.token_type is not TokenType.STRING and token.text[:1] in ("\0", "\1"):
            raise SqlError("a name must not start with a control character", location=source.token(token))
    return tokens


def _without_semicolon(source: Source, tokens: list[Token]) -> list[Token]:
    first = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON), len(tokens))
    for token in tokens[first:]:
        if token.token_type is not TokenType.SEMICOLON:
            raise SqlError("only one statement is allowed", hint="register one query", location=source.token(token))
    return tokens[:first]


def _check_start(source: Source, tokens: list[Token]) -> None:
    if not tokens:
        raise SqlError("the text contains no query", hint="write SELECT … FROM a stream")
    first = tokens[0]
    if first.token_type is not TokenType.SELECT:
        got = first.text if first.text[:1] >= " " else "("
        raise SqlError(f"a query must start with SELECT, got '{got}'", location=source.token(first))


def _check_parameters(source: Source, tokens: list[Token]) -> None:
    for token in tokens:
        if token.token_type in (TokenType.PLACEHOLDER, TokenType.COLON, TokenType.PARAMETER):
            raise Unsupported(
                "parameters are not supported yet", hint="write the value itself", location=source.token(token)
            )


def _cut_brackets(source: Source, tokens: list[Token]) -> tuple[list[Bracket], list[Token]]:
    """The `[…]` after the streams, and the tokens without them."""
    brackets: list[Bracket] = []
    rest: list[Token] = []
    depth, in_from, i = 0, False, 0
    while i < len(tokens):
        kind = tokens[i].token_type
        if depth == 0 and kind is TokenType.FROM:
            in_from = True
        elif depth == 0 and kind in CLAUSES:
            in_from = False
        if in_from and kind is TokenType.L_BRACKET and rest:
            close = next((j for j in range(i, len(tokens)) if tokens[j].token_type is TokenType.R_BRACKET), None)
            if close is None:
                raise SqlError("the bracket is not closed", location=source.token(tokens[i]))
            brackets.append(Bracket(tokens[i : close + 1], int(rest[-1].end)))
            i = close + 1
            continue
        depth += (kind in OPEN) - (kind in CLOSE)
        rest.append(tokens[i])
        i += 1
    return brackets, rest


def _cut_emits(source: Source, tokens: list[Token]) -> tuple[dict[str, Token], list[Token]]:
    """The EMIT PARTIAL and EMIT FINAL after the clauses or after the window, and the tokens without them."""
    emits: dict[str, Token] = {}
    rest: list[Token] = []
    i = 0
    while i < len(tokens):
        if not _is_emit(tokens, i):
            rest.append(tokens[i])
            i += 1
            continue
        token, word = tokens[i], tokens[i + 1].text.upper()
        after = tokens[i + 2 : i + 3]
        if word not in _EMITS:
            raise SqlError(
                f"EMIT must be followed by {' or '.join(_EMITS)}, got '{tokens[i + 1].text}'",
                hint=EMITS.get(word)
                or "EMIT FINAL returns groups that cannot change, EMIT PARTIAL steps that are not whole",
                location=source.token(tokens[i + 1]),
            )
        if after and after[0].token_type not in (TokenType.BEGIN, TokenType.END) and not _is_emit(tokens, i + 2):
            raise SqlError(
                f"EMIT {word} must come after the clauses of SELECT",
                hint="write it at the end of the query",
                location=source.token(token),
            )
        if word in emits:
            raise SqlError(f"duplicate EMIT {word}", location=source.token(token))
        emits[word] = token
        i += 2
    return emits, rest


def _is_emit(tokens: list[Token], i: int) -> bool:
    """Whether EMIT PARTIAL or EMIT FINAL starts at an index, or at the end of a query EMIT and another word."""
    if tokens[i].text.upper() != "EMIT" or i + 1 >= len(tokens) or _is_name(tokens, i):
        return False
    words = [token.text.upper() for token in tokens[i + 1 : i + 4]]
    if words[0] in (*_EMITS, "CHANGES") or words == ["ON", "WINDOW", "CLOSE"]:
        return True
    ends = i + 2 == len(tokens) or tokens[i + 2].token_type in (TokenType.BEGIN, TokenType.END)
    follows_clause = any(token.token_type is TokenType.FROM for token in tokens[:i])
    is_relation = tokens[i - 1].token_type is TokenType.JOIN
    return ends and follows_clause and not is_relation and tokens[i + 1].token_type is TokenType.VAR


def _begins_clause(tokens: list[Token], i: int) -> bool:
    """Whether EMIT or a WINDOW clause (`WINDOW name AS (`) starts at an index."""
    if tokens[i].token_type is not TokenType.WINDOW:
        return _is_emit(tokens, i)
    return [token.token_type for token in tokens[i + 2 : i + 4]] == [TokenType.ALIAS, TokenType.L_PAREN]


def _is_name(tokens: list[Token], i: int) -> bool:
    """Whether a token must be a name, because of the token before it."""
    return i > 0 and tokens[i - 1].token_type in _BEFORE_NAME


def window_words(source: Source, tokens: list[Token]) -> list[int]:
    """The indexes of the window's BEGIN and END: those at the top level and after FROM."""
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
                location=source.token(token),
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
    bounds: dict[TokenType, list[Token]] = {}
    for mark, stop in zip(marks, [*marks[1:], len(tokens)], strict=True):
        word = tokens[mark]
        if word.token_type in bounds:
            raise SqlError(f"duplicate {word.text.upper()}", location=source.token(word))
        if word.token_type is TokenType.BEGIN and bounds:
            raise SqlError("BEGIN must come before END", hint="write BEGIN t END t", location=source.token(word))
        bounds[word.token_type] = tokens[mark + 1 : stop]
        if mark + 1 == stop:
            raise SqlError(
                f"{word.text.upper()} needs a time",
                hint="such as NOW, NOW - 10 MINUTES or TIMESTAMP '2026-01-01 00:00:00'",
                location=source.token(word),
            )
    return bounds.get(TokenType.BEGIN), bounds.get(TokenType.END)
