"""Random joins that can be followed, several over the same relations, each with its equivalent in DuckDB.

The batch query is over views with the names of the relations, which have the tuples up to a moment, with their number
in the column `_id`. Its windows are predicates over the time of the latest tuple of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

STREAMS = ("a", "b", "c")
TABLE = "dim"
STREAM_COLUMNS = "k INT, x INT, s STRING, ts TIMESTAMP"
TABLE_COLUMNS = "k INT, x INT, s STRING"

_SHAPES = ("ab", "ab", "ab", "ba", "aa", "ad", "da", "abd", "aab", "abc", "cab", "abcd", "abab")
"""The relations of FROM; d is the table."""

_CLAUSES = (
    "{0}.x > 1",
    "{0}.x < 3",
    "{0}.x BETWEEN 1 AND 2",
    "{0}.x % 2 = 0",
    "{0}.s IN ('a', 'b')",
    "{0}.k IS NOT NULL AND {0}.x <> 2",
    "{0}.s = 'a' OR {0}.x = 3",
    "{0}.x IS NULL",
)
_BETWEEN = ("{0}.x <= {1}.x", "{0}.x <> {1}.x + 1", "({0}.x + {1}.x) % 3 < 2", "coalesce({0}.s, {1}.s) <> 'b'")


@dataclass(frozen=True)
class FollowedJoinText:
    """A query, and the SELECT of DuckDB that has its rows at a moment, with the numbers of their tuples first."""

    text: str
    judge_sql: str
    visible: int
    """How many columns of the judge are numbers of tuples."""


def stream_row() -> st.SearchStrategy[dict[str, Any]]:
    """A tuple, by how many seconds it is late among its values; most have partners."""
    return st.fixed_dictionaries(
        {
            "k": st.sampled_from([0, 1, 0, 1, 2, None]),
            "x": st.sampled_from([0, 1, 2, 3, None]),
            "s": st.sampled_from(["a", "b", "a", None]),
            "late": st.sampled_from([0, 0, 0, 2, 7]),
        }
    )


def table_rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """The rows of the table."""
    row = st.fixed_dictionaries(
        {
            "k": st.sampled_from([0, 1, 2, None]),
            "x": st.sampled_from([0, 1, 2, None]),
            "s": st.sampled_from(["a", "b", None]),
        }
    )
    return st.lists(row, max_size=3)


@st.composite
def join_families(draw: st.DrawFn) -> list[FollowedJoinText]:
    """Queries over one join, which differ in clauses, windows and select lists, or have all of these in common."""
    shape = draw(st.sampled_from(_SHAPES))
    names = [f"t{number}" for number in range(len(shape))]
    joined = []
    for number in range(1, len(names)):
        other = names[draw(st.integers(0, number - 1))]
        columns = draw(st.sampled_from([("k",), ("k",), ("k", "s")]))
        joined += [f"{other}.{column} = {names[number]}.{column}" for column in columns]
    joined += draw(st.lists(st.sampled_from(_BETWEEN), max_size=1).map(lambda texts: _with_names(texts, names)))
    outputs = draw(_outputs(names))
    windows = draw(_windows(shape))
    # In one family of three, queries have rows with one partner at least.
    exists = draw(_partners(names[0])) if draw(st.integers(0, 2)) == 0 else None
    family = []
    for _ in range(draw(st.integers(2, 4))):
        clauses = draw(st.lists(st.tuples(st.sampled_from(_CLAUSES), st.sampled_from(names)), max_size=2))
        conditions = [*joined, *(f"({clause.format(name)})" for clause, name in clauses)]
        kind = draw(st.sampled_from(["same", "same", "outputs", "windows", "condition"]))
        if kind == "condition":
            conditions += _with_names([draw(st.sampled_from(_BETWEEN))], names)
        family.append(
            _query(
                shape,
                conditions,
                draw(_outputs(names)) if kind == "outputs" else outputs,
                draw(_windows(shape)) if kind == "windows" else windows,
                exists,
            )
        )
    return family


@dataclass(frozen=True)
class _Partners:
    """EXISTS or IN: the relation, its window in seconds, the condition, and the column that is compared by IN."""

    relation: str
    window: int | None
    conditions: tuple[str, ...]
    column: str | None


def _query(
    shape: str, conditions: list[str], outputs: list[str], windows: list[int | None], exists: _Partners | None
) -> FollowedJoinText:
    names = [f"t{number}" for number in range(len(shape))]
    relations = [TABLE if letter == "d" else letter for letter in shape]
    sources = [
        f"{relation}{_bracket(window)} {name}" for relation, window, name in zip(relations, windows, names, strict=True)
    ]
    items = ", ".join(f"{output} AS c{number}" for number, output in enumerate(outputs))
    text_where, inner = list(conditions), ["TRUE"]
    spans = [(name, window) for name, window, letter in zip(names, windows, shape, strict=True) if letter != "d"]
    source = ""
    if exists is not None:
        spans.append(("e", exists.window))
        source = f"{exists.relation} e"
        inner = list(exists.conditions)
        tested = f"SELECT {'1' if exists.column is None else f'e.{exists.column}'} FROM {exists.relation}"
        tested += f"{_bracket(exists.window)} e WHERE {' AND '.join(inner)}"
        if exists.column is None:
            text_where.append(f"EXISTS ({tested})")
        else:
            text_where.append(f"t0.{exists.column} IN ({tested})")
            inner.append(f"t0.{exists.column} = e.{exists.column}")
    latest = f"greatest({', '.join(f'{name}.ts' for name, _ in spans)})"
    within = [f"{name}.ts >= {latest} - INTERVAL {window} SECOND" for name, window in spans if window is not None]
    within = within or ["TRUE"]
    # Windows depend on the partner's time too.
    tests = [f"EXISTS (SELECT 1 FROM {source} WHERE {' AND '.join([*inner, *within])})"] if source else within
    plain = ", ".join(f"{relation} {name}" for relation, name in zip(relations, names, strict=True))
    ids = ", ".join(f"{name}._id AS i{number}" for number, name in enumerate(names))
    return FollowedJoinText(
        f"SELECT {items} FROM {', '.join(sources)} WHERE {' AND '.join(text_where)}",
        f"SELECT {ids}, {items} FROM {plain} WHERE {' AND '.join([*conditions, *tests])}",
        len(names),
    )


def _bracket(window: int | None) -> str:
    return "" if window is None else f" [RANGE {window} SECONDS]"


def _with_names(texts: list[str], names: list[str]) -> list[str]:
    return [text.format(names[0], names[-1]) for text in texts]


def _outputs(names: list[str]) -> st.SearchStrategy[list[str]]:
    columns = [f"{name}.{column}" for name in names for column in ("k", "x", "s")]
    # With NULL, concat of DuckDB differs.
    text = f"concat(coalesce({names[0]}.s, 'z'), '-', coalesce({names[-1]}.s, 'z'))"
    computed = [f"{names[0]}.x + {names[-1]}.x", text]
    return st.lists(st.sampled_from([*columns, *computed]), min_size=1, max_size=3)


@st.composite
def _windows(draw: st.DrawFn, shape: str) -> list[int | None]:
    return [None if letter == "d" else draw(st.sampled_from([None, None, 3, 12])) for letter in shape]


@st.composite
def _partners(draw: st.DrawFn, name: str) -> _Partners:
    conditions = draw(st.lists(st.sampled_from(["e.x > 0", f"e.x >= {name}.x", "e.s = 'a'"]), max_size=1))
    column = draw(st.sampled_from([None, "k"]))
    if column is None or not conditions:
        conditions.append(f"e.k = {name}.k")
    relation = draw(st.sampled_from(["b", "c"]))
    return _Partners(relation, draw(st.sampled_from([None, 4])), tuple(conditions), column)
