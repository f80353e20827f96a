"""EMIT FINAL: which queries can have it."""

from __future__ import annotations

from tureen.errors import SqlError, Unsupported
from tureen.join import InnerJoin, JoinOpaque, JoinTree
from tureen.language.binding.draft import Draft
from tureen.query import Query, RelationKind
from tureen.window import RowsBack


def check_final(draft: Draft, query: Query) -> None:
    """Raise if a query has EMIT FINAL, and it is not defined for it when a group is final."""
    token = draft.parts.final
    if token is None:
        return
    location = draft.source.token(token)
    grouping = query.grouping
    if grouping is None or (grouping.always and query.steps is None):
        raise SqlError(
            "EMIT FINAL needs GROUP BY, and the query has none",
            hint="only groups become final: write GROUP BY and the columns that punctuations close",
            location=location,
        )
    if draft.context.depth > 1 or draft.outer is not None:
        raise Unsupported(
            "EMIT FINAL is not supported in a query within a query",
            hint="create a stream from that query, and read the stream",
            location=location,
        )
    unsupported = _unsupported(query)
    if unsupported is not None:
        construct, hint = unsupported
        raise Unsupported(f"EMIT FINAL is not supported with {construct}", hint=hint, location=location)


def check_template(draft: Draft) -> None:
    """Raise if a template has EMIT FINAL."""
    if draft.parts.final is not None:
        raise Unsupported(
            "EMIT FINAL is not supported in register_many",
            hint="register each query by itself",
            location=draft.source.token(draft.parts.final),
        )


def _unsupported(query: Query) -> tuple[str, str] | None:
    """What makes it undefined when the groups of a query are final, and what to do about it."""
    steps, grouping = query.steps, query.grouping
    assert grouping is not None
    bounds = [bound for entry in query.inputs for bound in (entry.window.begin, entry.window.end)]
    checks = {
        ("DISTINCT", "leave it out: groups are distinct by their keys"): query.distinct,
        ("LIMIT or OFFSET", "leave it out, or write the condition as HAVING"): query.limit is not None or query.offset,
        ("window functions", "create a stream from the final groups, and query it"): bool(query.overs),
        ("ROLLUP, CUBE or GROUPING SETS", "register a query for each grouping"): grouping.sets is not None,
        ("EMIT PARTIAL", "a step that is not over can change: leave out one of them"): steps is not None
        and steps.partial,
        ("steps of rows", "use steps of time, such as [TUMBLE 1 MINUTE]"): steps is not None and steps.rows,
        ("steps over a join", "create a stream from the join, and group that"): steps is not None and query.joins,
        ("a window of rows", "use a window of time"): any(isinstance(bound, RowsBack) for bound in bounds),
        ("NOW outside the window", "write the condition as a window: BEGIN NOW - … END NOW"): query.uses_now
        or _uses_now(query.source),
        ("a query in parentheses", "create a stream from that query, and read the stream"): any(
            entry.block is not None for entry in query.inputs
        ),
        ("a table without a stream", "its rows can be replaced at any time"): all(
            entry.kind is not RelationKind.STREAM for entry in query.inputs
        ),
        ("outer, ASOF, semi and anti joins, EXISTS and IN (SELECT …)", "use an inner join"): not _is_inner(
            query.source
        ),
    }
    return next((construct for construct, is_present in checks.items() if is_present), None)


def _is_inner(tree: JoinTree) -> bool:
    return isinstance(tree, int) or (isinstance(tree, InnerJoin) and all(map(_is_inner, tree.sides)))


def _uses_now(tree: JoinTree) -> bool:
    if not isinstance(tree, InnerJoin):
        return False
    opaque = (factor for factor in tree.factors if isinstance(factor, JoinOpaque))
    return any(factor.uses_now for factor in opaque) or any(map(_uses_now, tree.sides))
