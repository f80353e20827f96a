"""Time zones: from_utc_timestamp and to_utc_timestamp with a constant zone."""

from __future__ import annotations

import re
from functools import cache
from zoneinfo import available_timezones

from tureen.errors import nearest
from tureen.language.functions.signatures import UnsupportedCall

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([01]?\d):([0-5]\d)", re.ASCII)
_DAY = "to_microseconds(86400000000)"


@cache
def _names() -> frozenset[str]:
    return frozenset(name for name in available_timezones() if "/" in name or name in ("UTC", "GMT"))


def from_utc_sql(zone: str | None) -> str:
    """A template over `{0}`: the local time of an instant in the zone, as a timestamp in UTC."""
    return "NULL" if zone is None else _local("{0}", zone)


def to_utc_sql(zone: str | None) -> str:
    """A template over `{0}`: the instant of a local time in the zone.

    Of an ambiguous local time, Java takes the earlier instant; a skipped local time it shifts forward. Both amount to
    the offset that was in force a day earlier.
    """
    if zone is None:
        return "NULL"
    early = f"({{0}} - ({_local(f'({{0}} - {_DAY})', zone)} - ({{0}} - {_DAY})))"
    late = f"({{0}} - ({_local(early, zone)} - {early}))"
    shows = "({}) = {{0}}"
    return (
        f"CASE WHEN {shows.format(_local(early, zone))} THEN {early} "
        f"WHEN {shows.format(_local(late, zone))} THEN {late} ELSE {early} END"
    )


def _local(timestamp: str, zone: str) -> str:
    offset = _OFFSET.fullmatch(zone)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        micros = (int(hours) * 60 + int(minutes)) * 60_000_000 * (-1 if sign == "-" else 1)
        return f"({timestamp} + to_microseconds({micros}))"
    if zone not in _names():
        raise UnsupportedCall(
            f"unknown time zone '{zone}'", nearest(zone, sorted(_names())) or "such as 'Europe/Berlin' or '+01:00'"
        )
    return f"timezone('{zone}', timezone('UTC', {timestamp}))"
