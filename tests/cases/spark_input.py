"""The input of Spark for a case: the tuples in the window, and the query without its window."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from tests.cases.casefile import Case, CaseFile
from tureen.language import bind_query, parse_duration
from tureen.language.source import Source
from tureen.language.text.split import split, tokenize
from tureen.query import NamedRelation, Query
from tureen.schema import Column, Kind, Schema, Type
from tureen.window import Span, from_micros, to_micros

_MOMENT = re.compile(r"\b(now|current_timestamp)\b(\(\))?", re.IGNORECASE)
_DAY = re.compile(r"\b(current_date|curdate)\b(\(\))?", re.IGNORECASE)
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
    parts = split(source, tokenize(source))
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


def bound(file: CaseFile, case: Case) -> Query:
    """The bound query of a case."""
    return bind_query(case.sql, lambda _: NamedRelation(file.stream, file.schema))


def tuples_of(file: CaseFile) -> list[tuple[int, dict[str, Any]]]:
    """The stream's retained tuples in order of (time, arrival), each with its time."""
    rows = [row for batch in file.batches for row in batch]
    time_column = file.schema.time
    timed = [(file.clock if time_column is None else to_micros(row[time_column]), row) for row in rows]
    timed.sort(key=lambda pair: pair[0])
    retain = file.settings.get("retain")
    if retain is None:
        return timed
    horizon = min(file.clock, timed[-1][0]) - parse_duration(retain)
    return [(time, row) for time, row in timed if time >= horizon]


def now_of(file: CaseFile, case: Case) -> int:
    """NOW of a case."""
    if case.now is None and file.settings.get("clock") == "stream":
        return tuples_of(file)[-1][0]
    return file.clock if case.now is None else case.now


def in_window(span: Span, tuples: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
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


def views_of(file: CaseFile, rows: list[dict[str, Any]]) -> dict[str, pa.Table]:
    """The views for Spark, by name."""
    plain = pa.Table.from_pylist(rows, schema=file.schema.arrow)
    number = Column("number", Type(Kind.INT))
    schema = Schema((*file.schema.columns, number))
    numbered = pa.Table.from_pylist([{**row, "number": i} for i, row in enumerate(rows)], schema=schema.arrow)
    return {file.stream: plain, NUMBERED + file.stream: numbered}
