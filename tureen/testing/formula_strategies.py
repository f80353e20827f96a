"""Random scalar expressions and aggregates for Hypothesis, in Tureen's SQL and in that of a judge."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Column, Kind, Schema, Type, array_of
from tureen.testing.judge import AggregateCall, Formula, Judge, judge_sql
from tureen.testing.text_strategies import conditions, spelt

_DOUBLE, _BIGINT, _INT, _TINYINT = Type(Kind.DOUBLE), Type(Kind.BIGINT), Type(Kind.INT), Type(Kind.TINYINT)
_BOOLEAN, _STRING = Type(Kind.BOOLEAN), Type(Kind.STRING)
_CONDITION = "<condition>"
"""Placeholder for a condition, which is drawn only for the form that is chosen."""


@dataclass(frozen=True)
class FormulaScope:
    """The columns that formulas refer to, and which formulas are allowed."""

    schema: Schema
    prefix: str = ""
    tame: bool = True
    judge: Judge | None = None

    def conditions(self) -> st.SearchStrategy[str]:
        """Conditions on a row."""
        return conditions(self.schema, portable=self.judge == "duckdb", depth=0, prefix=self.prefix)


@st.composite
def scalars(draw: st.DrawFn, field: FormulaScope, kinds: frozenset[Kind] | None = None) -> Formula:
    """A column, or an expression over one or two; of one of the kinds, if the schema has such a column."""
    fitting = [candidate for candidate in field.schema.columns if kinds is None or candidate.type.kind in kinds]
    column = draw(st.sampled_from(fitting or field.schema.columns))
    name = draw(spelt(column.name, field.prefix))
    if draw(st.integers(0, 2)) == 0:
        forms = _forms(draw, field, column, name)
        if forms:
            text, type_ = draw(st.sampled_from(forms))
            if _CONDITION in text:
                text = text.replace(_CONDITION, draw(field.conditions()))
            return Formula(text, text, type_)
    return Formula(name, name, column.type)


def _forms(draw: st.DrawFn, field: FormulaScope, column: Column, name: str) -> list[tuple[str, Type]]:
    """Expressions over a column with their types; the type of a DECIMAL expression is approximate."""
    type_ = column.type
    other = draw(
        spelt(
            draw(st.sampled_from([candidate for candidate in field.schema.columns if candidate.type == type_])).name,
            field.prefix,
        )
    )
    forms = [
        (f"{name} IS NULL", _BOOLEAN),
        (f"CASE WHEN {_CONDITION} THEN {name} ELSE {other} END", type_),
        (f"CASE WHEN {_CONDITION} THEN {name} END", type_),
        (f"coalesce({name}, {other})", type_),
    ]
    match type_.kind:
        case Kind.INT | Kind.BIGINT:
            forms += [(f"{name} + 1", type_), (f"{name} * {other}", type_), (f"{name} - {other}", type_)]
            forms += [(f"{name} / 2", _DOUBLE), (f"CAST({name} AS STRING)", _STRING), (f"{name} > 1", _BOOLEAN)]
            if field.judge != "duckdb":
                forms += [(f"{name} % 3", type_), (f"{name} DIV 2", _BIGINT), (f"{name} / {other}", _DOUBLE)]
        case Kind.TINYINT | Kind.SMALLINT:
            forms += [(f"{name} * {other}", type_), (f"{name} - {other}", type_), (f"{name} > 1", _BOOLEAN)]
            forms += [(f"CAST({name} AS INT)", _INT), (f"CAST({name} AS STRING)", _STRING)]
            if field.judge != "duckdb":
                forms += [(f"{name} + 1", _INT), (f"{name} / {other}", _DOUBLE), (f"CAST({name} AS TINYINT)", _TINYINT)]
        case Kind.FLOAT | Kind.DOUBLE:
            forms += [(f"{name} + 1e0", _DOUBLE), (f"{name} * 2e0", _DOUBLE)]
            forms += [(f"{name} > 1e0", _BOOLEAN)]
        case Kind.DECIMAL if type_.precision < 20:
            forms += [(f"{name} + {other}", type_), (f"{name} * 2", type_), (f"CAST({name} AS DOUBLE)", _DOUBLE)]
        case Kind.STRING:
            forms += [(f"substring({name}, 1, 1)", _STRING), (f"length({name})", _INT), (f"{name} || 'x'", _STRING)]
            # DuckDB's upper does not change letters whose upper case is two letters.
            forms += [(f"upper({name})", _STRING)] if field.judge != "duckdb" else []
        case Kind.DATE:
            forms += [(f"year({name})", _INT), (f"dayofyear({name})", _INT)]
            forms += [(f"{name} + 1", type_)] if field.tame and field.judge is None else []
        case Kind.TIMESTAMP:
            forms += [(f"hour({name})", _INT), (f"CAST({name} AS DATE)", Type(Kind.DATE))]
            forms += [(f"{name} + INTERVAL '90' SECOND", type_)] if field.tame else []
        case Kind.BOOLEAN:
            forms += [(f"NOT {name}", type_)]
    return forms


_FIRSTS = ("first", "any_value", "last", "first|IGNORE NULLS", "last|IGNORE NULLS")
_MOMENTS = ("stddev", "stddev_samp", "stddev_pop", "std", "variance", "var_samp", "var_pop")
_SHARES = ("0.5", "0", "1", "0.25", "0.9", "0.333", "1e-1")
_ADDED = NUMERIC - FRACTIONAL
"""Types with exact sums."""


@st.composite
def aggregates(draw: st.DrawFn, field: FormulaScope) -> Formula:
    """An aggregate of any kind; no sums of floats that are not tame, because their result is undefined."""
    maker = draw(
        st.sampled_from(
            [_count, _number, _number, _number, _extreme, _extreme, _positional, _boolean, _collected, _pair]
        )
    )
    call = maker(draw, field)
    if call.function not in ("first", "last", "any_value") and draw(st.integers(0, 4)) == 0:
        call = replace(call, where=draw(field.conditions()))
    return Formula(call.sql, judge_sql(call, field.judge), call.type, call.exact)


def _count(draw: st.DrawFn, field: FormulaScope) -> AggregateCall:
    first, second = draw(scalars(field)), draw(scalars(field))
    forms = [
        AggregateCall("count", (), _BIGINT),
        AggregateCall("count", (first,), _BIGINT),
        AggregateCall("count", (first, second), _BIGINT),
        AggregateCall("count", (first,), _BIGINT, distinct=True),
        AggregateCall("count", (first, second), _BIGINT, distinct=True),
        AggregateCall("approx_count_distinct", (first,), _BIGINT),
    ]
    return draw(st.sampled_from(forms))


def _number(draw: st.DrawFn, field: FormulaScope) -> AggregateCall:
    """Sums, averages, deviations and quantiles."""
    value = draw(scalars(field, NUMERIC if field.tame else _ADDED))
    if value.type.kind not in (NUMERIC if field.tame else _ADDED):
        return AggregateCall("count", (value,), _BIGINT)
    distinct: bool = draw(st.integers(0, 4)) == 0
    exact = value.type.kind in _ADDED
    total = _BIGINT if value.type.kind in INTEGRAL else value.type if exact else _DOUBLE
    forms = [AggregateCall("sum", (value,), total, distinct, exact=exact)] * 2
    if value.type.kind in INTEGRAL:
        forms += [
            AggregateCall(draw(st.sampled_from(["bit_and", "bit_or", "bit_xor"])), (value,), value.type, distinct)
        ]
    if field.tame or value.type.kind is Kind.DECIMAL:
        decimal = value.type.kind is Kind.DECIMAL
        average = draw(st.sampled_from(["avg", "mean"]))
        forms += [
            AggregateCall(
                average, (value,), value.type if decimal else _DOUBLE, distinct and average == "avg", exact=decimal
            )
        ]
    if field.tame:
        forms += [AggregateCall(draw(st.sampled_from(_MOMENTS)), (value,), _DOUBLE, exact=False)]
        forms += [AggregateCall("percentile", (value,), _DOUBLE, parameter=draw(st.sampled_from(_SHARES)), exact=False)]
        forms += [AggregateCall("median", (value,), _DOUBLE, exact=False)]
    return draw(st.sampled_from(forms))


def _extreme(draw: st.DrawFn, field: FormulaScope) -> AggregateCall:
    value = draw(scalars(field))
    return AggregateCall(
        draw(st.sampled_from(["min", "max"])), (value,), value.type, distinct=draw(st.integers(0, 9)) == 0
    )


def _positional(draw: st.DrawFn, field: FormulaScope) -> AggregateCall:
    """One of the values, by its position."""
    value, key = draw(scalars(field)), draw(scalars(field))
    forms = [AggregateCall(draw(st.sampled_from(_FIRSTS)), (value,), value.type)] * 2
    forms += [AggregateCall(draw(st.sampled_from(["max_by", "min_by"])), (value, key), value.type)]
    if value.type.kind in NUMERIC | {Kind.DATE, Kind.TIMESTAMP}:
        forms += [AggregateCall("approx_percentile", (value,), value.type, parameter=draw(st.sampled_from(_SHARES)))]
    return draw(st.sampled_from(forms))


def _collected(draw: st.DrawFn, field: FormulaScope) -> AggregateCall:
    """All values as a list or a text, or the most frequent value."""
    value = draw(scalars(field))
    forms = [
        AggregateCall(draw(st.sampled_from(["collect_list", "array_agg"])), (value,), array_of(value.type), exact=False)
    ]
    forms += [AggregateCall("collect_set", (value,), array_of(value.type), exact=False)]
    forms += [AggregateCall("mode", (value,), value.type)]
    if value.type.kind is Kind.STRING:
        forms += [AggregateCall("listagg", (value,), _STRING, parameter=draw(st.sampled_from(["','", "''"])))] * 3
    return draw(st.sampled_from(forms))


def _pair(draw: st.DrawFn, field: FormulaScope) -> AggregateCall:
    """A statistic of two values."""
    left, right = (draw(scalars(field, NUMERIC if field.tame else _ADDED)) for _ in range(2))
    if not field.tame or any(value.type.kind not in NUMERIC for value in (left, right)):
        return AggregateCall("count", (left, right), _BIGINT)
    names = ["covar_pop", "covar_samp"]
    if field.judge != "duckdb":
        # DuckDB raises where the result is not a number.
        names += ["corr", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_avgx"]
    name = draw(st.sampled_from(names))
    return AggregateCall(name, (left, right), _DOUBLE, exact=False)


def _boolean(draw: st.DrawFn, field: FormulaScope) -> AggregateCall:
    condition = draw(field.conditions())
    name, type_ = draw(
        st.sampled_from([("count_if", _BIGINT), ("bool_and", _BOOLEAN), ("bool_or", _BOOLEAN), ("every", _BOOLEAN)])
    )
    return AggregateCall(name, (Formula(condition, condition, _BOOLEAN),), type_)
