"""The table of aggregates: what each is called, what it takes and returns, and how it is computed.

A new aggregate is one entry of `AGGREGATES`, and a twin in plain Python for the oracle (`tureen.testing.aggregates`),
which does not use this table. Only what no other aggregate has needs more code: types (`AggregateTypes`, computed in
`tureen.language.binding.aggregate_types`), a partial state (`PartialState`, in `tureen.aggregates.plan` and
`aggregate_kernels`), or a final step (`FinalStep`, in `tureen.aggregates.finals`).

The SQL of an aggregate is DuckDB SQL with the following names in braces (`tureen.aggregates.aggregate_sql`):

```
value        the argument, after DISTINCT if the call has it; -0.0 is 0.0
values       the same for any number of arguments: a value that is NULL if any of them is
picked       the argument as a value to return: -0.0 stays -0.0
second       the second argument
percentage   the parameter of the call
direction    how the call orders its argument
listed       the argument as an item of a list, after DISTINCT if the call has it
list_order   the order of a list: the requested one, then that of the rows
separator    the separator of listagg
row          the number of the row, in order of time and then of arrival
type         the type of the result
over         OVER (…) where the aggregate is a window function; otherwise nothing
peers        ORDER BY among the peers of a frame that does not count rows
n, odd_x, odd_y, x, y, own_x, own_y
             of two arguments y, x, over the rows in which neither is NULL: how many there are; whether an x, or y, is
             infinite or NaN; x and y where both are finite; x, or y, where it is finite
```
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from tureen.query import Aggregate
from tureen.schema import FRACTIONAL


class Ordering(Enum):
    """Where an aggregate takes the order of its rows from."""

    NONE = auto()
    LIST = auto()
    """ORDER BY after its argument, or WITHIN GROUP."""
    WITHIN_GROUP = auto()
    """WITHIN GROUP, whose ORDER BY expression is its argument."""


class AggregateTypes(Enum):
    """The types of an aggregate's arguments and of its result."""

    COUNT = auto()
    """Any; a BIGINT."""
    COUNT_IF = auto()
    """A BOOLEAN; the count of those that are true."""
    DISTINCT_COUNT = auto()
    """Any; the count of DISTINCT values."""
    SUM_OR_AVG = auto()
    """A number; a BIGINT, a DECIMAL with more digits, or a DOUBLE."""
    DOUBLE_OF_NUMBER = auto()
    """A number; a DOUBLE."""
    PAIR_STATISTIC = auto()
    """Two numbers; a DOUBLE."""
    PERCENTILE = auto()
    """A number; its percentile, a DOUBLE."""
    APPROX_PERCENTILE = auto()
    """A number or time; the same type."""
    ONE_VALUE = auto()
    """Any; the type of the first argument."""
    ONE_INTEGER = auto()
    """An integer; the same type."""
    ALL_OR_ANY = auto()
    """A BOOLEAN; the minimum or maximum of BOOLEANs."""
    ALL_VALUES = auto()
    """Any; an ARRAY, or a STRING for listagg."""


class PartialState(Enum):
    """What is stored for a group: the number of values that are not NULL, and one of these."""

    COUNT = auto()
    """Nothing else."""
    SUM = auto()
    """The exact sum of integers or DECIMALs."""
    DOUBLE_SUM = auto()
    """The sum of doubles, and its rounding error."""
    MOMENTS = auto()
    """The mean of doubles, and the sum of squared distances from it."""
    LEAST = auto()
    GREATEST = auto()
    BITS_AND = auto()
    BITS_OR = auto()
    BITS_XOR = auto()


class FinalStep(Enum):
    """How the value is computed from the state."""

    COUNT = auto()
    VALUE = auto()
    """The state is the value."""
    EXACT_SUM = auto()
    EXACT_AVERAGE = auto()
    """The sum divided by the count, rounded half away from zero; of rows, DuckDB computes the sum and the count."""
    DOUBLE_SUM = auto()
    DOUBLE_AVERAGE = auto()
    STDDEV_SAMP = auto()
    STDDEV_POP = auto()
    VAR_SAMP = auto()
    VAR_POP = auto()


@dataclass(frozen=True, slots=True)
class Computation:
    """How an aggregate is computed: from rows by DuckDB, and perhaps from partial states that are combined."""

    sql: str
    """DuckDB SQL over the rows of a group; see above."""
    state: PartialState | None = None
    """None if the aggregate is holistic: it needs all of its rows at once."""
    final: FinalStep | None = None
    over_sql: str | None = None
    """The SQL with OVER, where it is not `sql`."""
    ignores_distinct: bool = False
    """Whether the value is the same with DISTINCT."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function."""

    nodes: tuple[str, ...]
    """The classes of sqlglot's nodes for its names."""
    types: AggregateTypes
    computed: Computation | None = None
    """None if its types bind it as a call of another aggregate, such as count_if as a count."""
    computed_of_doubles: Computation | None = None
    """For FLOAT and DOUBLE arguments, where it is not `computed`."""
    computed_of_present: Computation | None = None
    """With IGNORE NULLS, if that is supported."""
    aliases: tuple[str, ...] = ()
    """Its other names in SQL."""
    arguments: int | None = 1
    """The number of its arguments; None for any number."""
    percentage: str | float | None = None
    """The key of the node that is its percentage, or the percentage."""
    ordering: Ordering = Ordering.NONE
    distinct: bool = True
    """Whether it supports DISTINCT."""
    over: bool = False
    """Whether it supports OVER."""


_DOUBLE_SUM = "CASE WHEN isfinite(sum({value}){over}) THEN fsum({value}){over} ELSE sum({value}){over} END"
"""Kahan's sum, which would turn infinities into NaN."""


def _statistic(name: str, final: FinalStep, *nodes: str, aliases: tuple[str, ...] = ()) -> AggregateFunction:
    """A statistic of one number."""
    computed = Computation(f"{name}({{value}}){{over}}", PartialState.MOMENTS, final)
    return AggregateFunction(nodes, AggregateTypes.DOUBLE_OF_NUMBER, computed, aliases=aliases, over=True)


def _extreme(node: str, name: str, state: PartialState) -> AggregateFunction:
    computed = Computation(f"{name}({{value}}){{over}}", state, FinalStep.VALUE, ignores_distinct=True)
    return AggregateFunction((node,), AggregateTypes.ONE_VALUE, computed, over=True)


def _bits(node: str, name: str, state: PartialState) -> AggregateFunction:
    return AggregateFunction(
        (node,), AggregateTypes.ONE_INTEGER, Computation(f"{name}({{value}})", state, FinalStep.VALUE)
    )


def _first(name: str, direction: str, *nodes: str, aliases: tuple[str, ...]) -> AggregateFunction:
    """The value of the first row in order of time, or in its reverse."""
    sql = f"first({{picked}} ORDER BY {{row}} {direction})"
    return AggregateFunction(
        nodes,
        AggregateTypes.ONE_VALUE,
        Computation(sql, over_sql=f"{name}_value({{picked}}{{peers}}){{over}}", ignores_distinct=True),
        computed_of_present=Computation(
            f"{sql} FILTER (WHERE {{picked}} IS NOT NULL)",
            over_sql=f"{name}_value({{picked}}{{peers}} IGNORE NULLS){{over}}",
        ),
        aliases=aliases,
        over=True,
    )


def _by_second(node: str, direction: str) -> AggregateFunction:
    """The value of the row with the greatest or least second argument."""
    sql = f"first({{picked}} ORDER BY {{second}} {direction}, {{row}}) FILTER (WHERE {{second}} IS NOT NULL)"
    return AggregateFunction((node,), AggregateTypes.ONE_VALUE, Computation(sql, ignores_distinct=True), arguments=2)


def _within_group(node: str, types: AggregateTypes, sql: str, percentage: str | None = None) -> AggregateFunction:
    ordering = Ordering.WITHIN_GROUP
    return AggregateFunction((node,), types, Computation(sql), percentage=percentage, ordering=ordering, distinct=False)


def _list(node: str, sql: str, *aliases: str) -> AggregateFunction:
    return AggregateFunction(
        (node,),
        AggregateTypes.ALL_VALUES,
        Computation(sql),
        aliases=aliases,
        arguments=None,
        ordering=Ordering.LIST,
    )


_LIST = "coalesce(list({listed} ORDER BY {list_order}) FILTER (WHERE {picked} IS NOT NULL), [])"


def _pair(node: str, cases: str | None = None, *, over: bool = False) -> AggregateFunction:
    """A statistic of two numbers, over the rows in which neither is NULL.

    If a value is infinite or NaN, Spark's statistic is NaN but DuckDB's raises: so DuckDB aggregates only the finite
    rows, and a CASE around it handles the others.
    """
    computed = None if cases is None else Computation(f"(CASE {cases} END)")
    return AggregateFunction((node,), AggregateTypes.PAIR_STATISTIC, computed, arguments=2, distinct=False, over=over)


_NAN = "CAST('nan' AS DOUBLE)"
_ODD = f"WHEN {{odd_x}} OR {{odd_y}} THEN {_NAN}"
_FLAT_X = "WHEN {n} = 0 OR (NOT {odd_x} AND var_pop({own_x}) = 0) THEN NULL"
_FLAT_Y = "NOT {odd_y} AND var_pop({own_y}) = 0"
_SLOPE = "covar_pop({y}, {x}) / var_pop({x})"

AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction(
        ("Count",),
        AggregateTypes.COUNT,
        Computation("count({values}){over}", PartialState.COUNT, FinalStep.COUNT),
        arguments=None,
        over=True,
    ),
    "count_if": AggregateFunction(("CountIf",), AggregateTypes.COUNT_IF, over=True),
    "approx_count_distinct": AggregateFunction(("ApproxDistinct",), AggregateTypes.DISTINCT_COUNT),
    "sum": AggregateFunction(
        ("Sum",),
        AggregateTypes.SUM_OR_AVG,
        # A sum that does not fit raises, either in DuckDB's type or in this cast.
        Computation("CAST(sum({value}){over} AS {type})", PartialState.SUM, FinalStep.EXACT_SUM),
        Computation(_DOUBLE_SUM, PartialState.DOUBLE_SUM, FinalStep.DOUBLE_SUM),
        over=True,
    ),
    "avg": AggregateFunction(
        ("Avg",),
        AggregateTypes.SUM_OR_AVG,
        Computation("sum({value}){over}", PartialState.SUM, FinalStep.EXACT_AVERAGE),
        Computation(f"({_DOUBLE_SUM}) / count({{value}}){{over}}", PartialState.DOUBLE_SUM, FinalStep.DOUBLE_AVERAGE),
        aliases=("mean",),
        over=True,
    ),
    "min": _extreme("Min", "min", PartialState.LEAST),
    "max": _extreme("Max", "max", PartialState.GREATEST),
    "bool_and": AggregateFunction(("LogicalAnd",), AggregateTypes.ALL_OR_ANY, aliases=("every",), over=True),
    "bool_or": AggregateFunction(("LogicalOr",), AggregateTypes.ALL_OR_ANY, aliases=("some",), over=True),
    "bit_and": _bits("BitwiseAndAgg", "bit_and", PartialState.BITS_AND),
    "bit_or": _bits("BitwiseOrAgg", "bit_or", PartialState.BITS_OR),
    "bit_xor": _bits("BitwiseXorAgg", "bit_xor", PartialState.BITS_XOR),
    "stddev_samp": _statistic("stddev_samp", FinalStep.STDDEV_SAMP, "Stddev", "StddevSamp", aliases=("stddev", "std")),
    "stddev_pop": _statistic("stddev_pop", FinalStep.STDDEV_POP, "StddevPop"),
    "var_samp": _statistic("var_samp", FinalStep.VAR_SAMP, "Variance", aliases=("variance",)),
    "var_pop": _statistic("var_pop", FinalStep.VAR_POP, "VariancePop"),
    "first": _first("first", "ASC", "First", "FirstValue", "AnyValue", aliases=("first_value", "any_value")),
    "last": _first("last", "DESC", "Last", "LastValue", aliases=("last_value",)),
    "max_by": _by_second("ArgMax", "DESC"),
    "min_by": _by_second("ArgMin", "ASC"),
    "percentile": AggregateFunction(
        ("Quantile",),
        AggregateTypes.PERCENTILE,
        Computation("quantile_cont({value}, {percentage})"),
        percentage="quantile",
    ),
    "median": AggregateFunction(("Median",), AggregateTypes.PERCENTILE, percentage=0.5),
    "approx_percentile": AggregateFunction(
        ("ApproxQuantile",),
        AggregateTypes.APPROX_PERCENTILE,
        Computation("quantile_disc({value}, {percentage})"),
        aliases=("percentile_approx",),
        percentage="quantile",
    ),
    "percentile_cont": _within_group(
        "PercentileCont",
        AggregateTypes.DOUBLE_OF_NUMBER,
        "quantile_cont({value}, {percentage} ORDER BY {value} {direction})",
        "this",
    ),
    "percentile_disc": _within_group(
        "PercentileDisc",
        AggregateTypes.DOUBLE_OF_NUMBER,
        "quantile_disc({value}, {percentage} ORDER BY {value} {direction})",
        "this",
    ),
    # Of equally frequent values DuckDB returns the first.
    "mode": _within_group("Mode", AggregateTypes.ONE_VALUE, "mode({value} ORDER BY {value} {direction})"),
    "corr": _pair(
        "Corr", f"WHEN {{n}} <= 1 THEN NULL {_ODD} {_FLAT_X} WHEN {_FLAT_Y} THEN NULL ELSE corr({{y}}, {{x}})"
    ),
    "covar_pop": _pair("CovarPop", f"WHEN {{n}} = 0 THEN NULL {_ODD} ELSE covar_pop({{y}}, {{x}})"),
    "covar_samp": _pair("CovarSamp", f"WHEN {{n}} <= 1 THEN NULL {_ODD} ELSE covar_samp({{y}}, {{x}})"),
    "regr_count": _pair("RegrCount", over=True),
    "regr_avgx": _pair("RegrAvgx", over=True),
    "regr_avgy": _pair("RegrAvgy", over=True),
    "regr_slope": _pair("RegrSlope", f"{_FLAT_X} {_ODD} ELSE {_SLOPE}"),
    "regr_intercept": _pair("RegrIntercept", f"{_FLAT_X} {_ODD} ELSE avg({{y}}) - {_SLOPE} * avg({{x}})"),
    "regr_r2": _pair("RegrR2", f"{_FLAT_X} WHEN {_FLAT_Y} THEN 1 {_ODD} ELSE pow(corr({{y}}, {{x}}), 2)"),
    "regr_sxx": _pair(
        "RegrSxx", f"WHEN {{n}} = 0 THEN NULL WHEN {{odd_x}} THEN {_NAN} ELSE var_pop({{own_x}}) * {{n}}"
    ),
    "regr_sxy": _pair("RegrSxy", f"WHEN {{n}} = 0 THEN NULL {_ODD} ELSE covar_pop({{y}}, {{x}}) * {{n}}"),
    "regr_syy": _pair(
        "RegrSyy", f"WHEN {{n}} = 0 THEN NULL WHEN {{odd_y}} THEN {_NAN} ELSE var_pop({{own_y}}) * {{n}}"
    ),
    "collect_list": _list("ArrayAgg", _LIST, "array_agg"),
    "collect_set": _list("ArrayUniqueAgg", _LIST),
    "listagg": _list("GroupConcat", "string_agg({listed}, {separator} ORDER BY {list_order})", "string_agg"),
}

ALIASES = {alias: name for name, function in AGGREGATES.items() for alias in function.aliases}

AGGREGATE_NAMES = sorted({*AGGREGATES, *ALIASES})
"""All names of aggregates in SQL."""


def name_of_present(name: str) -> str:
    """The function of a bound aggregate with IGNORE NULLS."""
    return f"{name}_present"


FIRST_IN_ORDER = "first_in_order"
"""The value of the first row in an order, of a query that is used as a value and has LIMIT 1; it has no name in SQL."""

COMPUTATIONS: dict[str, Computation] = {
    FIRST_IN_ORDER: Computation("first({picked} ORDER BY {list_order})"),
    **{name: function.computed for name, function in AGGREGATES.items() if function.computed is not None},
    **{
        name_of_present(name): function.computed_of_present
        for name, function in AGGREGATES.items()
        if function.computed_of_present is not None
    },
}
"""The computation of each function that an aggregate can be bound with."""

_OF_DOUBLES = {
    name: function.computed_of_doubles
    for name, function in AGGREGATES.items()
    if function.computed_of_doubles is not None
}


def computation_of(aggregate: Aggregate) -> Computation:
    """The computation of an aggregate, which may depend on the type of its argument."""
    computation = COMPUTATIONS[aggregate.function]
    if aggregate.arguments and aggregate.arguments[0].type.kind in FRACTIONAL:
        return _OF_DOUBLES.get(aggregate.function, computation)
    return computation
