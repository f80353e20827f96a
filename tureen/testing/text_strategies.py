"""Random SQL texts for Hypothesis, over a given schema.

A text is portable if it means the same in DuckDB and in Spark; `portable=False` adds forms that only Spark has (or
coerces in that way): suffixed literals, backslash escapes, texts compared with dates and numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tureen.schema import NUMERIC, Column, Kind, Schema
from tureen.testing.literal_strategies import literals, patterns

_OPS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_BASE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class QueryText:
    """The parts of a query: select list, stream (with its alias), condition and window."""

    select: str
    source: str
    where: str | None
    window: str

    @property
    def batch(self) -> str:
        """The query without its window, for any SQL engine."""
        return f"SELECT {self.select} FROM {self.source}" + (f" WHERE {self.where}" if self.where else "")

    @property
    def text(self) -> str:
        """The whole query."""
        return f"{self.batch} {self.window}".strip()


def conditions(schema: Schema, portable: bool = True, depth: int = 2, prefix: str = "") -> st.SearchStrategy[str]:
    """WHERE conditions: factors of all kinds under AND, OR and NOT, nested up to `depth`."""
    factors = _factors(schema, portable, prefix)
    if depth == 0:
        return factors
    inner = conditions(schema, portable, depth - 1, prefix)
    return st.one_of(
        factors,
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) AND ({pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) OR ({pair[1]})"),
        inner.map(lambda condition: f"NOT ({condition})"),
        st.tuples(factors, factors, factors).map(lambda triple: "{} and {} OR {}".format(*triple)),
        st.tuples(factors, factors).map(lambda pair: "not {} AND {}".format(*pair)),
    )


@st.composite
def _factors(draw: st.DrawFn, schema: Schema, portable: bool, prefix: str) -> str:
    """One factor over one or two columns."""
    column = draw(st.sampled_from(schema.columns))
    name = draw(spelt(column.name, prefix))
    constants = literals(column.type, portable)
    kinds: list[Callable[[], str]] = [
        lambda: f"{name} {draw(st.sampled_from(_OPS))} {draw(constants)}",
        lambda: f"{draw(constants)} {draw(st.sampled_from(_OPS))} {name}",
        lambda: f"{name} {draw(_maybe_not())}BETWEEN {draw(constants)} AND {draw(constants)}",
        lambda: f"{name} {draw(_maybe_not())}IN ({', '.join(draw(_members(constants)))})",
        lambda: f"{name} IS {draw(_maybe_not())}NULL",
        *[lambda: _pair(draw, schema, column, name, prefix)] * 2,
    ]
    if column.type.kind is Kind.STRING:
        kinds += [lambda: f"{name} {draw(_maybe_not())}LIKE {draw(patterns(portable))}"] * 3
    if column.type.kind is Kind.BOOLEAN:
        kinds += [lambda: name]
    if (opaque := _opaque(draw, schema, column, name, prefix, portable)) is not None:
        kinds += [opaque] * 3
    return draw(st.sampled_from(kinds))()


def _maybe_not() -> st.SearchStrategy[str]:
    return st.sampled_from(["", "", "NOT "])


def _members(constants: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.one_of(constants, constants, constants, st.just("NULL")), min_size=1, max_size=5)


def spelt(name: str, prefix: str) -> st.SearchStrategy[str]:
    """A column's name in original, upper or lower case."""
    return st.sampled_from([name, name, name.upper(), name.lower()]).map(lambda spelling: prefix + spelling)


def _pair(draw: st.DrawFn, schema: Schema, column: Column, name: str, prefix: str) -> str:
    """A column against another of a comparable type, perhaps moved by a constant."""
    kind = column.type.kind
    fitting = [
        other for other in schema.columns if other.type.kind == kind or (kind in NUMERIC and other.type.kind in NUMERIC)
    ]
    other = draw(st.sampled_from(fitting))
    right = draw(spelt(other.name, prefix))
    if other.type.kind in NUMERIC:
        right += draw(st.sampled_from(["", "", " + 1", " - 2", " + 0"]))
    elif other.type.kind is Kind.TIMESTAMP:
        right += draw(st.sampled_from(["", "", " + INTERVAL '1' SECOND", " - INTERVAL '2' MINUTE"]))
    return f"{name} {draw(st.sampled_from(_OPS))} {right}"


def _opaque(
    draw: st.DrawFn, schema: Schema, column: Column, name: str, prefix: str, portable: bool
) -> Callable[[], str] | None:
    """An opaque factor: arithmetic or a function."""
    kind = column.type.kind
    if kind is Kind.STRING:
        forms = [
            f"upper({name}) = 'A'",
            f"length({name}) > 1",
            f"lower({name}) <> 'ab'",
            f"{name} || 'x' = 'ax'",
        ]
        return lambda: draw(st.sampled_from(forms))
    if kind in NUMERIC:
        same = [other for other in schema.columns if other.type.kind == kind]
        other = draw(spelt(draw(st.sampled_from(same)).name, prefix))
        forms = [
            f"{name} + {other} > 3",
            f"{name} - {other} <= 0",
            f"{name} * 2 > {other}",
        ]
        if kind is not Kind.DECIMAL:
            # Spark's abs and minus round a DECIMAL to 34 digits, and raise on the largest.
            forms += [f"abs({name}) = 1"] + ([] if portable else [f"-{name} < 1"])
        if not portable:
            forms += [f"coalesce({name}, 0) = 0", f"{name} + 1 = 3"]
        return lambda: draw(st.sampled_from(forms))
    return None


_LENGTHS = st.one_of(
    st.sampled_from(["INTERVAL '1' SECOND", "INTERVAL '3' SECONDS", "INTERVAL '90' MINUTE", "INTERVAL '1' MONTH"]),
    st.tuples(st.integers(0, 90), st.sampled_from(["SECONDS", "MINUTES", "minute", "HOURS"])).map(
        "{0[0]} {0[1]}".format
    ),
    st.integers(0, 5000).map(str),
)
_MINUTES = st.integers(-120, 120)


def windows() -> st.SearchStrategy[str]:
    """BEGIN-END clauses of every kind: none, sliding, landmark, snapshot, rows; BEGIN is never after END."""
    return st.one_of(
        st.just(""),
        _LENGTHS.map("BEGIN NOW - {} END NOW".format),
        st.tuples(st.integers(0, 90), st.integers(0, 90)).map(
            lambda pair: f"BEGIN NOW - {max(pair)} MINUTES END NOW - INTERVAL '{min(pair)}' MINUTE"
        ),
        _MINUTES.map(lambda minutes: f"BEGIN {_instant(minutes)} END NOW"),
        st.tuples(_MINUTES, _MINUTES).map(lambda pair: f"BEGIN {_instant(min(pair))} END {_instant(max(pair))}"),
        st.integers(1, 12).map("BEGIN NOW - {} ROWS END NOW".format),
        st.tuples(st.integers(1, 6), st.integers(1, 6)).map(
            lambda pair: f"BEGIN NOW - {pair[0] + pair[1]} ROWS END NOW - {pair[1]} ROWS"
        ),
    )


def _instant(minutes: int) -> str:
    """The instant some minutes after the streams' base, sometimes a little after the full minute."""
    moment = _BASE + timedelta(minutes=minutes, milliseconds=500 * (minutes % 3))
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"


@st.composite
def queries(
    draw: st.DrawFn, schema: Schema, stream: str, portable: bool = True, windowed: bool = True, depth: int = 2
) -> QueryText:
    """A whole query over a stream of that schema."""
    alias = draw(st.sampled_from(["", "", "t"]))
    prefix = draw(st.sampled_from(["", f"{alias or stream}."]))
    source = f"{stream} {draw(st.sampled_from(['', 'AS ']))}{alias}" if alias else stream
    always: bool = draw(st.booleans())
    where = draw(conditions(schema, portable, depth, prefix)) if always or draw(st.booleans()) else None
    select = draw(_select_lists(schema, prefix))
    return QueryText(select, source, where, draw(windows()) if windowed else "")


@st.composite
def _select_lists(draw: st.DrawFn, schema: Schema, prefix: str) -> str:
    """`*`, or columns in any order, some with an alias; names are unique."""
    if draw(st.integers(0, 3)) == 0:
        return f"{prefix}*"
    items = []
    chosen = draw(st.lists(st.sampled_from(schema.columns), min_size=1, max_size=5))
    used: set[str] = set()
    for number, column in enumerate(chosen):
        name = draw(spelt(column.name, prefix))
        alias = draw(st.sampled_from(["", "", f" AS out{number}", f" Out{number}"]))
        if not alias and column.name.lower() in used:
            alias = f" AS again{number}"
        used.add(alias or column.name.lower())
        items.append(name + alias)
    return ", ".join(items)
