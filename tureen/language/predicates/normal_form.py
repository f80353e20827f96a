"""Normal form: clauses with the same meaning become equal, as far as simple rules tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tureen.language.predicates.intervals import Domain, Ranges, domain_of, intersection, normal, union
from tureen.predicate import (
    EVERYTHING,
    NEVER,
    AllOf,
    AnyOf,
    Clause,
    Compare,
    IsNull,
    Like,
    Opaque,
    Predicate,
    Within,
    calls_functions,
    dump_clause,
)
from tureen.schema import Schema

ALWAYS = AllOf()

# Cheapest first, so that an expression that may raise is evaluated last.
_ORDER: tuple[type, ...] = (Within, IsNull, Compare, Like, AnyOf, AllOf, Opaque)


def clause_of(schema: Schema, predicate: Predicate) -> Clause:
    """The factors of a predicate in canonical order; (NEVER,) if it cannot hold, () if it always does."""
    simple = simplify(schema, predicate)
    return simple.parts if isinstance(simple, AllOf) else (simple,)


def simplify(schema: Schema, predicate: Predicate) -> Predicate:
    """The predicate with its parts merged, without duplicates, in canonical order."""
    match predicate:
        case AllOf(parts):
            return _all(schema, [simplify(schema, part) for part in parts])
        case AnyOf(parts):
            return _any(schema, [simplify(schema, part) for part in parts])
        case Within(name, intervals):
            ranges = normal(_domain(schema, name), intervals)
            return Within(name, ranges) if ranges else NEVER
    return predicate


def _all(schema: Schema, parts: list[Predicate]) -> Predicate:
    flat = [factor for part in parts for factor in (part.parts if isinstance(part, AllOf) else (part,))]
    merged = _merge(flat, lambda name, a, b: intersection(_domain(schema, name), a, b))
    nulls = {part.column for part in merged if isinstance(part, IsNull)}
    for part in merged:
        if part == NEVER or (isinstance(part, Within) and (not part.intervals or part.column in nulls)):
            return NEVER
    return merged[0] if len(merged) == 1 else AllOf(_ordered(merged))


def _any(schema: Schema, parts: list[Predicate]) -> Predicate:
    flat = [factor for part in parts for factor in (part.parts if isinstance(part, AnyOf) else (part,))]
    ranges_by_column: dict[str, list[Ranges]] = {}
    for part in flat:
        if isinstance(part, Within):
            ranges_by_column.setdefault(part.column, []).append(part.intervals)
    unions = {name: union(_domain(schema, name), ranges) for name, ranges in ranges_by_column.items()}
    merged: list[Predicate] = [Within(name, ranges) for name, ranges in unions.items() if ranges]
    merged += [part for part in flat if not isinstance(part, Within)]
    nulls = {part.column for part in merged if isinstance(part, IsNull)}
    for part in merged:
        if part == ALWAYS:
            return ALWAYS
        if isinstance(part, Within) and part.intervals == (EVERYTHING,) and part.column in nulls:
            return ALWAYS
    return merged[0] if len(merged) == 1 else AnyOf(_ordered(merged))


def _merge(parts: Iterable[Predicate], both: Callable[[str, Ranges, Ranges], Ranges]) -> list[Predicate]:
    """The parts, with the intervals of the same column merged."""
    ranges: dict[str, Ranges] = {}
    rest: list[Predicate] = []
    for part in parts:
        if not isinstance(part, Within):
            rest.append(part)
        elif part.column in ranges:
            ranges[part.column] = both(part.column, ranges[part.column], part.intervals)
        else:
            ranges[part.column] = part.intervals
    return [Within(name, intervals) for name, intervals in ranges.items()] + rest


def _ordered(parts: Iterable[Predicate]) -> tuple[Predicate, ...]:
    texts = {dump_clause((part,)): part for part in parts}
    return tuple(texts[text] for text in sorted(texts, key=lambda text: (*_cost(texts[text]), text)))


def _cost(part: Predicate) -> tuple[bool, int]:
    """What comes later: user functions after everything else, then what may raise."""
    return calls_functions(part), _ORDER.index(type(part))


def _domain(schema: Schema, name: str) -> Domain:
    column = schema.find(name)
    assert column is not None
    return domain_of(column.type)
