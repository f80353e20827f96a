"""FROM: the relations of a query, and how they are joined, before the conditions of ON are bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.join import JoinKind
from tureen.language.binding.coerce import coerce, common
from tureen.language.binding.scope import Relation
from tureen.language.other_engines import AS_OF
from tureen.language.source import Source, offset_of
from tureen.language.tree import Call, Expr
from tureen.schema import name_key

MAX_INPUTS = 256
"""The maximum number of relations of a query, with those of its subqueries."""

_TABLE_SUPPORTED = frozenset({"this", "alias", "joins"})
_TABLE_CLAUSES = {
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "laterals": "LATERAL VIEW",
    "hints": "a hint",
    "version": "AS OF",
}
_KINDS = {
    ("", ""): None,
    ("", "INNER"): None,
    ("", "CROSS"): None,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.LEFT,
    ("RIGHT", "OUTER"): JoinKind.LEFT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
    ("", "ANTI"): JoinKind.ANTI,
}
"""By the side and the kind of sqlglot's join; an inner join is None. The sides of a RIGHT join are exchanged."""


_CONSTANT_CONDITIONS = frozenset((TokenType.ON, word) for word in (TokenType.TRUE, TokenType.FALSE, TokenType.L_PAREN))
"""How a condition begins that sqlglot reads as a truth value, if it was written at all."""


@dataclass(frozen=True)
class Unbound:
    """Two sides of FROM, and their condition; `kind` is None for an inner join."""

    kind: JoinKind | None
    left: FromTree
    right: FromTree
    on: exp.Expression | None
    using: Mapping[str, int] = field(default_factory=dict)
    """The columns of USING, and where each is written."""
    at: int = 0


FromTree = int | Unbound


class FromInputs(Protocol):
    """The inputs of a query, to which FROM adds relations."""

    def add_relation(self, table: exp.Table) -> Relation:
        """Add a stream, a table, or a query."""

    def add_values(self, values: exp.Values) -> Relation:
        """Add rows of constants."""

    def add_row(self) -> Relation:
        """Add a row without columns."""


class FromReader:
    """Reads the relations and joins of one SELECT."""

    def __init__(self, source: Source, tokens: list[Token], inputs: FromInputs) -> None:
        """Read a SELECT of these tokens; its relations are added to `inputs`."""
        self._source, self._tokens, self._inputs = source, tokens, inputs
        self.relations: list[Relation] = []

    def read(self, select: exp.Select) -> FromTree:
        """The joins of FROM."""
        clause = select.args.get("from_")
        if clause is None:
            return self._one_row(select)
        return self._joined(clause.this, select.args.get("joins") or [])

    def _one_row(self, select: exp.Select) -> FromTree:
        """What a SELECT without FROM reads."""
        star = next((item for item in select.expressions if item.is_star), None)
        if star is not None:
            raise SqlError("* requires FROM", hint="write FROM and a stream", location=self._source.node(star))
        self.relations.append(self._inputs.add_row())
        return self.relations[-1].number

    def _joined(self, first: exp.Expression, joins: list[exp.Join]) -> FromTree:
        """Joins from left to right. A comma binds less tightly than JOIN: each item is joined by itself first."""
        items = [self._side(first)]
        for join in joins:
            if self._is_comma(join):
                items.append(self._side(join.this))
            else:
                items[-1] = self._join(items[-1], join)
        tree = items[0]
        for item in items[1:]:
            tree = Unbound(None, tree, item, None)
        return tree

    def _join(self, left: FromTree, join: exp.Join) -> FromTree:
        method = (join.args.get("method") or "").upper()
        side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
        at = offset_of(join.this)
        if (side, kind) not in _KINDS or method not in ("", "ASOF", "NATURAL"):
            words = " ".join(word for word in (method, side, kind) if word)
            raise Unsupported(f"{words} JOIN is not supported", location=self._source.location(at))
        right = self._side(join.this)
        using = {node.name: offset_of(node) for node in join.args.get("using") or ()}
        on = None if self._lacks_condition(join) else join.args.get("on")
        if method == "NATURAL":
            if on is not None or using:
                raise SqlError("NATURAL JOIN has no condition", hint="write JOIN", location=self._source.location(at))
            using = dict.fromkeys(self._common_columns(left, right), at)
        elif kind == "CROSS":
            if on is not None or using:
                raise SqlError("CROSS JOIN has no condition", hint="write JOIN", location=self._source.location(at))
        elif on is None and not using:
            raise SqlError(
                "JOIN requires a condition",
                hint="write ON and a condition, or CROSS JOIN for all combinations",
                location=self._source.location(at),
            )
        join_kind = _KINDS[side, kind]
        if method == "ASOF":
            join_kind = self._asof_kind(join_kind, side, at)
        if side == "RIGHT":
            return Unbound(join_kind, right, left, on, using, at)
        return Unbound(join_kind, left, right, on, using, at)

    def _asof_kind(self, kind: JoinKind | None, side: str, at: int) -> JoinKind:
        if kind is None:
            return JoinKind.ASOF
        if kind is JoinKind.LEFT and side == "LEFT":
            return JoinKind.ASOF_LEFT
        raise Unsupported(
            "ASOF JOIN can only be inner or LEFT", hint="exchange the sides", location=self._source.location(at)
        )

    def _side(self, node: exp.Expression) -> FromTree:
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            # A join, or a relation, in parentheses.
            inner = node.this
            if not inner.args.get("joins") and node.args.get("alias") is not None:
                inner.set("alias", node.args["alias"])
            elif node.args.get("alias") is not None:
                raise Unsupported("an alias of a join is not supported", location=self._source.node(node))
            return self._joined(inner, inner.args.get("joins") or [])
        if isinstance(node, exp.Values):
            return self._added(node, self._inputs.add_values(node))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise Unsupported(
                "FROM takes streams, tables and queries in parentheses",
                hint="write SELECT … FROM stream",
                location=self._source.node(node),
            )
        self._check_table(node)
        return self._added(node, self._inputs.add_relation(node))

    def _added(self, node: exp.Expression, relation: Relation) -> FromTree:
        taken = next((name for other in self.relations for name in relation.names[:1] if other.is_named(name)), None)
        if taken is not None:
            raise SqlError(
                f"'{taken}' is in FROM twice",
                hint=f"give each an alias, such as {taken} AS {taken}2",
                location=self._source.node(node),
            )
        self.relations.append(relation)
        return relation.number

    def _check_table(self, table: exp.Table) -> None:
        if table.args.get("db"):
            raise Unsupported(
                "a stream's name has one part", hint=f"write {table.name}", location=self._source.node(table)
            )
        for key, value in table.args.items():
            if value and key not in _TABLE_SUPPORTED:
                what = _TABLE_CLAUSES.get(key, key.strip("_").upper())
                hint = AS_OF if key == "version" else "leave it out"
                raise Unsupported(f"{what} is not supported yet", hint=hint, location=self._source.node(table))

    def _common_columns(self, left: FromTree, right: FromTree) -> tuple[str, ...]:
        names = [self._names(side) for side in (left, right)]
        return tuple(name for key, name in names[0].items() if key in names[1])

    def _names(self, tree: FromTree) -> dict[str, str]:
        """The columns of one side, by their keys."""
        numbers = set(numbers_in(tree))
        relations = [relation for relation in self.relations if relation.number in numbers]
        return {name_key(column.name): column.name for relation in relations for column in relation.schema.columns}

    def _is_comma(self, join: exp.Join) -> bool:
        """Whether a join was written as a comma, which sqlglot's tree does not say."""
        if join.args.get("on") is not None or join.args.get("using") or join.args.get("side"):
            return False
        start = offset_of(join.this)
        before = [token for token in self._tokens if token.start < start]
        while before and before[-1].token_type is TokenType.L_PAREN:
            before.pop()
        return bool(before) and before[-1].token_type is TokenType.COMMA

    def _lacks_condition(self, join: exp.Join) -> bool:
        """Whether `ON TRUE` was added by sqlglot, because the join has no condition."""
        on = join.args.get("on")
        if not isinstance(on, exp.Boolean):
            return False
        last = max((child.meta["end"] for child in join.this.walk() if "end" in child.meta), default=0)
        after = [token for token in self._tokens if token.start > last and token.token_type is not TokenType.R_PAREN]
        words = [token.token_type for token in after[:2]]
        return words[:1] != [TokenType.ON] or words[1:] not in (
            [TokenType.TRUE],
            [TokenType.FALSE],
            [TokenType.L_PAREN],
        )


def numbers_in(tree: FromTree) -> list[int]:
    """The inputs of a tree."""
    if isinstance(tree, Unbound):
        return [*numbers_in(tree.left), *numbers_in(tree.right)]
    return [tree]


def check_inner(source: Source, tree: FromTree) -> None:
    """Raise if a join of a template is not an inner join."""
    if isinstance(tree, int):
        return
    if tree.kind is not None:
        raise Unsupported(
            "register_many is supported for inner joins only",
            hint="register each query by itself",
            location=source.location(tree.at),
        )
    check_inner(source, tree.left)
    check_inner(source, tree.right)


def merged_column(source: Source, kind: JoinKind | None, left: Expr, right: Expr) -> Expr:
    """What the unqualified name of a column of USING means: the value of the side that is never NULL-extended."""
    if kind is not JoinKind.FULL:
        return left
    target = common(source, [left, right])
    assert target is not None
    sides = coerce(source, left, target), coerce(source, right, target)
    return Call("coalesce", sides, target, left.at, extra="coalesce({0}, {1})")
