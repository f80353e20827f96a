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
from tureen.language.text.depth import MAX_OPERATORS, check_operators, parser_stack, too_deep
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

    The passes: tokens, the windows cut off, sqlglot's tree, names and types, predicates and their normal form,
    keys and aggregates, the select list and its order.
    """
    with parser_stack():
        return _bind_query(text, lookup)

    def __init__(self, text: str, lookup: Lookup, parameters: Schema | None) -> None:
        """Start with a text; `parameters` are the columns of a template's VALUES."""
        self.source = Source(text)
        self.lookup = lookup
        self.parameters = parameters

def bind_where(text: str, lookup: Lookup) -> Expression | None:
    """The WHERE clause of a query alone, as an expression over one row; None where there is none."""
    with parser_stack():
        scope, select = _where(text, lookup)
        where = select.args.get("where")
        return None if where is None else expression_of(scope.source, bind_condition(scope, where.this))


def bind_clause(text: str, lookup: Lookup) -> Clause:
    """The WHERE clause of a query alone, in normal form, without what depends on NOW."""
    with parser_stack():
        return _condition(*_where(text, lookup))[0]


def _where(text: str, lookup: Lookup) -> tuple[Scope, exp.Select]:
    source = Source(text)
    select = _parse(source, split(source, tokenize(source)).select)
    table, names = stream_of(source, select)
    stream, schema = lookup(table.name)
    return Scope(source, schema, (*names, stream)), select


def _bind_query(text: str, lookup: Lookup) -> Query:
    source = Source(text)
    parts = split(source, tokenize(source))
    window, steps = _windows(source, parts)
    select = _parse(source, parts.select)
    check_select(source, select, parts.select)
    table, names = stream_of(source, select)
    try:
        stream, schema = lookup(table.name)
    except UnknownStream as error:
        raise UnknownStream(
            error.message, detail=error.detail, hint=error.hint, location=error.location or source.node(table)
        ) from None
    scope = Scope(source, schema, (*names, stream) if len(names) == 1 and names[0] == table.name else names)
    clause, at_now = _condition(scope, select)
    scope = replace(scope, clause="the select list")
    body = (_groups if is_grouped(select) else _rows)(scope, select, parts, window, steps)
    return Query(
        text,
        stream,
        clause,
        tuple(Output(item.name, expression_of(source, item.expr)) for item in body.items),
        window,
        body.steps,
        body.grouping,
        distinct=bool(select.args.get("distinct")),
        order=body.order,
        limit=read_count(scope, select, "limit"),
        offset=read_count(scope, select, "offset") or 0,
        at_now=at_now,
        overs=tuple(body.overs),
        qualify=body.qualify,
    )


def _windows(source: Source, parts: QueryParts) -> tuple[Window, Steps | None]:
    """The window that the query sees, and its steps if brackets give some."""
    bracket, steps = read_brackets(source, parts)
    if bracket is None:
        return read_window(source, parts), steps
    bound = parts.begin or parts.end
    if bound:
        raise SqlError(
            "the query has two windows: one in brackets and one with BEGIN or END",
            hint="keep one of them",
            location=source.token(bound[0]),
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


def _rows(scope: Scope, select: exp.Select, parts: QueryParts, window: Window, steps: Steps | None) -> _Body:
    """The parts of a query over the rows themselves; with steps, over each row once for every step that holds it."""
    steps = _checked(scope, parts, window, steps)
    taken = next((name for name in (STEP_START, STEP_END) if scope.schema.find(name) is not None), None)
    if steps is not None and taken is not None:
        raise Unsupported(
            f"the stream has a column '{taken}', as its steps do",
            hint="ask for groups of each step",
            location=scope.source.token(parts.select[0]),
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


def _groups(scope: Scope, select: exp.Select, parts: QueryParts, window: Window, steps: Steps | None) -> _Body:
    """The parts of a query over groups."""
    found = read_keys(scope, select, steps)
    steps = _checked(scope, parts, window, found.steps)
    of_step = frozenset({STEP_START, STEP_END} if steps is not None else ())
    groups = Groups(scope.source, found.keys, of_step, found.sets)
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


def _checked(scope: Scope, parts: QueryParts, window: Window, steps: Steps | None) -> Steps | None:
    """The steps with what EMIT PARTIAL says, where they go with the query's window."""
    counts = isinstance(window.begin, RowsBack) or isinstance(window.end, RowsBack)
    if steps is not None and not steps.rows and counts:
        raise Unsupported(
            "steps of time in a window of rows are not supported",
            hint="count both in rows, or both in time",
            location=scope.source.token((parts.begin or parts.end or parts.select)[0]),
        )
    if parts.partial is None:
        return steps
    if steps is None:
        raise SqlError(
            "EMIT PARTIAL needs steps, and the query has none",
            hint="write [RANGE 5 MINUTES SLIDE 1 MINUTE] after the stream",
            location=scope.source.token(parts.partial),
        )
    return replace(steps, partial=True)


def _condition(scope: Scope, select: exp.Select) -> tuple[Clause, Expression | None]:
    """The WHERE clause: what tuples are matched with as they arrive, and what depends on NOW."""
    where = select.args.get("where")
    if where is None:
        return (), None
    fixed, moving = split_now(bind_condition(scope, where.this))
    clause = clause_of(scope.schema, holds(scope.schema, fixed))
    return clause, None if moving is None else expression_of(scope.source, moving)


def _parse(source: Source, tokens: list[Token]) -> exp.Select:
    tokens = [_function(token, after) for token, after in zip_longest(tokens, tokens[1:])]
    try:
        found = Spark().parser().parse(tokens, source.text)
    except RecursionError:
        # Of words that nest without parentheses, so many that no tree of them would be taken.
        raise too_deep(f"at most {MAX_OPERATORS} nested operators", source) from None
    except ParseError as error:
        raise _parse_error(source, tokens, error) from None
    except (SqlglotError, ValueError, KeyError, IndexError, AttributeError, TypeError, AssertionError, ArithmeticError):
        raise SqlError("the query cannot be understood", location=source.token(tokens[0])) from None
    tree = found[0] if len(found) == 1 else None
    if isinstance(tree, exp.SetOperation):
        raise Unsupported(
            f"{tree.key.upper()} is not supported yet",
            hint="register each SELECT by itself",
            location=source.token(tokens[0]),
        )
    if not isinstance(tree, exp.Select):
        raise SqlError("the text is not one SELECT", location=source.token(tokens[0]))
    check_operators(source, tree)
    return tree


def _function(token: Token, after: Token | None) -> Token:
    """Spark's function `window` as a plain word: sqlglot would read a WINDOW clause."""
    if token.token_type is TokenType.WINDOW and after is not None and after.token_type is TokenType.L_PAREN:
        return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
    return token


def _parse_error(source: Source, tokens: list[Token], error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    line, col = first.get("line"), first.get("col")
    token = next((one for one in tokens if one.line == line and one.col == col), tokens[-1])
    said = str(first.get("description", ""))
    if said.startswith("Expecting "):
        message = f"expected {said.removeprefix('Expecting ').split()[0]} near '{token.text}'"
    elif said.startswith("Required keyword") or "Expected table name" in said:
        message = f"something is missing after '{token.text}'"
    else:
        message = f"'{token.text}' is not expected here"
    hint = "write INTERVAL before the number, as in NOW - INTERVAL 5 MINUTES" if unit_name(token.text) else None
    return SqlError(message, hint=hint, location=source.token(token))
