"""Steps as table functions in FROM, as other engines write them, become steps in brackets.

```
TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTE))            bid [TUMBLE INTERVAL '10' MINUTE ON ts]
HOP(bid, ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)                   bid [HOP … SLIDE … ON ts]
TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL …)
```
"""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.source import Source
from tureen.language.text.blocks import closing_index
from tureen.language.text.split import CLAUSES, CLOSE, OPEN

_PARAMETERS = {"TUMBLE": ("DATA", "TIMECOL", "SIZE"), "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE")}
_FORMS = {
    "TUMBLE": "TUMBLE(TABLE stream, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
    "HOP": "HOP(TABLE stream, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
}
_OTHERS = {
    "CUMULATE": "write stream [TUMBLE 1 DAY] EMIT PARTIAL: the step that is not over grows",
    "SESSION": "write GROUP BY key, session_window(ts, '5 minutes')",
}
"""Functions of other engines that are not supported in FROM, with what to write instead."""

_BEFORE_RELATION = frozenset({TokenType.FROM, TokenType.JOIN})


def steps_in_brackets(source: Source, tokens: list[Token]) -> list[Token]:
    """The tokens of a SELECT, with steps in brackets for each table function in FROM."""
    rest: list[Token] = []
    depth, in_from, i = 0, False, 0
    while i < len(tokens):
        kind = tokens[i].token_type
        if depth == 0 and (kind is TokenType.FROM or kind in CLAUSES):
            in_from = kind is TokenType.FROM
        before = rest[-1].token_type if rest else None
        starts = before in _BEFORE_RELATION or (before is TokenType.COMMA and depth == 0)
        if in_from and starts and (name := _function_at(tokens, i)) is not None:
            close = closing_index(source, tokens, i + 1)
            rest += _in_brackets(source, tokens[name], tokens[name + 2 : closing_index(source, tokens, name + 1)])
            i = close + 1
            continue
        depth += (kind in OPEN) - (kind in CLOSE)
        rest.append(tokens[i])
        i += 1
    return rest


def _function_at(tokens: list[Token], i: int) -> int | None:
    """The index of the name of the table function that starts at an index, with or without TABLE( before it."""
    for name in (i, i + 2):
        words = [token.text.upper() for token in tokens[i : name + 2]]
        if words[-1:] == ["("] and words[-2] in {*_PARAMETERS, *_OTHERS} and words[:-2] in ([], ["TABLE", "("]):
            return name
    return None


def _in_brackets(source: Source, function: Token, tokens: list[Token]) -> list[Token]:
    """The stream and its steps in brackets, from the arguments of a function."""
    word = function.text.upper()
    if word in _OTHERS:
        raise Unsupported(f"{word} in FROM is not supported", hint=_OTHERS[word], location=source.token(function))
    arguments = _arguments(word, tokens)
    stream, time = _name(arguments.get("DATA")), _name(arguments.get("TIMECOL"))
    lengths = [arguments.get(name) for name in ("SIZE", "SLIDE") if name in _PARAMETERS[word]]
    if stream is None or time is None or not all(lengths) or len(arguments) != len(_PARAMETERS[word]):
        raise SqlError(
            f"{word} in FROM requires a stream, its time column and the lengths of the steps",
            hint=f"write {_FORMS[word]}",
            location=source.token(function),
        )
    made = [_token(TokenType.L_BRACKET, "[", function), function]
    for number, length in enumerate(lengths):
        made += [_token(TokenType.VAR, "SLIDE", function)] * number
        made += length or []
    return [stream, *made, _token(TokenType.ON, "ON", function), time, _token(TokenType.R_BRACKET, "]", function)]


def _arguments(word: str, tokens: list[Token]) -> dict[str, list[Token]]:
    """The tokens of each argument by the name of its parameter, or by its number if there is no such parameter."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth == 0 and token.token_type is TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    named: dict[str, list[Token]] = {}
    for number, part in enumerate(parts):
        if len(part) > 1 and part[1].token_type is TokenType.FARROW:
            named[part[0].text.upper()] = part[2:]
        else:
            known = _PARAMETERS[word]
            named[known[number] if number < len(known) else str(number)] = part
    return named


def _name(tokens: list[Token] | None) -> Token | None:
    """The name in `name`, `TABLE name` or `DESCRIPTOR(name)`."""
    words = [token.text.upper() for token in tokens or ()]
    if words[:1] == ["TABLE"]:
        words, tokens = words[1:], (tokens or [])[1:]
    if words[:2] == ["DESCRIPTOR", "("] and words[3:] == [")"]:
        words, tokens = words[2:3], (tokens or [])[2:3]
    return tokens[0] if tokens and len(words) == 1 and tokens[0].token_type is not TokenType.STRING else None


def _token(kind: TokenType, text: str, like: Token) -> Token:
    return Token(kind, text, like.line, like.col, like.start, like.end)
