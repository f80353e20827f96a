"""Random scalar expressions and aggregates for Hypothesis, in this language and in that of a judge."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Column, Kind, Schema, Type, array_of
from tureen.testing.judged import Call, Formula, Judge, judged
from tureen.testing.texts import conditions, spelt

_DOUBLE, _BIGINT, _INT, _TINYINT = Type(Kind.DOUBLE), Type(Kind.BIGINT), Type(Kind.INT), Type(Kind.TINYINT)
_BOOLEAN, _STRING = Type(Kind.BOOLEAN), Type(Kind.STRING)
_CONDITION = "<condition>"
"""Stands for a condition, which is drawn only for the form that was chosen."""


@dataclass(frozen=True)
class Field:
    """What formulas are over."""

    schema: Schema
    prefix: str = ""
    tame: bool = True
    judge: Judge | None = None

    def conditions(self) -> st.SearchStrategy[str]:
        """Conditions on a row."""
        return conditions(self.schema, portable=self.judge == "duckdb", depth=0, prefix=self.prefix)


@st.composite
def scalars(draw: st.DrawFn, field: Field, kinds: frozenset[Kind] | None = None) -> Formula:
    """A column, or an expression over one or two; the column is of one of the kinds, where the schema has such."""
    fitting = [one for one in field.schema.columns if kinds is None or one.type.kind in kinds]
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


def _forms(draw: st.DrawFn, field: Field, column: Column, name: str) -> list[tuple[str, Type]]:
    """Expressions over a column with their types; a DECIMAL's is only near enough to choose an aggregate by."""
    type_ = column.type
    other = draw(
        spelt(draw(st.sampled_from([one for one in field.schema.columns if one.type == type_])).name, field.prefix)
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
            # DuckDB's own upper leaves letters that become two.
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
"""What can be added up without loss."""


@st.composite
def aggregates(draw: st.DrawFn, field: Field) -> Formula:
    """An aggregate of any kind; floats that are not tame are not added up, for then nobody is right."""
    maker = draw(
        st.sampled_from([_count, _number, _number, _number, _extreme, _extreme, _place, _truth, _listed, _pair])
    )
    call = maker(draw, field)
    if call.function not in ("first", "last", "any_value") and draw(st.integers(0, 4)) == 0:
        call = replace(call, where=draw(field.conditions()))
    return Formula(call.own, judged(call, field.judge), call.type, call.exact)


def _count(draw: st.DrawFn, field: Field) -> Call:
    one, other = draw(scalars(field)), draw(scalars(field))
    forms = [
        Call("count", (), _BIGINT),
        Call("count", (one,), _BIGINT),
        Call("count", (one, other), _BIGINT),
        Call("count", (one,), _BIGINT, distinct=True),
        Call("count", (one, other), _BIGINT, distinct=True),
        Call("approx_count_distinct", (one,), _BIGINT),
    ]
    return draw(st.sampled_from(forms))


def _number(draw: st.DrawFn, field: Field) -> Call:
    """Sums, averages, deviations and quantiles."""
    one = draw(scalars(field, NUMERIC if field.tame else _ADDED))
    if one.type.kind not in (NUMERIC if field.tame else _ADDED):
        return Call("count", (one,), _BIGINT)
    distinct: bool = draw(st.integers(0, 4)) == 0
    exact = one.type.kind in _ADDED
    total = _BIGINT if one.type.kind in INTEGRAL else one.type if exact else _DOUBLE
    forms = [Call("sum", (one,), total, distinct, exact=exact)] * 2
    if one.type.kind in INTEGRAL:
        forms += [Call(draw(st.sampled_from(["bit_and", "bit_or", "bit_xor"])), (one,), one.type, distinct)]
    if field.tame or one.type.kind is Kind.DECIMAL:
        decimal = one.type.kind is Kind.DECIMAL
        average = draw(st.sampled_from(["avg", "mean"]))
        forms += [Call(average, (one,), one.type if decimal else _DOUBLE, distinct and average == "avg", exact=decimal)]
    if field.tame:
        forms += [Call(draw(st.sampled_from(_MOMENTS)), (one,), _DOUBLE, exact=False)]
        forms += [Call("percentile", (one,), _DOUBLE, parameter=draw(st.sampled_from(_SHARES)), exact=False)]
        forms += [Call("median", (one,), _DOUBLE, exact=False)]
    return draw(st.sampled_from(forms))


def _extreme(draw: st.DrawFn, field: Field) -> Call:
    one = draw(scalars(field))
    return Call(draw(st.sampled_from(["min", "max"])), (one,), one.type, distinct=draw(st.integers(0, 9)) == 0)


def _place(draw: st.DrawFn, field: Field) -> Call:
    """One of the values, by its place."""
    one, other = draw(scalars(field)), draw(scalars(field))
    forms = [Call(draw(st.sampled_from(_FIRSTS)), (one,), one.type)] * 2
    forms += [Call(draw(st.sampled_from(["max_by", "min_by"])), (one, other), one.type)]
    if one.type.kind in NUMERIC | {Kind.DATE, Kind.TIMESTAMP}:
        forms += [Call("approx_percentile", (one,), one.type, parameter=draw(st.sampled_from(_SHARES)))]
    return draw(st.sampled_from(forms))


def _listed(draw: st.DrawFn, field: Field) -> Call:
    """All values as a list or a text, or the most frequent one."""
    one = draw(scalars(field))
    forms = [Call(draw(st.sampled_from(["collect_list", "array_agg"])), (one,), array_of(one.type), exact=False)]
    forms += [Call("collect_set", (one,), array_of(one.type), exact=False)]
    forms += [Call("mode", (one,), one.type)]
    if one.type.kind is Kind.STRING:
        forms += [Call("listagg", (one,), _STRING, parameter=draw(st.sampled_from(["','", "''"])))] * 3
    return draw(st.sampled_from(forms))


def _pair(draw: st.DrawFn, field: Field) -> Call:
    """A statistic of two values."""
    one, other = (draw(scalars(field, NUMERIC if field.tame else _ADDED)) for _ in range(2))
    if not field.tame or any(value.type.kind not in NUMERIC for value in (one, other)):
        return Call("count", (one, other), _BIGINT)
    names = ["covar_pop", "covar_samp"]
    if field.judge != "duckdb":
        # DuckDB raises where there is no number.
        names += ["corr", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_avgx"]
    name = draw(st.sampled_from(names))
    return Call(name, (one, other), _DOUBLE, exact=False)


def _truth(draw: st.DrawFn, field: Field) -> Call:
    condition = draw(field.conditions())
    name, type_ = draw(
        st.sampled_from([("count_if", _BIGINT), ("bool_and", _BOOLEAN), ("bool_or", _BOOLEAN), ("every", _BOOLEAN)])
    )
    return Call(name, (Formula(condition, condition, _BOOLEAN),), type_)
