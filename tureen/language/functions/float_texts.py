"""FLOAT and DOUBLE as strings, as Java formats them: the shortest digits that round-trip, as 1.0E10 or 0.001.

Java does so since version 19 (JDK-4511638); earlier versions wrote a digit too many for some numbers.
"""

from __future__ import annotations

from fractions import Fraction

_SHORT = "CAST({0} AS VARCHAR)"
_DIGITS = f"trim(replace(regexp_replace({_SHORT}, '-|e.*', '', 'g'), '.', ''), '0')"


def float_text(single: bool) -> str:
    """A template that formats `{0}`, a FLOAT or a DOUBLE."""
    name = "FLOAT" if single else "DOUBLE"
    sign = "CASE WHEN {0} < 0 THEN '-' ELSE '' END"
    plain = _shorter(single, "rtrim(CAST(CAST(%s AS DECIMAL(38,20)) AS VARCHAR), '0')")
    exponent = _shorter(single, _exponent("%s"))
    return (
        f"CASE WHEN isnan({{0}}) THEN 'NaN' WHEN isinf({{0}}) THEN {sign} || 'Infinity' "
        f"WHEN {{0}} = 0 OR (abs({{0}}) >= CAST('0.001' AS {name}) AND abs({{0}}) < 10000000) "
        f"THEN CASE {plain} ELSE {_SHORT} END {exponent} "
        f"WHEN contains({_SHORT}, 'e') THEN CASE {_SHORT} {_smallest(single)} ELSE {_exponent(_SHORT)} END "
        f"ELSE {sign} || {_moved()} END"
    )


def _shorter(single: bool, result: str) -> str:
    """WHEN branches for numbers that round-trip with fewer digits than DuckDB writes.

    DuckDB misses a string at the very edge of the interval that rounds to the number, and of two equally near strings
    it takes neither but a longer one. Below these numbers of digits DuckDB is always exact.
    """
    name, counts = ("FLOAT", (7, 8, 9)) if single else ("DOUBLE", (16, 17))
    texts = {count: f"printf('%.{count - 1}e', CAST({{0}} AS DOUBLE))" for count in counts}
    return " ".join(
        f"WHEN length({_DIGITS}) > {count} AND CAST({text} AS {name}) = {{0}} THEN {result.replace('%s', text)}"
        for count, text in texts.items()
    )


def _exponent(text: str) -> str:
    """1e-05 and 1.50e+10 as 1.0E-5 and 1.5E10."""
    pointed = f"regexp_replace({text}, '^(-?[0-9])e', '\\1.0e')"
    trimmed = f"regexp_replace({pointed}, '([.][0-9]+?)0*e', '\\1e')"
    return f"regexp_replace({trimmed}, 'e([+]?0*|(-)0*)([1-9])', 'E\\2\\3')"


def _moved() -> str:
    """12345678.9 and 0.0009 as 1.23456789E7 and 9.0E-4, without the sign."""
    mantissa = f"left({_DIGITS}, 1) || '.' || coalesce(nullif(substring({_DIGITS}, 2), ''), '0')"
    whole = f"(strpos(replace({_SHORT}, '-', ''), '.') - 2)"
    zeros = f"(length(regexp_extract({_SHORT}, '0\\.(0*)', 1)) + 1)"
    return f"{mantissa} || 'E' || CASE WHEN abs({{0}}) >= 1 THEN {whole} ELSE -{zeros} END"


def _smallest(single: bool) -> str:
    """WHEN branches for the smallest numbers, which Java formats with two digits although one would suffice."""
    bits = 149 if single else 1074
    least = 45 if single else 324
    whens = []
    for exponent in range(least, least - 3, -1):
        for digit in range(1, 10):
            exact = Fraction(round(Fraction(digit, 10**exponent) * 2**bits), 2**bits)
            # Two digits: 0.98e-44 is 9.8e-45.
            finer = exponent + (exact < Fraction(1, 10**exponent))
            tenths = round(exact * 10 ** (finer + 1))
            if tenths in (0, digit * 10) or tenths >= 100:
                continue
            text = f"{tenths // 10}.{tenths % 10}E-{finer}"
            whens.append(f"WHEN '{digit}e-{exponent}' THEN '{text}' WHEN '-{digit}e-{exponent}' THEN '-{text}'")
    return " ".join(whens)
