"""XML streams, embedded and through a client: documents, streams without an end, answers, abstract clocks."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.behaviour.conftest import AnySoup
from tests.service.running import RunningServer
from tureen.errors import InvalidRows, InvalidSchema, KeyConflict, TureenError
from tureen.results.answer import Answer
from tureen.testing.photons import ITEM, SCHEMA, TIME, photon_xml, photons

Names = Callable[[str], str]
Photon = dict[str, Any]

ALL = list(photons(60))
DOCUMENT = photon_xml(ALL)


@pytest.fixture
def stream(soup: AnySoup, fresh: Names) -> str:
    name = fresh("photons")
    soup.create_stream(name, SCHEMA, time=TIME, item=ITEM)
    return name


def stored(soup: AnySoup, stream: str) -> list[Photon]:
    return list(soup.answer_once(f"SELECT * FROM {stream}"))


def test_documents(soup: AnySoup, stream: str, tmp_path: Path) -> None:
    entry = next(entry for entry in soup.streams() if entry["name"] == stream)
    assert (entry["item"], entry["clock"]) == (ITEM, "stream")
    pushed = soup.push(stream, DOCUMENT, format="xml", key="k")
    assert (pushed.added, pushed.rejected) == (60, 0)
    assert soup.push(stream, DOCUMENT, format="xml", key="k").added == 0
    assert stored(soup, stream) == ALL
    later = list(photons(5, seed=1, start=100.0))
    (tmp_path / "later.xml").write_bytes(photon_xml(later))
    soup.push(stream, tmp_path / "later.xml", format="xml")
    assert stored(soup, stream) == ALL + later
    with pytest.raises(KeyConflict):
        soup.push(stream, str(tmp_path / "later.xml"), format="xml", key="k")


def test_stream_is_taken_in_batches(soup: AnySoup, stream: str) -> None:
    pushed = soup.push(stream, io.BytesIO(DOCUMENT), format="xml", key="s", batch=25)
    assert pushed.added == 60
    assert stored(soup, stream) == ALL
    assert soup.push(stream, io.BytesIO(DOCUMENT), format="xml", key="s", batch=25).added == 0


def test_broken_document_changes_nothing(soup: AnySoup, stream: str) -> None:
    broken = DOCUMENT[: len(DOCUMENT) // 2]
    with pytest.raises(InvalidRows, match=r"line \d+ column \d+: not valid XML"):
        soup.push(stream, broken, format="xml")
    with pytest.raises(InvalidRows, match=r"line 32: column 'en' is DOUBLE, not 'much'"):
        soup.push(stream, DOCUMENT.replace(f"<en>{ALL[30]['en']}</en>".encode(), b"<en>much</en>", 1), format="xml")
    assert stored(soup, stream) == []
    # A stream keeps its complete batches, and continues where it broke.
    with pytest.raises(InvalidRows, match=r"20 rows in 2 batches before this were stored"):
        soup.push(stream, io.BytesIO(broken), format="xml", key="s", batch=10)
    assert stored(soup, stream) == ALL[:20]
    assert soup.push(stream, io.BytesIO(DOCUMENT), format="xml", key="s", batch=10).added == 40
    assert stored(soup, stream) == ALL


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (DOCUMENT, {"format": "yaml"}, "format must be 'xml' or None, got 'yaml'"),
        (5, {"format": "xml"}, "XML must be bytes, a path or a file object, got int"),
        ("/nowhere/at/all.xml", {"format": "xml"}, "cannot be read"),
        (DOCUMENT, {"format": "xml", "batch": 0}, "batch must be a positive integer, got 0"),
        (DOCUMENT, {}, "rows must be a list of dicts"),
    ],
)
def test_invalid_pushes(soup: AnySoup, stream: str, rows: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TureenError, match=message):
        soup.push(stream, rows, **options)
    assert stored(soup, stream) == []


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("a INT", {"item": "a//b"}, "'a//b' is not the path of an item"),
        ("`a b` INT", {"item": "r/i"}, "column 'a b' is not the path"),
        ("a INT, `a/b` INT", {"item": "r/i"}, "column 'a' is a value, and column 'a/b' is in its element"),
        ("t DOUBLE", {"time": "t", "clock": "wall"}, "cannot follow the wall clock"),
        ("t DECIMAL(9,3)", {"time": "t"}, "must be TIMESTAMP, got DECIMAL"),
    ],
)
def test_invalid_streams(soup: AnySoup, fresh: Names, schema: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        soup.create_stream(fresh("invalid"), schema, **options)


def test_paths_and_seconds_in_queries(soup: AnySoup, stream: str) -> None:
    soup.push(stream, DOCUMENT, format="xml")
    end = ALL[-1]["det_time"]
    select = f"SELECT `coord/cel/ra`, p.`coord/cel/dec` AS d FROM {stream} p"
    sql = f"{select} WHERE `coord/cel/ra` > 130 BEGIN NOW - 1 END NOW"
    query = soup.register(sql)
    expected = [row for row in ALL if row["coord/cel/ra"] > 130 and row["det_time"] >= end - 1]
    answer = query.invoke()
    assert [row["d"] for row in answer] == [row["coord/cel/dec"] for row in expected]
    assert answer.table.column_names == ["coord/cel/ra", "d"]
    first = expected[0]
    assert answer.xml.startswith(f"<rows><row><coord><cel><ra>{first['coord/cel/ra']:g}</ra></cel></coord><d>")
    assert answer.window.end is not None
    assert answer.window.end.timestamp() == end
    total = soup.register(f"SELECT max(en) AS m FROM {stream} GROUP BY `coord/det/dx`")
    assert len(total.invoke()) == len({row["coord/det/dx"] for row in ALL})
    change = soup.register(f"SELECT `coord/det/dx` FROM {stream} WHERE `coord/det/dx` >= 0")
    since = change.invoke().position
    new = next(iter(photons(1, seed=7, start=end)))
    soup.push(stream, photon_xml([new]), format="xml")
    change_row = next(change.changes(since=since, timeout=30))
    assert change_row.row == {"coord/det/dx": new["coord/det/dx"]}
    assert change_row.xml == f"<row><coord><det><dx>{new['coord/det/dx']}</dx></det></coord></row>"
    query.unregister()


def test_statements(soup: AnySoup, fresh: Names) -> None:
    name, derived = fresh("stated"), fresh("derived")
    soup.sql(f"CREATE STREAM {name} (`a/b` INT, t BIGINT) TIME t ITEM 'r/i'")
    soup.sql(f"CREATE STREAM {derived} ITEM 'big/i' AS SELECT * FROM {name} WHERE `a/b` > 1")
    listed = {entry["name"]: entry for entry in soup.streams()}
    assert [(listed[each]["item"], listed[each]["clock"], listed[each]["time"]) for each in (name, derived)] == [
        ("r/i", "stream", "t"),
        ("big/i", "stream", "t"),
    ]
    at = soup.push(name, b"<r><i><a><b>1</b></a><t>5</t></i><i><a><b>2</b></a><t>6</t></i></r>", format="xml")
    soup.wait(at)
    answer = soup.sql(f"SELECT `a/b` FROM {name} BEGIN NOW - 1 END NOW")
    assert isinstance(answer, Answer)
    assert list(answer) == [{"a/b": 1}, {"a/b": 2}]
    soup.drop_stream(derived)
    soup.drop_stream(name)


def test_http(served_pot: RunningServer, soup: AnySoup, stream: str) -> None:
    headers = {"Authorization": f"Bearer {served_pot.tokens['admin']}"}
    with httpx.Client(base_url=served_pot.url, headers=headers, timeout=60) as http:
        rows = f"/v1/streams/{stream}/rows"
        xml = {"Content-Type": "application/xml; charset=utf-8"}
        receipt = http.post(rows, content=DOCUMENT, headers=xml)
        assert (receipt.status_code, receipt.json()["rows"], receipt.json()["added"]) == (202, 60, 60)

        def pieces() -> Any:
            later = photon_xml(photons(30, seed=2, start=100.0))
            yield from (later[start : start + 777] for start in range(0, len(later), 777))

        receipt = http.post(rows, params={"batch": 7}, content=pieces(), headers={**xml, "Idempotency-Key": "p"})
        assert (receipt.status_code, receipt.json()["rows"], receipt.json()["added"]) == (202, 30, 30)
        receipt = http.post(rows, params={"batch": 7}, content=pieces(), headers={**xml, "Idempotency-Key": "p"})
        assert (receipt.json()["rows"], receipt.json()["added"]) == (30, 0)
        refused = http.post(rows, content=b"<photons><photon>", headers=xml)
        assert refused.status_code == 400
        assert "not valid XML" in refused.json()["error"]["message"]
        assert http.post("/v1/tables?name=x&schema=a INT", content=b"<r/>", headers=xml).status_code == 415
        query = soup.register(f"SELECT phc FROM {stream} WHERE phc > 100")
        answer = http.get(f"/v1/queries/{query.id}/result", headers={"Accept": "application/xml"})
        assert answer.headers["Content-Type"] == "application/xml"
        assert answer.text == query.invoke().xml
        again = {"Accept": "application/xml", "If-None-Match": answer.headers["ETag"]}
        assert http.get(f"/v1/queries/{query.id}/result", headers=again).status_code == 304
