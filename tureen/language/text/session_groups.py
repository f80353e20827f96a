"""Sessions: `GROUP BY key, session_window(ts, '5 minutes')` becomes groups of a query in parentheses.

A session consists of the rows of a key each of which follows another within the gap. Its rows get the bounds of the
session as columns, by window functions, and are grouped by these:

```
SELECT key, window_start, count(*) FROM (
    SELECT *, max(ts) OVER (PARTITION BY key, window_start) + gap AS window_end FROM (
        SELECT *, max(begins) OVER (PARTITION BY key ORDER BY ts) AS window_start FROM (
            SELECT *, CASE WHEN lag(ts) OVER (PARTITION BY key ORDER BY ts) + gap >= ts THEN NULL ELSE ts END AS begins
            FROM stream WHERE …)))
WHERE window_end < NOW
GROUP BY key, window_start, window_end
```
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.durations import Duration, DurationReader, interval_text
from tureen.language.source import Source
from tureen.language.text.blocks import closing_index
from tureen.language.text.split import CLAUSES, CLOSE, OPEN, window_words
from tureen.query import STEP_END, STEP_START

_FUNCTIONS = ("SESSION_WINDOW", "SESSION")
_BEGINS = "\1begins"
"""A column that no user can write: the time of the first row of a session, NULL in its other rows."""

_FORM = "write session_window(ts, '5 minutes')"
_BOUNDS = {"START": STEP_START, "END": STEP_END}
_ENDS = CLAUSES | {TokenType.OFFSET, TokenType.WINDOW}


@dataclass(frozen=True)
class _Session:
    """The session of GROUP BY: its function, its arguments, and the other keys."""

    function: Token
    time: list[Token]
    gap: list[Token]
    keys: list[list[Token]]


def with_sessions(source: Source, tokens: list[Token]) -> list[Token]:
    """The tokens of a SELECT, over sessions in parentheses if it is grouped by sessions."""
    clauses = _clauses(source, tokens)
    group = clauses.get(TokenType.GROUP_BY)
    if group is None or TokenType.FROM not in clauses:
        return tokens
    items = _split(tokens[group[0] + 1 : group[1]])
    if not any(_is_session(item) for item in items):
        return tokens
    session = _session(source, items)
    emits_partial, tail = _without_partial(source, tokens[group[1] :])
    start, end = clauses[TokenType.FROM]
    where = clauses.get(TokenType.WHERE)
    name = _name(source, tokens[start + 1 : end], session)
    rows = _rows(session, tokens[start + 1 : end], tokens[where[0] + 1 : where[1]] if where else [], name)
    over = [] if emits_partial else _made(f"WHERE {STEP_END} < NOW", session.function)
    keys = [*session.keys, *([_word(bound, session.function)] for bound in _BOUNDS.values())]
    head, tail = (_with_bounds(source, part) for part in (tokens[:start], tail))
    return [*head, tokens[start], *rows, *over, tokens[group[0]], *_listed(keys, session.function), *tail]


def _clauses(source: Source, tokens: list[Token]) -> dict[TokenType, tuple[int, int]]:
    """The indexes of the first token of each clause, and of the first one after it."""
    windows = set(window_words(source, tokens))
    marks: list[int] = []
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        begins = token.token_type in _ENDS | {TokenType.FROM} or i in windows or _emits(tokens, i) is not None
        if depth == 0 and begins:
            marks.append(i)
    return {tokens[mark].token_type: (mark, end) for mark, end in pairwise([*marks, len(tokens)])}


def _emits(tokens: list[Token], i: int) -> str | None:
    """The word after EMIT, if that is at an index."""
    words = [token.text.upper() for token in tokens[i : i + 2]]
    return words[1] if words in (["EMIT", "PARTIAL"], ["EMIT", "FINAL"]) else None


def _without_partial(source: Source, tokens: list[Token]) -> tuple[bool, list[Token]]:
    """Whether EMIT PARTIAL is among tokens, and the tokens without it."""
    for i, token in enumerate(tokens):
        if (word := _emits(tokens, i)) == "FINAL":
            raise Unsupported(
                "EMIT FINAL is not supported with sessions",
                hint="leave it out: a session is returned when it is over",
                location=source.token(token),
            )
        if word == "PARTIAL":
            return True, [*tokens[:i], *tokens[i + 2 :]]
    return False, tokens


def _split(tokens: list[Token]) -> list[list[Token]]:
    """The tokens between commas outside of parentheses."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth == 0 and token.token_type is TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return items


def _is_session(item: list[Token]) -> bool:
    return [token.text.upper() for token in item[:2]] in [[name, "("] for name in _FUNCTIONS]


def _session(source: Source, items: list[list[Token]]) -> _Session:
    """The session among the items of GROUP BY."""
    calls = [item for item in items if _is_session(item)]
    function = calls[-1][0]
    if len(calls) > 1:
        raise SqlError("only one session is allowed", hint="keep one of them", location=source.token(function))
    arguments = _split(calls[0][2 : closing_index(source, calls[0], 1)])
    if len(arguments) != 2 or not all(arguments):
        raise SqlError(
            f"{function.text} requires a time and the longest gap", hint=_FORM, location=source.token(function)
        )
    keys = [item for item in items if not _is_session(item) and not _names_bound(item)]
    for key in keys:
        if len(key) == 1 and key[0].token_type is TokenType.NUMBER:
            raise Unsupported(
                "positions are not supported beside a session",
                hint="write the column or the expression",
                location=source.token(key[0]),
            )
    return _Session(function, arguments[0], _gap(source, arguments[1]), keys)


def _names_bound(item: list[Token]) -> bool:
    return len(item) == 1 and item[0].text.lower() in (*_BOUNDS.values(), "session_window")


def _gap(source: Source, tokens: list[Token]) -> list[Token]:
    """The gap as the tokens of an interval."""
    first = tokens[0]
    gap: Duration | None
    if len(tokens) == 1 and first.token_type is TokenType.STRING:
        gap = interval_text(source, first.text, None, None, first.start)
        tokens = [_word("INTERVAL", first, TokenType.INTERVAL), first]
    else:
        reader = DurationReader(source, tokens)
        gap = reader.duration() if reader.word() == "INTERVAL" else None
        if gap is None or reader.peek() is not None:
            raise SqlError("the gap of a session must be an interval", hint=_FORM, location=source.token(first))
    if gap.months or gap.micros <= 0:
        raise SqlError(
            "the gap of a session must be longer than zero, and not in months",
            hint=_FORM,
            location=source.token(first),
        )
    return tokens


def _name(source: Source, relation: list[Token], session: _Session) -> Token:
    """The name of the relation of FROM in the query around: its alias, or its own name."""
    depth = 0
    words: list[Token] = []
    for token in relation:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth == 0 and token.token_type not in CLOSE:
            words.append(token)
    if any(token.token_type in (TokenType.JOIN, TokenType.COMMA) for token in words):
        raise Unsupported(
            "sessions over a join are not supported",
            hint="write the join as a query in parentheses in FROM, or as a derived stream",
            location=source.token(session.function),
        )
    return words[-1] if words else _word("rows", session.function)


def _rows(session: _Session, relation: list[Token], where: list[Token], name: Token) -> list[Token]:
    """The rows of the relation with the bounds of their session, as a query in parentheses."""
    like, time = session.function, session.time
    keys = _listed(session.keys, like)
    partition = [*_made("PARTITION BY", like), *keys] if keys else []
    ordered = [*_made("OVER (", like), *partition, *_made("ORDER BY", like), *time, *_made(")", like)]
    begins = _word(_BEGINS, like, TokenType.IDENTIFIER)
    condition = [*_made("WHERE", like), *([*_made("(", like), *where, *_made(") AND", like)] if where else []), *time]
    rows = [
        *_made("SELECT *, CASE WHEN lag(", like),
        *time,
        *_made(")", like),
        *ordered,
        *_made("+", like),
        *session.gap,
        *_made(">=", like),
        *time,
        *_made("THEN NULL ELSE", like),
        *time,
        *_made("END AS", like),
        begins,
        *_made("FROM", like),
        *relation,
        *condition,
        *_made("IS NOT NULL", like),
    ]
    rows = _over(rows, [*_made("max(", like), begins, *_made(")", like), *ordered], STEP_START, name, like)
    of_session = _listed([*session.keys, _made(STEP_START, like)], like)
    whole = [*_made("max(", like), *time, *_made(") OVER (PARTITION BY", like), *of_session, *_made(") +", like)]
    whole += session.gap
    return _aliased(_over(rows, whole, STEP_END, name, like), name, like)


def _over(rows: list[Token], value: list[Token], alias: str, name: Token, like: Token) -> list[Token]:
    """A SELECT of all columns of a query and of one more value."""
    return [*_made("SELECT *,", like), *value, *_made(f"AS {alias} FROM", like), *_aliased(rows, name, like)]


def _aliased(rows: list[Token], name: Token, like: Token) -> list[Token]:
    return [*_made("(", like), *rows, *_made(") AS", like), name]


def _with_bounds(source: Source, tokens: list[Token]) -> list[Token]:
    """Tokens with the names of the bounds for `session_window.start` and `SESSION_END(…)`."""
    made: list[Token] = []
    i = 0
    while i < len(tokens):
        words = [token.text.upper() for token in tokens[i : i + 3]]
        bound = next((_BOUNDS[word] for word in _BOUNDS if words[:2] == [f"SESSION_{word}", "("]), None)
        if words[:2] == ["SESSION_WINDOW", "."] and words[2:] and words[2] in _BOUNDS:
            made.append(_word(_BOUNDS[words[2]], tokens[i]))
            i += 3
        elif bound is not None:
            made.append(_word(bound, tokens[i]))
            i = closing_index(source, tokens, i + 1) + 1
        else:
            made.append(tokens[i])
            i += 1
    return made


def _listed(items: list[list[Token]], like: Token) -> list[Token]:
    """The tokens of items, with commas between them."""
    listed: list[Token] = []
    for item in items:
        listed += [*(_made(",", like) if listed else []), *item]
    return listed


def _made(text: str, like: Token) -> list[Token]:
    """The tokens of a text, in the place of another."""
    return [_word(token.text, like, token.token_type) for token in Spark().tokenize(text)]


def _word(text: str, like: Token, kind: TokenType = TokenType.VAR) -> Token:
    return Token(kind, text, like.line, like.col, like.start, like.end)
