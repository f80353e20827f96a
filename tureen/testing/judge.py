"""The same value in Tureen's SQL and in the SQL of a judge: Spark or DuckDB, over a table of all tuples.

The judge's table has an additional column, the tuple's number by time and then arrival. Expressions that depend on the
order of rows use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tureen.schema import INTEGRAL, Type

Judge = Literal["spark", "duckdb"]
"""The engine that answers are compared with."""

RANK = "_rank"
"""The column of the judge's table: the tuple's number by time and then arrival."""


@dataclass(frozen=True)
class Formula:
    """A value: its text in Tureen's SQL and in the judge's, its type, and whether it is exact."""

    sql: str
    judge_sql: str
    type: Type
    exact: bool = True
    """Whether every correct evaluation returns the same bits; sums of DOUBLE depend on their order."""


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate call; the text after `|` in its name follows the parentheses."""

    function: str
    arguments: tuple[Formula, ...]
    type: Type
    distinct: bool = False
    parameter: str = ""
    where: str = ""
    exact: bool = True

    @property
    def sql(self) -> str:
        """The call in Tureen's SQL."""
        name, _, after = self.function.partition("|")
        inner = ", ".join(
            [*(argument.sql for argument in self.arguments), *([self.parameter] if self.parameter else [])]
        )
        text = f"{name}({'DISTINCT ' if self.distinct else ''}{inner or '*'})"
        text += f" FILTER (WHERE {self.where})" if self.where else ""
        return text + (f" {after}" if after else "")


def judge_sql(call: AggregateCall, judge: Judge | None) -> str:
    """The call in the judge's SQL, or in Tureen's if there is no judge."""
    if judge is None:
        return call.sql
    arguments, name = [argument.judge_sql for argument in call.arguments], call.function
    wheres = [call.where] if call.where else []
    if name.startswith(("first", "any_value", "last")):
        wheres += [f"({arguments[0]}) IS NOT NULL"] if "IGNORE" in name else []
        text = _first(arguments[0], judge) if name.startswith(("first", "any")) else _last(arguments[0], judge)
    elif name in ("max_by", "min_by"):
        wheres += [f"({arguments[1]}) IS NOT NULL"]
        text = _by(name, arguments, judge)
    elif name in _LISTS:
        wheres += [f"({arguments[0]}) IS NOT NULL"]
        return _listed(call, arguments, judge, wheres)
    elif judge == "spark":
        text = _in_spark(call, arguments)
    else:
        text, conditions = _in_duckdb(call, arguments)
        wheres += conditions
    filtered = f" FILTER (WHERE {' AND '.join(f'({condition})' for condition in wheres)})" if wheres else ""
    # DuckDB's sum of integers is a HUGEINT.
    widens = judge == "duckdb" and name == "sum" and call.type.kind in INTEGRAL
    return f"CAST({text}{filtered} AS BIGINT)" if widens else text + filtered


_LISTS = ("collect_list", "array_agg", "collect_set", "listagg", "mode")


def _listed(call: AggregateCall, arguments: list[str], judge: Judge, wheres: list[str]) -> str:
    """Values in row order, or ascending for sets."""
    filtered = f" FILTER (WHERE {' AND '.join(f'({condition})' for condition in wheres)})"
    value = arguments[0]
    if call.function == "mode":
        order = f"mode() WITHIN GROUP (ORDER BY {value})" if judge == "spark" else f"mode({value} ORDER BY {value})"
        return order + filtered
    if call.function == "listagg":
        order = f"{value}, {call.parameter}) WITHIN GROUP (ORDER BY {RANK}"
        inner = f"listagg({order})" if judge == "spark" else f"string_agg({value}, {call.parameter} ORDER BY {RANK})"
        return inner + filtered
    if judge == "spark":
        if call.function == "collect_set":
            return f"sort_array(collect_set({value}){filtered})"
        pairs = f"array_sort(collect_list(struct({RANK} AS r, {value} AS v)){filtered})"
        return f"transform({pairs}, pair -> pair.v)"
    inner = f"DISTINCT {value} ORDER BY {value}" if call.function == "collect_set" else f"{value} ORDER BY {RANK}"
    return f"coalesce(list({inner}){filtered}, [])"


def _first(value: str, judge: Judge) -> str:
    return f"min_by({value}, {RANK})" if judge == "spark" else f"first({value} ORDER BY {RANK})"


def _last(value: str, judge: Judge) -> str:
    return f"max_by({value}, {RANK})" if judge == "spark" else f"last({value} ORDER BY {RANK})"


def _by(name: str, arguments: list[str], judge: Judge) -> str:
    """The earliest row of the greatest or least, which neither judge guarantees by itself."""
    value, other = arguments
    greatest = name == "max_by"
    if judge == "spark":
        return f"{name}({value}, struct({other}, {'-' if greatest else ''}{RANK}))"
    return f"first({value} ORDER BY {other} {'DESC' if greatest else 'ASC'}, {RANK})"


def _in_spark(call: AggregateCall, arguments: list[str]) -> str:
    if call.function == "approx_count_distinct":
        return f"count(DISTINCT {arguments[0]})"
    inner = ", ".join([*arguments, *([call.parameter] if call.parameter else [])])
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{inner or '*'})"


def _in_duckdb(call: AggregateCall, arguments: list[str]) -> tuple[str, list[str]]:
    """The aggregate, and conditions for its FILTER."""
    distinct = "DISTINCT " if call.distinct else ""
    match call.function:
        case "count" if len(arguments) > 1:
            pair = f"({', '.join(arguments)})"
            return f"count({distinct}{pair})", [f"({argument}) IS NOT NULL" for argument in arguments]
        case "count_if":
            # DuckDB's count_if returns NULL if the filter removes all rows.
            return "count(*)", [arguments[0]]
        case "approx_count_distinct":
            return f"count(DISTINCT {arguments[0]})", []
        case "approx_percentile":
            return f"quantile_disc({arguments[0]}, {call.parameter})", []
        case "percentile" | "median":
            return f"quantile_cont(CAST({arguments[0]} AS DOUBLE), {call.parameter or 0.5})", []
        case "covar_pop" | "covar_samp":
            return f"{call.function}({', '.join(arguments)})", []
        case "every":
            return f"bool_and({arguments[0]})", []
        case "std":
            return f"stddev({arguments[0]})", []
    return f"{call.function}({distinct}{arguments[0] if arguments else '*'})", []
