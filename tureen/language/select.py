"""The SELECT itself: which clauses are taken, which stream it is over, and what it gives."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token

from tureen.errors import SqlError, Unsupported
from tureen.language.scope import Scope
from tureen.language.source import Source, offset_of
from tureen.query import Output

_TAKEN = frozenset({"expressions", "from_", "where"})
_CLAUSES = {
    "distinct": ("DISTINCT", "leave it out"),
    "group": ("GROUP BY", "select the rows, and group them where they are used"),
    "having": ("HAVING", "select the rows, and group them where they are used"),
    "order": ("ORDER BY", "leave it out: rows come in time order"),
    "sort": ("SORT BY", "leave it out: rows come in time order"),
    "limit": ("LIMIT", "use a window of rows: BEGIN NOW - 100 ROWS END NOW"),
    "offset": ("OFFSET", "leave it out"),
    "joins": ("a join", "register one query for each stream"),
    "laterals": ("LATERAL VIEW", "leave it out"),
    "with_": ("WITH", "write one SELECT over one stream"),
    "windows": ("WINDOW", "give the query a window with BEGIN … END …"),
    "qualify": ("QUALIFY", "use WHERE"),
}
_TABLE_TAKEN = frozenset({"this", "alias"})


def check_select(source: Source, select: exp.Select, tokens: list[Token]) -> None:
    """Raise for the first clause that is not taken."""
    for key, value in select.args.items():
        if key in _TAKEN or not value:
            continue
        what, instead = _CLAUSES.get(key, (key.strip("_").upper(), "leave it out"))
        first = value[0] if isinstance(value, list) else value
        word = "JOIN" if key == "joins" else what.split()[0]
        mark = next((one.start for one in tokens if one.text.upper().split()[0:1] == [word]), None)
        if mark is None:
            mark = offset_of(first if isinstance(first, exp.Expression) else select)
        raise Unsupported(f"{what} is not supported yet", hint=instead, place=source.place(mark))
    if not select.expressions:
        raise SqlError("the select list is empty", hint="write * or column names", place=source.place(0))


def stream_of(source: Source, select: exp.Select) -> tuple[exp.Table, tuple[str, ...]]:
    """The stream after FROM, and the names that may stand before a column's dot."""
    clause = select.args.get("from_")
    if clause is None:
        raise SqlError("the query names no stream", hint="write FROM and a stream", place=source.node(select))
    table = clause.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise Unsupported(
            "FROM takes one stream by its name, and nothing else yet",
            hint="write SELECT … FROM stream",
            place=source.node(table),
        )
    if table.args.get("db"):
        raise Unsupported("a stream's name has one part", hint=f"write {table.name}", place=source.node(table))
    for key, value in table.args.items():
        if value and key not in _TABLE_TAKEN:
            what, instead = _CLAUSES.get(key, (key.strip("_").upper(), "leave it out"))
            raise Unsupported(f"{what} is not supported yet", hint=instead, place=source.node(table))
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise Unsupported("new names for columns are given in SELECT", place=source.node(table))
    return table, (table.alias or table.name,)


def read_outputs(scope: Scope, select: exp.Select) -> tuple[Output, ...]:
    """The select list: columns under the names that the answer gives them."""
    outputs: list[Output] = []
    for item in select.expressions:
        found = _item(scope, item)
        for one in found:
            if any(one.name.lower() == other.name.lower() for other in outputs):
                raise SqlError(
                    f"the answer would have two columns '{one.name}'",
                    hint="give one of them another name with AS",
                    place=scope.source.node(item),
                )
            outputs.append(one)
    return tuple(outputs)


def _item(scope: Scope, item: exp.Expression) -> list[Output]:
    inner = item.unalias()
    while isinstance(inner, exp.Paren):
        inner = inner.this
    star = inner if isinstance(inner, exp.Star) else inner.this if isinstance(inner, exp.Column) else None
    if isinstance(star, exp.Star):
        if any(star.args.values()) or isinstance(item, exp.Alias):
            raise Unsupported("* is taken as it is", hint="name the columns", place=scope.source.node(item))
        if isinstance(inner, exp.Column):
            scope.check_table(inner)
        return [Output(name, name) for name in scope.schema.names]
    if not isinstance(inner, exp.Column):
        raise Unsupported(
            "an expression in the select list is not supported yet",
            hint="select the columns it needs",
            place=scope.source.node(item),
        )
    column = scope.column(inner).column
    return [Output(item.alias or inner.name, column.name)]
