"""Binding a query, pass by pass: `PASSES` is the way from a text to its bound form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from tureen.errors import SqlError, UnknownStream, Unsupported
from tureen.language.binding.bind import bind_condition
from tureen.language.binding.brackets import read_brackets
from tureen.language.binding.conditions import Conditions, split_conditions
from tureen.language.binding.grouping import Groups, is_grouped, read_having, read_keys
from tureen.language.binding.outputs import Item, aliases, read_count, read_items, read_order
from tureen.language.binding.scope import PARAMETERS, Lookup, Relation, Scope
from tureen.language.binding.select import check_select, stream_of
from tureen.language.binding.steps import known_of_steps
from tureen.language.binding.window_functions import read_windows
from tureen.language.duckdb.expressions import expression_of
from tureen.language.source import Source
from tureen.language.text.depth import parser_stack
from tureen.language.text.parse import parse_select
from tureen.language.text.split import QueryParts, split, tokenize
from tureen.language.text.window_bounds import read_window
from tureen.language.tree import Expr, Ref
from tureen.query import (
    STEP_END,
    STEP_START,
    VALUES_INPUT,
    Expression,
    Grouping,
    Input,
    Order,
    Output,
    Over,
    Query,
    RelationKind,
)
from tureen.schema import Schema
from tureen.window import WHOLE, RowsBack, Steps, Window


class Draft:
    """A query on its way from its text to its bound form; each pass fills in one part of it."""

    parts: QueryParts
    """The tokens of SELECT, BEGIN, END and brackets."""
    window: Window
    bracket_steps: Steps | None
    select: exp.Select
    """The tree that sqlglot made of the SELECT."""
    relations: tuple[Relation, ...]
    where: Expr | None
    conditions: Conditions
    body: Body

    def __init__(self, text: str, lookup: Lookup, parameters: Schema | None) -> None:
        """Start with a text; `parameters` are the columns of a template's VALUES."""
        self.source = Source(text)
        self.lookup = lookup
        self.parameters = parameters

    @property
    def scope(self) -> Scope:
        """What names mean in WHERE."""
        return Scope(self.source, self.relations)

    def query(self) -> Query:
        """The bound query, once all passes are through."""
        scope = replace(self.scope, clause="the select list")
        inputs = [
            Input(
                relation.relation,
                clause,
                self.window if relation.kind is RelationKind.STREAM else WHOLE,
                relation.kind,
            )
            for relation, clause in zip(self.relations, self.conditions.clauses, strict=True)
        ]
        return Query(
            self.source.text,
            tuple(inputs),
            tuple(Output(item.name, expression_of(self.source, item.expr)) for item in self.body.items),
            self.conditions.joins,
            self.body.steps,
            self.body.grouping,
            distinct=bool(self.select.args.get("distinct")),
            order=self.body.order,
            limit=read_count(scope, self.select, "limit"),
            offset=read_count(scope, self.select, "offset") or 0,
            at_now=self.conditions.at_now,
            overs=tuple(self.body.overs),
            qualify=self.body.qualify,
        )


@dataclass(frozen=True)
class Body:
    """What a query computes from the rows that satisfy WHERE."""

    items: list[Item]
    order: tuple[Order, ...]
    overs: list[Over]
    qualify: Expression | None
    grouping: Grouping | None = None
    steps: Steps | None = None


def cut(draft: Draft) -> None:
    """Cut the tokens into the SELECT that sqlglot reads and the windows that only we know."""
    draft.parts = split(draft.source, tokenize(draft.source))


def bind_windows(draft: Draft) -> None:
    """Read the window, in brackets or between BEGIN and END, and the steps that brackets have."""
    bracket, draft.bracket_steps = read_brackets(draft.source, draft.parts)
    bound = draft.parts.begin or draft.parts.end
    if bracket is not None and bound:
        raise SqlError(
            "the query has two windows: one in brackets and one with BEGIN or END",
            hint="keep one of them",
            location=draft.source.token(bound[0]),
        )
    draft.window = read_window(draft.source, draft.parts) if bracket is None else bracket


def parse(draft: Draft) -> None:
    """Let sqlglot parse the SELECT, and refuse clauses that are not supported."""
    draft.select = parse_select(draft.source, draft.parts.select)
    check_select(draft.source, draft.select, draft.parts.select)


def resolve_relations(draft: Draft) -> None:
    """Look up the relations of FROM."""
    table, names = stream_of(draft.source, draft.select)
    try:
        stream, schema = draft.lookup(table.name)
    except UnknownStream as error:
        raise UnknownStream(
            error.message, detail=error.detail, hint=error.hint, location=error.location or draft.source.node(table)
        ) from None
    aliased = names != (table.name,)
    draft.relations = (Relation(names if aliased else (*names, stream), schema, RelationKind.STREAM, stream),)
    if draft.parameters is not None:
        values = Relation((PARAMETERS,), draft.parameters, RelationKind.VALUES, PARAMETERS, number=VALUES_INPUT)
        draft.relations = (*draft.relations, values)


def bind_where(draft: Draft) -> None:
    """Bind WHERE, and cut it into the conditions of each input, of joins, and at NOW."""
    where = draft.select.args.get("where")
    draft.where = None if where is None else bind_condition(draft.scope, where.this)
    draft.conditions = split_conditions(draft.scope, draft.where)


def bind_body(draft: Draft) -> None:
    """Bind the select list, GROUP BY, HAVING, window functions, ORDER BY."""
    scope = replace(draft.scope, clause="the select list")
    draft.body = (_groups if is_grouped(draft.select) else _rows)(draft, scope)


PASSES: tuple[Callable[[Draft], None], ...] = (cut, bind_windows, parse, resolve_relations, bind_where, bind_body)


def bind_query(text: str, lookup: Lookup, parameters: Schema | None = None) -> Query:
    """The bound query of a text, over the stream that `lookup` finds.

    A template's text has columns of the relation `PARAMETERS` for its parameters, whose schema is given.
    """
    return _run(PASSES, text, lookup, parameters).query()


@dataclass(frozen=True)
class Where:
    """The WHERE clause of a query alone."""

    conditions: Conditions
    expression: Expression | None
    """All of it as one expression over a row; None where there is none."""


def bind_where_only(text: str, lookup: Lookup, parameters: Schema | None = None) -> Where:
    """The WHERE clause of a query, whatever the rest of it means."""
    draft = _run((cut, parse, resolve_relations, bind_where), text, lookup, parameters)
    expression = None if draft.where is None else expression_of(draft.source, draft.where)
    return Where(draft.conditions, expression)


def _run(passes: tuple[Callable[[Draft], None], ...], text: str, lookup: Lookup, parameters: Schema | None) -> Draft:
    with parser_stack():
        draft = Draft(text, lookup, parameters)
        for run_pass in passes:
            run_pass(draft)
        return draft


def _rows(draft: Draft, scope: Scope) -> Body:
    """The body of a query over rows; with steps, over each row once for every step that contains it."""
    select, tokens = draft.select, draft.parts.select
    steps = _checked_steps(draft, draft.bracket_steps)
    taken = next((name for name in (STEP_START, STEP_END) if scope.schema.find(name) is not None), None)
    if steps is not None and taken is not None:
        raise Unsupported(
            f"the stream has a column '{taken}', as its steps do",
            hint="ask for groups of each step",
            location=scope.source.token(tokens[0]),
        )
    windows = read_windows(scope, select, lambda expr: expr)
    known = known_of_steps() if steps is not None else {}
    scope = replace(scope, known=known, over=lambda node: windows.bind(scope, node))
    items = read_items(scope, select, tokens, windows.settle)
    named = aliases(items)
    columns = {name: expr for name, expr in named.items() if scope.schema.find(name) is not None}
    other = frozenset(name for name, expr in columns.items() if not _is_column(expr, name))
    known = {name: expr for name, expr in named.items() if name not in columns}
    qualify = windows.qualify(replace(scope, ambiguous=other), select, known)
    order = read_order(scope, select, items, windows.settle)
    return Body(items, order, windows.overs, qualify, steps=steps)


def _is_column(expr: Expr, name: str) -> bool:
    return isinstance(expr, Ref) and expr.column.name.lower() == name


def _groups(draft: Draft, scope: Scope) -> Body:
    """The body of a query over groups."""
    select, tokens = draft.select, draft.parts.select
    keys = read_keys(scope, select, draft.bracket_steps)
    steps = _checked_steps(draft, keys.steps)
    step_columns = frozenset({STEP_START, STEP_END} if steps is not None else ())
    groups = Groups(scope.source, keys.keys, step_columns, keys.sets)
    windows = read_windows(scope, select, groups.settle)
    scope = replace(
        scope,
        known=known_of_steps() if steps is not None else {},
        aggregate=lambda node: groups.aggregate(scope, node),
        over=lambda node: windows.bind(scope, node),
    )
    items = read_items(scope, select, tokens, groups.settle)
    named = groups.names(aliases(items))
    having = read_having(scope, select, groups, named)
    qualify = windows.qualify(scope, select, named)
    order = read_order(scope, select, items, groups.settle)
    return Body(items, order, windows.overs, qualify, groups.grouping(having), steps)


def _checked_steps(draft: Draft, steps: Steps | None) -> Steps | None:
    """The steps, with what EMIT PARTIAL says, where they fit the query's window."""
    parts, window = draft.parts, draft.window
    counts_rows = isinstance(window.begin, RowsBack) or isinstance(window.end, RowsBack)
    if steps is not None and not steps.rows and counts_rows:
        raise Unsupported(
            "steps of time in a window of rows are not supported",
            hint="count both in rows, or both in time",
            location=draft.source.token((parts.begin or parts.end or parts.select)[0]),
        )
    if parts.partial is None:
        return steps
    if steps is None:
        raise SqlError(
            "EMIT PARTIAL needs steps, and the query has none",
            hint="write [RANGE 5 MINUTES SLIDE 1 MINUTE] after the stream",
            location=draft.source.token(parts.partial),
        )
    return replace(steps, partial=True)
