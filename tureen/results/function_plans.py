"""EXPLAIN of user functions: where they are called, and what that costs as far as it was observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tureen.eddy.costly_factors import JoinPlacement
from tureen.functions.function_calls import functions_in
from tureen.functions.function_costs import costs, factors
from tureen.functions.user_function import UserFunction, digests_in, shown_sql
from tureen.join import InnerJoin, Join, JoinFactor, JoinOpaque, JoinTree, LateralJoin
from tureen.language.expression_text import with_names
from tureen.language.spelling import spell_name
from tureen.pot.registered import RegisteredInput
from tureen.predicate import AllOf, AnyOf, Factor, Opaque, Predicate, calls_functions
from tureen.query import Expression, Query, SetOperation
from tureen.results.query_names import QueryNames


def describe_functions(
    query: Query, leaves: Sequence[RegisteredInput], placements: Mapping[int, JoinPlacement] | None = None
) -> list[dict[str, Any]]:
    """The user functions that a query calls: their cost per call, and where they are called."""
    places: dict[str, list[str]] = {}
    called: dict[str, UserFunction] = {}

    def note(sql: str, place: str) -> None:
        for function in functions_in(sql):
            called[function.digest] = function
            places.setdefault(function.digest, []).append(place)

    for number, (entry, leaf) in enumerate(zip(query.leaves, leaves, strict=True)):
        of_input = next((index for index, leaf_number in enumerate(query.leaf_numbers) if leaf_number == number), None)
        placement = None if placements is None or of_input is None else placements.get(of_input)
        for position, factor in enumerate(entry.clause):
            for part in opaque_parts(factor):
                note(part.sql, _factor_place(entry.clause, position, part, leaf, placement))
    for condition in join_factors(query.source):
        if isinstance(condition, JoinOpaque):
            text = QueryNames(query).join_factor(condition)
            note(condition.sql, f"condition {text} of joined rows, {_observed(condition.sql)}")
    for block in blocks_of(query):
        for expression in _calling(block):
            text = QueryNames(block).expression(expression)
            note(expression.sql, f"expression {text} of rows that satisfy WHERE, when asked for")
    return [
        {
            "name": function.name,
            "signature": function.signature,
            "calls": costs.of(digest).calls,
            "nanoseconds_per_call": costs.of(digest).nanoseconds,
            "called_in": list(dict.fromkeys(places[digest])),
        }
        for digest, function in called.items()
    ]


def _factor_place(
    clause: Sequence[Factor], position: int, part: Opaque, leaf: RegisteredInput, placement: JoinPlacement | None
) -> str:
    others = sum(not calls_functions(factor) for factor in clause)
    when = "at arrival" if leaf.number is not None else "when asked for"
    where = f", {placement.reason}" if placement is not None else ""
    after = f" after {others} other factor{'s' * (others != 1)}" if others else ""
    text = with_names(part.text or shown_sql(part.sql), spell_name)
    return f"factor {position + 1} {text}{after}, {when}{where}, {_observed(part.sql)}"


def _observed(sql: str) -> str:
    profile = factors.profile(sql)
    return f"{profile.cost / 1000:.3g} µs per tuple, {100 * profile.pass_rate:.0f} % pass"


def opaque_parts(predicate: Predicate) -> Iterator[Opaque]:
    """The parts of a predicate that call functions."""
    if isinstance(predicate, AllOf | AnyOf):
        for part in predicate.parts:
            yield from opaque_parts(part)
    elif isinstance(predicate, Opaque) and predicate.functions:
        yield predicate


def join_factors(tree: JoinTree) -> Iterator[JoinFactor]:
    """The conditions of a join tree."""
    match tree:
        case InnerJoin(sides, factors_of_join):
            yield from factors_of_join
            for side in sides:
                yield from join_factors(side)
        case Join(_, left, right, factors_of_join) | LateralJoin(left, right, factors_of_join):
            yield from factors_of_join
            yield from join_factors(left)
            yield from join_factors(right)


def blocks_of(query: Query) -> Iterator[Query]:
    """A query and all queries within it."""
    yield query
    for entry in query.inputs:
        blocks = [] if entry.block is None else [entry.block]
        while blocks:
            block = blocks.pop()
            if isinstance(block, SetOperation):
                blocks += [block.right, block.left]
            elif isinstance(block, Query):
                yield from blocks_of(block)


def _calling(query: Query) -> Iterator[Expression]:
    """The expressions of a query, without those of its blocks, that call functions."""
    grouping = query.grouping
    conditions = [query.at_now, query.qualify, None if grouping is None else grouping.having]
    values = [output.value for output in query.outputs] + [item.value for item in query.order]
    values += [value for over in query.overs for value in over.over_rows]
    values += [] if grouping is None else list(grouping.over_rows)
    for expression in [*values, *(condition for condition in conditions if condition is not None)]:
        if any(digests_in(expression.sql)):
            yield expression
