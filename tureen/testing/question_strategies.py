"""Random whole queries for Hypothesis: expressions, window functions, DISTINCT, ORDER BY, LIMIT, groups and steps.

With a judge, each query has an equivalent batch query of that judge, over the table `s` with the column `_rank`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tureen.schema import INTEGRAL, NUMERIC, Kind, Schema, Type
from tureen.testing.formula_strategies import FormulaScope, aggregates, scalars
from tureen.testing.judge import RANK, Formula, Judge
from tureen.testing.over_strategies import overs
from tureen.testing.step_strategies import NOW, STEP, StepText, judged_table, step_texts
from tureen.testing.text_strategies import conditions, windows

_TIMESTAMP = Type(Kind.TIMESTAMP)
_CONSTANT = Formula("3 + 4", "7", Type(Kind.INT))
_NOW = "now()"
_DIRECTIONS = ("", "", " ASC", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST")
_STAR = Formula("*", "*", Type(Kind.STRING), exact=False)


@dataclass(frozen=True)
class Question:
    """A query, the judge's equivalent, and whether the judge returns its rows in the answer's order."""

    text: str
    judge_sql: str
    ordered: bool


@dataclass(frozen=True)
class QuestionSettings:
    """The stream, the values, the judge and the conditions of questions."""

    schema: Schema
    tame: bool = True
    judge: Judge | None = None
    wheres: tuple[str | None, ...] = ()
    """The conditions to choose from, so that queries share clauses; random conditions if empty."""


@dataclass(frozen=True)
class _FromClause:
    """FROM and WHERE in both languages, and the window at the end of the query."""

    field: FormulaScope
    source: str
    judge_sql: str
    tail: str


@dataclass(frozen=True)
class _Item:
    """An item of the select list: its value, and its alias or an empty text."""

    value: Formula
    alias: str

    @property
    def sql(self) -> str:
        return f"{self.value.sql} AS {self.alias}" if self.alias else self.value.sql


@dataclass(frozen=True)
class _Key:
    """An item of ORDER BY."""

    value: Formula
    direction: str


@dataclass(frozen=True)
class _Body:
    """The select list, the clauses up to HAVING, and the expressions that break ties in the order."""

    items: list[_Item]
    clauses: Formula
    ties: list[str]
    others: list[Formula]
    """Other values that the answer may be ordered by."""


def questions(
    schema: Schema, tame: bool = True, judge: Judge | None = None, wheres: Sequence[str | None] = ()
) -> st.SearchStrategy[Question]:
    """Queries over the stream `s`, mostly grouped; `wheres` are the conditions to choose from."""
    settings = QuestionSettings(schema, tame, judge, tuple(wheres))
    return st.one_of(*[_grouped(settings)] * 3, *[_ungrouped(settings)] * 2)


@st.composite
def _ungrouped(draw: st.DrawFn, settings: QuestionSettings) -> Question:
    """Rows: expressions and window functions in the select list, DISTINCT, ORDER BY, LIMIT and OFFSET."""
    steps = None
    if draw(st.integers(0, 3)) == 0:
        steps = draw(step_texts(settings.schema, settings.judge).filter(lambda text: not text.key))
    from_clause = _from_clause(draw, settings, steps)
    kinds = [*[scalars(from_clause.field)] * 6, st.just(_CONSTANT)]
    if settings.judge != "duckdb":
        kinds += [overs(from_clause.field)] * 6
    if steps is not None:
        kinds += [st.sampled_from(_bounds())] * 3
    values = draw(st.lists(st.one_of(*kinds), min_size=1, max_size=3))
    if settings.judge is None and draw(st.integers(0, 5)) == 0:
        values.append(_STAR)
    ties = [RANK] if steps is None else [STEP, RANK]
    others = draw(st.lists(scalars(from_clause.field), max_size=1))
    body = _Body(_items(draw, values), Formula("", "", _TIMESTAMP), ties, others)
    return _question(draw, from_clause, body, distinct=draw(st.booleans()))


@st.composite
def _grouped(draw: st.DrawFn, settings: QuestionSettings) -> Question:
    """Groups: keys, aggregates, HAVING and steps, with DISTINCT, ORDER BY, LIMIT and OFFSET."""
    steps = draw(step_texts(settings.schema, settings.judge)) if draw(st.booleans()) else None
    from_clause = _from_clause(draw, settings, steps)
    field = from_clause.field
    keys = draw(st.lists(scalars(field), max_size=2, unique_by=lambda key: key.sql.lower()))
    values = [*keys[: draw(st.integers(0, 2))], *draw(st.lists(aggregates(field), min_size=1, max_size=3))]
    if steps is not None:
        values += draw(st.lists(st.sampled_from(_bounds()), max_size=2))
    items = _items(draw, [_wrapped(draw, value) for value in draw(st.permutations(values))])
    # Groups are ordered by the keys, wherever the step is among them.
    keys = draw(st.permutations(keys))
    grouping = [_key_text(draw, key, items) for key in keys]
    sets = ""
    if settings.judge != "duckdb" and keys and len({key.type for key in keys}) == len(keys):
        sets = draw(st.sampled_from(["", "", "ROLLUP", "CUBE"]))
    if sets:
        grouping = [f"{sets} ({', '.join(f'({text})' for text in grouping)})"]
    if steps is not None and steps.key:
        grouping.insert(draw(st.integers(0, len(grouping))), steps.key)
    judge_grouping = [STEP, "window_start", "window_end"] if steps is not None else []
    judge_keys = [key.judge_sql for key in keys]
    judge_grouping += [f"{sets} ({', '.join(judge_keys)})"] if sets else judge_keys
    clauses = Formula(
        f" GROUP BY {', '.join(grouping)}" if grouping else "",
        f" GROUP BY {', '.join(judge_grouping)}" if judge_grouping else "",
        _TIMESTAMP,
    )
    if draw(st.integers(0, 3)) == 0:
        having = draw(_havings(field))
        clauses = replace(
            clauses,
            sql=f"{clauses.sql} HAVING {having.sql}",
            judge_sql=f"{clauses.judge_sql} HAVING {having.judge_sql}",
        )
    # ROLLUP and CUBE order their grouping sets from all keys to none.
    ties = ["grouping_id()"] if sets else []
    ties += [*([STEP] if steps is not None else []), *judge_keys]
    body = _Body(items, clauses, ties, draw(st.lists(aggregates(field), max_size=1)))
    return _question(draw, from_clause, body, distinct=draw(st.integers(0, 3)) == 0)


def _from_clause(draw: st.DrawFn, settings: QuestionSettings, steps: StepText | None) -> _FromClause:
    """FROM and WHERE, and the window."""
    alias = draw(st.sampled_from(["", "", "t"]))
    prefix = draw(st.sampled_from(["", f"{alias or 's'}."]))
    judge, bracket = settings.judge, steps.bracket if steps is not None else ""
    if settings.wheres:
        where = draw(st.sampled_from(settings.wheres))
    else:
        where = draw(st.none() | st.none() | conditions(settings.schema, judge == "duckdb", 0, prefix))
    if where and not settings.wheres and draw(st.integers(0, 4)) == 0:
        where = f"({where}) AND {draw(_of_now(settings.schema))}"
    window = draw(st.just("") | windows()) if judge is None else ""
    if steps is not None and not steps.steps.rows and "ROWS" in window:
        window = ""
    stepped = steps is not None and (steps.steps.partial or not steps.steps.rows)
    if not bracket and not window and judge is None and not stepped:
        bracket = draw(st.sampled_from(["", "[ROWS 7]", "[RANGE 5 SECONDS]", "[RANGE 2 HOURS]"]))
    condition = f" WHERE {where}" if where else ""
    source = " ".join(filter(None, ["FROM s", bracket, f"AS {alias}" if alias else ""])) + condition
    table = "s"
    if judge is not None and steps is not None:
        table = f"({judged_table(steps.steps, 's', str(settings.schema.time), judge)})"
    tail = " ".join(filter(None, draw(st.permutations([window, steps.tail if steps is not None else ""]))))
    field = FormulaScope(settings.schema, prefix, settings.tame, judge)
    judge_condition = condition.replace(_NOW, f"TIMESTAMP '{NOW:%Y-%m-%d %H:%M:%S}+00:00'")
    return _FromClause(field, source, f"FROM {table} AS {alias or 's'}{judge_condition}", tail)


@st.composite
def _of_now(draw: st.DrawFn, schema: Schema) -> str:
    """A condition that depends on NOW."""
    names = [column.name for column in schema.columns if column.type == _TIMESTAMP]
    forms = [f"hour({_NOW}) < 24"]
    for name in names:
        forms += [f"`{name}` < {_NOW} - INTERVAL '90' SECOND", f"NOT (`{name}` > {_NOW} OR `{name}` IS NULL)"]
    return draw(st.sampled_from(forms))


def _bounds() -> list[Formula]:
    columns = {"window_start": "window_start", "window_end": "window_end", "window.start": "window_start"}
    return [Formula(name, column, _TIMESTAMP) for name, column in columns.items()]


def _wrapped(draw: st.DrawFn, value: Formula) -> Formula:
    """A value over groups, sometimes inside an expression."""
    if draw(st.integers(0, 4)) > 0:
        return value
    match value.type.kind:
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            form = draw(st.sampled_from(["({}) + 1", "coalesce({}, 0)", "({}) > 1"]))
        case Kind.BOOLEAN:
            form = "NOT ({})"
        case Kind.STRING:
            form = "coalesce({}, 'none')"
        case _:
            form = "({}) IS NULL" if value.exact else "{}"
    kind = Type(Kind.BOOLEAN) if form.endswith(("1", "NULL")) and "+" not in form else value.type
    return Formula(form.format(value.sql), form.format(value.judge_sql), kind, value.exact)


def _items(draw: st.DrawFn, values: Sequence[Formula]) -> list[_Item]:
    """The select list; an item without an alias has a unique name."""
    items: list[_Item] = []
    used: set[str] = set()
    bare = _STAR not in values
    for number, value in enumerate(values):
        name = value.sql.rpartition(".")[2].lower()
        named = value is not _STAR and (not bare or name in used or draw(st.integers(0, 2)) > 0)
        used.add(name)
        items.append(_Item(value, f"o{number}" if named else ""))
    return items


def _key_text(draw: st.DrawFn, key: Formula, items: Sequence[_Item]) -> str:
    """An item of GROUP BY: the expression, or the number or alias of the select item with that expression."""
    texts = [key.sql]
    for number, item in enumerate(items, start=1):
        if item.value is key:
            texts += [str(number), *([item.alias] if item.alias else [])]
    return draw(st.sampled_from(texts))


@st.composite
def _havings(draw: st.DrawFn, field: FormulaScope) -> Formula:
    """Conditions on a group; only on exact values."""
    value = draw(aggregates(field).filter(lambda call: call.exact))
    form = draw(st.sampled_from(["({}) IS NOT NULL", "({}) IS NULL", "({0}) = ({0})"]))
    if value.type.kind in INTEGRAL:
        form = draw(st.sampled_from(["({}) > 1", "({}) <= 2", "({}) <> 0"]))
    elif value.type.kind in NUMERIC:
        form = draw(st.sampled_from(["({}) > 0", "({}) <= 2"]))
    if draw(st.booleans()):
        return Formula("count(*) > 1", "count(*) > 1", Type(Kind.BOOLEAN))
    return Formula(form.format(value.sql), form.format(value.judge_sql), Type(Kind.BOOLEAN))


def _question(draw: st.DrawFn, from_clause: _FromClause, body: _Body, *, distinct: bool) -> Question:
    """The whole query in both languages, with ORDER BY, LIMIT and OFFSET."""
    order = _orders(draw, body.items, [] if distinct else body.others)
    sql = f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(item.sql for item in body.items)} {from_clause.source}"
    sql += body.clauses.sql
    sql += f" ORDER BY {', '.join(key.value.sql + key.direction for key in order)}" if order else ""
    judge_sql = _judge_sql(from_clause, body, order, distinct=distinct)
    # The judge's DISTINCT has no order, so the rows within a LIMIT are undefined.
    if not distinct or from_clause.field.judge is None:
        end = draw(
            st.sampled_from(["", "", "", " LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 1", " LIMIT 0", " OFFSET 99"])
        )
        sql, judge_sql = sql + end, judge_sql + end
    return Question(f"{sql} {from_clause.tail}".strip(), judge_sql, ordered=not distinct)


def _judge_sql(from_clause: _FromClause, body: _Body, order: Sequence[_Key], *, distinct: bool) -> str:
    """The judge's query: a subquery of the rows with their ordering values, then the order.

    Spark does not resolve the columns of a group in ORDER BY if there is a HAVING.
    """
    outputs = [f"{item.value.judge_sql} AS o{number}" for number, item in enumerate(body.items)]
    keys = [f"{key.value.judge_sql} AS k{number}" for number, key in enumerate(order)]
    ties = [] if distinct else [f"{tie} AS t{number}" for number, tie in enumerate(body.ties)]
    inner = f"SELECT {', '.join([*outputs, *keys, *ties])} {from_clause.judge_sql}{body.clauses.judge_sql}"
    names = ", ".join(f"o{number}" for number in range(len(outputs)))
    order_items = [f"k{number}{key.direction}" for number, key in enumerate(order)]
    order_items += [f"t{number}" for number in range(len(ties))]
    if distinct:
        return f"SELECT DISTINCT {names} FROM ({inner})"
    return f"SELECT {names} FROM ({inner})" + (f" ORDER BY {', '.join(order_items)}" if order_items else "")


def _orders(draw: st.DrawFn, items: Sequence[_Item], others: Sequence[Formula]) -> list[_Key]:
    """ORDER BY: select items by number, name or text, and other values."""
    starred = any(item.value is _STAR for item in items)
    choices: list[Formula] = [value for value in others if value.exact]
    for number, item in enumerate(items, start=1):
        if item.value.exact:
            texts = [item.value.sql, *([item.alias] if item.alias else []), *([] if starred else [str(number)])]
            choices.append(replace(item.value, sql=draw(st.sampled_from(texts))))
    if not choices or draw(st.booleans()):
        return []
    chosen = draw(st.lists(st.sampled_from(choices), min_size=1, max_size=2, unique=True))
    return [_Key(value, draw(st.sampled_from(_DIRECTIONS))) for value in chosen]
