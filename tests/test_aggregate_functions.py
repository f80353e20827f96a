"""Every entry of the table of aggregates is bound, has a twin of the oracle's, and is computed as that says."""

from __future__ import annotations

import pytest

from tureen.aggregate_functions import (
    AGGREGATES,
    COMPUTATIONS,
    AggregateTypes,
    FinalStep,
    Ordering,
    PartialState,
    computation_of,
)
from tureen.aggregates.finals import FINALS
from tureen.aggregates.plan import plan_of
from tureen.errors import SqlError
from tureen.language import bind_query
from tureen.language.binding.aggregate_types import TYPE_RULES
from tureen.query import Aggregate, Grouping, NamedRelation
from tureen.schema import Schema
from tureen.testing.aggregates import TWINS
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
    grouping = bind_query(f"SELECT {_call(name)} AS x FROM t", lambda _: NamedRelation("t", SCHEMA)).grouping
    assert grouping is not None
    (bound,) = grouping.aggregates
    return bound


def test_every_aggregate_has_a_twin() -> None:
    assert TWINS.keys() == COMPUTATIONS.keys()


def test_every_kind_of_entry_is_used_and_has_code() -> None:
    assert {function.types for function in AGGREGATES.values()} == TYPE_RULES.keys() == set(AggregateTypes)
    computations = [
        *COMPUTATIONS.values(),
        *(function.computed_of_doubles for function in AGGREGATES.values() if function.computed_of_doubles),
    ]
    assert {computation.state for computation in computations} == {None, *PartialState}
    assert {computation.final for computation in computations} == {None, *FinalStep}
    assert FINALS.keys() == set(FinalStep)


@pytest.mark.parametrize("name", AGGREGATES)
def test_entry_without_a_computation_is_bound_as_another(name: str) -> None:
    assert (_bound(name).function == name) == (AGGREGATES[name].computed is not None)


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_with_a_partial_state_is_not_computed_from_rows(name: str) -> None:
    aggregate = _bound(name)
    has_state = computation_of(aggregate).state is not None
    assert plan_of(Grouping((), (aggregate,))).from_rows == ([] if has_state else [0])


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
        assert bind_query(text, lambda _: NamedRelation("t", SCHEMA)).overs
    else:
        with pytest.raises(SqlError):
            bind_query(text, lambda _: NamedRelation("t", SCHEMA))
