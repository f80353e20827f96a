"""upper, lower and initcap with Spark's semantics, for DuckDB, which maps each character to one character.

Spark maps some characters to several (ß to SS), supports characters that DuckDB does not support yet, and maps a Greek
capital sigma at the end of a word to its final form. The first are replaced beforehand; for the others the query
fails instead of returning a wrong result. ASCII strings, the usual case, take a fast path.
"""

from __future__ import annotations

_ONE_TO_MANY = (
    "ßŉǰΐΰևẖẗẘẙẚὐὒὔὖ" + "".join(map(chr, range(0x1F80, 0x1FB0))) + "ᾲᾳᾴᾶᾷᾼῂῃῄῆῇῌῒΐῖῗῢΰῤῦῧῲῳῴῶῷῼ" + "ﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ"
)
_NEW_TO_DUCKDB = (
    "\u019b\u0264\u1c89-\u1c8a\ua7cb-\ua7cf\ua7d2-\ua7d5\ua7da-\ua7dc\U00010d50-\U00010d85\U00016ea0-\U00016ed3"
)


def _template(name: str, before: str, unsupported: str) -> str:
    """DuckDB SQL over `{0}`."""
    return (
        f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {name}({{0}}) "
        f"WHEN regexp_matches({{0}}, '[{unsupported}]') THEN error('{name} of a character it does not know') "
        f"ELSE {name}({before}) END"
    )


def _replaced(text: str, characters: str, mapping: dict[str, str]) -> str:
    for character in characters:
        text = f"replace({text}, '{character}', '{mapping[character]}')"
    return text


# Characters whose title case is neither themselves nor their upper case.
_TITLES = "ǄǅǆǇǈǉǊǋǌǱǲǳ\u10d0-\u10ff\u1c90-\u1cbfΣİ"


def _initcap() -> str:
    """The first letter of each word in upper case, the others in lower case; only a blank ends a word."""
    words = "string_split(lower({0}), ' ')"
    capital = "lambda _w: upper(left(_w, 1)) || substring(_w, 2)"
    return (
        f"CASE WHEN strlen({{0}}) <> length({{0}}) "
        f"AND regexp_matches({{0}}, '[{_NEW_TO_DUCKDB}{_TITLES}{_ONE_TO_MANY}]') "
        f"THEN error('initcap of a character it does not know') "
        f"ELSE array_to_string(list_transform({words}, {capital}), ' ') END"
    )


INITCAP = _initcap()
_UPPERCASE = {character: character.upper() for character in _ONE_TO_MANY}
UPPER = _template("upper", _replaced("{0}", _ONE_TO_MANY, _UPPERCASE), _NEW_TO_DUCKDB)
LOWER = _template("lower", _replaced("{0}", "İ", {"İ": "İ".lower()}), _NEW_TO_DUCKDB + "Σ")
