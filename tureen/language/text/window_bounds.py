"""BEGIN and END: the bounds of a query's window."""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, TureenError
from tureen.language.durations import Duration, DurationReader, checked
from tureen.language.moments import DAY_MICROS, read_date, read_timestamp
from tureen.language.source import Source
from tureen.language.text.split import QueryParts, tokenize
from tureen.retention import NEEDED, Retain
from tureen.window import At, Bound, Now, RowsBack, Window

_EXAMPLES = "such as NOW, NOW - 10 MINUTES, NOW - 100 ROWS or TIMESTAMP '2026-01-01 00:00:00'"


def read_window(source: Source, parts: QueryParts) -> Window:
    """The window of a query's BEGIN and END."""
    begin = _bound(source, parts.begin) if parts.begin else None
    end = _bound(source, parts.end) if parts.end else None
    if begin is not None and end is not None and _is_empty(begin, end):
        assert parts.begin
        raise SqlError(
            "the window is always empty: BEGIN is after END",
            hint="exchange them",
            location=source.token(parts.begin[0]),
        )
    if isinstance(begin, RowsBack) and begin.rows == 0:
        assert parts.begin
        raise SqlError("the window must hold at least one row", location=source.token(parts.begin[0]))
    return Window(begin, end)


def parse_duration(text: str) -> int:
    """The microseconds of a duration such as `1 day`, `90 minutes` or `INTERVAL '10' MINUTE`.

    >>> parse_duration("90 minutes")
    5400000000
    """
    source = Source(text)
    reader = DurationReader(source, tokenize(source))
    try:
        total = reader.duration()
        while reader.peek() is not None:
            total += reader.duration()
        checked(source, total, 0)
    except TureenError as error:
        raise SqlError(
            f"'{text}' is not a duration", detail=error.message, hint="such as '1 day' or '90 minutes'"
        ) from None
    if total.months:
        raise SqlError(f"'{text}' has no fixed length", hint="write it in days, such as '30 days' or '365 days'")
    if total.micros <= 0:
        raise SqlError(f"a duration must be longer than zero, got '{text}'", hint="such as '1 day' or '90 minutes'")
    return total.micros


def parse_retention(text: str) -> Retain:
    """How much of a stream is kept: the microseconds of a duration, or what is needed.

    >>> parse_retention("1 day"), parse_retention("NEEDED")
    (86400000000, 'needed')
    """
    return NEEDED if text.strip().lower() == NEEDED else parse_duration(text)


def read_rows(reader: DurationReader, least: int) -> int:
    """Read a number of rows."""
    token = reader.peek()
    number = reader.number()
    if number is None or not number.isdigit() or int(number) < least:
        raise SqlError(
            f"the number of rows must be an integer of at least {least}",
            location=reader.source.token(token) if token else reader.source.location(len(reader.source.text)),
        )
    return int(number)


def _bound(source: Source, tokens: list[Token]) -> Bound:
    while (
        len(tokens) > 1
        and tokens[0].token_type is TokenType.L_PAREN
        and tokens[-1].token_type is TokenType.R_PAREN
        and _closes_at_end(tokens)
    ):
        tokens = tokens[1:-1]
    if not tokens:
        raise SqlError("the parentheses are empty", hint=_EXAMPLES)
    reader = DurationReader(source, tokens)
    bound = _now(reader) if reader.word() in ("NOW", "CURRENT_TIMESTAMP") else read_constant(reader)
    rest = reader.peek()
    if rest is not None:
        raise SqlError(
            f"'{rest.text}' is not expected here", hint="BEGIN … END … must come last", location=source.token(rest)
        )
    return bound


def _closes_at_end(tokens: list[Token]) -> bool:
    depth = 0
    for token in tokens[:-1]:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0:
            return False
    return True


def _now(reader: DurationReader) -> Bound:
    reader.take()
    if reader.word() == "(" and reader.word(1) == ")":
        reader.take()
        reader.take()
    total = Duration()
    while (sign := reader.word()) in ("-", "+"):
        token = reader.take()
        if reader.word(1) in ("ROWS", "ROW"):
            return _rows_back(reader, sign, total, token)
        step = reader.duration()
        total += -step if sign == "-" else step
        checked(reader.source, total, token.start)
    return Now(total.micros, total.months)


def _rows_back(reader: DurationReader, sign: str, before: Duration, token: Token) -> Bound:
    rows = read_rows(reader, least=0)
    reader.take()
    if sign == "+":
        raise SqlError(
            "rows are counted back from NOW", hint="write NOW - 100 ROWS", location=reader.source.token(token)
        )
    if before != Duration():
        raise SqlError(
            "rows are counted back from NOW itself", hint="write NOW - 100 ROWS", location=reader.source.token(token)
        )
    return RowsBack(rows)


def read_constant(reader: DurationReader) -> At:
    """Read an instant."""
    source, first = reader.source, reader.take()
    kind = first.text.upper() if first.token_type is not TokenType.STRING else "TIMESTAMP"
    token = first
    if first.token_type is not TokenType.STRING:
        following = reader.peek()
        if kind not in ("TIMESTAMP", "DATE", "TIMESTAMP_LTZ") or following is None:
            raise SqlError(f"'{first.text}' is not a time", hint=_EXAMPLES, location=source.token(first))
        token = reader.take()
    if token.token_type is not TokenType.STRING:
        raise SqlError(f"'{token.text}' is not a time", hint=_EXAMPLES, location=source.token(token))
    text = token.text
    micros = read_timestamp(text)
    if kind == "DATE":
        days = read_date(text)
        micros = None if days is None else days * DAY_MICROS
    if micros is None:
        raise SqlError(
            f"'{text}' is not a {'DATE' if kind == 'DATE' else 'TIMESTAMP'}",
            hint="such as '2026-01-01 00:00:00' or '2026-01-01T00:00:00Z', from year 1 to 9999",
            location=source.token(token),
        )
    return At(micros)


def _is_empty(begin: Bound, end: Bound) -> bool:
    """Whether BEGIN is after END at every NOW."""
    if isinstance(begin, At) and isinstance(end, At):
        return begin.micros > end.micros
    if isinstance(begin, RowsBack) and isinstance(end, RowsBack):
        return begin.rows <= end.rows
    if isinstance(begin, Now) and isinstance(end, Now):
        months, micros = begin.months - end.months, begin.micros - end.micros
        # A month has 28 to 31 days: only what is empty for any of them is an error.
        return micros + months * (28 if months > 0 else 31) * DAY_MICROS > 0
    return False
