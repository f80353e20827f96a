"""Random joins for Hypothesis, each with the equivalent batch query of DuckDB.

The relations are three streams and a table with few distinct values, so that most keys have partners. The batch query
is over tables with the same names and a column `_id`; windows are written as predicates, with `{now}` in microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from hypothesis import strategies as st

STREAM_COLUMNS = "k INT, x BIGINT, d DOUBLE, m DECIMAL(6,2), s STRING, ts TIMESTAMP"
TABLE_COLUMNS = "k SMALLINT, m DECIMAL(9,3), s STRING, w INT"
STREAMS = ("a", "b", "c")
TABLE = "dim"
START = datetime(2026, 1, 1, tzinfo=UTC)

_KINDS = {"k": "number", "x": "number", "d": "number", "m": "number", "w": "number", "s": "text", "ts": "time"}
_OPS = ("=", "=", "=", "<", "<=", ">", ">=", "<>")


@dataclass(frozen=True)
class JoinText:
    """A query, and the equivalent batch query of DuckDB; `ordered` if both determine the order of rows."""

    text: str
    judge_sql: str
    ordered: bool = False


@dataclass(frozen=True)
class _Source:
    """An item of FROM in both languages, its alias and its columns."""

    text: str
    judge_sql: str
    alias: str
    columns: tuple[str, ...]
    is_stream: bool = True


@dataclass
class _Window:
    """The window at the end of the query, which streams without brackets have."""

    text: str = ""
    predicate: str = "TRUE"
    aliases: int = 0
    lateral: bool = True

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"


def stream_rows(size: int = 6) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a stream, without their times."""
    row = st.fixed_dictionaries(
        {
            "k": st.none() | st.integers(0, 3),
            "x": st.none() | st.integers(-1, 4),
            "d": st.none() | st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.5, float("nan")]),
            "m": st.none() | st.sampled_from([Decimal("1.00"), Decimal("2.00"), Decimal("2.50"), Decimal("-1.25")]),
            "s": st.none() | st.sampled_from(["", "a", "A", "ab", "ä"]),
        }
    )
    return st.lists(row, min_size=1, max_size=size)


def table_rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of the table."""
    row = st.fixed_dictionaries(
        {
            "k": st.none() | st.integers(0, 3),
            "m": st.none() | st.sampled_from([Decimal("1.000"), Decimal("2.500"), Decimal("-1.250")]),
            "s": st.none() | st.sampled_from(["a", "ab", "z"]),
            "w": st.none() | st.integers(0, 3),
        }
    )
    return st.lists(row, max_size=5)


def time_of(number: int, jitter: int) -> datetime:
    """The time of the tuple of that number in its stream; all differ."""
    return START + timedelta(seconds=number, milliseconds=jitter)


@st.composite
def joins(draw: st.DrawFn, *, nested: bool = True, lateral: bool = True) -> JoinText:
    """Queries over one to five relations; with `lateral`, also with subqueries that are computed for each row."""
    window = _Window(lateral=lateral)
    seconds = draw(st.sampled_from([None, None, 2, 5, 30]))
    if seconds is not None:
        window = _Window(f" BEGIN NOW - {seconds} END NOW", _since(seconds), lateral=lateral)
    if nested and draw(st.integers(0, 7)) == 0:
        return _set_operation(draw, window)
    return _select(draw, window, nested=nested)


@dataclass(frozen=True)
class JoinTemplate:
    """The text of a template over a join, and the type of each of its parameters."""

    text: str
    parameters: Mapping[str, str]

    def rows(self) -> st.SearchStrategy[list[dict[str, Any]]]:
        """Rows of parameters."""
        values = {name: _PARAMETERS[kind] for name, kind in self.parameters.items()}
        return st.lists(st.fixed_dictionaries(values), min_size=1, max_size=4)


_PARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.sampled_from([1, 2, 0, 3, -1, None]),
    "DOUBLE": st.sampled_from([1.0, 2.0, 2.5, 0.0, float("nan"), None]),
    "STRING": st.sampled_from(["a", "ab", "A", "", None]),
}


@st.composite
def join_templates(draw: st.DrawFn) -> JoinTemplate:
    """Templates over one to four relations, joined by inner joins; most of them can be followed."""
    count = draw(st.sampled_from([2, 2, 2, 3, 3, 4, 1]))
    windows = ["", " BEGIN NOW - 5 END NOW", " BEGIN NOW - 3 END NOW - 1"]
    window = _Window(draw(st.sampled_from(windows)) if count > 1 else "")
    can_follow = draw(st.sampled_from([True, True, True, True, False]))
    take_source = _followed_source if can_follow else partial(_source, nested=False)
    sources = [take_source(draw, window)]
    text = sources[0].text
    for _ in range(count - 1):
        source = take_source(draw, window)
        sources.append(source)
        equality = f"{sources[-2].alias}.k = {source.alias}.k"
        on = draw(st.sampled_from([equality, equality, draw(_factors(sources, source))]))
        text += draw(st.sampled_from([f" JOIN {source.text} ON {on}"] * 4 + [f" CROSS JOIN {source.text}"]))
    parameters: dict[str, str] = {}
    condition = draw(st.sampled_from([_comparison_with_parameter, _with_parameter]))
    where = [condition(draw, sources, parameters) for _ in range(draw(st.sampled_from([1, 1, 2, 3])))]
    where += [draw(_factors(sources, None)) for _ in range(draw(st.sampled_from([0, 0, 1])))]
    text += f" WHERE {' AND '.join(draw(st.permutations(where)))}"
    if not can_follow:
        return JoinTemplate(_with_outputs(draw, sources, text, "", window).text, parameters)
    names = [f"{source.alias}.{column}" for source in sources for column in source.columns]
    names += [f"abs({source.alias}.k) + 1" for source in sources]
    chosen = draw(st.lists(st.sampled_from([*names, *(f":{name}" for name in parameters)]), min_size=1, max_size=4))
    items = ", ".join(f"{name} AS c{number}" for number, name in enumerate(chosen))
    return JoinTemplate(f"SELECT {items} FROM {text}{window.text}", parameters)


def _followed_source(draw: st.DrawFn, window: _Window) -> _Source:
    """A stream with a window of time, or sometimes the table."""
    alias = window.alias()
    relation = draw(st.sampled_from([*STREAMS, *STREAMS, TABLE]))
    if relation == TABLE:
        return _Source(f"{TABLE} {alias}", "", alias, ("k", "m", "s", "w"), is_stream=False)
    bracket = draw(st.sampled_from(["", "", "", " [RANGE 3 SECONDS]"]))
    return _Source(f"{relation}{bracket} {alias}", "", alias, ("k", "x", "d", "m", "s", "ts"))


def _comparison_with_parameter(draw: st.DrawFn, sources: Sequence[_Source], parameters: dict[str, str]) -> str:
    """A comparison that an index of the values finds."""
    names = [(source, column) for source in sources for column in source.columns if column in ("k", "x", "s", "w")]
    source, column = draw(st.sampled_from(names))
    parameter = f"{'text' if column == 's' else 'number'}{draw(st.integers(0, 1))}"
    parameters[parameter] = "STRING" if column == "s" else "BIGINT"
    return f"{source.alias}.{column} {draw(st.sampled_from(['>=', '=', '<=', '>', '<']))} :{parameter}"


def _with_parameter(draw: st.DrawFn, sources: Sequence[_Source], parameters: dict[str, str]) -> str:
    """A condition with a new parameter, or with one that exists."""
    names = [(source, column) for source in sources for column in source.columns if column != "ts"]
    source, column = draw(st.sampled_from(names))
    kind = "STRING" if _KINDS[column] == "text" else draw(st.sampled_from(["BIGINT", "BIGINT", "DOUBLE"]))
    known = [name for name, other in parameters.items() if other == kind]
    parameter = draw(st.sampled_from([*known, f"p{len(parameters)}"]))
    parameters[parameter] = kind
    name, op = f"{source.alias}.{column}", draw(st.sampled_from([">=", "=", "<=", "<>", ">", "<"]))
    match draw(st.sampled_from(["plain", "plain", "plain", "flipped", "or", "null", "sum", "alone"])):
        case "flipped":
            return f":{parameter} {op} {name}"
        case "or":
            return f"({name} {op} :{parameter} OR {draw(_factors(sources, None))})"
        case "alone":
            return f"{name} {op} :{parameter} AND :{parameter} {'<> 1' if kind != 'STRING' else 'IS NOT NULL'}"
        case "null":
            return f"({name} {op} :{parameter} OR :{parameter} IS NULL)"
        case "sum" if kind != "STRING":
            other = draw(st.sampled_from([name for name in names if _KINDS[name[1]] == "number"]))
            return f"{name} {op} {other[0].alias}.{other[1]} + :{parameter}"
        case _:
            return f"{name} {op} :{parameter}"


def _since(seconds: int) -> str:
    return f"epoch_us(ts) BETWEEN {{now}} - {seconds * 1_000_000} AND {{now}}"


def _set_operation(draw: st.DrawFn, window: _Window) -> JoinText:
    operator = draw(st.sampled_from(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]))
    column = draw(st.sampled_from(["k", "s", "m"]))
    sides = []
    for _ in range(2):
        source = _source(draw, window, nested=False)
        where = _maybe_where(draw, [source])
        sides.append([f"SELECT {source.alias}.{column} AS v FROM {part}{where}" for part in _both(source)])
    text, judge = (f" {operator} ".join(side[language] for side in sides) for language in (0, 1))
    return JoinText(f"{text}{window.text}", judge)


def _both(source: _Source) -> tuple[str, str]:
    return source.text, source.judge_sql


def _select(draw: st.DrawFn, window: _Window, *, nested: bool) -> JoinText:
    sources = [_source(draw, window, nested)]
    text, judge = _both(sources[0])
    hidden: set[str] = set()
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4]))):
        source = _source(draw, window, nested)
        kind = draw(
            st.sampled_from(["JOIN", "JOIN", ",", "CROSS JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "ASOF"])
        )
        before = [other for other in sources if other.alias not in hidden]
        if kind == "ASOF":
            kind, on = _asof(draw, before, source)
        else:
            on = " AND ".join(draw(st.lists(_factors([*before, source], source), min_size=1, max_size=2)))
        if kind == ",":
            # Names before a comma are not visible in a later ON.
            hidden |= {other.alias for other in sources}
        clause = "" if kind in (",", "CROSS JOIN") else f" ON {on}"
        text, judge = (f"{sql} {kind} {part}{clause}" for sql, part in zip((text, judge), _both(source), strict=True))
        sources.append(source)
    where = [draw(_factors(sources, None)) for _ in range(draw(st.integers(0, 2)))]
    judge_where = list(where)
    if nested and draw(st.integers(0, 2)) == 0:
        condition, judge_condition = _subquery(draw, sources, window)
        where.append(condition)
        judge_where.append(judge_condition)
    text, judge = (
        sql + (f" WHERE {' AND '.join(parts)}" if parts else "") for sql, parts in ((text, where), (judge, judge_where))
    )
    return _with_outputs(draw, sources, text, judge, window)


def _with_outputs(draw: st.DrawFn, sources: Sequence[_Source], text: str, judge: str, window: _Window) -> JoinText:
    names = [f"{source.alias}.{column}" for source in sources for column in source.columns]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    items = [f"{name} AS c{number}" for number, name in enumerate(chosen)]
    tail, ordered = "", False
    if draw(st.integers(0, 3)) == 0:
        keys = chosen[: draw(st.integers(0, 2))]
        other = draw(st.sampled_from(names))
        items = [f"{name} AS c{number}" for number, name in enumerate(keys)]
        items += ["count(*) AS n", f"count({other}) AS m", f"min({other}) AS low", f"max({other}) AS high"]
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
    elif draw(st.integers(0, 3)) == 0:
        ordered = True
        tail = f" ORDER BY {', '.join(f'{name} NULLS FIRST' for name in chosen)}"
        tail += draw(st.sampled_from(["", " LIMIT 3", " LIMIT 2 OFFSET 1"]))
    distinct = draw(st.sampled_from(["", "", "DISTINCT "])) if not tail else ""
    head = f"SELECT {distinct}{', '.join(items)} FROM "
    return JoinText(f"{head}{text}{tail}{window.text}", f"{head}{judge}{tail}", ordered)


def _source(draw: st.DrawFn, window: _Window, nested: bool) -> _Source:
    alias = window.alias()
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return _Source(f"{TABLE} {alias}", f"{TABLE} {alias}", alias, ("k", "m", "s", "w"), is_stream=False)
    if kind == 1 and nested:
        return _block(draw, window, alias)
    stream = draw(st.sampled_from(STREAMS))
    columns = ("k", "x", "d", "m", "s", "ts")
    bracket, predicate = "", window.predicate
    order = ""
    match draw(st.integers(0, 5)):
        case 0:
            seconds = draw(st.sampled_from([1, 3, 10]))
            bracket, predicate = f" [RANGE {seconds} SECONDS]", _since(seconds)
        case 1:
            rows = draw(st.integers(1, 4))
            bracket, predicate = f" [ROWS {rows}]", "epoch_us(ts) <= {now}"
            order = f" ORDER BY ts DESC, _id DESC LIMIT {rows}"
    text = draw(st.sampled_from([f"{stream}{bracket} {alias}", f"{stream} {alias}{bracket}"]))
    return _Source(text, f"(SELECT * FROM {stream} WHERE {predicate}{order}) {alias}", alias, columns)


def _block(draw: st.DrawFn, window: _Window, alias: str) -> _Source:
    inner = _source(draw, window, nested=False)
    where = _maybe_where(draw, [inner])
    items, group = f"{inner.alias}.k AS k, {inner.alias}.s AS s", ""
    columns: tuple[str, ...] = ("k", "s")
    if draw(st.booleans()):
        items = f"{inner.alias}.k AS k, count(*) AS x, max({inner.alias}.m) AS m"
        group, columns = f" GROUP BY {inner.alias}.k", ("k", "x", "m")
    text, judge = (f"(SELECT {items} FROM {part}{where}{group}) {alias}" for part in _both(inner))
    return _Source(text, judge, alias, columns, is_stream=False)


def _maybe_where(draw: st.DrawFn, sources: Sequence[_Source]) -> str:
    return f" WHERE {draw(_factors(sources, None))}" if draw(st.booleans()) else ""


def _asof(draw: st.DrawFn, before: Sequence[_Source], source: _Source) -> tuple[str, str]:
    """An ASOF join where both sides have times, and any other join where they have not."""
    left = before[-1]
    if "ts" not in left.columns or "ts" not in source.columns or len(before) > 1:
        return "JOIN", f"{before[-1].alias}.k = {source.alias}.k"
    kind = draw(st.sampled_from(["ASOF JOIN", "ASOF LEFT JOIN"]))
    op = draw(st.sampled_from([">=", ">", "<=", "<"]))
    return kind, f"{left.alias}.k = {source.alias}.k AND {left.alias}.ts {op} {source.alias}.ts"


def _subquery(draw: st.DrawFn, sources: Sequence[_Source], window: _Window) -> tuple[str, str]:
    inner = _source(draw, window, nested=False)
    negated = draw(st.sampled_from(["", "NOT "]))
    condition = draw(_factors([*sources, inner], inner))
    if window.lateral and draw(st.booleans()):
        return _lateral(draw, sources, inner, condition)
    if draw(st.booleans()):
        text, judge = (f"{negated}EXISTS (SELECT 1 FROM {part} WHERE {condition})" for part in _both(inner))
        return text, judge
    outer = draw(st.sampled_from(sources))
    column = draw(st.sampled_from([name for name in inner.columns if name in outer.columns]))
    where = draw(st.sampled_from(["", f" WHERE {inner.alias}.k IS NOT NULL", f" WHERE {condition}"]))
    text, judge = (
        f"{outer.alias}.{column} {negated}IN (SELECT {inner.alias}.{column} FROM {part}{where})"
        for part in _both(inner)
    )
    return text, judge


def _lateral(draw: st.DrawFn, sources: Sequence[_Source], inner: _Source, condition: str) -> tuple[str, str]:
    """EXISTS or a query with an aggregate as a value, which may use columns of the query around it."""
    other = draw(_factors(sources, None))
    connective = draw(st.sampled_from(["AND", "OR"]))
    negated = draw(st.sampled_from(["", "NOT "]))
    form = draw(st.sampled_from(["exists", "in", "value"]))
    if form == "exists":
        test = [f"{negated}EXISTS (SELECT 1 FROM {part} WHERE {condition})" for part in _both(inner)]
    elif form == "in":
        outer = draw(st.sampled_from(sources)).alias
        test = [
            f"{outer}.k {negated}IN (SELECT {inner.alias}.k FROM {part} WHERE {condition})" for part in _both(inner)
        ]
    else:
        call = draw(st.sampled_from(["count(*)", "count({0}.k)", "max({0}.k)", "count(*) + coalesce(min({0}.k), 5)"]))
        op = draw(st.sampled_from(_OPS))
        item = call.format(inner.alias)
        test = [f"(SELECT {item} FROM {part} WHERE {condition}) {op} 1" for part in _both(inner)]
    text, judge = (f"({side} {connective} {other})" for side in test)
    return text, judge


@st.composite
def _factors(draw: st.DrawFn, sources: Sequence[_Source], with_source: _Source | None) -> str:
    """A condition; with a source, mostly between it and another one."""
    form = draw(st.integers(0, 9))
    if form < 6:
        return _comparison(draw, sources, with_source)
    if form == 6:
        return f"({_comparison(draw, sources, with_source)} OR {_comparison(draw, sources, None)})"
    if form == 7:
        return f"NOT ({_comparison(draw, sources, with_source)})"
    source = draw(st.sampled_from(sources))
    column = draw(st.sampled_from(source.columns))
    name = f"{source.alias}.{column}"
    if form == 8 or _KINDS[column] == "time":
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    constant = draw(st.sampled_from(["'a'", "'ab'"] if _KINDS[column] == "text" else ["0", "1", "2"]))
    return f"{name} {draw(st.sampled_from(_OPS))} {constant}"


def _comparison(draw: st.DrawFn, sources: Sequence[_Source], with_source: _Source | None) -> str:
    left = with_source or draw(st.sampled_from(sources))
    others = [source for source in sources if source is not left] or list(sources)
    right = draw(st.sampled_from(others))
    column = draw(st.sampled_from(left.columns))
    fitting = [name for name in right.columns if _KINDS[name] == _KINDS[column]]
    if not fitting:
        return f"{left.alias}.k = {right.alias}.k"
    other = draw(st.sampled_from(fitting))
    shift = ""
    if _KINDS[other] == "number" and other not in ("m", "d"):
        shift = draw(st.sampled_from(["", "", "", " + 1", " - 1"]))
    elif _KINDS[other] == "time":
        shift = draw(st.sampled_from(["", " + INTERVAL '2' SECOND", " - INTERVAL '1' SECOND"]))
    return f"{left.alias}.{column} {draw(st.sampled_from(_OPS))} {right.alias}.{other}{shift}"
