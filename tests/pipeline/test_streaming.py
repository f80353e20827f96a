"""External sources, debts and joins of Spark jobs, and the files that Spark writes."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tureen
from tests.disk import modes
from tureen.pipeline import engine, join_keeping
from tureen.pipeline.debts import Debt, Payment
from tureen.pipeline.join_task import JoinTask, TaskResult
from tureen.pipeline.streaming import Streaming
from tureen.position import Position
from tureen.soup.served_soup import ServedSoup


def until_rows(query: tureen.StandingQuery, soup: tureen.Soup, count: int) -> tureen.Answer:
    """Wait, commit by commit, until the query has `count` rows."""
    answer = query.invoke()
    while len(answer) < count:
        soup.wait(str(Position(Position.parse(answer.position).seq + 1)), timeout=60)
        answer = query.invoke()
    return answer


def test_rate(soup: tureen.Soup) -> None:
    source = {"format": "rate", "options": {"rowsPerSecond": 50}}
    soup.create_stream("ticks", "value BIGINT, timestamp TIMESTAMP", time="timestamp", source=source)
    query = soup.register("SELECT value FROM ticks WHERE value % 2 = 0")
    values = [row["value"] for row in until_rows(query, soup, 20)]
    assert values == list(range(0, 2 * len(values), 2))
    soup.drop_stream("ticks")


def write_json(path: Path) -> None:
    path.write_text(
        "\n".join(json.dumps({"id": n, "name": f"n{n}", "ts": f"2026-01-01T00:00:{n:02}Z"}) for n in range(9))
    )


def write_csv(path: Path) -> None:
    lines = ["id,name,ts", *(f"{n},n{n},2026-01-01T00:00:{n:02}Z" for n in range(9))]
    path.write_text("\n".join(lines))


def write_parquet(path: Path) -> None:
    times = [datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(9)]
    table = pa.table({"name": [f"n{n}" for n in range(9)], "id": list(range(9)), "ts": times})
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("kind", "write", "options"),
    [("json", write_json, {}), ("csv", write_csv, {"header": "true"}), ("parquet", write_parquet, {})],
)
def test_files(
    soup: tureen.Soup, tmp_path: Path, kind: str, write: Callable[[Path], None], options: dict[str, str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / f"one.{kind}")
    source = {"format": kind, "options": {"path": str(folder), **options}}
    soup.create_stream(f"files_{kind}", "id BIGINT, name STRING, ts TIMESTAMP", time="ts", source=source)
    query = soup.register(f"SELECT id, name FROM files_{kind} WHERE id >= 3")
    assert until_rows(query, soup, 6).table.to_pydict() == {
        "id": [3, 4, 5, 6, 7, 8],
        "name": [f"n{n}" for n in range(3, 9)],
    }
    soup.drop_stream(f"files_{kind}")


def test_rows_without_a_time_are_rejected(soup: tureen.Soup, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "one.json").write_text('{"id": 1, "ts": "2026-01-01T00:00:00Z"}\n{"id": 2}\n')
    source = {"format": "json", "options": {"path": str(folder)}}
    soup.create_stream("partly", "id INT, ts TIMESTAMP", time="ts", source=source)
    query = soup.register("SELECT id FROM partly")
    assert until_rows(query, soup, 1).table.to_pydict() == {"id": [1]}
    (rejected,) = soup.rejected("partly")
    assert rejected["row"] == {"id": 2, "ts": None}
    assert "NULL" in rejected["reason"]
    soup.drop_stream("partly")


def test_large_debts_are_paid_by_a_spark_job(soup: tureen.Soup, monkeypatch: pytest.MonkeyPatch) -> None:
    soup.create_stream("owing", "a BIGINT")
    for part in range(3):
        soup.push("owing", pa.table({"a": pa.array(range(part * 5000, part * 5000 + 5000), pa.int64())}))
        soup.settle()
    paid: list[int] = []
    monkeypatch.setattr(engine, "LARGE_DEBT", 0)
    by_spark = Streaming.pay

    def counted(self: Streaming, debts: list[Debt]) -> list[Payment]:
        paid.append(len(debts))
        return by_spark(self, debts)

    monkeypatch.setattr(Streaming, "pay", counted)
    query = soup.register("SELECT a FROM owing WHERE a >= 4998 AND a < 5003", materialize=True)
    assert [row["a"] for row in query.invoke()] == list(range(4998, 5003))
    soup.settle()
    assert sum(paid) >= 1
    assert query.explain()["tuples_by_path"]["published"] == 15_000
    assert [row["a"] for row in query.invoke()] == list(range(4998, 5003))


def test_large_joins_are_kept_by_a_spark_job(soup: tureen.Soup, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, factor in (("joined", 1), ("other", 2)):
        soup.create_stream(name, "a BIGINT")
        soup.push(name, pa.table({"a": pa.array(range(0, 6000 * factor, factor), pa.int64())}))
    soup.settle()
    monkeypatch.setattr(join_keeping, "STEP_TUPLES", 2000)
    monkeypatch.setattr(join_keeping, "LARGE_STEP", 5000)
    tasks: list[int] = []
    by_spark = Streaming.join

    def counted(self: Streaming, join_tasks: list[JoinTask]) -> list[TaskResult]:
        tasks.append(len(join_tasks))
        return by_spark(self, join_tasks)

    monkeypatch.setattr(Streaming, "join", counted)
    sql = "SELECT joined.a FROM joined JOIN other ON joined.a = other.a WHERE joined.a < 10"
    query = soup.register(sql, materialize=True)
    assert [row["a"] for row in query.invoke()] == [0, 2, 4, 6, 8]
    soup.settle()
    assert tasks == [6]
    kept = query.explain()["kept_join"]
    assert (kept["used"], kept["joined_tuples"]) == (True, 3000)
    assert [row["a"] for row in query.invoke()] == [0, 2, 4, 6, 8]
    soup.drop_stream("joined")
    soup.settle()
    assert soup.status()["kept_joins"] == {"joins": 0, "rows": 0, "bytes": 0}


def test_a_failed_source_is_reported_with_its_stream(soup: tureen.Soup, tmp_path: Path) -> None:
    soup.start(wait=120)
    source = {"format": "json", "options": {"path": str(tmp_path / "missing")}}
    soup.create_stream("failing", "a INT", source=source)
    soup.create_stream("healthy", "a INT")
    query = soup.register("SELECT a FROM healthy")
    while soup.status()["streams"]["failing"]["error"] is None:
        soup.push("healthy", [{"a": 1}])
        soup.settle()
    assert "missing" in soup.status()["streams"]["failing"]["error"]
    assert {info["name"]: info["error"] for info in soup.streams()}["healthy"] is None
    assert "missing" in next(info["error"] for info in soup.streams() if info["name"] == "failing")
    assert (soup.status()["error"], ServedSoup.of(soup).trouble()) == (None, None), (
        "a failed source does not make the pot unready"
    )
    assert len(query.invoke()) >= 1
    errors = soup._pot.source_errors
    assert errors()
    soup.drop_stream("failing")
    while errors():
        soup.push("healthy", [{"a": 1}])
        soup.settle()
    assert all(info["error"] is None for info in soup.status()["streams"].values())


def test_files_of_spark_are_private(soup: tureen.Soup) -> None:
    before = os.umask(0)
    try:
        soup.create_stream("private", "a INT")
        soup.push("private", [{"a": n} for n in range(50_000)])
        soup.settle()
    finally:
        os.umask(before)
    mode_by_path = modes(soup.path)
    assert (soup.path.stat().st_mode & 0o777, mode_by_path["checkpoints"]) == (0o700, 0o700)
    assert any(path.startswith("streams/") for path in mode_by_path)
    assert {
        path: mode for path, mode in mode_by_path.items() if mode & 0o077 and not path.startswith("checkpoints/")
    } == {}


def test_rows_of_a_source_punctuate_their_stream(soup: tureen.Soup, tmp_path: Path) -> None:
    folder = tmp_path / "offers"
    folder.mkdir()
    offers = [{"item": 1, "closed": False}, {"item": 1, "closed": True}, {"item": 1, "closed": False}]
    (folder / "first.json").write_text("\n".join(map(json.dumps, offers)))
    soup.create_stream(
        "offers",
        "item INT, closed BOOLEAN",
        source={"format": "json", "options": {"path": str(folder)}},
        punctuate="closed",
        key=["item"],
    )
    query = soup.register("SELECT item, count(*) AS n FROM offers GROUP BY item EMIT FINAL")
    assert list(until_rows(query, soup, 1)) == [{"item": 1, "n": 2}]
    assert [each["row"]["item"] for each in soup.rejected("offers")] == [1]
    (folder / "second.json").write_text(json.dumps({"item": 2, "closed": True}))
    assert list(until_rows(query, soup, 2)) == [{"item": 1, "n": 2}, {"item": 2, "n": 1}]
    soup.drop_stream("offers")


def test_headers_of_a_source_punctuate_its_stream(soup: tureen.Soup, tmp_path: Path) -> None:
    """Rows with headers as Kafka's source gives them."""
    folder = tmp_path / "bids"
    folder.mkdir()

    def line(item: int, *patterns: object) -> str:
        values = [{"key": "over", "value": b64encode(json.dumps(each).encode()).decode()} for each in patterns]
        return json.dumps({"item": item, "headers": [{"key": "other", "value": None}, *values]})

    lines = [line(1, {"item": 1}), line(1), line(2, {"thing": 2}), line(3, {"item": [3]}, {"item": {"low": 9}})]
    (folder / "first.json").write_text("\n".join([*lines, json.dumps({"item": 4})]))
    soup.create_stream(
        "bids",
        "item INT",
        source={"format": "json", "options": {"path": str(folder), "includeHeaders": "true"}},
        punctuate="over",
    )
    query = soup.register("SELECT item, count(*) AS n FROM bids GROUP BY item EMIT FINAL")
    assert list(until_rows(query, soup, 2)) == [{"item": 1, "n": 1}, {"item": 3, "n": 1}]
    (closed, wrong) = soup.rejected("bids")
    assert (closed["row"], closed["reason"].partition(",")[0]) == ({"item": 1}, "closed by the punctuation item = 1")
    expected = "the pattern in header 'over' is not valid: unknown column 'thing' in a punctuation"
    assert (wrong["row"], wrong["reason"]) == ({"item": 2}, expected)
    assert next(each["punctuate"] for each in soup.streams() if each["name"] == "bids") == {"header": "over"}
    soup.drop_stream("bids")
