"""Dates and times parsed by a pattern: to_date and to_timestamp with a format, as in Spark.

A pattern becomes a regular expression with a group for each field. Absent fields default to 1970-01-01 00:00:00.
"""

from __future__ import annotations

import re

from tureen.language.functions.signatures import UnsupportedCall, escaped

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
# A letter of a pattern -> its field, and the regular expression of its values.
_LETTERS = {
    "yyyy": ("y", "[0-9]{4}"), "yy": ("yy", "[0-9]{2}"),
    "MM": ("mo", "[0-9]{2}"), "M": ("mo", "[0-9]{1,19}"),
    "MMM": ("mt", "|".join(month[:3] for month in _MONTHS)), "MMMM": ("mt", "|".join(_MONTHS)),
    "dd": ("d", "[0-9]{2}"), "d": ("d", "[0-9]{1,19}"),
    "HH": ("h", "[0-9]{2}"), "H": ("h", "[0-9]{1,19}"), "hh": ("hh", "[0-9]{2}"), "h": ("hh", "[0-9]{1,19}"),
    "mm": ("mi", "[0-9]{2}"), "m": ("mi", "[0-9]{1,19}"), "ss": ("s", "[0-9]{2}"), "s": ("s", "[0-9]{1,19}"),
    "a": ("ap", "AM|PM"), "XXX": ("z", "Z|[+-][0-9]{2}:[0-9]{2}"),
    **{"S" * count: ("f", f"[0-9]{{1,{count}}}") for count in range(1, 10)},
}  # fmt: skip
_PART = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z'\[\]{}#]")
_DAYS = frozenset({"y", "yy", "mo", "mt", "d"})
_VARIABLE = frozenset({"M", "d", "H", "h", "m", "s"} | {"S" * count for count in range(1, 10)})


def parse_sql(pattern: str, *, dated: bool) -> str:
    """A template that converts the string `{0}` to a DATE or a TIMESTAMP, and raises if it does not match."""
    expression, fields = _read(pattern)
    names = ", ".join(f"'{name}'" for name in fields)
    parts = f"regexp_extract(\0, '^(?i:{expression})$', [{names}])"
    bad = "error('the text is not of the pattern')"
    timed = bool(set(fields) - _DAYS)
    result = _moment(fields) if timed or not dated else _date(fields)
    if dated and timed:
        result = f"CAST({result} AS DATE)"
    checked = f"CASE WHEN regexp_matches(\0, '^(?i:{expression})$') THEN {result} ELSE {bad} END"
    sql = f"CASE WHEN \0 IS NULL THEN NULL ELSE list_transform([{parts}], lambda _p: {checked})[1] END"
    return escaped(sql).replace("\0", "{0}")


def _read(pattern: str) -> tuple[str, list[str]]:
    """The regular expression of a pattern, and its fields in their order."""
    out, at, fields, previous = "", 0, [], ""
    while at < len(pattern):
        match = _PART.match(pattern, at)
        piece = match.group() if match else pattern[at]
        if match is None or "\0" in piece:
            raise UnsupportedCall(f"'{piece}' in a pattern is not supported", "quote literal text with single quotes")
        if match.group(1) is None:
            text = piece if match.group(2) is None else match.group(2).replace("''", "'") or "'"
            out, previous = out + _literal(text), ""
        else:
            name, regex = _LETTERS.get(piece, ("", ""))
            if not name or name in fields:
                message = f"duplicate '{piece}' in a pattern" if name else f"'{piece}' in a pattern is not supported"
                raise UnsupportedCall(message, f"letters are {', '.join(_LETTERS)}")
            if previous and (previous in _VARIABLE or piece in _VARIABLE) and piece[0] != "a" and previous != "a":
                raise UnsupportedCall(
                    f"'{previous}{piece}' in a pattern is ambiguous", "separate them by a literal character"
                )
            out, previous = f"{out}({regex})", piece
            fields.append(name)
        at = match.end()
    if not fields:
        raise UnsupportedCall("the pattern contains no letters", f"letters are {', '.join(_LETTERS)}")
    if ("hh" in fields) != ("ap" in fields) or {"h", "hh"} <= set(fields):
        raise UnsupportedCall("the hours of a pattern must be HH, or hh with a", "use HH")
    if {"y", "yy"} <= set(fields) or {"mo", "mt"} <= set(fields):
        raise UnsupportedCall("a pattern must have at most one year and one month", "remove one of them")
    return out, fields


def _literal(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text).replace("'", "''")


def _number(fields: list[str], name: str, otherwise: int) -> str:
    return f"CAST(_p.{name} AS BIGINT)" if name in fields else str(otherwise)


def _date(fields: list[str]) -> str:
    # There is no year 0, which DuckDB would take.
    year = "CAST(replace(_p.y, '0000', '') AS BIGINT)" if "y" in fields else "1970"
    if "yy" in fields:
        year = "2000 + CAST(_p.yy AS BIGINT)"
    month = _number(fields, "mo", 1)
    if "mt" in fields:
        names = ", ".join(f"'{name[:3].lower()}'" for name in _MONTHS)
        month = f"list_position([{names}], left(lower(_p.mt), 3))"
    return f"make_date({year}, {month}, {_number(fields, 'd', 1)})"


def _moment(fields: list[str]) -> str:
    hour = _checked(_number(fields, "h", 0), 23)
    if "hh" in fields:
        number = _checked("CAST(_p.hh AS BIGINT)", 12, least=1)
        hour = f"({number} % 12 + CASE WHEN lower(_p.ap) = 'pm' THEN 12 ELSE 0 END)"
    seconds = f"{hour} * 3600 + {_checked(_number(fields, 'mi', 0), 59)} * 60 + {_checked(_number(fields, 's', 0), 59)}"
    micros = f"({seconds}) * 1000000"
    if "f" in fields:
        micros += " + CAST(left(rpad(_p.f, 6, '0'), 6) AS BIGINT)"
    if "z" in fields:
        digits = "CAST(substring(_p.z, 2, 2) AS BIGINT) * 60 + CAST(right(_p.z, 2) AS BIGINT)"
        offset = f"CASE WHEN upper(_p.z) = 'Z' THEN 0 ELSE ({digits}) * CASE WHEN _p.z[1] = '-' THEN -1 ELSE 1 END END"
        micros += f" - ({offset}) * 60000000"
    return f"CAST({_date(fields)} AS TIMESTAMP) + to_microseconds({micros})"


def _checked(number: str, most: int, least: int = 0) -> str:
    if number.isdigit():
        return number
    return f"(CASE WHEN {number} BETWEEN {least} AND {most} THEN {number} ELSE error('the time is out of range') END)"
