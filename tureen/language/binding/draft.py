"""A query on its way from its text to its bound form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokens import Token

from tureen.errors import Location, SqlError, UnknownStream, Unsupported
from tureen.join import Join, JoinKind, JoinTree, LateralJoin
from tureen.language.binding.brackets import BracketWindow
from tureen.language.binding.conditions import Conditions, Conjuncts
from tureen.language.binding.constant_rows import ONE_ROW, read_values
from tureen.language.binding.from_clause import MAX_INPUTS, FromTree
from tureen.language.binding.outputs import Item, SetOperand, read_count
from tureen.language.binding.scope import Lookup, MergedColumn, OuterColumn, Relation, Scope
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import Source, offset_of
from tureen.language.text.blocks import COMBINED, CommonTable, is_block_name
from tureen.language.text.split import QueryParts
from tureen.language.tree import BOOLEAN, Const, Expr, Ref, columns_in
from tureen.query import (
    Expression,
    Grouping,
    Input,
    NamedRelation,
    Order,
    Output,
    Over,
    Query,
    QueryBlock,
    RelationKind,
    SetOperation,
)
from tureen.schema import Column, Schema, name_key
from tureen.window import WHOLE, Steps, Window

MAX_BLOCKS = 32
"""The maximum nesting of query blocks."""


@dataclass(frozen=True)
class Context:
    """What a block is bound in: the text, the relations that it can name, and the window of the query around it."""

    source: Source
    lookup: Lookup
    bind_block: Callable[[Context, list[Token]], QueryBlock]
    """Binds a query in parentheses, or one of WITH."""
    parameters: Schema | None = None
    """The columns of a template's VALUES."""
    window: Window = WHOLE
    tables: Mapping[str, tuple[CommonTable, Context]] = field(default_factory=dict)
    """The queries of WITH by the key of their name, each with what it is bound in."""
    depth: int = 0
    """The number of query blocks around it."""
    inputs: list[None] = field(default_factory=list)
    """An item for each input of the whole text so far, which limits their number."""
    around: Scope | None = None
    """The scope of the query around it, whose columns it cannot use."""
    operand: SetOperand | None = None
    """Which operand of a set operation the block is."""
    bind_lateral: Callable[[Draft, exp.Expression], Expr] | None = None
    """Binds a value that is computed by a query for each row of the query around it."""


@dataclass(frozen=True)
class Body:
    """What a query computes from the rows that satisfy WHERE."""

    items: list[Item]
    order: tuple[Order, ...]
    overs: list[Over]
    qualify: Expression | None
    grouping: Grouping | None = None
    steps: Steps | None = None


class Draft:
    """A SELECT whose parts are filled in, one pass after the other."""

    blocks: dict[str, list[Token]]
    """The queries in parentheses, by the names that stand for them."""
    parts: QueryParts
    """The tokens of SELECT, BEGIN, END and brackets."""
    window: Window
    brackets: list[BracketWindow]
    bracket_steps: Steps | None
    select: exp.Select
    """The tree that sqlglot made of the SELECT."""
    relations: list[Relation]
    """The relations of its own FROM."""
    tree: FromTree
    joined: JoinTree
    """The rows of FROM; after WHERE, those that satisfy it."""
    where: Expr | None
    correlated: list[Expr]
    """The conjuncts of WHERE that use columns of the query around it."""
    body: Body
    operand: SetOperand | None = None
    """Which operand of a set operation it is."""

    def __init__(
        self,
        context: Context,
        tokens: list[Token],
        conjuncts: Conjuncts | None = None,
        outer: Scope | None = None,
    ) -> None:
        """Start with the tokens of a SELECT; a subquery that is joined shares the conjuncts of the query around it."""
        self.context, self.tokens, self.outer = context, tokens, outer
        self.source = context.source
        self.conjuncts = Conjuncts(context.source, []) if conjuncts is None else conjuncts
        self.merged: dict[str, MergedColumn] = {}
        self.values: dict[str, Expr] = {}
        """The values of its subqueries by the name of their block: an item of GROUP BY may name one of SELECT."""
        self.laterals: dict[int, frozenset[str]] = {}
        """The columns that subqueries are computed from, by the numbers of their values."""
        self.scalars: dict[int, tuple[JoinTree, list[Expr], bool] | None] = {}
        """The queries that are used as values, by their numbers; those that use columns of this one with their rows and
        the conditions between them."""

    @property
    def scope(self) -> Scope:
        """What names mean in WHERE."""
        return Scope(
            self.source,
            tuple(self.relations),
            block=self.value_of_block,
            merged=self.merged,
            outer=self.outer,
            subquery=self.value_of_subquery,
            around=self.context.around,
        )

    def add_relation(self, table: exp.Table) -> Relation:
        """Add a relation of FROM to the inputs."""
        bracket = self._bracket_of(table)
        common = self.context.tables.get(name_key(table.name))
        if bracket is not None and bracket.steps is not None and (common is not None or is_block_name(table.name)):
            raise Unsupported(
                "the rows of a query have no time, so there are no steps of them",
                hint="write the steps after a stream in that query, or after a derived stream",
                location=self.source.location(bracket.at),
            )
        if is_block_name(table.name):
            return self._add_block(table, self.context.bind_block(self._within(bracket), self.blocks[table.name]))
        if common is not None:
            definition, context = common
            context = replace(context, window=self._within(bracket).window)
            block = context.bind_block(context, definition.tokens)
            location = self.source.token(definition.tokens[0]) if definition.columns else None
            return self._add_block(table, _renamed(f"WITH {definition.name}", definition.columns, block, location))
        named = self._look_up(table)
        if _alias_columns(table):
            raise Unsupported(
                f"columns of '{table.name}' cannot be renamed after its alias",
                hint="rename them in SELECT, or write FROM (SELECT a AS b FROM …)",
                location=self.source.node(table),
            )
        window = self.window if bracket is None or bracket.window is None else bracket.window
        if named.kind is RelationKind.TABLE:
            if bracket is not None:
                raise SqlError(
                    f"'{named.name}' is a table and has no window",
                    hint="write the window after a stream",
                    location=self.source.location(bracket.at),
                )
            window = WHOLE
        if bracket is not None and bracket.time is not None:
            self._check_time(named, bracket.time)
        names = (table.alias,) if table.alias else (table.name, named.name)
        return self._add(Relation(names, named.schema, named.kind, named.name, window=window))

    def add_values(self, values: exp.Values) -> Relation:
        """Add rows of constants to the inputs."""
        if self.context.parameters is not None:
            raise Unsupported(
                "register_many is not supported for VALUES",
                hint="register each query by itself",
                location=self.source.node(values),
            )
        return self._add_block(values, read_values(self.source, values))

    def add_row(self) -> Relation:
        """Add a row without columns to the inputs, for a SELECT without FROM."""
        return self._add(Relation((), Schema(()), RelationKind.BLOCK, block=ONE_ROW))

    def add_block(self, block: QueryBlock, *, is_scalar: bool = False) -> Relation:
        """Add the answer of another query to the inputs."""
        columns = tuple(Column(output.name, output.value.type) for output in block.outputs)
        return self._add(Relation((), Schema(columns), RelationKind.BLOCK, block=block, is_scalar=is_scalar))

    def add_lateral(
        self, block: Query, right: JoinTree, conjuncts: list[Expr], *, exists: bool, is_scalar: bool
    ) -> Expr:
        """Add a query of one value that is computed for each row, from the rows of `right` that satisfy conjuncts.

        With `exists`, one of them suffices; with `is_scalar`, there must not be several.
        """
        columns = tuple(Column(output.name, output.value.type) for output in block.outputs)
        relation = self._add(
            Relation((), Schema(columns), RelationKind.BLOCK, block=block, is_scalar=is_scalar, is_lateral=True)
        )
        self.scalars[relation.number] = right, conjuncts, exists
        of_conjuncts = (name for conjunct in conjuncts for name in columns_in(conjunct))
        self.laterals[relation.number] = frozenset((*block.columns, *of_conjuncts))
        (ref,) = relation.refs
        return ref

    def value_of_subquery(self, node: exp.Expression) -> Expr:
        """The truth value of EXISTS or of IN with a query."""
        assert self.context.bind_lateral is not None
        name = (node.this if isinstance(node, exp.Exists) else node.expressions[0]).name
        if name not in self.values:
            self.values[name] = self.context.bind_lateral(self, node)
        return self.values[name]

    def value_of_block(self, node: exp.Column) -> Expr:
        """The value of a query in parentheses, which may use columns of this one."""
        if node.name not in self.values:
            self.values[node.name] = self._value_of_block(node)
        return replace(self.values[node.name], at=offset_of(node))

    def _value_of_block(self, node: exp.Column) -> Expr:
        inputs = len(self.context.inputs)
        try:
            return self._value_of_all_rows(node)
        except OuterColumn:
            assert self.context.bind_lateral is not None
            del self.context.inputs[inputs:]
            return self.context.bind_lateral(self, node)

    def _value_of_all_rows(self, node: exp.Column) -> Expr:
        """The value of a query in parentheses, which is the same for all rows."""
        context = replace(self.context, window=self.window, around=replace(self.scope, block=None, subquery=None))
        block = self.context.bind_block(context, self.blocks[node.name])
        if len(block.outputs) != 1:
            raise SqlError(
                f"a query that is used as a value must have one column, got {len(block.outputs)}",
                location=self.source.node(node),
            )
        relation = self.add_block(block, is_scalar=True)
        self.scalars[relation.number] = None
        (ref,) = relation.refs
        return Ref(ref.column, offset_of(node))

    def finish(self) -> Conditions:
        """How all inputs are joined, and their clauses."""
        return self.conjuncts.finish(self.joined)

    def query(self) -> Query:
        """The bound query, once all passes are through."""
        scope = replace(self.scope, clause="the select list")
        conditions = self.finish()
        inputs = [
            Input(
                relation.relation,
                clause,
                relation.window,
                relation.kind,
                relation.block,
                relation.is_scalar,
                relation.is_lateral,
                relation.names,
            )
            for relation, clause in zip(self.conjuncts.relations, conditions.clauses, strict=True)
        ]
        return Query(
            self.source.text,
            tuple(inputs),
            tuple(self._output(item) for item in self.body.items),
            conditions.source,
            self.body.steps,
            self.body.grouping,
            distinct=bool(self.select.args.get("distinct")),
            order=self.body.order,
            limit=read_count(scope, self.select, "limit"),
            offset=read_count(scope, self.select, "offset") or 0,
            at_now=conditions.at_now,
            overs=tuple(self.body.overs),
            qualify=self.body.qualify,
            final=self.parts.final is not None,
        )

    def _output(self, item: Item) -> Output:
        expr = Const(None, BOOLEAN, item.expr.at) if item.is_untyped else item.expr
        return Output(item.name, expression_of(self.source, expr), item.is_untyped)

    def with_scalars(self) -> None:
        """Join the values of queries in parentheses: one with every row, or one that is computed for each row."""
        for number, lateral in self.scalars.items():
            if lateral is None:
                self.joined = Join(JoinKind.LEFT, self.joined, number)
            else:
                right, conjuncts, exists = lateral
                factors = [factor for conjunct in conjuncts for factor in self.conjuncts.factors(conjunct)]
                self.joined = LateralJoin(self.joined, right, tuple(factors), number, exists)
        self.scalars = {}

    def _add_block(self, table: exp.Table | exp.Values, block: QueryBlock) -> Relation:
        columns = _alias_columns(table)
        relation = self.add_block(_renamed(f"the alias '{table.alias}'", columns, block, self.source.node(table)))
        name = table.alias or ("" if is_block_name(table.name) or table.name == COMBINED else table.name)
        named = replace(relation, names=(name,) if name else ())
        self.conjuncts.relations[relation.number] = named
        return named

    def _add(self, relation: Relation) -> Relation:
        relations = self.conjuncts.relations
        if len(self.context.inputs) == MAX_INPUTS:
            raise SqlError(
                f"a query can have at most {MAX_INPUTS} inputs", hint="a query of WITH counts each time it is used"
            )
        self.context.inputs.append(None)
        numbered = replace(relation, number=len(relations))
        relations.append(numbered)
        return numbered

    def _look_up(self, table: exp.Table) -> NamedRelation:
        try:
            return self.context.lookup(table.name)
        except UnknownStream as error:
            raise UnknownStream(
                error.message, detail=error.detail, hint=error.hint, location=error.location or self.source.node(table)
            ) from None

    def _bracket_of(self, table: exp.Table) -> BracketWindow | None:
        """The window in brackets after the name or the alias of a relation."""
        alias = table.args.get("alias")
        ends = [
            node.meta.get("end") for node in (table.this, None if alias is None else alias.this) if node is not None
        ]
        return next((bracket for bracket in self.brackets if bracket.after in ends), None)

    def _check_time(self, named: NamedRelation, column: Token) -> None:
        """Raise if the column by which steps are written is not the time of their stream."""
        time = named.schema.time
        if time is None or name_key(column.text) != name_key(time):
            raise SqlError(
                f"steps of '{named.name}' are by its time{f' {time}' if time else ''}, not by '{column.text}'",
                hint=f"write {time}" if time else "write FROM stream [TUMBLE 5 MINUTES]",
                location=self.source.token(column),
            )

    def _within(self, bracket: BracketWindow | None) -> Context:
        """The context of a block in FROM."""
        window = self.window if bracket is None or bracket.window is None else bracket.window
        return replace(self.context, window=window)


def _alias_columns(table: exp.Table | exp.Values) -> list[str]:
    alias = table.args.get("alias")
    return [] if alias is None else [column.name for column in alias.args.get("columns") or []]


def _renamed(what: str, names: list[str], block: QueryBlock, location: Location | None) -> QueryBlock:
    """A block whose columns have other names, if there are any."""
    if not names:
        return block
    if len(names) != len(block.outputs):
        raise SqlError(f"{what} has {len(names)} names for {len(block.outputs)} columns", location=location)
    keys = [name_key(name) for name in names]
    if duplicate := next((name for i, name in enumerate(names) if keys[i] in keys[:i]), None):
        raise SqlError(f"{what} has a duplicate column '{duplicate}'", location=location)
    if isinstance(block, SetOperation):
        return replace(block, left=_renamed(what, names, block.left, location))
    named = zip(block.outputs, names, strict=True)
    return replace(block, outputs=tuple(replace(output, name=name) for output, name in named))
