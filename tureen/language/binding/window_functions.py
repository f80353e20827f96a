"""Window functions: `function(…) OVER (PARTITION BY … ORDER BY … frame)`, and the WINDOW clause.

Aggregates over a frame are bound as they are without OVER. The other functions, their types and what may be said of
their frames are in the table below, as Spark has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.aggregates import bind_aggregate, is_aggregate
from tureen.language.binding.bind import bind, bind_condition
from tureen.language.binding.coerce import explicit_cast
from tureen.language.binding.frames import read_frame
from tureen.language.binding.outputs import Settle, order_of
from tureen.language.binding.ranking import RANKS, WRAPPERS, function_name, is_ranking
from tureen.language.binding.scope import Scope
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import offset_of
from tureen.language.tree import INT, Const, Expr, Ref
from tureen.query import Aggregate, Expression, Frame, Order, Over, over_name
from tureen.schema import Column, Kind

AGGREGATES = frozenset(
    {"count", "sum", "avg", "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop"}
    | {"first", "last", "first_present", "last_present"}
)
"""The aggregates that may be taken over a frame, by the names that they are bound with."""

_OFFSETS = frozenset({"lag", "lead"})
_RANKED = Frame(True, None, 0)
"""The only frame that may be written for a rank, and changes nothing."""


@dataclass
class Windows:
    """The window functions that a query's clauses ask for, as they are met."""

    settle: Settle
    named: Mapping[str, exp.Window] = field(default_factory=dict)
    """The windows of the WINDOW clause, by their names in lower case."""
    overs: list[Over] = field(default_factory=list)

    def bind(self, scope: Scope, node: exp.Window) -> Expr:
        """The column that holds a window function; one that was asked for before is not computed twice."""
        inner = replace(scope, clause="another window function", over=None)
        window = self._window(scope, node)
        _check_window(scope, window)
        partition = tuple(self._value(inner, one) for one in window.args.get("partition_by") or ())
        ordered = window.args.get("order")
        order = tuple(
            order_of(inner, one, self.settle(bind(inner, one.this))) for one in (ordered.expressions if ordered else ())
        )
        frame = read_frame(inner, window, order)
        over = self._over(inner, node, partition, order, frame)
        if any(value.type.kind is Kind.ARRAY for value in over.over_rows):
            raise Unsupported("a list is a result, and nothing in a window function", place=scope.source.node(node))
        if over not in self.overs:
            self.overs.append(over)
        return Ref(Column(over_name(self.overs.index(over)), over.call.type), offset_of(node))

    def qualify(self, scope: Scope, select: exp.Select, named: Mapping[str, Expr]) -> Expression | None:
        """The condition of QUALIFY; it may use the names of the select list."""
        clause = select.args.get("qualify")
        if clause is None:
            return None
        inner = replace(scope, clause="QUALIFY", known={**scope.known, **named})
        condition = expression_of(scope.source, self.settle(bind_condition(inner, clause.this)))
        if not self.overs:
            raise SqlError(
                "QUALIFY is a condition on window functions, and the query has none",
                hint="use WHERE, or HAVING for a condition on groups",
                place=scope.source.node(clause.this),
            )
        return condition

    def _window(self, scope: Scope, node: exp.Window) -> exp.Window:
        """The window after OVER: written out, or one of the WINDOW clause."""
        name = node.args.get("alias")
        if name is None:
            return node
        found = self.named.get(name.name.lower())
        if found is None:
            raise SqlError(
                f"there is no window '{name.name}'",
                hint=f"write WINDOW {name.name} AS (…) after the other clauses",
                place=scope.source.node(node),
            )
        if node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
            raise Unsupported(
                "a named window is taken as it is", hint="write OVER and its name alone", place=scope.source.node(node)
            )
        return found

    def _value(self, scope: Scope, node: exp.Expression) -> Expression:
        return expression_of(scope.source, self.settle(bind(scope, node)))

    def _over(
        self,
        scope: Scope,
        node: exp.Window,
        partition: tuple[Expression, ...],
        order: tuple[Order, ...],
        frame: Frame | None,
    ) -> Over:
        call = node.this
        name = function_name(scope.source, call)
        if is_ranking(call):
            if not order:
                raise SqlError(
                    f"{name} needs an order",
                    hint=f"write {name}(…) OVER (ORDER BY …)",
                    place=scope.source.node(node),
                )
            if name != "nth_value" and not (frame is None or (frame == _RANKED and name not in _OFFSETS)):
                raise SqlError(f"{name} takes no frame", hint="leave it out", place=scope.source.node(node))
            bound = self._ranking(scope, call, name)
            return Over(bound, partition, order, _or_default(frame, order) if name == "nth_value" else None)
        return Over(self._aggregate(scope, call, name), partition, order, _or_default(frame, order))

    def _aggregate(self, scope: Scope, call: exp.Expression, name: str) -> Aggregate:
        if not is_aggregate(call):
            raise SqlError(
                f"{name} is no window function",
                hint=f"window functions are {', '.join(sorted(RANKS))} and the aggregates",
                place=scope.source.node(call),
            )
        where = replace(scope, clause="FILTER")
        found = bind_aggregate(
            scope,
            call,
            lambda one: self.settle(bind(scope, one)),
            lambda one: self.settle(bind_condition(where, one)),
        )
        if found.distinct:
            raise Unsupported(
                "DISTINCT is not supported in a window function", hint="leave it out", place=scope.source.node(call)
            )
        if found.function not in AGGREGATES:
            raise Unsupported(
                f"{name} is not supported as a window function", hint="use GROUP BY", place=scope.source.node(call)
            )
        arguments = tuple(expression_of(scope.source, one) for one in found.arguments)
        return Aggregate(found.function, arguments, found.type, parameters=found.parameters)

    def _ranking(self, scope: Scope, call: exp.Expression, name: str) -> Aggregate:
        """A function that is no aggregate: a rank, or the value of another row."""
        present = False
        while isinstance(call, WRAPPERS):
            if isinstance(call, exp.Filter | exp.WithinGroup):
                word = "FILTER" if isinstance(call, exp.Filter) else "WITHIN GROUP"
                raise SqlError(f"{name} takes no {word}", hint="leave it out", place=scope.source.node(call))
            present = present or isinstance(call, exp.IgnoreNulls)
            call = call.this
        rank = RANKS[name]
        if rank.type is not None and present:
            raise SqlError(f"{name} takes no IGNORE NULLS", hint="leave it out", place=scope.source.node(call))
        if rank.type is not None and name != "ntile" and any(call.args.values()):
            raise SqlError(f"{name} takes no arguments", hint=f"write {name}()", place=scope.source.node(call))
        if rank.type is not None:
            bucket = () if name != "ntile" else (_constant(scope, call, call.this, name, 1, least=1),)
            return Aggregate(name, (), rank.type, parameters=bucket)
        value = self.settle(bind(scope, call.this))
        default = call.args.get("default")
        arguments = [value]
        if default is not None and value.type is not None:
            arguments.append(explicit_cast(scope.source, self.settle(bind(scope, default)), value.type))
        values = tuple(expression_of(scope.source, one) for one in arguments)
        least = 1 if name == "nth_value" else None
        offset = _constant(scope, call, call.args.get("offset"), name, None if least else 1, least=least)
        if name in _OFFSETS and present and not offset:
            raise SqlError(f"{name} by 0 takes no IGNORE NULLS", hint="leave it out", place=scope.source.node(call))
        if name in _OFFSETS and offset < 0:
            name, offset = "lead" if name == "lag" else "lag", -offset
        return Aggregate(f"{name}_present" if present else name, values, values[0].type, parameters=(offset,))


def read_windows(scope: Scope, select: exp.Select, settle: Settle) -> Windows:
    """The windows of the WINDOW clause, for functions that name them."""
    named: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or ():
        if window.args.get("alias"):
            raise Unsupported("a window that extends another is not supported", place=scope.source.node(window))
        if window.name.lower() in named:
            raise SqlError(f"duplicate window '{window.name}'", place=scope.source.node(window))
        named[window.name.lower()] = window
    return Windows(settle, named)


def _or_default(frame: Frame | None, order: tuple[Order, ...]) -> Frame:
    """The frame, or Spark's default: up to the current row and its equals, or all rows where there is no order."""
    if frame is not None:
        return frame
    return Frame(False, None, 0) if order else Frame(True, None, None)


def _check_window(scope: Scope, window: exp.Window) -> None:
    if window.args.get("first") is not None:
        raise Unsupported("KEEP is not supported", place=scope.source.node(window))
    if str(window.args.get("over") or "OVER").upper() != "OVER":
        raise Unsupported("a window function is written with OVER", place=scope.source.node(window))


def _constant(
    scope: Scope, call: exp.Expression, node: exp.Expression | None, name: str, default: int | None, least: int | None
) -> int:
    """The number of buckets or rows that a function is given: an INT that is written out."""
    if node is None and default is not None:
        return default
    bound = None if node is None else bind(scope, node)
    given = bound.value if isinstance(bound, Const) and bound.type == INT else None
    if isinstance(given, int) and (least is None or given >= least):
        return given
    what = "an INT that is written out" + ("" if least is None else f", from {least} on")
    raise SqlError(f"{name} takes {what}", hint="such as 2", place=scope.source.node(call if node is None else node))
