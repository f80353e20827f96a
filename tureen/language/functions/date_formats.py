"""The patterns of date_format: letters that DuckDB formats exactly as Spark does, and literals between them."""

from __future__ import annotations

import re

from tureen.language.functions.signatures import UnsupportedCall, escaped

_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "d": "%-d", "dd": "%d", "E": "%a",
    "EE": "%a", "EEE": "%a", "EEEE": "%A", "H": "%-H", "HH": "%H", "h": "%-I", "hh": "%I", "m": "%-M", "mm": "%M",
    "s": "%-S", "ss": "%S", "SSS": "%g", "SSSSSS": "%f", "a": "%p", "D": "%-j", "DDD": "%j",
}  # fmt: skip
_PART = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z'\[\]{}#]")


def format_sql(pattern: str | None, timestamp: str) -> str:
    """The SQL that formats a timestamp by a pattern."""
    if pattern is None:
        return "NULL"
    out, at = "", 0
    while at < len(pattern):
        match = _PART.match(pattern, at)
        piece = match.group() if match else pattern[at]
        if match is None or "\0" in piece:
            raise UnsupportedCall(f"'{piece}' in a pattern is not supported", "quote literal text with single quotes")
        if match.group(1) is not None and piece not in _LETTERS:
            raise UnsupportedCall(f"'{piece}' in a pattern is not supported", f"letters are {', '.join(_LETTERS)}")
        out += _LETTERS[piece] if match.group(1) is not None else _literal(piece, match.group(2))
        at = match.end()
    text = out.replace("'", "''")
    return (
        f"strftime({timestamp}, '{escaped(text)}')"
        if pattern
        else f"CASE WHEN {timestamp} IS NULL THEN NULL ELSE '' END"
    )


def _literal(piece: str, quoted: str | None) -> str:
    text = piece if quoted is None else quoted.replace("''", "'") or "'"
    return text.replace("%", "%%")
