"""The SELECT: which clauses are supported."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token

from tureen.errors import SqlError, Unsupported
from tureen.language.source import Source, offset_of

_SUPPORTED = frozenset(
    [
        "expressions",
        "from_",
        "joins",
        "where",
        "distinct",
        "group",
        "having",
        "windows",
        "qualify",
        "order",
        "limit",
        "offset",
    ]
)
_CLAUSES = {
    "sort": ("SORT BY", "use ORDER BY"),
    "cluster": ("CLUSTER BY", "use ORDER BY"),
    "distribute": ("DISTRIBUTE BY", "leave it out"),
    "laterals": ("LATERAL VIEW", "leave it out"),
}


def check_select(source: Source, select: exp.Select, tokens: list[Token]) -> None:
    """Raise for the first clause that is not supported."""
    for key, value in select.args.items():
        if key in _SUPPORTED or not value:
            continue
        what, instead = _CLAUSES.get(key, (key.strip("_").upper(), "leave it out"))
        first = value[0] if isinstance(value, list) else value
        word = what.split()[0]
        mark = next((token.start for token in tokens if token.text.upper().split()[0:1] == [word]), None)
        if mark is None:
            mark = offset_of(first if isinstance(first, exp.Expression) else select)
        raise Unsupported(f"{what} is not supported yet", hint=instead, location=source.location(mark))
    if not select.expressions:
        raise SqlError("the select list is empty", hint="write * or column names", location=source.location(0))
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Unsupported(
            "DISTINCT ON is not supported", hint="use GROUP BY with first(…)", location=source.node(distinct)
        )
    limit = select.args.get("limit")
    if isinstance(limit, exp.Fetch):
        raise Unsupported("FETCH is not supported", hint="write LIMIT", location=source.node(limit))
