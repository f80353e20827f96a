"""CAST for DuckDB: SQL with the results and the errors of Spark's ANSI mode."""

from __future__ import annotations

from tureen.language.functions.float_texts import float_text
from tureen.language.functions.signatures import escaped
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, SCALARS, Kind, Type

_ALL = frozenset(SCALARS)
# From -> to: the casts of Spark's ANSI mode that DuckDB SQL can express.
CASTS: dict[Kind, frozenset[Kind]] = {
    Kind.BOOLEAN: NUMERIC | {Kind.STRING},
    **dict.fromkeys(INTEGRAL, NUMERIC | {Kind.BOOLEAN, Kind.STRING, Kind.TIMESTAMP}),
    Kind.FLOAT: NUMERIC | {Kind.BOOLEAN, Kind.STRING},
    Kind.DOUBLE: NUMERIC | {Kind.BOOLEAN, Kind.STRING},
    Kind.DECIMAL: NUMERIC | {Kind.BOOLEAN, Kind.STRING},
    Kind.STRING: _ALL,
    Kind.ARRAY: frozenset(),
    Kind.DATE: frozenset({Kind.TIMESTAMP, Kind.STRING}),
    Kind.TIMESTAMP: INTEGRAL | {Kind.DATE, Kind.STRING, Kind.DOUBLE},
}
TRIED: frozenset[Kind] = _ALL - {Kind.TIMESTAMP}
"""The types that TRY_CAST converts a STRING to. Not TIMESTAMP: Spark accepts times without a date, which depend on
the current day."""

_BLANK = r"[\x00-\x20\x7f]*"
_GREATEST_FLOAT = "3.4028235677973366e38"


def cast_sql(source: Type, target: Type, name: str, tries: bool = False) -> str:
    """A template over `{0}`; `name` is the target type in DuckDB, `tries` returns NULL instead of raising."""
    word = "TRY_CAST" if tries else "CAST"
    plain = f"{word}({{0}} AS {name})"
    if source.kind is Kind.STRING:
        return _from_text(target, name, tries)
    if target.kind is Kind.STRING:
        return _to_text(source)
    if target.kind is Kind.BOOLEAN:
        return "({0} <> 0)"
    if source.kind is Kind.TIMESTAMP and target.kind is not Kind.DATE:
        return _from_instant(target, word, name)
    if target.kind is Kind.TIMESTAMP and source.kind in INTEGRAL:
        seconds = "make_timestamp({0} * CAST(1000000 AS BIGINT))"
        return f"TRY({seconds})" if tries else seconds
    if source.kind is Kind.BOOLEAN and target.kind in FRACTIONAL | {Kind.DECIMAL}:
        return f"CAST(CAST({{0}} AS INTEGER) AS {name})"
    if source.kind in FRACTIONAL and target.kind is Kind.DECIMAL:
        return _float_to_decimal(target, tries)
    if source.kind in FRACTIONAL | {Kind.DECIMAL} and target.kind in INTEGRAL:
        # Spark truncates, DuckDB rounds.
        return f"{word}(trunc({{0}}) AS {name})"
    if source.kind is Kind.DOUBLE and target.kind is Kind.FLOAT:
        return (
            f"CASE WHEN abs({{0}}) >= CAST('{_GREATEST_FLOAT}' AS DOUBLE) AND NOT isnan({{0}}) "
            "THEN CAST(CASE WHEN {0} > 0 THEN 'inf' ELSE '-inf' END AS FLOAT) ELSE CAST({0} AS FLOAT) END"
        )
    if source.kind is Kind.DECIMAL and (
        target.kind is Kind.FLOAT or (target.kind is Kind.DOUBLE and source.precision > 15)
    ):
        # DuckDB divides two rounded numbers; a string is rounded once, as in Spark.
        return f"CAST(CAST({{0}} AS VARCHAR) AS {name})"
    return plain


def _float_to_decimal(target: Type, tries: bool) -> str:
    """Spark rounds the decimal digits of the DOUBLE; NaN and infinity become NULL."""
    digits = _digits_to_decimal("CAST(CAST({0} AS DOUBLE) AS VARCHAR)", target, tries)
    return f"CASE WHEN isnan({{0}}) OR isinf({{0}}) THEN NULL ELSE {digits} END"


def _digits_to_decimal(digits: str, target: Type, tries: bool) -> str:
    """A string to DECIMAL; DuckDB does not detect that a number with an exponent is too large."""
    word = "TRY_CAST" if tries else "CAST"
    name = f"DECIMAL({target.precision},{target.scale})"
    large = f"abs(TRY_CAST({digits} AS DOUBLE)) >= CAST('1e{target.precision - target.scale}' AS DOUBLE)"
    bad = "NULL" if tries else "error('the number is too large')"
    return f"CASE WHEN regexp_matches({digits}, '[eE]') AND {large} THEN {bad} ELSE {word}({digits} AS {name}) END"


def _from_instant(target: Type, word: str, name: str) -> str:
    micros = "epoch_us({0})"
    if target.kind is Kind.DOUBLE:
        return f"({micros} / CAST(1000000 AS DOUBLE))"
    return f"{word}(({micros} - (({micros} % 1000000) + 1000000) % 1000000) // 1000000 AS {name})"


def _to_text(source: Type) -> str:
    if source.kind in FRACTIONAL:
        return float_text(source.kind is Kind.FLOAT)
    if source.kind is Kind.DECIMAL and source.precision == source.scale:
        # DuckDB omits the zero before the decimal point.
        return "regexp_replace(CAST({0} AS VARCHAR), '^(-?)\\.', '\\10.')"
    return "CAST({0} AS VARCHAR)"


def _matched(pattern: str) -> str:
    """The string without blanks around it if it matches a pattern; otherwise an empty string, which no cast accepts."""
    return _braced(f"regexp_extract(\0, '^{_BLANK}({pattern}){_BLANK}$', 1)")


_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?"


def _from_text(target: Type, name: str, tries: bool) -> str:
    word = "TRY_CAST" if tries else "CAST"
    if target.kind in INTEGRAL:
        return f"{word}({_matched('[+-]?[0-9]+')} AS {name})"
    if target.kind is Kind.DECIMAL:
        return _digits_to_decimal(_matched(_NUMBER), target, tries)
    if target.kind in FRACTIONAL:
        digits = _matched(f"(?i:[+-]?(?:nan|inf|infinity))|{_NUMBER}[dDfF]?")
        number = (
            f"{word}(rtrim({digits}, CASE WHEN ends_with(lower({digits}), 'inf') THEN '' ELSE 'dDfF' END) AS {name})"
        )
        return _unless("0[xX]", number) if tries else number
    if target.kind is Kind.BOOLEAN:
        bad = "NULL" if tries else "error('the text is no BOOLEAN')"
        return (
            f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {_matched('(?i:t|true|y|yes|1)')} <> '' THEN TRUE "
            f"WHEN {_matched('(?i:f|false|n|no|0)')} <> '' THEN FALSE ELSE {bad} END"
        )
    if target.kind is Kind.DATE:
        return _text_to_date(tries)
    return _text_to_instant()


def _unless(pattern: str, sql: str) -> str:
    """Raise for a string that Spark would parse and we do not, instead of returning NULL."""
    return f"CASE WHEN regexp_matches({{0}}, '{escaped(pattern)}') THEN error('the text cannot be read') ELSE {sql} END"


# The parts of a date or timestamp, by name, from a single regular expression.
_DAY = r"[+]?([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})%s)?)?"
_ZONE = r"(?:(?:UTC|GMT|UT)?([+-])(?:(0?[0-9]|1[0-7])(?::([0-5]?[0-9]))?|(0[0-9]|1[0-7])([0-5][0-9]))|Z|UTC|GMT|UT)?"
_CLOCK = rf"(?:[T ]([01]?[0-9]|2[0-3])(?::([0-5]?[0-9])(?::([0-5]?[0-9])(?:\.([0-9]{{0,6}})[0-9]*)? *{_ZONE})?)?)?"
# Years that Spark accepts and we do not.
_OTHER_YEARS = rf"^{_BLANK}(?:-[0-9]{{4}}|[+-]?[0-9]{{5,7}}|[+]?0000)(?:-|{_BLANK}$)"
_YEAR = "CAST(replace(_p.y, '0000', '') AS BIGINT)"


def _parts(pattern: str, names: str, body: str) -> str:
    quoted = ", ".join(f"'{name}'" for name in names.split())
    parts = f"regexp_extract(\0, '(?s)^{_BLANK}{pattern}{_BLANK}$', [{quoted}])"
    return _braced(f"list_transform([{parts}], lambda _p: {body})[1]")


def _braced(sql: str) -> str:
    """A template from SQL with NUL for the argument."""
    return escaped(sql).replace("\0", "{0}")


def _count(part: str, otherwise: str = "0") -> str:
    return f"CAST(coalesce(nullif(_p.{part}, ''), '{otherwise}') AS BIGINT)"


def _text_to_date(tries: bool) -> str:
    day = f"make_date({_YEAR}, {_count('m', '1')}, {_count('d', '1')})"
    sql = _parts(_DAY % "(?:[T ].*)?", "y m d", day)
    return _unless(_OTHER_YEARS, f"TRY({sql})") if tries else sql


def _text_to_instant() -> str:
    whole = f"make_timestamp({_YEAR}, {_count('m', '1')}, {_count('d', '1')}, {_count('h')}, {_count('i')}, 0)"
    micros = f"{_count('s')} * 1000000 + CAST(rpad(_p.f, 6, '0') AS BIGINT)"
    minutes = f"({_count('zh')} + {_count('zz')}) * 60 + {_count('zm')} + {_count('zn')}"
    zone = f"CASE WHEN _p.z = '-' THEN -1 ELSE 1 END * ({minutes}) * 60000000"
    return _parts(_DAY % _CLOCK, "y m d h i s f z zh zm zz zn", f"{whole} + to_microseconds({micros} - {zone})")
