"""Random graphs of derived streams, and what their streams must contain, computed from scratch.

All streams have a key, a value and a time. A stream whose times are in the order of arrival may be divided into steps;
which rows a step has would otherwise depend on when it is over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tureen.functions.function_lookup import NamedFunctions
from tureen.functions.user_function import UserFunction
from tureen.language import bind_query
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.testing.appearing_rows import AppearingRows, TwinRelation
from tureen.testing.tuples import Tuple
from tureen.window import from_micros, to_micros

COLUMNS = "k INT, v INT, ts TIMESTAMP"
SCHEMA = Schema.parse(COLUMNS, "ts")
BASES = ("s", "t")
MOST_ROWS = 120
"""A stream that would have more rows is not derived."""
MOST_DEPTH = 4

Contents = Mapping[str, Sequence[Tuple]]
"""The tuples of each stream; the order of those of derived streams has no meaning."""


@dataclass(frozen=True)
class DerivedNode:
    """A derived stream."""

    name: str
    sql: str
    inputs: tuple[str, ...]
    depth: int
    in_order: bool
    """Whether its times are in the order of arrival."""
    step_seconds: int | None = None


def bump(value: int | None) -> int | None:
    """A user function."""
    return None if value is None else (value * 7 + 3) % 50


def is_small(value: int | None) -> bool:
    """A user function as a condition."""
    return value is not None and value % 3 != 1


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {"bump": (bump, "INT"), "is_small": (is_small, "BOOLEAN")}
"""User functions of one INT, and their types."""


def random_graph(
    draw: random.Random, size: int, rows: Contents, functions: Mapping[str, UserFunction]
) -> list[DerivedNode]:
    """That many derived streams, which have rows if the base streams have those; without cycles."""
    nodes: list[DerivedNode] = []
    contents: dict[str, Sequence[Tuple]] = dict(rows)
    while len(nodes) < size:
        node = _random_node(draw, f"d{len(nodes)}", nodes, with_functions=bool(functions))
        tuples = _contents(node, contents, functions)
        if 0 < len(tuples) <= MOST_ROWS:
            nodes.append(node)
            contents[node.name] = tuples
    return nodes


def graph_contents(nodes: Sequence[DerivedNode], rows: Contents, functions: Mapping[str, UserFunction]) -> Contents:
    """The tuples of all streams, given those of the base streams."""
    contents: dict[str, Sequence[Tuple]] = dict(rows)
    for node in nodes:
        contents[node.name] = _contents(node, contents, functions)
    return contents


def _random_node(draw: random.Random, name: str, nodes: Sequence[DerivedNode], *, with_functions: bool) -> DerivedNode:
    known = {node.name: node for node in nodes if node.depth < MOST_DEPTH}
    # Chains are more likely than a flat graph.
    source = draw.choice([*BASES, *known, *list(known)[-2:]])
    other = draw.choice([*BASES, *known])
    kinds = ["select", "project", "join", "join", "exists", "step"] + ["function"] * 2 * with_functions
    kind = draw.choice(kinds)
    in_order = source in BASES or known[source].in_order
    depth = 1 + max(0 if stream in BASES else known[stream].depth for stream in (source, other))
    alone = 1 + (0 if source in BASES else known[source].depth)
    if kind == "step" and not in_order:
        kind = "select"
    match kind:
        case "select":
            condition = draw.choice(["v % 2 = 0", "v > 10", "k IS NOT NULL AND v <> 7", "v % 3 = 1 OR k = 1"])
            return DerivedNode(name, f"SELECT k, v, ts FROM {source} WHERE {condition}", (source,), alone, in_order)
        case "project":
            item = draw.choice(["CAST((v * 3 + k) % 50 AS INT)", "CAST(coalesce(v, 1) AS INT)"])
            return DerivedNode(name, f"SELECT k, {item} AS v, ts FROM {source}", (source,), alone, in_order)
        case "function":
            sql = draw.choice(["SELECT k, bump(v) AS v, ts FROM {}", "SELECT k, v, ts FROM {} WHERE is_small(v)"])
            return DerivedNode(name, sql.format(source), (source,), alone, in_order)
        case "step":
            width = draw.choice([3, 5])
            items = "k, CAST(sum(v) % 50 AS INT) AS v, window_start AS ts"
            sql = f"SELECT {items} FROM {source} [TUMBLE {width} SECONDS] GROUP BY k"
            return DerivedNode(name, sql, (source,), alone, True, width)
        case "exists":
            window = draw.choice(["", " [RANGE 4 SECONDS]"])
            tested = f"EXISTS (SELECT 1 FROM {other}{window} b WHERE b.k = a.k AND b.v >= a.v)"
            sql = f"SELECT k, v, ts FROM {source} a WHERE {tested}"
            return DerivedNode(name, sql, (source, other), depth, False)
        case _:
            windows = [draw.choice(["", " [RANGE 4 SECONDS]"]) for _ in range(2)]
            condition = draw.choice(["a.k = b.k", "a.k = b.k AND a.v < b.v", "a.k = b.k AND (a.v + b.v) % 3 = 0"])
            sql = "SELECT a.k AS k, CAST((a.v + b.v) % 50 AS INT) AS v, a.ts AS ts"
            sql += f" FROM {source}{windows[0]} a JOIN {other}{windows[1]} b ON {condition}"
            return DerivedNode(name, sql, (source, other), depth, False)


def _contents(node: DerivedNode, contents: Contents, functions: Mapping[str, UserFunction]) -> list[Tuple]:
    if node.step_seconds is not None:
        rows = _closed_steps(contents[node.inputs[0]], node.step_seconds)
    else:
        query = bind_query(node.sql, lambda name: NamedRelation(name, SCHEMA), functions=NamedFunctions(functions))
        relations = {name: TwinRelation(SCHEMA, tuples) for name, tuples in contents.items()}
        rows = AppearingRows(query, relations).rows_at({name: len(tuples) for name, tuples in contents.items()})
    return numbered_tuples(rows)


def numbered_tuples(rows: Sequence[Mapping[str, Any]]) -> list[Tuple]:
    """Rows as tuples of a stream, in that order."""
    return [Tuple(number, to_micros(row["ts"]), dict(row)) for number, row in enumerate(rows)]


def _closed_steps(tuples: Sequence[Tuple], seconds: int) -> list[dict[str, Any]]:
    """The sums of the steps that end at the highest time or before, by key."""
    width = seconds * 1_000_000
    now = max((stored.time for stored in tuples), default=0)
    sums: dict[tuple[int, Any], list[int]] = {}
    for stored in tuples:
        start = stored.time // width * width
        if start + width <= now:
            sums.setdefault((start, stored.values["k"]), []).extend(
                [] if stored.values["v"] is None else [stored.values["v"]]
            )
    return [
        {"k": k, "v": _remainder(sum(values)) if values else None, "ts": from_micros(start)}
        for (start, k), values in sums.items()
    ]


def _remainder(total: int) -> int:
    """The remainder of SQL, which has the sign of the total."""
    return total % 50 if total >= 0 else -(-total % 50)
