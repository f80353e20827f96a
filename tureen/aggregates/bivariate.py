"""Statistics of two values, as SQL that yields Spark's results, over the rows in which neither is NULL.

If a value is infinite or NaN, Spark's statistic is NaN but DuckDB's raises: so DuckDB aggregates only the finite rows,
and a CASE around it handles the others.
"""

from __future__ import annotations

_NAN = "CAST('nan' AS DOUBLE)"


def pair_sql(function: str, x: str, y: str) -> str:
    """An aggregate over two DOUBLE columns; `x` is the independent variable."""
    both = f"{x} IS NOT NULL AND {y} IS NOT NULL"
    names = {
        "n": f"count(CASE WHEN {both} THEN 1 END)",
        "x": f"CASE WHEN isfinite({x}) AND isfinite({y}) THEN {x} END",
        "y": f"CASE WHEN isfinite({x}) AND isfinite({y}) THEN {y} END",
        "own_x": f"CASE WHEN isfinite({x}) AND {y} IS NOT NULL THEN {x} END",
        "own_y": f"CASE WHEN isfinite({y}) AND {x} IS NOT NULL THEN {y} END",
        "odd_x": f"bool_or({both} AND NOT isfinite({x}))",
        "odd_y": f"bool_or({both} AND NOT isfinite({y}))",
        "nan": _NAN,
    }
    return f"(CASE {_FORMS[function].format(**names)} END)"


_ODD = "WHEN {odd_x} OR {odd_y} THEN {nan}"
_FLAT_X = "WHEN {n} = 0 OR (NOT {odd_x} AND var_pop({own_x}) = 0) THEN NULL"
_FLAT_Y = "NOT {odd_y} AND var_pop({own_y}) = 0"
_SLOPE = "covar_pop({y}, {x}) / var_pop({x})"

_FORMS = {
    "covar_pop": f"WHEN {{n}} = 0 THEN NULL {_ODD} ELSE covar_pop({{y}}, {{x}})",
    "covar_samp": f"WHEN {{n}} <= 1 THEN NULL {_ODD} ELSE covar_samp({{y}}, {{x}})",
    "corr": f"WHEN {{n}} <= 1 THEN NULL {_ODD} {_FLAT_X} WHEN {_FLAT_Y} THEN NULL ELSE corr({{y}}, {{x}})",
    "regr_slope": f"{_FLAT_X} {_ODD} ELSE {_SLOPE}",
    "regr_intercept": f"{_FLAT_X} {_ODD} ELSE avg({{y}}) - {_SLOPE} * avg({{x}})",
    "regr_r2": f"{_FLAT_X} WHEN {_FLAT_Y} THEN 1 {_ODD} ELSE pow(corr({{y}}, {{x}}), 2)",
    "regr_sxx": "WHEN {n} = 0 THEN NULL WHEN {odd_x} THEN {nan} ELSE var_pop({own_x}) * {n}",
    "regr_syy": "WHEN {n} = 0 THEN NULL WHEN {odd_y} THEN {nan} ELSE var_pop({own_y}) * {n}",
    "regr_sxy": f"WHEN {{n}} = 0 THEN NULL {_ODD} ELSE covar_pop({{y}}, {{x}}) * {{n}}",
}

PAIRS = frozenset(_FORMS)
"""The aggregates over two values."""
