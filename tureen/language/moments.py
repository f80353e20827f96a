"""Dates and timestamps as text, parsed as Spark casts a STRING to DATE or TIMESTAMP in a UTC session."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from tureen.window import to_micros

DAY_MICROS = 86_400_000_000
_EPOCH_DAY = date(1970, 1, 1)

_DATE = r"\+?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_DATE_ONLY = re.compile(rf"{_DATE}(?:(?<=-\d|\d\d)[T ].*)?", re.DOTALL | re.ASCII)
_TIMESTAMP = re.compile(
    rf"{_DATE}(?:[T ](?:(\d{{1,2}})(?::(\d{{1,2}})(?::(\d{{1,2}})(?:\.(\d*))?)?)?)?\s*(\S.*)?)?", re.DOTALL | re.ASCII
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})(?::(\d{1,2})(?::(\d{2}))?)?|(\d{2})(\d{2})(\d{2})?)", re.ASCII)


def read_date(text: str) -> int | None:
    """The days since 1970 of a date as text, or None if it is not a date.

    >>> read_date("1970-01-02")
    1
    """
    match = _DATE_ONLY.fullmatch(_trim(text))
    if not match or (match.group(3) is None and re.search("[T ]", match.group())):
        return None
    try:
        day = date(int(match.group(1)), int(match.group(2) or 1), int(match.group(3) or 1))
    except (ValueError, OverflowError):
        return None
    return (day - _EPOCH_DAY).days


def read_timestamp(text: str) -> int | None:
    """The microseconds since 1970 of a timestamp as text, or None if it is not a timestamp.

    >>> read_timestamp("1970-01-01 01:00:00+01:00")
    0
    """
    match = _TIMESTAMP.fullmatch(_trim(text))
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if hour is None and (zone is not None or re.search("[T ]", match.group())):
        return None
    if (hour is not None and day is None) or (zone is not None and second is None):
        return None
    time_zone = UTC if zone is None else _zone(zone)
    if time_zone is None:
        return None
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        day_part = date(int(year), int(month or 1), int(day or 1))
        time_part = time(int(hour or 0), int(minute or 0), int(second or 0), micros, tzinfo=time_zone)
        return to_micros(datetime.combine(day_part, time_part))
    except (ValueError, OverflowError):
        return None


def moment_text(micros: int) -> str:
    """A timestamp in UTC, as DuckDB reads it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return f"{moment.year:04d}-{moment:%m-%d %H:%M:%S.%f}"


def day_text(days: int) -> str:
    """A date as SQL writes it."""
    return (_EPOCH_DAY + timedelta(days=days)).isoformat()


def in_range(micros: int) -> bool:
    """Whether an instant has a year from 1 to 9999."""
    try:
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return False
    return True


def _trim(text: str) -> str:
    """The text without the blanks and control characters that Spark ignores at both ends."""
    return text.strip("".join(map(chr, range(33))) + "\x7f")


def _zone(text: str) -> tzinfo | None:
    if text in ("Z", "UTC", "GMT", "UT"):
        return UTC
    match = _OFFSET.fullmatch(text)
    if match:
        sign, *fields = match.groups()
        hours, minutes, seconds = fields[:3] if fields[0] else fields[3:]
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if offset > timedelta(hours=18) or int(minutes or 0) > 59 or int(seconds or 0) > 59:
            return None
        return timezone(-offset if sign == "-" else offset)
    if not re.fullmatch(r"[A-Za-z]+(?:/[A-Za-z_+\-0-9]+)+", text, re.ASCII):
        return None
    try:
        return ZoneInfo(text)
    except (OSError, ValueError, KeyError):
        return None
