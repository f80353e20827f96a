"""Window functions: `function(…) OVER (PARTITION BY … ORDER BY … frame)`, and the WINDOW clause.

Aggregates over a frame are bound as without OVER. The other functions are in `ranking.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.aggregates import bind_aggregate, is_aggregate, supports_over
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

_OFFSETS = frozenset({"lag", "lead"})
_RANKED = Frame(True, None, 0)
"""The only frame that Spark allows for a rank; it has no effect."""


@dataclass
class Windows:
    """The window functions of a query's clauses, collected while these are bound."""

    settle: Settle
    named: Mapping[str, exp.Window] = field(default_factory=dict)
    """The windows of the WINDOW clause, by name in lower case."""
    overs: list[Over] = field(default_factory=list)

    def bind(self, scope: Scope, node: exp.Window) -> Expr:
        """The column of a window function; equal calls share a column."""
        inner = replace(scope, clause="another window function", over=None)
        window = self._window(scope, node)
        _check_window(scope, window)
        partition = tuple(self._value(inner, key) for key in window.args.get("partition_by") or ())
        ordered = window.args.get("order")
        order = tuple(
            order_of(inner, key, self.settle(bind(inner, key.this))) for key in (ordered.expressions if ordered else ())
        )
        frame = read_frame(inner, window, order)
        over = self._over(inner, node, partition, order, frame)
        if any(value.type.kind is Kind.ARRAY for value in over.over_rows):
            raise Unsupported("an ARRAY is not allowed in a window function", location=scope.source.node(node))
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
                "QUALIFY requires a window function",
                hint="use WHERE, or HAVING for a condition on groups",
                location=scope.source.node(clause.this),
            )
        return condition

    def _window(self, scope: Scope, node: exp.Window) -> exp.Window:
        """The window after OVER: inline, or one of the WINDOW clause."""
        name = node.args.get("alias")
        if name is None:
            return node
        window = self.named.get(name.name.lower())
        if window is None:
            raise SqlError(
                f"window '{name.name}' does not exist",
                hint=f"write WINDOW {name.name} AS (…) after the other clauses",
                location=scope.source.node(node),
            )
        if node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
            raise Unsupported(
                "a named window cannot be modified",
                hint="write OVER and its name alone",
                location=scope.source.node(node),
            )
        return window

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
                    f"{name} requires ORDER BY",
                    hint=f"write {name}(…) OVER (ORDER BY …)",
                    location=scope.source.node(node),
                )
            if name != "nth_value" and not (frame is None or (frame == _RANKED and name not in _OFFSETS)):
                raise SqlError(
                    f"{name} does not support a frame", hint="leave it out", location=scope.source.node(node)
                )
            bound = self._ranking(scope, call, name)
            return Over(bound, partition, order, _or_default(frame, order) if name == "nth_value" else None)
        return Over(self._aggregate(scope, call, name), partition, order, _or_default(frame, order))

    def _aggregate(self, scope: Scope, call: exp.Expression, name: str) -> Aggregate:
        if not is_aggregate(call):
            raise SqlError(
                f"{name} is not a window function",
                hint=f"window functions are {', '.join(sorted(RANKS))} and the aggregates",
                location=scope.source.node(call),
            )
        in_filter = replace(scope, clause="FILTER")
        aggregate = bind_aggregate(
            scope,
            call,
            lambda argument: self.settle(bind(scope, argument)),
            lambda filter_: self.settle(bind_condition(in_filter, filter_)),
        )
        if aggregate.distinct:
            raise Unsupported(
                "DISTINCT is not supported in a window function", hint="leave it out", location=scope.source.node(call)
            )
        if not supports_over(call):
            raise Unsupported(
                f"{name} is not supported as a window function", hint="use GROUP BY", location=scope.source.node(call)
            )
        arguments = tuple(expression_of(scope.source, argument) for argument in aggregate.arguments)
        return Aggregate(aggregate.function, arguments, aggregate.type, parameters=aggregate.parameters)

    def _ranking(self, scope: Scope, call: exp.Expression, name: str) -> Aggregate:
        """A rank, or a value of another row."""
        ignores_nulls = False
        while isinstance(call, WRAPPERS):
            if isinstance(call, exp.Filter | exp.WithinGroup):
                word = "FILTER" if isinstance(call, exp.Filter) else "WITHIN GROUP"
                raise SqlError(f"{name} does not support {word}", hint="leave it out", location=scope.source.node(call))
            ignores_nulls = ignores_nulls or isinstance(call, exp.IgnoreNulls)
            call = call.this
        rank = RANKS[name]
        if rank.type is not None and ignores_nulls:
            raise SqlError(
                f"{name} does not support IGNORE NULLS", hint="leave it out", location=scope.source.node(call)
            )
        if rank.type is not None and name != "ntile" and any(call.args.values()):
            raise SqlError(f"{name} takes no arguments", hint=f"write {name}()", location=scope.source.node(call))
        if rank.type is not None:
            bucket = () if name != "ntile" else (_constant(scope, call, call.this, name, 1, least=1),)
            return Aggregate(name, (), rank.type, parameters=bucket)
        value = self.settle(bind(scope, call.this))
        default = call.args.get("default")
        arguments = [value]
        if default is not None and value.type is not None:
            arguments.append(explicit_cast(scope.source, self.settle(bind(scope, default)), value.type))
        values = tuple(expression_of(scope.source, argument) for argument in arguments)
        least = 1 if name == "nth_value" else None
        offset = _constant(scope, call, call.args.get("offset"), name, None if least else 1, least=least)
        if name in _OFFSETS and ignores_nulls and not offset:
            raise SqlError(
                f"{name} with offset 0 does not support IGNORE NULLS",
                hint="leave it out",
                location=scope.source.node(call),
            )
        if name in _OFFSETS and offset < 0:
            name, offset = "lead" if name == "lag" else "lag", -offset
        return Aggregate(f"{name}_present" if ignores_nulls else name, values, values[0].type, parameters=(offset,))


def read_windows(scope: Scope, select: exp.Select, settle: Settle) -> Windows:
    """Read the WINDOW clause."""
    named: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or ():
        if window.args.get("alias"):
            raise Unsupported("a window that extends another is not supported", location=scope.source.node(window))
        if window.name.lower() in named:
            raise SqlError(f"duplicate window '{window.name}'", location=scope.source.node(window))
        named[window.name.lower()] = window
    return Windows(settle, named)


def _or_default(frame: Frame | None, order: tuple[Order, ...]) -> Frame:
    """The frame, or Spark's default: up to the current row and its peers, or all rows without ORDER BY."""
    if frame is not None:
        return frame
    return Frame(False, None, 0) if order else Frame(True, None, None)


def _check_window(scope: Scope, window: exp.Window) -> None:
    if window.args.get("first") is not None:
        raise Unsupported("KEEP is not supported", location=scope.source.node(window))
    if str(window.args.get("over") or "OVER").upper() != "OVER":
        raise Unsupported("a window function requires OVER", location=scope.source.node(window))


def _constant(
    scope: Scope, call: exp.Expression, node: exp.Expression | None, name: str, default: int | None, least: int | None
) -> int:
    """The number of buckets or rows of a function: a constant INT."""
    if node is None and default is not None:
        return default
    bound = None if node is None else bind(scope, node)
    value = bound.value if isinstance(bound, Const) and bound.type == INT else None
    if isinstance(value, int) and (least is None or value >= least):
        return value
    expected = "a constant INT" + ("" if least is None else f" of at least {least}")
    raise SqlError(
        f"{name} requires {expected}", hint="such as 2", location=scope.source.node(call if node is None else node)
    )
