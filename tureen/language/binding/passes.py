"""Binding a query, pass by pass: `PASSES` is the way from a text to its bound form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp
from sqlglot.tokens import Token

from tureen.errors import SqlError, Unsupported
from tureen.functions.function_lookup import FunctionLookup, no_functions
from tureen.join import JoinKind, JoinTree, divided, visible_leaves
from tureen.language.binding.asof import latest_partner
from tureen.language.binding.beside_groups import value_beside
from tureen.language.binding.bind import bind_condition, compare
from tureen.language.binding.brackets import read_brackets
from tureen.language.binding.conditions import inner_join
from tureen.language.binding.disjunctions import all_of, conjunct_nodes, conjuncts_of, inputs_of
from tureen.language.binding.draft import MAX_BLOCKS, Body, Context, Draft
from tureen.language.binding.emit_final import check_final, check_template
from tureen.language.binding.from_clause import FromReader, FromTree, Unbound, check_inner, merged_column, numbers_in
from tureen.language.binding.grouping import Groups, is_grouped, read_having, read_keys
from tureen.language.binding.lateral import bind_lateral
from tureen.language.binding.outputs import SetOperand, aliases, read_items, read_order, untyped_null
from tureen.language.binding.scope import PARAMETERS, Lookup, MergedColumn, Relation, Scope
from tureen.language.binding.select import check_select
from tureen.language.binding.set_operations import bind_set_operation, query_over
from tureen.language.binding.steps import known_of_steps
from tureen.language.binding.subqueries import Passes, is_subquery, join_subquery
from tureen.language.binding.window_functions import read_windows
from tureen.language.duckdb.expressions import expression_of
from tureen.language.predicates.slots import Slot, slots_of
from tureen.language.source import Source
from tureen.language.text.blocks import (
    COMBINED,
    CommonTable,
    cut_blocks,
    cut_set_operations,
    cut_with,
    select_combined,
    without_parentheses,
)
from tureen.language.text.depth import parser_stack
from tureen.language.text.parse import parse_select
from tureen.language.text.session_groups import with_sessions
from tureen.language.text.split import split, tokenize, whole_query
from tureen.language.text.table_functions import steps_in_brackets
from tureen.language.text.window_bounds import read_window
from tureen.language.tree import Expr, Ref
from tureen.predicate import Clause
from tureen.query import STEP_END, STEP_START, Expression, Query, QueryBlock, RelationKind
from tureen.schema import Schema, name_key
from tureen.window import RowsBack, Steps, Window


def cut(draft: Draft) -> None:
    """Cut the tokens into queries in parentheses, the SELECT that sqlglot reads, and the windows that only we know."""
    tokens = with_sessions(draft.source, draft.tokens)
    draft.tokens, draft.blocks = cut_blocks(draft.source, tokens)
    draft.tokens = steps_in_brackets(draft.source, draft.tokens)
    draft.parts = split(draft.source, draft.tokens)


def bind_windows(draft: Draft) -> None:
    """Read the windows in brackets, and the one between BEGIN and END; without one, that of the query around it."""
    draft.brackets = read_brackets(draft.source, draft.parts)
    has_own = bool(draft.parts.begin or draft.parts.end)
    draft.window = read_window(draft.source, draft.parts) if has_own else draft.context.window
    stepped = [bracket for bracket in draft.brackets if bracket.steps is not None]
    if len(stepped) > 1:
        raise Unsupported(
            "steps of two inputs are not supported",
            hint="write SLIDE or TUMBLE after one of them",
            location=draft.source.location(stepped[1].at),
        )
    draft.bracket_steps = stepped[0].steps if stepped else None


def parse(draft: Draft) -> None:
    """Let sqlglot parse the SELECT, and refuse clauses that are not supported."""
    draft.select = parse_select(draft.source, draft.parts.select)
    check_select(draft.source, draft.select, draft.parts.select)


def resolve_relations(draft: Draft) -> None:
    """Look up the relations of FROM."""
    reader = FromReader(draft.source, draft.parts.select, draft)
    draft.tree = reader.read(draft.select)
    draft.relations = reader.relations
    bound = draft.parts.begin or draft.parts.end
    has_bracket = any(bracket.window is not None for bracket in draft.brackets)
    if bound and has_bracket and len(draft.relations) == 1:
        raise SqlError(
            "the query has two windows: one in brackets and one with BEGIN or END",
            hint="keep one of them",
            location=draft.source.token(bound[0]),
        )
    parameters = draft.context.parameters
    if parameters is not None:
        check_inner(draft.source, draft.tree)
        values = Relation((PARAMETERS,), parameters, RelationKind.VALUES, PARAMETERS, number=len(draft.relations))
        draft.conjuncts.relations.append(values)
        draft.relations.append(values)


def bind_joins(draft: Draft) -> None:
    """Bind the conditions of ON and USING."""
    draft.correlated = []
    draft.joined = _bound_tree(draft, draft.tree)
    if draft.context.parameters is not None:
        draft.joined = inner_join(draft.joined, draft.relations[-1].number)
    visible = set(visible_leaves(draft.joined))
    draft.relations = [relation for relation in draft.relations if relation.number in visible]


def bind_where(draft: Draft) -> None:
    """Bind WHERE: conditions of each input, of joins, at NOW, and subqueries."""
    clause = draft.select.args.get("where")
    nodes = [] if clause is None else conjunct_nodes(clause.this)
    plain = [bind_condition(draft.scope, node) for node in nodes if not is_subquery(node)]
    draft.where = all_of(plain) if plain else None
    relations, scalars = {relation.number for relation in draft.relations}, set(draft.scalars)
    conjuncts = [part for condition in plain for part in conjuncts_of(condition)]
    own = [conjunct for conjunct in conjuncts if inputs_of(conjunct) <= relations | scalars]
    draft.correlated += [conjunct for conjunct in conjuncts if conjunct not in own]
    # First what does not need the values of queries, so that these are joined with fewer rows.
    first = [conjunct for conjunct in own if inputs_of(conjunct) <= relations]
    then = [conjunct for conjunct in own if conjunct not in first]
    draft.joined = draft.conjuncts.keep_where(draft.joined, first, is_outermost=draft.outer is None)
    draft.with_scalars()
    draft.joined = draft.conjuncts.keep_where(draft.joined, then, is_outermost=draft.outer is None)
    for node in nodes:
        if is_subquery(node):
            join_subquery(draft, node, PARSING, JOINING)


def bind_body(draft: Draft) -> None:
    """Bind the select list, GROUP BY, HAVING, window functions, ORDER BY."""
    scope = replace(draft.scope, clause="the select list")
    draft.body = (_groups if is_grouped(draft.select) else _rows)(draft, scope)
    draft.with_scalars()


PARSING: Passes = (cut, bind_windows, parse)
JOINING: Passes = (resolve_relations, bind_joins, bind_where)
PASSES: Passes = (*PARSING, *JOINING, bind_body)


def bind_query(
    text: str, lookup: Lookup, parameters: Schema | None = None, *, functions: FunctionLookup = no_functions
) -> Query:
    """The bound query of a text, over the streams and tables that `lookup` finds.

    A template's text has columns of the relation `PARAMETERS` for its parameters, whose schema is given.
    """
    with parser_stack():
        source = Source(text, functions)
        tokens = whole_query(source, tokenize(source))
        if not tokens:
            raise SqlError("the text contains no query", hint="write SELECT … FROM a stream")
        block = bind_block(_outermost(source, lookup, parameters), tokens)
        query = block if isinstance(block, Query) else query_over(source, block)
        if not query.leaves:
            raise SqlError(
                "the query names no stream", hint="write FROM and a stream", location=source.token(tokens[0])
            )
        return query


def _outermost(source: Source, lookup: Lookup, parameters: Schema | None) -> Context:
    """What the query of a whole text is bound in."""
    return Context(source, lookup, bind_block, parameters, bind_lateral=_bind_lateral)


def _bind_lateral(draft: Draft, node: exp.Expression) -> Expr:
    return bind_lateral(draft, node, PARSING, JOINING)


def bind_block(context: Context, tokens: list[Token]) -> QueryBlock:
    """A query in parentheses, of WITH, or of a whole text."""
    source, operand = context.source, context.operand
    context = replace(context, depth=context.depth + 1, operand=None)
    if context.depth > MAX_BLOCKS:
        raise SqlError(
            "the query is nested too deeply",
            hint=f"at most {MAX_BLOCKS} levels of queries",
            location=source.token(tokens[0]) if tokens else None,
        )
    common, tokens = cut_with(source, tokens)
    names = [name_key(table.name) for table in common]
    for number, table in enumerate(common):
        if names[number] in names[:number]:
            raise SqlError(f"duplicate name '{table.name}' in WITH", location=source.token(table.tokens[0]))
        context = replace(context, tables={**context.tables, name_key(table.name): (table, context)})
    operands, tail = cut_set_operations(source, tokens)
    if operands is None:
        return _bound_select(context, without_parentheses(tokens), operand=operand)
    ending = select_combined(tail, tokens[0])
    window = _window_of(context, ending)
    block = bind_set_operation(replace(context, window=window), operands)
    if any(output.is_untyped for output in block.outputs) and (tail or operand is None):
        raise untyped_null(source.token(tokens[0]))
    if not tail:
        return block
    combined = CommonTable(COMBINED, []), replace(context, bind_block=lambda _context, _tokens: block)
    return _bound_select(replace(context, tables={COMBINED: combined}), ending)


def _bound_select(context: Context, tokens: list[Token], operand: SetOperand | None = None) -> QueryBlock:
    draft = Draft(context, tokens)
    draft.operand = operand
    for run_pass in PASSES:
        run_pass(draft)
    query = draft.query()
    if query.steps is not None and query.steps.rows and query.joins:
        raise Unsupported(
            "steps of rows over a join are not supported, nor with a subquery",
            hint="write steps of time, such as [TUMBLE 5 MINUTES]",
            location=draft.source.token(draft.parts.select[0]),
        )
    check_final(draft, query)
    return query


def _window_of(context: Context, tokens: list[Token]) -> Window:
    """The window that all operands of a set operation have unless they have their own."""
    draft = Draft(context, tokens)
    for run_pass in (cut, bind_windows):
        run_pass(draft)
    return draft.window


@dataclass(frozen=True)
class TemplateWhere:
    """The conditions of a template: those that all its queries have, and those with parameters."""

    clauses: tuple[Clause, ...]
    """Those without parameters over each relation alone."""
    slots: tuple[Slot, ...] | None
    """The conditions with parameters as comparisons of columns; None where one of them is anything else."""
    with_parameters: Expression | None
    """The conditions with parameters as one expression over joined rows and values; None where there are none."""


def bind_template_where(
    text: str, lookup: Lookup, parameters: Schema, *, functions: FunctionLookup = no_functions
) -> TemplateWhere:
    """The conditions of a template, whatever the rest of it means."""
    with parser_stack():
        source = Source(text, functions)
        draft = Draft(_outermost(source, lookup, parameters), whole_query(source, tokenize(source)))
        for run_pass in (*PARSING, check_template, *JOINING):
            run_pass(draft)
        conditions, values = draft.finish(), draft.relations[-1].number
        *clauses, of_values = conditions.clauses
        _, factors = divided(conditions.joins, values)
        conjuncts = [] if draft.where is None else conjuncts_of(draft.where)
        conjuncts = [conjunct for conjunct in conjuncts if values in inputs_of(conjunct)]
        return TemplateWhere(
            tuple(clauses),
            None if of_values else slots_of(factors, values),
            expression_of(source, all_of(conjuncts)) if conjuncts else None,
        )


def _bound_tree(draft: Draft, tree: FromTree) -> JoinTree:
    if isinstance(tree, int):
        return tree
    left, right = _bound_tree(draft, tree.left), _bound_tree(draft, tree.right)
    visible = {*visible_leaves(left), *visible_leaves(right)}
    relations = tuple(relation for relation in draft.relations if relation.number in visible)
    scope = replace(draft.scope, clause="ON", relations=relations, block=None, subquery=None)
    conjuncts = [] if tree.on is None else conjuncts_of(bind_condition(scope, tree.on))
    # From the last name to the first, because each is put before those that were merged before it.
    equalities = [_same_column(draft, scope, tree, name, at) for name, at in reversed([*tree.using.items()])]
    conjuncts += reversed(equalities)
    foreign = [conjunct for conjunct in conjuncts if not inputs_of(conjunct) <= visible]
    if foreign and tree.kind is not None:
        raise Unsupported(
            "ON of an outer join cannot use columns of the query around it",
            hint="write the condition in WHERE",
            location=draft.source.location(foreign[0].at),
        )
    draft.correlated += foreign
    conjuncts = [conjunct for conjunct in conjuncts if conjunct not in foreign]
    if tree.kind is None:
        return draft.conjuncts.keep_where(inner_join(left, right), conjuncts, is_outermost=draft.outer is None)
    joined = draft.conjuncts.join_on(tree.kind, left, right, conjuncts)
    if tree.kind not in (JoinKind.ASOF, JoinKind.ASOF_LEFT):
        return joined
    return latest_partner(draft.source, joined, tree.at)


def _same_column(draft: Draft, scope: Scope, tree: Unbound, name: str, at: int) -> Expr:
    """The equality of a column of USING, which from then on is one column."""
    sides = []
    for side in (tree.left, tree.right):
        numbers = set(numbers_in(side))
        relations = tuple(relation for relation in scope.relations if relation.number in numbers)
        merged = {key: column for key, column in draft.merged.items() if column.inputs <= numbers}
        sides.append(replace(scope, relations=relations, merged=merged, clause="USING"))
    node = exp.column(exp.to_identifier(name))
    node.this.meta["start"] = at
    left, right = (side.column(node) for side in sides)
    key, inputs = name.lower(), frozenset(numbers_in(tree))
    column = MergedColumn(merged_column(draft.source, tree.kind, left, right), inputs)
    draft.merged = {key: column, **{name: merged for name, merged in draft.merged.items() if name != key}}
    return compare(scope, "=", left, right)


def _rows(draft: Draft, scope: Scope) -> Body:
    """The body of a query over rows; with steps, over each row once for every step that contains it."""
    select, tokens = draft.select, draft.parts.select
    steps = _checked_steps(draft, draft.bracket_steps)
    taken = next((name for name in (STEP_START, STEP_END) if scope.has_column(name)), None)
    if steps is not None and taken is not None:
        raise Unsupported(
            f"the stream has a column '{taken}', as its steps do",
            hint="ask for groups of each step",
            location=scope.source.token(tokens[0]),
        )
    windows = read_windows(scope, select, lambda expr: expr)
    known = known_of_steps() if steps is not None else {}
    scope = replace(scope, known=known, over=lambda node: windows.bind(scope, node))
    items = read_items(scope, select, tokens, windows.settle, draft.operand)
    named = aliases(items)
    columns = {name: expr for name, expr in named.items() if scope.has_column(name)}
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
    keys = read_keys(replace(scope, clause="GROUP BY"), select, draft.bracket_steps)
    steps = _checked_steps(draft, keys.steps)
    step_columns = frozenset({STEP_START, STEP_END} if steps is not None else ())
    constant = frozenset(relation.number for relation in scope.relations if relation.kind is RelationKind.VALUES)
    groups = Groups(scope.source, keys.keys, step_columns, keys.sets, constant_inputs=constant)
    windows = read_windows(scope, select, groups.settle)
    over_rows = scope
    # A group with keys has at least one row.
    has_rows = bool(keys.keys) and keys.sets is None
    scope = replace(
        scope,
        known=known_of_steps() if steps is not None else {},
        aggregate=lambda node: groups.aggregate(over_rows, node),
        over=lambda node: windows.bind(scope, node),
        block=partial(value_beside, draft, groups, draft.value_of_block) if has_rows else None,
        subquery=partial(value_beside, draft, groups, draft.value_of_subquery) if has_rows else None,
        clause="the select list of a query with groups",
    )
    items = read_items(scope, select, tokens, groups.settle, draft.operand)
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
