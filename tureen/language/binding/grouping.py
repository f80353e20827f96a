"""GROUP BY and HAVING: keys, aggregates, and expressions over groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.join import parse_field
from tureen.language.binding.aggregate_types import BoundAggregate
from tureen.language.binding.aggregates import bind_aggregate, has_aggregate
from tureen.language.binding.bind import bind, bind_condition
from tureen.language.binding.grouping_sets import grouping_sets, has_sets, sets_of
from tureen.language.binding.outputs import beyond
from tureen.language.binding.scope import Scope
from tureen.language.binding.steps import is_step, known_of_steps, name_bounds, step_of
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import Source, offset_of
from tureen.language.tree import BIGINT, TINYINT, Call, Expr, Ref
from tureen.query import GROUPING_ID, Aggregate, Expression, Grouping, aggregate_name, key_name
from tureen.schema import Column, Kind
from tureen.window import Steps

MOST_KEYS = 63
"""The maximum number of keys of grouping sets: GROUPING_ID is a BIGINT with one bit per key."""


@dataclass(frozen=True)
class Keys:
    """The keys of GROUP BY, the steps, and the grouping sets as indexes of keys."""

    keys: list[Expr]
    steps: Steps | None
    sets: tuple[tuple[int, ...], ...] | None = None


@dataclass
class Groups:
    """The keys of a query, and the aggregates of its clauses, collected while these are bound."""

    source: Source
    keys: list[Expr]
    step_columns: frozenset[str]
    """Columns of every group of a query with steps: the start and the end of the step."""
    sets: tuple[tuple[int, ...], ...] | None = None
    aggregates: list[BoundAggregate] = field(default_factory=list)
    constant_inputs: frozenset[int] = frozenset()
    """The inputs whose values are the same in all rows: the parameters of a template."""

    def aggregate(self, scope: Scope, node: exp.Expression) -> Expr:
        """The column of an aggregate; equal aggregates share a column."""
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(scope, node)
        inner = replace(scope, clause="another aggregate", known={}, aggregate=None, over=None)
        in_filter = replace(inner, clause="FILTER")
        aggregate = bind_aggregate(
            inner, node, lambda argument: _scalar(inner, argument), lambda filter_: bind_condition(in_filter, filter_)
        )
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        number = self.aggregates.index(aggregate)
        return Ref(Column(aggregate_name(number), aggregate.type), offset_of(node))

    def _grouping(self, scope: Scope, node: exp.Expression) -> Expr:
        """GROUPING(key), which is 1 if a row is not grouped by the key, and GROUPING_ID(), the bits of all keys."""
        at, location = offset_of(node), scope.source.node(node)
        if self.sets is None:
            raise SqlError(
                f"{node.key} requires grouping sets",
                hint="write GROUP BY ROLLUP (…), CUBE (…) or GROUPING SETS (…)",
                location=location,
            )
        inner = replace(scope, clause="another aggregate", known={}, aggregate=None, over=None)
        named = [bind(inner, argument) for argument in node.expressions]
        whole = Ref(Column(GROUPING_ID, BIGINT), at)
        if isinstance(node, exp.GroupingId):
            if named and named != self.keys:
                raise SqlError(
                    "grouping_id requires all keys in order, or none", hint="write grouping_id()", location=location
                )
            return whole
        if len(named) != 1 or named[0] not in self.keys:
            raise SqlError("grouping requires one key of GROUP BY", hint="such as grouping(a)", location=location)
        bit = len(self.keys) - 1 - self.keys.index(named[0])
        return Call("grouping", (whole,), TINYINT, at, extra=f"({{0}} >> {bit}) & 1")

    def settle(self, expr: Expr) -> Expr:
        """The expression over the columns of a group: keys become columns; any other column is an error."""
        for number, key in enumerate(self.keys):
            if expr == key and key.type is not None:
                return Ref(Column(key_name(number), key.type), expr.at)
        if isinstance(expr, Ref) and not self._is_of_group(expr.column.name):
            name = parse_field(expr.column.name).column
            raise SqlError(
                f"column '{name}' must appear in GROUP BY or in an aggregate",
                hint=f"add it to GROUP BY, or write first({name}) or max({name})",
                location=self.source.location(expr.at),
            )
        if isinstance(expr, Call):
            return replace(expr, args=tuple(self.settle(arg) for arg in expr.args))
        return expr

    def names(self, named: Mapping[str, Expr]) -> Mapping[str, Expr]:
        """The visible aliases of the select list: keys take precedence over aliases, and these over columns."""
        keys = {key.column.name.lower() for key in self.keys if isinstance(key, Ref)}
        return {name: expr for name, expr in named.items() if name not in keys}

    def _is_of_group(self, name: str) -> bool:
        # No column of a stream starts with an underscore; those of further inputs start with the input's number.
        number = parse_field(name).input
        return (name.startswith("_") and (not number or number in self.constant_inputs)) or name in self.step_columns

    def grouping(self, having: Expr | None) -> Grouping:
        """The grouping of the query."""
        if self.sets is not None and len(self.keys) > MOST_KEYS:
            raise Unsupported(f"grouping sets have at most {MOST_KEYS} keys", hint="leave some out")
        keyless = not self.keys or any(not keys for keys in self.sets or ())
        # A group without keys and aggregates would be a row without columns, which Arrow cannot represent.
        aggregates = self.aggregates or ([BoundAggregate("count", (), BIGINT)] if keyless else [])
        return Grouping(
            tuple(expression_of(self.source, key) for key in self.keys),
            tuple(self._aggregate(aggregate) for aggregate in aggregates),
            None if having is None else expression_of(self.source, having),
            self.sets,
        )

    def _aggregate(self, bound: BoundAggregate) -> Aggregate:
        arguments: tuple[Expression, ...] = tuple(expression_of(self.source, arg) for arg in bound.arguments)
        return Aggregate(
            bound.function, arguments, bound.type, bound.distinct, bound.parameters, bound.order, bound.separator
        )


def is_grouped(select: exp.Select) -> bool:
    """Whether a query has groups."""
    if select.args.get("group") or select.args.get("having"):
        return True
    order = select.args.get("order")
    return any(has_aggregate(node) for node in (*select.expressions, *(order.expressions if order else ())))


def _scalar(scope: Scope, node: exp.Expression) -> Expr:
    """A bound value; raises for an ARRAY, which can neither be a key nor be aggregated."""
    value = bind(scope, node)
    if value.type is not None and value.type.kind is Kind.ARRAY:
        raise Unsupported(
            "GROUP BY and aggregates do not support ARRAY", hint="use a value", location=scope.source.node(node)
        )
    return value


def read_keys(scope: Scope, select: exp.Select, steps: Steps | None) -> Keys:
    """The keys of GROUP BY, and the steps: those in brackets, or TUMBLE, HOP or window in GROUP BY."""
    clause = select.args.get("group")
    if clause is None:
        return Keys([], steps)
    nodes = list(select.expressions) if clause.args.get("all") else list(clause.expressions)
    for node in nodes:
        if is_step(node):
            if steps is not None:
                raise SqlError(
                    "only one step window is allowed", hint="keep one of them", location=scope.source.node(node)
                )
            steps = step_of(scope, node)
            name_bounds(select, node)
    keys: list[Expr] = []
    if not has_sets(clause):
        for node in nodes:
            if not (clause.args.get("all") and has_aggregate(node)):
                _key_index(scope, node, select, keys, steps)
        return Keys(keys, steps)
    if clause.args.get("grouping_sets"):
        # GROUP BY a, b GROUPING SETS (…): the first list determines the order of the keys.
        for node in nodes:
            _key_index(scope, node, select, keys, steps)
    sets = []
    for grouping in grouping_sets(scope.source, clause):
        numbers = [_key_index(scope, node, select, keys, steps) for node in grouping]
        sets.append(tuple(sorted({number for number in numbers if number is not None})))
    _check_steps(scope, sets_of(clause))
    return Keys(keys, steps, tuple(sets))


def _key_index(
    scope: Scope, node: exp.Expression, select: exp.Select, keys: list[Expr], steps: Steps | None
) -> int | None:
    """The index of a key, which is appended to the keys if it is new; None for the step."""
    if is_step(node):
        return None
    item = _resolved(scope, node, select)
    if steps is not None and _names_step(scope, item):
        return None
    key = _scalar(replace(scope, clause="GROUP BY", known={}, aggregate=None, over=None), item)
    if key not in keys:
        keys.append(key)
    return keys.index(key)


def _check_steps(scope: Scope, nodes: list[exp.Expression]) -> None:
    """Raise for a step within grouping sets: these apply to each step."""
    for node in nodes:
        for child in node.walk():
            if isinstance(child, exp.Expression) and (is_step(child) or _names_step(scope, child)):
                raise Unsupported(
                    "a step window is not allowed in grouping sets",
                    hint="write GROUP BY TUMBLE(…), ROLLUP (…)",
                    location=scope.source.node(child),
                )


def _names_step(scope: Scope, node: exp.Expression) -> bool:
    """Whether an item of GROUP BY names the step, by which a query with steps is always grouped."""
    if not isinstance(node, exp.Column):
        return False
    name = f"{node.table}.{node.name}".lstrip(".").lower()
    return name in known_of_steps() or (name == "window" and not scope.has_column(name))


def _resolved(scope: Scope, node: exp.Expression, select: exp.Select) -> exp.Expression:
    """An item of GROUP BY: an item of the select list by position or alias, or an expression."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        number = int(node.name)
        if not 1 <= number <= len(select.expressions):
            raise beyond(scope, node, "GROUP BY", len(select.expressions))
        return _inner(scope, select.expressions[number - 1], node)
    if isinstance(node, exp.Column) and not node.table and not scope.has_column(node.name):
        for item in select.expressions:
            if item.alias.lower() == node.name.lower():
                return _inner(scope, item, node)
    return _inner(scope, node, node) if isinstance(node, exp.Alias) else node


def _inner(scope: Scope, item: exp.Expression, node: exp.Expression) -> exp.Expression:
    if has_aggregate(item):
        raise SqlError(
            "an aggregate is not allowed in GROUP BY",
            hint="group by columns; write conditions on aggregates in HAVING",
            location=scope.source.node(node),
        )
    inner = item.unalias()
    assert isinstance(inner, exp.Expression)
    return inner


def read_having(scope: Scope, select: exp.Select, groups: Groups, named: Mapping[str, Expr]) -> Expr | None:
    """The condition on groups; it may use the names of the select list."""
    clause = select.args.get("having")
    if clause is None:
        return None
    inner = replace(scope, clause="HAVING", known={**scope.known, **named}, over=None)
    return groups.settle(bind_condition(inner, clause.this))
