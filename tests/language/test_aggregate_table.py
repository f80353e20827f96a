"""Every entry of the table of aggregates is bound to a function that the engine and the oracle have."""

from __future__ import annotations

import pytest

from tureen.aggregates import holistic
from tureen.aggregates.bivariate import PAIRS
from tureen.errors import SqlError
from tureen.language import bind_query
from tureen.language.binding.aggregate_table import AGGREGATES, Ordering
from tureen.query import Aggregate
from tureen.schema import Schema
from tureen.testing.aggregates import aggregate as evaluate

SCHEMA = Schema.parse("b BOOLEAN, i INT, s STRING")
VALUES = {"b": True, "i": 5, "s": "x"}
_COLUMNS = {"count_if": "b", "bool_and": "b", "bool_or": "b", "listagg": "s"}


def _call(name: str) -> str:
    function = AGGREGATES[name]
    column = _COLUMNS.get(name, "i")
    if function.ordering is Ordering.WITHIN_GROUP:
        return f"{name}({'0.5' if function.percentage else ''}) WITHIN GROUP (ORDER BY {column})"
    arguments = [column] * (function.arguments or 1)
    return f"{name}({', '.join([*arguments, '0.5'] if isinstance(function.percentage, str) else arguments)})"


def _bound(name: str) -> Aggregate:
    grouping = bind_query(f"SELECT {_call(name)} AS x FROM t", lambda _: ("t", SCHEMA)).grouping
    assert grouping is not None
    (bound,) = grouping.aggregates
    return bound


@pytest.mark.parametrize("name", AGGREGATES)
def test_engine_has_the_function(name: str) -> None:
    assert _bound(name).function in holistic._SQL.keys() | PAIRS


@pytest.mark.parametrize("name", AGGREGATES)
def test_oracle_has_the_function(name: str) -> None:
    value = VALUES[_COLUMNS.get(name, "i")]
    aggregate = _bound(name)
    evaluate(aggregate, [(value,) * len(aggregate.arguments)] * 3)
    assert evaluate(aggregate, []) in (None, 0, [])


@pytest.mark.parametrize("name", AGGREGATES)
def test_over_is_supported_if_the_table_says_so(name: str) -> None:
    text = f"SELECT {_call(name)} OVER () AS x FROM t"
    if AGGREGATES[name].over:
        assert bind_query(text, lambda _: ("t", SCHEMA)).overs
    else:
        with pytest.raises(SqlError):
            bind_query(text, lambda _: ("t", SCHEMA))
