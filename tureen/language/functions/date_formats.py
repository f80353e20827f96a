"""The patterns of date_format: letters that DuckDB writes exactly as Spark does, and marks between them."""

from __future__ import annotations

import re

from tureen.language.functions.signatures import Refused, escaped

_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "d": "%-d", "dd": "%d", "E": "%a",
    "EE": "%a", "EEE": "%a", "EEEE": "%A", "H": "%-H", "HH": "%H", "h": "%-I", "hh": "%I", "m": "%-M", "mm": "%M",
    "s": "%-S", "ss": "%S", "SSS": "%g", "SSSSSS": "%f", "a": "%p", "D": "%-j", "DDD": "%j",
}  # fmt: skip
_PART = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z'\[\]{}#]")


def format_sql(pattern: str | None, moment: str) -> str:
    """The SQL that writes a moment by a pattern."""
    if pattern is None:
        return "NULL"
    out, at = "", 0
    while at < len(pattern):
        found = _PART.match(pattern, at)
        piece = found.group() if found else pattern[at]
        if found is None or "\0" in piece:
            raise Refused(f"'{piece}' in a pattern is not supported", "put texts in single quotes")
        if found.group(1) is not None and piece not in _LETTERS:
            raise Refused(f"'{piece}' in a pattern is not supported", f"letters are {', '.join(_LETTERS)}")
        out += _LETTERS[piece] if found.group(1) is not None else _literal(piece, found.group(2))
        at = found.end()
    text = out.replace("'", "''")
    return f"strftime({moment}, '{escaped(text)}')" if pattern else f"CASE WHEN {moment} IS NULL THEN NULL ELSE '' END"


def _literal(piece: str, quoted: str | None) -> str:
    text = piece if quoted is None else quoted.replace("''", "'") or "'"
    return text.replace("%", "%%")
