"""The SELECT: which clauses are supported, and the relation of FROM."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, Unsupported
from tureen.language.source import Source, offset_of

_SUPPORTED = frozenset(
    ["expressions", "from_", "where", "distinct", "group", "having", "windows", "qualify", "order", "limit", "offset"]
)
_CLAUSES = {
    "sort": ("SORT BY", "use ORDER BY"),
    "cluster": ("CLUSTER BY", "use ORDER BY"),
    "distribute": ("DISTRIBUTE BY", "leave it out"),
    "joins": ("a join", "register one query for each stream"),
    "laterals": ("LATERAL VIEW", "leave it out"),
    "with_": ("WITH", "write one SELECT over one stream"),
}
_TABLE_SUPPORTED = frozenset({"this", "alias"})


def check_select(source: Source, select: exp.Select, tokens: list[Token]) -> None:
    """Raise for the first clause that is not supported."""
    for key, value in select.args.items():
        if key in _SUPPORTED or not value:
            continue
        what, instead = _CLAUSES.get(key, (key.strip("_").upper(), "leave it out"))
        first = value[0] if isinstance(value, list) else value
        word = "JOIN" if key == "joins" else what.split()[0]
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
    order = select.args.get("order")
    if order is not None and any(isinstance(item.this, exp.Var) for item in order.expressions):
        # sqlglot's tree does not have the position of the word.
        last = max(index for index, token in enumerate(tokens) if token.token_type is TokenType.ORDER_BY)
        every = next(token for token in tokens[last:] if token.text.upper() == "ALL")
        raise Unsupported("ORDER BY ALL is not supported", hint="name the columns", location=source.token(every))


def stream_of(source: Source, select: exp.Select) -> tuple[exp.Table, tuple[str, ...]]:
    """The relation of FROM, and the names that may qualify its columns."""
    clause = select.args.get("from_")
    if clause is None:
        raise SqlError("the query names no stream", hint="write FROM and a stream", location=source.node(select))
    table = clause.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise Unsupported(
            "FROM takes one stream by its name, and nothing else yet",
            hint="write SELECT … FROM stream",
            location=source.node(table),
        )
    if table.args.get("db"):
        raise Unsupported("a stream's name has one part", hint=f"write {table.name}", location=source.node(table))
    for key, value in table.args.items():
        if value and key not in _TABLE_SUPPORTED:
            what, instead = _CLAUSES.get(key, (key.strip("_").upper(), "leave it out"))
            raise Unsupported(f"{what} is not supported yet", hint=instead, location=source.node(table))
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise Unsupported("new names for columns are given in SELECT", location=source.node(table))
    return table, (table.alias or table.name,)
