"""Date and time functions. All timestamps, and the fields taken from them, are in UTC."""

from __future__ import annotations

from tureen.language.functions.date_formats import format_sql
from tureen.language.functions.signatures import (
    Args,
    Function,
    Param,
    UnsupportedCall,
    bigint,
    const,
    constant,
    date,
    instant,
    integer,
    timestamp,
)
from tureen.language.tree import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Const
from tureen.schema import NUMERIC, Kind, Type

_SECONDS = Type(Kind.DECIMAL, 16, 6)
_FRACTION = Type(Kind.DECIMAL, 8, 6)
_seconds = Param(NUMERIC, _SECONDS, _SECONDS)

# Spark's names of the units of trunc and date_trunc -> DuckDB's.
_DATE_UNITS = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MM": "month",
    "MON": "month", "WEEK": "week",
}  # fmt: skip
_TIME_UNITS = _DATE_UNITS | {
    "DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
    "MILLISECOND": "millisecond", "MICROSECOND": "microsecond",
}  # fmt: skip
_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _word(args: Args, at: int) -> str | None:
    """The value of a constant string."""
    argument = args[at]
    assert isinstance(argument, Const)
    return None if argument.value is None else str(argument.value)


def _date_trunc(args: Args) -> str:
    unit = _TIME_UNITS.get((_word(args, 0) or "").upper())
    return f"date_trunc('{unit}', {{1}})" if unit else "NULL"


def _trunc(args: Args) -> str:
    unit = _DATE_UNITS.get((_word(args, 1) or "").upper())
    return f"date_trunc('{unit}', {{0}})" if unit else "NULL"


def _next_day(args: Args) -> str:
    word = _word(args, 1)
    if word is None:
        return "NULL"
    for i, day in enumerate(_DAYS):
        if word.upper() in (day, day[:2], day[:3]):
            return f"{{0}} + CAST(({i} - isodow({{0}}) + 7) % 7 + 1 AS INTEGER)"
    raise UnsupportedCall(f"'{word}' is not a day of the week", "such as 'MONDAY'")


def _date_format(args: Args) -> str:
    return format_sql(_word(args, 1), "{0}")


def _from_unixtime(args: Args) -> str:
    return format_sql(_word(args, 1), f"({_FROM_SECONDS})")


def _floor(unit: int) -> str:
    """The microseconds since 1970 in a larger unit, rounded down."""
    micros = "epoch_us({0})"
    return f"({micros} - (({micros} % {unit}) + {unit}) % {unit}) // {unit}"


def _date_field(sql: str) -> Function:
    return Function((date,), INT, sql)


_FROM_SECONDS = "make_timestamp({0} * CAST(1000000 AS BIGINT))"
_MONTHS = "((year({0}) - year({1})) * 12 + month({0}) - month({1}))"
_SECOND_OF_DAY = "(hour({%d}) * 3600 + minute({%d}) * 60 + second({%d}))"
_BETWEEN = (
    "CASE WHEN day({0}) = day({1}) OR (last_day({0}) = CAST({0} AS DATE) AND last_day({1}) = CAST({1} AS DATE)) "
    f"THEN {_MONTHS} ELSE %s END"
)
_APART = (
    f"({_MONTHS} + ((day({{0}}) - day({{1}})) * 86400 + {_SECOND_OF_DAY % (0, 0, 0)} - {_SECOND_OF_DAY % (1, 1, 1)}) "
    "/ CAST(2678400 AS DOUBLE))"
)
_MAKE_TIMESTAMP = (
    "CASE WHEN {3} NOT BETWEEN 0 AND 23 OR {5} < 0 OR {5} > 60 THEN error('the time is out of range') "
    "ELSE make_timestamp({0}, {1}, {2}, {3}, {4}, 0) + to_microseconds(CAST({5} * 1000000 AS BIGINT)) END"
)


def _months_between(args: Args) -> str:
    rounded = args[2]
    assert isinstance(rounded, Const)
    if rounded.value is None:
        return "NULL"
    exact = f"floor({_APART} * CAST('1e8' AS DOUBLE) + 0.5) / CAST('1e8' AS DOUBLE)" if rounded.value else _APART
    return _BETWEEN % exact


# The units of timestampadd and timestampdiff: microseconds, or months.
_MICROS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "DAYOFYEAR": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip
_MONTHS_IN = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _unit(args: Args) -> str:
    unit = (_word(args, 0) or "").upper()
    if unit not in _MICROS and unit not in _MONTHS_IN:
        raise UnsupportedCall(f"'{unit}' is not a unit of time", f"units are {', '.join([*_MICROS, *_MONTHS_IN])}")
    return unit


def _timestampadd(args: Args) -> str:
    unit = _unit(args)
    if unit in _MICROS:
        return f"{{2}} + to_microseconds(CAST({{1}} AS BIGINT) * CAST({_MICROS[unit]} AS BIGINT))"
    return f"{{2}} + to_months(CAST({{1}} * {_MONTHS_IN[unit]} AS INTEGER))"


def _timestampdiff(args: Args) -> str:
    """The number of whole units between two instants."""
    unit = _unit(args)
    if unit in _MICROS:
        return f"(epoch_us({{2}}) - epoch_us({{1}})) // {_MICROS[unit]}"
    # A partial day does not count, nor does a month whose day is not reached.
    clock = "(epoch_us({%d}) - epoch_us(date_trunc('day', {%d})))"
    early, late = clock % (1, 1), clock % (2, 2)
    start, day = "CAST({1} AS DATE)", "CAST({2} AS DATE)"
    end = (
        f"({day} + CASE WHEN {day} > {start} AND {late} < {early} THEN -1 "
        f"WHEN {day} < {start} AND {late} > {early} THEN 1 ELSE 0 END)"
    )
    first, last = (f"((year({at}) * 12 + month({at})) * 32 + day({at}))" for at in (start, end))
    return f"({last} - {first}) // 32 // {_MONTHS_IN[unit]}"


TIMES: dict[str, Function] = {
    "year": _date_field("year({0})"),
    "quarter": _date_field("quarter({0})"),
    "month": _date_field("month({0})"),
    "day": _date_field("day({0})"),
    "dayofweek": _date_field("dayofweek({0}) + 1"),
    "weekday": _date_field("isodow({0}) - 1"),
    "dayofyear": _date_field("dayofyear({0})"),
    "weekofyear": _date_field("weekofyear({0})"),
    "hour": Function((timestamp,), INT, "hour({0})"),
    "minute": Function((timestamp,), INT, "minute({0})"),
    "second": Function((timestamp,), INT, "second({0})"),
    "dayname": Function((date,), STRING, "left(dayname({0}), 3)"),
    "monthname": Function((date,), STRING, "left(monthname({0}), 3)"),
    "datediff": Function((date, date), INT, "({0} - {1})"),
    "add_months": Function((date, integer), DATE, "{0} + to_months({1})", raises=True),
    "last_day": Function((date,), DATE, "last_day({0})"),
    "next_day": Function((date, constant(STRING)), DATE, _next_day),
    "months_between": Function(
        (timestamp, timestamp, constant(BOOLEAN)), DOUBLE, _months_between, (const(1, BOOLEAN),), strict=True
    ),
    "date_trunc": Function((constant(STRING), timestamp), TIMESTAMP, _date_trunc),
    "trunc": Function((date, constant(STRING)), DATE, _trunc),
    "date_format": Function((timestamp, constant(STRING)), STRING, _date_format),
    "from_unixtime": Function(
        (bigint, constant(STRING)), STRING, _from_unixtime, (const("yyyy-MM-dd HH:mm:ss", STRING),), raises=True
    ),
    # unix_timestamp truncates, unix_seconds rounds down.
    "unix_timestamp": Function((timestamp,), BIGINT, "epoch_us({0}) // 1000000"),
    "unix_seconds": Function((instant,), BIGINT, _floor(1_000_000)),
    "unix_millis": Function((instant,), BIGINT, _floor(1_000)),
    "unix_micros": Function((instant,), BIGINT, "epoch_us({0})"),
    "unix_date": Function((date,), INT, "{0} - DATE '1970-01-01'"),
    "date_from_unix_date": Function((integer,), DATE, "DATE '1970-01-01' + {0}", raises=True),
    "timestamp_seconds": Function((bigint,), TIMESTAMP, _FROM_SECONDS, raises=True),
    "timestamp_millis": Function((bigint,), TIMESTAMP, "make_timestamp({0} * CAST(1000 AS BIGINT))", raises=True),
    "timestamp_micros": Function((bigint,), TIMESTAMP, "make_timestamp({0})", raises=True),
    "make_date": Function((integer, integer, integer), DATE, "make_date({0}, {1}, {2})", raises=True),
    "make_timestamp": Function(
        (integer, integer, integer, integer, integer, _seconds), TIMESTAMP, _MAKE_TIMESTAMP, strict=True, raises=True
    ),
    "timestampadd": Function((constant(STRING), integer, timestamp), TIMESTAMP, _timestampadd, raises=True),
    "timestampdiff": Function((constant(STRING), timestamp, timestamp), BIGINT, _timestampdiff, strict=True),
}


def _fields() -> dict[str, Function]:
    """The fields of EXTRACT, by all their names in Spark."""
    names = {
        "year": "YEAR Y YEARS YR YRS", "quarter": "QUARTER QTR", "month": "MONTH MON MONS MONTHS",
        "weekofyear": "WEEK W WEEKS", "day": "DAY D DAYS", "dayofweek": "DAYOFWEEK DOW", "dayofyear": "DOY",
        "hour": "HOUR H HOURS HR HRS", "minute": "MINUTE M MIN MINS MINUTES",
    }  # fmt: skip
    fields = {word: TIMES[name] for name, words in names.items() for word in words.split()}
    fields["YEAROFWEEK"] = _date_field("isoyear({0})")
    fields["DAYOFWEEK_ISO"] = fields["DOW_ISO"] = _date_field("isodow({0})")
    fraction = "CAST(microsecond({0}) AS DECIMAL(8,0)) * CAST('0.000001' AS DECIMAL(6,6))"
    for word in ("SECOND", "S", "SEC", "SECONDS", "SECS"):
        fields[word] = Function((timestamp,), _FRACTION, fraction)
    return fields


FIELDS = _fields()
