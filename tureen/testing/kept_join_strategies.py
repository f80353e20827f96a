"""Random joins of two or three streams whose results can be kept: of every kind, with windows, and with aggregates."""

from __future__ import annotations

from hypothesis import strategies as st

_ON = (
    "l.x < r.x",
    "l.x <= r.x + 1",
    "l.x + r.x > 2",
    "l.x > 1",
    "r.x < 3",
    "r.s = 'a'",
    "coalesce(l.s, '') <> coalesce(r.s, '')",
)
"""Conditions beside the equality: comparisons, conditions of one side, and expressions over both."""

_WHERE_LEFT = ("l.x > 0", "l.s IS NOT NULL", "l.x % 2 = 0", "l.d < 2.5")
_WHERE_BOTH = ("r.x IS NULL", "r.x > 0", "l.x + r.x > 2", "l.x IS NULL OR r.x = 1", "r.k = 2")
_JOINS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "ASOF JOIN", "ASOF LEFT JOIN")
_WITHOUT_RIGHT = ("SEMI JOIN", "ANTI JOIN", "EXISTS", "NOT EXISTS", "IN", "NOT IN")
_WINDOWS = ("", "", "", " [RANGE 3 SECONDS]", " [RANGE 8 SECONDS]", " [ROWS 4]")
_AT_END = ("", "", " BEGIN NOW - 6 END NOW", " BEGIN NOW - 9 END NOW - 2")
_AGGREGATES = (
    "count(*)",
    "sum({0}.x)",
    "min({0}.m)",
    "max({0}.s)",
    "avg({0}.x)",
    "count(DISTINCT {0}.x)",
    "max({0}.ts)",
)


@st.composite
def kept_joins(draw: st.DrawFn) -> str:
    """The text of a query over the streams of `tureen.testing.join_strategies`."""
    left, right = draw(st.sampled_from([("a", "b"), ("a", "b"), ("b", "a"), ("a", "a"), ("b", "c")]))
    at_end = draw(st.sampled_from(_AT_END))
    left, right = (
        f"{stream}{'' if at_end else draw(st.sampled_from(_WINDOWS))} {alias}"
        for stream, alias in ((left, "l"), (right, "r"))
    )
    kind = draw(st.sampled_from([*_JOINS, *_WITHOUT_RIGHT]))
    conditions = ["l.k = r.k", *draw(st.lists(st.sampled_from(_ON), max_size=2, unique=True))]
    where = draw(st.lists(st.sampled_from(_WHERE_LEFT), max_size=1))
    if kind in _WITHOUT_RIGHT:
        aliases = ["l"]
    else:
        aliases = ["l", "r"]
        where += draw(st.lists(st.sampled_from(_WHERE_BOTH), max_size=1))
    source = f"{left} {kind} {right} ON "
    if kind.startswith("ASOF"):
        # It has one inequality between its sides.
        conditions = [condition for condition in conditions if condition not in _ON[:2]]
        conditions.append(f"l.ts {draw(st.sampled_from(['>=', '>', '<=', '<']))} r.ts")
    if kind in ("EXISTS", "NOT EXISTS"):
        source, where = left, [*where, f"{kind} (SELECT 1 FROM {right} WHERE {' AND '.join(conditions)})"]
    elif kind in ("IN", "NOT IN"):
        inner = draw(st.sampled_from(["", f" WHERE {' AND '.join(conditions)}", " WHERE r.k IS NOT NULL"]))
        column = draw(st.sampled_from(["k", "x"]))
        source, where = left, [*where, f"l.{column} {kind} (SELECT r.{column} FROM {right}{inner})"]
    else:
        source += " AND ".join(draw(st.permutations(conditions)))
    if not kind.startswith("ASOF") and kind != "FULL JOIN" and draw(st.integers(0, 4)) == 0:
        third = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
        source += f" {third} c{'' if at_end else ' [RANGE 10 SECONDS]'} o ON o.k = l.k AND o.x = l.x"
        aliases.append("o")
    text = f" FROM {source}" + (f" WHERE {' AND '.join(f'({part})' for part in where)}" if where else "")
    return draw(_items(aliases)).replace("{from}", text) + at_end


@st.composite
def _items(draw: st.DrawFn, aliases: list[str]) -> str:
    """A select list, and GROUP BY; `{from}` stands for the rest."""
    alias = st.sampled_from(aliases)
    if draw(st.booleans()):
        columns = draw(st.lists(st.tuples(alias, st.sampled_from(["k", "x", "s", "m", "ts"])), min_size=1, max_size=4))
        return f"SELECT {', '.join(f'{name}.{column} AS c{n}' for n, (name, column) in enumerate(columns))}{{from}}"
    calls = [call.format(draw(alias)) for call in draw(st.lists(st.sampled_from(_AGGREGATES), min_size=1, max_size=3))]
    keys = [f"{draw(alias)}.{column}" for column in draw(st.sampled_from([(), ("k",), ("s",), ("k", "s")]))]
    items = ", ".join(f"{item} AS c{number}" for number, item in enumerate([*keys, *calls]))
    return f"SELECT {items}{{from}}" + (f" GROUP BY {', '.join(keys)}" if keys else "")
