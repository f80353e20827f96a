"""Dates and times read by a pattern: to_date and to_timestamp with a format, as Spark's formatter reads them.

A pattern becomes a regular expression with a group for each field. What is not in the text is 1970-01-01 00:00:00.
"""

from __future__ import annotations

import re

from tureen.language.functions.signatures import Refused, escaped

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
# A letter of a pattern -> the field that it is, and what it looks like.
_LETTERS = {
    "yyyy": ("y", "[0-9]{4}"), "yy": ("yy", "[0-9]{2}"),
    "MM": ("mo", "[0-9]{2}"), "M": ("mo", "[0-9]{1,19}"),
    "MMM": ("mt", "|".join(one[:3] for one in _MONTHS)), "MMMM": ("mt", "|".join(_MONTHS)),
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
    """A template over `{0}`, a text, that gives a DATE or a TIMESTAMP and raises where the text is not of the form."""
    expression, fields = _read(pattern)
    names = ", ".join(f"'{name}'" for name in fields)
    found = f"regexp_extract(\0, '^(?i:{expression})$', [{names}])"
    bad = "error('the text is not of the pattern')"
    timed = bool(set(fields) - _DAYS)
    made = _moment(fields) if timed or not dated else _date(fields)
    if dated and timed:
        made = f"CAST({made} AS DATE)"
    checked = f"CASE WHEN regexp_matches(\0, '^(?i:{expression})$') THEN {made} ELSE {bad} END"
    sql = f"CASE WHEN \0 IS NULL THEN NULL ELSE list_transform([{found}], lambda _p: {checked})[1] END"
    return escaped(sql).replace("\0", "{0}")


def _read(pattern: str) -> tuple[str, list[str]]:
    """The regular expression of a pattern, and its fields in their order."""
    out, at, fields, before = "", 0, [], ""
    while at < len(pattern):
        found = _PART.match(pattern, at)
        piece = found.group() if found else pattern[at]
        if found is None or "\0" in piece:
            raise Refused(f"'{piece}' in a pattern is not supported", "put texts in single quotes")
        if found.group(1) is None:
            text = piece if found.group(2) is None else found.group(2).replace("''", "'") or "'"
            out, before = out + _literal(text), ""
        else:
            name, looks = _LETTERS.get(piece, ("", ""))
            if not name or name in fields:
                said = "is there twice" if name else "is not supported"
                raise Refused(f"'{piece}' in a pattern for reading {said}", f"letters are {', '.join(_LETTERS)}")
            if before and (before in _VARIABLE or piece in _VARIABLE) and piece[0] != "a" and before != "a":
                raise Refused(f"'{before}{piece}': where a number ends cannot be seen", "put a mark between them")
            out, before = f"{out}({looks})", piece
            fields.append(name)
        at = found.end()
    if not fields:
        raise Refused("a pattern for reading has no letters", f"letters are {', '.join(_LETTERS)}")
    if ("hh" in fields) != ("ap" in fields) or {"h", "hh"} <= set(fields):
        raise Refused("the hours of a pattern for reading are HH, or hh and a", "use HH")
    if {"y", "yy"} <= set(fields) or {"mo", "mt"} <= set(fields):
        raise Refused("a pattern for reading has one year and one month", "leave one of them out")
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
        names = ", ".join(f"'{one[:3].lower()}'" for one in _MONTHS)
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
