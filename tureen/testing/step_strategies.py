"""Random step windows for Hypothesis, and equivalent tables for a judge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tureen.schema import Schema
from tureen.testing.judge import RANK, Judge
from tureen.window import Steps, to_micros

NOW = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
"""NOW of all judged queries: a good part of the streams' times are before it, and some after."""

STEP = "_step"
"""The column of the judge's table that numbers its steps."""

_UNITS = {"MILLISECONDS": 1000, "SECONDS": 1_000_000, "MINUTES": 60_000_000}
_REACH = to_micros(NOW) - timedelta(hours=4) // timedelta(microseconds=1), to_micros(NOW) + 4 * 3_600_000_000
"""All times of the streams are between these."""


@dataclass(frozen=True)
class StepText:
    """The SQL of steps: in brackets after the stream, in GROUP BY, and at the end of the query."""

    bracket: str
    key: str
    tail: str
    steps: Steps


@st.composite
def step_texts(draw: st.DrawFn, schema: Schema, judge: Judge | None = None) -> StepText:
    """Steps of every form; Spark's window function requires slide <= width."""
    partial = draw(st.sampled_from(["", "", "inside", "tail"]))
    tail = "EMIT PARTIAL" if partial == "tail" else ""
    forms = ["RANGE", "HOP", "TUMBLE", *(["ROWS", "ROWS"] if judge != "spark" else [])]
    forms += ["TUMBLE()", "HOP()", "window()", "window()"] if schema.time is not None else []
    form = draw(st.sampled_from(forms))
    inside = " EMIT PARTIAL" if partial == "inside" else ""
    if form == "ROWS":
        width, slide = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        steps = Steps(width, slide, rows=True, partial=partial != "")
        return StepText(f"[ROWS {width} SLIDE {slide}{inside}]", "", tail, steps)
    unit = draw(st.sampled_from(["SECONDS", "SECONDS", "MINUTES", "MINUTES", "MILLISECONDS"]))
    width = draw(st.integers(1, 8)) * (100 if unit == "MILLISECONDS" else draw(st.sampled_from([1, 1, 7])))
    slide = max(1, draw(st.sampled_from([width, width, width // 2, width // 3, width - 1, 2 * width, width + 1])))
    if "TUMBLE" in form:
        slide = width
    elif "(" in form or judge == "spark":
        slide = min(slide, width)
    length = _UNITS[unit]
    if form.endswith("()"):
        # These forms have no bracket for EMIT PARTIAL.
        return _function(draw, form, str(schema.time), unit, width, slide, "EMIT PARTIAL" if partial else "")
    start, origin = "", 0
    if draw(st.booleans()):
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=draw(st.sampled_from([0, 500, 90_000, 1])))
        start, origin = f" START AT TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'", to_micros(moment) % (slide * length)
    slides = "" if form == "TUMBLE" else f" SLIDE {slide} {unit}"
    bracket = f"[{form} {width} {unit}{slides}{start}{inside}]"
    return StepText(bracket, "", tail, Steps(width * length, slide * length, origin, partial=partial != ""))


def _function(draw: st.DrawFn, form: str, time: str, unit: str, width: int, slide: int, tail: str) -> StepText:
    length, singular = _UNITS[unit], unit.removesuffix("S")
    origin = 0
    if form == "TUMBLE()":
        key = f"TUMBLE({time}, INTERVAL '{width}' {singular})"
    elif form == "HOP()":
        key = f"HOP({time}, INTERVAL '{slide}' {singular}, INTERVAL '{width}' {singular})"
    else:
        key = f"window({time}, '{width} {unit.lower()}', '{slide} {unit.lower()}'"
        origin = draw(st.sampled_from([0, 0, 1])) * length if slide > 1 else 0
        key += f", '1 {singular.lower()}')" if origin else ")"
    return StepText("", key, tail, Steps(width * length, slide * length, origin, partial=tail != ""))


def judged_table(steps: Steps, table: str, time: str, judge: Judge) -> str:
    """A table with a row for each tuple and each step that contains it, without steps that are not whole."""
    if judge == "spark":
        lengths = ", ".join(f"'{length} microseconds'" for length in (steps.width, steps.slide, steps.origin))
        rows = f"SELECT *, window({time}, {lengths}) AS w FROM {table}"
        stepped = f"SELECT *, w.start AS {STEP}, w.start AS window_start, w.end AS window_end FROM ({rows})"
        return stepped if steps.partial else f"{stepped} WHERE w.end <= {_literal()}"
    location = RANK if steps.rows else f"epoch_us({time})"
    low, high = (-10, 1000) if steps.rows else _REACH
    numbers = f"range({(low - steps.origin) // steps.slide - 10}, {(high - steps.origin) // steps.slide + 10})"
    start = f"{steps.origin} + {STEP} * {steps.slide}"
    rows = (
        f"SELECT * FROM {table} JOIN {numbers} AS r({STEP})"
        f" ON {start} <= {location} AND {location} < {start} + {steps.width}"
    )
    if not steps.rows:
        ends = f"make_timestamp({start}) AS window_start, make_timestamp({start} + {steps.width}) AS window_end"
        whole = f"{start} + {steps.width} <= {to_micros(NOW)}"
    else:
        over = f"OVER (PARTITION BY {STEP})"
        ends = f"min({time}) {over} AS window_start, max({time}) {over} AS window_end, count(*) {over} AS held"
        whole = f"held = {steps.width} AND window_end <= {_literal()}"
    stepped = f"SELECT *, {ends} FROM ({rows})"
    return stepped if steps.partial else f"SELECT * FROM ({stepped}) WHERE {whole}"


def _literal() -> str:
    return f"TIMESTAMP '{NOW:%Y-%m-%d %H:%M:%S}+00:00'"
