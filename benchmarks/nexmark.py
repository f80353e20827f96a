"""The queries of NEXMark, compared with DuckDB from scratch on the same rows.

Each answer is verified first. The queries are those of the Flink and Beam suites, over all retained tuples or the
window at NOW. Not all of them fit:

* q10 writes bids into files by day, which is a sink and no query.
* q11 has sessions with gaps of 2 seconds, so that some end while few events arrive.
* q12 counts bids in windows of processing time, of which there are none.
* q13 looks up the rest of an auction's id in a table. The condition of its join is an expression, which no key index
  has.
* q14 counts a letter of the URL, because bids have no further text, and without a user function. q21 takes the id of an
  unknown channel from the URL's first folder.
* q5 and q7 return the steps that are whole at NOW; a stream processor emits each step once.
* q8 compares the numbers of the steps of 10 seconds that the times of a person and of an auction lie in, because steps
  of a join contain joined rows by their earliest time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

import tureen
from benchmarks.invocation import p50
from benchmarks.nexmark_workload import SCHEMAS, SIDE, SIDE_ROWS, SIDE_SCHEMA, NexmarkEvents, nexmark_events
from benchmarks.report import Report
from benchmarks.scale import Scale

SECONDS = 600.0
"""The time that the events of the benchmark cover."""

PUSHES = 8

_PRICES = ("< 10000", "BETWEEN 10000 AND 999999", "> 999999")
"""The ranges of prices that q15 to q17 count bids in."""

_RANKED = ", ".join(f"count(*) FILTER (WHERE price {prices}) AS bids_{rank}" for rank, prices in enumerate(_PRICES))
_PER_DAY = ", ".join(
    ["count(*) AS bids", _RANKED]
    + [
        f"count(DISTINCT {column}) AS {column}s, "
        + ", ".join(
            f"count(DISTINCT {column}) FILTER (WHERE price {prices}) AS {column}s_{rank}"
            for rank, prices in enumerate(_PRICES)
        )
        for column in ("bidder", "auction")
    ]
)
_WON = "auction a JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires"


@dataclass(frozen=True)
class NexmarkQuery:
    """A query and, where DuckDB needs another text, that text; `{now}` in it is NOW."""

    what: str
    sql: str
    duckdb: str | None = None

    def judge_sql(self, now: int) -> str:
        """The text for DuckDB."""
        return (self.duckdb or self.sql).replace("{now}", f"make_timestamptz({now})")


QUERIES = {
    "q1": NexmarkQuery(
        "currency conversion",
        "SELECT auction, bidder, 0.908 * price AS price, ts FROM bid",
        "SELECT auction, bidder, 0.908 * price::DECIMAL(19,0) AS price, ts FROM bid",
    ),
    "q2": NexmarkQuery("selection", "SELECT auction, price FROM bid WHERE auction % 123 = 0"),
    "q3": NexmarkQuery(
        "local item suggestion",
        "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
        "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    ),
    "q4": NexmarkQuery(
        "average price of a category",
        f"SELECT q.category, avg(q.final) AS price FROM (SELECT a.id, a.category, max(b.price) AS final FROM {_WON} "
        "GROUP BY a.id, a.category) q GROUP BY q.category",
    ),
    "q5": NexmarkQuery(
        "hot items",
        "SELECT window_start, auction, count(*) AS n FROM bid [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY auction "
        "QUALIFY rank() OVER (PARTITION BY window_start ORDER BY count(*) DESC) = 1",
        "SELECT start AS window_start, auction, count(*) AS n FROM (SELECT auction, "
        "time_bucket(INTERVAL 2 SECONDS, ts) - i * INTERVAL 2 SECONDS AS start FROM bid, range(5) t(i)) "
        "WHERE start + INTERVAL 10 SECONDS <= {now} GROUP BY start, auction "
        "QUALIFY rank() OVER (PARTITION BY start ORDER BY count(*) DESC) = 1",
    ),
    "q6": NexmarkQuery(
        "average selling price of a seller",
        "SELECT q.seller, avg(q.final) OVER (PARTITION BY q.seller ORDER BY q.ts, q.id ROWS BETWEEN 10 PRECEDING AND "
        f"CURRENT ROW) AS price FROM (SELECT a.seller, a.id, max(b.price) AS final, max(b.ts) AS ts FROM {_WON} "
        "GROUP BY a.seller, a.id) q",
    ),
    "q7": NexmarkQuery(
        "highest bid",
        "SELECT window_start, auction, bidder, price FROM bid [TUMBLE 10 SECONDS] "
        "QUALIFY rank() OVER (PARTITION BY window_start ORDER BY price DESC) = 1",
        "SELECT start AS window_start, auction, bidder, price FROM "
        "(SELECT *, time_bucket(INTERVAL 10 SECONDS, ts) AS start FROM bid) "
        "WHERE start + INTERVAL 10 SECONDS <= {now} "
        "QUALIFY rank() OVER (PARTITION BY start ORDER BY price DESC) = 1",
    ),
    "q8": NexmarkQuery(
        "new users",
        "SELECT DISTINCT p.id, p.name FROM person p JOIN auction a ON p.id = a.seller "
        "AND unix_seconds(p.ts) DIV 10 = unix_seconds(a.ts) DIV 10",
        "SELECT DISTINCT p.id, p.name FROM person p JOIN auction a ON p.id = a.seller "
        "AND epoch_us(p.ts) // 10000000 = epoch_us(a.ts) // 10000000",
    ),
    "q9": NexmarkQuery(
        "winning bids",
        f"SELECT a.id, a.item, a.seller, b.bidder, b.price, b.ts FROM {_WON} "
        "QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts, b.bidder) = 1",
    ),
    "q11": NexmarkQuery(
        "bids of a person in a session",
        "SELECT bidder, window_start, window_end, count(*) AS bids FROM bid "
        "GROUP BY bidder, session_window(ts, '2 seconds')",
        "SELECT bidder, min(ts) AS window_start, max(ts) + INTERVAL 2 SECONDS AS window_end, count(*) AS bids FROM "
        "(SELECT *, sum(begins) OVER (PARTITION BY bidder ORDER BY ts) AS nth FROM (SELECT *, CASE WHEN lag(ts) OVER "
        "(PARTITION BY bidder ORDER BY ts) + INTERVAL 2 SECONDS >= ts THEN 0 ELSE 1 END AS begins FROM bid)) "
        "GROUP BY bidder, nth HAVING max(ts) + INTERVAL 2 SECONDS < {now}",
    ),
    "q13": NexmarkQuery(
        "bids with a side input",
        f"SELECT b.auction, b.bidder, b.price, b.ts, s.value FROM bid b JOIN side s ON b.auction % {SIDE_ROWS} = s.key",
    ),
    "q14": NexmarkQuery(
        "calculation",
        "SELECT auction, bidder, 0.908 * price AS price, CASE WHEN hour(ts) BETWEEN 8 AND 18 THEN 'dayTime' "
        "WHEN hour(ts) <= 6 OR hour(ts) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time, "
        "length(url) - length(replace(url, 'm', '')) AS c_counts FROM bid "
        "WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000",
        "SELECT auction, bidder, 0.908 * price::DECIMAL(19,0) AS price, CASE WHEN hour(ts) BETWEEN 8 AND 18 "
        "THEN 'dayTime' WHEN hour(ts) <= 6 OR hour(ts) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time, "
        "length(url) - length(replace(url, 'm', '')) AS c_counts FROM bid "
        "WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000",
    ),
    "q15": NexmarkQuery(
        "bids of a day", f"SELECT CAST(ts AS DATE) AS day, {_PER_DAY} FROM bid GROUP BY CAST(ts AS DATE)"
    ),
    "q16": NexmarkQuery(
        "bids of a channel and a day",
        f"SELECT channel, CAST(ts AS DATE) AS day, max(ts) AS latest, {_PER_DAY} FROM bid "
        "GROUP BY channel, CAST(ts AS DATE)",
    ),
    "q17": NexmarkQuery(
        "bids of an auction and a day",
        f"SELECT auction, CAST(ts AS DATE) AS day, count(*) AS bids, {_RANKED}, min(price) AS least, "
        "max(price) AS greatest, avg(price) AS mean, sum(price) AS total FROM bid GROUP BY auction, CAST(ts AS DATE)",
    ),
    "q18": NexmarkQuery(
        "last bid of a person",
        "SELECT auction, bidder, price, channel, url, ts FROM bid "
        "QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) = 1",
    ),
    "q19": NexmarkQuery(
        "ten highest bids of an auction",
        "SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, ts) AS nth FROM bid "
        "QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, ts) <= 10",
    ),
    "q20": NexmarkQuery(
        "bids with their auction",
        "SELECT b.auction, b.bidder, b.price, b.channel, b.ts, a.item, a.initial, a.seller, a.expires "
        "FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10",
    ),
    "q21": NexmarkQuery(
        "id of a channel",
        "SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' "
        "WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE regexp_extract(url, 'com/([0-9]+)/', 1) END AS channel_id "
        "FROM bid WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu') "
        "OR regexp_extract(url, 'com/([0-4])/', 1) <> ''",
    ),
    "q22": NexmarkQuery(
        "folders of a URL",
        "SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, "
        "split_part(url, '/', 6) AS dir3 FROM bid",
    ),
}


def connect(rows: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """DuckDB over the rows of all streams."""
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    for name, table in rows.items():
        duck.register(name, table)
    return duck


def run(duck: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """The rows of a query in DuckDB."""
    return duck.sql(sql).to_arrow_table()


def verify(name: str, answer: pa.Table, judged: pa.Table) -> None:
    """Raise if an answer does not have the rows of the judge, in any order."""
    keys = [(column, "ascending") for column in answer.column_names]
    expected = judged.rename_columns(answer.column_names).cast(answer.schema)
    assert answer.sort_by(keys).equals(expected.sort_by(keys)), f"wrong answer of {name}"


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Verify every query, and then measure its invocation and DuckDB from scratch."""
    events = nexmark_events(scale.nexmark_events, SECONDS)
    with tureen.open(root / "nexmark", mode="write") as soup:
        handles = _registered(soup, events)
        with connect({**events.rows, "side": SIDE}) as duck:
            for name, query in QUERIES.items():
                sql = query.judge_sql(events.now)
                answer = handles[name].invoke()
                verify(name, answer.table, run(duck, sql))
                ours = p50(handles[name].invoke, 10)
                theirs = p50(partial(run, duck, sql), 5)
                report.add(f"{name}, {query.what} ({len(answer.table):,} rows)", ours, "ms p50")
                report.add(f"DuckDB over Arrow / {name}", theirs / ours, "times")
    report.note(f"{scale.nexmark_events:,} events within {SECONDS:g} s: persons, auctions and bids as 1:3:46.")
    report.note("q10 and q12 do not fit, see `benchmarks/nexmark.py`.")


def _registered(soup: tureen.Soup, events: NexmarkEvents) -> dict[str, tureen.StandingQuery]:
    for name, schema in SCHEMAS.items():
        soup.create_stream(name, schema, time="ts", clock="stream")
    soup.create_table("side", SIDE_SCHEMA, SIDE)
    handles = {name: soup.register(query.sql, materialize=True) for name, query in QUERIES.items()}
    for part in events.pushes(PUSHES):
        for name, table in part.items():
            soup.push(name, table)
    soup.settle()
    return handles
