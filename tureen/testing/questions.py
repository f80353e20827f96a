"""Random whole queries for Hypothesis: expressions, window functions, DISTINCT, ORDER BY, LIMIT, groups and steps.

With a judge, each comes as that judge's batch query too, over the table `s` with the column `_rank`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tureen.schema import INTEGRAL, NUMERIC, Kind, Schema, Type
from tureen.testing.formulas import Field, aggregates, scalars
from tureen.testing.judged import RANK, Formula, Judge
from tureen.testing.stepped import NOW, STEP, StepText, judged_table, step_texts
from tureen.testing.texts import conditions, windows
from tureen.testing.windowed import overs

_TIMESTAMP = Type(Kind.TIMESTAMP)
_CONSTANT = Formula("3 + 4", "7", Type(Kind.INT))
_ENDS = (*[""] * 8, *[" LIMIT 3"] * 2, *[" LIMIT 2 OFFSET 1"] * 2, " OFFSET 1", " LIMIT 0", " OFFSET 99")
_NOW = "now()"
_WAYS = ("", "", " ASC", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST")
_STAR = Formula("*", "*", Type(Kind.STRING), exact=False)


@dataclass(frozen=True)
class Question:
    """A query, what a judge is asked instead, and whether the judge's rows come in the answer's order."""

    text: str
    judged: str
    ordered: bool


@dataclass(frozen=True)
class Asked:
    """What questions are asked about."""

    schema: Schema
    tame: bool = True
    judge: Judge | None = None
    wheres: tuple[str | None, ...] = ()
    """The conditions to choose from, so that queries share some; any, if there are none."""


@dataclass(frozen=True)
class _Frame:
    """What is around the select list, on both sides."""

    field: Field
    source: str
    judged: str
    tail: str


@dataclass(frozen=True)
class _Item:
    """An item of the select list: its value, and its alias if it has one."""

    value: Formula
    alias: str

    @property
    def own(self) -> str:
        return f"{self.value.own} AS {self.alias}" if self.alias else self.value.own


@dataclass(frozen=True)
class _Key:
    """An item of ORDER BY."""

    value: Formula
    way: str


@dataclass(frozen=True)
class _Body:
    """A query without the end: what is selected, the clauses up to HAVING, and what breaks ties in the order."""

    items: list[_Item]
    clauses: Formula
    ties: list[str]
    others: list[Formula]
    """What else the answer may be ordered by."""


def questions(
    schema: Schema, tame: bool = True, judge: Judge | None = None, wheres: Sequence[str | None] = ()
) -> st.SearchStrategy[Question]:
    """Queries over the stream `s`, mostly grouped; `wheres` are the conditions to choose from, if not any."""
    asked = Asked(schema, tame, judge, tuple(wheres))
    return st.one_of(*[_grouped(asked)] * 3, *[_ungrouped(asked)] * 2)


@st.composite
def _ungrouped(draw: st.DrawFn, asked: Asked) -> Question:
    """Rows: expressions and window functions in the select list, DISTINCT, ORDER BY, LIMIT and OFFSET."""
    steps = None
    if draw(st.integers(0, 3)) == 0:
        steps = draw(step_texts(asked.schema, asked.judge).filter(lambda one: not one.key))
    frame = _frame(draw, asked, steps)
    kinds = [*[scalars(frame.field)] * 6, st.just(_CONSTANT)]
    if asked.judge != "duckdb":
        kinds += [overs(frame.field)] * 6
    if steps is not None:
        kinds += [st.sampled_from(_bounds())] * 3
    values = draw(st.lists(st.one_of(*kinds), min_size=1, max_size=3))
    if asked.judge is None and draw(st.integers(0, 5)) == 0:
        values.append(_STAR)
    ties = [RANK] if steps is None else [STEP, RANK]
    others = draw(st.lists(scalars(frame.field), max_size=1))
    body = _Body(_items(draw, values), Formula("", "", _TIMESTAMP), ties, others)
    return _question(draw, frame, body, distinct=draw(st.booleans()))


@st.composite
def _grouped(draw: st.DrawFn, asked: Asked) -> Question:
    """Groups: keys, aggregates, HAVING, steps; and what there is for rows."""
    steps = draw(step_texts(asked.schema, asked.judge)) if draw(st.booleans()) else None
    frame = _frame(draw, asked, steps)
    field = frame.field
    keys = draw(st.lists(scalars(field), max_size=2, unique_by=lambda one: one.own.lower()))
    values = [*keys[: draw(st.integers(0, 2))], *draw(st.lists(aggregates(field), min_size=1, max_size=3))]
    if steps is not None:
        values += draw(st.lists(st.sampled_from(_bounds()), max_size=2))
    items = _items(draw, [_wrapped(draw, one) for one in draw(st.permutations(values))])
    # The groups come in the order of the keys, wherever the step stands among them.
    keys = draw(st.permutations(keys))
    grouping = [_key_text(draw, key, items) for key in keys]
    sets = ""
    if asked.judge != "duckdb" and keys and len({one.type for one in keys}) == len(keys):
        sets = draw(st.sampled_from(["", "", "ROLLUP", "CUBE"]))
    if sets:
        grouping = [f"{sets} ({', '.join(f'({one})' for one in grouping)})"]
    if steps is not None and steps.key:
        grouping.insert(draw(st.integers(0, len(grouping))), steps.key)
    told = [STEP, "window_start", "window_end"] if steps is not None else []
    told += [f"{sets} ({', '.join(one.judged for one in keys)})"] if sets else [one.judged for one in keys]
    clauses = Formula(
        f" GROUP BY {', '.join(grouping)}" if grouping else "",
        f" GROUP BY {', '.join(told)}" if told else "",
        _TIMESTAMP,
    )
    if draw(st.integers(0, 3)) == 0:
        having = draw(_havings(field))
        clauses = replace(
            clauses, own=f"{clauses.own} HAVING {having.own}", judged=f"{clauses.judged} HAVING {having.judged}"
        )
    # ROLLUP and CUBE go from all keys to none.
    ties = ["grouping_id()"] if sets else []
    ties += [*([STEP] if steps is not None else []), *(one.judged for one in keys)]
    body = _Body(items, clauses, ties, draw(st.lists(aggregates(field), max_size=1)))
    return _question(draw, frame, body, distinct=draw(st.integers(0, 3)) == 0)


def _frame(draw: st.DrawFn, asked: Asked, steps: StepText | None) -> _Frame:
    """FROM and WHERE, and the window."""
    alias = draw(st.sampled_from(["", "", "t"]))
    prefix = draw(st.sampled_from(["", f"{alias or 's'}."]))
    judge, bracket = asked.judge, steps.bracket if steps is not None else ""
    if asked.wheres:
        where = draw(st.sampled_from(asked.wheres))
    else:
        where = draw(st.none() | st.none() | conditions(asked.schema, judge == "duckdb", 0, prefix))
    if where and not asked.wheres and draw(st.integers(0, 4)) == 0:
        where = f"({where}) AND {draw(_of_now(asked.schema))}"
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
        table = f"({judged_table(steps.steps, 's', str(asked.schema.time), judge)})"
    tail = " ".join(filter(None, draw(st.permutations([window, steps.tail if steps is not None else ""]))))
    field = Field(asked.schema, prefix, asked.tame, judge)
    told = condition.replace(_NOW, f"TIMESTAMP '{NOW:%Y-%m-%d %H:%M:%S}+00:00'")
    return _Frame(field, source, f"FROM {table} AS {alias or 's'}{told}", tail)


@st.composite
def _of_now(draw: st.DrawFn, schema: Schema) -> str:
    """A condition that depends on NOW."""
    names = [column.name for column in schema.columns if column.type == _TIMESTAMP]
    forms = [f"hour({_NOW}) < 24"]
    for name in names:
        forms += [f"`{name}` < {_NOW} - INTERVAL '90' SECOND", f"NOT (`{name}` > {_NOW} OR `{name}` IS NULL)"]
    return draw(st.sampled_from(forms))


def _bounds() -> list[Formula]:
    own = {"window_start": "window_start", "window_end": "window_end", "window.start": "window_start"}
    return [Formula(name, column, _TIMESTAMP) for name, column in own.items()]


def _wrapped(draw: st.DrawFn, one: Formula) -> Formula:
    """A value over groups, now and then inside an expression."""
    if draw(st.integers(0, 4)) > 0:
        return one
    match one.type.kind:
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            form = draw(st.sampled_from(["({}) + 1", "coalesce({}, 0)", "({}) > 1"]))
        case Kind.BOOLEAN:
            form = "NOT ({})"
        case Kind.STRING:
            form = "coalesce({}, 'none')"
        case _:
            form = "({}) IS NULL" if one.exact else "{}"
    kind = Type(Kind.BOOLEAN) if form.endswith(("1", "NULL")) and "+" not in form else one.type
    return Formula(form.format(one.own), form.format(one.judged), kind, one.exact)


def _items(draw: st.DrawFn, values: Sequence[Formula]) -> list[_Item]:
    """The select list; an item without an alias has a name that no other has."""
    items: list[_Item] = []
    used: set[str] = set()
    bare = _STAR not in values
    for number, value in enumerate(values):
        name = value.own.rpartition(".")[2].lower()
        named = value is not _STAR and (not bare or name in used or draw(st.integers(0, 2)) > 0)
        used.add(name)
        items.append(_Item(value, f"o{number}" if named else ""))
    return items


def _key_text(draw: st.DrawFn, key: Formula, items: Sequence[_Item]) -> str:
    """An item of GROUP BY: the expression, or the number or the alias of the item that is it."""
    texts = [key.own]
    for number, item in enumerate(items, start=1):
        if item.value is key:
            texts += [str(number), *([item.alias] if item.alias else [])]
    return draw(st.sampled_from(texts))


@st.composite
def _havings(draw: st.DrawFn, field: Field) -> Formula:
    """Conditions on a group; none on a value that depends on the order of a sum."""
    one = draw(aggregates(field).filter(lambda found: found.exact))
    form = draw(st.sampled_from(["({}) IS NOT NULL", "({}) IS NULL", "({0}) = ({0})"]))
    if one.type.kind in INTEGRAL:
        form = draw(st.sampled_from(["({}) > 1", "({}) <= 2", "({}) <> 0"]))
    elif one.type.kind in NUMERIC:
        form = draw(st.sampled_from(["({}) > 0", "({}) <= 2"]))
    if draw(st.booleans()):
        return Formula("count(*) > 1", "count(*) > 1", Type(Kind.BOOLEAN))
    return Formula(form.format(one.own), form.format(one.judged), Type(Kind.BOOLEAN))


def _question(draw: st.DrawFn, frame: _Frame, body: _Body, *, distinct: bool) -> Question:
    """The whole text on both sides, with ORDER BY, LIMIT and OFFSET."""
    order = _orders(draw, body.items, [] if distinct else body.others)
    own = f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(item.own for item in body.items)} {frame.source}"
    own += body.clauses.own
    own += f" ORDER BY {', '.join(one.value.own + one.way for one in order)}" if order else ""
    judged = _judged(frame, body, order, distinct=distinct)
    # Which rows DISTINCT meets first is not the judge's concern, so it cannot say which a LIMIT leaves.
    if not distinct or frame.field.judge is None:
        end = draw(
            st.sampled_from(["", "", "", " LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 1", " LIMIT 0", " OFFSET 99"])
        )
        own, judged = own + end, judged + end
    return Question(f"{own} {frame.tail}".strip(), judged, ordered=not distinct)


def _judged(frame: _Frame, body: _Body, order: Sequence[_Key], *, distinct: bool) -> str:
    """What the judge is asked: the rows with all that they are ordered by, and around it the order.

    Spark does not see the columns of a group in ORDER BY where there is a HAVING.
    """
    outputs = [f"{item.value.judged} AS o{number}" for number, item in enumerate(body.items)]
    keys = [f"{one.value.judged} AS k{number}" for number, one in enumerate(order)]
    ties = [] if distinct else [f"{one} AS t{number}" for number, one in enumerate(body.ties)]
    inner = f"SELECT {', '.join([*outputs, *keys, *ties])} {frame.judged}{body.clauses.judged}"
    names = ", ".join(f"o{number}" for number in range(len(outputs)))
    by = [f"k{number}{one.way}" for number, one in enumerate(order)] + [f"t{number}" for number in range(len(ties))]
    if distinct:
        return f"SELECT DISTINCT {names} FROM ({inner})"
    return f"SELECT {names} FROM ({inner})" + (f" ORDER BY {', '.join(by)}" if by else "")


def _orders(draw: st.DrawFn, items: Sequence[_Item], others: Sequence[Formula]) -> list[_Key]:
    """What the answer is ordered by: items by number, name or text, and other values."""
    starred = any(item.value is _STAR for item in items)
    choices: list[Formula] = [one for one in others if one.exact]
    for number, item in enumerate(items, start=1):
        if item.value.exact:
            texts = [item.value.own, *([item.alias] if item.alias else []), *([] if starred else [str(number)])]
            choices.append(replace(item.value, own=draw(st.sampled_from(texts))))
    if not choices or draw(st.booleans()):
        return []
    chosen = draw(st.lists(st.sampled_from(choices), min_size=1, max_size=2, unique=True))
    return [_Key(one, draw(st.sampled_from(_WAYS))) for one in chosen]
