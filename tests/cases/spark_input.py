"""The input of Spark for a case: the tuples in the window, and the query without its window."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from tests.cases.casefile import Case, CaseFile, CaseRelation
from tureen.language import bind_query, parse_duration
from tureen.language.source import Source
from tureen.language.text.blocks import cut_with
from tureen.language.text.split import split, tokenize
from tureen.query import Query, RelationKind
from tureen.schema import Column, Kind, Schema, Type
from tureen.window import WHOLE, Span, Window, from_micros, to_micros

_MOMENT = re.compile(r"\b(now|current_timestamp)\b(\(\))?", re.IGNORECASE)
_DAY = re.compile(r"\b(current_date|curdate)\b(\(\))?", re.IGNORECASE)
Tuples = list[tuple[int, dict[str, Any]]]

NUMBERED = "numbered_"
"""Prefix of the view that has the same tuples with their number by (time, arrival) as the column `number`."""


def windowless(sql: str) -> str:
    """The text of a query without brackets, EMIT PARTIAL, BEGIN and END.

    >>> windowless("SELECT * FROM trades [ROWS 5] AS t WHERE t.x > 1")
    'SELECT * FROM trades  AS t WHERE t.x > 1'
    >>> windowless("SELECT * FROM trades BEGIN NOW - 5 END NOW")
    'SELECT * FROM trades'
    """
    source = Source(sql)
    _, tokens = cut_with(source, tokenize(source))
    parts = split(source, tokens)
    text = sql[: parts.select[-1].end + 1]
    for bracket in reversed([bracket.tokens for bracket in parts.brackets]):
        text = text[: bracket[0].start] + text[bracket[-1].end + 1 :]
    return text.rstrip()


def at_now(sql: str, now: int) -> str:
    """The text of a query with NOW replaced by a literal, because Spark has another current time.

    >>> at_now("SELECT NOW - ts FROM s WHERE ts < current_timestamp", 0)
    "SELECT TIMESTAMP '1970-01-01 00:00:00Z' - ts FROM s WHERE ts < TIMESTAMP '1970-01-01 00:00:00Z'"
    """
    time = from_micros(now)
    text = _MOMENT.sub(f"TIMESTAMP '{time:%Y-%m-%d %H:%M:%S}Z'", sql)
    return _DAY.sub(f"DATE '{time:%Y-%m-%d}'", text)


_bound: dict[tuple[str, str], Query] = {}


def bound(file: CaseFile, case: Case) -> Query:
    """The bound query of a case, which is bound once."""
    key = file.name, case.name
    if key not in _bound:
        _bound[key] = bind_query(case.sql, file.find)
    return _bound[key]


def tuples_of(file: CaseFile, stream: CaseRelation) -> Tuples:
    """A stream's retained tuples in order of (time, arrival), each with its time."""
    time_column = stream.schema.time
    timed = [(file.clock if time_column is None else to_micros(row[time_column]), row) for row in stream.rows]
    timed.sort(key=lambda pair: pair[0])
    retain = stream.settings.get("retain")
    if retain is None:
        return timed
    horizon = min(file.clock, timed[-1][0]) - parse_duration(retain)
    return [(time, row) for time, row in timed if time >= horizon]


def now_of(file: CaseFile, case: Case) -> int:
    """NOW of a case."""
    if case.now is not None:
        return case.now
    streams = [relation for relation in file.relations if not relation.is_table]
    if all(stream.settings.get("clock") == "stream" for stream in streams):
        return max(tuples_of(file, stream)[-1][0] for stream in streams)
    return file.clock


def common_window(query: Query) -> Window:
    """The window of all streams of a query."""
    windows = {leaf.window for leaf in query.leaves if leaf.kind is RelationKind.STREAM}
    if len(windows) > 1:
        raise ValueError("the streams have different windows: write a query for Spark")
    return windows.pop() if windows else WHOLE


def in_window(span: Span, tuples: Tuples) -> list[dict[str, Any]]:
    """The rows in a window, by its definition, row by row."""
    # Counted back from the latest up to NOW, the last tuple is number 1.
    counted = [(time, row) for time, row in tuples if span.until is None or time <= span.until]
    if span.until is not None:
        first = 0 if span.take is None else max(len(counted) - span.take, 0)
        counted = counted[first : max(len(counted) - span.skip, 0)]
    return [
        row
        for time, row in counted
        if (span.begin is None or span.begin <= time) and (span.end is None or time <= span.end)
    ]


def views_of(file: CaseFile, case: Case) -> dict[str, pa.Table]:
    """The views for Spark, by name: what is in the window or, for a query of its own over a join, everything."""
    window = WHOLE if file.joins and case.spark else common_window(bound(file, case))
    views: dict[str, pa.Table] = {}
    for relation in file.relations:
        if relation.is_table:
            rows = relation.rows
        else:
            rows = in_window(window.span(now_of(file, case)), tuples_of(file, relation))
        views[relation.name] = pa.Table.from_pylist(rows, schema=relation.schema.arrow)
        schema = Schema((*relation.schema.columns, Column("number", Type(Kind.INT))))
        numbered = [{**row, "number": number} for number, row in enumerate(rows)]
        views[NUMBERED + relation.name] = pa.Table.from_pylist(numbered, schema=schema.arrow)
    return views
