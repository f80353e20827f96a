"""Partial aggregates of frames: merged, they are the aggregates of all tuples, however these are divided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.federation.flow import FlowSelection, parse_flow
from tureen.federation.frame import FlowFrame, flow_schema
from tureen.federation.increments import EXACT_SUM, Increments
from tureen.query import NamedRelation
from tureen.schema import HOME_ID, Schema
from tureen.sharing.partial_rows import FIRST_ID

SCHEMA = Schema.parse("k INT, f DOUBLE, s STRING, b BIGINT, d DECIMAL(18,3), t DOUBLE", "t")
CALLS = ["count(*)", "count(b)", "sum(b)", "sum(d)", "sum(k)", "min(f)", "max(s)"]
NAMES = ["_count", "_count:b", "_sum:b", "_sum:d", "_sum:k", "_min:f", "_max:s"]


def flow_of(keys: str) -> FlowSelection:
    text = f"SELECT {', '.join(CALLS)} FROM s [TUMBLE 10 SECONDS START AT '1970-01-01T00:00:03Z']" + (
        f" GROUP BY {keys}" if keys else ""
    )
    return parse_flow(text, lambda _: NamedRelation("s", SCHEMA))


TUPLES = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from([None, 1, 2, -(1 << 31)]),
            "f": st.sampled_from([None, float("nan"), 0.0, -2.5]),
            "s": st.sampled_from([None, "", "ab"]),
            "b": st.sampled_from([None, 1, -3, EXACT_SUM, (1 << 63) - 1, -(1 << 63)]),
            "d": st.sampled_from([None, Decimal("0.001"), Decimal("999999999999999.999")]),
            "t": st.sampled_from([-8.0, 2.999999, 3.0, 12.5, 13.0]),
        }
    ),
    min_size=1,
    max_size=12,
)


def frames_of(flow: FlowSelection, tuples: list[dict[str, Any]], ends: Iterable[int]) -> list[FlowFrame]:
    """The tuples in frames that end before these indexes, as partial aggregates."""
    schema = flow_schema(SCHEMA, flow.tuple_columns)
    increments, frames, start = Increments(flow, SCHEMA), [], 0
    for end in [*sorted(set(ends) | {len(tuples)})]:
        rows = [{**row, HOME_ID: 10 * number} for number, row in enumerate(tuples)][start:end]
        batch = pa.RecordBatch.from_pylist(rows, schema) if rows else None
        frames.append(increments.of(FlowFrame(10 * end, rows=batch), 10 * start))
        start = end
    return frames


def merged(rows: Iterable[dict[str, Any]], keys: list[str]) -> dict[Any, list[Any]]:
    """The aggregates of each pane and group, of rows that stand for one or more tuples."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        group = [repr(row[key]) for key in keys]
        groups.setdefault((int((row["t"] - 3) // 10), *group), []).append(row)
    combine: dict[str, Callable[[list[Any]], Any]] = {"count": sum, "sum": _sum, "min": _least, "max": max}
    answer = {}
    for group, members in groups.items():
        values = []
        for name in NAMES:
            present = [row[name] for row in members if row[name] is not None]
            function = name[1:].partition(":")[0]
            values.append(repr(combine[function](present)) if present else None)
        answer[group] = values
    return answer


def _sum(values: list[Any]) -> Any:
    return sum(values[1:], values[0])


def _least(values: list[float]) -> float:
    """NaN is the greatest."""
    return min(values, key=lambda value: (value != value, value))


def as_row(row: dict[str, Any]) -> dict[str, Any]:
    """A tuple as a row that stands for itself alone."""
    own = {"_count": 1, "_count:b": int(row["b"] is not None), "_sum:b": row["b"], "_sum:d": row["d"]}
    return {**row, **own, "_sum:k": row["k"], "_min:f": row["f"], "_max:s": row["s"]}


@given(TUPLES, st.sets(st.integers(0, 12)), st.sampled_from(["", "k", "f, s", "k, t"]))
@example_settings(20)
def test_merged_increments_are_the_aggregates_of_all_tuples(
    tuples: list[dict[str, Any]], ends: set[int], keys: str
) -> None:
    flow = flow_of(keys)
    frames = frames_of(flow, tuples, [end for end in ends if end < len(tuples)])
    names = keys.split(", ") if keys else []
    rows = []
    for frame in frames:
        if frame.rows is None:
            continue
        assert frame.rows.schema == flow_schema(SCHEMA, flow.columns, flow.partials)
        new = frame.rows.to_pylist()
        ids = [row[HOME_ID] for row in new]
        assert ids == sorted(set(ids))
        assert all(row[FIRST_ID] <= row[HOME_ID] < frame.next_id for row in new)
        rows += new
    assert merged(rows, names) == merged(map(as_row, tuples), names)


def test_sums_that_are_not_exact_are_sent_tuple_by_tuple() -> None:
    row = {"k": 1, "f": 0.5, "s": "", "b": EXACT_SUM, "d": None, "t": 4.0}
    (frame,) = frames_of(flow_of("k"), [row, {**row, "b": 0}], [])
    assert frame.rows is not None
    assert frame.rows.column("_count").to_pylist() == [2]
    (frame,) = frames_of(flow_of("k"), [row, {**row, "b": 1}], [])
    assert frame.rows is not None
    assert frame.rows.column("_sum:b").to_pylist() == [EXACT_SUM, 1]
    full = {**row, "b": 1, "d": Decimal("999999999999999.999")}
    (frame,) = frames_of(flow_of("k"), [full, {**full, "d": Decimal("0.001")}], [])
    assert frame.rows is not None
    assert frame.rows.column("_count").to_pylist() == [1, 1]
