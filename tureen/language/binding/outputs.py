"""The output of a query: the select list, DISTINCT, ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from tureen.errors import Location, SqlError, UnknownColumn, Unsupported, nearest
from tureen.join import parse_field
from tureen.language.binding.bind import bind
from tureen.language.binding.scope import Scope
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import offset_of
from tureen.language.text.blocks import is_block_name
from tureen.language.tree import Const, Expr, Ref
from tureen.query import STEP_END, STEP_START, Order
from tureen.schema import INTEGRAL, Kind, name_key

Settle = Callable[[Expr], Expr]
"""Rewrites a bound expression to one over the columns of a group, in a query with groups."""

_AFTER_ITEMS = frozenset(
    {
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
    }
)
"""The words that end a select list."""


class SetOperand(Enum):
    """A query as an operand of a set operation, which gives untyped NULLs their type."""

    FIRST = "first"
    OTHER = "other"
    """The names of its columns do not matter."""


@dataclass(frozen=True, slots=True)
class Item:
    """A bound item of the select list."""

    name: str
    expr: Expr

    @property
    def is_untyped(self) -> bool:
        """Whether it is a NULL without a type."""
        return self.expr.type is None and isinstance(self.expr, Const)


def read_items(
    scope: Scope, select: exp.Select, tokens: list[Token], settle: Settle, operand: SetOperand | None = None
) -> list[Item]:
    """The items of the select list, with the names of their columns in the answer."""
    texts = _texts(scope, tokens)
    items: list[Item] = []
    for number, node in enumerate(select.expressions):
        written, at = texts[number] if len(texts) == len(select.expressions) else ("", offset_of(node))
        for item in _item(scope, node, written, settle):
            if item.is_untyped and operand is None:
                raise untyped_null(scope.source.location(at))
            taken = {other.name.lower(): other.expr for other in items}
            is_taken = item.name.lower() in taken
            if is_taken and (operand is SetOperand.OTHER or _is_of_other_input(item.expr, taken[item.name.lower()])):
                item = replace(item, name=_free_name(item.name, taken))
            if item.name.lower() in taken:
                raise SqlError(
                    f"duplicate column '{item.name}' in the select list",
                    hint="rename one of them with AS",
                    location=scope.source.node(node),
                )
            if item.expr.type is not None and item.expr.type.kind is Kind.ARRAY and select.args.get("distinct"):
                raise Unsupported(
                    "DISTINCT does not support ARRAY", hint="leave DISTINCT out", location=scope.source.location(at)
                )
            items.append(item)
    return items


def untyped_null(location: Location | None) -> SqlError:
    """The error for a NULL without a type in a select list."""
    return SqlError("an untyped NULL cannot be selected", hint="write CAST(NULL AS STRING)", location=location)


def _is_of_other_input(expr: Expr, other: Expr) -> bool:
    """Whether two expressions are columns of different inputs."""
    if not isinstance(expr, Ref) or not isinstance(other, Ref):
        return False
    return parse_field(expr.column.name).input != parse_field(other.column.name).input


def _free_name(name: str, taken: Mapping[str, Expr]) -> str:
    """The name with the first number that makes it unique, as in DuckDB: sym, sym_1, sym_2."""
    return next(free for number in count(1) if (free := f"{name}_{number}").lower() not in taken)


def _texts(scope: Scope, tokens: list[Token]) -> list[tuple[str, int]]:
    """The text of each item, which names the column of an item without an alias, and its offset."""
    texts: list[tuple[str, int]] = []
    depth, start = 0, 1
    if len(tokens) > 1 and tokens[1].token_type in (TokenType.DISTINCT, TokenType.ALL):
        start = 2
    has_from = any(token.token_type is TokenType.FROM for token in tokens)
    ends = {TokenType.FROM} if has_from else _AFTER_ITEMS
    for i, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        is_last = i + 1 == len(tokens) or tokens[i + 1].token_type in ends
        if depth == 0 and i >= start and (kind is TokenType.COMMA or is_last):
            end, at = tokens[i - (kind is TokenType.COMMA)].end, tokens[start].start
            texts.append((" ".join(scope.source.text[at : end + 1].split()), at))
            start = i + 1
        if depth == 0 and is_last:
            break
    return texts


def _item(scope: Scope, node: exp.Expression, written: str, settle: Settle) -> list[Item]:
    inner = node.unalias()
    while isinstance(inner, exp.Paren):
        inner = inner.this
    star = inner if isinstance(inner, exp.Star) else inner.this if isinstance(inner, exp.Column) else None
    if isinstance(star, exp.Star):
        if any(value for key, value in star.args.items() if key != "except_") or isinstance(node, exp.Alias):
            raise Unsupported(
                "* cannot be modified or renamed", hint="name the columns", location=scope.source.node(node)
            )
        at = offset_of(node)
        named = scope.columns_of(inner, at) if isinstance(inner, exp.Column) else scope.all_columns(at)
        named = _without(scope, named, star.args.get("except_") or [])
        columns = [Item(name, settle(expr)) for name, expr in named]
        # Rows of steps also have the bounds of their step.
        bounds = () if scope.aggregate is not None else (STEP_START, STEP_END)
        return [*columns, *(Item(name, scope.known[name]) for name in bounds if name in scope.known)]
    if isinstance(node, exp.Aliases):
        raise Unsupported("an item can have only one alias", hint="write x AS name", location=scope.source.node(node))
    is_column = isinstance(inner, exp.Column) and not is_block_name(inner.name)
    name = node.alias or (inner.name if is_column else written or inner.sql("spark"))
    assert isinstance(inner, exp.Expression)
    return [Item(name, settle(bind(scope, inner)))]


def _without(scope: Scope, named: list[tuple[str, Expr]], excluded: list[exp.Expression]) -> list[tuple[str, Expr]]:
    """The columns of `* EXCEPT (a, b)`."""
    names = [name for name, _ in named]
    keys = {name_key(name) for name in names}
    for node in excluded:
        if not isinstance(node, exp.Column) or node.table or name_key(node.name) not in keys:
            raise UnknownColumn(
                f"EXCEPT names no column of *: '{node.sql('spark')}'",
                hint=nearest(node.name, names) or f"columns are {', '.join(names)}",
                location=scope.source.node(node),
            )
    excluded_keys = {name_key(node.name) for node in excluded}
    rest = [(name, expr) for name, expr in named if name_key(name) not in excluded_keys]
    if not rest:
        raise SqlError("EXCEPT leaves no column", hint="name the columns", location=scope.source.node(excluded[0]))
    return rest


def aliases(items: list[Item]) -> Mapping[str, Expr]:
    """The expressions of a select list by name in lower case."""
    return {item.name.lower(): item.expr for item in items}


def read_order(scope: Scope, select: exp.Select, items: list[Item], settle: Settle) -> tuple[Order, ...]:
    """ORDER BY: items by name or position, or any expression. The default is ascending with NULLs first."""
    clause = select.args.get("order")
    if clause is None:
        return ()
    inner = replace(scope, clause="ORDER BY", known={**scope.known, **aliases(items)})
    orders: list[Order] = []
    if any(isinstance(node.this, exp.Var) for node in clause.expressions):
        return _order_by_all(scope, clause, items)
    for node in clause.expressions:
        if node.args.get("with_fill"):
            raise Unsupported("WITH FILL is not supported", location=scope.source.node(node))
        expr = numbered(scope, node.this, items, "ORDER BY")
        if expr is None:
            expr = settle(bind(inner, node.this))
        if select.args.get("distinct") and all(expr != item.expr for item in items):
            raise SqlError(
                "with DISTINCT, ORDER BY expressions must appear in the select list",
                hint="add it to the select list",
                location=scope.source.node(node),
            )
        _check_sortable(scope, node, [expr])
        if isinstance(expr, Const):
            continue
        orders.append(order_of(scope, node, expr))
    return tuple(orders)


def _order_by_all(scope: Scope, clause: exp.Expression, items: list[Item]) -> tuple[Order, ...]:
    """ORDER BY ALL: by all items of the select list, from the first to the last."""
    every, *others = clause.expressions
    if others:
        raise SqlError(
            "ORDER BY ALL has no other items", hint="leave ALL out", location=scope.source.node(clause.expressions[-1])
        )
    _check_sortable(scope, every, [item.expr for item in items])
    return tuple(order_of(scope, every, item.expr) for item in items if not isinstance(item.expr, Const))


def _check_sortable(scope: Scope, node: exp.Expression, values: list[Expr]) -> None:
    if any(value.type is not None and value.type.kind is Kind.ARRAY for value in values):
        raise Unsupported("ORDER BY does not support ARRAY", hint="order by a value", location=scope.source.node(node))


def order_of(scope: Scope, node: exp.Expression, expr: Expr) -> Order:
    """The order by a bound value, with the direction of a node of ORDER BY."""
    return Order(expression_of(scope.source, expr), bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def numbered(scope: Scope, node: exp.Expression, items: list[Item], clause: str) -> Expr | None:
    """The item of the select list at a position, if a node is an integer literal."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        return None
    number = int(node.name)
    if not 1 <= number <= len(items):
        raise beyond(scope, node, clause, len(items))
    return items[number - 1].expr


def beyond(scope: Scope, node: exp.Expression, clause: str, items: int) -> SqlError:
    """The error for a position beyond the select list."""
    return SqlError(
        f"{clause} position {node.name} is not in the select list",
        hint=f"write a position from 1 to {items}, or a name",
        location=scope.source.node(node),
    )


def read_count(scope: Scope, select: exp.Select, clause: str) -> int | None:
    """The number after LIMIT or OFFSET."""
    node = select.args.get(clause)
    if node is None:
        return None
    value = node.expression
    if isinstance(value, exp.Var) and value.name.upper() == "ALL":
        return None
    bound = bind(replace(scope, clause=clause.upper(), known={}, aggregate=None), value)
    if isinstance(bound, Const) and bound.type is not None and bound.type.kind in INTEGRAL:
        assert isinstance(bound.value, int)
        if bound.value >= 0:
            return bound.value
    raise SqlError(
        f"{clause.upper()} must be a non-negative integer",
        hint=f"such as {clause.upper()} 10",
        location=scope.source.node(value),
    )
