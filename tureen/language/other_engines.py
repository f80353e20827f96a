"""What users of other streaming engines and databases write, and what to write instead: hints of errors."""

from __future__ import annotations

_STEP = "write FROM stream [TUMBLE 15 MINUTES], or GROUP BY TUMBLE(ts, INTERVAL '15' MINUTE)"
_BOUNDS = "write window_start and window_end; the arguments of TUMBLE_START are those of TUMBLE in GROUP BY"
_VIEW = "write REGISTER QUERY name AS SELECT …, or CREATE STREAM name AS SELECT … for a stream of its changes"

FOREIGN_FUNCTIONS = {
    "mz_now": "write NOW; for a condition on the time of tuples, BEGIN NOW - 5 MINUTES END NOW",
    "mz_logical_timestamp": "write NOW; for a condition on the time of tuples, BEGIN NOW - 5 MINUTES END NOW",
    "proctime": "write NOW; a stream without TIME has the time of arrival",
    "current_watermark": "write NOW: of a stream with CLOCK stream it is the highest time seen",
    "date_bin": _STEP,
    "time_bucket": _STEP,
    "tumble_start": _BOUNDS,
    "tumble_end": _BOUNDS,
    "hop_start": _BOUNDS,
    "hop_end": _BOUNDS,
    "latest_by_offset": "write last(x) IGNORE NULLS",
    "earliest_by_offset": "write first(x) IGNORE NULLS",
    "topk": "write QUALIFY row_number() OVER (PARTITION BY key ORDER BY x DESC) <= 3",
    "to_char": "write date_format(ts, 'yyyy-MM-dd')",
    "strftime": "write date_format(ts, 'yyyy-MM-dd')",
    "age": "write timestampdiff(SECOND, a, b)",
    "json_agg": "write collect_list(x)",
    "jsonb_agg": "write collect_list(x)",
    "group_concat": "write string_agg(x, ',')",
}
"""By the name of a function in lower case."""

STATEMENTS = {
    "INSERT": "add rows with push(), or create the stream with a source",
    "DELETE": "RETAIN limits the rows of a stream; replace_table() changes a table",
    "UPDATE": "replace_table() changes a table",
    "ALTER": "drop it and create it again",
    "COPY": "write tureen push STREAM FILE, or CREATE TABLE name FROM 'file.csv'",
    "SUBSCRIBE": "register the query and follow its changes(), or write tureen query follow",
    "TAIL": "register the query and follow its changes(), or write tureen query follow",
    "REFRESH": "leave it out: answers are always current",
    "TRUNCATE": "drop the stream and create it again; RETAIN limits its rows",
}
"""By the first word of a statement."""

CREATED = {
    "QUERY": "write REGISTER QUERY name AS SELECT …",
    "VIEW": _VIEW,
    "MATERIALIZED": _VIEW,
    "SOURCE": "write CREATE STREAM name (columns) FROM 'kafka' OPTIONS (…)",
    "SINK": "follow the changes() of a query, or read it in a Spark job by format('tureen')",
    "INDEX": "leave it out: every column is indexed",
}
"""By the word after CREATE; the first is an error of Tureen's own users."""

EMITS = {
    "CHANGES": "leave it out, and follow the changes() of the registered query",
    "ON": "leave it out: a step is returned when it is over; EMIT FINAL returns only groups that cannot change",
}
"""By the word after EMIT."""

CONSTRAINTS = {
    "NOT": "leave NOT NULL out: every column but the time may be NULL",
    "PRIMARY KEY": "write UNIQUE (column) after the columns",
    "PRIMARY": "write UNIQUE (column) after the columns",
    "KEY": "write UNIQUE (column) after the columns",
    "DEFAULT": "leave it out: a missing value is NULL",
}
"""By the word after the type of a column."""

AS_OF = "write ASOF JOIN r ON a.k = r.k AND a.ts >= r.ts; a table has its content as of the answer"
"""For FOR SYSTEM_TIME AS OF."""

PATTERNS = "compare with lag(x) OVER (PARTITION BY key ORDER BY ts), or join the stream with itself"
"""For MATCH_RECOGNIZE."""

WINDOW_CLAUSE = "write FROM stream [TUMBLE 1 HOUR], or GROUP BY session_window(ts, '5 minutes')"
"""For WINDOW TUMBLING (SIZE 1 HOUR) and the like."""
